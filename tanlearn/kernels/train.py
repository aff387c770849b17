"""Whole epochs of gradient TAN in one call: the unfused step of ``training.py`` in as few passes as possible.

What makes it fast:

* A margin loss leaves most entries of ``d_scores`` at zero. The others are listed once a batch, and every candidate
  table then costs one gather per entry of the list instead of ``n_classes`` per sample.
* Normalisation does not see a constant added to a column, so ``rho`` need not be kept: Adam moves ``theta``
  itself, and the sum of ``exp(theta)``, which is close to one, is taken off again. That is one array less to
  read and write, and no pass for the maximum.
* Each table is swept (pull-back, Adam, normalisation) while it is in the first-level cache.
* Adam moves a table for a while after it was last drawn. When nothing is left of that, the table rests until it
  is drawn again; late in training most tables do.
"""
# Shapes: n samples, d features, C classes, T tables, M cells, B batch, Q listed gradient entries.
# codes (d, n); batch_codes (d, B); rows (B,); entry_codes (d, B * C), entry_class, entry_sample (B * C,) and
# entry_d (B * C,) hold the list in their first Q places; the rest as in kernels/scores.py and kernels/trees.py

from __future__ import annotations

import math

import numpy as np

from tanlearn._jit import kernel
from tanlearn.kernels.adam import SMALLEST_MOMENT, adam_step
from tanlearn.kernels.losses import row_loss
from tanlearn.kernels.scores import log_joint
from tanlearn.kernels.trees import draw_arborescence, draw_independent, gumbel, perturb, structure_gradient
from tanlearn.kernels.vector import exp32, log32

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_SMALLEST = np.float32(SMALLEST_MOMENT)
#: A table that is not drawn for so many steps rests: its moments have decayed so far (0.9^200 = 7e-10) that all
#: steps to come together move a cell by less than 1e-7 of a first step, below the resolution of float32.
REST_AFTER = 200


@kernel
def list_entries(codes, d_scores, entry_sample, entry_class, entry_d, entry_codes):  # type: ignore[no-untyped-def]
    """List the entries of ``d_scores`` that are not zero, and the codes of their samples; return how many."""
    n, n_classes = d_scores.shape
    count = 0
    for k in range(n):
        row = d_scores[k]
        for c in range(n_classes):
            if row[c] != 0:
                entry_sample[count] = k
                entry_class[count] = c
                entry_d[count] = row[c]
                count += 1
    for i in range(codes.shape[0]):
        x, out = codes[i], entry_codes[i]
        for q in range(count):
            out[q] = x[entry_sample[q]]
    return count


@kernel
def entry_cells(entry_codes, entry_class, count, child, parents, n_states, n_classes, cell):  # type: ignore[no-untyped-def]
    """Write for every listed entry the cell of a table that it falls on."""
    x = entry_codes[child]
    if parents[0] < 0:
        for q in range(count):
            cell[q] = x[q] * n_classes + entry_class[q]
    elif parents[1] < 0:
        width, z = n_states[parents[0]], entry_codes[parents[0]]
        for q in range(count):
            cell[q] = (x[q] * width + z[q]) * n_classes + entry_class[q]
    else:
        width, z = n_states[parents[0]], entry_codes[parents[0]]
        width2, z2 = n_states[parents[1]], entry_codes[parents[1]]
        for q in range(count):
            cell[q] = ((x[q] * width + z[q]) * width2 + z2[q]) * n_classes + entry_class[q]


@kernel
def sweep_idle(m, v, theta, n_values, step_size, beta1, beta2, epsilon, shares, total):  # type: ignore[no-untyped-def]
    """Take an Adam step with gradient zero, and normalise."""
    for j in range(theta.shape[0]):
        first = beta1 * m[j]
        second = beta2 * v[j]
        m[j] = _ZERO if abs(first) < _SMALLEST else first
        v[j] = _ZERO if second < _SMALLEST else second
        moved = theta[j] - step_size * first / (math.sqrt(second) + epsilon)
        theta[j] = moved
        shares[j] = exp32(moved)
    _normalize(theta, n_values, shares, total)


@kernel
def sweep(d_theta, m, v, theta, n_values, step_size, beta1, beta2, epsilon, shares, total):  # type: ignore[no-untyped-def]
    """Pull the gradient back through the normalisation, take an Adam step, and normalise."""
    size = theta.shape[0]
    width = size // n_values
    _column_sums(d_theta[:size], n_values, total)
    for j in range(size):
        shares[j] = exp32(theta[j])
    for x in range(n_values):
        d_row, share = d_theta[x * width : (x + 1) * width], shares[x * width : (x + 1) * width]
        for j in range(width):
            d_row[j] -= share[j] * total[j]
    for j in range(size):
        first = beta1 * m[j] + (_ONE - beta1) * d_theta[j]
        second = beta2 * v[j] + (_ONE - beta2) * d_theta[j] * d_theta[j]
        m[j] = _ZERO if abs(first) < _SMALLEST else first
        v[j] = _ZERO if second < _SMALLEST else second
        moved = theta[j] - step_size * first / (math.sqrt(second) + epsilon)
        theta[j] = moved
        shares[j] = exp32(moved)
    _normalize(theta, n_values, shares, total)


@kernel
def _column_sums(table, n_values, total):  # type: ignore[no-untyped-def]
    """Write the sums over the child's values."""
    width = table.shape[0] // n_values
    for j in range(width):
        total[j] = table[j]
    for x in range(1, n_values):
        row = table[x * width : (x + 1) * width]
        for j in range(width):
            total[j] += row[j]


@kernel
def _normalize(theta, n_values, shares, total):  # type: ignore[no-untyped-def]
    """Take the logarithm of the sums of ``shares``, which is exp(theta), off every row."""
    width = theta.shape[0] // n_values
    _column_sums(shares[: theta.shape[0]], n_values, total)
    for j in range(width):
        total[j] = log32(total[j])
    for x in range(n_values):
        row = theta[x * width : (x + 1) * width]
        for j in range(width):
            row[j] -= total[j]


@kernel
def wake(m, v, n_steps, beta1, beta2):  # type: ignore[no-untyped-def]
    """Let the moments of a table decay by steps that were not taken."""
    decay1, decay2 = np.float32(beta1**n_steps), np.float32(beta2**n_steps)
    for j in range(m.shape[0]):
        m[j] *= decay1
        v[j] *= decay2


@kernel
def train_epoch(  # type: ignore[no-untyped-def]
    codes,
    y,
    weight,
    order,
    uniform,
    child,
    parents,
    n_states,
    offset,
    group,
    arborescence,
    kind,
    loss_parameters,
    step_sizes,
    structure_step_sizes,
    beta1,
    beta2,
    epsilon,
    temperature,
    m,
    v,
    theta,
    idle,
    phi_m,
    phi_v,
    phi,
):
    """Train one epoch in place and return the sum of the batches' mean losses.

    ``order`` (steps, B) holds the samples of every batch, ``uniform`` (steps, T) what the Gumbel noise is made of,
    ``idle`` (T,) the steps since a table was last drawn.
    """
    n_steps, size = order.shape
    d, n_classes, n_tables = codes.shape[0], offset[0], child.shape[0]
    batch_codes = np.empty((d, size), codes.dtype)
    rows = np.empty(size, np.intp)
    scores = np.empty((size, n_classes), np.float32)
    d_scores = np.empty((size, n_classes), np.float32)
    entry_sample = np.empty(size * n_classes, np.int32)
    entry_class = np.empty(size * n_classes, np.int32)  # 32 bits: 16 indices a vector
    entry_d = np.empty(size * n_classes, np.float32)
    entry_codes = np.empty((d, size * n_classes), codes.dtype)
    cell = np.empty(size * n_classes, np.int32)
    longest = n_classes
    for t in range(n_tables):
        longest = max(longest, offset[t + 1] - offset[t])
    d_table = np.empty(longest, np.float32)
    shares = np.empty(longest, np.float32)
    total = np.empty(longest, np.float32)
    noise = np.empty((1, n_tables), np.float32)
    perturbed = np.empty(n_tables)
    d_choice = np.empty(n_tables)
    d_phi = np.empty(n_tables)
    selected = np.empty(d, np.intp)
    nodes = 2 * d + 1 if arborescence else 0
    edge_weight = np.empty((nodes, nodes))
    source = np.empty((nodes, nodes), np.intp)
    target = np.empty((nodes, nodes), np.intp)
    work = np.empty((5, nodes), np.intp)
    table_parent = parents[:, 0].copy()
    total_loss = 0.0
    for s in range(n_steps):
        batch = order[s]
        for i in range(d):
            x, out = codes[i], batch_codes[i]
            for k in range(size):
                out[k] = x[batch[k]]
        gumbel(uniform[s : s + 1], noise)
        perturb(phi, noise[0], group, perturbed)
        if arborescence:
            draw_arborescence(perturbed, group, table_parent, edge_weight, source, target, work, selected)
        else:
            draw_independent(perturbed, group, selected)
        # No code is missing here, so no code can equal -1.
        log_joint(batch_codes, 0, theta, child, parents, n_states, offset, selected, -1, rows, scores)
        mean_loss = 0.0
        for k in range(size):
            share = weight[batch[k]] / np.float32(size)
            row = d_scores[k]
            mean_loss += share * row_loss(
                kind, scores[k], y[batch[k]], loss_parameters[0], loss_parameters[1], loss_parameters[2], row
            )
            for c in range(n_classes):
                row[c] *= share
        total_loss += mean_loss
        count = list_entries(batch_codes, d_scores, entry_sample, entry_class, entry_d, entry_codes)
        step_size = step_sizes[s]
        d_prior = d_table[:n_classes]
        for c in range(n_classes):
            d_prior[c] = _ZERO
        for q in range(count):
            d_prior[entry_class[q]] += entry_d[q]
        sweep(
            d_prior,
            m[:n_classes],
            v[:n_classes],
            theta[:n_classes],
            n_classes,
            step_size,
            beta1,
            beta2,
            epsilon,
            shares,
            total,
        )
        for t in range(n_tables):
            i = child[t]
            first, last = offset[t], offset[t + 1]
            table = theta[first:last]
            entry_cells(entry_codes, entry_class, count, i, parents[t], n_states, n_classes, cell)
            change = _ZERO
            for q in range(count):
                change += entry_d[q] * table[cell[q]]
            d_choice[t] = change
            m_table, v_table = m[first:last], v[first:last]
            if selected[i] == t:
                if idle[t] > REST_AFTER:
                    wake(m_table, v_table, idle[t] - REST_AFTER, beta1, beta2)
                idle[t] = 0
                gradient = d_table[: last - first]
                for j in range(last - first):
                    gradient[j] = _ZERO
                for q in range(count):
                    gradient[cell[q]] += entry_d[q]
                sweep(
                    gradient,
                    m_table,
                    v_table,
                    table,
                    n_states[i],
                    step_size,
                    beta1,
                    beta2,
                    epsilon,
                    shares,
                    total,
                )
            else:
                idle[t] += 1
                if idle[t] <= REST_AFTER:
                    sweep_idle(m_table, v_table, table, n_states[i], step_size, beta1, beta2, epsilon, shares, total)
        if n_tables > d:
            structure_gradient(perturbed, group, temperature, d_choice, d_phi)
            adam_step(
                phi,
                d_phi,
                structure_step_sizes[s],
                np.float64(beta1),
                np.float64(beta2),
                np.float64(epsilon),
                phi_m,
                phi_v,
            )
    return total_loss
