"""Dense counts of the CPT entries of one structure, for data in batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.counts.counts_base import Counts, check_counts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import fields
from tanlearn.structures.structures import read_structure
from tanlearn.structures.table_layout import TableLayout, n_table_cells

__all__ = ["FamilyCounts"]


class FamilyCounts(Counts):
    """Counts of all CPT entries of one structure. A row is counted in a family if it has all values of the family."""

    kind = "FamilyCounts"

    def __init__(self, layout: TableLayout) -> None:
        layout.check_memory(None)
        super().__init__(layout.n_states, layout.n_classes)
        self.layout, self.parents = layout, layout.parents
        # (n_cells,) weighted counts: int64, or float64 after a batch with real weights
        self.cells: AnyArray = np.zeros(layout.n_cells, np.int64)

    @property
    def class_counts(self) -> AnyArray:
        """Weight of each class. Shape: (n_classes,)."""
        return self.cells[: self.n_classes]

    def empty(self) -> FamilyCounts:
        """Return empty counts of the same families."""
        return FamilyCounts(self.layout)

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> FamilyCounts:
        """Restore counts from the output of :meth:`state`; raise ValueError for inconsistent values."""
        structure, cells = fields(state, "structure", "cells")
        structure = read_structure(structure, len(n_states))
        # Checked before memory is allocated: a forged structure can ask for any number of counts.
        check_counts("cells", cells, (n_table_cells(structure.parents, n_states, n_classes),))
        counts = cls(TableLayout.of_parents(structure.parents, n_states, n_classes))
        counts.cells = cells
        return counts

    def _count(self, data: EncodedData, dtype: np.dtype[Any], n_jobs: int | None) -> None:
        """Add the counts of a batch; ``n_jobs`` is ignored."""
        self.cells = self.cells.astype(dtype) + self.layout.count(data.codes, data.y, data.weights, data.device)

    def _add(self, other: FamilyCounts, dtype: np.dtype[Any]) -> None:
        """Add other counts."""
        self.cells = self.cells.astype(dtype) + other.cells

    def arrays(self) -> dict[str, AnyArray]:
        """Return a dictionary of arrays that contain all counts."""
        return {"cells": self.cells}

    def _schema(self) -> dict[str, Any]:
        """Return, by name, the values in which counts must agree before they can be added."""
        return {**super()._schema(), "child": self.layout.child}
