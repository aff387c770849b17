"""Training steps and epochs of gradient TAN: the fused version of the step in ``training/engines.py``.

Each step draws a structure, scores a batch, and updates the drawn CPTs and the structure logits (Roth and Pernkopf,
"Differentiable TAN structure learning for Bayesian network classifiers", PGM 2020).

* Rows of CPTs are read and written one vector register at a time (``_lanes.py``).
* Each CPT is visited once per step, while it is in the first-level cache, for its choice gradient and its Adam step
  (``sweep.py``).
* Candidates far behind the best have a negligible softmax probability and need no gradient. Late in training, when the
  temperature is low, these are most candidates.
* If log probabilities are rounded to few bits, a CPT is rounded while it is in cache, for the scores only. Its gradient
  is passed straight through ([RE] eq. 8).
* A CPT that is not drawn keeps moving along a constant direction. The distance is accumulated in ``pending`` and
  applied when the CPT is next read.
* Rows with missing values come last in a batch. Their missing values are marginalized over the drawn CPTs in double
  precision (``gaps.py``), and the gradient of each row is distributed right after its score.

A step consists of begin_step, step_tables and finish_step. The second can be divided between threads by features. CPTs
are independent of each other, so the result does not depend on the number of threads.
"""
# Shapes: n samples, d features, C classes, P = padded(C), T CPTs (candidate families), M parameters, B samples of a
# batch, S steps of an epoch, D parameters of the prior and of the largest CPT of each feature, W threads

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
#: A distance below this along an Adam direction (at most 7.3 for decays of 0.9 and 0.999) moves a parameter by less
#: than 3e-8, half of the resolution of float32 at 1. The distance stays pending and is not lost.
NEGLIGIBLE = np.float32(4e-9)
#: Softmax probabilities below exp(-36) = 2.3e-16 are lost in a sum of probabilities in double precision.
HOPELESS = -36.0


class Problem(NamedTuple):
    """Constants of a training."""

    codes: Any  # uint8 or uint16 (d, n)
    y: Any  # intp (n,) classes
    weight: Any  # float32 (n,) weights of the rows in the mean loss
    families: Families  # of T CPTs
    group: Any  # intp (d + 1,) the CPTs of feature i are group[i]:group[i + 1]
    table_parent: Any  # intp (T,) parent of each CPT, -1 for none
    arborescence: Any  # bool, whether to draw whole trees
    loss: Any  # int, number of a built-in loss (losses.py)
    loss_parameters: Any  # float32 (3,)
    rounding: Any  # float32 (2,) step and largest number of steps of fixed-point numbers; zeros for none
    price: Any  # float64 (T,) penalty on the size of each CPT, or (0,) for none


class Parameters(NamedTuple):
    """CPTs and structure logits with their Adam state, updated in place; on CUDA without the padding of LANES."""

    theta: Any  # float32 (M + LANES,) log parameters
    direction: Any  # float32 (M + LANES,) m / (sqrt(v) + epsilon)
    v: Any  # float32 (M + LANES,) second Adam moment
    n_undrawn: Any  # intp (T,) steps since a CPT was last drawn
    pending: Any  # float32 (T,) distance along the direction that is not yet applied
    phi: Any  # float64 (T,) structure logits
    phi_m: Any  # float64 (T,) Adam moments of the logits
    phi_v: Any  # float64 (T,)


class Steps(NamedTuple):
    """Batches, noise and step sizes of the steps of an epoch."""

    order: Any  # int64 (S, B) samples of each batch
    uniform: Any  # float32 (S, T) uniform numbers of the Gumbel noise
    step_sizes: Any  # float32 (S,) of the CPTs
    structure_step_sizes: Any  # float64 (S,)
    decay: Any  # float32 (n_decay,) factor of a direction by steps since the last draw
    beta1: Any  # float32, Adam parameters
    beta2: Any  # float32
    epsilon: Any  # float32
    temperature: Any  # float, of the softmax of the straight-through gradient


class Gaps(NamedTuple):
    """Work arrays for rows with missing values.

    If all rows are complete, kernels get None instead, and the code for missing values is not compiled; it would double
    the compilation time.
    """

    is_incomplete: Any  # bool (n,) rows with missing values
    is_normalized: Any  # bool, whether the CPTs that give the scores sum to one
    missing: Any  # int, code of a missing value
    n_complete: Any  # intp (1,) number of complete rows of the batch
    is_missed: Any  # bool (d,) whether the feature is missing in a row of the batch
    is_touched: Any  # bool (d,) whether the feature or its drawn parent is missing in a row of the batch
    batch: Any  # int64 (B,) samples of the batch, complete rows first
    forest: Forest  # drawn structure, with offsets in cells
    work: Work
    sample: Any  # uint8 or uint16 (d,) codes of the current row
    cells: Any  # float64 (D,) prior and drawn CPTs, rounded as for the scores
    d_cells: Any  # float64 (D,) their gradient
    score: Any  # float64 (C,)
    d_score: Any  # float64 (C,)
    drawn_start: Any  # int32 (W, B) start of each sample's row in the drawn CPT, or -1
    drawn: Any  # float64 (W, B) choice gradient of the drawn CPT per sample


class Scratch(NamedTuple):
    """Work arrays of a step; arrays written by several threads have a first axis W, one row per thread."""

    batch_codes: Any  # uint8 or uint16 (d, B)
    scores: Any  # float32 (B, P)
    d_scores: Any  # float32 (B, P) zero beyond C
    noise: Any  # float32 (T,)
    perturbed: Any  # float64 (T,)
    selected: Any  # intp (d,) drawn CPT of each feature
    d_choice: Any  # float64 (T,)
    d_phi: Any  # float64 (T,)
    graph: Graph
    start: Any  # int32 (W, B) start of each sample's row in a CPT
    d_table: Any  # float32 (W, longest CPT + P)
    shares: Any  # float32 (W, longest CPT + P)


@kernel
def family_starts(codes, child, parents, n_states, n_classes, start):  # type: ignore[no-untyped-def]
    """Write the start of each sample's row in a CPT; all values must be observed."""
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
    """Apply the deferred Adam updates of a CPT."""
    if pending[t] > NEGLIGIBLE:
        begin = offset[t]
        width = (offset[t + 1] - begin) // n_values
        sweep_undrawn(direction[begin:], theta[begin:], width, n_values, pending[t], shares)
        pending[t] = _ZERO


@kernel
def _complete_first(batch, is_incomplete, sorted_batch):  # type: ignore[no-untyped-def]
    """Write the samples of a batch, complete ones first, and return the number of complete ones."""
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
    """Write which features are missing in incomplete samples."""
    for i in range(codes.shape[0]):
        x = codes[i][gaps.n_complete[0] :]
        gaps.is_missed[i] = False
        for k in range(x.shape[0]):
            if x[k] == gaps.missing:
                gaps.is_missed[i] = True
                break


@kernel
def _keep_drawn(table, n_cells, lanes, shares, cells):  # type: ignore[no-untyped-def]
    """Write a drawn CPT in single precision, followed by zeros, and in double precision."""
    for j in range(n_cells):
        shares[j] = table[j]
        cells[j] = table[j]
    for j in range(n_cells, n_cells + lanes):
        shares[j] = _ZERO


@kernel
def _incomplete_starts(i, j, n_states, n_classes, codes, gaps, nowhere, start):  # type: ignore[no-untyped-def]
    """Write the row starts of the incomplete samples; ``nowhere`` if the feature or its parent is missing."""
    observed_starts(codes, gaps.n_complete[0], i, j, n_states, 0, n_classes, gaps.missing, nowhere, start)


@kernel
def _sum_out(k, gaps, codes, row):  # type: ignore[no-untyped-def]
    """Add the contribution of a sample's missing features to its score; return the number of families involved."""
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
    """Add the gradient with respect to the cells for the sample of the last call of :func:`_sum_out`."""
    d_score, touched = gaps.d_score, gaps.work.families[:n_touched]
    for c in range(d_score.shape[0]):
        d_score[c] = d_row[c]
    go_down(gaps.sample, touched, gaps.forest, gaps.cells, gaps.missing, d_score, gaps.work, gaps.d_cells)


@kernel
def _weigh_drawn(i, n_states, n_classes, width, d_scores, codes, gaps, drawn_start, drawn):  # type: ignore[no-untyped-def]
    """Write the choice gradient of a feature's drawn CPT for each incomplete sample in which its family is observed."""
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
    """Draw a structure, score the batch, write the loss gradient, and update the prior; return the mean loss."""
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
    """Write the choice gradients of the features ``first`` to ``last - 1``, and update their CPTs."""
    # Each array is read from its tuple once, because each access costs an atomic increment in Numba.
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
    """Update the structure logits."""
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
    """Apply all deferred Adam updates."""
    families, shares = problem.families, scratch.shares[0]
    child, offset, n_states = families.child, families.offset, families.n_states
    direction, theta, pending = parameters.direction, parameters.theta, parameters.pending
    for t in range(child.shape[0]):
        catch_up(t, n_states[child[t]], offset, direction, theta, pending, shares)


@kernel
def train_epoch(problem, parameters, steps, scratch, gaps):  # type: ignore[no-untyped-def]
    """Train one epoch in place, and return the sum of the mean losses of the batches."""
    total = 0.0
    for s in range(steps.order.shape[0]):
        total += begin_step(s, problem, parameters, steps, scratch, gaps)
        step_tables(s, 0, problem.group.shape[0] - 1, 0, problem, parameters, steps, scratch, gaps)
        finish_step(s, problem, parameters, steps, scratch)
    settle(problem, parameters, scratch)
    return total
