"""Cuts that tell classes apart, as a tree of one feature would place them: best first, by class entropy."""
# Shapes: V values of a feature, C classes, B most intervals. counts (V, C); units: x log x of whole numbers
# left, right (C,), first, last, place, gain (B,): scratch; is_cut (V - 1,): after which values there is a cut

from __future__ import annotations

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import tabulated_xlogx


@kernel
def purest_cut(counts, first, last, scale, units, left, right):  # type: ignore[no-untyped-def]
    """Return after which of values[first:last] a cut takes most entropy away, and how much; the lowest of equals."""
    n_classes = counts.shape[1]
    n_left = n_right = 0
    for c in range(n_classes):
        left[c] = right[c] = 0
    for v in range(first, last):
        for c in range(n_classes):
            right[c] += counts[v, c]
    parts = 0
    for c in range(n_classes):
        n_right += right[c]
        parts += tabulated_xlogx(right[c], scale, units)
    whole = parts - tabulated_xlogx(n_right, scale, units)
    best, most = -1, 0
    for v in range(first, last - 1):
        size = 0
        for c in range(n_classes):
            n = counts[v, c]
            if n > 0:
                parts -= tabulated_xlogx(left[c], scale, units) + tabulated_xlogx(right[c], scale, units)
                left[c] += n
                right[c] -= n
                parts += tabulated_xlogx(left[c], scale, units) + tabulated_xlogx(right[c], scale, units)
                size += n
        if size == 0:
            continue
        n_left += size
        n_right -= size
        gain = parts - tabulated_xlogx(n_left, scale, units) - tabulated_xlogx(n_right, scale, units) - whole
        if gain > most:
            best, most = v, gain
    return best, most


@kernel
def entropy_cuts(counts, n_cuts, scale, units, left, right, first, last, place, gain, is_cut):  # type: ignore[no-untyped-def]
    """Write up to so many cuts, each where it takes most entropy away, whatever interval that is in."""
    first[0], last[0] = 0, counts.shape[0]
    place[0], gain[0] = purest_cut(counts, first[0], last[0], scale, units, left, right)
    for n in range(1, n_cuts + 1):
        most = 0
        for i in range(1, n):
            if gain[i] > gain[most]:
                most = i
        if gain[most] <= 0:
            break
        is_cut[place[most]] = True
        first[n], last[n] = place[most] + 1, last[most]
        last[most] = first[n]
        for i in (most, n):
            place[i], gain[i] = purest_cut(counts, first[i], last[i], scale, units, left, right)
