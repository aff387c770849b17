"""Dense counts of the CPT entries of one structure, for data in batches."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.counts import type_with_room
from tanlearn.network.table_layout import TableLayout

__all__ = ["FamilyCounts"]


class FamilyCounts:
    """Counts of all CPT entries of one structure.

    Counts of unweighted or integer-weighted rows are 64-bit integers and equal to the last bit for any partition of the
    rows and any order of merging.
    """

    def __init__(self, layout: TableLayout) -> None:
        layout.check_memory(None)
        self.layout = layout
        # (n_cells,) weighted counts: int64, or float64 after a batch with real weights
        self.cells: AnyArray = np.zeros(layout.n_cells, np.int64)

    @property
    def n_states(self) -> IntArray:
        """Number of values of each feature, shape (n_features,)."""
        return self.layout.n_states

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.layout.n_classes

    @property
    def class_counts(self) -> AnyArray:
        """Weight of each class, shape (n_classes,)."""
        return self.cells[: self.layout.n_classes]

    def empty(self) -> FamilyCounts:
        """Return empty counts of the same families."""
        return FamilyCounts(self.layout)

    def update(self, data: EncodedData, *, n_jobs: int | None = None) -> FamilyCounts:
        """Add the counts of a batch in place and return self; ``n_jobs`` is ignored.

        If the features or classes differ, or the sum of integer weights would overflow, it raises ValueError and
        changes nothing.
        """
        if not np.array_equal(self.n_states, data.n_states) or self.n_classes != data.n_classes:
            raise ValueError(
                f"counts add up only over the same features and classes: these have {self.n_classes} classes and "
                f"n_states {self.n_states.tolist()}, the batch has {data.n_classes} classes and n_states "
                f"{data.n_states.tolist()}."
            )
        dtype = type_with_room(self.class_counts, data.weights)
        self.cells = self.cells.astype(dtype) + self.layout.count(data.codes, data.y, data.weights, data.device)
        return self

    def merge(self, other: FamilyCounts) -> FamilyCounts:
        """Add the counts of other rows in place and return self.

        If the families differ, or the sum of integer weights would overflow, it raises ValueError and changes nothing.
        """
        differing = self._differing(other)
        if differing is not None:
            raise ValueError(f"counts add up only over the same families, but the two differ in {differing}.")
        dtype = type_with_room(self.class_counts, other.class_counts)
        self.cells = self.cells.astype(dtype) + other.cells
        return self

    def _differing(self, other: FamilyCounts) -> str | None:
        """Return the name of the first attribute in which two layouts differ, or None."""
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
