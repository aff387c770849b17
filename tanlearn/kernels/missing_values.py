"""Marginalization of missing features in a forest, with gradients, as needed in each training step.

The missing features of a row form components: sets of missing features that edges of the forest connect. A component
depends on the row only through the values next to it: the values of the children of its features, and of the parent of
its topmost feature. In the upward pass, each missing feature sums the log probabilities that its children select.
Exponentials, scaled so that the largest is 1 per class, are summed over its values, and the result is passed to a
missing parent or added to the log joint. In the downward pass the gradient is distributed over the same CPT entries
(belief propagation; Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988, chapter 4).

Sums are computed from exponentials. A sum so small that terms may have underflowed is recomputed with logarithms,
because a value that has a low probability at first may be most probable in the end. ``elimination.py``, which uses
logarithms throughout, is the reference implementation.
"""
# Shapes: d features, C classes, M parameters, E events (distinct components with the values next to them), P pairs of
# row and event. sample (d,): codes of a row; codes (d, n); start (n,): scratch; row, d_row (C,)
# cells (M,): log CPT of feature i from offset[i] on, [child value][parent value][class]; probabilities (M,): exp(cells)
# families (f,): families that contain missing features of a component, children before parents
# d_cells (M,); scores, d_scores (n or E, C)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.elimination import BARREN, ELIMINATED, OBSERVED
from tanlearn.kernels.mathematics import exp, exp_all, log, log_normal

#: Smallest sum that is not recomputed with logarithms: terms that underflow at 1e-308 are a fraction of 1e-58 of it.
_LEAST_SUM = 1e-250


class Forest(NamedTuple):
    """Features with at most one augmenting parent, and the positions of their CPTs."""

    parent: Any  # intp (d,) parent of each feature, -1 for none
    upward: Any  # intp (d,) features, children before parents
    n_states: Any  # intp (d,)
    offset: Any  # intp (d,) start of each feature's CPT in cells
    belief: Any  # intp (d + 1,) start of each feature's belief [value][class] in BeliefScratch


class BeliefScratch(NamedTuple):
    """Scratch of a thread for the missing features of one sample; B is the number of values of all features times C."""

    state: Any  # intp (d,) OBSERVED, ELIMINATED or BARREN
    families: Any  # intp (d,) families with missing features, children before parents
    log_belief: Any  # float64 (B,) sums of log probabilities from the children
    belief: Any  # float64 (B,) exp(log_belief - top)
    d_belief: Any  # float64 (B,) posteriors times gradient
    message: Any  # float64 (d, W) message to the missing parent [parent value][class], W = max n_states * C
    top: Any  # float64 (d, C) largest log belief of each class
    total: Any  # float64 (d, C) sum of the beliefs of topmost features
    buffer: Any  # float64 (W,)
    is_known: Any  # bool (d,) whether the probabilities of a CPT have been computed
    probabilities: Any  # float64 (M,) exponentials of cells


@kernel
def score_events(forest, cells, samples, sample, pattern, first, families, missing, scratch, scores):  # type: ignore[no-untyped-def]
    """Write the contributions of events to the log joint: event e is in row sample[e] of ``samples`` (n, d)."""
    scores[:] = 0.0
    for e in range(scores.shape[0]):
        event_families = families[first[pattern[e]] : first[pattern[e] + 1]]
        upward_pass(samples[sample[e]], event_families, forest, cells, missing, scratch, scores[e])


@kernel
def score_events_adjoint(  # type: ignore[no-untyped-def]
    forest, cells, samples, sample, pattern, first, families, missing, scratch, d_scores, d_cells
):
    """Add the gradient of :func:`score_events` with respect to the cells."""
    row = np.empty(d_scores.shape[1])
    for e in range(d_scores.shape[0]):
        event_families = families[first[pattern[e]] : first[pattern[e] + 1]]
        upward_pass(samples[sample[e]], event_families, forest, cells, missing, scratch, row)
        downward_pass(samples[sample[e]], event_families, forest, cells, missing, d_scores[e], scratch, d_cells)


@kernel
def add_events(event_scores, row, event, scores):  # type: ignore[no-untyped-def]
    """Add the contributions of events to rows: pair p is event[p] in row[p]."""
    for p in range(row.shape[0]):
        values, target = event_scores[event[p]], scores[row[p]]
        for c in range(target.shape[0]):
            target[c] += values[c]


@kernel
def score_observed(codes, cells, parent, n_states, offset, missing, start, scores):  # type: ignore[no-untyped-def]
    """Write the log joint of the observed families of samples; ``cells`` end with C zeros, used for all other families.

    The loops have no branches, which random missing values would make unpredictable (3 ns per family instead of 9 ns).
    """
    n, n_classes = scores.shape
    start_if_missing = cells.shape[0] - n_classes
    for k in range(n):
        row = scores[k]
        for c in range(n_classes):
            row[c] = cells[c]
    for i in range(parent.shape[0]):
        observed_starts(codes, 0, i, parent[i], n_states, offset[i], n_classes, missing, start_if_missing, start)
        for k in range(n):
            values, target = cells[start[k] : start[k] + n_classes], scores[k]
            for c in range(n_classes):
                target[c] += values[c]


@kernel
def score_observed_adjoint(codes, d_scores, parent, n_states, offset, missing, start, d_cells):  # type: ignore[no-untyped-def]
    """Add the transpose of :func:`score_observed` applied to ``d_scores``; the last C of d_cells are undefined."""
    n, n_classes = d_scores.shape
    start_if_missing = d_cells.shape[0] - n_classes
    for k in range(n):
        for c in range(n_classes):
            d_cells[c] += d_scores[k, c]
    for i in range(parent.shape[0]):
        observed_starts(codes, 0, i, parent[i], n_states, offset[i], n_classes, missing, start_if_missing, start)
        for k in range(n):
            values, target = d_scores[k], d_cells[start[k] : start[k] + n_classes]
            for c in range(n_classes):
                target[c] += values[c]


@kernel
def observed_starts(codes, first, i, j, n_states, offset, n_classes, missing, start_if_missing, start):  # type: ignore[no-untyped-def]
    """Write the start of a family's row of each sample; ``start_if_missing`` if child or parent is missing."""
    n = start.shape[0]
    x = codes[i][first : first + n]
    if j < 0:
        for k in range(n):
            start[k] = offset + np.intp(x[k]) * n_classes if x[k] != missing else start_if_missing
    else:
        width, z = n_states[j], codes[j][first : first + n]
        for k in range(n):
            row = np.intp(x[k]) * width + np.intp(z[k])
            start[k] = offset + row * n_classes if x[k] != missing and z[k] != missing else start_if_missing


@kernel
def order_upward(parent, upward, n_waiting):  # type: ignore[no-untyped-def]
    """Write the features of a forest, children before parents; ``n_waiting`` (d,) is scratch."""
    d = parent.shape[0]
    n_waiting[:] = 0
    for i in range(d):
        if parent[i] >= 0:
            n_waiting[parent[i]] += 1
    n_ordered = 0
    for i in range(d):
        if n_waiting[i] == 0:
            upward[n_ordered] = i
            n_ordered += 1
    for position in range(d):  # append each parent after the last of its children
        j = parent[upward[position]]
        if j >= 0:
            n_waiting[j] -= 1
            if n_waiting[j] == 0:
                upward[n_ordered] = j
                n_ordered += 1


@kernel
def find_incomplete_families(sample, forest, is_normalized, missing, scratch):  # type: ignore[no-untyped-def]
    """Write the families that contain missing features of a sample, children before parents; return their number.

    If CPTs are normalized, missing features without observed descendants are skipped.
    """
    parent, upward, state, families = forest.parent, forest.upward, scratch.state, scratch.families
    d = parent.shape[0]
    n_missing = 0
    for i in range(d):
        state[i] = OBSERVED
        if sample[i] == missing:
            state[i] = BARREN if is_normalized else ELIMINATED
            n_missing += 1
    n_families = 0
    if n_missing == 0:
        return n_families
    for position in range(d):
        i = upward[position]
        j = parent[i]
        if state[i] != BARREN:
            if j >= 0 and state[j] == BARREN:
                state[j] = ELIMINATED
            if state[i] == ELIMINATED or (j >= 0 and state[j] == ELIMINATED):
                families[n_families] = i
                n_families += 1
    return n_families


@kernel
def upward_pass(sample, families, forest, cells, missing, scratch, row):  # type: ignore[no-untyped-def]
    """Add the contribution of the missing features of some components to the log joint (upward pass)."""
    # Each array is read from its tuple once, because each access costs an atomic increment in Numba.
    parent, n_states, offset, start = forest.parent, forest.n_states, forest.offset, forest.belief
    log_belief, beliefs, tops, totals = scratch.log_belief, scratch.belief, scratch.top, scratch.total
    messages, buffer, is_known, probabilities = scratch.message, scratch.buffer, scratch.is_known, scratch.probabilities
    n_classes = row.shape[0]
    for f in range(families.shape[0]):
        i = families[f]
        if sample[i] == missing:
            log_belief[start[i] : start[i + 1]] = 0.0
    for f in range(families.shape[0]):
        i = families[f]
        j = parent[i]
        if sample[i] != missing:
            width = n_states[j] * n_classes
            first = offset[i] + sample[i] * width
            values, target = cells[first : first + width], log_belief[start[j] : start[j] + width]
            for a in range(width):
                target[a] += values[a]
            continue
        top, at, n_values = tops[i], start[i], n_states[i]
        if j >= 0 and sample[j] == missing:
            _scale(log_belief, beliefs, at, n_values, top)
            width = n_states[j] * n_classes
            first, last = offset[i], offset[i] + n_values * width
            if not is_known[i]:
                exp_all(cells[first:last], probabilities[first:last])
                is_known[i] = True
            message = messages[i]
            _write_message(beliefs, at, n_values, n_classes, probabilities, first, width, message, buffer)
            _add_log_message(log_belief, start[j], at, n_values, top, cells, first, width, message, buffer)
            continue
        first, width = offset[i], n_classes
        if j >= 0:
            first += sample[j] * n_classes
            width *= n_states[j]
        for x in range(n_values):
            for c in range(n_classes):
                log_belief[at + x * n_classes + c] += cells[first + x * width + c]
        _scale(log_belief, beliefs, at, n_values, top)
        total = totals[i]
        total[:] = 0.0
        for x in range(n_values):
            for c in range(n_classes):
                total[c] += beliefs[at + x * n_classes + c]
        for c in range(n_classes):
            row[c] += top[c] + log_normal(max(total[c], 1.0))  # the largest term is 1, unless all are impossible


@kernel
def _scale(log_belief, beliefs, at, n_values, top):  # type: ignore[no-untyped-def]
    """Write the largest log belief of each class, and the exponentials of all log beliefs minus the largest."""
    n_classes = top.shape[0]
    for c in range(n_classes):
        highest = log_belief[at + c]
        for x in range(1, n_values):
            highest = max(highest, log_belief[at + x * n_classes + c])
        top[c] = highest
        less = highest if highest > -np.inf else 0.0
        for x in range(n_values):
            beliefs[at + x * n_classes + c] = log_belief[at + x * n_classes + c] - less
    belief = beliefs[at : at + n_values * n_classes]
    exp_all(belief, belief)


@kernel
def _repeat_belief(beliefs, at, n_classes, out, width):  # type: ignore[no-untyped-def]
    """Write the numbers of a value once per parent value, because one long loop is faster than many short ones."""
    for v in range(0, width, n_classes):
        for c in range(n_classes):
            out[v + c] = beliefs[at + c]


@kernel
def _write_message(beliefs, at, n_values, n_classes, probabilities, first, width, message, buffer):  # type: ignore[no-untyped-def]
    """Write the message of a missing child to its missing parent: the sum over its values."""
    message[:width] = 0.0
    for x in range(n_values):
        _repeat_belief(beliefs, at + x * n_classes, n_classes, buffer, width)
        values = probabilities[first + x * width : first + (x + 1) * width]
        for a in range(width):
            message[a] += buffer[a] * values[a]


@kernel
def _add_log_message(log_belief, parent_start, at, n_values, top, cells, first, width, message, buffer):  # type: ignore[no-untyped-def]
    """Add the logarithms of a message, including ``top``, to the log belief of the parent."""
    n_classes = top.shape[0]
    for a in range(width):
        buffer[a] = log_normal(max(message[a], _LEAST_SUM))
    for v in range(0, width, n_classes):
        for c in range(n_classes):
            a = v + c
            if message[a] >= _LEAST_SUM:
                log_belief[parent_start + a] += top[c] + buffer[a]
            else:
                log_belief[parent_start + a] += _log_message(
                    log_belief, at + c, n_values, n_classes, cells, first + a, width
                )


@kernel
def _log_message(log_belief, at, n_values, n_classes, cells, first, width):  # type: ignore[no-untyped-def]
    """Return one number of a message, computed with logarithms."""
    highest = -np.inf
    for x in range(n_values):
        highest = max(highest, log_belief[at + x * n_classes] + cells[first + x * width])
    if highest == -np.inf:
        return highest
    total = 0.0
    for x in range(n_values):
        total += exp(log_belief[at + x * n_classes] + cells[first + x * width] - highest)
    return highest + log(total)


@kernel
def downward_pass(sample, families, forest, cells, missing, d_row, scratch, d_cells):  # type: ignore[no-untyped-def]
    """Add the gradient of the last call of :func:`upward_pass` with respect to the cells (downward pass)."""
    parent, n_states, offset, start = forest.parent, forest.n_states, forest.offset, forest.belief
    log_belief, beliefs, d_belief, totals = scratch.log_belief, scratch.belief, scratch.d_belief, scratch.total
    messages, buffer, probabilities = scratch.message, scratch.buffer, scratch.probabilities
    n_classes = d_row.shape[0]
    for f in range(families.shape[0] - 1, -1, -1):
        i = families[f]
        j = parent[i]
        if sample[i] != missing:
            width = n_states[j] * n_classes
            first = offset[i] + sample[i] * width
            target, values = d_cells[first : first + width], d_belief[start[j] : start[j] + width]
            for a in range(width):
                target[a] += values[a]
            continue
        at, first, width, n_values = start[i], offset[i], n_classes, n_states[i]
        if j >= 0 and sample[j] == missing:
            width *= n_states[j]
            message, d_above = messages[i], d_belief[start[j] : start[j] + width]
            for a in range(width):
                buffer[a] = d_above[a] / message[a] if message[a] >= _LEAST_SUM else 0.0
            _add_message_gradient(
                beliefs, at, n_values, n_classes, probabilities, first, width, buffer, d_belief, d_cells
            )
            for a in range(width):
                if message[a] < _LEAST_SUM and d_above[a] != 0.0:
                    own, d = at + a % n_classes, d_above[a]
                    _add_log_message_gradient(
                        log_belief, own, n_values, n_classes, cells, first + a, width, d, d_belief, d_cells
                    )
            continue
        if j >= 0:
            first += sample[j] * n_classes
            width *= n_states[j]
        total = totals[i]
        for c in range(n_classes):
            d_total = d_row[c] / max(total[c], 1.0)  # if all values are impossible, all beliefs are 0
            for x in range(n_values):
                d_value = d_total * beliefs[at + x * n_classes + c]
                d_belief[at + x * n_classes + c] = d_value
                d_cells[first + x * width + c] += d_value


@kernel
def _add_message_gradient(  # type: ignore[no-untyped-def]
    beliefs, at, n_values, n_classes, probabilities, first, width, buffer, d_belief, d_cells
):
    """Write the gradient for the belief of a missing child of a missing parent, and add the gradient of its CPT."""
    for x in range(n_values):
        values = probabilities[first + x * width : first + (x + 1) * width]
        target = d_cells[first + x * width : first + (x + 1) * width]
        for c in range(n_classes):
            own, d_own = beliefs[at + x * n_classes + c], 0.0
            for a in range(c, width, n_classes):
                d_cell = buffer[a] * values[a] * own
                d_own += d_cell
                target[a] += d_cell
            d_belief[at + x * n_classes + c] = d_own


@kernel
def _add_log_message_gradient(  # type: ignore[no-untyped-def]
    log_belief, at, n_values, n_classes, cells, first, width, d_number, d_belief, d_cells
):
    """Add the gradient of one nonzero number of a message, computed with logarithms."""
    message = _log_message(log_belief, at, n_values, n_classes, cells, first, width)
    for x in range(n_values):
        d_cell = d_number * exp(log_belief[at + x * n_classes] + cells[first + x * width] - message)
        d_belief[at + x * n_classes] += d_cell
        d_cells[first + x * width] += d_cell
