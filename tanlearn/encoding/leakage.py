"""Warnings about columns that may reveal the class, which are copies of the class and row numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn._warnings import warn
from tanlearn.encoding.column_warnings import ColumnKindWarning
from tanlearn.sources.table import Column, Table

__all__ = ["warn_of_leaking_columns"]

# In fewer rows, a feature with two values may equal the class by chance, and different integers may not be row numbers.
# Fifty random integers from a range of 200 are all different in one of 1,000 data sets.
_FEWEST_ROWS = 50
_LARGEST_RANGE = 4  # range of row numbers relative to the number of rows; data sets may be parts of larger ones


def warn_of_leaking_columns(columns: Table, n_states: IntArray, classes: AnyArray, codes: IntArray) -> None:
    """Warn about columns that equal the class in every row, and about columns that look like row numbers.

    ``n_states`` (n_features,) contains the number of values of each column, and ``codes`` (n_samples,) the class codes.
    Columns with a single value have no effect and are skipped.
    """
    if len(codes) < _FEWEST_ROWS:
        return
    found = [columns[i] for i in np.flatnonzero(n_states > 1).tolist()]
    equal = [column.label for column in found if _equals(column, classes, codes)]
    if equal:
        warn(
            f"y equals a column in every row: {_listed(equal)}. Leave it out of X if it contains the class, whose "
            f"values are unknown in new rows.",
            UserWarning,
        )
    numbers = [column.label for column in found if _numbers_rows(column)]
    if numbers:
        warn(
            f"a column looks like row numbers, because its integers are all different: {_listed(numbers)}. Leave it "
            f"out, because new rows have other numbers.",
            ColumnKindWarning,
        )


def _listed(labels: list[str]) -> str:
    """Return the first three labels."""
    return ", ".join(labels[:3]) + (f" and {len(labels) - 3:,} more" if len(labels) > 3 else "")


def _equals(column: Column, classes: AnyArray, codes: IntArray) -> bool:
    """Return whether a column contains the class of each row. Most columns differ in one of the first rows."""
    if column.missing is not None:
        return False
    if any(column.value(row) != classes[codes[row]] for row in range(_FEWEST_ROWS)):
        return False
    known: Any = column.values if column.categories is None else column.categories
    own = known if column.categories is None else known[column.values]
    return bool(np.array_equal(own, classes[codes]))


def _numbers_rows(column: Column) -> bool:
    """Return whether the integers of a column are all different, and from a range of about the number of rows."""
    values = column.values
    if column.categories is not None or column.missing is not None or values.dtype.kind not in "iu":
        return False
    if len(set(values[:_FEWEST_ROWS].tolist())) < _FEWEST_ROWS:
        return False
    low, high = int(values.min()), int(values.max())
    if high - low >= _LARGEST_RANGE * len(values):
        return False
    return bool(np.bincount((values - low).astype(np.int64)).max() == 1)
