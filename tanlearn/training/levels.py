"""CPTs as sums of terms, one term per subset of the parents."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.network.table_layout import TableLayout

__all__ = ["Levels"]


class _Level(NamedTuple):
    """One term of a CPT: its slice of the parameters, the parent axes it lacks, and its shape with ones there."""

    place: slice
    absent: tuple[int, ...]
    shape: tuple[int, ...]


class Levels:
    """Unnormalized CPTs as sums of terms over the subsets of their parents.

    With two parents ``rho(x | y, p, q) = w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``. Rare combinations share
    the lower-order terms, and a ridge penalty on the higher-order terms shrinks the CPT toward them. The terms have
    more parameters than the CPTs have entries; only the ridge penalty makes them unique.
    """

    depth: IntArray  # (n_numbers,) number of parents in each parameter's term; 0 for the class prior

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout  # a CPT has ``2 ** n_parents`` terms, so parents must be few
        self._tables: list[list[_Level]] = []
        depths, n_numbers = [np.zeros(layout.n_classes, np.intp)], layout.n_classes
        for t in range(layout.n_tables):
            shape = layout.shape(t)
            axes = range(1, len(shape) - 1)
            levels = []
            for depth in range(len(axes) + 1):
                for present in combinations(axes, depth):
                    absent = tuple(axis for axis in axes if axis not in present)
                    own = tuple(1 if axis in absent else size for axis, size in enumerate(shape))
                    size = int(np.prod(own))
                    levels.append(_Level(slice(n_numbers, n_numbers + size), absent, own))
                    depths.append(np.full(size, depth, np.intp))
                    n_numbers += size
            self._tables.append(levels)
        self.depth = np.concatenate(depths)

    def cells(self, numbers: FloatArray) -> FloatArray:
        """Return the CPTs (n_cells,) for term parameters (n_numbers,), whose first entries are the class prior."""
        cells = np.zeros(self._layout.n_cells)
        cells[: self._layout.n_classes] = numbers[: self._layout.n_classes]
        for table, levels in zip(self._views(cells), self._tables, strict=True):
            for level in levels:
                table += numbers[level.place].reshape(level.shape)
        return cells

    def pull_back(self, d_cells: FloatArray) -> FloatArray:
        """Return the gradient (n_numbers,) with respect to the terms from the gradient (n_cells,) of the CPTs.

        This is the transpose of :meth:`cells`.
        """
        d_numbers = np.empty(len(self.depth))
        d_numbers[: self._layout.n_classes] = d_cells[: self._layout.n_classes]
        for d_table, levels in zip(self._views(d_cells), self._tables, strict=True):
            for level in levels:
                d_numbers[level.place] = d_table.sum(axis=level.absent).ravel()
        return d_numbers

    def of_cells(self, cells: FloatArray) -> FloatArray:
        """Return terms (n_numbers,) whose sums equal finite CPTs (n_cells,).

        Higher-order terms have mean zero over each of their parents.
        """
        numbers = np.empty(len(self.depth))
        numbers[: self._layout.n_classes] = cells[: self._layout.n_classes]
        for table, levels in zip(self._views(cells.copy()), self._tables, strict=True):
            for level in levels:  # terms with fewer parents come first
                mean = table.mean(axis=level.absent, keepdims=True)
                numbers[level.place] = mean.ravel()
                table -= mean
        return numbers

    def _views(self, cells: FloatArray) -> list[FloatArray]:
        """Return each CPT as a view of the cells, in the CPT's own shape."""
        offset = self._layout.offset.tolist()
        return [cells[offset[t] : offset[t + 1]].reshape(self._layout.shape(t)) for t in range(self._layout.n_tables)]
