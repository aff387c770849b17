"""Log joint scores, their adjoint, and the gradient with respect to the choice of a candidate CPT.

The log joint is linear in the parameters: ``scores[n, c] = prior[c] + sum over chosen tables t of t[row(n), c]``
(differentiable TAN, eq. 4 and 9). Its gradient is therefore the transpose of the same gather.
"""
# Shapes: n samples, d features, C classes, T families ("tables"), M parameters
# codes (d, n_all), read from sample `first` on; child (T,); parents (T, P), -1 for none; n_states (d,)
# offset (T + 1,): CPT t is cells[offset[t]:offset[t + 1]], rows [child value][parent value(s)] of C numbers
# cells (M,): the class prior is cells[:C]; selected (S,): CPTs in use; rows (n,): scratch

from __future__ import annotations

from typing import Any, NamedTuple

from tanlearn.kernels._interpreter import interpretable
from tanlearn.kernels._jit import kernel


class Families(NamedTuple):
    """Families of all CPTs, and the position of each CPT in the parameter vector.

    Kernels take the four arrays as separate arguments, because passing a tuple costs 1.5 us per call.
    """

    child: Any  # intp (T,) child of each CPT
    parents: Any  # intp (T, P) augmenting parents, -1 for none
    n_states: Any  # intp (d,) number of values of each feature
    offset: Any  # intp (T + 1,) start of each CPT in cells


@kernel
def family_rows(codes, first, child, parents, n_states, missing, rows):  # type: ignore[no-untyped-def]
    """Write the number of the CPT row of each sample, or -1 if the child or a parent is missing.

    Rows are numbered with the child value varying slowest and the last parent's value fastest.
    Branches are outside the loops over samples, so one function serves any number of parents.
    """
    n = rows.shape[0]
    x = codes[child][first : first + n]
    for k in range(n):
        rows[k] = x[k] if x[k] != missing else -1
    for p in range(parents.shape[0]):
        if parents[p] >= 0:
            width = n_states[parents[p]]
            x = codes[parents[p]][first : first + n]
            for k in range(n):
                rows[k] = rows[k] * width + x[k] if rows[k] >= 0 and x[k] != missing else -1


@interpretable
@kernel
def log_joint(  # type: ignore[no-untyped-def]
    codes, first, cells, child, parents, n_states, offset, selected, missing, rows, scores
):
    """Write the log joint of complete samples (no code may be missing)."""
    n, n_classes = scores.shape
    prior = cells[:n_classes]
    for k in range(n):
        row = scores[k]
        for c in range(n_classes):
            row[c] = prior[c]
    for s in range(selected.shape[0]):
        t = selected[s]
        family_rows(codes, first, child[t], parents[t], n_states, missing, rows)
        table = cells[offset[t] : offset[t + 1]]
        if n_classes == 2:  # without the inner loop, a third of the time
            for k in range(n):
                cell = rows[k] * 2
                scores[k, 0] += table[cell]
                scores[k, 1] += table[cell + 1]
            continue
        for k in range(n):
            cell = rows[k] * n_classes
            values = table[cell : cell + n_classes]
            row = scores[k]
            for c in range(n_classes):
                row[c] += values[c]


@kernel
def score_row(codes, cells, parents, n_states, offset, missing, scores):  # type: ignore[no-untyped-def]
    """Write the log joint of one sample's codes (d,), with one CPT per feature; return the first best class.

    Returns -2 if a code is out of range, or -1 if one is missing; the scores are then undefined.
    """
    n_classes = scores.shape[0]
    is_complete = True
    for t in range(codes.shape[0]):
        if codes[t] == missing:
            is_complete = False
        elif codes[t] < 0 or codes[t] >= n_states[t]:
            return -2
    if not is_complete:
        return -1
    for c in range(n_classes):
        scores[c] = cells[c]
    for t in range(codes.shape[0]):
        row = codes[t]
        for p in range(parents.shape[1]):
            j = parents[t, p]
            if j >= 0:
                row = row * n_states[j] + codes[j]
        begin = offset[t] + row * n_classes
        for c in range(n_classes):
            scores[c] += cells[begin + c]
    best = 0
    for c in range(1, n_classes):
        if scores[c] > scores[best]:
            best = c
    return best


@kernel
def log_joint_adjoint(  # type: ignore[no-untyped-def]
    codes, first, d_scores, child, parents, n_states, offset, selected, missing, rows, d_cells
):
    """Add the transpose of :func:`log_joint` applied to ``d_scores``."""
    n, n_classes = d_scores.shape
    d_prior = d_cells[:n_classes]
    for k in range(n):
        row = d_scores[k]
        for c in range(n_classes):
            d_prior[c] += row[c]
    for s in range(selected.shape[0]):
        t = selected[s]
        family_rows(codes, first, child[t], parents[t], n_states, missing, rows)
        d_table = d_cells[offset[t] : offset[t + 1]]
        for k in range(n):
            cell = rows[k] * n_classes
            values = d_table[cell : cell + n_classes]
            row = d_scores[k]
            for c in range(n_classes):
                values[c] += row[c]


@kernel
def choice_gradient(  # type: ignore[no-untyped-def]
    codes, first, d_scores, cells, child, parents, n_states, offset, missing, rows, d_choice
):
    """Write the derivative of the loss with respect to the choice of each CPT.

    ``d_choice[t] = sum over n, c of d_scores[n, c] * t[row(n), c]`` (differentiable TAN, eq. 12, the straight-through
    factor before the softmax).
    """
    n, n_classes = d_scores.shape
    for t in range(child.shape[0]):
        family_rows(codes, first, child[t], parents[t], n_states, missing, rows)
        table = cells[offset[t] : offset[t + 1]]
        total = 0.0
        for k in range(n):
            cell = rows[k] * n_classes
            values = table[cell : cell + n_classes]
            row = d_scores[k]
            for c in range(n_classes):
                total += row[c] * values[c]
        d_choice[t] = total


@kernel
def add_choice_gradient(  # type: ignore[no-untyped-def]
    codes, first, d_scores, cells, child, parents, n_states, offset, selected, missing, rows, drawn_rows, d_choice
):
    """Add the contribution of incomplete samples to the choice gradient, relative to the drawn CPT of the same child.

    If child and parents of both CPTs are observed, it is the difference of their two entries. Other samples add
    nothing. For a leaf with a missing value, the score does not change; for other families, more than one entry
    changes.
    """
    n, n_classes = d_scores.shape
    for t in range(child.shape[0]):
        drawn = selected[child[t]]
        if t == drawn:
            continue
        family_rows(codes, first, child[t], parents[t], n_states, missing, rows)
        family_rows(codes, first, child[t], parents[drawn], n_states, missing, drawn_rows)
        table, drawn_table = cells[offset[t] : offset[t + 1]], cells[offset[drawn] : offset[drawn + 1]]
        total = 0.0
        for k in range(n):
            if rows[k] >= 0 and drawn_rows[k] >= 0:
                cell, drawn_cell = rows[k] * n_classes, drawn_rows[k] * n_classes
                for c in range(n_classes):
                    total += d_scores[k, c] * (table[cell + c] - drawn_table[drawn_cell + c])
        d_choice[t] += total
