"""Encoding of numeric columns in a single pass over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.encoding.categories import CategoryIndex
from tanlearn.encoding.strided_columns import StridedColumns, bind, run_in_blocks, strided_columns
from tanlearn.kernels.encode import count_cuts_below, look_up
from tanlearn.sources.table import Table

__all__ = ["NumberEncoder"]


class _FeatureTables(NamedTuple):
    """Concatenated lookup tables, or cut points, of several features.

    ``numbers[start[k]:stop[k]]`` belongs to ``features[k]``. It contains the codes of the integers from ``low[k]`` to
    ``high[k]``, exclusive, or increasing cut points.
    """

    features: IntArray
    low: IntArray
    high: IntArray
    start: IntArray
    stop: IntArray
    numbers: AnyArray

    def of(self, view: StridedColumns) -> tuple[AnyArray, ...]:
        """Return the columns of a view that can be encoded, with features, bounds and slices."""
        if len(view.columns) > 1:  # a row-major array with all features
            return self.features, *self[:-1]
        first, last = np.searchsorted(self.features, (view.columns[0], view.columns[0] + 1))
        return np.zeros(last - first, np.intp), *(array[first:last] for array in self[:-1])


class NumberEncoder:
    """Encoder of numeric columns, which uses lookup tables for integers, and cut points for other numbers."""

    def __init__(
        self, indexes: Sequence[CategoryIndex | None], cut_points: Sequence[FloatArray | None], dtype: type
    ) -> None:
        self._indexes = indexes  # categories of each feature, or None
        self._missing = missing_code(dtype)
        self._cut_points = _feature_tables([None if own is None else (0, 0, own) for own in cut_points], np.float64)
        self._tables: dict[str, _FeatureTables] = {}
        self._dtype = dtype  # dtype of the codes, numpy.uint8 or numpy.uint16

    def encode(self, table: Table, codes: Codes, n_jobs: int | None = None) -> NDArray[np.bool_]:
        """Write the codes of the numeric columns into ``codes`` (n_features, n_samples), in place.

        Returns a mask (n_features,) of the features that were encoded. Columns that are not numeric, or whose
        categories have no lookup table, are skipped.
        """
        views = strided_columns(table)
        done = np.zeros(len(codes), np.bool_)
        tasks: list[Callable[[int, int], None]] = []
        for view in views:
            tables = self._tables_for(view.memory.dtype)
            chosen, features, low, high, start, _ = tables.of(view)
            if len(chosen):
                done[features] = True
                tasks.append(bind(look_up, view, (chosen, features, low, high, start, tables.numbers, codes)))
            chosen, features, _, _, start, stop = self._cut_points.of(view)
            if len(chosen):
                done[features] = True
                arrays = chosen, features, start, stop, self._cut_points.numbers, self._missing, codes
                tasks.append(bind(count_cuts_below, view, arrays))
        run_in_blocks(tasks, views, table.n_samples, n_jobs)
        if table.matrix is None:
            for i in np.flatnonzero(done).tolist():
                missing = table.missing_mask(i)
                if missing is not None:
                    codes[i, missing] = self._missing
        return done

    def _tables_for(self, dtype: np.dtype[Any]) -> _FeatureTables:
        """Return the lookup tables for a dtype, cached by its kind."""
        if dtype.kind not in self._tables:
            own = [None if index is None else index.table_for(dtype) for index in self._indexes]
            self._tables[dtype.kind] = _feature_tables(own, self._dtype)
        return self._tables[dtype.kind]


def _feature_tables(entries: list[tuple[int, int, AnyArray] | None], dtype: type) -> _FeatureTables:
    """Concatenate the bounds, and the lookup tables or cut points, of the features that have them."""
    features = [i for i, entry in enumerate(entries) if entry is not None]
    found = [entry for entry in entries if entry is not None]
    low, high = (np.array([entry[side] for entry in found], np.int64) for side in (0, 1))
    sizes = np.array([len(entry[2]) for entry in found], np.intp)
    stop = np.cumsum(sizes, dtype=np.intp)
    numbers = np.concatenate([np.empty(0, dtype), *(entry[2] for entry in found)])
    return _FeatureTables(np.array(features, np.intp), low, high, stop - sizes, stop, numbers)
