"""Leave-one-out estimates of networks that back off to fewer parents, and their losses.

Estimates are computed as in ``context_smoothing.py``, P_j = (n + m_j P_j-1) / (N + m_j), with the counts n and N of all
other rows. The rows of a family are processed together, level by level; each has its own P_j.
"""
# Shapes: n rows, C classes, k parents; G alternatives, s scored rows
# columns (k + 2, q), order (q,), shared (q,): sorted rows of a family, see kernels/context_counts.py
# slot (q,): row of chances (s, C), products (G, s, C) and scores (G, s, C) for each column, or -1
# cells (n_states, C) and totals (C,): counts of a context, zeros between contexts; m: concentration, or (G,) of them

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import exp, log


@kernel
def _context_end(first, level, shared):  # type: ignore[no-untyped-def]
    """Return the end of the context of a level that begins at position ``first`` of the order."""
    last = first + 1
    while last < shared.shape[0] and shared[last] >= level:
        last += 1
    return last


@kernel
def _count(columns, order, first, last, weight, cells, totals):  # type: ignore[no-untyped-def]
    """Add the weights of a context's columns to ``cells`` and ``totals``."""
    k = columns.shape[0] - 2
    for q in range(first, last):
        column = order[q]
        x, y = columns[k, column], columns[k + 1, column]
        cells[x, y] += weight[column]
        totals[y] += weight[column]


@kernel
def _clear(columns, order, first, last, cells, totals):  # type: ignore[no-untyped-def]
    """Reset the entries of ``cells`` and ``totals`` to which a context's columns were added."""
    k = columns.shape[0] - 2
    for q in range(first, last):
        x, y = columns[k, order[q]], columns[k + 1, order[q]]
        cells[x, y] = 0
        totals[y] = 0


@kernel
def leave_out(columns, order, shared, level, absent, weight, slot, m, cells, totals, chances):  # type: ignore[no-untyped-def]
    """Replace P(x | y, j - 1 parents) in ``chances`` by the leave-one-out estimate with j parents, in place.

    A weight of at most 1 is removed from the counts for a row, even if the row has a larger weight. ``absent`` is the
    value of a missing parent.
    """
    k = columns.shape[0] - 2
    n_classes = totals.shape[0]
    first = 0
    while first < order.shape[0]:
        last = _context_end(first, level, shared)
        if level == 0 or columns[level - 1, order[first]] != absent:
            _count(columns, order, first, last, weight, cells, totals)
            for q in range(first, last):
                column = order[q]
                if slot[column] < 0:
                    continue
                counts, chance = cells[columns[k, column]], chances[slot[column]]
                y, own = columns[k + 1, column], min(weight[column], 1.0)
                counts[y] -= own
                totals[y] -= own
                for c in range(n_classes):
                    chance[c] = (counts[c] + m * chance[c]) / (totals[c] + m)
                counts[y] += own
                totals[y] += own
            _clear(columns, order, first, last, cells, totals)
        first = last


@kernel
def multiply_left_out(  # type: ignore[no-untyped-def]
    columns, order, shared, level, absent, weight, slot, m, cells, totals, chances, products
):
    """Multiply ``products`` by the leave-one-out estimates for each m of G; ``chances`` is unchanged.

    Estimates are computed as in :func:`leave_out`. A sample with a missing parent multiplies by its chance. (A
    logarithm costs as much as five products.)
    """
    k = columns.shape[0] - 2
    n_classes = totals.shape[0]
    first = 0
    while first < order.shape[0]:
        last = _context_end(first, level, shared)
        is_there = level == 0 or columns[level - 1, order[first]] != absent
        if is_there:
            _count(columns, order, first, last, weight, cells, totals)
        for q in range(first, last):
            column = order[q]
            s = slot[column]
            if s < 0:
                continue
            counts, chance = cells[columns[k, column]], chances[s]
            y, own = columns[k + 1, column], min(weight[column], 1.0) if is_there else 0.0
            counts[y] -= own
            totals[y] -= own
            for g in range(m.shape[0]):
                weight_above, product = m[g], products[g, s]
                for c in range(n_classes):
                    product[c] *= (counts[c] + weight_above * chance[c]) / (totals[c] + weight_above)
            counts[y] += own
            totals[y] += own
        if is_there:
            _clear(columns, order, first, last, cells, totals)
        first = last


@kernel
def start_chances(columns, n_states, slot, chances):  # type: ignore[no-untyped-def]
    """Write 1 / n_states for samples that have the feature, and 1 for the others."""
    chances[:] = 1.0
    for q in range(columns.shape[1]):
        if slot[q] >= 0:
            chances[slot[q]] = 1.0 / n_states


@kernel
def add_logs(chances, scores):  # type: ignore[no-untyped-def]
    """Add the logarithms of ``chances`` to ``scores``."""
    for k in range(chances.shape[0]):
        chance, row = chances[k], scores[k]
        for c in range(chance.shape[0]):
            row[c] += log(chance[c])


@kernel
def class_losses(scores, y, weight, losses):  # type: ignore[no-untyped-def]
    """Write the weighted sums of -log P(class | features) and of errors for each of G sets of scores (G, s, C)."""
    for g in range(scores.shape[0]):
        nats, errors = 0.0, 0.0
        for k in range(y.shape[0]):
            row = scores[g, k]
            best = 0
            for c in range(1, row.shape[0]):
                if row[c] > row[best]:
                    best = c
            if row[best] == -np.inf:  # all classes are impossible, and thus equally probable
                nats += weight[k] * log(float(row.shape[0]))
            else:
                total = 0.0
                for c in range(row.shape[0]):
                    total += exp(row[c] - row[best])
                nats += weight[k] * (log(total) + row[best] - row[y[k]])
            errors += weight[k] if best != y[k] else 0.0
        losses[g, 0], losses[g, 1] = nats, errors
