"""Columns in memory: a single column, a table of columns, and a table stored as a numeric matrix."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray

__all__ = ["LARGEST_EXACT", "TABLE_SPAN", "ArrayTable", "Column", "Table", "kind_of_value", "shorten"]

# Integers are looked up in an array over their whole span if the span is below this number or below four entries per
# category: 0.2 ms for 60,000 values instead of 2.
TABLE_SPAN = 2**12
#: Up to this value, 64-bit floats represent every integer and its two adjacent integers exactly.
LARGEST_EXACT = 2**53 - 2
_KINDS: dict[str, Any] = {"numbers": (Real, np.bool_), "strings": str, "bytes": bytes}


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the data."""

    # (n_samples,) booleans, numbers, strings or other Python objects; indices into categories if these are not None
    values: NDArray[Any]
    # (n_samples,) rows without a value; None if there are none, even if a mask without entries is passed. In these
    # rows, ``values`` is NaN for floats, -1 for indices into categories, and arbitrary otherwise
    missing: NDArray[np.bool_] | None
    categories: NDArray[Any] | None  # (n_categories,)
    label: str  # name of the column in messages
    # Whether the column's dtype declares the categories and their order (pandas category, polars Enum). Otherwise
    # categories are strings in any order, of which some may not occur
    is_declared: bool = True
    # Whether the declared categories are ordered (pandas category with ordered=True)
    is_ordered: bool = False

    def __post_init__(self) -> None:
        if self.missing is not None and not self.missing.any():
            object.__setattr__(self, "missing", None)

    def take(self, rows: NDArray[np.bool_]) -> Column:
        """Return the rows selected by a mask."""
        return replace(self, values=self.values[rows], missing=None if self.missing is None else self.missing[rows])

    @property
    def present(self) -> NDArray[np.bool_]:
        """Mask of the rows that have a value. Shape: (n_samples,)."""
        return np.ones(len(self.values), np.bool_) if self.missing is None else ~self.missing

    @property
    def present_values(self) -> NDArray[Any]:
        """Values without missing values. Shape: (n_present,)."""
        return self.values if self.missing is None else self.values[~self.missing]

    @property
    def objects(self) -> NDArray[Any]:
        """Values, with the categories themselves instead of indices into them. Shape: (n_samples,)."""
        return self.values if self.categories is None else self.categories[self.values]

    def value(self, row: int) -> Any:
        """Return the value in a row as a Python object."""
        value = self.values[row]
        return np.asarray(value if self.categories is None else self.categories[value]).item()

    def distinct_values(self) -> AnyArray:
        """Return the distinct values of a column without declared categories, sorted. Shape: (n_values,)."""
        values = self.present_values
        if values.dtype.kind in "iu" and values.size > 0:
            low, high = values.min(), values.max()
            span = int(high) - int(low)
            if span < TABLE_SPAN:
                # 16 us for 7,000 values; numpy.unique takes 94. Differences of 64-bit integers are correct even if they
                # wrap around.
                present = np.zeros(span + 1, np.bool_)
                present[values.astype(np.int64, copy=False) - low.astype(np.int64)] = True
                return np.flatnonzero(present).astype(values.dtype) + low
        if values.dtype.kind in "biuf":
            return np.unique(values)
        # A set takes 1 ms for 60,000 strings, sorting all of them 27 ms.
        return np.array(sorted(set(values.tolist())), dtype=object)

    def numbers(self, *, were_numbers: bool = False) -> NDArray[Any]:
        """Return the column as numbers, with NaN for missing values; without missing values, it keeps its dtype.

        Raises ``TypeError`` unless the column is numeric or entirely missing. ``were_numbers`` is True if the column
        was numeric in ``fit``; it selects the remedy in the message.
        """
        if self.missing is not None and self.missing.all():
            return np.full(len(self.values), np.nan)
        if self.categories is not None or self.values.dtype.kind not in "biuf":
            kind = "declared categories"
            if self.categories is None or not self.is_declared:
                first = self.values[0 if self.missing is None else self.missing.argmin()]
                kind = type(first if self.categories is None else self.categories[first]).__name__
            if were_numbers:
                row = 0 if self.missing is None else int(self.missing.argmin())
                example = f"{kind}, such as {shorten(self.value(row))} in row {row}"
                raise TypeError(
                    f"{self.label} holds {example}, but held numbers in fit. Convert it to numbers, for example with "
                    f"pandas.to_numeric; use None or NaN for a missing value."
                )
            raise TypeError(
                f"{self.label} holds {kind}, but only numbers can be discretized. Cast the column to numbers, or "
                f"treat it as categorical: see discrete_features of TableEncoder, or use CategoryEncoder."
            )
        if self.missing is None or self.values.dtype.kind == "f":
            return self.values
        return np.where(self.missing, np.nan, self.values)


class Table(Sequence[Column]):
    """Columns of equal length, at least one column and one row."""

    #: All columns as one array of shape (n_samples, n_features); None if they are separate arrays.
    matrix: AnyArray | None = None

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, number: Any) -> Any:
        return self._columns[number]

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self._columns[0].values)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns in messages."""
        return tuple(column.label for column in self)

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Return the rows selected by a mask."""
        return Table([column.take(rows) for column in self])

    def values_of(self, number: int) -> AnyArray | None:
        """Return the values (n_samples,) of a numeric column, or None for other columns."""
        column = self._columns[number]
        return column.values if column.categories is None and column.values.dtype.kind in "biuf" else None

    def missing_mask(self, number: int) -> NDArray[np.bool_] | None:
        """Return the mask of missing values of an integer or boolean column. Shape: (n_samples,).

        The result is None without missing values, and for floats, whose missing values are NaN.
        """
        column = self._columns[number]
        return None if column.values.dtype.kind == "f" else column.missing


class ArrayTable(Table):
    """Columns of a numeric matrix, created on access."""

    matrix: AnyArray

    def __init__(
        self, values: AnyArray, has_nan: NDArray[np.bool_] | None, labels: Sequence[str] | None = None
    ) -> None:
        self.matrix = values  # booleans, integers, or floats of at most 64 bits without infinity
        # (n_features,) columns that contain NaN; None if no column does
        self._has_nan = None if has_nan is None or not has_nan.any() else has_nan
        self._labels = labels  # names of the columns in messages; by default their numbers

    def __len__(self) -> int:
        return self.matrix.shape[1]

    def __iter__(self) -> Iterator[Column]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: Any) -> Any:
        number = range(len(self))[operator.index(number)]
        values = self.matrix[:, number]
        missing = None if self._has_nan is None or not self._has_nan[number] else np.isnan(values)
        return Column(values, missing, None, f"X column {number}" if self._labels is None else self._labels[number])

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.matrix)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns in messages."""
        if self._labels is None:
            self._labels = tuple(f"X column {number}" for number in range(len(self)))
        return tuple(self._labels)

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Return a copy of the rows selected by a mask."""
        values = self.matrix[rows]
        has_nan = None if self._has_nan is None else np.any(np.isnan(values), axis=0)
        return ArrayTable(values, has_nan, self._labels)

    def values_of(self, number: int) -> AnyArray:
        """Return one column (n_samples,) of the array, without a scan for missing values."""
        return self.matrix[:, number]

    def missing_mask(self, number: int) -> NDArray[np.bool_] | None:
        """Return None, because only floats can be missing in an array."""
        return None


def kind_of_value(value: Any) -> str:
    """Return the kind of a value; values of different kinds are never equal."""
    return next((name for name, kind in _KINDS.items() if isinstance(value, kind)), type(value).__name__)


def shorten(value: Any) -> str:
    """Return an abbreviated ``repr`` of any object, for messages."""
    try:
        return reprlib.repr(value)
    except ValueError:  # integers of more than 4,300 digits, before Python 3.12
        return f"one {type(value).__name__}"
