"""Conditional mutual information of pairs of features, whose counts are kept only as long as needed.

Sums of ``xlogx`` are sums of integers, so the order in which the counts of a pair are visited does not matter. For
integer weights the result is bit-identical to ``conditional_mutual_information``.
"""
# Shapes: n samples, d features, C classes, W words of bits (kernels/bits.py). codes (d, n); y (n,); weight (n,)
# A feature has one bit set per value if some samples miss it, and otherwise one per value except the last, whose set
# is the complement. The sets of feature f of a tile are columns start[f]:start[f + 1].
# is_wanted, information (rows, columns): of features and others
# margins ((values of both + 1) * C,), counts (values of one * values of the other * C,): scratch

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.bits import count_shared
from tanlearn.kernels.counts import add_pair, conditional_mutual_information
from tanlearn.kernels.mathematics import nats, tabulated_xlogx, unit_scale, xlogx


class Tile(NamedTuple):
    """Group of features whose bit sets fit in the cache together: F features with V sets."""

    bits: Any  # uint64 (W, V) bit sets
    start: Any  # intp (F + 1,) first set of each feature
    n_states: Any  # intp (F,)
    sizes: Any  # int64 (C, V) number of samples of each class in each set
    own_units: Any  # int64 (F,) sum of x log x over values and classes, for features without missing values
    position: Any  # intp (F,) row or column of each feature in information


class Classes(NamedTuple):
    """Number of samples of each class, and x log x of integers."""

    word: Any  # intp (C + 1,) the samples of class c are in words word[c]:word[c + 1]
    size: Any  # int64 (C,) number of samples
    scales: Any  # float64 (L,) increasing powers of two; the first is that of all samples
    units: Any  # int64 (L, M) x log x of 0 to M - 1, in units of 1 / scales[l]


class Scratch(NamedTuple):
    """Work arrays for a pair of tiles whose features have up to K values."""

    shared: Any  # int64 (C, K, V) number of common samples
    rest: Any  # int64 (V,)
    cells: Any  # int64 (V,)
    lasts: Any  # int64 (F,)
    totals: Any  # int64 (F,)
    counts: Any  # int64 (K * K * C,)
    margins: Any  # int64 ((2 K + 1) * C,)


@kernel
def sum_own_units(start, sizes, classes, own_units):  # type: ignore[no-untyped-def]
    """Write the sum of x log x over the values and classes of each feature, as if it had no missing values."""
    scale, row = classes.scales[0], classes.units[0]
    for f in range(own_units.shape[0]):
        total = np.int64(0)
        for c in range(classes.size.shape[0]):
            rest = classes.size[c]
            for v in range(start[f], start[f + 1]):
                total += tabulated_xlogx(sizes[c, v], scale, row)
                rest -= sizes[c, v]
            total += tabulated_xlogx(rest, scale, row)
        own_units[f] = total


@kernel
def add_xlogx(values, largest, scale, row, totals):  # type: ignore[no-untyped-def]
    """Add x log x of each value in units of 1 / scale; from the lookup table if ``largest`` is within it."""
    if largest < row.shape[0]:
        for k in range(values.shape[0]):
            totals[k] += row[np.uint64(values[k])]  # unsigned indices, so that the loop is vectorized
    else:
        for k in range(values.shape[0]):
            totals[k] += xlogx(values[k], scale)


@kernel
def sum_cell_units(shared, tile, f, other, n_others, classes, rest, lasts, cells, totals):  # type: ignore[no-untyped-def]
    """Write the sum of x log x over the joint counts of a feature and each of some others, as if no value were missing.

    Only pairs of sets are counted; the counts of last values follow by subtraction. All other features are processed
    together, because each has few counts.
    """
    scale, row = classes.scales[0], classes.units[0]
    start, width = other.start, other.start[n_others]
    column, n_sets = tile.start[f], tile.start[f + 1] - tile.start[f]
    rest, cells, lasts, totals = rest[:width], cells[:width], lasts[:n_others], totals[:n_others]
    cells[:] = 0
    totals[:] = 0
    for c in range(classes.size.shape[0]):
        sizes = other.sizes[c][:width]
        for v in range(width):
            rest[v] = sizes[v]
        left = classes.size[c]
        for x in range(n_sets + 1):
            # The count of the last value follows by subtraction.
            own = shared[c, x][:width] if x < n_sets else rest
            size = tile.sizes[c, column + x] if x < n_sets else left
            left -= size
            if x < n_sets:
                for v in range(width):
                    rest[v] -= own[v]
            for q in range(n_others):
                last = size
                for z in range(start[q], start[q + 1]):
                    last -= own[z]
                lasts[q] = last
            add_xlogx(own, classes.size[c], scale, row, cells)
            add_xlogx(lasts, classes.size[c], scale, row, totals)
    for q in range(n_others):
        for z in range(start[q], start[q + 1]):
            totals[q] += cells[z]


@kernel
def fill_table(shared, tile, f, other, q, counts):  # type: ignore[no-untyped-def]
    """Write the counts [x][z][c] of two features of which at least one has missing values."""
    n_classes = shared.shape[0]
    first, n_others, n_parent = other.start[q], other.start[q + 1] - other.start[q], other.n_states[q]
    column, n_sets, n_values = tile.start[f], tile.start[f + 1] - tile.start[f], tile.n_states[f]
    for c in range(n_classes):
        for z in range(n_others):
            rest = other.sizes[c, first + z]
            for x in range(n_sets):
                counts[(x * n_parent + z) * n_classes + c] = shared[c, x, first + z]
                rest -= shared[c, x, first + z]
            if n_sets < n_values:
                counts[(n_sets * n_parent + z) * n_classes + c] = rest
        if n_others < n_parent:
            for x in range(n_sets):
                rest = tile.sizes[c, column + x]
                for z in range(n_others):
                    rest -= shared[c, x, first + z]
                counts[(x * n_parent + n_others) * n_classes + c] = rest


@kernel
def tabulated_information(counts, n_values, n_parent, n_classes, margins, scales, units):  # type: ignore[no-untyped-def]
    """Return the result of ``conditional_mutual_information`` for integer counts, with x log x from a lookup table."""
    n_sides = (n_values + n_parent) * n_classes
    margins[: n_sides + n_classes] = 0
    for x in range(n_values):
        for z in range(n_parent):
            for c in range(n_classes):
                count = counts[(x * n_parent + z) * n_classes + c]
                margins[x * n_classes + c] += count
                margins[(n_values + z) * n_classes + c] += count
                margins[n_sides + c] += count
    n_samples = np.int64(0)
    for c in range(n_classes):
        n_samples += margins[n_sides + c]
    if n_samples == 0:
        return 0.0
    needed, level = unit_scale(np.float64(n_samples)), 0
    while scales[level] < needed:
        level += 1
    scale, row = scales[level], units[level]
    total = np.int64(0)
    for k in range(n_values * n_parent * n_classes):
        total += tabulated_xlogx(counts[k], scale, row)
    for k in range(n_sides):
        total -= tabulated_xlogx(margins[k], scale, row)
    for k in range(n_sides, n_sides + n_classes):
        total += tabulated_xlogx(margins[k], scale, row)
    return nats(total, scale, np.float64(n_samples))


@kernel
def packed_information(tile, other, is_same, classes, scratch, information):  # type: ignore[no-untyped-def]
    """Write I(X; Z | C) for each X of a tile and each Z of another tile, or each Z before X of the same tile."""
    shared, rest, cells, lasts, totals, counts, margins = scratch
    n_classes = classes.size.shape[0]
    scale, row = classes.scales[0], classes.units[0]
    n_samples, class_units = np.int64(0), np.int64(0)
    for c in range(n_classes):
        n_samples += classes.size[c]
        class_units += tabulated_xlogx(classes.size[c], scale, row)
    for f in range(tile.n_states.shape[0]):
        first, n_sets, n_values = tile.start[f], tile.start[f + 1] - tile.start[f], tile.n_states[f]
        n_others = f if is_same else other.n_states.shape[0]
        is_complete = n_sets < n_values
        for c in range(n_classes):
            width, begin, end = other.start[n_others], classes.word[c], classes.word[c + 1]
            count_shared(tile.bits, first, n_sets, other.bits, width, begin, end, shared[c])
        if is_complete:
            sum_cell_units(shared, tile, f, other, n_others, classes, rest, lasts, cells, totals)
        for q in range(n_others):
            n_parent = other.n_states[q]
            if is_complete and other.start[q + 1] - other.start[q] < n_parent:
                total = totals[q] + class_units - tile.own_units[f] - other.own_units[q]
                found = nats(total, scale, np.float64(n_samples))
            else:
                fill_table(shared, tile, f, other, q, counts)
                table = counts[: n_values * n_parent * n_classes]
                found = tabulated_information(
                    table, n_values, n_parent, n_classes, margins, classes.scales, classes.units
                )
            information[tile.position[f], other.position[q]] = found


@kernel
def counted_information(  # type: ignore[no-untyped-def]
    codes, y, weight, features, others, is_wanted, n_states, n_classes, missing, counts, margins, information
):
    """Write I(X; Z | C) for the wanted pairs of features and others, each from its own counts.

    The later feature of a pair is always first, so that sums of real weights have a fixed order.
    """
    for r in range(features.shape[0]):
        for q in range(others.shape[0]):
            if is_wanted[r, q]:
                high, low = max(features[r], others[q]), min(features[r], others[q])
                table = counts[: n_states[high] * n_states[low] * n_classes]
                table[:] = 0
                add_pair(codes[high], codes[low], y, weight, n_states[low], n_classes, missing, table)
                information[r, q] = conditional_mutual_information(
                    table, n_states[high], n_states[low], n_classes, margins
                )


@kernel
def listed_information(  # type: ignore[no-untyped-def]
    codes, n_states, y, weight, features, others, start, n_classes, scale, units, places, counts, margins, information
):
    """Write I(X; Z | C) of each feature and each of others[start[f]:start[f + 1]], each pair from its own counts.

    Codes from n_states on are missing. ``units`` is x log x of integers, empty for real weights. ``counts`` are 0
    before and after. ``places`` (n,) is scratch.
    """
    for f in range(features.shape[0]):
        x, n_values = codes[features[f]], n_states[features[f]]
        width = n_values * n_classes
        for r in range(y.shape[0]):
            places[r] = np.intp(x[r]) * n_classes + y[r] if x[r] < n_values else -1
        for q in range(start[f], start[f + 1]):
            z, n_parent = codes[others[q]], n_states[others[q]]
            for r in range(y.shape[0]):
                if places[r] >= 0 and z[r] < n_parent:
                    counts[np.intp(z[r]) * width + places[r]] += weight[r]
            margins[: (n_values + n_parent + 1) * n_classes] = 0
            of_values, of_parent = margins[:width], margins[width : width + n_parent * n_classes]
            of_classes = margins[width + n_parent * n_classes :]
            total, found = 0.0, np.int64(0)
            if n_parent * width < y.shape[0]:
                for value in range(n_parent):
                    for k in range(width):
                        count = counts[value * width + k]
                        counts[value * width + k] = 0
                        found += tabulated_xlogx(count, scale, units)
                        of_values[k] += count
                        of_parent[value * n_classes + k % n_classes] += count
            else:  # 0 log 0 is 0, and most counts are 0
                for r in range(y.shape[0]):
                    if places[r] >= 0 and z[r] < n_parent:
                        k = np.intp(z[r]) * width + places[r]
                        found += tabulated_xlogx(counts[k], scale, units)
                        counts[k] = 0
                        of_values[places[r]] += weight[r]
                        of_parent[z[r] * n_classes + y[r]] += weight[r]
            for k in range(width):
                found -= tabulated_xlogx(of_values[k], scale, units)
                of_classes[k % n_classes] += of_values[k]
            for k in range(n_parent * n_classes):
                found -= tabulated_xlogx(of_parent[k], scale, units)
            for c in range(n_classes):
                found += tabulated_xlogx(of_classes[c], scale, units)
                total += of_classes[c]
            information[q] = nats(found, scale, total)
