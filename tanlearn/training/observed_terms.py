"""Terms of CPTs for the parent values that occur in rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from tanlearn._typing import Codes, FloatArray, IntArray, codes_dtype
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.observed_terms import pull_back_terms, sum_terms
from tanlearn.structures.table_layout import TableLayout

__all__ = ["ObservedTerms"]


class ObservedTerms:
    """Terms of :class:`~tanlearn.training.cpt_terms.CPTTerms` for the parent values that occur in complete rows.

    Most combinations of values of two parents occur in no row (three of four on segment). Their terms have no gradient.
    Here, CPTs and terms contain only the other combinations. A CPT is the CPT of a feature with a single parent, whose
    values are the numbers of the combinations.

    Methods use work arrays of the object, so each thread needs an object of its own.
    """

    layout: TableLayout  # of the CPTs with these combinations; feature ``d + i`` contains the combinations of feature i
    rows: EncodedData  # rows of nonzero weight with these features
    n_parents: IntArray  # (n_parameters,) number of parents in each parameter's term; 0 for the class prior
    positions: IntArray  # (n_parameters,) index of each parameter among the parameters of CPTTerms, increasing

    def __init__(self, layout: TableLayout, data: EncodedData) -> None:
        present, n_classes, d = data.present(), layout.n_classes, layout.n_tables
        codes, states = present.codes.astype(np.intp), layout.n_states.tolist()
        families = [[int(j) for j in parents if j >= 0] for parents in layout.parents]
        found = [_distinct(codes, given, states) for given in families]
        n_states = np.concatenate((layout.n_states, [distinct.shape[1] for distinct, _ in found]))
        self.layout = TableLayout(np.arange(d), np.arange(d, 2 * d)[:, np.newaxis], n_states, n_classes)
        features: Codes = np.concatenate((codes, [numbers for _, numbers in found])).astype(
            codes_dtype(int(n_states.max()))
        )
        self.rows = EncodedData(features, n_states, present.y, n_classes, present.sample_weight)
        first = n_classes  # of the next term of CPTTerms
        columns: list[IntArray] = [np.empty(0, np.intp)]
        n_parents, positions, terms, n_columns = [np.zeros(n_classes, np.intp)], [np.arange(n_classes)], [], 0
        for i, given in enumerate(families):
            values = found[i][0]
            for axes in _subsets(len(given)):
                sizes = [states[given[axis]] for axis in axes]
                if len(axes) == len(given):
                    start, own = -1, _flat(values, sizes)
                else:
                    own, column = np.unique(_flat(values[list(axes)], sizes), return_inverse=True)
                    start, n_columns = n_columns, n_columns + values.shape[1]
                    columns.append(column.ravel())
                terms.append((self.layout.offset[i], states[i], values.shape[1], len(own), start))
                size = math.prod(sizes)
                rows = (np.arange(states[i])[:, np.newaxis] * size + own).ravel()
                positions.append((first + rows[:, np.newaxis] * n_classes + np.arange(n_classes)).ravel())
                n_parents.append(np.full(positions[-1].size, len(axes)))
                first += states[i] * size * n_classes
        self.n_parents, self.positions = np.concatenate(n_parents), np.concatenate(positions)
        self._arguments = np.array(terms, np.intp), np.concatenate(columns).astype(np.intp), n_classes
        self._cells = np.empty(self.layout.n_cells)
        self._parameters = np.empty(len(self.n_parents))

    def cells(self, parameters: FloatArray) -> FloatArray:
        """Return the CPTs (n_cells,) for term parameters (n_parameters,), whose first entries are the class prior."""
        sum_terms(parameters, *self._arguments, self._cells)
        return self._cells

    def pull_back(self, d_cells: FloatArray) -> FloatArray:
        """Return the gradient (n_parameters,) with respect to the terms from the gradient (n_cells,) of the CPTs."""
        pull_back_terms(d_cells, *self._arguments, self._parameters)
        return self._parameters


def _subsets(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all subsets of the first ``n`` axes, smaller subsets first."""
    return chain.from_iterable(combinations(range(n), size) for size in range(n + 1))


def _flat(values: IntArray, sizes: list[int]) -> IntArray:
    """Return the flat index of each combination of values, shape (n_parents, n); zeros without parents."""
    return np.ravel_multi_index(tuple(values), sizes) if sizes else np.zeros(values.shape[1], np.intp)


def _distinct(codes: IntArray, given: list[int], states: list[int]) -> tuple[IntArray, IntArray]:
    """Return the distinct combinations (n_parents, n_distinct) of the parents' values, and their number in each row.

    Combinations have increasing flat indices. Without parents, there is one combination.
    """
    if not given:
        return np.zeros((0, 1), np.intp), np.zeros(codes.shape[1], np.intp)
    sizes = [states[j] for j in given]
    distinct, numbers = np.unique(_flat(codes[given], sizes), return_inverse=True)
    return np.array(np.unravel_index(distinct, sizes)), numbers.ravel()
