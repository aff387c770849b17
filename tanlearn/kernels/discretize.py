"""Supervised discretisation of one feature: recursive binary cuts of least class entropy with the MDL stop.

U. Fayyad and K. Irani, "Multi-interval discretization of continuous-valued attributes for classification
learning", IJCAI 1993, 1022-1027.
"""
# n samples, V distinct values, E entries (pairs of a distinct value and a class that occurs at it), C classes
# order (n,) sorts x; start (V + 1,): the entries of value v are start[v]..start[v + 1] - 1
# classes (E,), weights (E,): which class an entry counts and how much; is_cut (V - 1,): a cut after value v
#
# Every decision rests on these counts and never on rows, so a row of weight 2 is exactly the row twice.

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import log_normal, unit_scale, xlogx

# A cut must beat the best one so far by this share of n log n. Cuts that mirror each other have equal
# entropies, which the rounding of weights that are no integers must not order: the lowest wins.
TIE = 1e-12
LOG_3 = 1.0986122886681098
#: Beyond, 2 is nothing beside 3^k in float64.
_MOST_CLASSES = 34
_LARGEST = 2**63 - 1


@kernel
def collapse(x, y, weight, order, slot, values, start, classes, weights):  # type: ignore[no-untyped-def]
    """Sum the weights of every distinct value and class; return the number of distinct values.

    slot (C,) starts at -1 and remembers the entry of every class.
    """
    n_values = 0
    n_entries = 0
    for i in range(order.shape[0]):
        row = order[i]
        if i == 0 or x[row] != values[n_values - 1]:
            values[n_values] = x[row]
            start[n_values] = n_entries
            n_values += 1
        c = y[row]
        if slot[c] < start[n_values - 1]:
            slot[c] = n_entries
            classes[n_entries] = c
            weights[n_entries] = 0.0
            n_entries += 1
        weights[slot[c]] += weight[row]
    start[n_values] = n_entries
    return n_values


@kernel
def best_cut(start, classes, weights, low, high, scale, left, right, terms):  # type: ignore[no-untyped-def]
    """Return the value of low..high - 1 before which a cut leaves the least class entropy; low if there is none.

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
    for c in range(terms.shape[0]):
        terms[c] = xlogx(right[c], scale)
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
            terms[c] = xlogx(left[c], scale) + xlogx(right[c], scale)
        pure = start[v + 2] - start[v] == 2
        if pure and classes[start[v]] == classes[start[v + 1]]:
            continue
        entropy = xlogx(n_left, scale) + xlogx(n_right, scale)
        for c in range(terms.shape[0]):
            entropy -= terms[c]
        if entropy < best_entropy - tie:
            best_entropy = entropy
            best = v + 1
    return best


@kernel
def count_set(start, classes, weights, low, high, counts):  # type: ignore[no-untyped-def]
    """Count the classes of the values low..high - 1; return their sum."""
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
def mdlp_cuts(start, classes, weights, n_classes, is_cut):  # type: ignore[no-untyped-def]
    """Mark all accepted cuts in is_cut, which starts False.

    The marks are the stack of the recursion: the open intervals to the right end at the next mark.
    """
    left = np.empty(n_classes)
    right = np.empty(n_classes)
    terms = np.empty(n_classes)
    n_values = start.shape[0] - 1
    scale = unit_scale(weights[: start[n_values]].sum())
    low = 0
    high = n_values
    while low < n_values:
        cut = best_cut(start, classes, weights, low, high, scale, left, right, terms)
        if cut > low and accept_cut(start, classes, weights, low, cut, high, scale, terms):
            is_cut[cut - 1] = True
            high = cut
        else:
            low = high
            high = min(low + 1, n_values)
            while high < n_values and not is_cut[high - 1]:
                high += 1
