"""Counts of a forest over rows in batches, in contexts fixed by the first rows.

The discretization, the parents, the contexts and the weights of each network are fixed by the first rows. Counts of
later rows in these contexts can be added, merged and subtracted, so each batch is read once, and several processes can
count different batches. `ForestCounts.smooth` turns the counts into a `Forest`.

Shapes: the counts of a network are sparse, in coordinate format: ``keys`` (n_cells,) encodes (context, value, class) in
mixed radix, ascending, and ``counts`` (n_cells,) contains their weights.

Invariant: counts of integer-weighted rows are exact and do not depend on the partition of the rows into batches or on
the order of merging. The tries are those of ``forest/contexts.py`` (reference there). Which values and classes a
context has seen is not fixed, but recomputed from the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.data.class_weights import log_frequencies
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.value_counts import sum_equal
from tanlearn.forest.contexts import ContextTables
from tanlearn.forest.drawing import Cuts
from tanlearn.forest.forest import Forest
from tanlearn.forest.member import Member
from tanlearn.kernels.context_tries import list_cells
from tanlearn.kernels.counts import count_classes
from tanlearn.network.counts import type_with_room

__all__ = ["ContextCells", "ForestCounts"]


@dataclass(frozen=True, eq=False)
class ContextCells:
    """Sparse counts of one network by context, value of the child and class."""

    tables: ContextTables  # contexts; their seen values, seen classes and gains are not used
    n_classes: int
    keys: IntArray  # (n_cells,) int64, (context * most values + value) * n_classes + class, ascending
    counts: AnyArray  # (n_cells,) weights, int64 or float64

    def count(self, codes: Codes, y: IntArray, weights: AnyArray) -> ContextCells:
        """Return the counts of rows in the same contexts; the weights must be positive.

        Shapes: codes: (n_features, n_samples), discretized by the network; y, weights: (n_samples,).
        """
        tables, own = self.tables, self.tables.contexts
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

    def smooth(self, smoothing: float) -> ContextTables:
        """Return the smoothed tries of the counts; ``smoothing`` is m of all levels, positive."""
        n_contexts, n_classes = len(self.tables.contexts.branch), self.n_classes
        n_states, root, most = self.tables.n_states, self.tables.root, int(self.tables.n_states.max())
        pairs, of_class = np.divmod(self.keys, n_classes)
        context = pairs // most
        all_classes = (root[:, np.newaxis] * n_classes + np.arange(n_classes)).ravel()
        all_values = np.concatenate([g * most + np.arange(n) for g, n in zip(root, n_states, strict=True)])
        classes = np.unique(np.append(all_classes, context * n_classes + of_class))
        values = np.unique(np.append(all_values, pairs))
        numbers = np.arange(n_contexts + 1)
        class_start, value_start = (
            np.searchsorted(classes, numbers * n_classes),
            np.searchsorted(values, numbers * most),
        )
        width = np.diff(class_start)
        cell_start = np.append(0, np.cumsum(width * np.diff(value_start)))
        row, column = np.searchsorted(values, pairs), np.searchsorted(classes, context * n_classes + of_class)
        cells = np.zeros(cell_start[-1])
        places = (row - value_start[context]) * width[context] + column - class_start[context]
        cells[cell_start[context] + places] = self.counts
        contexts = self.tables.contexts._replace(
            class_start=class_start,
            classes=(classes % n_classes).astype(np.uint16),
            value_start=value_start,
            values=(values % most).astype(np.uint16),
            cell_start=cell_start,
        )
        return replace(self.tables, contexts=contexts).with_counts(cells, smoothing)


@dataclass(eq=False)
class ForestCounts:
    """Counts of all networks of a forest whose probabilities are averaged.

    Counts of unweighted or integer-weighted rows are 64-bit integers and equal to the last bit for any partition of the
    rows and any order of merging.
    """

    forest: Forest  # forest of the first rows
    class_counts: AnyArray  # (n_classes,) weight of each class
    members: list[ContextCells]  # counts of each network

    @classmethod
    def of_forest(cls, forest: Forest) -> ForestCounts:
        """Create empty counts in the contexts of an averaged forest."""
        nothing, n_classes = np.empty(0, np.int64), len(forest.log_prior)
        members = [ContextCells(member.tables, n_classes, nothing, nothing) for member in forest.members]
        return cls(forest, np.zeros(n_classes, np.int64), members)

    @property
    def n_states(self) -> IntArray:
        """Number of values of each feature of the data, shape (n_features,)."""
        return np.diff(self.forest.members[0].cuts.start) - 1

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_counts)

    @property
    def most_values(self) -> int:
        """Largest number of values of a feature in any network."""
        return max(int(member.cuts.n_states.max()) for member in self.forest.members)

    def empty(self) -> ForestCounts:
        """Return empty counts in the same contexts, for counting elsewhere."""
        return self.of_forest(self.forest)

    def update(self, data: EncodedData, *, n_jobs: int | None = None) -> ForestCounts:
        """Add the counts of rows in place and return self; rows of weight 0 do not count.

        If the features or classes differ, or the sum of integer weights would overflow, it raises ValueError and
        changes nothing. The result does not depend on ``n_jobs``.
        """
        if not np.array_equal(self.n_states, data.n_states) or self.n_classes != data.n_classes:
            raise ValueError(
                f"counts add up only over the same features and classes: these have {self.n_classes} classes and "
                f"n_states {self.n_states.tolist()}, the batch has {data.n_classes} classes and n_states "
                f"{data.n_states.tolist()}."
            )
        data = data.take(data.weights > 0)
        weights = data.weights.astype(type_with_room(self.class_counts, data.weights))

        def count(cells: tuple[Cuts, ContextCells]) -> ContextCells:
            own, batch = cells
            return batch.count(own.encode(data.codes), data.y, weights)

        empty, class_counts = self.empty(), np.zeros(data.n_classes, weights.dtype)
        count_classes(data.y, weights, class_counts)
        pairs = zip((member.cuts for member in self.forest.members), empty.members, strict=True)
        return self.merge(replace(empty, class_counts=class_counts, members=in_threads(count, pairs, n_jobs)))

    def merge(self, other: ForestCounts) -> ForestCounts:
        """Add the counts of other rows in place and return self.

        If the contexts differ, or the sum of integer weights would overflow, it raises ValueError and changes nothing.
        """
        self._check_same(other)
        type_with_room(self.class_counts, other.class_counts)
        self.members = [one.merge(two) for one, two in zip(self.members, other.members, strict=True)]
        self.class_counts = self.class_counts + other.class_counts
        return self

    def subtract(self, other: ForestCounts) -> ForestCounts:
        """Subtract the counts of a subset of the rows in place and return self.

        With real weights, counts up to 1e-9 of the total weight are rounding errors and dropped. If the contexts
        differ, or a count would be negative, it raises ValueError and changes nothing.
        """
        self._check_same(other)
        class_counts = self.class_counts - other.class_counts
        members = [one.merge(two, -1) for one, two in zip(self.members, other.members, strict=True)]
        rounding = 1e-9 * float(self.class_counts.sum()) if class_counts.dtype.kind == "f" else 0.0
        if min(float(own.min(initial=0)) for own in (class_counts, *(cells.counts for cells in members))) < -rounding:
            raise ValueError("subtract would leave negative counts: the others contain rows that these do not.")
        kept = [cells.counts > rounding for cells in members]
        self.members = [
            replace(cells, keys=cells.keys[own], counts=cells.counts[own])
            for cells, own in zip(members, kept, strict=True)
        ]
        self.class_counts = np.maximum(class_counts, 0)
        return self

    def smooth(self, smoothing: float, *, n_jobs: int | None = None) -> Forest:
        """Return the forest of these counts; ``smoothing`` is m of all levels, positive."""
        tables = in_threads(lambda cells: cells.smooth(smoothing), self.members, n_jobs)
        members = [Member(member.cuts, own) for member, own in zip(self.forest.members, tables, strict=True)]
        log_prior = log_frequencies(self.class_counts)
        return replace(self.forest, members=members, log_prior=log_prior, log_frequency=log_prior)

    def _check_same(self, other: ForestCounts) -> None:
        """Raise ValueError if the contexts differ."""
        one, two = self.forest.members, other.forest.members
        is_same = len(one) == len(two) and len(self.class_counts) == len(other.class_counts)
        if not is_same or not all(_is_same(*pair) for pair in zip(one, two, strict=True)):
            raise ValueError(
                "counts add up only in the same contexts: fit one classifier to the first rows, and pass empty() of "
                "its counts_ to every process that counts."
            )

    def __deepcopy__(self, memo: dict[int, object]) -> ForestCounts:
        return replace(self)  # arrays are replaced, never modified in place

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ForestCounts) or not np.array_equal(self.class_counts, other.class_counts):
            return False
        try:
            self._check_same(other)
        except ValueError:
            return False
        return all(
            np.array_equal(one.keys, two.keys) and np.array_equal(one.counts, two.counts)
            for one, two in zip(self.members, other.members, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        n_cells = sum(len(cells.counts) for cells in self.members)
        return f"ForestCounts(n_members={len(self.members)}, n_classes={len(self.class_counts)}, n_cells={n_cells})"


def _is_same(one: Member, two: Member) -> bool:
    """Return whether two networks have the same discretization and contexts."""
    if one is two:
        return True
    pairs = (
        (one.cuts.merged, two.cuts.merged),
        (one.tables.parents, two.tables.parents),
        (one.tables.root, two.tables.root),
        (one.tables.contexts.children, two.tables.contexts.children),
        (one.tables.contexts.branch, two.tables.contexts.branch),
    )
    return all(np.array_equal(a, b) for a, b in pairs)
