"""CPTs as sums of terms, with one term per subset of the parents."""

from __future__ import annotations

import math
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.structures.table_layout import TableLayout

__all__ = ["CPTTerms"]


class _Term(NamedTuple):
    """One term of a CPT, with the axes of the absent parents, and views of the work arrays."""

    absent_axes: tuple[int, ...]
    values: FloatArray  # shape (values, values of its parents ..., classes)
    spread: FloatArray  # the same values, with length 1 on the axes of absent parents


class CPTTerms:
    """Unnormalized CPTs as sums of terms over the subsets of their parents.

    With two parents, ``rho(x | y, p, q) = w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``. Rare combinations share
    the lower-order terms, and a ridge penalty on the higher-order terms shrinks the CPT toward the lower-order terms.
    There are more terms than CPT entries, so the terms are unique only because of the ridge penalty.

    Methods use work arrays of the object, so each thread needs its own object.
    """

    n_parents: IntArray  # (n_parameters,) number of parents in the term of each parameter, 0 for the class prior

    def __init__(self, layout: TableLayout) -> None:
        self._n_classes, offset = layout.n_classes, layout.offset.tolist()
        self._cells = np.zeros(layout.n_cells)
        # Views are created only once, because for small CPTs, creating the views took more time than computing the
        # sums.
        shapes = [layout.shape(t) for t in range(layout.n_tables)]
        self._tables = [self._cells[offset[t] : offset[t + 1]].reshape(shape) for t, shape in enumerate(shapes)]
        n_parents, sizes, absent = [0], [layout.n_classes], []
        for shape in shapes:
            axes = range(1, len(shape) - 1)  # a CPT has ``2 ** len(axes)`` terms, so there must be few parents
            for n_present in range(len(axes) + 1):
                for present in combinations(axes, n_present):
                    absent.append(tuple(axis for axis in axes if axis not in present))
                    n_parents.append(n_present)
                    sizes.append(math.prod(shape[axis] for axis in (0, *present, -1)))
        self.n_parents = np.repeat(n_parents, sizes).astype(np.intp)
        self._parameters = np.zeros(len(self.n_parents))
        parts = iter(zip(np.split(self._parameters, np.cumsum(sizes)[:-1])[1:], absent, strict=True))
        self._terms: list[list[_Term]] = []
        for shape in shapes:
            terms = []
            for part, absent_axes in islice(parts, 2 ** (len(shape) - 2)):
                values = part.reshape([size for axis, size in enumerate(shape) if axis not in absent_axes])
                terms.append(_Term(absent_axes, values, np.expand_dims(values, absent_axes)))
            self._terms.append(terms)

    def cells(self, parameters: FloatArray) -> FloatArray:
        """Return the CPTs (n_cells,) for term parameters (n_parameters,), whose first entries are the class prior."""
        self._parameters[:] = parameters
        self._cells[: self._n_classes] = parameters[: self._n_classes]
        for table, terms in zip(self._tables, self._terms, strict=True):
            table[...] = terms[0].spread
            for term in terms[1:]:
                table += term.spread
        return self._cells.copy()

    def pull_back(self, d_cells: FloatArray) -> FloatArray:
        """Return the gradient (n_parameters,) with respect to the terms from the gradient (n_cells,) of the CPTs.

        This is the transpose of :meth:`cells`.
        """
        self._cells[:] = d_cells
        self._parameters[: self._n_classes] = d_cells[: self._n_classes]
        for table, terms in zip(self._tables, self._terms, strict=True):
            for term in terms:
                np.add.reduce(table, axis=term.absent_axes, out=term.values)
        return self._parameters.copy()

    def from_cells(self, cells: FloatArray) -> FloatArray:
        """Return terms (n_parameters,) whose sums are equal to finite CPTs (n_cells,).

        The mean of a higher-order term over the values of each of its parents is zero.
        """
        self._cells[:] = cells
        self._parameters[: self._n_classes] = cells[: self._n_classes]
        for table, terms in zip(self._tables, self._terms, strict=True):
            for term in terms:  # terms with fewer parents come first
                term.spread[...] = table.mean(axis=term.absent_axes, keepdims=True)
                table -= term.spread
        return self._parameters.copy()
