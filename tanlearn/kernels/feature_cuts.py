"""Cut points of features for the networks of a forest: by class entropy, as in a decision tree, or at quantiles."""
# Shapes: n samples, d features, V the most values of a feature, C classes, B the most intervals
# codes (d, n), missing from n_states (d,) on; y, weight, drawn (n,); counts (V, C); units: x log x of integers
# left, right (2, C): scratch, counts and their x log x; first, last, position, gain (B,), reached (V,): scratch
# is_cut (V,): whether there is a cut point after a value; n_cuts (d,): per feature, at most B - 1; quantiles (d, B - 1)

from __future__ import annotations

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.context_scores import find
from tanlearn.kernels.mathematics import tabulated_xlogx


@kernel
def purest_cut(counts, first, last, scale, units, left, right):  # type: ignore[no-untyped-def]
    """Return the value in values[first:last] after which a cut point reduces entropy most, and by how much.

    Ties go to the lowest value; -1 and 0 if no cut point reduces the entropy.
    """
    n_classes = counts.shape[1]
    n_left = n_right = 0
    left[:], right[:] = 0, 0
    for v in range(first, last):
        for c in range(n_classes):
            right[0, c] += counts[v, c]
    parts = 0
    for c in range(n_classes):
        n_right += right[0, c]
        right[1, c] = tabulated_xlogx(right[0, c], scale, units)
        parts += right[1, c]
    whole = parts - tabulated_xlogx(n_right, scale, units)
    best, most = -1, 0
    for v in range(first, last - 1):
        size = 0
        for c in range(n_classes):
            n = counts[v, c]
            if n == 0:
                continue
            parts -= left[1, c] + right[1, c]
            left[0, c] += n
            right[0, c] -= n
            left[1, c] = tabulated_xlogx(left[0, c], scale, units)
            right[1, c] = tabulated_xlogx(right[0, c], scale, units)
            parts += left[1, c] + right[1, c]
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
def entropy_cuts(counts, n_cuts, scale, units, left, right, first, last, position, gain, is_cut):  # type: ignore[no-untyped-def]
    """Mark up to n_cuts cut points one by one, each where it reduces the entropy of the current intervals most."""
    first[0], last[0] = 0, counts.shape[0]
    position[0], gain[0] = purest_cut(counts, first[0], last[0], scale, units, left, right)
    for n in range(1, n_cuts + 1):
        most = 0
        for i in range(1, n):
            if gain[i] > gain[most]:
                most = i
        if gain[most] <= 0:
            break
        is_cut[position[most]] = True
        first[n], last[n] = position[most] + 1, last[most]
        last[most] = first[n]
        for i in (most, n):
            position[i], gain[i] = purest_cut(counts, first[i], last[i], scale, units, left, right)


@kernel
def quantile_cuts(x, n_values, weight, quantiles, reached, is_cut):  # type: ignore[no-untyped-def]
    """Mark a cut point at each quantile of a feature's codes below its last value."""
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
    """Write the merged value of each value of a feature, merged[start[i]:start[i] + n_states[i]].

    Unordered features keep their values. ``drawn`` is the number of times that a sample counts for class entropy.
    """
    counts, left, right, first, last, position, gain, reached, is_cut = scratch
    for i in range(codes.shape[0]):
        x, n_values = codes[i], n_states[i]
        is_cut[:n_values] = not is_ordered[i]
        if is_ordered[i] and is_supervised[i]:
            counts[:n_values] = 0
            for r in range(x.shape[0]):
                if x[r] < n_values:
                    counts[x[r], y[r]] += drawn[r]
            entropy_cuts(
                counts[:n_values], n_cuts[i], scale, units, left, right, first, last, position, gain, is_cut[:n_values]
            )
        elif is_ordered[i]:
            quantile_cuts(x, n_values, weight, quantiles[i, : n_cuts[i]], reached, is_cut)
        code = 0
        for v in range(n_values):
            merged[start[i] + v] = code
            code += is_cut[v]


@kernel
def merge_codes(codes, n_states, start, merged, out):  # type: ignore[no-untyped-def]
    """Write the merged codes; codes from n_states on are missing, and get the last entry of the feature."""
    for i in range(codes.shape[0]):
        table = merged[start[i] : start[i + 1]]
        last = n_states[i]
        for r in range(codes.shape[1]):
            out[i, r] = table[min(codes[i, r], last)]
