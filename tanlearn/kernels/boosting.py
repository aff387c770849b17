"""Boosted terms: residuals, their sums by cell and value, the best division of a feature's values, and sums of terms.

A term is a table over up to ``S`` splits. A split divides the values of a feature into two sides, 0 and 1, and the cell
of a sample is the number whose bit s is the side of its value in split s. Missing values have no side.
"""
# Shapes: n samples, m selected ones, d features, V values, K classes (1 for the log odds of two), C classes
# T terms of at most S splits, L = 2^S cells
# codes (d, n): codes of at least n_states (d,) are missing; features (T, S), -1 for none; starts (T, S), sides (any,):
# the side of value v in split s of term t is sides[starts[t, s] + v]; weights (T, L); values (T, L, C)
# selected (m,): numbers of samples; own codes (m,) of one feature, or (any, m): those of selected samples
# rows (m, 2 K): residuals, then variances; cells (m,): -1 for missing; left and total (L, 2 K): scratch

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import exp

#: Number of samples whose exponentials are computed at once.
_BLOCK = 64


@kernel
def write_residuals(scores, y, weights, selected, least, rows):  # type: ignore[no-untyped-def]
    """Write residuals and variances of selected samples from scores (n, C), classes y (n,) and weights (n,).

    A residual is the indicator of the class minus its probability p. The variance is p (1 - p), but at least ``least``.
    Both are multiplied by the weight. For two classes, there is one residual, which belongs to the second class.
    """
    n_classes, n_outputs = scores.shape[1], rows.shape[1] // 2
    # Exponentials of many numbers at once are vectorized (18 classes: 9 -> 3 ns for each class of a sample). They are
    # written to the beginning of the rows of a block, and rows are overwritten from the last one to the first.
    for first in range(0, selected.shape[0], _BLOCK):
        block = rows[first : first + _BLOCK]
        flat = block.reshape(block.size)
        for k in range(block.shape[0]):
            own, powers = scores[selected[first + k]], flat[k * n_classes : (k + 1) * n_classes]
            largest = own[0]
            for c in range(1, n_classes):
                largest = max(largest, own[c])
            for c in range(n_classes):
                powers[c] = own[c] - largest
        powers = flat[: block.shape[0] * n_classes]
        for c in range(powers.shape[0]):
            powers[c] = exp(powers[c])
        for k in range(block.shape[0] - 1, -1, -1):
            r = selected[first + k]
            powers, target, weight = flat[k * n_classes : (k + 1) * n_classes], block[k], weights[r]
            total = 0.0
            for c in range(n_classes):
                total += powers[c]
            for c in range(n_outputs):
                chosen = c + n_classes - n_outputs
                p = powers[chosen] / total
                target[c] = weight * ((1.0 if y[r] == chosen else 0.0) - p)
                target[n_outputs + c] = weight * max(p * (1.0 - p), least)


@kernel
def take_codes(codes, features, selected, own_codes):  # type: ignore[no-untyped-def]
    """Write the codes (n_features, m) of some features of selected samples."""
    for j in range(features.shape[0]):
        source, target = codes[features[j]], own_codes[j]
        for k in range(selected.shape[0]):
            target[k] = source[selected[k]]


@kernel
def sum_squares(rows, n_outputs, least, sums):  # type: ignore[no-untyped-def]
    """Write the sums (K,) of the squares of the residuals of each class, plus ``least``."""
    for c in range(n_outputs):
        sums[c] = 0.0
    for k in range(rows.shape[0]):
        own = rows[k]
        for c in range(n_outputs):
            sums[c] += own[c] * own[c]
    for c in range(n_outputs):
        sums[c] += least


@kernel
def add_value_rows(own_codes, cells, rows, sums):  # type: ignore[no-untyped-def]
    """Add the rows of samples to the sums (L, V, 2 K) of their cell and code (m,); missing values are skipped."""
    n_values, n_columns = sums.shape[1], rows.shape[1]
    if n_columns == 2:  # two classes: 1.0 ns per sample, and 2.1 with a loop over columns and three indices
        flat = sums.reshape(sums.size)
        for k in range(cells.shape[0]):
            cell, value = cells[k], own_codes[k]
            if cell >= 0 and value < n_values:
                place = 2 * (cell * n_values + np.intp(value))
                flat[place] += rows[k, 0]
                flat[place + 1] += rows[k, 1]
        return
    for k in range(cells.shape[0]):
        cell, value = cells[k], own_codes[k]
        if cell < 0 or value >= n_values:
            continue
        own, target = rows[k], sums[cell, value]
        for c in range(n_columns):
            target[c] += own[c]


@kernel
def value_ratios(codes, features, n_values, selected, rows, smoothing, scratch, ratios):  # type: ignore[no-untyped-def]
    """Write the residual per variance of each value of some features, one feature after another.

    The class with the largest ``sum g^2 / (h + smoothing)`` over values is used. n_values (n_features,); rows (m, 2 K)
    of the selected samples. ``scratch`` can hold the sums of the values of a feature.
    """
    n_columns, n_classes, first = rows.shape[1], rows.shape[1] // 2, 0
    for j in range(features.shape[0]):
        source, n = codes[features[j]], n_values[j]
        for k in range(n * n_columns):
            scratch[k] = 0.0
        for k in range(selected.shape[0]):
            value = source[selected[k]]
            if value < n:
                at = n_columns * np.intp(value)
                for c in range(n_columns):
                    scratch[at + c] += rows[k, c]
        most, best = -1.0, 0
        for c in range(n_classes):
            gain = 0.0
            for at in range(c, n * n_columns, n_columns):
                gain += scratch[at] * scratch[at] / (scratch[at + n_classes] + smoothing)
            if gain > most:
                most, best = gain, c
        for v in range(n):
            at = v * n_columns + best
            ratios[first + v] = scratch[at] / (scratch[at + n_classes] + smoothing)
        first += n


@kernel
def best_split(sums, order, smoothing, left, total):  # type: ignore[no-untyped-def]
    """Return the gain and the length of the best beginning of ``order`` (V,), for the same split of all cells.

    The gain is the increase of ``sum g^2 / (h + smoothing)`` over cells, sides and classes. It is -1 if there is only
    one value. sums (L, V, 2 K).
    """
    n_cells, n_values, n_classes = sums.shape[0], sums.shape[1], sums.shape[2] // 2
    before = 0.0
    for cell in range(n_cells):
        for c in range(2 * n_classes):
            left[cell, c] = total[cell, c] = 0.0
        for v in range(n_values):
            for c in range(2 * n_classes):
                total[cell, c] += sums[cell, v, c]
        for c in range(n_classes):
            before += total[cell, c] * total[cell, c] / (total[cell, n_classes + c] + smoothing)
    most, length = -1.0, 0
    for k in range(n_values - 1):
        after = 0.0
        for cell in range(n_cells):
            own, added, of_cell = left[cell], sums[cell, order[k]], total[cell]
            for c in range(2 * n_classes):
                own[c] += added[c]
            for c in range(n_classes):
                g, h = own[c], own[n_classes + c]
                rest = of_cell[c] - g
                after += g * g / (h + smoothing) + rest * rest / (of_cell[n_classes + c] - h + smoothing)
        if after - before > most:
            most, length = after - before, k + 1
    return most, length


@kernel
def find_splits(  # type: ignore[no-untyped-def]
    own_codes, n_values, orders, cells, n_cells, rows, smoothing, scratch, left, total, gains, lengths
):
    """Write the gain (n_features,) and the length of the best beginning of the order of the values of each feature.

    n_values, orders (n_features, at least V). ``scratch`` can hold the sums of ``n_cells`` cells.
    """
    n_columns = rows.shape[1]
    for j in range(own_codes.shape[0]):
        own = scratch[: n_cells * n_values[j] * n_columns]
        for k in range(own.shape[0]):
            own[k] = 0.0
        sums = own.reshape((n_cells, n_values[j], n_columns))
        add_value_rows(own_codes[j], cells, rows, sums)
        gains[j], lengths[j] = best_split(sums, orders[j], smoothing, left, total)


@kernel
def split_cells(own_codes, side, level, cells):  # type: ignore[no-untyped-def]
    """Set bit ``level`` of each sample's cell to the side (V,) of its code (m,), or the cell to -1 if it is missing."""
    for k in range(cells.shape[0]):
        if cells[k] >= 0:
            code = own_codes[k]
            if code < side.shape[0]:
                cells[k] += side[code] << level
            else:
                cells[k] = -1


@kernel
def add_cell_rows(cells, rows, sums):  # type: ignore[no-untyped-def]
    """Add the rows (m, any) of samples to the sums (L, any) of their cells."""
    for k in range(cells.shape[0]):
        if cells[k] < 0:
            continue  # with the rest under the opposite condition, the references to the slices below are counted: 3 x
        own, target = rows[k], sums[cells[k]]
        for c in range(own.shape[0]):
            target[c] += own[c]


@kernel
def add_terms(codes, first, n_states, features, starts, sides, weights, values, scores):  # type: ignore[no-untyped-def]
    """Add the values of all terms to the scores (any, C) of samples ``first``, ``first + 1``, ...

    With missing values, the value of a term is its weighted mean over the cells that match the observed values, or 0 if
    these cells have no weight.
    """
    n_classes = scores.shape[1]
    for t in range(features.shape[0]):
        for r in range(scores.shape[0]):
            cell = known = 0
            n_splits = 0
            for s in range(features.shape[1]):
                i = features[t, s]
                if i < 0:
                    break
                n_splits += 1
                code = codes[i, first + r]
                if code < n_states[i]:
                    known += 1 << s
                    cell += sides[starts[t, s] + code] << s
            target = scores[r]
            if known == (1 << n_splits) - 1:
                own = values[t, cell]
                for c in range(n_classes):
                    target[c] += own[c]
                continue
            weight = 0.0
            for other in range(1 << n_splits):
                if (other ^ cell) & known == 0:
                    weight += weights[t, other]
            if weight > 0.0:
                for other in range(1 << n_splits):
                    if (other ^ cell) & known == 0:
                        factor = weights[t, other] / weight
                        for c in range(n_classes):
                            target[c] += factor * values[t, other, c]
