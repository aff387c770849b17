"""A table as the columns that it was read as, and as the pieces of memory that these lie in."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tanlearn._typing import AnyArray

__all__ = ["ArrayTable", "Column", "Panel", "Table", "where_any"]

# What kernels are compiled for; all else (half precision, foreign byte orders, odd steps) is copied column by column.
_TYPES = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")))


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, read once."""

    # (n_samples,): Booleans, integers, floating numbers, or strings and other Python objects. Indices into
    # ``categories`` where there are any.
    values: NDArray[Any]
    # (n_samples,): Rows without a value; ``None`` if every row has one. ``values`` is NaN there if floating, -1 if it
    # indexes ``categories``, and arbitrary otherwise.
    missing: NDArray[np.bool_] | None
    categories: NDArray[Any] | None  # (n_categories,): What ``values`` number
    place: str  # What messages call the column
    # Whether the column's own type declares the categories (pandas ``category``, polars ``Enum``), which then are all
    # that there are, in their order; others are strings in any order, and those that occur count
    is_declared: bool = True
    # Whether it declares besides that their order means something (pandas ``category`` with ``ordered=True``)
    is_ordered: bool = False

    def take(self, rows: NDArray[np.bool_]) -> Column:
        """Return some of the rows.

        Shapes: rows: (n_samples,).
        """
        missing = None if self.missing is None else where_any(self.missing[rows])
        return replace(self, values=self.values[rows], missing=missing)

    def numbers(self, *, were_numbers: bool = False) -> NDArray[Any]:
        """Return the column as numbers, NaN where missing; without missing values in its own type.

        Shapes: result: (n_samples,).
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
                    f"{self.place} holds {kind}, but held numbers in fit. Convert it to numbers, for example with "
                    f"pandas.to_numeric; None or NaN stands for a value that is not known."
                )
            raise TypeError(
                f"{self.place} holds {kind}, but only numbers can be discretised. Cast the column to numbers, or "
                f"treat it as categorical: see discrete_features of TableEncoder, or use CategoryEncoder."
            )
        if self.missing is None or self.values.dtype.kind == "f":
            return self.values
        return np.where(self.missing, np.nan, self.values)


class Panel(NamedTuple):
    """Columns of numbers that lie in one piece of memory: kernels reach them by two steps, whatever the order is.

    Cell ``(row, k)`` is ``memory[row * row_step + k * column_step]``.
    """

    # (n_cells,): Read-only, so that a kernel is compiled once for every type and not for every layout. Booleans lie
    # there as integers.
    memory: AnyArray
    row_step: int  # row_step, column_step: Steps from row to row and from column to column
    column_step: int
    columns: NDArray[np.intp]  # (n_columns,): Which columns of the table these are
    dtype: np.dtype[Any]  # What the table holds


class Table(Sequence[Column]):
    """The columns of a table."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns  # At least one, all of one length, and of one row at least

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, number: Any) -> Any:
        return self._columns[number]

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self._columns[0].values)

    @property
    def places(self) -> tuple[str, ...]:
        """What messages call the columns."""
        return tuple(column.place for column in self)

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Return some of the rows.

        Shapes: rows: (n_samples,).
        """
        return Table([column.take(rows) for column in self])

    def values_of(self, number: int) -> AnyArray | None:
        """Return the values of a column that holds numbers.

        Shapes: result: (n_samples,).
        """
        column = self._columns[number]
        return column.values if column.categories is None and column.values.dtype.kind in "biuf" else None

    def gaps(self, number: int) -> NDArray[np.bool_] | None:
        """Return the rows in which a column holds some number, and misses a value nevertheless.

        Shapes: result: (n_samples,).
        """
        column = self._columns[number]
        return None if column.values.dtype.kind == "f" else column.missing

    def panels(self) -> list[Panel]:
        """Return the columns that hold numbers as kernels reach them."""
        return [
            _panel(_plain(values)[:, np.newaxis], np.array([number]))
            for number in range(len(self))
            if (values := self.values_of(number)) is not None
        ]


class ArrayTable(Table):
    """The columns of a two-dimensional array of numbers, made one by one when they are asked for."""

    def __init__(
        self, values: AnyArray, has_gaps: NDArray[np.bool_] | None, places: Sequence[str] | None = None
    ) -> None:
        # (n_samples, n_features): Booleans, integers, or floating numbers of at most 64 bits, none of them infinite
        self.values = values
        self._has_gaps = has_gaps  # (n_features,): Which columns hold NaN; None if there is none
        self._places = places  # What messages call the columns; by default their numbers

    def __len__(self) -> int:
        return self.values.shape[1]

    def __iter__(self) -> Iterator[Column]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: Any) -> Any:
        number = range(len(self))[operator.index(number)]
        values = self.values[:, number]
        missing = None if self._has_gaps is None or not self._has_gaps[number] else np.isnan(values)
        return Column(values, missing, None, f"X column {number}" if self._places is None else self._places[number])

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def places(self) -> tuple[str, ...]:
        """What messages call the columns."""
        if self._places is None:
            self._places = tuple(f"X column {number}" for number in range(len(self)))
        return tuple(self._places)

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Return some of the rows.

        Shapes: rows: (n_samples,).
        """
        values = self.values[rows]
        has_gaps = None if self._has_gaps is None else where_any(np.any(np.isnan(values), axis=0))
        return ArrayTable(values, has_gaps, self._places)

    def values_of(self, number: int) -> AnyArray:
        """Return a column of the array, without looking for gaps.

        Shapes: result: (n_samples,).
        """
        return self.values[:, number]

    def gaps(self, number: int) -> NDArray[np.bool_] | None:
        """Return None, as arrays have gaps in floating numbers only."""
        return None

    def panels(self) -> list[Panel]:
        """Return the whole array, or column after column."""
        row_step, column_step = self.values.strides
        if _is_plain(self.values) and (row_step >= column_step or self.n_samples == 1):
            return [_panel(self.values, np.arange(len(self)))]
        return super().panels()


def where_any(mask: Any) -> NDArray[np.bool_] | None:
    """Return a mask, or None if it is empty.

    Shapes: mask: (n_samples,).
    """
    return mask if mask.any() else None


def _is_plain(values: AnyArray) -> bool:
    """Return whether kernels can step through an array as it is."""
    steps = [step for step, size in zip(values.strides, values.shape, strict=True) if size > 1]
    return (
        (values.dtype in _TYPES or values.dtype == np.bool_)
        and values.flags.aligned
        and all(step > 0 and step % values.itemsize == 0 for step in steps)
    )


def _plain(values: AnyArray) -> AnyArray:
    """Return a column, or a copy of it that kernels can step through."""
    if _is_plain(values):
        return values
    is_half = values.dtype.kind == "f" and values.itemsize == 2  # in any byte order
    return np.ascontiguousarray(values, np.float32 if is_half else values.dtype.newbyteorder("="))


def _panel(values: AnyArray, columns: NDArray[np.intp]) -> Panel:
    """Return what kernels step through."""
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
    return Panel(memory, row_step, column_step, columns, dtype)
