"""Training steps and epochs of gradient TAN: the fused version of the step in ``training/engines.py``.

Each step draws a structure, scores a batch, and updates the drawn CPTs and the structure logits (Roth and Pernkopf,
"Differentiable TAN structure learning for Bayesian network classifiers", PGM 2020).

* Rows of CPTs are read and written one vector register at a time (``_lanes.py``).
* Each CPT is visited once per step, while it is in the first-level cache, for its choice gradient and its Adam step
  (``sweep.py``).
* Candidates far behind the best have a negligible softmax probability and need no gradient. Late in training, when the
  temperature is low, this applies to most candidates.
* If log probabilities are rounded to few bits, a CPT is rounded while it is in cache, for the scores only. Its gradient
  is passed straight through ([RE] eq. 8).
* A CPT that is not drawn keeps moving along a constant direction. The distance is accumulated in ``pending`` and
  applied when the CPT is next read.
* Rows with missing values come last in a batch. Their missing values are marginalized over the drawn CPTs
  (``train_missing_values.py``).
* Kernels get None instead of MissingValues if all rows are complete, instead of the numbers of rounding or penalties if
  there are none, and instead of a Graph if no whole trees are drawn. The code for them is then not compiled. Missing
  values would double the total compilation time, and trees would add 0.5 s.

A step consists of begin_step, step_tables and finish_step. The second can be divided between threads by features. CPTs
are independent of each other, so the result does not depend on the number of threads. "eq." refers to this paper, and
"[RE] eq." to Roth, Schindler, Fröning and Pernkopf, "On resource-efficient Bayesian network classifiers and deep
neural networks".
"""
# Shapes: n samples, d features, C classes, P = padded(C), T CPTs (candidate families), M parameters, B samples of a
# batch, S steps of an epoch, D parameters of the prior and of the largest CPT of each feature, W threads
# i: feature, t: CPT, c: class, k: position in the batch, s: step; j: parent of i, -1 for none

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel, shared_kernel
from tanlearn.kernels.adam import adam_step
from tanlearn.kernels.losses import row_loss
from tanlearn.kernels.quantization import round_cells
from tanlearn.kernels.rows import add_rows, dot_observed_rows, dot_rows, gather_rows
from tanlearn.kernels.scores import Families
from tanlearn.kernels.sweep import sweep_drawn, sweep_undrawn
from tanlearn.kernels.train_missing_values import (
    add_family,
    complete_rows_first,
    drawn_choice_gradient,
    find_missing_features,
    finish_forest,
    incomplete_starts,
    marginal_gradient,
    marginalize,
    marginalize_adjoint,
)
from tanlearn.kernels.trees import (
    Graph,
    draw_arborescence,
    draw_independent,
    gumbel,
    perturb,
    size_penalty_gradient,
    structure_gradient,
)

_ZERO = np.float32(0.0)
#: A distance below this along an Adam direction (at most 7.3 for decays of 0.9 and 0.999) moves a parameter by less
#: than 3e-8, half of the resolution of float32 at 1. The distance stays pending and is not lost.
NEGLIGIBLE_DISTANCE = np.float32(4e-9)
#: Softmax probabilities below exp(-36) = 2.3e-16 are lost in a sum of probabilities in double precision.
NEGLIGIBLE_LOG_PROBABILITY = -36.0


class Problem(NamedTuple):
    """Constants of a training."""

    codes: Any  # uint8 or uint16 (d, n)
    y: Any  # intp (n,) classes
    weight: Any  # float32 (n,) weights of the rows in the mean loss
    families: Families  # of T CPTs
    group: Any  # intp (d + 1,) the CPTs of feature i are group[i]:group[i + 1]
    table_parent: Any  # intp (T,) parent of each CPT, -1 for none
    loss: Any  # int, number of a built-in loss (losses.py)
    loss_parameters: Any  # float32 (3,)
    rounding: Any  # float32 (2,) step and largest number of steps of fixed-point numbers, or None
    size_penalty: Any  # float64 (T,) penalty on the size of each CPT, or None


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
    graph: Graph | None  # None if no whole trees are drawn
    start: Any  # int32 (W, B) start of each sample's row in a CPT
    d_table: Any  # float32 (W, longest CPT + P)
    buffer: Any  # float32 (W, longest CPT + SWEEP_SCRATCH or P) rounded or normalized numbers of one CPT


@shared_kernel
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


@shared_kernel
def apply_pending(t, n_values, offset, direction, theta, pending, buffer):  # type: ignore[no-untyped-def]
    """Apply the deferred Adam updates of a CPT."""
    if pending[t] > NEGLIGIBLE_DISTANCE:
        begin = offset[t]
        width = (offset[t + 1] - begin) // n_values
        sweep_undrawn(direction[begin:], theta[begin:], width, n_values, pending[t], buffer)
        pending[t] = _ZERO


@kernel
def _scoring_table(table, n_cells, rounding, buffer):  # type: ignore[no-untyped-def]
    """Return the CPT that scores rows: the CPT itself, or its rounded copy in the buffer ([RE] eq. 11)."""
    if rounding is not None:
        round_cells(table, n_cells, rounding[0], rounding[1], buffer)
        return buffer
    return table


# First part of a step: structure, scores and their gradient


@shared_kernel
def _gather_batch(codes, batch, batch_codes):  # type: ignore[no-untyped-def]
    """Copy the codes of the samples of a batch."""
    for i in range(codes.shape[0]):
        x, out = codes[i], batch_codes[i]
        for k in range(batch.shape[0]):
            out[k] = x[batch[k]]


@shared_kernel
def _draw_structure(  # type: ignore[no-untyped-def]
    uniform, phi, group, table_parent, graph, noise, perturbed, selected
):
    """Draw a CPT for each feature: the largest log softmax(phi) + Gumbel noise (eq. 11), or a whole tree of CPTs."""
    gumbel(uniform, noise)
    perturb(phi, noise, group, perturbed)
    if graph is None:
        draw_independent(perturbed, group, selected)
    else:
        draw_arborescence(
            perturbed, group, table_parent, graph.weight, graph.source, graph.target, graph.work, selected
        )


@kernel
def _score_observed(  # type: ignore[no-untyped-def]
    families, group, rounding, theta, direction, pending, codes, selected, start, buffer, scores, missing_values
):
    """Write the log joint of the batch: the log prior plus the entries of the drawn CPTs (eq. 4).

    Incomplete rows get the entries of their observed families only; the drawn forest is prepared for the others.
    """
    offset, n_states, parents = families.offset, families.n_states, families.parents
    n_classes, lanes, flat_scores = offset[0], scores.shape[1], scores.reshape(scores.size)
    n_complete, n_drawn = scores.shape[0], n_classes
    prior = _scoring_table(theta, n_classes, rounding, buffer)
    for k in range(scores.shape[0]):
        row = scores[k]
        for c in range(n_classes):
            row[c] = prior[c]
    if missing_values is not None:
        n_complete = missing_values.n_complete[0]
        find_missing_features(codes, missing_values)
        for c in range(n_classes):
            missing_values.cells[c] = prior[c]
    incomplete = start[n_complete:]
    for i in range(n_states.shape[0]):
        t = selected[i]
        apply_pending(t, n_states[i], offset, direction, theta, pending, buffer)
        family_starts(codes, i, parents[t], n_states, n_classes, start)
        n_cells = offset[t + 1] - offset[t]
        table = _scoring_table(theta[offset[t] :], n_cells, rounding, buffer)
        if missing_values is not None and n_complete < scores.shape[0]:
            j, has_choice = parents[t, 0], group[i + 1] - group[i] > 1
            n_added = add_family(
                i, j, table, n_cells, n_drawn, has_choice, n_states, codes, lanes, buffer, incomplete, missing_values
            )
            if n_added > 0:
                table, n_drawn = buffer, n_drawn + n_added
        gather_rows(flat_scores, table, start)
    if missing_values is not None and n_complete < scores.shape[0]:
        finish_forest(n_drawn, missing_values)


@kernel
def _loss_gradient(  # type: ignore[no-untyped-def]
    batch, y, weight, loss, loss_parameters, codes, scores, d_scores, d_prior, missing_values
):
    """Write the gradient of the mean loss with respect to scores and prior; return the mean loss.

    The missing features of incomplete rows are marginalized, and their gradient is distributed while the beliefs of the
    row are still stored.
    """
    size, n_classes = batch.shape[0], d_prior.shape[0]
    p0, p1, p2 = loss_parameters[0], loss_parameters[1], loss_parameters[2]
    for c in range(n_classes):
        d_prior[c] = _ZERO
    n_complete, mean_loss = size, 0.0
    if missing_values is not None:  # read outside of the loop, because each access costs atomic increments
        n_complete, missing, is_normalized = (
            missing_values.n_complete[0],
            missing_values.code,
            missing_values.is_normalized,
        )
        forest, beliefs, sample = missing_values.forest, missing_values.beliefs, missing_values.sample
        cells, d_cells = missing_values.cells, missing_values.d_cells
        score, d_score = missing_values.score, missing_values.d_score
    for k in range(size):
        n_families = 0
        if missing_values is not None and k >= n_complete:
            n_families = marginalize(k, codes, forest, cells, is_normalized, missing, beliefs, sample, score, scores[k])
        row_weight = weight[batch[k]] / np.float32(size)
        d_row = d_scores[k][:n_classes]
        value = row_loss(loss, scores[k][:n_classes], y[batch[k]], p0, p1, p2, d_row)
        mean_loss += row_weight * value
        for c in range(n_classes):
            d_row[c] *= row_weight
            d_prior[c] += d_row[c]
        if missing_values is not None and n_families > 0:
            marginalize_adjoint(n_families, d_row, forest, cells, missing, beliefs, sample, d_score, d_cells)
    return mean_loss


@kernel
def begin_step(s, problem, parameters, steps, scratch, missing_values):  # type: ignore[no-untyped-def]
    """Draw a structure, score the batch, write the loss gradient, and update the prior; return the mean loss."""
    families, group, batch, codes = problem.families, problem.group, steps.order[s], scratch.batch_codes
    theta, direction, selected, scores = parameters.theta, parameters.direction, scratch.selected, scratch.scores
    d_prior, n_classes = scratch.d_table[0], families.offset[0]
    if missing_values is not None:
        complete_rows_first(batch, missing_values)
        batch = missing_values.batch
    _gather_batch(problem.codes, batch, codes)
    _draw_structure(
        steps.uniform[s],
        parameters.phi,
        group,
        problem.table_parent,
        scratch.graph,
        scratch.noise,
        scratch.perturbed,
        selected,
    )
    _score_observed(
        families,
        group,
        problem.rounding,
        theta,
        direction,
        parameters.pending,
        codes,
        selected,
        scratch.start[0],
        scratch.buffer[0],
        scores,
        missing_values,
    )
    mean_loss = _loss_gradient(
        batch,
        problem.y,
        problem.weight,
        problem.loss,
        problem.loss_parameters,
        codes,
        scores,
        scratch.d_scores,
        d_prior[:n_classes],
        missing_values,
    )
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
        scratch.buffer[0],
    )
    return mean_loss


# Second part of a step: choice gradients and CPTs


@kernel
def step_tables(s, first, last, thread, problem, parameters, steps, scratch, missing_values):  # type: ignore[no-untyped-def]
    """Write the choice gradients (eq. 12) of the features ``first`` to ``last - 1``, and update their CPTs."""
    # Each array is read from its tuple once, because each access costs an atomic increment in Numba.
    families, group, rounding = problem.families, problem.group, problem.rounding
    parents, n_states, offset = families.parents, families.n_states, families.offset
    theta, direction, v = parameters.theta, parameters.direction, parameters.v
    n_undrawn, pending = parameters.n_undrawn, parameters.pending
    decay, beta1, beta2, epsilon, temperature = steps.decay, steps.beta1, steps.beta2, steps.epsilon, steps.temperature
    codes, perturbed, selected = scratch.batch_codes, scratch.perturbed, scratch.selected
    d_scores, d_choice, start = scratch.d_scores.reshape(scratch.d_scores.size), scratch.d_choice, scratch.start[thread]
    d_table, buffer = scratch.d_table[thread], scratch.buffer[thread]
    n_classes, step_size = offset[0], steps.step_sizes[s]
    lanes, n_complete = scratch.d_scores.shape[1], start.shape[0]
    if missing_values is not None:
        n_complete = missing_values.n_complete[0]
        drawn_start = missing_values.drawn_start[thread][n_complete:]
        drawn_choice = missing_values.drawn_choice[thread][n_complete:]
    n_incomplete = start.shape[0] - n_complete
    complete, incomplete = start[:n_complete], start[n_complete:]
    d_complete, d_incomplete = d_scores[: n_complete * lanes], d_scores[n_complete * lanes :]
    for i in range(first, last):
        has_choice = group[i + 1] - group[i] > 1
        if missing_values is not None and n_incomplete > 0 and has_choice:
            drawn_choice_gradient(
                i, n_states, n_classes, lanes, d_scores, codes, missing_values, drawn_start, drawn_choice
            )
        highest = perturbed[group[i]]
        for t in range(group[i], group[i + 1]):
            highest = max(highest, perturbed[t])
        for t in range(group[i], group[i + 1]):
            is_drawn = selected[i] == t
            has_gradient = has_choice and (perturbed[t] - highest) / temperature > NEGLIGIBLE_LOG_PROBABILITY
            begin, n_cells = offset[t], offset[t + 1] - offset[t]
            if is_drawn or has_gradient:
                family_starts(codes, i, parents[t], n_states, n_classes, start)
            d_choice[t] = 0.0
            if has_gradient:
                apply_pending(t, n_states[i], offset, direction, theta, pending, buffer)
                table = _scoring_table(theta[begin:], n_cells, rounding, buffer)
                if n_complete > 0:
                    d_choice[t] = dot_rows(d_complete, table, complete)
                if missing_values is not None and n_incomplete > 0 and not is_drawn:
                    incomplete_starts(i, parents[t, 0], n_states, n_classes, codes, missing_values, -1, incomplete)
                    d_choice[t] += dot_observed_rows(d_incomplete, table, incomplete, drawn_choice, drawn_start)
            if not is_drawn:
                n_undrawn[t] += 1
                if n_undrawn[t] < decay.shape[0]:
                    pending[t] += step_size * decay[n_undrawn[t]]
                continue
            for a in range(n_cells):
                d_table[a] = _ZERO
            if missing_values is not None and n_incomplete > 0 and missing_values.is_incomplete_family[i]:
                marginal_gradient(i, n_cells, missing_values, d_table)
                incomplete_starts(i, parents[t, 0], n_states, n_classes, codes, missing_values, n_cells, incomplete)
            add_rows(d_scores, d_table, start)
            sweep_drawn(
                d_table,
                direction[begin:],
                v[begin:],
                theta[begin:],
                n_cells // n_states[i],
                n_states[i],
                n_undrawn[t],
                step_size,
                beta1,
                beta2,
                epsilon,
                buffer,
            )
            n_undrawn[t] = 0


# Third part of a step: structure logits


@kernel
def _add_penalty(perturbed, noise, group, size_penalty, d_phi):  # type: ignore[no-untyped-def]
    """Add the gradient of the size penalty to the gradient of the structure logits, if there is a penalty."""
    if size_penalty is not None:
        size_penalty_gradient(perturbed, noise, group, size_penalty, d_phi)


@shared_kernel
def finish_step(s, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Update the structure logits by the straight-through gradient (eq. 12, 13) and by the size penalty."""
    if problem.table_parent.shape[0] > problem.group.shape[0] - 1:
        structure_gradient(scratch.perturbed, problem.group, steps.temperature, scratch.d_choice, scratch.d_phi)
        _add_penalty(scratch.perturbed, scratch.noise, problem.group, problem.size_penalty, scratch.d_phi)
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


# Epochs


@shared_kernel
def apply_all_pending(problem, parameters, scratch):  # type: ignore[no-untyped-def]
    """Apply the deferred Adam updates of all CPTs."""
    families, buffer = problem.families, scratch.buffer[0]
    child, offset, n_states = families.child, families.offset, families.n_states
    direction, theta, pending = parameters.direction, parameters.theta, parameters.pending
    for t in range(child.shape[0]):
        apply_pending(t, n_states[child[t]], offset, direction, theta, pending, buffer)


@kernel
def train_epoch(problem, parameters, steps, scratch, missing_values):  # type: ignore[no-untyped-def]
    """Train one epoch in place, and return the sum of the mean losses of the batches."""
    total = 0.0
    for s in range(steps.order.shape[0]):
        total += begin_step(s, problem, parameters, steps, scratch, missing_values)
        step_tables(s, 0, problem.group.shape[0] - 1, 0, problem, parameters, steps, scratch, missing_values)
        finish_step(s, problem, parameters, steps, scratch)
    apply_all_pending(problem, parameters, scratch)
    return total
