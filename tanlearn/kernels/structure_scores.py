"""Classification scores of rows after one family is exchanged, the innermost loop of wrapper searches."""
# Shapes: n samples, d features, C classes, T families of one child. codes (d, n); y (n,); weight (n,) float64
# base (n, C): log joint without the child's family; cells (M,), child (T,), parents (T, 2), n_states (d,),
# offset (T + 1,): CPTs as in kernels/scores.py; selected (S,): families to evaluate; value (S,)
# low, high (child values, C): bounds on the change of the lead of class c by any family; rows (n,): scratch
# undecided (n,) bool

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import exp, log
from tanlearn.kernels.scores import family_rows

ACCURACY, MARGIN, LIKELIHOOD = 0, 1, 2

#: Difference in nats to the best class below which a class is lost in a float64 sum: exp(-37) < 2**-53.
NEGLIGIBLE = 37.0


@kernel
def swap_family(  # type: ignore[no-untyped-def]
    codes, base, y, weight, cells, child, parents, n_states, offset, selected, missing, kind, cap, rows, value
):
    """Write the weighted sum of the samples' objective values with each selected family."""
    n, n_classes = base.shape
    for s in range(selected.shape[0]):
        t = selected[s]
        family_rows(codes, 0, child[t], parents[t], n_states, missing, rows)
        table = cells[offset[t] : offset[t + 1]]
        total = 0.0
        for k in range(n):
            row = base[k]
            cell = rows[k] * n_classes
            values = table[cell : cell + n_classes]
            total += weight[k] * worth(row, values, y[k], kind, cap)
        value[s] = total


@kernel
def classify(scores, none, y, weight, kind, cap):  # type: ignore[no-untyped-def]
    """Return the weighted sum of the samples' objective values; ``none (C,)`` is zeros."""
    total = 0.0
    for k in range(y.shape[0]):
        total += weight[k] * worth(scores[k], none, y[k], kind, cap)
    return total


@kernel
def worth(row, values, label, kind, cap):  # type: ignore[no-untyped-def]
    """Return a sample's objective value: 1 if its class is predicted, its lead up to ``cap``, or its log posterior."""
    if kind == ACCURACY:
        return is_first_best(row, values, label)
    if kind == MARGIN:
        return min(lead(row, values, label), cap)
    return log_posterior(row, values, label)


@kernel
def is_first_best(row, values, label):  # type: ignore[no-untyped-def]
    """Return 1 if a class would be predicted: it scores above all classes before it, and not below any after it.

    All classes are compared, because branches of a loop with an early exit are mispredicted: with ten classes, it took
    13 ns per sample instead of 8.5 ns.
    """
    own = row[label] + values[label]
    beaten = False
    for c in range(label):
        beaten |= row[c] + values[c] >= own
    for c in range(label + 1, row.shape[0]):
        beaten |= row[c] + values[c] > own
    return 0.0 if beaten else 1.0


@kernel
def lead(row, values, label):  # type: ignore[no-untyped-def]
    """Return the score of a class minus the best score of the others (maximum margin, log of eq. 3)."""
    rival = -np.inf
    for c in range(row.shape[0]):
        if c != label:
            rival = max(rival, row[c] + values[c])
    return row[label] + values[label] - rival


@kernel
def log_posterior(row, values, label):  # type: ignore[no-untyped-def]
    """Return the log posterior of a class; exponentials of classes far below the best are skipped."""
    top = -np.inf
    for c in range(row.shape[0]):
        top = max(top, row[c] + values[c])
    total = 0.0
    for c in range(row.shape[0]):
        below = row[c] + values[c] - top
        if below > -NEGLIGIBLE:
            total += exp(below)
    return row[label] + values[label] - top - log(total)


@kernel
def bound_leads(cells, counts, offset, n_classes, low, high):  # type: ignore[no-untyped-def]
    """Write bounds on how much any of a child's families may change the lead of each class over another class.

    Only entries that occur in samples to be classified are considered.
    """
    low[:] = np.inf
    high[:] = -np.inf
    n_values = low.shape[0]
    for t in range(offset.shape[0] - 1):
        width = (offset[t + 1] - offset[t]) // n_values
        for v in range(n_values):
            for first in range(offset[t] + v * width, offset[t] + (v + 1) * width, n_classes):
                values = cells[first : first + n_classes]
                for c in range(n_classes):
                    if counts[first + c] > 0:
                        for other in range(n_classes):
                            if other != c:
                                low[v, c] = min(low[v, c], values[c] - values[other])
                                high[v, c] = max(high[v, c], values[c] - values[other])


@kernel
def find_undecided(x, base, none, y, weight, low, high, floor, ceiling, undecided):  # type: ignore[no-untyped-def]
    """Mark the samples whose lead some family may bring into the range from floor to ceiling, inclusive.

    Return the weight of the samples whose lead is above the ceiling with every family; ``none (C,)`` is zeros.
    """
    settled = 0.0
    for k in range(y.shape[0]):
        margin = lead(base[k], none, y[k])
        undecided[k] = margin + low[x[k], y[k]] <= ceiling and margin + high[x[k], y[k]] >= floor
        if margin + low[x[k], y[k]] > ceiling:
            settled += weight[k]
    return settled
