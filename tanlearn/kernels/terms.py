"""Steps and whole epochs of gradient k-trees, whose tables are sums of terms with no, one and two parents.

* The terms of a feature are also its choices: a pair of parents stands for its own term, those of its two members and
  that without parents. Pairs share the terms of their members, so what one draw teaches is known to others.
* A row of the batch touches one row of every term that is drawn. Only these rows are stepped, each by its gradient over
  the root of a mean of squares, which is let decay for the steps since the row was last touched: a step costs the rows
  of the batch, and not the cells of the tables. There is no first moment, which would have to move untouched rows.
* Where the margin is wide enough, a loss has no gradient. Such rows of the batch (two of three on satimage) would add
  zeros to all sums: the second half of a step leaves them out.
* Terms are not normalised. What a sample misses leaves out the terms that know it: it is sent to a row of zeros behind
  all tables, which is never stepped.
* A candidate far behind the best has no share in the softmax and is not looked at, nor are its members for its sake.
"""
# Shapes: n samples, d features, C classes, P lanes (C padded), T terms, M cells (with the prior), R rows of all terms
# (M / C - 1), B batch, S steps of an epoch

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.adam import adam_step
from tanlearn.kernels.losses import row_loss
from tanlearn.kernels.quantization import round_cells
from tanlearn.kernels.rows import dot_rows, gather_rows
from tanlearn.kernels.scores import Families
from tanlearn.kernels.trees import draw_acyclic, draw_independent, gumbel, perturb, structure_gradient

_ZERO = np.float32(0.0)
#: Softmax shares below exp(-36) = 2.3e-16 are lost in a sum of shares in double precision.
HOPELESS = -36.0


class TermProblem(NamedTuple):
    """What training does not change."""

    codes: Any  # (d, n)
    y: Any  # (n,)
    weight: Any  # (n,)
    families: Families  # of T terms
    group: Any  # (d + 1,): the terms of feature i are group[i]:group[i + 1], the first of them without parents
    members: Any  # (T, 2): of a pair, the terms of its parents alone; -1 for none
    first_row: Any  # (T,): which of all R rows is the first of a term
    is_independent: Any  # bool: no draw can form a cycle
    missing: Any  # the code
    loss: Any  # number of a built-in loss
    loss_parameters: Any  # (3,)
    rounding: Any  # (2,): step and most steps of fixed-point numbers, or zeros


class TermParameters(NamedTuple):
    """What training changes."""

    theta: Any  # (M + P + LANES,): prior, terms, zeros
    v: Any  # (M,): means of squared gradients, of the prior too
    prior_m: Any  # (C,)
    touched: Any  # (R,): the step of the last touch, from 1; 0 for none
    phi: Any  # (T,)
    phi_m: Any  # (T,)
    phi_v: Any  # (T,)


class TermSteps(NamedTuple):
    """Batches, noise and rates of the steps of an epoch."""

    order: Any  # (S, B): samples of every batch
    uniform: Any  # (S, T): what the Gumbel noise is made of
    n_done: Any  # steps of earlier epochs
    rate: Any  # of the terms
    decay: Any  # of their means of squares
    prior_step_sizes: Any  # (S,)
    structure_step_sizes: Any  # (S,)
    beta1: Any  # of Adam, for prior and structure
    beta2: Any
    epsilon: Any
    temperature: Any


class TermScratch(NamedTuple):
    """Memory that a step works in."""

    batch_codes: Any  # (d, B)
    scores: Any  # (B, P)
    d_scores: Any  # (B, P), zero beyond C; after the first half of a step the rows that have a gradient come first
    n_moving: Any  # (1,): how many these are; their codes stand in the same places
    sums: Any  # (B, P) and LANES more, flat: what a feature's terms add up to
    noise: Any  # (T,)
    perturbed: Any  # (T,)
    selected: Any  # (d,)
    d_choice: Any  # (T,)
    d_phi: Any  # (T,)
    is_used: Any  # (T,)
    start: Any  # (B,)
    rows: Any  # (B,): where the different rows of a term start that the batch touches
    collected: Any  # (R,): the step in which a row was last put there
    d_table: Any  # (longest term,)
    d_prior: Any  # (C,)
    want: Any  # (d,)
    above: Any  # (d, ceil(d / 64)) uint64


@kernel
def term_starts(codes, child, parents, n_states, n_classes, missing, nowhere, start):  # type: ignore[no-untyped-def]
    """Write where in a term's table the row of every sample starts; ``nowhere`` for those that miss what it is of.

    A loop for each number of parents, and no branch in any: all become vector code, 52 in place of 332 ns for two
    parents and 100 rows, which was more than half of a step with small tables.
    """
    x, p, q = codes[child], parents[0], parents[1]
    if p < 0:
        for k in range(start.shape[0]):
            start[k] = np.int64(x[k]) * n_classes if x[k] != missing else nowhere
        return
    z = codes[p]
    if q < 0:
        for k in range(start.shape[0]):
            at = np.int64(x[k]) * n_states[p] + z[k]
            start[k] = at * n_classes if (x[k] != missing) & (z[k] != missing) else nowhere
        return
    u = codes[q]
    for k in range(start.shape[0]):
        at = (np.int64(x[k]) * n_states[p] + z[k]) * n_states[q] + u[k]
        is_known = (x[k] != missing) & (z[k] != missing) & (u[k] != missing)
        start[k] = at * n_classes if is_known else nowhere


@kernel
def round_rows(sums, n_classes, lanes, step, most, rounded):  # type: ignore[no-untyped-def]
    """Write every row less its largest entry, which no posterior sees, as multiples of ``step`` below zero."""
    for first in range(0, sums.shape[0] - lanes + 1, lanes):
        top = sums[first]
        for c in range(n_classes):
            top = max(top, sums[first + c])
        for c in range(lanes):
            sums[first + c] -= top
        round_cells(sums[first:], n_classes, step, most, rounded[first:])


@kernel
def score_terms(problem, theta, scratch):  # type: ignore[no-untyped-def]
    """Write the scores of the batch under the terms selected; beyond the classes, something."""
    offset, members = problem.families.offset, problem.members
    parents, n_states, group = problem.families.parents, problem.families.n_states, problem.group
    scores, start, sums = scratch.scores.ravel(), scratch.start, scratch.sums
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
                nowhere = offset[-1] - offset[r]
                term_starts(scratch.batch_codes, i, parents[r], n_states, n_classes, problem.missing, nowhere, start)
                gather_rows(target, theta[offset[r] :], start)
        if step > 0:
            round_rows(target, n_classes, lanes, step, most, target)
            for j in range(size * lanes):
                scores[j] += target[j]
                target[j] = _ZERO


@kernel
def step_rows(r, s, start, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Step the rows of a term that samples with a gradient touch; ``start`` says which."""
    offset, rows, d_table = problem.families.offset, scratch.rows, scratch.d_table
    touched, collected, d_scores = parameters.touched, scratch.collected, scratch.d_scores
    table, v = parameters.theta[offset[r] :], parameters.v[offset[r] :]
    n_classes, nowhere, first_row = offset[0], offset[-1] - offset[r], problem.first_row[r]
    now = steps.n_done + s + 1
    n_rows = 0
    for k in range(start.shape[0]):
        at = start[k]
        if at == nowhere:
            continue
        row = first_row + at // n_classes
        if collected[row] != now:
            collected[row] = now
            rows[n_rows] = at
            n_rows += 1
            for c in range(n_classes):
                d_table[at + c] = _ZERO
        for c in range(n_classes):
            d_table[at + c] += d_scores[k, c]
    one = np.float32(1.0)
    take = one - steps.decay
    # As Adam does: early means of squares are small because they started at 0, and are made up for.
    share = one - steps.decay ** np.float32(now)
    for h in range(n_rows):
        at = rows[h]
        row = first_row + at // n_classes
        keep = steps.decay ** np.float32(now - touched[row])
        touched[row] = now
        for c in range(at, at + n_classes):
            square = keep * v[c] + take * d_table[c] * d_table[c]
            v[c] = square
            table[c] -= steps.rate * d_table[c] / (np.sqrt(square / share) + steps.epsilon)


@kernel
def begin_term_step(s, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Draw a structure, score the batch, write the loss gradient, and step the prior; return the mean loss."""
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
        draw_acyclic(scratch.perturbed, problem.group, parents, scratch.want, scratch.above, scratch.selected)
    score_terms(problem, parameters.theta, scratch)
    mean_loss = 0.0
    d_prior, loss, parameter = scratch.d_prior, problem.loss, problem.loss_parameters
    for c in range(n_classes):
        d_prior[c] = _ZERO
    for k in range(size):
        share = problem.weight[batch[k]] / np.float32(size)
        row, d_row = scratch.scores[k][:n_classes], scratch.d_scores[k][:n_classes]
        value = row_loss(loss, row, problem.y[batch[k]], parameter[0], parameter[1], parameter[2], d_row)
        mean_loss += share * value
        is_moving, moved = False, scratch.d_scores[n_moving]
        for c in range(n_classes):
            d_row[c] *= share
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
def step_terms(s, problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Write the choice gradients, and step the terms that were drawn."""
    families, group, members = problem.families, problem.group, problem.members
    parents, n_states, offset = families.parents, families.n_states, families.offset
    perturbed, is_used, d_choice, theta = scratch.perturbed, scratch.is_used, scratch.d_choice, parameters.theta
    n_classes, n_moving, lanes = offset[0], scratch.n_moving[0], scratch.d_scores.shape[1]
    if n_moving == 0:
        d_choice[:] = 0.0
        return
    d_scores, start = scratch.d_scores.ravel()[: n_moving * lanes], scratch.start[:n_moving]
    for i in range(n_states.shape[0]):
        first, last, drawn = group[i], group[i + 1], scratch.selected[i]
        top = perturbed[first]
        for r in range(first, last):
            top = max(top, perturbed[r])
            is_used[r] = False
        for r in range(first, last):
            if (perturbed[r] - top) / steps.temperature > HOPELESS:
                is_used[r] = True
                for q in members[r]:
                    if q >= 0:
                        is_used[q] = True
        for r in range(first, last):
            is_drawn = r in (first, drawn) or r in (members[drawn, 0], members[drawn, 1])
            d_choice[r] = 0.0
            if not (is_drawn or is_used[r]):
                continue
            nowhere = offset[-1] - offset[r]
            term_starts(scratch.batch_codes, i, parents[r], n_states, n_classes, problem.missing, nowhere, start)
            d_choice[r] = dot_rows(d_scores, theta[offset[r] :], start)
            if is_drawn:
                step_rows(r, s, start, problem, parameters, steps, scratch)
        # What all choices have in common decides nothing. Pairs stand behind their members, so sums go backwards.
        d_choice[first] = 0.0
        for r in range(last - 1, first, -1):
            for q in members[r]:
                if q >= 0:
                    d_choice[r] += d_choice[q]


@kernel
def train_terms(problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Train one epoch in place and return the sum of the batches' mean losses."""
    total = 0.0
    for s in range(steps.order.shape[0]):
        total += begin_term_step(s, problem, parameters, steps, scratch)
        step_terms(s, problem, parameters, steps, scratch)
        if problem.members.shape[0] > problem.group.shape[0] - 1:
            structure_gradient(scratch.perturbed, problem.group, steps.temperature, scratch.d_choice, scratch.d_phi)
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
    return total
