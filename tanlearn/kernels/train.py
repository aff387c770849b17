"""Steps and whole epochs of gradient TAN: the unfused step of ``training/engines.py`` in as few passes as possible.

* Rows of tables are read and written a vector register at a time (``_lanes.py``).
* Every table is gone through once a step, while it is in the first-level cache: the gradient of its being
  chosen, and its step of Adam (``sweep.py``).
* A candidate far behind the best one has no share in the softmax, so it needs no gradient; late in training, when the
  temperature is low, that goes for most.
* Where log-probabilities are to have few bits, a table is rounded while it is there, for the scores only; its gradient
  goes straight through ([RE] eq. 8).
* A table that is not drawn moves on for a while, along a direction that stays as it is. How far is added up
  (``pending``), and the table catches up when it is next looked at.
* Rows that miss something come last in a batch. What they miss is summed out of the drawn tables, in double precision
  (``gaps.py``), and each row's gradient is spread while all that it takes is at hand.

A step has three parts. The second goes through the features' tables and may be shared by threads: no table knows of
another, so the result is the same.
"""
# Shapes: n samples, d features, C classes, P lanes (C padded), T tables, M cells, B batch, S steps of an epoch,
# D cells of any drawn tables, and the prior

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.adam import adam_step
from tanlearn.kernels.gaps import Forest, Work, find_touched, go_down, go_up, observed_starts, order_upward
from tanlearn.kernels.losses import row_loss
from tanlearn.kernels.quantization import round_cells
from tanlearn.kernels.rows import add_rows, dot_observed_rows, dot_rows, gather_rows
from tanlearn.kernels.scores import Families
from tanlearn.kernels.sweep import sweep_drawn, sweep_undrawn
from tanlearn.kernels.trees import (
    Graph,
    draw_arborescence,
    draw_independent,
    gumbel,
    perturb,
    price_gradient,
    structure_gradient,
)

_ZERO = np.float32(0.0)
#: A way so short along a direction of Adam's (at most 7.3 for decays of 0.9 and 0.999) moves a cell by less than 3e-8,
#: half of what float32 resolves beside 1. It is left pending, not lost.
NEGLIGIBLE = np.float32(4e-9)
#: Softmax shares below exp(-36) = 2.3e-16 are lost in a sum of shares in double precision.
HOPELESS = -36.0


class Problem(NamedTuple):
    """What training does not change."""

    codes: Any  # (d, n)
    y: Any  # (n,)
    weight: Any  # (n,)
    families: Families  # of T tables
    group: Any  # (d + 1,): the tables of feature i are group[i]:group[i + 1]
    table_parent: Any  # (T,)
    arborescence: Any  # bool: draw whole trees
    loss: Any  # number of a built-in loss
    loss_parameters: Any  # (3,)
    rounding: Any  # (2,): step and most steps of fixed-point numbers, or zeros
    price: Any  # (T,): of every table, or nothing


class Parameters(NamedTuple):
    """What training changes: tables and structure logits, each with the state of Adam; on CUDA, without slack."""

    theta: Any  # (M + LANES,), as the next two
    direction: Any
    v: Any
    n_undrawn: Any  # (T,): steps since a table was last drawn
    pending: Any  # (T,): way along the direction that a table has not gone yet
    phi: Any  # (T,)
    phi_m: Any  # (T,)
    phi_v: Any  # (T,)


class Steps(NamedTuple):
    """Batches, noise and rates of the steps of an epoch."""

    order: Any  # (S, B): samples of every batch
    uniform: Any  # (S, T): what the Gumbel noise is made of
    step_sizes: Any  # (S,)
    structure_step_sizes: Any  # (S,)
    decay: Any  # (some,): of a direction, by steps since the last draw
    beta1: Any
    beta2: Any
    epsilon: Any
    temperature: Any


class Gaps(NamedTuple):
    """What rows that miss something take beside the scratch of all.

    Where none does, it is None, and what is about gaps is left out of compilation, which it makes twice as long.
    """

    is_incomplete: Any  # (n,)
    is_normalized: Any  # bool: whether the tables that score sum to one
    missing: Any  # the code
    n_complete: Any  # (1,): rows of the batch
    is_missed: Any  # (d,): whether a row of the batch misses the feature
    is_touched: Any  # (d,): or its drawn parent
    batch: Any  # (B,): complete rows first
    forest: Forest  # as drawn, with offsets in cells
    work: Work
    sample: Any  # (d,): codes
    cells: Any  # (D,): the prior and the drawn tables, as they score
    d_cells: Any  # (D,)
    score: Any  # (C,)
    d_score: Any  # (C,)
    drawn_start: Any  # (W, B): where the drawn table has the samples of the batch, or -1
    drawn: Any  # (W, B): what it says of being chosen


class Scratch(NamedTuple):
    """Memory that a step works in; what threads write has a first axis W, one row a thread."""

    batch_codes: Any  # (d, B)
    scores: Any  # (B, P)
    d_scores: Any  # (B, P), zero beyond C
    noise: Any  # (T,)
    perturbed: Any  # (T,)
    selected: Any  # (d,)
    d_choice: Any  # (T,)
    d_phi: Any  # (T,)
    graph: Graph
    start: Any  # (W, B)
    d_table: Any  # (W, longest table + P)
    shares: Any  # the same


@kernel
def family_starts(codes, child, parents, n_states, n_classes, start):  # type: ignore[no-untyped-def]
    """Write where in a table the row of every sample starts."""
    x = codes[child]
    if parents[0] < 0:
        for k in range(x.shape[0]):
            start[k] = x[k] * n_classes
    elif parents[1] < 0:
        width, z = n_states[parents[0]], codes[parents[0]]
        for k in range(x.shape[0]):
            start[k] = (x[k] * width + z[k]) * n_classes
    else:
        width, z = n_states[parents[0]], codes[parents[0]]
        width2, z2 = n_states[parents[1]], codes[parents[1]]
        for k in range(x.shape[0]):
            start[k] = ((x[k] * width + z[k]) * width2 + z2[k]) * n_classes


@kernel
def catch_up(t, n_values, offset, direction, theta, pending, shares):  # type: ignore[no-untyped-def]
    """Let a table go what is pending."""
    if pending[t] > NEGLIGIBLE:
        begin = offset[t]
        width = (offset[t + 1] - begin) // n_values
        sweep_undrawn(direction[begin:], theta[begin:], width, n_values, pending[t], shares)
        pending[t] = _ZERO


@kernel
def _complete_first(batch, is_incomplete, sorted_batch):  # type: ignore[no-untyped-def]
    """Write the samples of a batch that miss nothing, then the others, and return how many miss nothing."""
    n_sorted = 0
    for other in range(2):
        n_complete = n_sorted
        for k in range(batch.shape[0]):
            if is_incomplete[batch[k]] == (other == 1):
                sorted_batch[n_sorted] = batch[k]
                n_sorted += 1
    return n_complete


@kernel
def _find_missed(codes, gaps):  # type: ignore[no-untyped-def]
    """Write which features the incomplete samples miss."""
    for i in range(codes.shape[0]):
        x = codes[i][gaps.n_complete[0] :]
        gaps.is_missed[i] = False
        for k in range(x.shape[0]):
            if x[k] == gaps.missing:
                gaps.is_missed[i] = True
                break


@kernel
def _keep_drawn(table, n_cells, lanes, shares, cells):  # type: ignore[no-untyped-def]
    """Write a drawn table in single precision, with zeros behind it, and in double."""
    for j in range(n_cells):
        shares[j] = table[j]
        cells[j] = table[j]
    for j in range(n_cells, n_cells + lanes):
        shares[j] = _ZERO


@kernel
def _incomplete_starts(i, j, n_states, n_classes, codes, gaps, nowhere, start):  # type: ignore[no-untyped-def]
    """Write where in a table the incomplete samples are, ``nowhere`` for those that miss the feature or its parent."""
    observed_starts(codes, gaps.n_complete[0], i, j, n_states, 0, n_classes, gaps.missing, nowhere, start)


@kernel
def _sum_out(k, gaps, codes, row):  # type: ignore[no-untyped-def]
    """Add to the score of a sample what it misses; return how many families that touches."""
    sample, score = gaps.sample, gaps.score
    for i in range(sample.shape[0]):
        sample[i] = codes[i, k]
    n_touched = find_touched(sample, gaps.forest, gaps.is_normalized, gaps.missing, gaps.work)
    if n_touched > 0:
        for c in range(score.shape[0]):
            score[c] = row[c]
        touched = gaps.work.families[:n_touched]
        go_up(sample, touched, gaps.forest, gaps.cells, gaps.missing, gaps.work, score)
        for c in range(score.shape[0]):
            row[c] = score[c]
    return n_touched


@kernel
def _spread_out(n_touched, gaps, d_row):  # type: ignore[no-untyped-def]
    """Add the gradient for the cells that the sample of the last call of :func:`_sum_out` touches."""
    d_score, touched = gaps.d_score, gaps.work.families[:n_touched]
    for c in range(d_score.shape[0]):
        d_score[c] = d_row[c]
    go_down(gaps.sample, touched, gaps.forest, gaps.cells, gaps.missing, d_score, gaps.work, gaps.d_cells)


@kernel
def _weigh_drawn(i, n_states, n_classes, width, d_scores, codes, gaps, drawn_start, drawn):  # type: ignore[no-untyped-def]
    """Write what the drawn table of a feature says of its being chosen, for every incomplete sample that has it."""
    n_complete, cells, offset = gaps.n_complete[0], gaps.cells, gaps.forest.offset[i]
    _incomplete_starts(i, gaps.forest.parent[i], n_states, n_classes, codes, gaps, -1, drawn_start)
    for k in range(drawn_start.shape[0]):
        drawn[k] = 0.0
        if drawn_start[k] >= 0:
            first = (n_complete + k) * width
            for c in range(n_classes):
                drawn[k] += d_scores[first + c] * cells[offset + drawn_start[k] + c]


@kernel
def begin_step(s, problem, parameters, steps, scratch, gaps):  # type: ignore[no-untyped-def]
    """Draw a structure, score the batch, write the loss gradient, and step the prior; return the mean loss."""
    families, graph = problem.families, scratch.graph
    offset, n_states, parents = families.offset, families.n_states, families.parents
    direction, theta, pending = parameters.direction, parameters.theta, parameters.pending
    scores, start, shares = scratch.scores, scratch.start[0], scratch.shares[0]
    flat_scores = scores.ravel()
    step, most = problem.rounding[0], problem.rounding[1]
    batch = steps.order[s]
    size, n_classes = batch.shape[0], offset[0]
    n_complete, n_drawn = size, n_classes
    if gaps is not None:
        n_complete = _complete_first(batch, gaps.is_incomplete, gaps.batch)
        gaps.n_complete[0] = n_complete
        batch = gaps.batch
    incomplete = start[n_complete:]
    for i in range(n_states.shape[0]):
        x, out = problem.codes[i], scratch.batch_codes[i]
        for k in range(size):
            out[k] = x[batch[k]]
    gumbel(steps.uniform[s], scratch.noise)
    perturb(parameters.phi, scratch.noise, problem.group, scratch.perturbed)
    if problem.arborescence:
        draw_arborescence(
            scratch.perturbed,
            problem.group,
            problem.table_parent,
            graph.weight,
            graph.source,
            graph.target,
            graph.work,
            scratch.selected,
        )
    else:
        draw_independent(scratch.perturbed, problem.group, scratch.selected)
    prior = theta
    if step > 0:
        prior = shares
        round_cells(theta, n_classes, step, most, prior)
    for k in range(size):
        row = scores[k]
        for c in range(n_classes):
            row[c] = prior[c]
    if gaps is not None and n_complete < size:
        _find_missed(scratch.batch_codes, gaps)
        for c in range(n_classes):
            gaps.cells[c] = prior[c]
    for i in range(n_states.shape[0]):
        t = scratch.selected[i]
        catch_up(t, n_states[i], offset, direction, theta, pending, shares)
        family_starts(scratch.batch_codes, i, parents[t], n_states, n_classes, start)
        table, n_cells = theta[offset[t] :], offset[t + 1] - offset[t]
        if step > 0:
            round_cells(table, n_cells, step, most, shares)
            table = shares
        if gaps is not None and n_complete < size:
            j = parents[t, 0]
            gaps.forest.parent[i], gaps.forest.offset[i] = j, n_drawn
            gaps.is_touched[i] = gaps.is_missed[i] or (j >= 0 and gaps.is_missed[j])
            if gaps.is_touched[i] or problem.group[i + 1] - problem.group[i] > 1:
                _keep_drawn(table, n_cells, scores.shape[1], shares, gaps.cells[n_drawn:])
                table, n_drawn = shares, n_drawn + n_cells
            if gaps.is_touched[i]:
                _incomplete_starts(i, j, n_states, n_classes, scratch.batch_codes, gaps, n_cells, incomplete)
        gather_rows(flat_scores, table, start)
    if gaps is not None and n_complete < size:
        order_upward(gaps.forest.parent, gaps.forest.upward, gaps.work.state)
        gaps.work.is_known[:] = False
        gaps.d_cells[:n_drawn] = 0.0
    mean_loss = 0.0
    d_prior = scratch.d_table[0]
    for c in range(n_classes):
        d_prior[c] = _ZERO
    loss, parameter = problem.loss, problem.loss_parameters
    for k in range(size):
        n_touched = 0
        if gaps is not None and k >= n_complete:
            n_touched = _sum_out(k, gaps, scratch.batch_codes, scores[k])
        share = problem.weight[batch[k]] / np.float32(size)
        d_row = scratch.d_scores[k][:n_classes]
        value = row_loss(
            loss, scores[k][:n_classes], problem.y[batch[k]], parameter[0], parameter[1], parameter[2], d_row
        )
        mean_loss += share * value
        for c in range(n_classes):
            d_row[c] *= share
            d_prior[c] += d_row[c]
        if gaps is not None and n_touched > 0:
            _spread_out(n_touched, gaps, d_row)
    sweep_drawn(
        d_prior,
        direction,
        parameters.v,
        theta,
        1,
        n_classes,
        0,
        steps.step_sizes[s],
        steps.beta1,
        steps.beta2,
        steps.epsilon,
    )
    return mean_loss


@kernel
def step_tables(s, first, last, thread, problem, parameters, steps, scratch, gaps):  # type: ignore[no-untyped-def]
    """Write the choice gradients of the features ``first`` to ``last - 1``, and step their tables."""
    # Every array is taken out of its tuple once: each time costs Numba an atomic increment.
    families, group = problem.families, problem.group
    parents, n_states, offset = families.parents, families.n_states, families.offset
    theta, direction, v = parameters.theta, parameters.direction, parameters.v
    n_undrawn, pending = parameters.n_undrawn, parameters.pending
    decay, beta1, beta2, epsilon, temperature = steps.decay, steps.beta1, steps.beta2, steps.epsilon, steps.temperature
    codes, perturbed, selected = scratch.batch_codes, scratch.perturbed, scratch.selected
    d_scores, d_choice, start = scratch.d_scores.ravel(), scratch.d_choice, scratch.start[thread]
    d_table, shares = scratch.d_table[thread], scratch.shares[thread]
    n_classes, step_size = offset[0], steps.step_sizes[s]
    step, most = problem.rounding[0], problem.rounding[1]
    lanes, n_complete = scratch.d_scores.shape[1], start.shape[0]
    if gaps is not None:
        n_complete = gaps.n_complete[0]
        drawn_start, drawn_choice = gaps.drawn_start[thread][n_complete:], gaps.drawn[thread][n_complete:]
    n_incomplete = start.shape[0] - n_complete
    complete, incomplete = start[:n_complete], start[n_complete:]
    d_complete, d_incomplete = d_scores[: n_complete * lanes], d_scores[n_complete * lanes :]
    for i in range(first, last):
        n_tables = group[i + 1] - group[i]
        if gaps is not None and n_incomplete > 0 and n_tables > 1:
            _weigh_drawn(i, n_states, n_classes, lanes, d_scores, codes, gaps, drawn_start, drawn_choice)
        top = perturbed[group[i]]
        for t in range(group[i], group[i + 1]):
            top = max(top, perturbed[t])
        for t in range(group[i], group[i + 1]):
            drawn = selected[i] == t
            hopeful = n_tables > 1 and (perturbed[t] - top) / temperature > HOPELESS
            begin, width = offset[t], (offset[t + 1] - offset[t]) // n_states[i]
            if drawn or hopeful:
                family_starts(codes, i, parents[t], n_states, n_classes, start)
            d_choice[t] = 0.0
            if hopeful:
                catch_up(t, n_states[i], offset, direction, theta, pending, shares)
                table = theta[begin:]
                if step > 0:
                    round_cells(table, offset[t + 1] - begin, step, most, shares)
                    table = shares
                if n_complete > 0:
                    d_choice[t] = dot_rows(d_complete, table, complete)
                if gaps is not None and n_incomplete > 0 and not drawn:
                    _incomplete_starts(i, parents[t, 0], n_states, n_classes, codes, gaps, -1, incomplete)
                    d_choice[t] += dot_observed_rows(d_incomplete, table, incomplete, drawn_choice, drawn_start)
            if drawn:
                n_cells = width * n_states[i]
                for j in range(n_cells):
                    d_table[j] = _ZERO
                if gaps is not None and n_incomplete > 0 and gaps.is_touched[i]:
                    kept = gaps.d_cells[gaps.forest.offset[i] :]
                    for j in range(n_cells):
                        d_table[j] = kept[j]
                    _incomplete_starts(i, parents[t, 0], n_states, n_classes, codes, gaps, n_cells, incomplete)
                add_rows(d_scores, d_table, start)
                sweep_drawn(
                    d_table,
                    direction[begin:],
                    v[begin:],
                    theta[begin:],
                    width,
                    n_states[i],
                    n_undrawn[t],
                    step_size,
                    beta1,
                    beta2,
                    epsilon,
                )
                n_undrawn[t] = 0
            else:
                n_undrawn[t] += 1
                if n_undrawn[t] < decay.shape[0]:
                    pending[t] += step_size * decay[n_undrawn[t]]


@kernel
def finish_step(s, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Step the structure logits."""
    if problem.table_parent.shape[0] > problem.group.shape[0] - 1:
        structure_gradient(scratch.perturbed, problem.group, steps.temperature, scratch.d_choice, scratch.d_phi)
        if problem.price.shape[0] > 0:
            price_gradient(scratch.perturbed, scratch.noise, problem.group, problem.price, scratch.d_phi)
        adam_step(
            parameters.phi,
            scratch.d_phi,
            steps.structure_step_sizes[s],
            np.float64(steps.beta1),
            np.float64(steps.beta2),
            np.float64(steps.epsilon),
            parameters.phi_m,
            parameters.phi_v,
        )


@kernel
def settle(problem, parameters, scratch):  # type: ignore[no-untyped-def]
    """Let all tables catch up."""
    families, shares = problem.families, scratch.shares[0]
    child, offset, n_states = families.child, families.offset, families.n_states
    direction, theta, pending = parameters.direction, parameters.theta, parameters.pending
    for t in range(child.shape[0]):
        catch_up(t, n_states[child[t]], offset, direction, theta, pending, shares)


@kernel
def train_epoch(problem, parameters, steps, scratch, gaps):  # type: ignore[no-untyped-def]
    """Train one epoch in place and return the sum of the batches' mean losses."""
    total = 0.0
    for s in range(steps.order.shape[0]):
        total += begin_step(s, problem, parameters, steps, scratch, gaps)
        step_tables(s, 0, problem.group.shape[0] - 1, 0, problem, parameters, steps, scratch, gaps)
        finish_step(s, problem, parameters, steps, scratch)
    settle(problem, parameters, scratch)
    return total
