"""Marginalization of missing features of a forest in one upward pass, faster than elimination.py.

Each missing feature multiplies the messages from its children, for each of its values, to its belief. The sum over its
own values is passed to a missing parent or added to the log joint. Beliefs are probabilities, so a missing value costs
multiplications along contiguous rows. A belief that would be a product of too many probabilities to be safe from
underflow is converted to logarithms for the rest of the pass: a feature may have a thousand children, and a value that
has a low probability at first may be most probable in the end.
"""
# Shapes: n samples, d features, C classes, M parameters
# codes (d, n); cells, probabilities (M,): the CPT of feature i starts at offset[i], [child value][parent value][class]
# parent (d,), -1 for none; upward (d,), children before parents; n_states (d,); start (d + 1,): start of each belief
# count (d,): number of probabilities in the product of a belief, or IN_LOGS; belief (start[d],)
# message (max n_states * C,), product (C,): scratch; scores (n, C)

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import exp, log, log_normal

IN_LOGS = -1


@kernel
def log_joint_upward(  # type: ignore[no-untyped-def]
    codes,
    cells,
    probabilities,
    parent,
    upward,
    n_states,
    offset,
    start,
    is_normalized,
    most,
    missing,
    count,
    belief,
    message,
    product,
    scores,
):
    """Write the log joint of samples that may have missing features.

    Products of up to ``most`` probabilities are normal numbers or 0. If CPTs are normalized, missing features without
    observed descendants are skipped.
    """
    n, n_classes = scores.shape
    for k in range(n):
        row = scores[k]
        for c in range(n_classes):
            row[c] = cells[c]
    for i in range(parent.shape[0]):
        _add_complete(codes, i, parent[i], cells[offset[i] : offset[i + 1]], n_states, missing, scores)
        count[i] = 0
    for k in range(n):
        n_factors = 0
        product[:] = 1.0
        for position in range(parent.shape[0]):
            i = upward[position]
            j = parent[i]
            width = n_states[j] * n_classes if j >= 0 else n_classes
            to_parent = j >= 0 and codes[j, k] == missing
            if codes[i, k] != missing:
                if to_parent:
                    first = offset[i] + codes[i, k] * width
                    above = belief[start[j] : start[j + 1]]
                    if count[j] >= 0 and count[j] < most:
                        _multiply(probabilities[first : first + width], 1, above, j, count)
                    else:
                        _turn_into_logs(above, j, count)
                        for a in range(width):
                            above[a] += cells[first + a]
                continue
            own = belief[start[i] : start[i + 1]]
            if count[i] == 0:
                if is_normalized:
                    continue
                own[:] = 1.0
            first, last = 0, width
            if not to_parent:
                first = codes[j, k] * n_classes if j >= 0 else 0
                last = first + n_classes
            if count[i] >= 0 and count[i] < most:
                used = count[i] + 1
                _sum_values(probabilities[offset[i] : offset[i + 1]], own, n_classes, first, last, width, message)
            else:
                used = IN_LOGS
                _turn_into_logs(own, i, count)
                _log_sum_values(cells[offset[i] : offset[i + 1]], own, n_classes, first, last, width, message)
            count[i] = 0
            if not to_parent:
                if used == IN_LOGS:
                    for c in range(n_classes):
                        scores[k, c] += message[first + c]
                    continue
                if n_factors + used > most:
                    _take_logarithm(product, scores[k])
                    n_factors = 0
                for c in range(n_classes):
                    product[c] *= message[first + c]
                n_factors += used
                continue
            above = belief[start[j] : start[j + 1]]
            if used != IN_LOGS and count[j] >= 0 and count[j] + used <= most:
                _multiply(message[:width], used, above, j, count)
                continue
            if used != IN_LOGS:
                for a in range(width):
                    message[a] = log(message[a])
            _turn_into_logs(above, j, count)
            for a in range(width):
                above[a] += message[a]
        if n_factors > 0:
            _take_logarithm(product, scores[k])


@kernel
def _add_complete(codes, i, j, table, n_states, missing, scores):  # type: ignore[no-untyped-def]
    """Add the entries of a CPT to the scores of samples with an observed feature and parent."""
    n, n_classes = scores.shape
    for k in range(n):
        row = np.intp(codes[i, k])
        if row == missing:
            continue
        if j >= 0:
            if codes[j, k] == missing:
                continue
            row = row * n_states[j] + codes[j, k]
        values = table[row * n_classes : (row + 1) * n_classes]
        target = scores[k]
        for c in range(n_classes):
            target[c] += values[c]


@kernel
def _sum_values(table, own, n_classes, first, last, width, out):  # type: ignore[no-untyped-def]
    """Write the sum over child values of the CPT times the belief, for the parent values ``first`` to ``last``."""
    out[first:last] = 0.0
    for s in range(own.shape[0] // n_classes):
        belief = own[s * n_classes : (s + 1) * n_classes]
        for v in range(first, last, n_classes):
            values = table[s * width + v : s * width + v + n_classes]
            target = out[v : v + n_classes]
            for c in range(n_classes):
                target[c] += belief[c] * values[c]


@kernel
def _log_sum_values(table, own, n_classes, first, last, width, out):  # type: ignore[no-untyped-def]
    """Compute the same sums as :func:`_sum_values`, with logarithms of CPT, belief and result."""
    n_values = own.shape[0] // n_classes
    for v in range(first, last, n_classes):
        for c in range(n_classes):
            top = -np.inf
            for s in range(n_values):
                top = max(top, own[s * n_classes + c] + table[s * width + v + c])
            total = 0.0
            if top > -np.inf:
                for s in range(n_values):
                    total += exp(own[s * n_classes + c] + table[s * width + v + c] - top)
            out[v + c] = top + log(total) if top > -np.inf else top


@kernel
def _multiply(values, used, target, j, count):  # type: ignore[no-untyped-def]
    """Multiply the belief of a feature by a product of ``used`` probabilities."""
    if count[j] == 0:
        for a in range(target.shape[0]):
            target[a] = values[a]
    else:
        for a in range(target.shape[0]):
            target[a] *= values[a]
    count[j] += used


@kernel
def _turn_into_logs(target, j, count):  # type: ignore[no-untyped-def]
    """Convert a belief to logarithms, unless it has been converted."""
    if count[j] == IN_LOGS:
        return
    for a in range(target.shape[0]):
        target[a] = log(target[a]) if count[j] > 0 else 0.0
    count[j] = IN_LOGS


@kernel
def _take_logarithm(product, row):  # type: ignore[no-untyped-def]
    """Add the logarithm of a product to the log joint, and reset the product to 1."""
    for c in range(row.shape[0]):
        is_possible = product[c] > 0.0
        logarithm = log_normal(product[c] if is_possible else 1.0)
        row[c] += logarithm if is_possible else -np.inf
        product[c] = 1.0
