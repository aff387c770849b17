"""Training steps and epochs of gradient k-trees, whose CPTs are sums of terms with zero, one and two parents.

* The terms of a feature are also its choices: the choice of a pair of parents uses the term of the pair, the terms of
  its two parents, and the term without parents. Pairs share the terms of single parents, so a draw also trains other
  choices.
* A row of the batch uses one row of each drawn term. Only these rows are updated, each by its gradient divided by the
  root of a running mean of squares. The mean decays according to the number of steps since the row was last updated, so
  the cost of a step depends on the rows of the batch and not on the size of the CPTs. There is no first moment, because
  it would have to move unused rows.
* If the margin of a row is wide enough, its gradient is zero. Such rows (two of three on satimage) would add zeros to
  all sums, and are omitted in the second half of a step.
* Terms are not normalized. For a sample with missing values, terms that contain a missing feature are omitted: instead,
  a row of zeros after all CPTs is used, which is never updated.
* The gradients of all choices cost several times as much as a step of the drawn terms. They are computed only in every
  fourth step, with a larger learning rate.
* Candidates far behind the best have a negligible softmax probability and are skipped, along with the single-parent
  terms that only they use.
"""
# Shapes: n samples, d features, C classes, P = padded(C), T terms, M parameters (with the prior), R rows of all terms
# (M / C - 1), B samples of a batch, S steps of an epoch

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, load, root, splat, store, store_first
from tanlearn.kernels.adam import adam_step
from tanlearn.kernels.losses import row_loss
from tanlearn.kernels.quantization import round_cells
from tanlearn.kernels.rows import dot_rows, gather_rows
from tanlearn.kernels.scores import Families
from tanlearn.kernels.trees import draw_acyclic, draw_independent, gumbel, perturb, structure_gradient

_ZERO = np.float32(0.0)
#: Softmax probabilities below exp(-16) = 1.1e-7 multiply gradients whose relative rounding errors are as large.
NEGLIGIBLE_LOG_PROBABILITY = -16.0
#: Steps per step of the structure logits.
STRUCTURE_STRIDE = 4


class TermProblem(NamedTuple):
    """Constants of a training."""

    codes: Any  # uint8 or uint16 (d, n)
    y: Any  # intp (n,) classes
    weight: Any  # float32 (n,) weights of the rows in the mean loss
    families: Families  # of T terms
    group: Any  # intp (d + 1,) the terms of feature i are group[i]:group[i + 1], the term without parents first
    members: Any  # intp (T, 2) terms of the single parents of a pair; -1 for none
    first_row: Any  # intp (T,) number of the first row of each term among all R rows
    is_independent: Any  # bool, whether no draw can form a cycle
    missing: Any  # int, code of a missing value
    loss: Any  # int, number of a built-in loss (losses.py)
    loss_parameters: Any  # float32 (3,)
    rounding: Any  # float32 (2,) step and largest number of steps of fixed-point numbers; zeros for none


class TermParameters(NamedTuple):
    """Trained parameters and their optimizer state, updated in place."""

    theta: Any  # float32 (M + P + LANES,) prior, terms, zeros
    v: Any  # float32 (M,) running means of squared gradients, including the prior; P readable numbers follow
    prior_m: Any  # float32 (C,) first Adam moment of the prior
    touched: Any  # int32 (R,) step of the last update of each row, from 1; 0 for none
    phi: Any  # float64 (T,) structure logits
    phi_m: Any  # float64 (T,) Adam moments of the logits
    phi_v: Any  # float64 (T,)


class TermSteps(NamedTuple):
    """Batches, noise and step sizes of the steps of an epoch."""

    order: Any  # int64 (S, B) samples of each batch
    uniform: Any  # float32 (S, T) uniform numbers of the Gumbel noise
    n_done: Any  # int, number of steps of earlier epochs
    rate: Any  # float32, learning rate of the terms
    decay_powers: Any  # float32 (K,) powers 0, 1, 2, ... of the decay of their running means of squares
    prior_step_sizes: Any  # float32 (S,)
    structure_step_sizes: Any  # float64 (number of structure steps,)
    beta1: Any  # float32, Adam parameters of prior and structure
    beta2: Any  # float32
    epsilon: Any  # float32
    temperature: Any  # float, of the softmax of the straight-through gradient


class TermScratch(NamedTuple):
    """Work arrays of a step."""

    batch_codes: Any  # uint8 or uint16 (d, B); after the first half of a step, rows with a gradient come first
    scores: Any  # float32 (B, P)
    d_scores: Any  # float32 (B, P) zero beyond C; after the first half of a step, rows with a gradient come first
    n_moving: Any  # intp (1,) number of rows with a gradient
    sums: Any  # float32 (B * P + LANES,) sums of a feature's terms
    noise: Any  # float32 (T,)
    perturbed: Any  # float64 (T,)
    selected: Any  # intp (d,) drawn term of each feature
    d_choice: Any  # float64 (T,)
    d_phi: Any  # float64 (T,)
    is_used: Any  # bool (T,) terms that are needed by a candidate whose probability is not negligible
    start: Any  # intp (B,) start of each sample's row in a term
    rows: Any  # intp (B,) start of the distinct rows of a term in the batch
    slot: Any  # int32 (R,) position of each row in rows, at most B; wrong for rows that are not there
    d_rows: Any  # float32 (B * P,) gradients of rows
    d_prior: Any  # float32 (C,)
    highest: Any  # float64 (d,) largest perturbed logit of each feature
    ancestors: Any  # uint64 (d, ceil(d / 64)) ancestors of each feature as bits


@kernel
def term_starts(codes, child, parents, n_states, n_classes, missing, start_if_missing, start):  # type: ignore[no-untyped-def]
    """Write the start of each sample's row in a term; ``start_if_missing`` if a feature of the term is missing.

    There is one loop without branches for each number of parents, so that all are vectorized. For two parents and 100
    rows, a call takes 52 ns; it took 332 ns before, which was more than half of a step with small CPTs.
    """
    x, p, q = codes[child], parents[0], parents[1]
    if p < 0:
        for k in range(start.shape[0]):
            start[k] = np.int64(x[k]) * n_classes if x[k] != missing else start_if_missing
        return
    z = codes[p]
    if q < 0:
        for k in range(start.shape[0]):
            at = np.int64(x[k]) * n_states[p] + z[k]
            start[k] = at * n_classes if (x[k] != missing) & (z[k] != missing) else start_if_missing
        return
    u = codes[q]
    for k in range(start.shape[0]):
        at = (np.int64(x[k]) * n_states[p] + z[k]) * n_states[q] + u[k]
        is_known = (x[k] != missing) & (z[k] != missing) & (u[k] != missing)
        start[k] = at * n_classes if is_known else start_if_missing


@kernel
def round_rows(sums, n_classes, lanes, step, most, rounded):  # type: ignore[no-untyped-def]
    """Subtract the largest entry of each row, which does not change posteriors, and round to multiples of ``step``."""
    for first in range(0, sums.shape[0] - lanes + 1, lanes):
        top = sums[first]
        for c in range(n_classes):
            top = max(top, sums[first + c])
        for c in range(lanes):
            sums[first + c] -= top
        round_cells(sums[first:], n_classes, step, most, rounded[first:])


@kernel
def score_terms(problem, theta, scratch):  # type: ignore[no-untyped-def]
    """Write the scores of the batch with the selected terms; numbers beyond the classes are undefined."""
    offset, members = problem.families.offset, problem.members
    parents, n_states, group = problem.families.parents, problem.families.n_states, problem.group
    scores, start, sums = scratch.scores.reshape(scratch.scores.size), scratch.start, scratch.sums
    n_classes, lanes, size = offset[0], scratch.scores.shape[1], scratch.start.shape[0]
    step, most = problem.rounding[0], problem.rounding[1]
    target = scores
    for j in range(size * lanes):
        scores[j] = _ZERO
    if step > 0:
        target = sums[: size * lanes]
    for k in range(size):
        for c in range(n_classes):
            target[k * lanes + c] = theta[c]
    for i in range(-1, n_states.shape[0]):
        if i >= 0:
            t = scratch.selected[i]
            for q in range(4):
                r = group[i] if q == 0 else t if q == 3 else members[t, q - 1]
                if r < 0 or (q == 3 and t == group[i]):
                    continue
                start_if_missing = offset[-1] - offset[r]
                term_starts(
                    scratch.batch_codes, i, parents[r], n_states, n_classes, problem.missing, start_if_missing, start
                )
                gather_rows(target, theta[offset[r] :], start)
        if step > 0:
            round_rows(target, n_classes, lanes, step, most, target)
            for j in range(size * lanes):
                scores[j] += target[j]
                target[j] = _ZERO


@kernel
def step_rows(r, s, start, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Update the rows of a term that are used by samples with a gradient; ``start`` is the start of each sample's row.

    ``slot`` is a sparse set (Briggs and Torczon 1993): its numbers are valid only if ``rows`` confirms them, so it
    never has to be cleared. The gradient of each slot is padded to whole lanes.
    """
    offset, rows, d_rows = problem.families.offset, scratch.rows, scratch.d_rows
    touched, slot, lanes = parameters.touched, scratch.slot, scratch.d_scores.shape[1]
    d_scores = scratch.d_scores.reshape(scratch.d_scores.size)
    table, v = parameters.theta[offset[r] :], parameters.v[offset[r] :]
    n_classes, start_if_missing, first_row = offset[0], offset[-1] - offset[r], problem.first_row[r]
    # A product is faster than a division of integers, and exact for multiples of n_classes below 2**50.
    inverse = 1.0 / n_classes
    now = steps.n_done + s + 1
    n_rows = 0
    for k in range(start.shape[0]):
        at = start[k]
        if at == start_if_missing:
            continue
        row = first_row + np.int64(at * inverse + 0.5)
        own = np.int64(slot[row])
        if own < n_rows and rows[own] == at:
            for j in range(0, lanes, LANES):
                total = load(d_rows, own * lanes + j) + load(d_scores, k * lanes + j)
                store(d_rows, own * lanes + j, total)
        else:
            for j in range(0, lanes, LANES):
                store(d_rows, n_rows * lanes + j, load(d_scores, k * lanes + j))
            slot[row] = n_rows
            rows[n_rows] = at
            n_rows += 1
    powers = steps.decay_powers
    take, rate, epsilon = splat(np.float32(1.0) - powers[1]), splat(steps.rate), splat(steps.epsilon)
    last = powers.shape[0] - 1
    # Bias correction as in Adam, because means of squares start at 0.
    correction = splat(np.float32(1.0) - powers[min(now, last)])
    for h in range(n_rows):
        at = rows[h]
        row = first_row + np.int64(at * inverse + 0.5)
        keep = splat(powers[min(now - np.int64(touched[row]), last)])
        touched[row] = now
        for j in range(0, n_classes, LANES):
            d = load(d_rows, h * lanes + j)
            square = keep * load(v, at + j) + take * d * d
            moved = load(table, at + j) - rate * d / (root(square / correction) + epsilon)
            store_first(v, at + j, square, n_classes - j)
            store_first(table, at + j, moved, n_classes - j)


@kernel
def begin_term_step(s, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Draw a structure, score the batch, write the loss gradient, and update the prior; return the mean loss."""
    batch, n_classes, codes = steps.order[s], problem.families.offset[0], scratch.batch_codes
    size, n_moving = batch.shape[0], 0
    for i in range(problem.codes.shape[0]):
        x, out = problem.codes[i], codes[i]
        for k in range(size):
            out[k] = x[batch[k]]
    gumbel(steps.uniform[s], scratch.noise)
    perturb(parameters.phi, scratch.noise, problem.group, scratch.perturbed)
    if problem.is_independent:
        draw_independent(scratch.perturbed, problem.group, scratch.selected)
    else:
        parents = problem.families.parents
        draw_acyclic(scratch.perturbed, problem.group, parents, scratch.highest, scratch.ancestors, scratch.selected)
    score_terms(problem, parameters.theta, scratch)
    mean_loss = 0.0
    d_prior, loss, parameter = scratch.d_prior, problem.loss, problem.loss_parameters
    for c in range(n_classes):
        d_prior[c] = _ZERO
    for k in range(size):
        row_weight = problem.weight[batch[k]] / np.float32(size)
        row, d_row = scratch.scores[k][:n_classes], scratch.d_scores[k][:n_classes]
        value = row_loss(loss, row, problem.y[batch[k]], parameter[0], parameter[1], parameter[2], d_row)
        mean_loss += row_weight * value
        is_moving, moved = False, scratch.d_scores[n_moving]
        for c in range(n_classes):
            d_row[c] *= row_weight
            d_prior[c] += d_row[c]
            is_moving = is_moving or d_row[c] != 0
            moved[c] = d_row[c]
        if is_moving:
            for i in range(codes.shape[0]):
                codes[i, n_moving] = codes[i, k]
            n_moving += 1
    scratch.n_moving[0] = n_moving
    adam_step(
        parameters.theta[:n_classes],
        d_prior,
        steps.prior_step_sizes[s],
        np.float64(steps.beta1),
        np.float64(steps.beta2),
        np.float64(steps.epsilon),
        parameters.prior_m,
        parameters.v[:n_classes],
    )
    return mean_loss


@kernel
def choice_gradients(i, problem, theta, steps, scratch):  # type: ignore[no-untyped-def]
    """Write the gradients of the choices of feature ``i``, summed over the samples with a gradient."""
    families, members, perturbed, is_used = problem.families, problem.members, scratch.perturbed, scratch.is_used
    parents, n_states, offset, d_choice = families.parents, families.n_states, families.offset, scratch.d_choice
    n_classes, n_moving, lanes = offset[0], scratch.n_moving[0], scratch.d_scores.shape[1]
    d_scores, start = scratch.d_scores.reshape(scratch.d_scores.size)[: n_moving * lanes], scratch.start[:n_moving]
    first, last = problem.group[i], problem.group[i + 1]
    top = perturbed[first]
    for r in range(first, last):
        top = max(top, perturbed[r])
        is_used[r] = False
    for r in range(first, last):
        if (perturbed[r] - top) / steps.temperature > NEGLIGIBLE_LOG_PROBABILITY:
            is_used[r] = True
            for q in members[r]:
                if q >= 0:
                    is_used[q] = True
    # The term without parents is common to all choices.
    d_choice[first] = 0.0
    for r in range(first + 1, last):
        d_choice[r] = 0.0
        if is_used[r]:
            start_if_missing = offset[-1] - offset[r]
            term_starts(
                scratch.batch_codes, i, parents[r], n_states, n_classes, problem.missing, start_if_missing, start
            )
            d_choice[r] = dot_rows(d_scores, theta[offset[r] :], start)
    # Pairs come after their single-parent terms, so iterate backwards.
    for r in range(last - 1, first, -1):
        for q in members[r]:
            if q >= 0:
                d_choice[r] += d_choice[q]


@kernel
def step_terms(s, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Write the choice gradients if the structure takes a step, and update the drawn terms."""
    families, group, members = problem.families, problem.group, problem.members
    parents, n_states, offset = families.parents, families.n_states, families.offset
    n_classes, n_moving = offset[0], scratch.n_moving[0]
    is_structure_step = (steps.n_done + s) % STRUCTURE_STRIDE == 0
    if n_moving == 0:
        scratch.d_choice[:] = 0.0
        return
    start = scratch.start[:n_moving]
    for i in range(n_states.shape[0]):
        first, drawn = group[i], scratch.selected[i]
        if is_structure_step and group[i + 1] > first + 1:
            choice_gradients(i, problem, parameters.theta, steps, scratch)
        for q in range(4):
            r = first if q == 0 else drawn if q == 3 else members[drawn, q - 1]
            if r < 0 or (q == 3 and drawn == first):
                continue
            start_if_missing = offset[-1] - offset[r]
            term_starts(
                scratch.batch_codes, i, parents[r], n_states, n_classes, problem.missing, start_if_missing, start
            )
            step_rows(r, s, start, problem, parameters, steps, scratch)


@kernel
def train_terms(problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Train one epoch in place, and return the sum of the mean losses of the batches."""
    total, n_structure_steps = 0.0, 0
    has_choice = problem.members.shape[0] > problem.group.shape[0] - 1
    for s in range(steps.order.shape[0]):
        total += begin_term_step(s, problem, parameters, steps, scratch)
        step_terms(s, problem, parameters, steps, scratch)
        if has_choice and (steps.n_done + s) % STRUCTURE_STRIDE == 0:
            structure_gradient(scratch.perturbed, problem.group, steps.temperature, scratch.d_choice, scratch.d_phi)
            adam_step(
                parameters.phi,
                scratch.d_phi,
                steps.structure_step_sizes[n_structure_steps],
                np.float64(steps.beta1),
                np.float64(steps.beta2),
                np.float64(steps.epsilon),
                parameters.phi_m,
                parameters.phi_v,
            )
            n_structure_steps += 1
    return total
