"""Gains of interactions: how much the loss decreases if a parameter is added for each cell of a family of features.

The gain of a parameter is ``(g^2 - h) / (h + smoothing)``, where g is the sum of the residuals of the samples of its
cell, and h the sum of their variances. The gain of a family of features is the sum over cells and classes. A pair of
ordered features has one more parameter per class, for the product of the scores of its values, and the larger gain
counts. Only cells of samples are visited.

Invariant: sums over cells are exactly rounded, so that they do not depend on the order of the cells (Shewchuk: Adaptive
precision floating-point arithmetic and fast robust geometric predicates, 1997, section 2.4).
"""
# Shapes: n samples, d features of at most G groups, C classes; m families of w features
# codes (d, n): codes of at least n_groups (d,) are missing; families (m, w); gains (m,)
# rows (n, 2 C): residuals, then variances; is_scored (d,); scores (d, G)
# cells (K, 2 C) for K of at least the cells of a family: zeros before and after the call; is_found (K,): False likewise
# found (K,), addends (K * C,), partials (PARTIALS,): scratch

from __future__ import annotations

from tanlearn.kernels._jit import kernel

#: Maximum number of numbers of 53 bits that do not overlap, between 2^-1074 and 2^1024.
PARTIALS = 64
#: Bound of the relative error of a sum of rounding errors, per addend: four times the unit roundoff.
ROUNDOFF = 2.0**-51


@kernel
def sum_exactly(values, partials):  # type: ignore[no-untyped-def]
    """Return the exactly rounded sum of numbers (any,).

    A sum with its rounding errors added is within a known bound of the sum. If both ends of this interval round to the
    same number, it is the result, otherwise the sum is computed exactly.
    """
    total = errors = magnitude = 0.0
    for i in range(values.shape[0]):
        x = values[i]
        high = total + x
        part = high - total
        error = (total - (high - part)) + (x - part)
        total = high
        errors += error
        magnitude += abs(error)
    bound = values.shape[0] * ROUNDOFF * magnitude
    if total + (errors - bound) == total + (errors + bound):
        return total + errors
    return sum_by_partials(values, partials)


@kernel
def sum_by_partials(values, partials):  # type: ignore[no-untyped-def]
    """Return the exactly rounded sum of numbers (any,), which is kept as numbers that do not overlap."""
    n = 0
    for k in range(values.shape[0]):
        x, kept = values[k], 0
        for j in range(n):
            y = partials[j]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                partials[kept] = low
                kept += 1
            x = high
        partials[kept] = x
        n = kept + 1
    high = low = 0.0
    while n > 0 and low == 0.0:
        n -= 1
        x, y = high, partials[n]
        high = x + y
        low = y - (high - x)
    if n > 0 and ((low < 0.0 and partials[n - 1] < 0.0) or (low > 0.0 and partials[n - 1] > 0.0)):
        x = high + 2.0 * low  # more than half of a digit is left: round away from ``high`` if it is a tie
        if x - high == 2.0 * low:
            high = x
    return high


@kernel
def add_to_cells(codes, n_groups, rows, features, cells, is_found, found):  # type: ignore[no-untyped-def]
    """Add the rows (n, 2 C) of samples to their cells of a family (w,), and return the number of cells with samples."""
    n_found = 0
    for r in range(rows.shape[0]):
        cell = 0
        for j in range(features.shape[0]):
            i = features[j]
            if codes[i, r] >= n_groups[i]:
                cell = -1
                break
            cell = cell * n_groups[i] + codes[i, r]
        if cell < 0:
            continue
        if not is_found[cell]:
            is_found[cell] = True
            found[n_found] = cell
            n_found += 1
        own, target = rows[r], cells[cell]
        for c in range(own.shape[0]):
            target[c] += own[c]
    return n_found


@kernel
def gain_of_scores(of_first, of_second, n_groups, found, cells, smoothing, addends, partials):  # type: ignore[no-untyped-def]
    """Return the gain of the products of two features' scores (G,); the second feature has ``n_groups``."""
    n_found, n_classes = found.shape[0], cells.shape[1] // 2
    of_class = addends[n_found : n_found + n_classes]
    for c in range(n_classes):
        for f in range(n_found):
            addends[f] = cells[found[f], c] * (of_first[found[f] // n_groups] * of_second[found[f] % n_groups])
        g = sum_exactly(addends[:n_found], partials)
        for f in range(n_found):
            product = of_first[found[f] // n_groups] * of_second[found[f] % n_groups]
            addends[f] = cells[found[f], n_classes + c] * (product * product)
        h = sum_exactly(addends[:n_found], partials)
        of_class[c] = (g * g - h) / (h + smoothing)
    return sum_exactly(of_class, partials)


@kernel
def write_gains(  # type: ignore[no-untyped-def]
    codes, n_groups, rows, families, is_scored, scores, smoothing, cells, is_found, found, addends, partials, gains
):
    """Write the gain of each family; products of scores are used if both features of a pair are scored."""
    n_classes = rows.shape[1] // 2
    for k in range(families.shape[0]):
        n_found = add_to_cells(codes, n_groups, rows, families[k], cells, is_found, found)
        for f in range(n_found):
            own, target = cells[found[f]], addends[f * n_classes : (f + 1) * n_classes]
            for c in range(n_classes):
                g, h = own[c], own[n_classes + c]
                target[c] = (g * g - h) / (h + smoothing)
        gains[k] = sum_exactly(addends[: n_found * n_classes], partials)
        if families.shape[1] == 2:
            i, j, product = families[k, 0], families[k, 1], 0.0
            if is_scored[i] and is_scored[j]:
                pair = scores[i], scores[j], n_groups[j]
                product = gain_of_scores(*pair, found[:n_found], cells, smoothing, addends, partials)
            gains[k] = max(gains[k], product)
        for f in range(n_found):
            is_found[found[f]] = False
            cells[found[f]] = 0.0
