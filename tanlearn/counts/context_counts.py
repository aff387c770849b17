"""Sparse counts of families, stored as tries of the contexts that occur in the rows.

A context of level j is an assignment of values to the first j parents of a feature. With many parents, there are too
many possible contexts to store, but at most n_samples of them occur at each level. The counts of a family are therefore
kept in coordinate format: one entry for each combination of parent values, child value and class that occurs, sorted by
the first parent, then the second, and so on. Sorted entries are a trie: the entries of a context are contiguous at
every level. `ContextCounts.grow` expands it for prediction and for back-off to fewer parents (``models/back_off.py``).

Shapes of a family: values (n_parents + 2, n_entries), uint16, the values of the parents, the child and the class;
counts (n_entries,), all positive. A row without the child has no entry. A missing parent and every parent after it have
the value n_states, so that the row still counts in the contexts of the parents before it.

Invariant: the counts of integer-weighted rows are exact and do not depend on the partition of the rows into batches or
on the order of merging. Reference: Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network
classifiers using hierarchical Dirichlet processes. Machine Learning 107, 2018, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, IntArray, missing_code
from tanlearn.counts.context_tries import CountedContexts
from tanlearn.counts.counts_base import Counts, check_counts, check_differences
from tanlearn.counts.packing import worth_threads
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.kernels import context_counts as kernels
from tanlearn.kernels.counts import count_classes
from tanlearn.structures.structures import read_structure

__all__ = ["ContextCounts", "FamilyColumns", "SortedFamily"]

#: Values and classes have 16 bits. Larger numbers of classes would be counted as other classes.
_MOST_CLASSES = 2**16 - 1


@dataclass(frozen=True, eq=False)
class FamilyColumns:
    """Values of one family, with one column for each row in which the child is present."""

    # (n_parents + 2, n_columns) uint16, values of the parents, the child and the class. A missing parent, and every
    # parent after it, has the value ``n_states``. Rows without the child have no column.
    values: AnyArray
    n_values: IntArray  # (n_parents + 2,) number of values of each parent, the child and the class
    rows: IntArray  # (n_columns,) row of each column

    @classmethod
    def of_rows(
        cls, codes: Codes, y: IntArray, child: int, parents: IntArray, n_states: IntArray, n_classes: int
    ) -> FamilyColumns:
        """Extract the columns from encoded rows. Back-off leaves out the last parent first.

        Shapes: codes: (n_features, n_samples); y: (n_samples,); parents: (n_parents,); n_states: (n_features,).
        """
        if n_classes > _MOST_CLASSES:
            raise ValueError(
                f"CPTs that are smoothed by contexts support at most {_MOST_CLASSES:,} classes, got {n_classes:,}. "
                f"y is probably an identifier or a quantity: drop or merge rare classes, or discretize the quantity."
            )
        values = np.empty((len(parents) + 2, len(y)), np.uint16)
        rows = np.empty(len(y), np.intp)
        n = kernels.family_columns(codes, y, child, parents, n_states, missing_code(codes.dtype), rows, values)
        n_values = np.array([*n_states[parents], n_states[child], n_classes], np.intp)
        return cls(values if n == len(y) else np.ascontiguousarray(values[:, :n]), n_values, rows[:n])

    def sort(self) -> SortedFamily:
        """Sort the columns lexicographically by a stable radix sort."""
        n = self.values.shape[1]
        order, buffer, shared = np.empty(n, np.intp), np.empty(n, np.intp), np.empty(n, np.uint16)
        kernels.sort_columns(self.values, self.n_values, order, buffer, np.empty(self.n_values.max() + 2, np.intp))
        kernels.mark_shared(self.values, order, shared)
        return SortedFamily(self, order, shared)


@dataclass(frozen=True, eq=False)
class SortedFamily:
    """Columns of a family with their sorted order. In this order, each context is contiguous at every level."""

    columns: FamilyColumns  # in the order of the rows
    order: IntArray  # (n_columns,) permutation that sorts by the first parent, then the second, ..., child, class
    shared: AnyArray  # (n_columns,) length of the common prefix of a column with the one before it in the order

    def sum(self, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return the sorted distinct columns and the sum of the weights of each. Sums of 0 are dropped.

        Shapes: weights: (n_columns,); result values: (n_parents + 2, n_entries); result counts: (n_entries,).
        """
        values, counts = np.empty_like(self.columns.values), np.empty(len(self.order), weights.dtype)
        n = kernels.sum_equal(self.columns.values, self.order, self.shared, weights, values, counts)
        kept = np.flatnonzero(counts[:n])
        return np.ascontiguousarray(values[:, kept]), counts[kept]


class ContextCounts(Counts):
    """Sparse counts of all families of a structure.

    A row with missing parents counts in the contexts of the parents before the first missing one.
    """

    def __init__(self, parents: IntArray, n_states: IntArray, n_classes: int) -> None:
        super().__init__(n_states, n_classes)
        self.parents: IntArray = parents  # (n_features, width), -1 for none, absent ones last
        self._class_counts: AnyArray = np.zeros(n_classes, np.int64)
        nothing = np.empty(0, np.int64)
        # The values (n_parents + 2, n_entries) and counts (n_entries,) of each feature, as in the module docstring.
        self.families: list[tuple[AnyArray, AnyArray]] = [
            (np.empty((2 + int((row >= 0).sum()), 0), np.uint16), nothing) for row in parents
        ]

    @property
    def class_counts(self) -> AnyArray:
        """Weight of each class. Shape: (n_classes,)."""
        return self._class_counts

    def family(self, feature: int) -> tuple[IntArray, IntArray]:
        """Return the parents of a feature, and the numbers of values of the parents, the feature and the class.

        Shapes: result parents: (n_parents,); result n_values: (n_parents + 2,).
        """
        given = self.parents[feature][self.parents[feature] >= 0]
        return given, np.array([*self.n_states[given], self.n_states[feature], self.n_classes], np.intp)

    def grow(self, feature: int) -> CountedContexts:
        """Return the trie of the contexts of a feature, grown from its entries."""
        values, counts = self.families[feature]
        k, n_values = len(values) - 2, self.family(feature)[1]
        family = np.array([k]), np.arange(k)[np.newaxis]
        return CountedContexts.grow(values, n_values, values[-1].astype(np.intp), counts, self.n_classes, *family)

    def empty(self) -> ContextCounts:
        """Return empty counts of the same families."""
        return ContextCounts(self.parents, self.n_states, self.n_classes)

    def _count(self, data: EncodedData, dtype: np.dtype[Any], n_jobs: int | None) -> None:
        """Add the counts of a batch."""
        weights = data.weights.astype(dtype, copy=False)

        def count(i: int) -> tuple[AnyArray, AnyArray]:
            given, _ = self.family(i)
            columns = FamilyColumns.of_rows(data.codes, data.y, i, given, self.n_states, self.n_classes)
            return columns.sort().sum(weights[columns.rows])

        batch = self.empty()
        batch._class_counts = np.zeros(self.n_classes, dtype)
        count_classes(data.y, weights, batch._class_counts)
        threads = worth_threads(data.n_samples * self.parents.size * 16, n_jobs)
        batch.families = in_threads(count, range(len(self.parents)), threads)
        self._add(batch, dtype)

    def _add(self, other: ContextCounts, dtype: np.dtype[Any]) -> None:
        """Add other counts."""
        self.families = self._sums(other, dtype, 1)
        self._class_counts = self.class_counts.astype(dtype) + other.class_counts

    def subtract(self, other: ContextCounts) -> ContextCounts:
        """Subtract the counts of a subset of the rows in place and return self, for example the total minus a fold.

        With real weights, counts of at most 1e-9 of the total weight are rounding errors, and are dropped. If the
        families differ or a count would be negative, ValueError is raised and the counts stay unchanged.
        """
        self._check_schema(other._schema())
        dtype = np.result_type(self.class_counts, other.class_counts)
        families, class_counts = self._sums(other, dtype, -1), self.class_counts - other.class_counts
        rounding = check_differences([class_counts, *(own for _, own in families)], float(self.class_counts.sum()))
        self.families = [
            (np.ascontiguousarray(values[:, counts > rounding]), counts[counts > rounding])
            for values, counts in families
        ]
        self._class_counts = np.maximum(class_counts, 0)
        return self

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> ContextCounts:
        """Restore counts from the output of :meth:`state`; raise ValueError for inconsistent values."""
        names = "structure", "class_counts", "n_entries", "values", "counts"
        structure, class_counts, n_entries, values, counts = fields(state, *names)
        structure = read_structure(structure, len(n_states))
        check_array("n_entries", n_entries, np.int64, (len(n_states),))
        if not 0 <= n_entries.min() <= n_entries.max() < 2**40:
            raise ValueError("n_entries must be nonnegative integers.")
        depth = (structure.parents >= 0).sum(axis=1)
        sizes = [n * (k + 2) for n, k in zip(n_entries.tolist(), depth.tolist(), strict=True)]
        check_counts("counts", counts, (sum(n_entries.tolist()),))
        if check_counts("class_counts", class_counts, (n_classes,)).dtype != counts.dtype:
            raise ValueError("counts must have the dtype of class_counts.")
        check_array("values", values, np.uint16, (sum(sizes),))
        restored = cls(structure.parents, n_states, n_classes)
        restored._class_counts = class_counts
        parts = np.split(values, np.cumsum(sizes)[:-1]), np.split(counts, np.cumsum(n_entries)[:-1]), depth.tolist()
        restored.families = [
            (np.ascontiguousarray(own.reshape(-1, k + 2).T), weights) for own, weights, k in zip(*parts, strict=True)
        ]
        for i, (own, weights) in enumerate(restored.families):
            _check_family(i, own, weights, restored.family(i)[1])
        return restored

    def arrays(self) -> dict[str, AnyArray]:
        """Return all counts, as arrays by name; the entries of all families are concatenated."""
        return {
            "class_counts": self.class_counts,
            "n_entries": np.array([len(counts) for _, counts in self.families], np.int64),
            "values": np.concatenate([values.T.ravel() for values, _ in self.families]),
            "counts": np.concatenate([counts for _, counts in self.families]),
        }

    def _sums(self, other: ContextCounts, dtype: Any, sign: int) -> list[tuple[AnyArray, AnyArray]]:
        """Merge the entries of each family with other entries, whose counts are multiplied by ``sign``."""
        found = []
        for i, (one, two) in enumerate(zip(self.families, other.families, strict=True)):
            values = np.concatenate([one[0], two[0]], axis=1)
            counts = np.concatenate([one[1].astype(dtype), sign * two[1].astype(dtype)])
            columns = FamilyColumns(values, self.family(i)[1], np.arange(len(counts)))
            found.append(columns.sort().sum(counts) if len(one[1]) else (two[0], counts))
        return found


def _check_family(i: int, values: AnyArray, counts: AnyArray, n_values: IntArray) -> None:
    """Raise ValueError for entries that are out of range, unsorted or duplicate."""
    largest = n_values[:, np.newaxis] - 1
    largest[:-2] += 1  # code of a missing parent
    absent = values[:-2] == n_values[:-2, np.newaxis]
    if (values > largest).any() or (counts <= 0).any() or (absent[:-1] & ~absent[1:]).any():
        raise ValueError(f"a value or a count of feature {i} is out of range.")
    before, after = values[:, :-1], values[:, 1:]
    place = (before != after).argmax(axis=0)
    columns = np.arange(len(place))
    if (before[place, columns] >= after[place, columns]).any():
        raise ValueError(f"the entries of feature {i} must be sorted and distinct.")
