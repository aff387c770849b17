"""Cut points of a feature that separate classes among rows with the same value of another feature.

The recursive splits and the MDL criterion are from Fayyad and Irani (see ``discretize.py``). Class entropies are
summed over the values of the other feature, because each of them has its own class frequencies.
"""
# Shapes: n samples, B fine bins of the feature, increasing, m other features, S values of one of them, C classes
# fine (n,): B where missing; codes (m, n), at most n_values[j] - 1 for feature j, where missing values are a value
# y (n,): class; weight (n,); is_cut, found (B - 1,): whether there is a cut point after a bin
# counts (B, S, C): weight of each bin, value and class; left, right, whole (S, C)
# units (N,): x log x of 0, 1, ..., N - 1 in units of 1 / scale; empty if weights are not integers

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.discretize import LOG_3, TIE, count_present
from tanlearn.kernels.mathematics import log_normal, tabulated_xlogx, xlogx

_LARGEST = 2**63 - 1
_MOST_CLASSES = 34


@kernel
def entropy_of(counts, scale, units):  # type: ignore[no-untyped-def]
    """Return n log n minus the sum over classes of n_c log n_c, and n, for the class counts of one value."""
    n = 0.0
    total = np.int64(0)
    for c in range(counts.shape[0]):
        n += counts[c]
        total -= tabulated_xlogx(counts[c], scale, units)
    return total + tabulated_xlogx(n, scale, units), n


@kernel
def description(counts, scale, units):  # type: ignore[no-untyped-def]
    """Return the number of classes k that occur among the rows of one value, their number n and k times the entropy."""
    entropy, n = entropy_of(counts, scale, units)
    k = count_present(counts)
    return k, n, k * (entropy / n) / scale if n > 0.0 else 0.0


@kernel
def best_bin(counts, low, high, scale, units, left, right, whole):  # type: ignore[no-untyped-def]
    """Return the bin of low..high - 1 after which a cut point leaves the lowest entropy, and by how much it is lower.

    Returns -1 if no cut point has rows on both sides.
    """
    left[:] = 0.0
    right[:] = 0.0
    for b in range(low, high):
        for s in range(right.shape[0]):
            for c in range(right.shape[1]):
                right[s, c] += counts[b, s, c]
    entropy = np.int64(0)
    n_right = 0.0
    for s in range(right.shape[0]):
        whole[s], n = entropy_of(right[s], scale, units)
        entropy += whole[s]
        n_right += n
    before = entropy
    tie = np.int64(TIE * abs(xlogx(n_right, scale)))
    best = -1
    best_entropy = np.int64(_LARGEST)
    n_left = 0.0
    for b in range(low, high - 1):
        n_here = 0.0
        for s in range(right.shape[0]):
            n_value = 0.0
            for c in range(right.shape[1]):
                here = counts[b, s, c]
                left[s, c] += here
                right[s, c] -= here
                n_value += here
            if n_value > 0.0:
                entropy -= whole[s]
                own_left, _ = entropy_of(left[s], scale, units)
                own_right, _ = entropy_of(right[s], scale, units)
                whole[s] = own_left + own_right
                entropy += whole[s]
                n_here += n_value
        n_left += n_here
        n_right -= n_here
        if n_here > 0.0 and entropy < best_entropy - tie:
            best_entropy = entropy
            best = b
    return best, before - best_entropy


@kernel
def saved(counts, low, cut, high, gain, extra, scale, units, left, right):  # type: ignore[no-untyped-def]
    """Return by how many nats a cut point after bin ``cut`` shortens the description; it is accepted if above 0."""
    left[:] = 0.0
    right[:] = 0.0
    for b in range(low, high):
        side = left if b <= cut else right
        for s in range(right.shape[0]):
            for c in range(right.shape[1]):
                side[s, c] += counts[b, s, c]
    total = 0.0
    length = extra
    for s in range(right.shape[0]):
        _, n1, term1 = description(left[s], scale, units)
        _, n2, term2 = description(right[s], scale, units)
        total += n1 + n2
        if n1 > 0.0 and n2 > 0.0:
            for c in range(right.shape[1]):
                right[s, c] += left[s, c]
            k, _, term = description(right[s], scale, units)
            subsets = log_normal(3.0**k - 2.0) if k < _MOST_CLASSES else k * LOG_3
            length += subsets - (term - term1 - term2)
    if total < 2.0 * (1.0 - TIE):
        return 0.0
    return gain / scale - length - log_normal(total - 1.0)


@kernel
def interacting_cut_points(fine, codes, n_values, own, y, weight, n_classes, scale, units, is_cut):  # type: ignore[no-untyped-def]
    """Mark the cut points found with the other feature that shortens the description most, in ``is_cut`` (all False).

    ``own`` is the index of the feature itself in ``codes``. Each cut point pays for the choice of the other feature.
    """
    n_bins = is_cut.shape[0] + 1
    extra = log_normal(max(codes.shape[0] - 1.0, 1.0))
    most = 0.0
    found = np.zeros(is_cut.shape[0], np.bool_)
    for j in range(codes.shape[0]):
        if j == own or n_values[j] < 2:
            continue
        counts = np.zeros((n_bins, n_values[j], n_classes))
        left, right = np.empty((n_values[j], n_classes)), np.empty((n_values[j], n_classes))
        whole = np.empty(n_values[j], np.int64)
        for i in range(fine.shape[0]):
            if fine[i] < n_bins:
                counts[fine[i], codes[j, i], y[i]] += weight[i]
        found[:] = False
        total = 0.0
        low = 0
        high = n_bins
        while low < n_bins:  # the marks are the stack of the recursion: each open interval ends at the next mark
            cut, gain = best_bin(counts, low, high, scale, units, left, right, whole)
            savings = 0.0
            if cut >= 0:
                savings = saved(counts, low, cut, high, gain, extra, scale, units, left, right)
            if savings > 0.0:
                found[cut] = True
                total += savings
                high = cut + 1
            else:
                low = high
                high = min(low + 1, n_bins)
                while high < n_bins and not found[high - 1]:
                    high += 1
        if total > most:
            most = total
            is_cut[:] = found
