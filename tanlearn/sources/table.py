"""In-memory data as columns, and strided views of numeric columns for kernels."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tanlearn._typing import AnyArray

__all__ = ["ArrayTable", "Column", "StridedColumns", "Table", "mask_or_none"]

# Dtypes that kernels are compiled for. Others (half precision, foreign byte order, odd strides) are copied by column.
_TYPES = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")))


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the data."""

    # (n_samples,) booleans, numbers, strings or other Python objects; indices into categories if these are not None
    values: NDArray[Any]
    # (n_samples,) rows without a value; None if there are none. There, values is NaN for floats, -1 for indices into
    # categories, and arbitrary otherwise
    missing: NDArray[np.bool_] | None
    categories: NDArray[Any] | None  # (n_categories,)
    label: str  # name of the column in messages
    # Whether the column's dtype declares the categories and their order (pandas category, polars Enum). Otherwise
    # categories are strings in any order, of which some may not occur
    is_declared: bool = True
    # Whether the declared categories are ordered (pandas category with ordered=True)
    is_ordered: bool = False

    def take(self, rows: NDArray[np.bool_]) -> Column:
        """Return the rows selected by a mask."""
        missing = None if self.missing is None else mask_or_none(self.missing[rows])
        return replace(self, values=self.values[rows], missing=missing)

    def numbers(self, *, were_numbers: bool = False) -> NDArray[Any]:
        """Return the column as numbers, NaN where missing; without missing values in its own dtype.

        Raises ``TypeError`` unless the column is numeric or entirely missing. ``were_numbers`` selects the remedy in
        the message: the column was numeric in ``fit``.
        """
        if self.missing is not None and self.missing.all():
            return np.full(len(self.values), np.nan)
        if self.categories is not None or self.values.dtype.kind not in "biuf":
            kind = "declared categories"
            if self.categories is None or not self.is_declared:
                first = self.values[0 if self.missing is None else self.missing.argmin()]
                kind = type(first if self.categories is None else self.categories[first]).__name__
            if were_numbers:
                raise TypeError(
                    f"{self.label} holds {kind}, but held numbers in fit. Convert it to numbers, for example with "
                    f"pandas.to_numeric; use None or NaN for a missing value."
                )
            raise TypeError(
                f"{self.label} holds {kind}, but only numbers can be discretized. Cast the column to numbers, or "
                f"treat it as categorical: see discrete_features of TableEncoder, or use CategoryEncoder."
            )
        if self.missing is None or self.values.dtype.kind == "f":
            return self.values
        return np.where(self.missing, np.nan, self.values)


class StridedColumns(NamedTuple):
    """Strided view of numeric columns in one block of memory, for kernels.

    The value in row ``row`` of column ``k`` is ``memory[row * row_step + k * column_step]``, whatever the memory order.
    """

    # (n_cells,) read-only and contiguous, so that a kernel is compiled once per dtype and not for every memory layout.
    # Booleans are viewed as integers.
    memory: AnyArray
    row_step: int
    column_step: int
    columns: NDArray[np.intp]  # (n_columns,) column numbers in the table
    dtype: np.dtype[Any]  # dtype of the table's values


class Table(Sequence[Column]):
    """Columns of equal length, at least one column and one row."""

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
        """Return the values of a numeric column, shape (n_samples,); None for other columns."""
        column = self._columns[number]
        return column.values if column.categories is None and column.values.dtype.kind in "biuf" else None

    def missing_mask(self, number: int) -> NDArray[np.bool_] | None:
        """Return the mask of missing values of an integer or boolean column, shape (n_samples,).

        None without missing values, and for floats, whose missing values are NaN.
        """
        column = self._columns[number]
        return None if column.values.dtype.kind == "f" else column.missing

    def strided_columns(self) -> list[StridedColumns]:
        """Return strided views of the numeric columns, one per column; missing integers have arbitrary values."""
        return [
            _strided(_plain(values)[:, np.newaxis], np.array([number]))
            for number in range(len(self))
            if (values := self.values_of(number)) is not None
        ]


class ArrayTable(Table):
    """Columns of a numeric matrix, created on access."""

    def __init__(
        self, values: AnyArray, has_nan: NDArray[np.bool_] | None, labels: Sequence[str] | None = None
    ) -> None:
        # (n_samples, n_features) booleans, integers, or floats of at most 64 bits without infinity
        self.values = values
        self._has_nan = has_nan  # (n_features,) columns that contain NaN; None if no column does
        self._labels = labels  # names of the columns in messages; by default their numbers

    def __len__(self) -> int:
        return self.values.shape[1]

    def __iter__(self) -> Iterator[Column]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: Any) -> Any:
        number = range(len(self))[operator.index(number)]
        values = self.values[:, number]
        missing = None if self._has_nan is None or not self._has_nan[number] else np.isnan(values)
        return Column(values, missing, None, f"X column {number}" if self._labels is None else self._labels[number])

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns in messages."""
        if self._labels is None:
            self._labels = tuple(f"X column {number}" for number in range(len(self)))
        return tuple(self._labels)

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Return a copy of the rows selected by a mask."""
        values = self.values[rows]
        has_nan = None if self._has_nan is None else mask_or_none(np.any(np.isnan(values), axis=0))
        return ArrayTable(values, has_nan, self._labels)

    def values_of(self, number: int) -> AnyArray:
        """Return one column of the array, shape (n_samples,), without a scan for missing values."""
        return self.values[:, number]

    def missing_mask(self, number: int) -> NDArray[np.bool_] | None:
        """Return None, because only floats can be missing in an array."""
        return None

    def strided_columns(self) -> list[StridedColumns]:
        """Return one view of a row-major array, otherwise one view per column.

        Kernels that process 50 columns of a column-major array side by side take three times as long.
        """
        row_step, column_step = self.values.strides
        if _is_plain(self.values) and (row_step >= column_step or self.n_samples == 1):
            return [_strided(self.values, np.arange(len(self)))]
        return super().strided_columns()


def mask_or_none(mask: Any) -> NDArray[np.bool_] | None:
    """Return a mask, or None if no entry is set."""
    return mask if mask.any() else None


def _is_plain(values: AnyArray) -> bool:
    """Return whether kernels can step through an array without a copy."""
    steps = [step for step, size in zip(values.strides, values.shape, strict=True) if size > 1]
    return (
        (values.dtype in _TYPES or values.dtype == np.bool_)
        and values.flags.aligned
        and all(step > 0 and step % values.itemsize == 0 for step in steps)
    )


def _plain(values: AnyArray) -> AnyArray:
    """Return a column, copied if kernels cannot step through it."""
    if _is_plain(values):
        return values
    is_half = values.dtype.kind == "f" and values.itemsize == 2  # in any byte order
    return np.ascontiguousarray(values, np.float32 if is_half else values.dtype.newbyteorder("="))


def _strided(values: AnyArray, columns: NDArray[np.intp]) -> StridedColumns:
    """Return the strided view of an array that kernels can step through."""
    dtype = values.dtype
    if dtype == np.bool_:
        values = values.view(np.uint8)
    size = values.itemsize
    row_step, column_step = (step // size if n > 1 else 1 for step, n in zip(values.strides, values.shape, strict=True))
    if values.flags.c_contiguous:
        memory = values.reshape(-1)
    else:
        n_cells = (values.shape[0] - 1) * row_step + (values.shape[1] - 1) * column_step + 1
        memory = as_strided(values, (n_cells,), (size,))
    memory = memory.view()
    memory.flags.writeable = False
    return StridedColumns(memory, row_step, column_step, columns, dtype)
