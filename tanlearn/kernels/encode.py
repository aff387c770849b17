"""Encoding of numeric tables to codes, in blocks of rows, in the order of memory.

The work is done in tiles. Rows that are contiguous in memory are read row by row, because strided access defeats
hardware prefetching (0.10 s instead of 0.06 s for 50 million values). They are transposed to columns within the
first-level cache.
"""
# Shapes: n rows, S selected columns. Value (row, j) is memory[row * row_step + j * column_step]; memory (m,) has any
# numeric dtype. chosen (S,): numbers of the selected columns; target (S,): their rows of codes
# codes (d, n_all); first and last: the block of rows
# low and high (S,): integers low, ..., high - 1 have the positions 0, 1, ...; all others high - low, nan one more
# start (S,) and stop (S,): range of each column's lookup table or cut points in the concatenated array
# tile (rows of the tile * S,): positions, row by row if rows are contiguous, otherwise column by column
# A missing number is nan. Bounds are at most 2^53 for floating-point and uint64 memory, because Numba compares these
# with signed integers as floating-point numbers.

from __future__ import annotations

import numpy as np

from tanlearn.kernels._interpreter import interpretable
from tanlearn.kernels._jit import kernel

#: Rows per tile of several columns. For 50 columns of eight bytes, a tile takes 25 kB of the first-level cache.
TILE = 64
#: Rows per tile of one column. The overhead of a tile equals 100 values.
LONG_TILE = 2048
#: Up to this number of cut points, comparing a value with each of them in registers is faster than binary search, whose
#: branches are unpredictable: for 130 cut points, 9 ns per value instead of 35 ns (15 ns with vectors of two numbers).
_FEW_CUTS = 128


@kernel
def cells_of(memory, row_step, column_step, j, first, last):  # type: ignore[no-untyped-def]
    """Return the values of one column in a nonempty range of rows."""
    begin = first * row_step + j * column_step
    return memory[begin : begin + (last - first - 1) * row_step + 1 : row_step]


@kernel
def lies_in_rows(column_step, chosen):  # type: ignore[no-untyped-def]
    """Return whether the chosen values of a row are several contiguous values in memory."""
    return column_step == 1 and chosen.shape[0] > 1 and chosen[-1] - chosen[0] == chosen.shape[0] - 1


@kernel
def find_positions(memory, row_step, column_step, top, bottom, chosen, low, high, tile):  # type: ignore[no-untyped-def]
    """Write the positions of the values of a tile's rows."""
    width = chosen.shape[0]
    length = tile.shape[0] // width
    if lies_in_rows(column_step, chosen):
        for k in range(bottom - top):
            begin = (top + k) * row_step + chosen[0]
            x = memory[begin : begin + width]
            out = tile[k * width : (k + 1) * width]
            for s in range(width):
                value = x[s]
                inside = value >= low[s] and value < high[s]
                number = np.int64(value) if inside else low[s]
                position = number - low[s] if inside and number == value else high[s] - low[s]
                out[s] = position if value == value else high[s] - low[s] + 1
    else:
        for s in range(width):
            out = tile[s * length : (s + 1) * length]
            begin = top * row_step + chosen[s] * column_step
            if row_step == 1:  # vectorized, in half the time
                column_positions(memory[begin : begin + bottom - top], low[s], high[s], out)
            else:
                column_positions(cells_of(memory, row_step, column_step, chosen[s], top, bottom), low[s], high[s], out)


@kernel
def column_positions(x, low, high, out):  # type: ignore[no-untyped-def]
    """Write the positions of the values of one column."""
    for k in range(x.shape[0]):
        value = x[k]
        inside = value >= low and value < high
        number = np.int64(value) if inside else low
        position = number - low if inside and number == value else high - low
        out[k] = position if value == value else high - low + 1


@kernel
def positions_of(tile, s, width, in_rows):  # type: ignore[no-untyped-def]
    """Return the positions of one column of a tile."""
    length = tile.shape[0] // width
    return tile[s::width] if in_rows else tile[s * length : (s + 1) * length : 1]


@interpretable
@kernel
def mark_present(  # type: ignore[no-untyped-def]
    memory, row_step, column_step, first, last, chosen, low, high, present
):
    """Mark the positions that occur in present (S, high - low + 2).

    A mark is written only if it is not set, because threads share these arrays and their cache lines.
    """
    width = chosen.shape[0]
    in_rows = lies_in_rows(column_step, chosen)
    length = TILE if width > 1 else LONG_TILE
    tile = np.empty(length * width, np.uint16)
    for top in range(first, last, length):
        bottom = min(top + length, last)
        find_positions(memory, row_step, column_step, top, bottom, chosen, low, high, tile)
        for s in range(width):
            position = positions_of(tile, s, width, in_rows)
            marks = present[s]
            for k in range(bottom - top):
                if not marks[position[k]]:
                    marks[position[k]] = True


@interpretable
@kernel
def look_up(  # type: ignore[no-untyped-def]
    memory, row_step, column_step, first, last, chosen, target, low, high, start, table, codes
):
    """Write the code of each value: the entry of its position in the column's lookup table."""
    width = chosen.shape[0]
    in_rows = lies_in_rows(column_step, chosen)
    length = TILE if width > 1 else LONG_TILE
    tile = np.empty(length * width, np.uint32)
    for top in range(first, last, length):
        bottom = min(top + length, last)
        find_positions(memory, row_step, column_step, top, bottom, chosen, low, high, tile)
        for s in range(width):
            position = positions_of(tile, s, width, in_rows)
            known = table[start[s] : start[s] + high[s] - low[s] + 2]
            out = codes[target[s]][top:bottom]
            for k in range(bottom - top):
                out[k] = known[position[k]]


@interpretable
@kernel
def count_cuts_below(  # type: ignore[no-untyped-def]
    memory, row_step, column_step, first, last, chosen, target, start, stop, cuts, missing, codes
):
    """Write the number of cut points (increasing) below each value, and the code of a missing value for nan."""
    length = TILE if chosen.shape[0] > 1 else LONG_TILE
    numbers, found = np.zeros(length, np.float64), np.zeros(length, np.int64)
    for top in range(first, last, length):
        bottom = min(top + length, last)
        n = bottom - top
        for s in range(chosen.shape[0]):
            x = cells_of(memory, row_step, column_step, chosen[s], top, bottom)
            own = cuts[start[s] : stop[s]]
            for k in range(n):
                numbers[k] = np.float64(x[k])
                found[k] = 0
            if own.shape[0] <= _FEW_CUTS:
                fours = own.shape[0] // 4 * 4
                for c in range(0, fours, 4):  # four at a time, so that counters are read and written less often
                    one, two, three, four = own[c], own[c + 1], own[c + 2], own[c + 3]
                    for k in range(n):
                        x_k = numbers[k]
                        below = np.int64(x_k > one) + np.int64(x_k > two)
                        found[k] += below + np.int64(x_k > three) + np.int64(x_k > four)
                for c in range(fours, own.shape[0]):
                    cut = own[c]
                    for k in range(n):
                        found[k] += numbers[k] > cut
            else:
                for k in range(n):
                    position = 0
                    width = own.shape[0]
                    while width > 1:
                        half = width // 2
                        position += half if own[position + half - 1] < numbers[k] else 0
                        width -= half
                    found[k] = position + (own[position] < numbers[k])
            out = codes[target[s]][top:bottom]
            for k in range(n):
                out[k] = found[k] if numbers[k] == numbers[k] else missing


@interpretable
@kernel
def mean_of_states(memory, row_step, column_step, j, codes, weight, missing, total, mean):  # type: ignore[no-untyped-def]
    """Write the weight of each state's rows to total (n_states,) and their mean to mean (n_states,), initially 0."""
    x = cells_of(memory, row_step, column_step, j, 0, codes.shape[0])
    for k in range(codes.shape[0]):
        if codes[k] != missing:
            total[codes[k]] += weight[k]
    for k in range(codes.shape[0]):
        if codes[k] != missing:
            # Weights are divided first, so that no sum overflows.
            mean[codes[k]] += np.float64(x[k]) * (weight[k] / total[codes[k]])
