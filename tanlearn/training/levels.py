"""Tables as sums of levels: what a value says by itself, with every parent, with every two of them, and so on."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.network.tables import TableLayout

__all__ = ["Levels"]


class _Level(NamedTuple):
    """A term of a table: where its numbers are, which axes of the table it has not, its shape with ones for these."""

    place: slice
    absent: tuple[int, ...]
    shape: tuple[int, ...]


class Levels:
    """Unnormalised tables as sums over the subsets of their parents.

    With two parents ``rho(x | y, p, q) = w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``: what rare combinations
    have in common is learnt together, and a ridge on the deeper terms backs off to the others. There are more numbers
    than cells, and no two ways to the same cells but by the ridge.
    """

    depth: IntArray  # (n_numbers,): Of every number, how many parents its term has; 0 for the class prior

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout  # The tables; each has so few parents that its ``2 ** n_parents`` terms are no burden
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
        """Return the tables.

        Shapes: numbers: (n_numbers,); result: (n_cells,).
        """
        cells = np.zeros(self._layout.n_cells)
        cells[: self._layout.n_classes] = numbers[: self._layout.n_classes]
        for table, levels in zip(self._views(cells), self._tables, strict=True):
            for level in levels:
                table += numbers[level.place].reshape(level.shape)
        return cells

    def pull_back(self, d_cells: FloatArray) -> FloatArray:
        """Return the gradient for the terms, given that for the tables: the transpose of :meth:`cells`.

        Shapes: d_cells: (n_cells,); result: (n_numbers,).
        """
        d_numbers = np.empty(len(self.depth))
        d_numbers[: self._layout.n_classes] = d_cells[: self._layout.n_classes]
        for d_table, levels in zip(self._views(d_cells), self._tables, strict=True):
            for level in levels:
                d_numbers[level.place] = d_table.sum(axis=level.absent).ravel()
        return d_numbers

    def of_cells(self, cells: FloatArray) -> FloatArray:
        """Return terms whose sums are some tables, and whose deeper ones have the mean zero over every parent.

        Shapes: cells: (n_cells,); result: (n_numbers,).
        """
        numbers = np.empty(len(self.depth))
        numbers[: self._layout.n_classes] = cells[: self._layout.n_classes]
        for table, levels in zip(self._views(cells.copy()), self._tables, strict=True):
            for level in levels:  # those of fewer parents come first
                mean = table.mean(axis=level.absent, keepdims=True)
                numbers[level.place] = mean.ravel()
                table -= mean
        return numbers

    def _views(self, cells: FloatArray) -> list[FloatArray]:
        """Return every table as an array of its own shape, in the memory of the cells."""
        offset = self._layout.offset.tolist()
        return [cells[offset[t] : offset[t + 1]].reshape(self._layout.shape(t)) for t in range(self._layout.n_tables)]
