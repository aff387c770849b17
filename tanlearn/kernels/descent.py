"""Coordinate descent on the hinge loss of margins: each integer parameter in turn takes the best of several steps.

    sum_n p_n max(0, margin + c_ny - c_nk for all classes k other than y_n),    c_nk the sum of magnitudes of a class

The parameters of a family, one per class, affect the rows with the values of the family; each of them affects the cost
of one class.
"""
# Shapes: n rows, C classes, N parameters, F families (rows of CPTs) that occur in R rows in total, S steps
# family f has the parameters cell[f] to cell[f] + C - 1 and the rows rows[start[f]:start[f + 1]]
# costs (n, C), float64; y (n,); weight (n,); cell (F,), start (F + 1,), rows (R,); steps (S,), magnitudes, lower, upper
# (N,): integers; cheapest (n,), least, second (n,), losses (S,): scratch

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel


@kernel
def rank_rivals(costs, y, r, cheapest, least, second):  # type: ignore[no-untyped-def]
    """Write the class of lowest cost other than the row's own class, its cost, and the second lowest cost."""
    least[r], second[r] = np.inf, np.inf
    for c in range(costs.shape[1]):
        if c == y[r]:
            continue
        if costs[r, c] < least[r]:
            second[r] = least[r]
            least[r], cheapest[r] = costs[r, c], c
        elif costs[r, c] < second[r]:
            second[r] = costs[r, c]


@kernel
def descend(  # type: ignore[no-untyped-def]
    y, weight, margin, cell, start, rows, first, last, steps, lower, upper, least_gain, cheapest, least, second, losses,
    costs, magnitudes
):  # fmt: skip
    """Make one pass through the families from first to last; return the number of changed parameters."""
    n_classes, n_changed = costs.shape[1], 0
    for f in range(first, last):
        for q in range(start[f], start[f + 1]):
            rank_rivals(costs, y, rows[q], cheapest, least, second)
        for k in range(n_classes):
            at, before = cell[f] + k, 0.0
            losses[:] = 0.0
            for q in range(start[f], start[f + 1]):
                r = rows[q]
                own, other = costs[r, y[r]], second[r] if cheapest[r] == k else least[r]
                if y[r] == k:
                    before += weight[r] * max(0.0, margin + own - other)
                    for s in range(steps.shape[0]):
                        losses[s] += weight[r] * max(0.0, margin + own + steps[s] - other)
                else:
                    before += weight[r] * max(0.0, margin + own - min(other, costs[r, k]))
                    for s in range(steps.shape[0]):
                        losses[s] += weight[r] * max(0.0, margin + own - min(other, costs[r, k] + steps[s]))
            best, chosen = before - least_gain, -1
            for s in range(steps.shape[0]):
                is_legal = lower[at] <= magnitudes[at] + steps[s] <= upper[at]
                if is_legal and losses[s] < best:
                    best, chosen = losses[s], s
            if chosen >= 0:
                n_changed += 1
                magnitudes[at] += steps[chosen]
                for q in range(start[f], start[f + 1]):
                    costs[rows[q], k] += steps[chosen]
                    rank_rivals(costs, y, rows[q], cheapest, least, second)
    return n_changed
