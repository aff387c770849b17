"""Forests grown again without some folds, for out-of-fold predictions and for validating weights.

Networks grown without the fold of a row give its out-of-fold predictions. Weights fitted to these are validated by
cross-validation. With few rows, it is nested: the weights of a fold are fitted to predictions of networks grown without
this fold and the fold of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from tanlearn._tasks import in_order
from tanlearn._typing import IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.splits import deal_folds
from tanlearn.data.weights import log_frequencies
from tanlearn.forest.left_out import LeftOut
from tanlearn.forest.member import Member
from tanlearn.forest.ridge import Problem

__all__ = ["Grow", "Views", "grow_views"]

#: Largest number of rows for nested cross-validation. On 100 rows of 500 columns of noise, the log loss without nesting
#: was .54 out of fold and .78 on new rows; with nesting it was .70 on new rows.
NESTED_ROWS = 2048
#: Largest number of folds for nested cross-validation, which has n (n + 1) / 2 pairs of folds.
MOST_NESTED = 10
#: Largest number of rows that weights are fitted to; folds without such rows are not left out. On letter, 8,192 rows
#: take two thirds of the time of 16,000 (log loss .1032 against .1019).
MOST_ROWS = 8192

Grow = Callable[[EncodedData, int], Member]
Scores = Callable[[LeftOut, int, IntArray], Problem]


@dataclass(frozen=True, eq=False)
class Views:
    """Out-of-fold predictions of all rows, for fitting and validating weights.

    Weights fitted outside of a fold are validated by the rows of this fold. If there are ``inner`` networks, the
    weights are fitted to predictions of networks that were trained with neither fold. Otherwise they are fitted to
    predictions of ``outer`` networks, most of which were trained with the fold. Then weights seem better than they are,
    all the more with fewer rows.
    """

    outer: LeftOut  # networks without the fold of a row
    inner: list[LeftOut]  # for each fold, networks without it and the fold of a row; or empty
    fold: IntArray  # (n_samples,) fold of each row in validating weights
    rows: IntArray  # (n_rows,) rows with out-of-fold predictions, in random order

    def problems(self, make: Scores, rows: IntArray) -> tuple[Problem, list[tuple[Problem, Problem]]]:
        """Return the problem of all rows, and for each fold the problems of the rows outside and inside of it.

        ``make(left_out, part, rows)`` returns a problem. ``part`` is the fold whose earlier weights are used, -1 for
        those of all rows.
        """
        whole, fold = make(self.outer, -1, rows), self.fold[rows]
        if not self.inner:
            return whole, [(whole.take(fold != f), whole.take(fold == f)) for f in range(int(self.fold.max()) + 1)]
        return whole, [
            (make(view, f, rows[fold != f]), make(self.outer, f, rows[fold == f])) for f, view in enumerate(self.inner)
        ]


def grow_views(
    data: EncodedData,
    seeds: list[int],
    grow: Grow,
    *,
    n_folds: int,
    n_levels: int,
    is_nested: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> Views:
    """Grow the networks of a forest again without folds.

    ``grow(data, seed)`` returns a network. ``n_folds`` is at least 2. With many rows, only the first folds are left
    out. With ``is_nested`` and few rows, networks are also grown without each pair of folds.
    """
    fold = deal_folds(data.y, n_folds, rng)
    order = rng.permutation(data.n_samples)
    n_used = min(n_folds, int(np.ceil(MOST_ROWS * n_folds / data.n_samples)))
    is_nested = is_nested and 2 < n_folds <= MOST_NESTED and data.n_samples <= NESTED_ROWS
    pairs = [(f, g) for f, g in combinations_with_replacement(range(n_used), 2) if is_nested or f == g]
    parts = [data.take((fold != f) & (fold != g)) for f, g in pairs]
    grown = in_order(grow, [(part, (seed,)) for part in parts for seed in seeds], n_jobs)
    log_prior = np.array([log_frequencies(np.bincount(part.y, part.weights, part.n_classes)) for part in parts])

    def view(hidden: list[tuple[int, int]]) -> LeftOut:
        places = [pairs.index((min(pair), max(pair))) for pair in hidden]
        members = [grown[place * len(seeds) : (place + 1) * len(seeds)] for place in places]
        return LeftOut(data, fold, members, log_prior[places], n_levels, n_jobs)

    outer = view([(f, f) for f in range(n_used)])
    if is_nested:
        inner = [view([(f, g) for g in range(n_folds)]) for f in range(n_folds)]
        return Views(outer, inner, fold, order)
    rows = order[fold[order] < n_used][:MOST_ROWS]
    if n_used < n_folds:  # with so many rows, any of them can validate the weights of others
        fold = np.zeros_like(fold)
        fold[rows] = deal_folds(data.y[rows], n_folds, rng)
    return Views(outer, [], fold, rows)
