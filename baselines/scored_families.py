"""Scores of families from counts of the rows, computed once per family.

Counts of families with one augmenting parent come from the counts of all pairs of features, which are shared by both
directions of an edge. Larger families of a child are counted together, many in one call. A family with more CPT entries
than rows is counted sparsely, so memory never depends on the product of the numbers of values.

A row in which a parent is missing is scored without the augmenting parents of that family. With R the rows in which all
values of the family are present and f the score of a family over some rows, the score is

    f(child; all rows) - f(child; R) + f(child | parents; R).

So a parent with missing values gains nothing from the rows in which it is missing. Rows in which the child is missing
do not count.

Scores are rounded to multiples of N 2^-36 nats, for N rows rounded up to a power of two. Their sums are exact in any
order, so a sum of thousands of changes equals the score of the final network, and networks with equal scores tie.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.encoding.encoded_data import EncodedData, recoded
from tanlearn.structures.structures import padded_parents
from tanlearn.structures.table_layout import TableLayout

from .family_scores import FamilyScore

__all__ = ["FamilyScorer", "with_class_as_feature"]

#: Resolution of scores, in nats per row: 1.5e-11. Rounding errors are below 1e-14 nats per row.
_RESOLUTION = 2.0**-36
#: Pair counts of more cells than this are not held at once: 0.5 GiB.
_MAX_PAIR_CELLS = 2**26
#: Families are counted in blocks of this many cells: 32 MiB.
_BLOCK = 2**22
#: A family with more cells per row is counted sparsely: sorting a row takes 80 ns, a dense cell 1 ns.
_CELLS_A_ROW = 16
#: Largest product of numbers of values that is used as a key; 2^62 leaves room for one more factor of 2.
_MAX_KEY = 2.0**62


class FamilyScorer:
    """Scores of families of a child and its augmenting parents; the class is a parent of every feature."""

    def __init__(self, data: EncodedData, score: FamilyScore, *, n_jobs: int | None = None) -> None:
        self.data = data.present()
        self.n_evaluations = 0  # number of families that were scored
        self._score, self._n_jobs = score, n_jobs
        self._weights = self.data.weights
        self._weight = float(self._weights.sum())
        self._unit = _RESOLUTION * 2.0 ** math.frexp(self._weight)[1]
        self._penalty = score.penalty(self._weight)
        self._missing = missing_code(self.data.codes.dtype)
        self._is_incomplete = (self.data.codes == self._missing).any(axis=1)
        self._scores: dict[tuple[int, tuple[int, ...]], float] = {}
        of_class = np.zeros((self.data.n_classes, 1), self._weights.dtype)
        np.add.at(of_class[:, 0], self.data.y, self._weights)
        self.class_score = self._value(of_class.ravel(), of_class.sum(axis=0), self.data.n_classes, 1.0)
        layout = TableLayout.of_features(self.data.n_states, self.data.n_classes)
        cells = layout.count(self.data.codes, self.data.y, self._weights)
        for i in range(self.data.n_features):
            table = cells[layout.offset[i] : layout.offset[i + 1]].reshape(-1, self.data.n_classes)
            self._keep(i, (), self._without_parents(table))

    def __call__(self, child: int, parents: Sequence[Sequence[int]]) -> FloatArray:
        """Return the score of a child with each of several sets of augmenting parents. Shape: (n_sets,)."""
        keys = [(child, tuple(sorted(given))) for given in parents]
        self._add(child, list(dict.fromkeys(key[1] for key in keys if key not in self._scores)))
        return np.array([self._scores[key] for key in keys])

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """Return the score of a network, given the augmenting parents of each feature."""
        return self.class_score + sum(float(self(i, [given])[0]) for i, given in enumerate(parents))

    def add_pairs(self) -> None:
        """Score all families with one augmenting parent, from the counts of pairs if they fit in memory."""
        states, n_classes = self.data.n_states.astype(float), self.data.n_classes
        if (states.sum() ** 2 - (states**2).sum()) / 2 * n_classes > _MAX_PAIR_CELLS:
            return  # the searches then count the families of each child
        pairs = PairCounts.of_features(self.data).update(self.data, n_jobs=self._n_jobs)
        of_contexts: dict[tuple[int, int], float] = {}  # by parent and number of values of the child, of complete rows
        for i in range(self.data.n_features):
            for j in range(i):
                table = pairs.pair(i, j)
                if self._is_incomplete[[i, j]].any():
                    self._keep(i, (j,), self._given_parents(i, (j,), table.ravel()))
                    self._keep(j, (i,), self._given_parents(j, (i,), table.swapaxes(0, 1).ravel()))
                    continue
                of_cells = self._of_cells(table.ravel(), float(table.size))  # the same for both directions
                for child, parent in ((i, j), (j, i)):
                    n_values, counts = int(self.data.n_states[child]), pairs.feature(parent)
                    if (parent, n_values) not in of_contexts:
                        of_contexts[parent, n_values] = self._of_contexts(counts.ravel(), float(counts.size), n_values)
                    self._keep(child, (parent,), of_cells - of_contexts[parent, n_values])

    def _add(self, child: int, parents: list[tuple[int, ...]]) -> None:
        """Count and score families of a child that have no score yet."""
        if not parents:
            return
        n_cells = np.array([self._n_contexts(given) for given in parents]) * self.data.n_states[child]
        is_sparse = n_cells > max(_BLOCK / 64, _CELLS_A_ROW * self.data.n_samples)
        tasks = [[parents[t]] for t in np.flatnonzero(is_sparse)]
        dense = np.flatnonzero(~is_sparse)
        if len(dense):
            block = np.cumsum(n_cells[dense]) // _BLOCK
            tasks += [[parents[t] for t in dense[block == b]] for b in np.unique(block)]
        n_sparse = int(is_sparse.sum())

        def score(number: int) -> list[float]:
            if number < n_sparse:
                return [self._count_sparsely(child, tasks[number][0])]
            return self._count(child, tasks[number])

        for given, values in zip(tasks, in_threads(score, range(len(tasks)), self._n_jobs), strict=True):
            for own, value in zip(given, values, strict=True):
                self._keep(child, own, value)

    def _count(self, child: int, parents: list[tuple[int, ...]]) -> list[float]:
        """Count families of a child densely, in one call, and return their scores."""
        data = self.data
        layout = TableLayout(np.full(len(parents), child), padded_parents(parents), data.n_states, data.n_classes)
        cells = layout.count(data.codes, data.y, self._weights)
        return [
            self._given_parents(child, given, cells[first:last])
            for given, (first, last) in zip(parents, itertools.pairwise(layout.offset.tolist()), strict=True)
        ]

    def _given_parents(self, child: int, parents: tuple[int, ...], counts: AnyArray) -> float:
        """Return the score of a family from its counts, flat (values, values of each parent, classes)."""
        n_values = int(self.data.n_states[child])
        contexts = counts.reshape(n_values, -1).sum(axis=0)
        value = self._value(counts, contexts, n_values, float(len(contexts)))
        if self._is_incomplete[list(parents)].any():
            of_child = counts.reshape(n_values, -1, self.data.n_classes).sum(axis=1)
            value += self._scores[child, ()] - self._without_parents(of_child)
        return value

    def _without_parents(self, table: AnyArray) -> float:
        """Return the score of a feature given the class only, from its counts (values, classes)."""
        return self._value(table.ravel(), table.sum(axis=0), len(table), float(table.shape[1]))

    def _count_sparsely(self, child: int, parents: tuple[int, ...]) -> float:
        """Count the contexts and cells that occur in the rows, and return the score."""
        data = self.data
        is_present = (data.codes[[child, *parents]] != self._missing).all(axis=0)
        y, weights = data.y[is_present], self._weights[is_present]
        context, size = y, float(data.n_classes)
        for j in parents:
            if size * float(data.n_states[j]) > _MAX_KEY:
                seen, context = np.unique(context, return_inverse=True)
                size = float(len(seen))
            context = context * data.n_states[j] + data.codes[j][is_present]
            size *= float(data.n_states[j])
        x, n_values = data.codes[child][is_present].astype(np.intp), int(data.n_states[child])
        contexts, context = _sum_by_key(context, weights)
        cells, _ = _sum_by_key(context * n_values + x, weights)
        value = self._value(cells, contexts, n_values, self._n_contexts(parents))
        if self._is_incomplete[list(parents)].any():
            table = np.zeros((n_values, data.n_classes), weights.dtype)
            np.add.at(table, (x, y), weights)
            value += self._scores[child, ()] - self._without_parents(table)
        return value

    def _n_contexts(self, parents: Sequence[int]) -> float:
        """Return the number of contexts of a family, with the class."""
        return math.prod(self.data.n_states[list(parents)].tolist(), start=float(self.data.n_classes))

    def _value(self, cells: AnyArray, contexts: AnyArray, n_values: int, n_contexts: float) -> float:
        """Return the score of a family from the counts of its cells and of its contexts."""
        return self._of_cells(cells, n_values * n_contexts) - self._of_contexts(contexts, n_contexts, n_values)

    def _of_cells(self, counts: AnyArray, n_cells: float) -> float:
        """Return the part of the score of a family that depends on its cells, the same for each child of the family.

        It contains the penalty for r q parameters. The part that depends on the contexts contains the penalty for q
        parameters, and is subtracted.
        """
        distinct, times = _distinct(counts)
        terms = (self._score.of_cells(distinct, n_cells) * times).sum()
        return self._rounded(float(terms) - self._penalty * n_cells)

    def _of_contexts(self, counts: AnyArray, n_contexts: float, n_values: int) -> float:
        """Return the part of the score of a family that depends on its contexts, which is subtracted."""
        distinct, times = _distinct(counts)
        terms = (self._score.of_contexts(distinct, n_contexts, n_values) * times).sum()
        return self._rounded(float(terms) - self._penalty * n_contexts)

    def _rounded(self, value: float) -> float:
        """Round a score to the resolution of all scores."""
        return round(value / self._unit) * self._unit

    def _keep(self, child: int, parents: tuple[int, ...], value: float) -> None:
        """Store the score of a family."""
        self._scores[child, parents] = value
        self.n_evaluations += 1


def with_class_as_feature(data: EncodedData) -> EncodedData:
    """Return the data with the class as last feature and a constant class, for searches over features and class."""
    n_states = np.append(data.n_states, data.n_classes)
    dtype = codes_dtype(int(n_states.max()))
    return replace(
        data,
        codes=np.concatenate([recoded(data.codes, dtype), data.y[np.newaxis].astype(dtype)]),
        y=np.zeros(data.n_samples, np.intp),
        n_states=n_states,
        n_classes=1,
        places=None if data.places is None else (*data.places, "the class"),
        names=None,
        is_ordered=None,
        raw=None,
    )


def _distinct(counts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return counts above 0 and how often each occurs: few numbers, on which logarithms are fast.

    Integer counts are in ascending order, so that their sum does not depend on the order of the cells.
    """
    if counts.dtype.kind == "f":
        above = counts[counts > 0]
        return above, np.ones(len(above))
    if counts.max(initial=0) > 4 * len(counts) + 1024:
        above = np.sort(counts[counts > 0])
        return above, np.ones(len(above), np.intp)
    times = np.bincount(counts)
    times[:1] = 0
    (distinct,) = times.nonzero()
    return distinct, times[distinct]


def _sum_by_key(keys: IntArray, weights: AnyArray) -> tuple[AnyArray, IntArray]:
    """Return the weight of each distinct key, in ascending order, and the position of the key of each row."""
    distinct, position = np.unique(keys, return_inverse=True)
    total = np.zeros(len(distinct), weights.dtype)
    np.add.at(total, position, weights)
    return total, position
