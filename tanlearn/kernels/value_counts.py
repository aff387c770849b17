"""Weights of distinct values per class: sorting, sums, and approximation by fewer points."""
# Shapes: n rows, or pairs of a value and a class; C classes, V distinct values
# bits (n,) int64: bits of float64 numbers; keys, spare_keys (n,): uint64; order, spare (n,): row numbers
# digits (8, 256): scratch; is_first (n,): whether a pair, sorted by value, is the first of its value
# classes (n,); weights (n,): positive, int64 or float64; sums (C,): scratch of zeros with the dtype of weights
# reached (V + 1,): dtype of weights, begins with zero; begin (V + 1,): scratch
# results, at most n: row (n,): position of the value; own (n,): class; weight (n,)
# Sums are added in the order of the rows.

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel

_BYTE = np.uint64(255)
_SIGN = np.uint64(2**63)


@kernel
def float_keys(bits, keys):  # type: ignore[no-untyped-def]
    """Write integers in the order of floating-point numbers.

    The sign bit of positive numbers is flipped, and all bits of negative numbers.
    """
    for k in range(bits.shape[0]):
        keys[k] = np.uint64(bits[k]) ^ (_SIGN | np.uint64(bits[k] >> 63))


@kernel
def sort_rows(keys, spare_keys, order, spare, digits):  # type: ignore[no-untyped-def]
    """Write the stable order of keys, byte by byte (radix sort); return whether the result is in ``spare``.

    Bytes that all keys share are skipped, so small integers need one or two passes. ``discretize.sort_keys`` sorts keys
    without row numbers, for data without weights.
    """
    n = keys.shape[0]
    digits[:] = 0
    for k in range(n):
        order[k] = k
        for d in range(8):
            digits[d, (keys[k] >> np.uint64(8 * d)) & _BYTE] += 1
    is_spare = False
    for d in range(8):
        shift, histogram = np.uint64(8 * d), digits[d]
        most = 0
        for b in range(256):
            most = max(most, histogram[b])
        if most == n:
            continue
        before = 0
        for b in range(256):
            count = histogram[b]
            histogram[b] = before
            before += count
        source, target = (spare_keys, keys) if is_spare else (keys, spare_keys)
        row, moved = (spare, order) if is_spare else (order, spare)
        for k in range(n):
            b = (source[k] >> shift) & _BYTE
            target[histogram[b]] = source[k]
            moved[histogram[b]] = row[k]
            histogram[b] += 1
        is_spare = not is_spare
    return is_spare


@kernel
def sum_rows(first, last, at, n_found, classes, weights, sums, row, own, weight):  # type: ignore[no-untyped-def]
    """Append the sum of each class over rows ``first`` to ``last``, for the value at ``at``; return the pair count."""
    low, high = classes[first], classes[first]
    for k in range(first, last):
        c = classes[k]
        sums[c] += weights[k]
        low, high = min(low, c), max(high, c)
    for c in range(low, high + 1):
        if sums[c] > 0:
            row[n_found], own[n_found], weight[n_found] = at, c, sums[c]
            n_found += 1
            sums[c] = 0
    return n_found


@kernel
def sum_values(is_first, classes, weights, sums, row, own, weight):  # type: ignore[no-untyped-def]
    """Write the sum of each pair of value and class, and return the number of pairs."""
    n_found, first = 0, 0
    for k in range(1, classes.shape[0] + 1):
        if k == classes.shape[0] or is_first[k]:
            n_found = sum_rows(first, k, first, n_found, classes, weights, sums, row, own, weight)
            first = k
    return n_found


@kernel
def sum_points(is_first, classes, weights, n_points, sums, reached, begin, row, own, weight, lost):  # type: ignore[no-untyped-def]
    """Write the sum of each group of adjacent values at one of these values, and return the number of pairs.

    lost (2,): largest errors of ranks, downwards and upwards.
    """
    n_values = 0
    for k in range(classes.shape[0]):
        if is_first[k]:
            begin[n_values] = k
            n_values += 1
            reached[n_values] = 0
        reached[n_values] += weights[k]
    begin[n_values] = classes.shape[0]
    for v in range(n_values):
        reached[v + 1] += reached[v]
    total = reached[n_values]
    n_found, first = 0, 0
    while first < n_values:
        # Number of the value's group; it is nondecreasing despite rounding.
        group = np.int64(reached[first] / total * n_points)
        last = first
        while last + 1 < n_values and np.int64(reached[last + 1] / total * n_points) == group:
            last += 1
        middle = reached[first] + (reached[last + 1] - reached[first]) / 2
        point = first
        while point < last and reached[point + 1] < middle:
            point += 1
        lost[0] = max(lost[0], reached[point] - reached[first])
        lost[1] = max(lost[1], reached[last + 1] - reached[point + 1])
        rows = begin[first], begin[last + 1], begin[point]
        n_found = sum_rows(*rows, n_found, classes, weights, sums, row, own, weight)
        first = last + 1
    return n_found
