"""Log joint of single rows. All quantities that do not depend on the row are computed in advance.

The scores equal ``log_joint`` bit for bit, with one exception: networks of terms with two or more parents per feature
may marginalize missing values in another order, so the last digits may differ.

``tables`` are CPTs (``tables.py``, ``term_tables.py``), which create their scorers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.kernels.scores import score_row
from tanlearn.models.elimination import Eliminator
from tanlearn.models.local_networks import LocalNetworks
from tanlearn.models.marginalization_limits import most_operations
from tanlearn.models.upward_pass import UpwardPass
from tanlearn.structures.structures import Structure

__all__ = ["ColumnScorer", "DenseScorer", "RowScorer", "Scorer", "TermScorer"]

#: Function that computes the log joint (n_classes,) of a row of valid codes (n_features,), intp.
RowScorer: TypeAlias = Callable[[IntArray], FloatArray]
#: The same for codes (n_features, 1) of the type of the encoder.
ColumnScorer: TypeAlias = Callable[[AnyArray], FloatArray]

#: Dense CPTs of at most this many entries, and an elimination of at most this estimated time, marginalize the missing
#: values of a row in a network of terms: such a row is exact in any order. Others need local networks.
_MOST_DENSE, _MOST_MICROSECONDS = 2**18, 2000
_FIRST = np.zeros(1, np.intp)
_INCOMPLETE = -1  # result of the kernel for a row with missing values


class Scorer:
    """Scorer of rows of any network, which calls its function for many rows."""

    def __init__(self, tables: Any, structure: Structure, score_column: ColumnScorer) -> None:
        self._tables, self._structure, self._score_column = tables, structure, score_column
        self._dtype = codes_dtype(int(tables.layout.n_states.max()))
        self._missing = missing_code(self._dtype)

    def __call__(self, row: IntArray) -> FloatArray:
        """Return the log joint of a row."""
        return self._marginalize(row.astype(self._dtype)[:, np.newaxis])

    @cached_property
    def _marginalize(self) -> ColumnScorer:
        """Function that marginalizes missing values, created for the first row with missing values."""
        return self._score_column


class DenseScorer(Scorer):
    """Scorer of rows of a network with dense CPTs."""

    def __init__(self, tables: Any, structure: Structure, score_column: ColumnScorer) -> None:
        super().__init__(tables, structure, score_column)
        layout = tables.layout
        self._arrays = tables.scoring_cells, layout.parents, layout.n_states, layout.offset, self._missing
        self._sums = layout.n_classes, tables.sum_dtype
        self._decode = None if tables.bits is None else tables.decode

    def __call__(self, row: IntArray) -> FloatArray:
        """Return the log joint of a row."""
        scores: FloatArray = np.empty(*self._sums)
        if score_row(row, *self._arrays, scores) == _INCOMPLETE:
            return super().__call__(row)
        return scores if self._decode is None else self._decode(scores)

    @cached_property
    def _marginalize(self) -> ColumnScorer:
        """Function that marginalizes missing values."""
        tables, structure = self._tables, self._structure
        if not structure.is_acyclic:
            return self._score_column  # raises an error that names the missing feature
        if not (structure.parents[:, 1:] >= 0).any():
            return _upward_pass(tables, structure)
        eliminator = Eliminator(structure, tables.layout, is_normalized=tables.is_normalized)
        return partial(_eliminate, eliminator, tables.cells)


class TermScorer(Scorer):
    """Scorer of rows of a network whose CPTs are sums of terms."""

    def __init__(self, tables: Any, structure: Structure, score_column: ColumnScorer) -> None:
        super().__init__(tables, structure, score_column)
        layout, cells = tables.flat
        self._n_classes = layout.n_classes
        self._arrays = cells, layout.parents, layout.n_states, layout.offset, -1  # no cell is missing
        self._features, self._start, self._digits = _column_digits(tables.columns, int(tables.layout.n_states.max()))

    def __call__(self, row: IntArray) -> FloatArray:
        """Return the log joint of a row."""
        if np.count_nonzero(row == self._missing):
            return super().__call__(row)
        cells = self._digits[self._start + row[self._features]].sum(axis=1)
        scores: FloatArray = np.empty(self._n_classes)
        score_row(cells, *self._arrays, scores)
        return scores

    @cached_property
    def _marginalize(self) -> ColumnScorer:
        """Function that marginalizes missing values."""
        tables, structure = self._tables, self._structure
        if tables.dense_tree(structure) is not None:
            return _upward_pass(tables, structure)
        rule = {"is_normalized": tables.is_normalized}
        local = LocalNetworks(tables, structure, **rule)
        if tables.layout.sizes().sum() > min(_MOST_DENSE, most_operations()):
            return partial(_marginalize_locally, local)
        eliminator, cells = Eliminator(structure, tables.layout, **rule), tables.cells

        def marginalize(column: AnyArray) -> FloatArray:
            if eliminator.is_cheap(column, _FIRST, _MOST_MICROSECONDS):
                return _eliminate(eliminator, cells, column)
            return _marginalize_locally(local, column)

        return marginalize


def _upward_pass(tables: Any, structure: Structure) -> ColumnScorer:
    """Return a function that marginalizes missing values in a tree."""
    prepared = UpwardPass(structure, tables.layout, tables.cells, is_normalized=tables.is_normalized)

    def score(column: AnyArray) -> FloatArray:
        scores = np.empty((1, tables.layout.n_classes))
        prepared.score(column, scores)
        return scores[0]

    return score


def _eliminate(eliminator: Eliminator, cells: FloatArray, column: AnyArray) -> FloatArray:
    """Marginalize missing values by elimination."""
    return eliminator.log_joint(column, _FIRST, cells, is_exact=False, n_jobs=1)[0]


def _marginalize_locally(networks: LocalNetworks, column: AnyArray) -> FloatArray:
    """Marginalize missing values in the network of the missing features."""
    return networks.log_joint(column, _FIRST, is_exact=False, n_jobs=1)[0]


def _column_digits(columns: list[Any], most_values: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return arrays that give the cell of a row in each column: ``digits[start + row[features]].sum(axis=1)``.

    Shapes: features, start: (n_columns, most features of a column); digits: (n_digits,), the group of each value times
    the stride of its feature, and zeros for columns with fewer features.
    """
    shape = len(columns), max(len(column.features) for column in columns)
    features, start = np.zeros(shape, np.intp), np.zeros(shape, np.intp)
    digits: list[IntArray] = [np.zeros(most_values, np.intp)]
    used = most_values
    for k, column in enumerate(columns):
        stride = column.n_cells
        parts = zip(column.features, column.groups, column.n_groups, strict=True)
        for place, (i, groups, n_groups) in enumerate(parts):
            stride //= n_groups
            features[k, place], start[k, place] = i, used
            digits.append(groups * stride)
            used += len(groups)
    return features, start, np.concatenate(digits)
