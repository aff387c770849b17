"""Weights of levels, features and families of a forest, fitted to out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.forest.class_groups import grouped, likeliest_classes, own_group, remainder_shares
from tanlearn.forest.forest import softmax
from tanlearn.forest.left_out import LeftOut
from tanlearn.forest.ridge import Fitted, Problem, fit_weights
from tanlearn.forest.views import Views

__all__ = ["Weighed", "doubt_of", "first_rows", "mean_log_loss", "weigh"]

#: Candidate ridges of levels and features, whose penalty is centered at their start, and of families, whose penalty is
#: centered at the weight of their feature; from strong to weak.
LEVEL_RIDGES = (1.0, 0.03, 1e-3)
FEATURE_RIDGES = tuple(10.0 ** np.arange(-0.5, -5, -1))
FAMILY_RIDGES = tuple(10.0 ** np.arange(1, -4, -1))
#: Maximum number of rows that weights of levels are fitted to, and that candidate models are compared on.
LEVEL_ROWS = 2048
#: Maximum number of groups of classes that weights of families are fitted with: the likeliest classes, and the rest.
N_GROUPS = 4
#: Maximum number of gains that one set of weights is fitted to; with more rows, a random subset is used.
MOST_NUMBERS = 2**23
#: Candidates for the share of rows whose class is independent of the features.
DOUBTS = 2.0 ** np.arange(-30, -1, 0.5)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Fitted weights of a forest, and the predictions of rows that they were not fitted to."""

    weights: FloatArray  # (n_members, n_features, n_levels) weight of the gains of each level of each family
    of_prior: float  # weight of the log class frequencies
    rows: IntArray  # (n_rows,) rows to compare candidate models on
    own_p: FloatArray  # (n_rows,) out-of-fold probabilities of the true classes of these rows


def weigh(views: Views, kind: str, ridge: float | None, say: Callable[[str], None]) -> Weighed:
    """Fit weights of levels, then of features, then of families, with a penalty on the distance to the set before.

    Weights of families are fitted unless ``kind`` is "shared". A ``ridge`` of None is selected by the out-of-fold log
    loss. A set of weights is used only if the mean log loss of out-of-fold rows, over all classes, is lower with it.
    """
    left_out, data = views.outer, views.outer.data
    n_members, d, n_classes = left_out.n_members, data.n_features, data.n_classes

    def of_levels(view: LeftOut, _: int, own: IntArray) -> Problem:
        scores: AnyArray = np.concatenate([view.level_scores(own), view.base(own)[np.newaxis]])
        return Problem(scores.astype(np.float32), np.zeros(scores.shape[1:]), data.y[own], data.weights[own])

    start = np.full(left_out.n_levels + 1, 0.5)
    start[[0, -1]] = 1.0
    level_rows = first_rows(views.rows[:LEVEL_ROWS], left_out.n_levels * n_classes)
    whole, parts = views.problems(of_levels, level_rows)
    levels = fit_weights(whole, parts, start, [start] * len(parts), LEVEL_RIDGES)
    say(_told("levels", levels))
    level_of = [*levels.of_parts, levels.weights]

    def of_features(view: LeftOut, part: int, own: IntArray) -> Problem:
        weight = level_of[part]
        scores: AnyArray = view.feature_scores(own, weight[:-1]).astype(np.float32)
        return Problem(scores, weight[-1] * view.base(own), data.y[own], data.weights[own])

    feature_rows = first_rows(views.rows, d * n_classes)
    whole, parts = views.problems(of_features, feature_rows)
    ridges = FEATURE_RIDGES if ridge is None else (ridge,)
    features = fit_weights(whole, parts, np.ones(d), [np.ones(d)] * len(parts), ridges)
    say(_told("features", features))

    feature_of: list[FloatArray] = [
        np.tile(own / n_members, n_members) for own in (*features.of_parts, features.weights)
    ]
    fitted = np.sort(feature_rows)  # log_p contains these rows only: at most MOST_NUMBERS entries
    log_p = np.empty((len(fitted), n_classes))
    for f, of_rows in enumerate(features.log_p):
        log_p[np.searchsorted(fitted, feature_rows[views.fold[feature_rows] == f])] = of_rows
    rows = feature_rows[:LEVEL_ROWS]
    chosen, own_p = feature_of[-1], np.exp(log_p[np.searchsorted(fitted, rows), data.y[rows]])

    def totals(view: LeftOut, part: int, of_families: FloatArray, own: IntArray) -> FloatArray:
        weight = level_of[part]
        weights = of_families.reshape(n_members, d, 1) * weight[:-1]
        return view.total_scores(own, weights) + weight[-1] * view.base(own)

    def own_probabilities(family_of: list[FloatArray]) -> FloatArray:
        p, fold = np.empty(len(rows)), views.fold[rows]
        for f, of_families in enumerate(family_of):
            own = rows[fold == f]
            scores = softmax(totals(left_out, f if views.inner else -1, of_families, own))
            p[fold == f] = scores[np.arange(len(own)), data.y[own]]
        return p

    if kind != "shared":
        n_groups = min(N_GROUPS, n_classes)
        family_rows = first_rows(feature_rows, n_members * d * n_groups)
        likeliest = likeliest_classes(log_p, n_groups)

        def of_families(view: LeftOut, part: int, own: IntArray) -> Problem:
            weight, of_row, shares = level_of[part], likeliest[np.searchsorted(fitted, own)], None
            base = weight[-1] * view.base(own)
            if n_classes > n_groups:
                shares = remainder_shares(totals(view, part, feature_of[part], own), of_row)
                base -= np.log(shares, out=np.zeros(shares.shape), where=shares > 0)
            scores = view.family_scores(own, weight[:-1], of_row, shares)
            return Problem(scores, grouped(base, of_row, shares), own_group(data.y[own], of_row), data.weights[own])

        whole, parts = views.problems(of_families, family_rows)
        ridges = FAMILY_RIDGES if ridge is None else (ridge,)
        families = fit_weights(whole, parts, feature_of[-1], feature_of[:-1], ridges)
        say(_told("families", families))
        if np.isfinite(families.ridge):
            by_families = own_probabilities(families.of_parts)
            losses = [mean_log_loss(p, data.weights[rows]) for p in (own_p, by_families)]
            say(f"weights of families, all classes: log loss {losses[0]:.4f} -> {losses[1]:.4f}")
            if losses[1] < losses[0]:
                chosen, own_p = families.weights, by_families
    weights = chosen.reshape(n_members, d, 1) * levels.weights[:-1]
    return Weighed(weights, float(levels.weights[-1]), rows, own_p)


def mean_log_loss(own_p: FloatArray, weights: AnyArray) -> float:
    """Compute the weighted mean log loss from probabilities of the true classes; infinite if one is 0."""
    with np.errstate(divide="ignore"):
        return float(np.average(-np.log(own_p), weights=weights))


def _told(what: str, found: Fitted) -> str:
    """Format a progress message."""
    return f"weights of {what}, ridge {found.ridge:g}: log loss {found.start_loss:.4f} -> {found.log_loss:.4f}"


def doubt_of(p: FloatArray, weights: AnyArray, n_classes: int) -> float:
    """Estimate doubt, the fraction of rows with a uniformly random class: p becomes (1 - doubt) p + doubt / n_classes.

    It is the mode of the posterior with one additional row of either kind. Without these pseudo-counts, a few hundred
    rows without a doubtful one would give a doubt near 0, and a single doubtful row later could cost as much as all
    others gain.

    Shapes: p, weights: (n_rows,), out-of-fold probabilities of the true classes, and weights of the rows.
    """
    doubts = DOUBTS[:, np.newaxis]
    own = np.average(np.log((1.0 - doubts) * p + doubts / n_classes), axis=1, weights=weights) * len(p)
    return float(DOUBTS[(own + np.log(DOUBTS * (1.0 - DOUBTS))).argmax()])


def first_rows(rows: IntArray, width: int) -> IntArray:
    """Return the first rows, at most ``MOST_NUMBERS`` numbers at ``width`` numbers per row, but at least one."""
    return rows[: max(1, MOST_NUMBERS // width)]
