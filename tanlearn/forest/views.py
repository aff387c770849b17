"""Twins of a forest that have not seen some rows, and those that have seen even less and so can judge weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from tanlearn._tasks import in_order
from tanlearn._typing import IntArray
from tanlearn.data.class_weights import log_frequencies
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.splits import deal_folds
from tanlearn.forest.left_out import LeftOut
from tanlearn.forest.member import Member
from tanlearn.forest.ridge import Problem

__all__ = ["Grow", "Views", "grow_views"]

#: Rows up to which weights are judged by rows that no twin has seen that they are learnt from. On 100 rows of 500
#: columns of noise, the others found a log loss of .54 where new rows have .78 (and .70 with these).
NESTED_ROWS = 2048
#: Folds up to which twins miss pairs of them: there are n (n + 1) / 2 of these.
MOST_NESTED = 10
#: Rows at most that weights are learnt from: folds that none of them is in need no twins. On letter, 8,192 in place of
#: 16,000 take two thirds of the time (log loss .1032 against .1019).
MOST_ROWS = 8192

Grow = Callable[[EncodedData, int], Member]
Scores = Callable[[LeftOut, int, IntArray], Problem]


@dataclass(frozen=True, eq=False)
class Views:
    """What is known of rows by twins that have not seen them, and by those that have seen even less.

    Weights that rows outside of a fold find are judged by the rows of the fold. Where there are ``inner`` twins, they
    are found from what these say, which have seen neither. Otherwise they are found from what ``outer`` twins say, of
    which all but those without the fold have seen it: weights seem better than they are, the more so the fewer rows.
    """

    outer: LeftOut  # Twins without the fold of a row
    inner: list[LeftOut]  # Of every fold, twins without it and the fold of a row; or none
    fold: IntArray  # (n_samples,): The fold of every row
    rows: IntArray  # (n_rows,): Those that twins have not seen, in random order

    def problems(self, make: Scores, rows: IntArray) -> tuple[Problem, list[tuple[Problem, Problem]]]:
        """Return the problem of all rows, and of every fold those of the rows outside and inside of it.

        Shapes: rows: (n_rows,).
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
    """Grow the members of a forest again without folds."""
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
    if n_used < n_folds:  # so many rows that any of them can judge what others find
        fold = np.zeros_like(fold)
        fold[rows] = deal_folds(data.y[rows], n_folds, rng)
    return Views(outer, [], fold, rows)
