"""Strided views of numeric columns, and execution of kernels on these views in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray
from tanlearn.sources.table import Table

__all__ = ["StridedColumns", "bind", "run_in_blocks", "strided_columns"]

# Dtypes for which kernels are compiled. Other columns (half precision, foreign byte order, odd strides) are copied.
_TYPES = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")))
# Values per block. They are half a megabyte of 64-bit numbers, so that data read by one kernel are still in the
# second-level cache for the next kernel. A block takes 60 us, and a call 3 us.
_VALUES_PER_BLOCK = 2**16


class StridedColumns(NamedTuple):
    """Strided view of numeric columns in one block of memory, for kernels.

    The value in row ``row`` of column ``k`` is ``memory[row * row_step + k * column_step]``, for any memory order.
    """

    # (n_cells,) read-only and contiguous, so that a kernel is compiled once per dtype, not once per memory layout.
    # Booleans are viewed as integers.
    memory: AnyArray
    row_step: int
    column_step: int
    columns: NDArray[np.intp]  # (n_columns,) column numbers in the table
    dtype: np.dtype[Any]  # dtype of the table's values


def strided_columns(table: Table) -> list[StridedColumns]:
    """Return strided views of the numeric columns. Missing integers have arbitrary values.

    There is one view of a row-major array. Otherwise, there is one view per column, because kernels that process 50
    columns of a column-major array side by side take three times as long.
    """
    matrix = table.matrix
    if matrix is not None and _is_plain(matrix):
        row_step, column_step = matrix.strides
        if row_step >= column_step or len(matrix) == 1:
            return [_strided(matrix, np.arange(len(table)))]
    return [
        _strided(_plain(values)[:, np.newaxis], np.array([number]))
        for number in range(len(table))
        if (values := table.values_of(number)) is not None
    ]


def bind(kernel: Callable[..., None], view: StridedColumns, arrays: tuple[Any, ...]) -> Callable[[int, int], None]:
    """Bind a kernel to a view and its arrays. The result is a function of the first row and the row after the last."""
    memory, row_step, column_step = view[:3]
    return lambda first, last: kernel(memory, row_step, column_step, first, last, *arrays)


def run_in_blocks(
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
