"""How much levels, features and families count: by what twins of a forest say of rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.forest.forest import softmax
from tanlearn.forest.left_out import LeftOut
from tanlearn.forest.ridge import Fitted, Problem, fit_weights
from tanlearn.forest.views import Views

__all__ = ["Weighed", "doubt_of", "first_rows", "weigh"]

#: Pulls on a weight of a level and of a feature away from where it starts, and of a family from its feature's share,
#: from strong to weak.
LEVEL_RIDGES = (1.0, 0.03, 1e-3)
FEATURE_RIDGES = tuple(10.0 ** np.arange(-0.5, -5, -1))
FAMILY_RIDGES = tuple(10.0 ** np.arange(1, -4, -1))
#: Rows at most that weights of levels are learnt from.
LEVEL_ROWS = 2048
#: Classes of a row that families are weighed by: its own, and the likeliest others.
N_RIVALS = 4
#: Numbers at most that one set of weights is learnt from: of more rows, some are drawn.
MOST_NUMBERS = 2**23
#: Shares of rows that a forest may know nothing of.
DOUBTS = 2.0 ** np.arange(-30, -1, 0.5)


@dataclass(frozen=True, eq=False)
class Weighed:
    """What left-out rows have decided.

    Parameters
    ----------
    weights : ndarray of shape (n_members, n_features, n_levels)
        Of every level of every family.
    of_prior : float
        That of the class frequencies.
    doubt : float
        Share of rows whose class is anybody's guess.
    """

    weights: FloatArray
    of_prior: float
    doubt: float


def weigh(views: Views, kind: str, ridge: float | None, say: Callable[[str], None]) -> Weighed:
    """Weigh levels, then features, then families, each set pulled to what the one before has found.

    Parameters
    ----------
    views : Views
        Twins of the forest.
    kind : {"auto", "shared"}
        Whether families are weighed.
    ridge : float or None
        The ridge of features and families; None lets left-out rows choose.
    say : callable
        What is told of progress.

    Returns
    -------
    Weighed
    """
    left_out, data = views.outer, views.outer.data
    n_members, d, n_classes = left_out.n_members, data.n_features, data.n_classes

    def of_levels(view: LeftOut, _: int, own: IntArray) -> Problem:
        scores: AnyArray = np.concatenate([view.level_scores(own), view.base(own)[np.newaxis]])
        return Problem(scores.astype(np.float32), np.zeros(scores.shape[1:]), data.y[own], data.weights[own])

    start = np.full(left_out.n_levels + 1, 0.5)
    start[[0, -1]] = 1.0
    rows = first_rows(views.rows[:LEVEL_ROWS], left_out.n_levels * n_classes)
    whole, parts = views.problems(of_levels, rows)
    levels = fit_weights(whole, parts, start, [start] * len(parts), LEVEL_RIDGES)
    say(_told("levels", levels))
    level_of = [*levels.of_parts, levels.weights]

    def of_features(view: LeftOut, part: int, own: IntArray) -> Problem:
        weight = level_of[part]
        scores: AnyArray = view.feature_scores(own, weight[:-1]).astype(np.float32)
        return Problem(scores, weight[-1] * view.base(own), data.y[own], data.weights[own])

    rows = first_rows(views.rows, d * n_classes)
    whole, parts = views.problems(of_features, rows)
    ridges = FEATURE_RIDGES if ridge is None else (ridge,)
    features = fit_weights(whole, parts, np.ones(d), [np.ones(d)] * len(parts), ridges)
    say(_told("features", features))
    outside = [own for _, own in parts]
    p = [np.exp(log_p[np.arange(len(own.y)), own.y]) for own, log_p in zip(outside, features.log_p, strict=True)]
    judged = np.concatenate(p), np.concatenate([own.sample_weight for own in outside])
    weights: AnyArray = np.tile(features.weights / n_members, n_members)
    if kind != "shared":
        rows = first_rows(rows, n_members * d * min(N_RIVALS, n_classes))
        rivals = _rivals(whole, features.weights, rows, data.n_samples)

        def of_families(view: LeftOut, part: int, own: IntArray) -> Problem:
            weight = level_of[part]
            scores = view.family_scores(own, weight[:-1], rivals[own])
            base = np.take_along_axis(weight[-1] * view.base(own), rivals[own], axis=1)
            return Problem(scores, base, np.zeros(len(own), np.intp), data.weights[own])

        of_families_whole, of_parts = views.problems(of_families, rows)
        ridges = FAMILY_RIDGES if ridge is None else (ridge,)
        starts = [np.tile(own / n_members, n_members) for own in features.of_parts]
        families = fit_weights(of_families_whole, of_parts, weights, starts, ridges)
        say(_told("families", families))
        if np.isfinite(families.ridge):
            weights = families.weights
            judged = _judged(views, rows[:LEVEL_ROWS], level_of, families.of_parts)
    doubt = doubt_of(*judged, n_classes)
    say(f"doubt {doubt:.2g}")
    return Weighed(weights.reshape(n_members, d, 1) * levels.weights[:-1], float(levels.weights[-1]), doubt)


def _rivals(problem: Problem, weights: FloatArray, rows: IntArray, n_samples: int) -> IntArray:
    """Return the class of some rows and those that are likeliest besides; ``rows`` are the first of the problem."""
    log_p, y = problem.log_p(weights)[: len(rows)], problem.y[: len(rows)]
    log_p[np.arange(len(rows)), y] = np.inf
    rivals = np.empty((n_samples, min(N_RIVALS, log_p.shape[1])), np.intp)
    rivals[rows] = np.argsort(-log_p, axis=1, kind="stable")[:, :N_RIVALS]
    return rivals


def _judged(
    views: Views, rows: IntArray, level_of: list[FloatArray], family_of: list[FloatArray]
) -> tuple[FloatArray, AnyArray]:
    """Return the probabilities of the classes of rows, by weights that have not seen them, and the weights of the rows.

    Among rivals alone, a class would seem likelier than it is among all.
    """
    left_out, data, fold = views.outer, views.outer.data, views.fold[rows]
    p = np.empty(len(rows))
    for f, of_families in enumerate(family_of):
        own, of_levels = rows[fold == f], level_of[f if views.inner else -1]
        weights = of_families.reshape(left_out.n_members, data.n_features, 1) * of_levels[:-1]
        scores = softmax(left_out.total_scores(own, weights) + of_levels[-1] * left_out.base(own))
        p[fold == f] = scores[np.arange(len(own)), data.y[own]]
    return p, data.weights[rows]


def _told(what: str, found: Fitted) -> str:
    """Return what was found in words."""
    return f"weights of {what}, ridge {found.ridge:g}: log loss {found.start_loss:.4f} -> {found.log_loss:.4f}"


def doubt_of(p: FloatArray, weights: AnyArray, n_classes: int) -> float:
    """Return the share of rows of which nothing is known: p becomes (1 - doubt) p + doubt / n_classes.

    The likeliest share, given a row of either kind besides: without these, a few hundred rows of which none is doubtful
    would make a forest certain that none ever is, and one that is would cost as much as all others gain.

    Parameters
    ----------
    p : ndarray of shape (n_rows,)
        Probabilities that left-out rows give their classes.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.
    n_classes : int
        Number of classes.

    Returns
    -------
    float
        Between 0 and 1, both excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.forest.weighing import doubt_of
    >>> [round(doubt_of(np.append(np.full(98, 0.9), [worst, worst]), np.ones(100), 2), 3) for worst in (0.5, 1e-9)]
    [0.022, 0.062]
    """
    doubts = DOUBTS[:, np.newaxis]
    own = np.average(np.log((1.0 - doubts) * p + doubts / n_classes), axis=1, weights=weights) * len(p)
    return float(DOUBTS[(own + np.log(DOUBTS * (1.0 - DOUBTS))).argmax()])


def first_rows(rows: IntArray, width: int) -> IntArray:
    """Return as many of the rows as there is room for numbers of each.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), intp
        Row numbers, in random order.
    width : int
        Numbers a row.

    Returns
    -------
    ndarray of shape (n_first,), intp
        At least one.
    """
    return rows[: max(1, MOST_NUMBERS // width)]
