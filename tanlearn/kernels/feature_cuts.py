"""Cuts of features: where classes are told apart best, as a tree of one feature would place them, or anywhere."""
# Shapes: n samples, d features, V values of a feature (at most), C classes, B most intervals.
# codes (d, n), missing from n_states (d,) on; y, weight, drawn (n,); counts (V, C); units: x log x of whole numbers
# left, right (C,), first, last, place, gain (B,), reached (V,): scratch; is_cut (V,): after which values there is a cut
# n_cuts (d,): of every feature, B - 1 at most; quantiles (d, B - 1)

from __future__ import annotations

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.back_off import find
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


@kernel
def quantile_cuts(x, n_values, weight, quantiles, reached, is_cut):  # type: ignore[no-untyped-def]
    """Write a cut at every quantile of those of a feature's codes that others are above."""
    reached[:n_values] = 0.0
    for r in range(x.shape[0]):
        if x[r] < n_values:
            reached[x[r]] += weight[r]
    for v in range(1, n_values):
        reached[v] += reached[v - 1]
    last = n_values - 1
    if last > 0 and reached[last - 1] > 0.0:
        for b in range(quantiles.shape[0]):
            is_cut[find(reached, 0, last, quantiles[b] * reached[last - 1])] = True


@kernel
def cut_features(  # type: ignore[no-untyped-def]
    codes,
    n_states,
    y,
    weight,
    drawn,
    is_ordered,
    is_supervised,
    n_cuts,
    quantiles,
    scale,
    units,
    scratch,
    start,
    merged,
):
    """Write which of its merged values every value of a feature becomes, merged[start[i]:start[i] + n_states[i]].

    Features without an order keep their values. drawn: how often a sample counts where classes are told apart.
    """
    counts, left, right, first, last, place, gain, reached, is_cut = scratch
    for i in range(codes.shape[0]):
        x, n_values = codes[i], n_states[i]
        is_cut[:n_values] = not is_ordered[i]
        if is_ordered[i] and is_supervised[i]:
            counts[:n_values] = 0
            for r in range(x.shape[0]):
                if x[r] < n_values:
                    counts[x[r], y[r]] += drawn[r]
            entropy_cuts(
                counts[:n_values], n_cuts[i], scale, units, left, right, first, last, place, gain, is_cut[:n_values]
            )
        elif is_ordered[i]:
            quantile_cuts(x, n_values, weight, quantiles[i, : n_cuts[i]], reached, is_cut)
        code = 0
        for v in range(n_values):
            merged[start[i] + v] = code
            code += is_cut[v]


@kernel
def merge_codes(codes, n_states, start, merged, out):  # type: ignore[no-untyped-def]
    """Write what codes become; from n_states on they are missing, and become what comes behind the others."""
    for i in range(codes.shape[0]):
        table = merged[start[i] : start[i + 1]]
        last = n_states[i]
        for r in range(codes.shape[1]):
            out[i, r] = table[min(codes[i, r], last)]
