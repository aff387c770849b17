"""Counts of all cells of a structure's tables, chunk by chunk: what is small where families are."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.counts import type_with_room
from tanlearn.network.tables import TableLayout

__all__ = ["FamilyCounts"]


class FamilyCounts:
    """Counts of the tables of one structure, chunk by chunk.

    Counts of unweighted or integer-weighted rows are 64-bit integers: whatever the partition of the rows and the order
    of merging, they are the same to the last bit.
    """

    def __init__(self, layout: TableLayout) -> None:
        layout.check_memory(None)
        self.layout = layout  # Where the tables lie
        # (n_cells,): Weighted counts, int64, or float64 once a chunk had real weights
        self.cells: AnyArray = np.zeros(layout.n_cells, np.int64)

    @property
    def n_states(self) -> IntArray:
        """Number of values of every feature, shape (n_features,)."""
        return self.layout.n_states

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.layout.n_classes

    @property
    def class_counts(self) -> AnyArray:
        """Weight of every class, shape (n_classes,)."""
        return self.cells[: self.layout.n_classes]

    def empty(self) -> FamilyCounts:
        """Return counts of no rows of the same families."""
        return FamilyCounts(self.layout)

    def update(self, data: EncodedData, *, n_jobs: int | None = None) -> FamilyCounts:
        """Add the counts of a chunk."""
        if not np.array_equal(self.n_states, data.n_states) or self.n_classes != data.n_classes:
            raise ValueError(
                f"counts add up only over one and the same table: these have {self.n_classes} classes and n_states "
                f"{self.n_states.tolist()}, the chunk {data.n_classes} and {data.n_states.tolist()}."
            )
        dtype = type_with_room(self.class_counts, data.weights)
        self.cells = self.cells.astype(dtype) + self.layout.count(data.codes, data.y, data.weights, data.device)
        return self

    def merge(self, other: FamilyCounts) -> FamilyCounts:
        """Add the counts of other rows."""
        differing = self._differing(other)
        if differing is not None:
            raise ValueError(f"counts add up only over the same families, but the two differ in {differing}.")
        dtype = type_with_room(self.class_counts, other.class_counts)
        self.cells = self.cells.astype(dtype) + other.cells
        return self

    def _differing(self, other: FamilyCounts) -> str | None:
        """Return in what two layouts differ."""
        names = ("child", "parents", "n_states", "n_classes")
        return next(
            (name for name in names if not np.array_equal(getattr(self.layout, name), getattr(other.layout, name))),
            None,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FamilyCounts)
            and self._differing(other) is None
            and np.array_equal(self.cells, other.cells)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"FamilyCounts(n_features={len(self.n_states)}, n_classes={self.n_classes}, n_cells={len(self.cells)}, "
            f"weight={self.class_counts.sum()}, dtype={self.cells.dtype})"
        )
