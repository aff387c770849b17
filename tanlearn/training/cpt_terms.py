"""CPTs as sums of terms, one term per subset of the parents."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.structures.table_layout import TableLayout

__all__ = ["CPTTerms"]


class _Term(NamedTuple):
    """One term of a CPT: its slice of the parameters, the parent axes it lacks, and its shape with ones there."""

    parameters: slice
    absent_axes: tuple[int, ...]
    shape: tuple[int, ...]


class CPTTerms:
    """Unnormalized CPTs as sums of terms over the subsets of their parents.

    With two parents ``rho(x | y, p, q) = w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``. Rare combinations share
    the lower-order terms, and a ridge penalty on the higher-order terms shrinks the CPT toward them. The terms have
    more parameters than the CPTs have entries; only the ridge penalty makes them unique.
    """

    n_parents: IntArray  # (n_parameters,) number of parents in each parameter's term; 0 for the class prior

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout  # a CPT has ``2 ** n_parents`` terms, so parents must be few
        self._tables: list[list[_Term]] = []
        n_parents_of_terms, n_parameters = [np.zeros(layout.n_classes, np.intp)], layout.n_classes
        for t in range(layout.n_tables):
            shape = layout.shape(t)
            axes = range(1, len(shape) - 1)
            terms = []
            for n_present in range(len(axes) + 1):
                for present in combinations(axes, n_present):
                    absent_axes = tuple(axis for axis in axes if axis not in present)
                    term_shape = tuple(1 if axis in absent_axes else size for axis, size in enumerate(shape))
                    size = int(np.prod(term_shape))
                    terms.append(_Term(slice(n_parameters, n_parameters + size), absent_axes, term_shape))
                    n_parents_of_terms.append(np.full(size, n_present, np.intp))
                    n_parameters += size
            self._tables.append(terms)
        self.n_parents = np.concatenate(n_parents_of_terms)

    def cells(self, parameters: FloatArray) -> FloatArray:
        """Return the CPTs (n_cells,) for term parameters (n_parameters,), whose first entries are the class prior."""
        cells = np.zeros(self._layout.n_cells)
        cells[: self._layout.n_classes] = parameters[: self._layout.n_classes]
        for table, terms in zip(self._views(cells), self._tables, strict=True):
            for term in terms:
                table += parameters[term.parameters].reshape(term.shape)
        return cells

    def pull_back(self, d_cells: FloatArray) -> FloatArray:
        """Return the gradient (n_parameters,) with respect to the terms from the gradient (n_cells,) of the CPTs.

        This is the transpose of :meth:`cells`.
        """
        d_parameters = np.empty(len(self.n_parents))
        d_parameters[: self._layout.n_classes] = d_cells[: self._layout.n_classes]
        for d_table, terms in zip(self._views(d_cells), self._tables, strict=True):
            for term in terms:
                d_parameters[term.parameters] = d_table.sum(axis=term.absent_axes).ravel()
        return d_parameters

    def from_cells(self, cells: FloatArray) -> FloatArray:
        """Return terms (n_parameters,) whose sums equal finite CPTs (n_cells,).

        Higher-order terms have mean zero over each of their parents.
        """
        parameters = np.empty(len(self.n_parents))
        parameters[: self._layout.n_classes] = cells[: self._layout.n_classes]
        for table, terms in zip(self._views(cells.copy()), self._tables, strict=True):
            for term in terms:  # terms with fewer parents come first
                mean = table.mean(axis=term.absent_axes, keepdims=True)
                parameters[term.parameters] = mean.ravel()
                table -= mean
        return parameters

    def _views(self, cells: FloatArray) -> list[FloatArray]:
        """Return each CPT as a view of the cells, in the CPT's own shape."""
        offset = self._layout.offset.tolist()
        return [cells[offset[t] : offset[t + 1]].reshape(self._layout.shape(t)) for t in range(self._layout.n_tables)]
