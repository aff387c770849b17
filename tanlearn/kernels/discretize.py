"""Supervised discretization of one feature: recursive binary splits of minimum class entropy with the MDL criterion.

U. Fayyad and K. Irani, "Multi-interval discretization of continuous-valued attributes for classification learning",
IJCAI 1993, 1022-1027.
"""
# keys (n,) and spare (n,) of uint64; count (N_DIGITS * 2**DIGIT_BITS,): scratch
# Shapes: n samples in increasing order of x (n,), with classes y (n,) and weight (n,); C classes; V sets of adjacent
# values that no cut point separates, from first (V,) to last (V,); E entries (pairs of a set and a class in it)
# start (V + 1,): the entries of set v are start[v]..start[v + 1] - 1
# classes (E,), weights (E,): class and weight of each entry; is_cut (V - 1,): whether there is a cut point after set v
# units (N,): x log x of 0, 1, ..., N - 1 in units of 1 / scale; empty if weights are not integers
#
# All decisions depend on these counts and not on rows, so a row of weight 2 exactly equals two rows.

from __future__ import annotations

import numpy as np

from tanlearn.kernels._interpreter import interpretable
from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import log_normal, tabulated_xlogx, xlogx

# A cut point replaces the best one so far only if it is better by this fraction of n log n. Symmetric cut points have
# equal entropies, whose order must not depend on rounding of real weights. Of equal cut points the lowest is chosen.
TIE = 1e-12
LOG_3 = 1.0986122886681098
#: Keys are sorted by N_DIGITS digits of DIGIT_BITS bits; the counts of digits take 98 kB.
N_DIGITS = 6
DIGIT_BITS = 11
_RADIX = 2**DIGIT_BITS
_DIGIT = np.uint64(_RADIX - 1)
#: From this number of classes on, 3^k - 2 equals 3^k in float64.
_MOST_CLASSES = 34
_LARGEST = 2**63 - 1


@kernel
def sort_keys(keys, spare, count):  # type: ignore[no-untyped-def]
    """Sort keys by their digits, lowest first (radix sort); return whether the result is in ``spare``.

    Digits that all keys share are skipped: half of the digits of integers and of single-precision numbers.
    """
    n = keys.shape[0]
    count[:] = 0
    for k in range(n):
        key = keys[k]
        for d in range(N_DIGITS):
            count[d * _RADIX + np.int64((key >> np.uint64(d * DIGIT_BITS)) & _DIGIT)] += 1
    swapped = False
    for d in range(N_DIGITS):
        histogram = count[d * _RADIX : (d + 1) * _RADIX]
        most = 0
        for b in range(_RADIX):
            most = max(most, histogram[b])
        if most == n:
            continue
        total = 0
        for b in range(_RADIX):
            total += histogram[b]
            histogram[b] = total - histogram[b]
        source, target = (spare, keys) if swapped else (keys, spare)
        shift = np.uint64(d * DIGIT_BITS)
        for k in range(n):
            digit = np.int64((source[k] >> shift) & _DIGIT)
            target[histogram[digit]] = source[k]
            histogram[digit] += 1
        swapped = not swapped
    return swapped


@kernel
def merge_runs(x, y, begin, middle, end, out_x, out_y):  # type: ignore[no-untyped-def]
    """Merge two increasing runs of samples, begin..middle - 1 and middle..end - 1."""
    i, j = begin, middle
    k = begin
    while i < middle and j < end:
        from_left = x[i] <= x[j]
        out_x[k] = x[i] if from_left else x[j]
        out_y[k] = y[i] if from_left else y[j]
        i += from_left
        j += not from_left
        k += 1
    rest = middle - i
    for s in range(rest):
        out_x[k + s], out_y[k + s] = x[i + s], y[i + s]
    for s in range(j, end):  # at the same positions, because both runs are merged up to here
        out_x[s], out_y[s] = x[s], y[s]


@interpretable
@kernel
def collapse(x, y, weight, joins, slot, first, last, start, classes, weights):  # type: ignore[no-untyped-def]
    """Sum the weights for each combination of set and class, and return the number of sets.

    A set is one distinct value or, if ``joins``, a run of values that all have one and the same class: sums of integer
    weights are exact in any order. slot (C,) must be initialized to -1 and holds the entry of each class.
    """
    n_sets = 0
    n_entries = 0
    for i in range(x.shape[0]):
        c = y[i]
        if i == 0 or x[i] != last[n_sets - 1]:
            # The previous set is complete now: merge it into the one before if both contain only the same class.
            two_pure = joins and n_sets > 1 and n_entries - start[n_sets - 2] == 2
            if two_pure and classes[n_entries - 1] == classes[n_entries - 2]:
                n_sets -= 1
                n_entries -= 1
                last[n_sets - 1] = last[n_sets]
                weights[n_entries - 1] += weights[n_entries]
                slot[classes[n_entries - 1]] = n_entries - 1
            first[n_sets] = x[i]
            last[n_sets] = x[i]
            start[n_sets] = n_entries
            n_sets += 1
        if slot[c] < start[n_sets - 1]:
            slot[c] = n_entries
            classes[n_entries] = c
            weights[n_entries] = 0.0
            n_entries += 1
        weights[slot[c]] += weight[i]
    start[n_sets] = n_entries
    return n_sets


@kernel
def best_cut(start, classes, weights, low, high, scale, units, left, right, terms):  # type: ignore[no-untyped-def]
    """Return the set of low..high - 1 before which a cut point gives the lowest class entropy; low if there is none.

    The minimum is at a boundary point (Theorem 1 of the paper): between two values that do not both have only one and
    the same class. |S| E(A, T; S) = sum over sides of (n log n - sum over classes of n_c log n_c), in units of 1 /
    scale.
    """
    left[:] = 0.0
    right[:] = 0.0
    n_left = 0.0
    n_right = 0.0
    for e in range(start[low], start[high]):
        right[classes[e]] += weights[e]
        n_right += weights[e]
    of_classes = np.int64(0)
    for c in range(terms.shape[0]):
        terms[c] = tabulated_xlogx(right[c], scale, units)
        of_classes += terms[c]
    tie = np.int64(TIE * abs(xlogx(n_right, scale)))
    best = low
    best_entropy = np.int64(_LARGEST)
    for v in range(low, high - 1):
        for e in range(start[v], start[v + 1]):
            c = classes[e]
            left[c] += weights[e]
            right[c] -= weights[e]
            n_left += weights[e]
            n_right -= weights[e]
            # The sum is updated incrementally, and the result is exact for integers.
            of_classes -= terms[c]
            terms[c] = tabulated_xlogx(left[c], scale, units) + tabulated_xlogx(right[c], scale, units)
            of_classes += terms[c]
        pure = start[v + 2] - start[v] == 2
        if pure and classes[start[v]] == classes[start[v + 1]]:
            continue
        entropy = tabulated_xlogx(n_left, scale, units) + tabulated_xlogx(n_right, scale, units) - of_classes
        if entropy < best_entropy - tie:
            best_entropy = entropy
            best = v + 1
    return best


@kernel
def count_set(start, classes, weights, low, high, counts):  # type: ignore[no-untyped-def]
    """Write the class counts of the sets low..high - 1; return their sum."""
    counts[:] = 0.0
    n = 0.0
    for e in range(start[low], start[high]):
        counts[classes[e]] += weights[e]
        n += weights[e]
    return n


@kernel
def set_entropy(counts, n, scale):  # type: ignore[no-untyped-def]
    """Return n times the class entropy of counts with sum n, in units."""
    units = xlogx(n, scale)
    for c in range(counts.shape[0]):
        units -= xlogx(counts[c], scale)
    return units


@kernel
def count_present(counts):  # type: ignore[no-untyped-def]
    """Return the number of classes that occur."""
    present = 0
    for c in range(counts.shape[0]):
        if counts[c] > 0.0:
            present += 1
    return present


@kernel
def accept_cut(start, classes, weights, low, cut, high, scale, counts):  # type: ignore[no-untyped-def]
    """Return whether the MDL criterion accepts the cut point (MDLPC in the paper).

    Gain > log2(N - 1) / N + (log2(3^k - 2) - [k H(S) - k1 H(S1) - k2 H(S2)]) / N, here multiplied by N ln 2.
    """
    n = count_set(start, classes, weights, low, high, counts)
    if n < 2.0 * (1.0 - TIE):  # rows that weigh less than two are not split: log(n - 1) < 0 would accept any cut point
        return False
    k = count_present(counts)
    units = set_entropy(counts, n, scale)
    n1 = count_set(start, classes, weights, low, cut, counts)
    k1 = count_present(counts)
    units1 = set_entropy(counts, n1, scale)
    n2 = count_set(start, classes, weights, cut, high, counts)
    k2 = count_present(counts)
    units2 = set_entropy(counts, n2, scale)
    subsets = log_normal(3.0**k - 2.0) if k < _MOST_CLASSES else k * LOG_3
    description = k * (units / n) - k1 * (units1 / n1) - k2 * (units2 / n2)
    return (units - units1 - units2) / scale > log_normal(n - 1.0) + subsets - description / scale


@interpretable
@kernel
def mdlp_cuts(start, classes, weights, n_classes, scale, units, is_cut):  # type: ignore[no-untyped-def]
    """Mark all accepted cut points in is_cut, which must be False initially.

    The marks are the stack of the recursion: each open interval to the right ends at the next mark.
    """
    left = np.empty(n_classes)
    right = np.empty(n_classes)
    terms = np.empty(n_classes, np.int64)
    counts = np.empty(n_classes)
    n_values = start.shape[0] - 1
    low = 0
    high = n_values
    while low < n_values:
        cut = best_cut(start, classes, weights, low, high, scale, units, left, right, terms)
        if cut > low and accept_cut(start, classes, weights, low, cut, high, scale, counts):
            is_cut[cut - 1] = True
            high = cut
        else:
            low = high
            high = min(low + 1, n_values)
            while high < n_values and not is_cut[high - 1]:
                high += 1
