"""Kinds of columns: categorical or continuous, ordered or unordered, and the categories of categorical columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray, IntArray, missing_code
from tanlearn.encoding.strided_columns import StridedColumns, bind, run_in_blocks, strided_columns
from tanlearn.kernels.encode import cells_of, mark_present
from tanlearn.sources.string_formats import MAX_NUMERIC_CATEGORIES
from tanlearn.sources.table import LARGEST_EXACT, TABLE_SPAN, Column, Table

__all__ = [
    "LARGEST_N_STATES",
    "check_missing_categories",
    "check_n_categories",
    "distinct_numbers",
    "find_all_categories",
    "find_categories",
    "have_order",
    "named_columns",
]

#: Largest number of categories of a column.
LARGEST_N_STATES = missing_code(np.uint16)
#: Number of rows at the beginning of a column that are examined first.
_FIRST_ROWS = 256
#: Number of columns that are scanned together. The masks of values that occur then take 8 MiB.
_COLUMNS_PER_SCAN = 2**11


def find_all_categories(
    option: Any, table: Table, names: AnyArray | None, n_jobs: int | None = None
) -> list[AnyArray | None]:
    """Return the categories (n_categories,) of each column, or None for a continuous column.

    ``option`` is ``discrete_features`` of :class:`~tanlearn.TableEncoder`; ``names`` are the column names, if any.
    """
    is_auto = isinstance(option, str)  # "auto", the only string that parameter validation accepts
    if is_auto:
        chosen = np.array([_may_be_categorical(table, i) for i in range(len(table))])
    else:
        chosen = named_columns(option, len(table), names)
    known = distinct_numbers(table, np.flatnonzero(chosen), n_jobs)
    found: list[AnyArray | None] = [None] * len(table)
    for i in np.flatnonzero(chosen).tolist():
        are_numbers = is_auto and table.values_of(i) is not None
        if i in known:
            categories = known[i]
        else:
            categories = table[i].distinct_values() if are_numbers else find_categories(table[i])
        if not are_numbers or _are_categories(categories):
            found[i] = categories
    return found


def _are_categories(numbers: AnyArray) -> bool:
    """Return whether a column with these distinct numbers, of any dtype, is categorical with "auto"."""
    return len(numbers) <= MAX_NUMERIC_CATEGORIES and bool((numbers % 1 == 0).all())


def _may_be_categorical(table: Table, number: int) -> bool:
    """Return False if the first rows of a column already show that it is continuous with "auto"."""
    values = table.values_of(number)
    if values is None:
        return True
    first, missing = values[:_FIRST_ROWS], table.missing_mask(number)
    return _are_categories(np.unique(first[first == first if missing is None else ~missing[:_FIRST_ROWS]]))


def find_categories(column: Column) -> AnyArray:
    """Return the categories (n_categories,) of a column: declared categories in their order, other ones sorted."""
    categories = column.categories
    if categories is None:
        categories = column.distinct_values()
    elif not column.is_declared:
        occurs = np.zeros(len(categories) + 1, np.bool_)  # the additional entry is for -1, a missing value
        occurs[column.values] = True
        categories = np.array(sorted(categories[occurs[:-1]].tolist()), dtype=object)
    check_n_categories(len(categories), column.label)
    return categories


def check_n_categories(n_categories: int, label: str) -> None:
    """Raise ValueError if a column has more than 65,535 categories."""
    if n_categories > LARGEST_N_STATES:
        raise ValueError(
            f"{label} has {n_categories} categories, more than {LARGEST_N_STATES}. It looks like an identifier or a "
            f"continuous column. Drop it, or discretize it."
        )


def check_missing_categories(encoder: Any, labels: Sequence[str]) -> None:
    """Raise ValueError if a column has too many categories or intervals after adding a category for missing values."""
    for i in np.flatnonzero(encoder.has_missing_category_).tolist():
        check_n_categories(int(encoder.n_states_[i]), labels[i])


def have_order(encoder: Any, table: Table) -> NDArray[np.bool_]:
    """Return a mask of the columns whose codes are ordered: quantities and ordered categories. Shape: (n_features,).

    With "auto", categorical columns of integers keep their numeric order. Numeric columns that the user declares as
    categorical are unordered.
    """
    is_auto = isinstance(encoder.discrete_features, str)
    return np.array(
        [
            known is None or (is_auto and _holds_numbers(table, i)) or table[i].is_ordered
            for i, known in enumerate(encoder.categories_)
        ]
    )


def _holds_numbers(table: Table, number: int) -> bool:
    """Return whether a column contains numbers that are not booleans."""
    values = table.values_of(number)
    return values is not None and values.dtype.kind != "b"


def named_columns(option: Any, n_features: int, names: AnyArray | None) -> NDArray[np.bool_]:
    """Return a mask of the columns that ``discrete_features`` selects, for values other than "auto"."""
    chosen = np.asarray(option)
    if chosen.ndim == 0:
        return np.full(n_features, bool(option))
    if chosen.dtype.kind == "b" and chosen.shape == (n_features,):
        return chosen.copy()
    numbers = chosen
    if chosen.dtype.kind in "UO" and names is not None:
        index = {name: i for i, name in enumerate(names)}
        numbers = np.array([index.get(name, -1) for name in chosen])
    elif chosen.size == 0:
        numbers = chosen.astype(np.intp)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1 or ((numbers < 0) | (numbers >= n_features)).any():
        known = "without names" if names is None else f"named {', '.join(map(repr, names.tolist()))}"
        raise ValueError(
            f"discrete_features must be 'auto', a bool, a boolean mask of shape ({n_features},), a list of column "
            f"names, or a list of column numbers from 0 to {n_features - 1}, got {option!r} for columns {known}."
        )
    discrete = np.zeros(n_features, dtype=np.bool_)
    discrete[numbers] = True
    return discrete


def distinct_numbers(table: Table, features: IntArray, n_jobs: int | None = None) -> dict[int, AnyArray]:
    """Return the sorted distinct values of the columns that contain integers of a small range, by column number.

    The result does not contain columns with other numbers, a wide range, or missing integers.
    """
    views = strided_columns(table)
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
            tasks.append(bind(mark_present, view, (columns, low, low + TABLE_SPAN, present)))
            results.append((view, columns, low, present))
        run_in_blocks(tasks, views, table.n_samples, n_jobs)
        for view, *arrays in results:
            for k, low, marks in zip(*arrays, strict=True):
                if not marks[-2]:
                    found[view.columns[k].item()] = (np.flatnonzero(marks[:-2]) + low).astype(view.dtype)
    return found


def _lower_bound(view: StridedColumns, k: int, n_samples: int) -> int | None:
    """Return a lower bound for the first numbers of a column, or None if they are too large."""
    first = cells_of(*view[:3], k, 0, min(n_samples, _FIRST_ROWS))
    first = first[first == first]
    if not len(first):
        return 0
    lowest = float(first.min())
    return int(lowest // 1) if abs(lowest) < LARGEST_EXACT // 2 else None
