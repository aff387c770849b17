"""Weights of a forest, fitted to out-of-fold predictions by penalized conditional likelihood (``ridge.py``).

Weights of levels are fitted first, then weights of features, then weights of single families. In each stage, the
penalty is centered on the weights of the previous stage. Weights of families are used only if they lower the
out-of-fold log loss.

Shapes: weights (n_members, n_features, n_levels), where level j adds the j-th parent; scores (n_rows, n_classes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.forest.class_groups import grouped, likeliest_classes, own_group, remainder_shares
from tanlearn.forest.forest import softmax
from tanlearn.forest.monotone_contexts import nonincreasing
from tanlearn.forest.out_of_fold import FoldNetworks, OutOfFold
from tanlearn.forest.ridge import Fitted, Problem, fit_weights

__all__ = ["FittedWeights", "first_rows", "fit_all_weights", "mean_log_loss"]

#: Candidate strengths of the penalty, from strong to weak. For levels and features, the penalty is centered at their
#: start; for families, at the weight of their feature.
LEVEL_RIDGES = (1.0, 0.03, 1e-3)
FEATURE_RIDGES = tuple(10.0 ** np.arange(-0.5, -5, -1))
FAMILY_RIDGES = tuple(10.0 ** np.arange(1, -4, -1))
#: Maximum number of rows that weights of levels are fitted to, and that candidate models are compared on.
LEVEL_ROWS = 2048
#: Maximum number of groups of classes for weights of families: the likeliest classes, and the remainder.
N_GROUPS = 4
#: Maximum number of gains that one set of weights is fitted to; with more rows, a random subset is used.
MOST_NUMBERS = 2**23


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """Fitted weights of a forest, and predictions of rows that were not used to fit them."""

    weights: FloatArray  # (n_members, n_features, n_levels) weight of the gains of each level of each family
    of_prior: float  # weight of the log class frequencies
    rows: IntArray  # (n_rows,) rows to compare candidate models on
    p: FloatArray  # (n_rows, n_classes) out-of-fold probabilities of these rows


@dataclass(frozen=True, eq=False)
class _LevelWeights:
    """Weights of levels, and the scores of features and families with these weights.

    ``part`` is the fold without which the weights were fitted, or -1 for weights fitted to all rows.
    """

    out_of_fold: OutOfFold
    of_parts: list[FloatArray]  # (n_levels + 1,) weights of each part, the class frequencies last; part -1 is last
    is_monotone: AnyArray | None = None  # (n_features,) bool, features whose weights must not rise with the level

    def weights(self, part: int) -> FloatArray:
        """Return the weights of levels.

        Shapes: result: (n_levels,), or (n_features, n_levels) if features have different weights.
        """
        own = self.of_parts[part][:-1]
        if self.is_monotone is None:
            return own
        return np.where(self.is_monotone[:, np.newaxis], nonincreasing(own), own)

    def base(self, view: FoldNetworks, part: int, rows: IntArray) -> FloatArray:
        """Return the weighted scores of the class frequencies."""
        return self.of_parts[part][-1] * view.base(rows)

    def of_features(self, view: FoldNetworks, part: int, rows: IntArray) -> Problem:
        """Return the problem that fits weights of features."""
        data = view.data
        scores = view.feature_scores(rows, self.weights(part))
        return Problem.from_scores(scores, self.base(view, part, rows), data.y[rows], data.weights[rows])

    def of_families(self, view: FoldNetworks, part: int, rows: IntArray) -> Problem:
        """Return the problem of weights of families, with all classes."""
        data = view.data
        scores = view.family_scores(rows, self.weights(part), None, None)
        return Problem.from_scores(scores, self.base(view, part, rows), data.y[rows], data.weights[rows])

    def total(self, view: FoldNetworks, part: int, of_families: FloatArray, rows: IntArray) -> FloatArray:
        """Return the scores of the forest with weights of families (n_members * n_features,)."""
        weights = of_families.reshape(view.n_members, -1, 1) * self.weights(part)
        return view.total_scores(rows, weights) + self.base(view, part, rows)

    def probabilities(self, of_families: list[FloatArray], rows: IntArray) -> FloatArray:
        """Return the class probabilities of rows.

        Each row is scored with the family weights that were fitted without its fold.
        """
        outer, fold = self.out_of_fold.outer, self.out_of_fold.fold[rows]
        p = np.empty((len(rows), outer.data.n_classes))
        for f, weights in enumerate(of_families):
            own = rows[fold == f]
            p[fold == f] = softmax(self.total(outer, f if self.out_of_fold.inner else -1, weights, own))
        return p


class _StageProblems:
    """Problems of the weights of features and of families, which share scores.

    With at most ``N_GROUPS`` classes, scores of features are means of scores of families, so that networks are
    evaluated once for both. With more classes, probabilities with weights of features are computed by the problems that
    fit these weights.
    """

    def __init__(self, levels: _LevelWeights, rows: IntArray, *, has_families: bool) -> None:
        outer = levels.out_of_fold.outer
        data, n_members = outer.data, outer.n_members
        self.levels = levels
        self.rows = rows  # of the weights of features
        self._n_groups = min(N_GROUPS, data.n_classes)
        self._family_rows = first_rows(rows, n_members * data.n_features * self._n_groups)
        self._has_all_classes = data.n_classes <= N_GROUPS
        self._is_shared = has_families and self._has_all_classes and len(self._family_rows) == len(rows)
        self._families: tuple[Problem, list[tuple[Problem, Problem]]] | None = None
        self._made: dict[
            tuple[int, bool], Problem
        ] = {}  # problems of features by part, and whether they are outer ones

    def of_features(self) -> tuple[Problem, list[tuple[Problem, Problem]]]:
        """Return the problems that fit weights of features.

        The first contains all rows. The pairs contain the rows outside and inside of each fold.
        """
        levels, out_of_fold = self.levels, self.levels.out_of_fold
        if self._is_shared:
            n_members = out_of_fold.outer.n_members
            whole, parts = self._families = out_of_fold.problems(levels.of_families, self.rows)
            return whole.mean(n_members), [(a.mean(n_members), b.mean(n_members)) for a, b in parts]

        def make(view: FoldNetworks, part: int, rows: IntArray) -> Problem:
            found = self._made[part, view is out_of_fold.outer] = levels.of_features(view, part, rows)
            return found

        return out_of_fold.problems(make, self.rows)

    def of_families(self, features: Fitted, log_p: FloatArray) -> tuple[Problem, list[tuple[Problem, Problem]]]:
        """Return the problems that fit weights of families to groups of classes, in the order of :meth:`of_features`.

        ``log_p`` (n_rows, n_classes) contains the log probabilities of ``rows`` with fitted weights of ``features``.
        """
        levels, out_of_fold, rows = self.levels, self.levels.out_of_fold, self._family_rows
        if self._families is not None:
            return self._families
        if self._has_all_classes:
            return out_of_fold.problems(levels.of_families, rows)
        data = out_of_fold.outer.data
        likeliest, position = likeliest_classes(log_p, self._n_groups), np.empty(data.n_samples, np.intp)
        position[self.rows] = np.arange(len(self.rows))
        weights = [*features.of_parts, features.weights]

        def make(view: FoldNetworks, part: int, own: IntArray) -> Problem:
            of_row = likeliest[position[own]]
            # Problems of families contain the first rows of the problems of features.
            total = self._made[part, view is out_of_fold.outer].first(len(own)).log_p(weights[part])
            shares = remainder_shares(total, of_row)
            base = levels.base(view, part, own) - np.log(shares, out=np.zeros(shares.shape), where=shares > 0)
            scores = view.family_scores(own, levels.weights(part), of_row, shares)
            base, y = grouped(base, of_row, shares), own_group(data.y[own], of_row)
            return Problem.from_scores(scores, base, y, data.weights[own])

        return out_of_fold.problems(make, rows)

    def probabilities(self, families: Fitted, rows: IntArray) -> FloatArray:
        """Return the class probabilities of the first rows.

        Each row is scored with weights that were fitted without its fold.
        """
        if not self._has_all_classes or len(self._family_rows) < len(rows):
            return self.levels.probabilities(families.of_parts, rows)
        fold = self.levels.out_of_fold.fold[self._family_rows]
        p = np.empty((len(fold), families.log_p[0].shape[1]))
        for f, log_p in enumerate(families.log_p):
            p[fold == f] = np.exp(log_p)
        return p[: len(rows)]


def fit_all_weights(
    out_of_fold: OutOfFold,
    kind: str,
    ridge: float | None,
    report: Callable[[str], object],
    *,
    is_monotone: AnyArray | None = None,
) -> FittedWeights:
    """Fit weights of levels, then of features, then of families. A penalty keeps each set close to the set before.

    Weights of families are fitted unless ``kind`` is "shared". A ``ridge`` of None is selected by the out-of-fold log
    loss. Weights are used only if they lower the mean out-of-fold log loss. For weights of families, this must also
    hold over all classes, not only over the groups of classes used in the fit. Weights of features in ``is_monotone``
    (n_features,) are nonnegative, and do not rise with the level.
    """
    outer, data = out_of_fold.outer, out_of_fold.outer.data
    n_members, d = outer.n_members, data.n_features
    fitted = _fit_levels(out_of_fold)
    report(_progress("levels", fitted))
    levels = _LevelWeights(out_of_fold, [*fitted.of_parts, fitted.weights], is_monotone)
    lowest = None if is_monotone is None else np.where(is_monotone, 0.0, -np.inf)

    feature_rows = first_rows(out_of_fold.rows, d * data.n_classes)
    problems = _StageProblems(levels, feature_rows, has_families=kind != "shared")
    whole, parts = problems.of_features()
    ridges = FEATURE_RIDGES if ridge is None else (ridge,)
    features = fit_weights(whole, parts, np.ones(d), [np.ones(d)] * len(parts), ridges, lowest=lowest)
    report(_progress("features", features))
    starts: list[FloatArray] = [np.tile(own / n_members, n_members) for own in (*features.of_parts, features.weights)]
    log_p = np.empty((len(feature_rows), data.n_classes))
    for f, of_rows in enumerate(features.log_p):
        log_p[out_of_fold.fold[feature_rows] == f] = of_rows

    rows = feature_rows[:LEVEL_ROWS]
    chosen: FloatArray = starts[-1]
    p: FloatArray = np.exp(log_p[: len(rows)])
    if kind != "shared":
        families = _fit_families(problems, features, starts, log_p, ridge)
        report(_progress("families", families))
        if np.isfinite(families.ridge):
            by_families = problems.probabilities(families, rows)
            own = np.arange(len(rows)), data.y[rows]
            losses = [mean_log_loss(one[own], data.weights[rows]) for one in (p, by_families)]
            report(f"weights of families, all classes: log loss {losses[0]:.4f} -> {losses[1]:.4f}")
            if losses[1] < losses[0]:
                chosen, p = families.weights, by_families
    weights = chosen.reshape(n_members, d, 1) * levels.weights(-1)
    return FittedWeights(weights, float(fitted.weights[-1]), rows, p)


def _fit_levels(out_of_fold: OutOfFold) -> Fitted:
    """Fit weights of levels and of the class frequencies, equal for all features."""
    data, n_levels = out_of_fold.outer.data, out_of_fold.outer.n_levels

    def of_levels(view: FoldNetworks, _: int, rows: IntArray) -> Problem:
        scores: AnyArray = np.concatenate([view.level_scores(rows), view.base(rows)[np.newaxis]])
        return Problem.from_scores(scores, np.zeros(scores.shape[1:]), data.y[rows], data.weights[rows])

    start = np.full(n_levels + 1, 0.5)
    start[[0, -1]] = 1.0
    rows = first_rows(out_of_fold.rows[:LEVEL_ROWS], n_levels * data.n_classes)
    whole, parts = out_of_fold.problems(of_levels, rows, is_first=True)
    return fit_weights(whole, parts, start, [start] * len(parts), LEVEL_RIDGES)


def _fit_families(
    problems: _StageProblems,
    features: Fitted,
    starts: list[FloatArray],
    log_p: FloatArray,
    ridge: float | None,
) -> Fitted:
    """Fit weights of families. Scores of classes that are unlikely in a row are combined into one group.

    ``starts`` are the weights of features, repeated for their families: first the weights of each part, then the
    weights fitted to all rows. Shapes: log_p: (n_rows, n_classes), with weights of features.
    """
    levels = problems.levels
    whole, parts = problems.of_families(features, log_p)
    ridges = FAMILY_RIDGES if ridge is None else (ridge,)
    lowest = None
    if levels.is_monotone is not None:
        lowest = np.tile(np.where(levels.is_monotone, 0.0, -np.inf), levels.out_of_fold.outer.n_members)
    return fit_weights(whole, parts, starts[-1], starts[:-1], ridges, lowest=lowest)


def mean_log_loss(own_p: FloatArray, weights: AnyArray) -> float:
    """Compute the weighted mean log loss from probabilities of the true classes. It is infinite if one of them is 0."""
    with np.errstate(divide="ignore"):
        return float(np.average(-np.log(own_p), weights=weights))


def _progress(what: str, found: Fitted) -> str:
    """Format a progress message."""
    return f"weights of {what}, ridge {found.ridge:g}: log loss {found.start_loss:.4f} -> {found.log_loss:.4f}"


def first_rows(rows: IntArray, width: int) -> IntArray:
    """Return the first rows: at least one, and at most ``MOST_NUMBERS / width``."""
    return rows[: max(1, MOST_NUMBERS // width)]
