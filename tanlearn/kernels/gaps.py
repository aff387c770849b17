"""Missing features of a forest summed out, and the gradient of that: what training asks for, again and again.

What a row misses falls into components: missing features that edges join. A component knows nothing of a row but the
values around it, those of the children of its features and of the parent of its topmost one. A missing feature adds up
the logarithms that these children pick, row of a table by row of a table; the exponentials, of which the largest is 1
for every class, are summed over its values, and go up to a missing parent or into the log joint. On the way back the
gradient is spread over the same cells.

Only sums are taken of exponentials. Where one is so small that terms could have been lost in it, it is taken again in
logarithms: a value that trails by far may win in the end. So elimination.py, which takes all of them so, is the oracle.
"""
# Shapes: d features, C classes, M cells, E events (components with the values around them), P pairs of row and event
# sample (d,): codes of a row; codes (d, n); start (n,): scratch; row, d_row (C,)
# cells, probabilities (M,): of feature i from offset[i] on, [child value][parent value][class], logarithms up to 0
# families (f,): those that a component touches, children before parents; d_cells (M,); scores, d_scores (n or E, C)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.elimination import BARREN, ELIMINATED, OBSERVED
from tanlearn.kernels.mathematics import exp, exp_all, log, log_normal

#: Of a sum this large, whose terms are probabilities beside 1, what underflows at 1e-308 is 1e-58.
_SAFE = 1e-250


class Forest(NamedTuple):
    """Features with a parent each, and where their tables lie."""

    parent: Any  # (d,), -1 for none
    upward: Any  # (d,): children before parents
    n_states: Any  # (d,)
    offset: Any  # (d,)
    belief: Any  # (d + 1,): where what is known of a missing feature starts, C for each of its values


class Work(NamedTuple):
    """What is known of the missing features in hand, B numbers for all values of all; the scratch of a thread."""

    state: Any  # (d,): OBSERVED, ELIMINATED or BARREN
    families: Any  # (d,)
    log_belief: Any  # (B,)
    belief: Any  # (B,): exponentials of these less top
    d_belief: Any  # (B,): posteriors times gradient
    message: Any  # (d, W): what a feature has told its missing parent, W the most numbers that one has; not logarithms
    top: Any  # (d, C)
    total: Any  # (d, C): of topmost features
    share: Any  # (W,)
    is_known: Any  # (d,): whether the probabilities of a table are there
    probabilities: Any  # (M,)


@kernel
def score_events(forest, cells, samples, sample, pattern, first, families, missing, work, scores):  # type: ignore[no-untyped-def]
    """Write what components add to the log joint: event e is in row sample[e] of ``samples`` (n, d)."""
    scores[:] = 0.0
    for e in range(scores.shape[0]):
        touched = families[first[pattern[e]] : first[pattern[e] + 1]]
        go_up(samples[sample[e]], touched, forest, cells, missing, work, scores[e])


@kernel
def score_events_adjoint(  # type: ignore[no-untyped-def]
    forest, cells, samples, sample, pattern, first, families, missing, work, d_scores, d_cells
):
    """Add the gradient of :func:`score_events` for the cells."""
    row = np.empty(d_scores.shape[1])
    for e in range(d_scores.shape[0]):
        touched = families[first[pattern[e]] : first[pattern[e] + 1]]
        go_up(samples[sample[e]], touched, forest, cells, missing, work, row)
        go_down(samples[sample[e]], touched, forest, cells, missing, d_scores[e], work, d_cells)


@kernel
def add_events(event_scores, row, event, scores):  # type: ignore[no-untyped-def]
    """Add to rows what their components are worth: pair p is of row[p] and event[p]."""
    for p in range(row.shape[0]):
        values, target = event_scores[event[p]], scores[row[p]]
        for c in range(target.shape[0]):
            target[c] += values[c]


@kernel
def score_observed(codes, cells, parent, n_states, offset, missing, start, scores):  # type: ignore[no-untyped-def]
    """Write the log joint of samples as far as families are observed; behind the cells lie C zeros, for the others.

    Without branches, which gaps at random would mislead: 9 -> 3 ns a family.
    """
    n, n_classes = scores.shape
    nowhere = cells.shape[0] - n_classes
    for k in range(n):
        scores[k] = cells[:n_classes]
    for i in range(parent.shape[0]):
        observed_starts(codes, 0, i, parent[i], n_states, offset[i], n_classes, missing, nowhere, start)
        for k in range(n):
            values, target = cells[start[k] : start[k] + n_classes], scores[k]
            for c in range(n_classes):
                target[c] += values[c]


@kernel
def score_observed_adjoint(codes, d_scores, parent, n_states, offset, missing, start, d_cells):  # type: ignore[no-untyped-def]
    """Add the transpose of :func:`score_observed` applied to ``d_scores``, and something to the C last of d_cells."""
    n, n_classes = d_scores.shape
    nowhere = d_cells.shape[0] - n_classes
    for k in range(n):
        for c in range(n_classes):
            d_cells[c] += d_scores[k, c]
    for i in range(parent.shape[0]):
        observed_starts(codes, 0, i, parent[i], n_states, offset[i], n_classes, missing, nowhere, start)
        for k in range(n):
            values, target = d_scores[k], d_cells[start[k] : start[k] + n_classes]
            for c in range(n_classes):
                target[c] += values[c]


@kernel
def observed_starts(codes, first, i, j, n_states, offset, n_classes, missing, nowhere, start):  # type: ignore[no-untyped-def]
    """Write where the cells of a family start, ``nowhere`` for samples that miss the feature or its parent."""
    n = start.shape[0]
    x = codes[i][first : first + n]
    if j < 0:
        for k in range(n):
            start[k] = offset + np.intp(x[k]) * n_classes if x[k] != missing else nowhere
    else:
        width, z = n_states[j], codes[j][first : first + n]
        for k in range(n):
            row = np.intp(x[k]) * width + np.intp(z[k])
            start[k] = offset + row * n_classes if x[k] != missing and z[k] != missing else nowhere


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
    for position in range(d):  # behind it stands whose children have all been seen
        j = parent[upward[position]]
        if j >= 0:
            n_waiting[j] -= 1
            if n_waiting[j] == 0:
                upward[n_ordered] = j
                n_ordered += 1


@kernel
def find_touched(sample, forest, is_normalized, missing, work):  # type: ignore[no-untyped-def]
    """Write the families that what a sample misses touches, children before parents; return how many they are.

    Where tables are normalised, a missing feature without observed ones below costs nothing.
    """
    parent, upward, state, families = forest.parent, forest.upward, work.state, work.families
    d = parent.shape[0]
    n_missing = 0
    for i in range(d):
        state[i] = OBSERVED
        if sample[i] == missing:
            state[i] = BARREN if is_normalized else ELIMINATED
            n_missing += 1
    n_touched = 0
    if n_missing == 0:
        return n_touched
    for position in range(d):
        i = upward[position]
        j = parent[i]
        if state[i] != BARREN:
            if j >= 0 and state[j] == BARREN:
                state[j] = ELIMINATED
            if state[i] == ELIMINATED or (j >= 0 and state[j] == ELIMINATED):
                families[n_touched] = i
                n_touched += 1
    return n_touched


@kernel
def go_up(sample, families, forest, cells, missing, work, row):  # type: ignore[no-untyped-def]
    """Add to the log joint what the missing features of some components come to."""
    # Every array is taken out of its tuple once: each time costs Numba an atomic increment.
    parent, n_states, offset, start = forest.parent, forest.n_states, forest.offset, forest.belief
    log_belief, beliefs, tops, totals = work.log_belief, work.belief, work.top, work.total
    messages, share, is_known, probabilities = work.message, work.share, work.is_known, work.probabilities
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
            _send(beliefs, at, n_values, n_classes, probabilities, first, width, message, share)
            _receive(log_belief, start[j], at, n_values, top, cells, first, width, message, share)
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
            row[c] += top[c] + log_normal(max(total[c], 1.0))  # one of the values is 1, or all are impossible


@kernel
def _scale(log_belief, beliefs, at, n_values, top):  # type: ignore[no-untyped-def]
    """Write the largest logarithm of every class, and the exponentials of all, less it."""
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
def _repeat(beliefs, at, n_classes, out, width):  # type: ignore[no-untyped-def]
    """Write the numbers of a value for every value of the parent: one long loop over them is faster than short ones."""
    for v in range(0, width, n_classes):
        for c in range(n_classes):
            out[v + c] = beliefs[at + c]


@kernel
def _send(beliefs, at, n_values, n_classes, probabilities, first, width, message, share):  # type: ignore[no-untyped-def]
    """Write what a missing child says of the values of its missing parent."""
    message[:width] = 0.0
    for x in range(n_values):
        _repeat(beliefs, at + x * n_classes, n_classes, share, width)
        values = probabilities[first + x * width : first + (x + 1) * width]
        for a in range(width):
            message[a] += share[a] * values[a]


@kernel
def _receive(log_belief, above, at, n_values, top, cells, first, width, message, share):  # type: ignore[no-untyped-def]
    """Add the logarithms of that, ``top`` included, to what is known of the parent."""
    n_classes = top.shape[0]
    for a in range(width):
        share[a] = log_normal(max(message[a], _SAFE))
    for v in range(0, width, n_classes):
        for c in range(n_classes):
            a = v + c
            if message[a] >= _SAFE:
                log_belief[above + a] += top[c] + share[a]
            else:
                log_belief[above + a] += _log_message(log_belief, at + c, n_values, n_classes, cells, first + a, width)


@kernel
def _log_message(log_belief, at, n_values, n_classes, cells, first, width):  # type: ignore[no-untyped-def]
    """Return one number of what a child says, by its logarithms."""
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
def go_down(sample, families, forest, cells, missing, d_row, work, d_cells):  # type: ignore[no-untyped-def]
    """Add the gradient of :func:`go_up`, which has just been called, for the cells."""
    parent, n_states, offset, start = forest.parent, forest.n_states, forest.offset, forest.belief
    log_belief, beliefs, d_belief, totals = work.log_belief, work.belief, work.d_belief, work.total
    messages, share, probabilities = work.message, work.share, work.probabilities
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
                share[a] = d_above[a] / message[a] if message[a] >= _SAFE else 0.0
            _spread(beliefs, at, n_values, n_classes, probabilities, first, width, share, d_belief, d_cells)
            for a in range(width):
                if message[a] < _SAFE and d_above[a] != 0.0:
                    own, d = at + a % n_classes, d_above[a]
                    _spread_logarithms(
                        log_belief, own, n_values, n_classes, cells, first + a, width, d, d_belief, d_cells
                    )
            continue
        if j >= 0:
            first += sample[j] * n_classes
            width *= n_states[j]
        total = totals[i]
        for c in range(n_classes):
            d_total = d_row[c] / max(total[c], 1.0)  # where all is impossible there are only zeros to be shared out
            for x in range(n_values):
                d_value = d_total * beliefs[at + x * n_classes + c]
                d_belief[at + x * n_classes + c] = d_value
                d_cells[first + x * width + c] += d_value


@kernel
def _spread(  # type: ignore[no-untyped-def]
    beliefs, at, n_values, n_classes, probabilities, first, width, share, d_belief, d_cells
):
    """Write the gradient for what is known of a missing child of a missing parent, and add that for the table."""
    for x in range(n_values):
        values = probabilities[first + x * width : first + (x + 1) * width]
        target = d_cells[first + x * width : first + (x + 1) * width]
        for c in range(n_classes):
            own, d_own = beliefs[at + x * n_classes + c], 0.0
            for a in range(c, width, n_classes):
                d_cell = share[a] * values[a] * own
                d_own += d_cell
                target[a] += d_cell
            d_belief[at + x * n_classes + c] = d_own


@kernel
def _spread_logarithms(  # type: ignore[no-untyped-def]
    log_belief, at, n_values, n_classes, cells, first, width, d_number, d_belief, d_cells
):
    """Add the gradient of one number of what a child says, which is possible, by its logarithms."""
    said = _log_message(log_belief, at, n_values, n_classes, cells, first, width)
    for x in range(n_values):
        d_cell = d_number * exp(log_belief[at + x * n_classes] + cells[first + x * width] - said)
        d_belief[at + x * n_classes] += d_cell
        d_cells[first + x * width] += d_cell
