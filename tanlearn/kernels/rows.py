"""Rows of a CPT, one per sample, which are gathered, added to or multiplied as lanes (_lanes.py)."""
# Shapes: n samples, P = padded(C); rows (n * P,): the row of sample k is rows[k * P:(k + 1) * P]
# table (at least its size + LANES - 1,), because the last row, too, is read as whole registers
# start (n,): start of each sample's row in the table

from __future__ import annotations

from tanlearn.kernels._jit import kernel, shared_kernel
from tanlearn.kernels._lanes import LANES, add_up, load, multiply_add, splat, store


@shared_kernel
def dot_rows(rows, table, start):  # type: ignore[no-untyped-def]
    """Return the sum of ``rows`` times the samples' rows of the table; ``rows`` is zero beyond the classes."""
    n = start.shape[0]
    width = rows.shape[0] // n
    # Four independent sums hide the latency of additions.
    first, second, third, fourth = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    if width == LANES:  # the most common case, without the inner loop: 0.7 of the time
        for k in range(0, n - 3, 4):
            row = k * LANES
            first = multiply_add(load(rows, row), load(table, start[k]), first)
            second = multiply_add(load(rows, row + LANES), load(table, start[k + 1]), second)
            third = multiply_add(load(rows, row + 2 * LANES), load(table, start[k + 2]), third)
            fourth = multiply_add(load(rows, row + 3 * LANES), load(table, start[k + 3]), fourth)
    else:
        for k in range(0, n - 3, 4):
            for j in range(0, width, LANES):
                row = k * width + j
                first = multiply_add(load(rows, row), load(table, start[k] + j), first)
                second = multiply_add(load(rows, row + width), load(table, start[k + 1] + j), second)
                third = multiply_add(load(rows, row + 2 * width), load(table, start[k + 2] + j), third)
                fourth = multiply_add(load(rows, row + 3 * width), load(table, start[k + 3] + j), fourth)
    for k in range(n - n % 4, n):
        for j in range(0, width, LANES):
            first = multiply_add(load(rows, k * width + j), load(table, start[k] + j), first)
    return add_up(first + second + third + fourth)


@shared_kernel
def gather_rows(rows, table, start):  # type: ignore[no-untyped-def]
    """Add the samples' rows of the table to ``rows``; numbers beyond the classes are undefined."""
    width = rows.shape[0] // start.shape[0]
    for k in range(start.shape[0]):
        for j in range(0, width, LANES):
            store(rows, k * width + j, load(rows, k * width + j) + load(table, start[k] + j))


@shared_kernel
def add_rows(rows, table, start):  # type: ignore[no-untyped-def]
    """Add ``rows``, zero beyond the classes, to the samples' rows of the table."""
    width = rows.shape[0] // start.shape[0]
    for k in range(start.shape[0]):
        for j in range(0, width, LANES):
            store(table, start[k] + j, load(table, start[k] + j) + load(rows, k * width + j))


@kernel
def dot_observed_rows(rows, table, start, other, other_start):  # type: ignore[no-untyped-def]
    """Return the sum of ``rows`` times the samples' rows of the table, minus the sum of ``other``.

    Only samples with nonnegative ``start`` and ``other_start`` are included.
    """
    width = rows.shape[0] // start.shape[0]
    products, others = splat(0.0), 0.0
    for k in range(start.shape[0]):
        if start[k] >= 0 and other_start[k] >= 0:
            for j in range(0, width, LANES):
                products = multiply_add(load(rows, k * width + j), load(table, start[k] + j), products)
            others += other[k]
    return add_up(products) - others
