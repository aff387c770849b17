"""Pair counts with bit sets: the number of samples of a class with two given values is the size of an intersection.

A set has one bit per sample, ordered by class, so one instruction counts 64 samples, or 512 on machines with suitable
vector instructions. The sets of all values are interleaved word by word: the inner loop runs over the many values
instead of the possibly few words of a class.
"""
# Shapes: n samples, d features, C classes, F packed features with V values in total, W words of 64 bits
# codes (d, n_all), read from sample `first` on; y (n,); bit (n,): bit number of each sample; features (F,), increasing
# start (F + 1,): the sets of packed feature p are columns start[p]:start[p + 1]; bits, others (W, V) uint64
# class_word (C + 1,), even: the words of class c are class_word[c]:class_word[c + 1]
# shared (C, values of p, values before p): scratch; pair_offset and counts as in kernels/counts.py

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel

_ONE = np.uint64(1)
_TWO = np.uint64(2)
_FOUR = np.uint64(4)
_TOP_BYTE = np.uint64(56)
_PAIRS = np.uint64(0x5555555555555555)
_NIBBLES = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)


@kernel
def popcount(x):  # type: ignore[no-untyped-def]
    """Return the number of ones of a uint64, in a form that LLVM compiles to the population-count instruction."""
    x = x - ((x >> _ONE) & _PAIRS)
    x = (x & _NIBBLES) + ((x >> _TWO) & _NIBBLES)
    x = (x + (x >> _FOUR)) & _BYTES
    return np.int64((x * _SUM) >> _TOP_BYTE)


@kernel
def number_samples(y, next_bit, bit):  # type: ignore[no-untyped-def]
    """Write the bit number of each sample, the next free one of its class; ``next_bit`` (C,) is advanced in place."""
    for k in range(y.shape[0]):
        bit[k] = next_bit[y[k]]
        next_bit[y[k]] += 1


@kernel
def pack_values(codes, first, bit, features, start, bits):  # type: ignore[no-untyped-def]
    """Add each sample to the sets of its values, except values without a set and missing values."""
    for p in range(features.shape[0]):
        x = codes[features[p]][first : first + bit.shape[0]]
        column, n_sets = start[p], start[p + 1] - start[p]
        for k in range(bit.shape[0]):
            if x[k] < n_sets:
                bits[bit[k] >> 6, column + x[k]] |= _ONE << np.uint64(bit[k] & 63)


@kernel
def count_shared(bits, column, n_sets, others, width, first, last, counts):  # type: ignore[no-untyped-def]
    """Write how many samples each set shares with each of the first ``width`` others, in words ``first`` to ``last``.

    The sets are ``n_sets`` columns from ``column`` on. Two words are processed at a time, so that the counters are read
    and written half as often (usps: 14 ms -> 11 ms).
    """
    for x in range(n_sets):
        counts[x][:width] = 0
    for w in range(first, last, 2):
        even, odd = bits[w], bits[w + 1]
        left, right = others[w][:width], others[w + 1][:width]
        for x in range(n_sets):
            own, other = even[column + x], odd[column + x]
            row = counts[x]
            for v in range(width):
                row[v] += popcount(left[v] & own) + popcount(right[v] & other)


@kernel
def count_packed_pairs(bits, class_word, p, features, start, n_classes, pair_offset, shared, counts):  # type: ignore[no-untyped-def]
    """Add the counts of (value of feature p, value of feature q, class) for each packed feature q < p."""
    width = start[p]
    n_values = start[p + 1] - width
    i = features[p]
    for c in range(n_classes):
        count_shared(bits, width, n_values, bits, width, class_word[c], class_word[c + 1], shared[c])
    for q in range(p):
        pair = i * (i - 1) // 2 + features[q]
        table = counts[pair_offset[pair] : pair_offset[pair + 1]]
        first, n_parent = start[q], start[q + 1] - start[q]
        for x in range(n_values):
            for z in range(n_parent):
                cells = table[(x * n_parent + z) * n_classes : (x * n_parent + z + 1) * n_classes]
                for c in range(n_classes):
                    cells[c] += shared[c, x, first + z]
