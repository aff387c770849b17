"""Probabilities that back off to fewer parents: hierarchical smoothing, scores and leave-one-out estimates.

    P_j(x | y, p1..pj) = (n + m_j P_{j-1}(x | y, p1..p{j-1})) / (N + m_j),    P_{-1} = 1 / n_states

n and N are counts in the context of the first j parents. With few rows, the estimate with one parent less dominates. If
a context has no row of a class, P_j = P_{j-1}.
"""
# Shapes: n rows, d features, C classes, k parents; levels (kernels/contexts.py) have K contexts, R classes, L entries
# counts (L,), totals (R,): counts of entries and classes; bounds (k + 2, 3): start of each level's contexts, classes
# and entries; m (k + 1,): concentration of each level; p (L,): probabilities; log_p (L,): their logarithms
# log_rest (R,): log(m / (N + m)), the factor of P_{j-1} for values without rows of a class in a context
# root (n_states, C): log P without parents
# columns (k + 2, q), order (q,), shared (q,): sorted rows of a family, see kernels/contexts.py
# slot (q,): row of chances (s, C), products (G, s, C) and scores (G, s, C) for each column, or -1

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import exp, log


@kernel
def smooth(levels, counts, totals, bounds, m, n_states, p, log_p, log_rest, root):  # type: ignore[no-untyped-def]
    """Write the probabilities of all levels, their logarithms, and the factors for values without rows."""
    n_classes = root.shape[1]
    for level in range(m.shape[0]):
        for r in range(bounds[level, 1], bounds[level + 1, 1]):
            log_rest[r] = log(m[level] / (totals[r] + m[level]))
        for e in range(bounds[level, 2], bounds[level + 1, 2]):
            above = p[levels.above[e]] if level > 0 else 1.0 / n_states
            p[e] = (counts[e] + m[level] * above) / (totals[levels.run[e]] + m[level])
            log_p[e] = log(p[e])
    for x in range(n_states):
        for c in range(n_classes):
            root[x, c] = -log(float(n_states))
    for r in range(bounds[1, 1]):
        for x in range(n_states):
            root[x, levels.class_id[r]] += log_rest[r]
    for e in range(bounds[1, 2]):
        root[levels.entry_value[e], levels.entry_class[e]] = log_p[e]


@kernel
def find(values, first, last, value):  # type: ignore[no-untyped-def]
    """Return the first position from ``first`` to ``last`` of increasing values with a value of at least ``value``."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def add_log_back_off(  # type: ignore[no-untyped-def]
    codes, first, child, parents, levels, log_p, log_rest, root, missing, row, scores
):
    """Add log P(child | class, parents) of samples, from the longest context that has rows and no missing parent.

    The cost per sample is the number of classes that occur in its contexts. A missing child adds nothing. ``row`` (C,)
    is scratch.
    """
    n, n_classes = scores.shape
    x = codes[child]
    for k in range(n):
        value = x[first + k]
        if value == missing:
            continue
        top = root[value]
        for c in range(n_classes):
            row[c] = top[c]
        context = 0
        for p in range(parents.shape[0]):
            digit = codes[parents[p], first + k]
            last = levels.child_start[context + 1]
            found = find(levels.digit, levels.child_start[context], last, digit)
            if digit == missing or found == last or levels.digit[found] != digit:
                break
            context = found
            for r in range(levels.class_start[context], levels.class_start[context + 1]):
                row[levels.class_id[r]] += log_rest[r]
            last = levels.entry_start[context + 1]
            e = find(levels.entry_value, levels.entry_start[context], last, value)
            while e < last and levels.entry_value[e] == value:
                row[levels.entry_class[e]] = log_p[e]
                e += 1
        target = scores[k]
        for c in range(n_classes):
            target[c] += row[c]


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
    """Reset the entries of ``cells`` and ``totals`` that a context's columns have added to."""
    k = columns.shape[0] - 2
    for q in range(first, last):
        x, y = columns[k, order[q]], columns[k + 1, order[q]]
        cells[x, y] = 0
        totals[y] = 0


@kernel
def leave_out(columns, order, shared, level, absent, weight, slot, m, cells, totals, chances):  # type: ignore[no-untyped-def]
    """Replace P(x | y, j - 1 parents) in ``chances`` by the leave-one-out estimate with j parents, in place.

    One row is removed from its own counts, also if its weight is larger. ``absent`` is the value of a missing parent.
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

    The estimates are those of :func:`leave_out`. A sample with a missing parent multiplies by its chance. (A logarithm
    costs as much as five products.)
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
    """Write the weighted sums of -log P(class | features) and of errors, for each of G sets of scores (G, s, C)."""
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
