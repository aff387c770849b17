"""Counts of a forest over batches of rows. The first rows determine the contexts.

The first rows determine the discretization, the parents, the contexts and the weights of each network. Counts of later
rows in these contexts can be added, merged and subtracted. Each batch is therefore read once, and several processes can
count different batches. `ForestCounts.smooth` turns the counts into a `Forest`.

Shapes: the counts of a network are sparse, in coordinate format: ``keys`` (n_cells,) encodes (context, value, class) in
mixed radix, ascending, and ``counts`` (n_cells,) contains their weights.

Invariant: counts of integer-weighted rows are exact and do not depend on the partition of the rows into batches or on
the order of merging. ``forest/context_tables.py`` describes the tries. The values and classes that occur in a context
are recomputed from the keys.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.counts.context_tries import CountedContexts, as_index
from tanlearn.counts.counts_base import Counts, check_counts, check_differences
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.encoding.value_counts import sum_equal
from tanlearn.encoding.weights import log_frequencies
from tanlearn.forest.context_tables import ContextTables
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_network import Discretization, ForestNetwork
from tanlearn.kernels.context_scores import list_cells
from tanlearn.kernels.counts import count_classes

__all__ = ["ContextCells", "ForestCounts"]


@dataclass(frozen=True, eq=False)
class ContextCells:
    """Sparse counts of one network by context, value of the child and class."""

    tables: ContextTables  # contexts; their values, classes and gains are not used
    n_classes: int
    keys: IntArray  # (n_cells,) int64, (context * most values + value) * n_classes + class, ascending
    counts: AnyArray  # (n_cells,) weights, int64 or float64

    def count(self, codes: Codes, y: IntArray, weights: AnyArray) -> ContextCells:
        """Return the counts of rows in the same contexts; the weights must be positive.

        Shapes: codes: (n_features, n_samples), discretized by the network; y, weights: (n_samples,).
        """
        tables, own = self.tables, self.tables.trie
        most = len(y) * tables.n_levels
        keys, amounts = np.empty(most, np.int64), np.empty(most, weights.dtype)
        stop = np.append(tables.root[1:], len(own.branch)).tolist()
        found = []
        for child, root in enumerate(tables.root.tolist()):
            family = tables.parents[child], root, stop[child], own.children, own.branch
            sizes = int(tables.n_states.max()), self.n_classes
            n = list_cells(codes, tables.n_states[child], y, weights, child, *family, *sizes, keys, amounts)
            found.append(sum_equal(keys[:n], amounts[:n]))
        all_keys, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))  # families are ascending
        return replace(self, keys=all_keys, counts=counts)

    def merge(self, other: ContextCells, sign: int = 1) -> ContextCells:
        """Return the sum of two counts in the same contexts, or the difference if ``sign`` is -1."""
        counts = np.concatenate([self.counts, sign * other.counts])
        keys, counts = sum_equal(np.concatenate([self.keys, other.keys]), counts)
        kept = counts != 0
        return replace(self, keys=keys[kept], counts=counts[kept])

    def are_known(self) -> bool:
        """Return whether the keys ascend and refer to contexts and values of the network."""
        context, value = np.divmod(self.keys // self.n_classes, int(self.tables.n_states.max()))
        child = np.searchsorted(self.tables.root, context, side="right") - 1
        n_keys = len(self.tables.trie.branch) * int(self.tables.n_states.max()) * self.n_classes
        is_key = (self.keys >= 0) & (self.keys < n_keys) & (value < self.tables.n_states[child])
        return bool(is_key.all() and (self.keys[1:] > self.keys[:-1]).all())

    def lacking_above(self) -> IntArray:
        """Return the keys whose value and class have no count in the context above, which contains the same rows."""
        width = int(self.tables.n_states.max()) * self.n_classes
        context, pair = np.divmod(self.keys, width)
        above = np.searchsorted(self.tables.trie.children, context, side="right") - 1
        is_nested = np.isin(context, self.tables.root) | np.isin(above * width + pair, self.keys)
        return self.keys[~is_nested]

    def smooth(self, smoothing: float) -> ContextTables:
        """Return the smoothed tries of the counts; ``smoothing`` is the positive m of all levels."""
        trie, root, n_classes = self.tables.trie, self.tables.root, self.n_classes
        n_states, most = self.tables.n_states, int(self.tables.n_states.max())
        pairs, of_class = np.divmod(self.keys, n_classes)
        context = pairs // most
        all_classes = (root[:, np.newaxis] * n_classes + np.arange(n_classes)).ravel()
        all_values = np.concatenate([g * most + np.arange(n) for g, n in zip(root, n_states, strict=True)])
        classes = np.unique(np.append(all_classes, context * n_classes + of_class))
        values = np.unique(np.append(all_values, pairs))
        numbers = np.arange(len(trie.branch) + 1)
        class_start = np.searchsorted(classes, numbers * n_classes)
        value_start = np.searchsorted(values, numbers * most)
        width = np.diff(class_start)[values // most]  # entries of each value
        entry_start = np.append(0, np.cumsum(width))
        row, column = np.searchsorted(values, pairs), np.searchsorted(classes, context * n_classes + of_class)
        counts = np.zeros(entry_start[-1])
        counts[entry_start[row] + column - class_start[context]] = self.counts
        # A value has the same classes as its context.
        position = np.arange(len(counts)) + np.repeat(class_start[values // most] - entry_start[:-1], width)
        classes = (classes % n_classes).astype(np.uint16)
        trie = trie._replace(
            class_start=as_index(class_start),
            classes=classes,
            value_start=as_index(value_start),
            values=(values % most).astype(np.uint16),
            entry_start=as_index(entry_start),
            entry_class=classes[position],
        )
        return ContextTables.smooth(n_states, self.tables.parents, CountedContexts(root, trie, counts), smoothing)


class ForestCounts(Counts):
    """Counts of all networks of a forest that averages probabilities, in the contexts of this forest.

    Rows of weight 0 are not counted.
    """

    kind = "ForestCounts"

    def __init__(self, forest: Forest) -> None:
        super().__init__(np.diff(forest.members[0].cuts.start) - 1, len(forest.log_prior))
        self.forest = forest  # forest of the first rows
        self._class_counts: AnyArray = np.zeros(self.n_classes, np.int64)
        nothing = np.empty(0, np.int64)
        #: Counts of each network.
        self.members = [ContextCells(member.tables, self.n_classes, nothing, nothing) for member in forest.members]

    @property
    def class_counts(self) -> AnyArray:
        """Weight of each class. Shape: (n_classes,)."""
        return self._class_counts

    @property
    def most_values(self) -> int:
        """Largest number of values of a feature in any network."""
        return max(int(member.cuts.n_states.max()) for member in self.forest.members)

    def empty(self) -> ForestCounts:
        """Return empty counts in the same contexts, for counting in another process."""
        return ForestCounts(self.forest)

    def arrays(self) -> dict[str, AnyArray]:
        """Return all counts as arrays by name, concatenated over networks."""
        return {
            "class_counts": self.class_counts,
            "n_cells": np.array([len(cells.keys) for cells in self.members], np.int64),
            "keys": np.concatenate([cells.keys for cells in self.members]),
            "counts": np.concatenate([cells.counts for cells in self.members]),
        }

    def describe(self) -> str:
        """Name the type of the counts."""
        return f"counts in {type(self).__name__}"

    def state(self) -> dict[str, Any]:
        """Return ``forest`` and the counts for a file."""
        return {"forest": self.forest.to_state(), **self.arrays()}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> ForestCounts:
        """Restore counts from the output of :meth:`state`; raise ValueError for inconsistent values."""
        forest, class_counts, n_cells, keys, amounts = fields(
            state, "forest", "class_counts", "n_cells", "keys", "counts"
        )
        counts = cls(Forest.from_state(forest, n_states, n_classes))
        counts._class_counts = check_counts("class_counts", class_counts, (n_classes,))
        sizes = check_array("n_cells", n_cells, np.int64, (len(counts.members),))
        if not 0 <= sizes.min() <= sizes.max() < 2**40:
            raise ValueError("n_cells must be nonnegative integers.")
        total = sum(sizes.tolist())
        check_array("keys", keys, np.int64, (total,))
        check_counts("counts", amounts, (total,))
        if amounts.dtype != class_counts.dtype or not (amounts > 0).all():
            raise ValueError("counts must be positive, and must have the dtype of class_counts.")
        parts = (np.split(array, np.cumsum(sizes)[:-1]) for array in (keys, amounts))
        counts.members = [
            replace(cells, keys=own, counts=values) for cells, own, values in zip(counts.members, *parts, strict=True)
        ]
        if not all(cells.are_known() for cells in counts.members):
            raise ValueError(
                "keys must be in ascending order, and refer to contexts and values of the forest. Count the rows again."
            )
        for number, cells in enumerate(counts.members):
            lacking = cells.lacking_above()
            if lacking.size:
                raise ValueError(
                    f"each value and class of a context must also be counted in the context with one fewer parent, "
                    f"but key {lacking[0]} of network {number} is not. Count the rows again."
                )
        return counts

    def _count(self, data: EncodedData, dtype: np.dtype[Any], n_jobs: int | None) -> None:
        """Add the counts of a batch."""
        data = data.take(data.weights > 0)
        weights = data.weights.astype(dtype)

        def count(cells: tuple[Discretization, ContextCells]) -> ContextCells:
            own, batch = cells
            return batch.count(own.encode(data.codes), data.y, weights)

        batch = self.empty()
        batch._class_counts = np.zeros(self.n_classes, dtype)
        count_classes(data.y, weights, batch._class_counts)
        pairs = zip((member.cuts for member in self.forest.members), batch.members, strict=True)
        batch.members = in_threads(count, pairs, n_jobs)
        self._add(batch, dtype)

    def _add(self, other: ForestCounts, dtype: np.dtype[Any]) -> None:
        """Add other counts."""
        self.members = [one.merge(two) for one, two in zip(self.members, other.members, strict=True)]
        self._class_counts = self.class_counts.astype(dtype) + other.class_counts

    def subtract(self, other: ForestCounts) -> ForestCounts:
        """Subtract the counts of a subset of the rows in place and return self.

        With real weights, counts of at most 1e-9 of the total weight are rounding errors, and are dropped. If the
        contexts differ or a count would be negative, ValueError is raised and the counts stay unchanged.
        """
        self._check_schema(other._schema())
        class_counts = self.class_counts - other.class_counts
        members = [one.merge(two, -1) for one, two in zip(self.members, other.members, strict=True)]
        counts = [class_counts, *(cells.counts for cells in members)]
        rounding = check_differences(counts, float(self.class_counts.sum()))
        kept = [cells.counts > rounding for cells in members]
        self.members = [
            replace(cells, keys=cells.keys[own], counts=cells.counts[own])
            for cells, own in zip(members, kept, strict=True)
        ]
        self._class_counts = np.maximum(class_counts, 0)
        return self

    def smooth(self, smoothing: float, *, n_jobs: int | None = None) -> Forest:
        """Return the forest that is smoothed from the counts; ``smoothing`` is the positive m of all levels."""
        tables = in_threads(lambda cells: cells.smooth(smoothing), self.members, n_jobs)
        members = [ForestNetwork(member.cuts, own) for member, own in zip(self.forest.members, tables, strict=True)]
        log_prior = log_frequencies(self.class_counts)
        return replace(self.forest, members=members, log_prior=log_prior, log_frequency=log_prior)

    def _schema(self) -> dict[str, Any]:
        """Return the discretization and contexts of a network, which must be equal if counts are added."""
        schema = {**super()._schema(), "n_networks": len(self.members)}
        for number, member in enumerate(self.forest.members):
            tables = member.tables
            values = {
                "merged": member.cuts.merged,
                "parents": tables.parents,
                "root": tables.root,
                "children": tables.trie.children,
                "branch": tables.trie.branch,
            }
            schema |= {f"{name} of network {number}": array for name, array in values.items()}
        return schema

    def __deepcopy__(self, memo: dict[int, object]) -> ForestCounts:
        return copy(self)  # arrays are replaced, never modified in place
