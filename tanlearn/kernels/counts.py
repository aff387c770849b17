"""Counts of class, families and pairs, and what follows from pair counts: conditional mutual information."""
# Shapes: n samples, d features, C classes, T tables. codes (d, n); y (n,); weight (n,) integer or float
# counts has the type of weight, so integer weights are counted exactly; tables are laid out as cells are
# (kernels/scores.py); pair_offset (d * (d - 1) / 2 + 1,): pair (i, j), j < i, is number i (i - 1) / 2 + j

from __future__ import annotations

from tanlearn._jit import kernel
from tanlearn.kernels.mathematics import xlogx
from tanlearn.kernels.scores import family_rows


@kernel
def count_classes(y, weight, counts):  # type: ignore[no-untyped-def]
    """Add the weight of every class."""
    for k in range(y.shape[0]):
        counts[y[k]] += weight[k]


@kernel
def count_families(codes, y, weight, child, parents, n_states, offset, missing, rows, counts):  # type: ignore[no-untyped-def]
    """Add the counts of (child value, parent values, class) of every table; incomplete families are left out."""
    n = y.shape[0]
    n_classes = offset[0]
    for t in range(child.shape[0]):
        family_rows(codes, 0, child[t], parents[t], n_states, missing, rows)
        table = counts[offset[t] : offset[t + 1]]
        for k in range(n):
            if rows[k] >= 0:
                table[rows[k] * n_classes + y[k]] += weight[k]


@kernel
def count_pairs(codes, y, weight, i, n_states, n_classes, pair_offset, missing, counts):  # type: ignore[no-untyped-def]
    """Add the counts of (value of i, value of j, class) for every j < i; samples missing either are left out."""
    n = y.shape[0]
    x = codes[i]
    for j in range(i):
        pair = i * (i - 1) // 2 + j
        table = counts[pair_offset[pair] : pair_offset[pair + 1]]
        z = codes[j]
        width = n_states[j] * n_classes
        for k in range(n):
            if x[k] != missing and z[k] != missing:
                table[x[k] * width + z[k] * n_classes + y[k]] += weight[k]


@kernel
def conditional_mutual_information(counts, n_values, n_parent, n_classes):  # type: ignore[no-untyped-def]
    """Return I(X; Z | C) in nats of the counts [x][z][c]: a sum of n log n over cells and margins.

    I = (sum n_xzc log n_xzc - sum n_xc log n_xc - sum n_zc log n_zc + sum n_c log n_c) / n
    """
    total = 0.0
    information = 0.0
    for c in range(n_classes):
        class_count = 0.0
        for x in range(n_values):
            margin = 0.0
            for z in range(n_parent):
                cell = float(counts[(x * n_parent + z) * n_classes + c])
                margin += cell
                information += xlogx(cell)
            information -= xlogx(margin)
            class_count += margin
        for z in range(n_parent):
            margin = 0.0
            for x in range(n_values):
                margin += float(counts[(x * n_parent + z) * n_classes + c])
            information -= xlogx(margin)
        information += xlogx(class_count)
        total += class_count
    return max(information, 0.0) / total if total > 0.0 else 0.0


@kernel
def pairwise_information(counts, n_states, n_classes, pair_offset, i, information):  # type: ignore[no-untyped-def]
    """Write I(X_i; X_j | C) for every j < i, in nats."""
    for j in range(i):
        pair = i * (i - 1) // 2 + j
        table = counts[pair_offset[pair] : pair_offset[pair + 1]]
        information[j] = conditional_mutual_information(table, n_states[i], n_states[j], n_classes)
