"""Counts of classes, families and pairs, and the conditional mutual information of pair counts."""
# Shapes: n samples, d features, C classes, T families. codes (d, n); y (n,); weight (n,) integer or float
# counts has the dtype of weight, so integer weights are counted exactly, and the layout of cells (kernels/scores.py)
# pair_offset (d * (d - 1) / 2 + 1,): pair (i, j), j < i, is number i (i - 1) / 2 + j
# margins ((n_values + n_parent + 1) * C,): scratch with the dtype of counts
# samples (s,): row numbers sorted by value; start (k + 1,): start of the rows of each value
# cells, sides (K * C,), K the most values, and margins (2 C,) of sparse_information: scratch of zeros

from __future__ import annotations

import numpy as np

from tanlearn.kernels._interpreter import interpretable
from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import nats, unit_scale, xlogx
from tanlearn.kernels.scores import family_rows


@interpretable
@kernel
def count_classes(y, weight, counts):  # type: ignore[no-untyped-def]
    """Add the weight of each sample to the count of its class."""
    for k in range(y.shape[0]):
        counts[y[k]] += weight[k]


@interpretable
@kernel
def count_families(codes, y, weight, child, parents, n_states, offset, missing, rows, counts):  # type: ignore[no-untyped-def]
    """Add the counts of (child value, parent values, class) of each family; samples with missing values are omitted."""
    n = y.shape[0]
    n_classes = offset[0]
    for t in range(child.shape[0]):
        table = counts[offset[t] : offset[t + 1]]
        n_parents = 0
        for j in parents[t]:
            n_parents += j >= 0
        if n_parents == 0:  # a single loop takes half of the time, and needs no memory for rows
            x = codes[child[t]]
            for k in range(n):
                if x[k] != missing:
                    table[x[k] * n_classes + y[k]] += weight[k]
            continue
        family_rows(codes, 0, child[t], parents[t], n_states, missing, rows)
        for k in range(n):
            if rows[k] >= 0:
                table[rows[k] * n_classes + y[k]] += weight[k]


@kernel
def add_pair(x, z, y, weight, n_parent, n_classes, missing, table):  # type: ignore[no-untyped-def]
    """Add the counts of (value of x, value of z, class); samples with a missing value are omitted."""
    width = n_parent * n_classes
    for k in range(y.shape[0]):
        if x[k] != missing and z[k] != missing:
            table[x[k] * width + z[k] * n_classes + y[k]] += weight[k]


@kernel
def count_pairs(codes, y, weight, i, others, n_states, n_classes, pair_offset, missing, counts):  # type: ignore[no-untyped-def]
    """Add the counts of (value of i, value of j, class) for each j of others, j < i."""
    for o in range(others.shape[0]):
        j = others[o]
        pair = i * (i - 1) // 2 + j
        table = counts[pair_offset[pair] : pair_offset[pair + 1]]
        add_pair(codes[i], codes[j], y, weight, n_states[j], n_classes, missing, table)


@kernel
def sum_xlogx(values, scale):  # type: ignore[no-untyped-def]
    """Return the sum of x log x, as an integer in units of 1 / scale."""
    total = np.int64(0)
    for k in range(values.shape[0]):
        total += xlogx(values[k], scale)
    return total


@kernel
def conditional_mutual_information(counts, n_values, n_parent, n_classes, margins):  # type: ignore[no-untyped-def]
    """Return I(X; Z | C) in nats of the counts [x][z][c], a sum of n log n over counts and margins.

    I = (sum n_xzc log n_xzc - sum n_xc log n_xc - sum n_zc log n_zc + sum n_c log n_c) / n
    """
    n_sides = (n_values + n_parent) * n_classes
    sides = margins[:n_sides]
    of_class = margins[n_sides : n_sides + n_classes]
    sides[:] = 0
    of_class[:] = 0
    for x in range(n_values):
        of_value = sides[x * n_classes : (x + 1) * n_classes]
        for z in range(n_parent):
            row = counts[(x * n_parent + z) * n_classes : (x * n_parent + z + 1) * n_classes]
            of_other = sides[(n_values + z) * n_classes : (n_values + z + 1) * n_classes]
            for c in range(n_classes):
                of_value[c] += row[c]
                of_other[c] += row[c]
        for c in range(n_classes):
            of_class[c] += of_value[c]
    total = 0.0
    for c in range(n_classes):
        total += of_class[c]
    scale = unit_scale(total)
    return nats(sum_xlogx(counts, scale) - sum_xlogx(sides, scale) + sum_xlogx(of_class, scale), scale, total)


@kernel
def pairwise_information(counts, n_states, n_classes, pair_offset, i, margins, information):  # type: ignore[no-untyped-def]
    """Write I(X_i; X_j | C) in nats for each j < i."""
    for j in range(i):
        pair = i * (i - 1) // 2 + j
        table = counts[pair_offset[pair] : pair_offset[pair + 1]]
        information[j] = conditional_mutual_information(table, n_states[i], n_states[j], n_classes, margins)


@kernel
def sparse_information(  # type: ignore[no-untyped-def]
    codes, y, weight, samples, start, others, n_classes, missing, cells, sides, margins, information
):
    """Write I(X; X_j | C) in nats for each j of others, without dense counts, for features with many values.

    Rows are visited in order of the values of X, so only the counts of one value of X are held at a time.
    """
    of_value, of_class = margins[:n_classes], margins[n_classes : 2 * n_classes]
    for o in range(others.shape[0]):
        z = codes[others[o]]
        total = 0.0
        for s in range(samples.shape[0]):
            n = samples[s]
            if z[n] != missing:
                of_class[y[n]] += weight[n]
        for c in range(n_classes):
            total += of_class[c]
        scale = unit_scale(total)
        units = sum_xlogx(of_class, scale)
        for v in range(start.shape[0] - 1):
            for s in range(start[v], start[v + 1]):
                n = samples[s]
                if z[n] != missing:
                    cells[z[n] * n_classes + y[n]] += weight[n]
                    sides[z[n] * n_classes + y[n]] += weight[n]
                    of_value[y[n]] += weight[n]
            for s in range(start[v], start[v + 1]):
                n = samples[s]
                if z[n] != missing:
                    cell = z[n] * n_classes + y[n]
                    units += xlogx(cells[cell], scale)
                    cells[cell] = 0
            units -= sum_xlogx(of_value, scale)
            of_value[:] = 0
        for s in range(samples.shape[0]):
            n = samples[s]
            if z[n] != missing:
                cell = z[n] * n_classes + y[n]
                units -= xlogx(sides[cell], scale)
                sides[cell] = 0
        of_class[:] = 0
        information[o] = nats(units, scale, total)
