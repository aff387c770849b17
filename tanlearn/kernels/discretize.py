"""Supervised discretisation of one feature: recursive binary cuts of least class entropy with the MDL stop.

U. Fayyad and K. Irani, "Multi-interval discretization of continuous-valued attributes for classification
learning", IJCAI 1993, 1022-1027.
"""
# keys (n,) and spare (n,) of uint64; count (N_DIGITS * 2**DIGIT_BITS,): scratch
# n samples in increasing order of x (n,), with classes y (n,) and weight (n,); V sets of neighbouring values that no
# cut can part, from first (V,) to last (V,); E entries (pairs of a set and a class that occurs in it), C classes
# start (V + 1,): the entries of set v are start[v]..start[v + 1] - 1
# classes (E,), weights (E,): which class an entry counts and how much; is_cut (V - 1,): a cut after set v
# units (N,): x log x of 0, 1, ..., N - 1 in units of 1 / scale; empty where weights are no whole numbers
#
# Every decision rests on these counts and never on rows, so a row of weight 2 is exactly the row twice.

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import log_normal, tabulated_xlogx, xlogx

# A cut must beat the best one so far by this share of n log n. Cuts that mirror each other have equal
# entropies, which the rounding of weights that are no integers must not order: the lowest wins.
TIE = 1e-12
LOG_3 = 1.0986122886681098
#: Keys are sorted by so many digits of so many bits: their counts take 98 kB.
N_DIGITS = 6
DIGIT_BITS = 11
_RADIX = 2**DIGIT_BITS
_DIGIT = np.uint64(_RADIX - 1)
#: Beyond, 2 is nothing beside 3^k in float64.
_MOST_CLASSES = 34
_LARGEST = 2**63 - 1


@kernel
def sort_keys(keys, spare, count):  # type: ignore[no-untyped-def]
    """Sort keys by their digits, the lowest first; return whether the result is in spare.

    Digits that all keys share are passed over: of whole and of single-precision numbers these are half of them.
    """
    n = keys.shape[0]
    count[:] = 0
    for k in range(n):
        key = keys[k]
        for d in range(N_DIGITS):
            count[d * _RADIX + np.int64((key >> np.uint64(d * DIGIT_BITS)) & _DIGIT)] += 1
    swapped = False
    for d in range(N_DIGITS):
        place = count[d * _RADIX : (d + 1) * _RADIX]
        if place.max() == n:
            continue
        total = 0
        for b in range(_RADIX):
            total += place[b]
            place[b] = total - place[b]
        source, target = (spare, keys) if swapped else (keys, spare)
        shift = np.uint64(d * DIGIT_BITS)
        for k in range(n):
            digit = np.int64((source[k] >> shift) & _DIGIT)
            target[place[digit]] = source[k]
            place[digit] += 1
        swapped = not swapped
    return swapped


@kernel
def merge_runs(x, y, begin, middle, end, out_x, out_y):  # type: ignore[no-untyped-def]
    """Write the samples of two increasing runs, begin..middle - 1 and middle..end - 1, as one."""
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
    out_x[k : k + rest] = x[i:middle]
    out_y[k : k + rest] = y[i:middle]
    out_x[k + rest : end] = x[j:end]
    out_y[k + rest : end] = y[j:end]


@kernel
def collapse(x, y, weight, joins, slot, first, last, start, classes, weights):  # type: ignore[no-untyped-def]
    """Sum the weights of every set and class; return the number of sets.

    A set is one distinct value or, where ``joins``, a run of values that all belong to one and the same class: sums of
    whole weights are exact in any order. slot (C,) starts at -1 and remembers the entry of every class.
    """
    n_sets = 0
    n_entries = 0
    for i in range(x.shape[0]):
        c = y[i]
        if i == 0 or x[i] != last[n_sets - 1]:
            # How many classes the set before has decides when it is complete, which is now.
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
    """Return the set of low..high - 1 before which a cut leaves the least class entropy; low if there is none.

    The minimum lies at a boundary point (Theorem 1 of the paper): between two values that do not both belong
    to one and the same class. |S| E(A, T; S) = sum over sides of (n log n - sum over classes of n_c log n_c), in
    units of 1 / scale.
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
            # The sum of all terms is kept: of integers it is the same as if it were added up anew.
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
    """Count the classes of the sets low..high - 1; return their sum."""
    counts[:] = 0.0
    n = 0.0
    for e in range(start[low], start[high]):
        counts[classes[e]] += weights[e]
        n += weights[e]
    return n


@kernel
def set_entropy(counts, n, scale):  # type: ignore[no-untyped-def]
    """Return n times the class entropy of counts that sum to n, in units."""
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
    """Return whether the MDL principle pays for the cut (the paper's MDLPC criterion).

    Gain > log2(N - 1) / N + (log2(3^k - 2) - [k H(S) - k1 H(S1) - k2 H(S2)]) / N, here multiplied by N ln 2.
    """
    n = count_set(start, classes, weights, low, high, counts)
    if n < 2.0 * (
        1.0 - TIE
    ):  # less than the weight of two rows: nothing to separate, and log(n - 1) < 0 would pay for cuts
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


@kernel
def mdlp_cuts(start, classes, weights, n_classes, scale, units, is_cut):  # type: ignore[no-untyped-def]
    """Mark all accepted cuts in is_cut, which starts False.

    The marks are the stack of the recursion: the open intervals to the right end at the next mark.
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
