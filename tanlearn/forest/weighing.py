"""How much levels, features and families count: by what twins of a forest say of rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.forest.left_out import LeftOut
from tanlearn.forest.weights import Fitted, fit_weights

__all__ = ["Weighed", "doubt_of", "first_rows", "weigh"]

#: Pulls on a weight of a feature away from 1, and of a family from its feature's share, from strong to weak.
FEATURE_RIDGES = tuple(10.0 ** np.arange(-0.5, -5, -1))
FAMILY_RIDGES = tuple(10.0 ** np.arange(1, -4, -1))
LEVEL_RIDGE = 1e-3
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


def weigh(left_out: LeftOut, kind: str, rng: np.random.Generator, say: Callable[[str], None]) -> Weighed:
    """Weigh levels, then features, then families, each set pulled to what the one before has found.

    Parameters
    ----------
    left_out : LeftOut
        Twins of the forest.
    kind : {"auto", "shared"}
        Whether families are weighed.
    rng : numpy.random.Generator
        Draws rows, where there are many.
    say : callable
        What is told of progress.

    Returns
    -------
    Weighed
    """
    data, fold, n_members, d = left_out.data, left_out.fold, left_out.n_members, left_out.data.n_features
    order = rng.permutation(data.n_samples)
    rows = first_rows(order, left_out.n_levels * data.n_classes)
    levels = np.concatenate([left_out.level_scores(rows), left_out.base(rows)[np.newaxis]])
    start = np.full(len(levels), 0.5)
    start[[0, -1]] = 1.0
    nothing = np.zeros(levels.shape[1:])
    found = fit_weights(levels, nothing, data.y[rows], data.weights[rows], start, [LEVEL_RIDGE], fold[rows])
    level_weight, of_prior = found.weights[:-1], float(found.weights[-1])
    say(f"weights of levels {found.weights.round(3).tolist()}: log loss {found.log_loss:.4f}")

    rows = first_rows(order, d * data.n_classes)
    base: AnyArray = of_prior * left_out.base(rows)
    scores: AnyArray = left_out.feature_scores(rows, level_weight).astype(np.float32)
    shared = fit_weights(scores, base, data.y[rows], data.weights[rows], np.ones(d), FEATURE_RIDGES, fold[rows])
    say(f"weights of features, ridge {shared.ridge:g}: log loss {shared.log_loss:.4f}")
    weights: AnyArray = np.tile(shared.weights / n_members, n_members)
    losses = shared.losses
    if kind != "shared":
        n_rivals = min(N_RIVALS, data.n_classes)
        rows = first_rows(rows, n_members * d * n_rivals)
        total = np.tensordot(shared.weights, scores[:, : len(rows)], 1) + base[: len(rows)]
        weights, losses = _weigh_families(left_out, rows, base[: len(rows)], total, level_weight, shared, n_rivals, say)
    doubt = doubt_of(np.exp(-losses), data.weights[rows], data.n_classes)
    say(f"doubt {doubt:.2g}")
    return Weighed(weights.reshape(n_members, d, 1) * level_weight, of_prior, doubt)


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


def _weigh_families(
    left_out: LeftOut,
    rows: IntArray,
    base: FloatArray,
    total: FloatArray,
    level_weight: FloatArray,
    shared: Fitted,
    n_rivals: int,
    say: Callable[[str], None],
) -> tuple[FloatArray, FloatArray]:
    """Return weights of families, if left-out rows are better off with them than with those of features, and losses."""
    data, n_members = left_out.data, left_out.n_members
    total[np.arange(len(rows)), data.y[rows]] = np.inf  # its own class is the first
    classes = np.argsort(-total, axis=1, kind="stable")[:, :n_rivals]
    scores: AnyArray = left_out.family_scores(rows, level_weight, classes)
    own = np.zeros(len(rows), np.intp)
    problem = scores, np.take_along_axis(base, classes, axis=1), own, data.weights[rows]
    fold = left_out.fold[rows]
    start, starts = np.tile(shared.weights, n_members), np.tile(shared.of_folds, (1, n_members))
    found = fit_weights(*problem, start / n_members, FAMILY_RIDGES, fold, fold_starts=starts / n_members)
    say(f"weights of families, ridge {found.ridge:g}: log loss {found.start_loss:.4f} -> {found.log_loss:.4f}")
    if found.log_loss < found.start_loss:
        return found.weights, found.losses
    return start / n_members, shared.losses[: len(rows)]
