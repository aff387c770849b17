"""Encoding of numeric columns, and their distinct values, in one pass over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels.encode import cells_of, count_cuts_below, look_up, mark_present
from tanlearn.sources.category_index import LARGEST_EXACT, TABLE_SPAN, CategoryIndex
from tanlearn.sources.table import ArrayTable, StridedColumns, Table

__all__ = ["FIRST_ROWS", "NumberEncoder", "distinct_numbers"]

#: Number of leading rows of a column that are examined first.
FIRST_ROWS = 256
# Values per block: half a megabyte of 64-bit numbers, so that data read by one kernel is still in the second-level
# cache for the next, while 60 us of work outweigh the 3 us of a call.
_VALUES_PER_BLOCK = 2**16
#: Number of columns that are scanned together: the marks of values that occur take 8 MiB.
_COLUMNS_PER_SCAN = 2**11


class _FeatureTables(NamedTuple):
    """Lookup tables, or cut points, of several features, concatenated.

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
        """Return the columns of a view that can be encoded, with their features, bounds and slices."""
        if len(view.columns) > 1:  # a row-major array with all features
            return self.features, *self[:-1]
        first, last = np.searchsorted(self.features, (view.columns[0], view.columns[0] + 1))
        return np.zeros(last - first, np.intp), *(array[first:last] for array in self[:-1])


class NumberEncoder:
    """Encoder of numeric columns: integers by lookup tables, other numbers by cut points."""

    def __init__(
        self, indexes: Sequence[CategoryIndex | None], cut_points: Sequence[FloatArray | None], dtype: type
    ) -> None:
        self._indexes = indexes  # categories of each feature, or None
        self._missing = missing_code(dtype)
        self._cut_points = _feature_tables([None if own is None else (0, 0, own) for own in cut_points], np.float64)
        self._tables: dict[str, _FeatureTables] = {}
        self._dtype = dtype  # dtype of the codes, numpy.uint8 or numpy.uint16

    def encode(self, table: Table, codes: Codes, n_jobs: int | None = None) -> NDArray[np.bool_]:
        """Write the codes of the numeric columns into ``codes``, shape (n_features, n_samples), in place.

        Returns a mask of the features that were encoded, shape (n_features,). Columns that are not numeric, or whose
        categories have no lookup table, are skipped.
        """
        views = table.strided_columns()
        done = np.zeros(len(codes), np.bool_)
        tasks: list[Callable[[int, int], None]] = []
        for view in views:
            tables = self._tables_for(view.memory.dtype)
            chosen, features, low, high, start, _ = tables.of(view)
            if len(chosen):
                done[features] = True
                tasks.append(_task(look_up, view, (chosen, features, low, high, start, tables.numbers, codes)))
            chosen, features, _, _, start, stop = self._cut_points.of(view)
            if len(chosen):
                done[features] = True
                arrays = chosen, features, start, stop, self._cut_points.numbers, self._missing, codes
                tasks.append(_task(count_cuts_below, view, arrays))
        _in_blocks(tasks, views, table.n_samples, n_jobs)
        if not isinstance(table, ArrayTable):
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


def _task(kernel: Callable[..., None], view: StridedColumns, arrays: tuple[Any, ...]) -> Callable[[int, int], None]:
    """Bind a kernel to a view and its arrays; the result takes the first and past-the-last row."""
    memory, row_step, column_step = view[:3]
    return lambda first, last: kernel(memory, row_step, column_step, first, last, *arrays)


def _in_blocks(
    tasks: list[Callable[[int, int], None]], views: list[StridedColumns], n_samples: int, n_jobs: int | None
) -> None:
    """Run all tasks on each block of rows before the next block."""
    width = max((len(view.columns) for view in views), default=1)

    def work(first: int, last: int) -> None:
        for task in tasks:
            task(first, last)

    in_blocks(
        work,
        n_samples,
        max(1, _VALUES_PER_BLOCK // width),
        n_jobs if n_samples * width * len(views) > 2 * _VALUES_PER_BLOCK else 1,
    )


def _feature_tables(entries: list[tuple[int, int, AnyArray] | None], dtype: type) -> _FeatureTables:
    """Concatenate the bounds, and the tables or cut points, of the features that have any."""
    features = [i for i, entry in enumerate(entries) if entry is not None]
    found = [entry for entry in entries if entry is not None]
    low, high = (np.array([entry[side] for entry in found], np.int64) for side in (0, 1))
    sizes = np.array([len(entry[2]) for entry in found], np.intp)
    stop = np.cumsum(sizes, dtype=np.intp)
    numbers = np.concatenate([np.empty(0, dtype), *(entry[2] for entry in found)])
    return _FeatureTables(np.array(features, np.intp), low, high, stop - sizes, stop, numbers)


def distinct_numbers(table: Table, features: IntArray, n_jobs: int | None = None) -> dict[int, AnyArray]:
    """Return the sorted distinct values of the columns that contain integers of a small range, by column number.

    Columns with other numbers, a wide range or missing integers are left out of the result.
    """
    views = table.strided_columns()
    is_requested = np.zeros(len(table), np.bool_)
    is_requested[features] = True
    wanted: list[tuple[StridedColumns, int, int]] = []
    for view in views:
        for k in np.flatnonzero(is_requested[view.columns]).tolist():
            lowest = _lower_bound(view, k, table.n_samples) if table.missing_mask(view.columns[k]) is None else None
            if lowest is not None:
                wanted.append((view, k, lowest))
    found: dict[int, AnyArray] = {}
    for first in range(0, len(wanted), _COLUMNS_PER_SCAN):
        tasks, results = [], []
        for _, group in groupby(wanted[first : first + _COLUMNS_PER_SCAN], key=lambda one: id(one[0])):
            run = list(group)
            view, columns = run[0][0], np.array([k for _, k, _ in run], np.intp)
            low = np.array([lowest for *_, lowest in run], np.int64) - TABLE_SPAN // 4
            present = np.zeros((len(run), TABLE_SPAN + 2), np.bool_)
            tasks.append(_task(mark_present, view, (columns, low, low + TABLE_SPAN, present)))
            results.append((view, columns, low, present))
        _in_blocks(tasks, views, table.n_samples, n_jobs)
        for view, *arrays in results:
            for k, low, marks in zip(*arrays, strict=True):
                if not marks[-2]:
                    found[view.columns[k].item()] = (np.flatnonzero(marks[:-2]) + low).astype(view.dtype)
    return found


def _lower_bound(view: StridedColumns, k: int, n_samples: int) -> int | None:
    """Return a lower bound of the first numbers of a column, or None if they are too large to count from."""
    first = cells_of(*view[:3], k, 0, min(n_samples, FIRST_ROWS))
    first = first[first == first]
    if not len(first):
        return 0
    lowest = float(first.min())
    return int(lowest // 1) if abs(lowest) < LARGEST_EXACT // 2 else None
