"""Imputation of missing features after elimination, with the most probable values or with samples.

Features are restored in the reverse of the elimination order. All features in the factors of a feature are then known,
and the factors give the probabilities of its values: after sums the posterior, after maxima the best completion.
"""
# Shapes: d features, C classes, M parameters
# codes and completed (d, n_all); samples (n,): columns to process; cells (M,); y (n_all,); row (C,); sample (d,)
# uniform (n, d); drawn (d, n, C)

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.elimination import ELIMINATED, cell_of, eliminate_missing, join, new_workspace, open_sample, unite
from tanlearn.kernels.mathematics import exp


@kernel
def most_probable(  # type: ignore[no-untyped-def]
    codes, samples, cells, network, missing, max_width, capacity, y, completed
):
    """Write the most probable missing values given the class; if it is negative, given the most probable class.

    Returns the number of samples processed before one exceeded the capacity. Ties go to the first class and value.
    """
    n_classes = network.offset[0]
    work = new_workspace(network, n_classes, max_width, capacity)
    row = np.empty(n_classes)
    for k in range(samples.shape[0]):
        n = samples[k]
        n_factors = open_sample(codes, n, cells, network, False, missing, work, row)
        if eliminate_missing(cells, network, True, 0, n_factors, work, row) < 0:
            return k
        if y[n] < 0:
            y[n] = np.argmax(row)
        _trace_back(cells, network, y[n], work, completed[:, n])
    return samples.shape[0]


@kernel
def sample_completions(  # type: ignore[no-untyped-def]
    codes, samples, cells, network, missing, max_width, capacity, uniform, drawn
):
    """Draw missing values from the posterior given each class, and copy observed values.

    All classes use the same uniform numbers. Returns the number of samples processed before one exceeded the capacity.
    """
    n_classes = drawn.shape[2]
    work = new_workspace(network, n_classes, max_width, capacity)
    row = np.empty(n_classes)
    for k in range(samples.shape[0]):
        n_factors = open_sample(codes, samples[k], cells, network, False, missing, work, row)
        if eliminate_missing(cells, network, False, 0, n_factors, work, row) < 0:
            return k
        for i in range(drawn.shape[0]):
            drawn[i, k] = codes[i, samples[k]]
        _draw_back(cells, network, uniform[k], work, drawn[:, k])
    return samples.shape[0]


@kernel
def _trace_back(cells, network, c, work, sample):  # type: ignore[no-untyped-def]
    """Write the best values given the class, in the reverse of the elimination order."""
    for position in range(network.order.shape[0] - 1, -1, -1):
        v = network.order[position]
        if work.state[v] != ELIMINATED:
            continue
        n_left = unite(v, network, work)
        for k in range(n_left):
            work.digit[k] = sample[work.union[k]]
        best = -np.inf
        sample[v] = 0
        for s in range(network.n_states[v]):
            join(v, s, cells, network, work)
            if work.joint[c] > best:
                best = work.joint[c]
                sample[v] = s


@kernel
def _draw_back(cells, network, uniform, work, drawn):  # type: ignore[no-untyped-def]
    """Draw values given each class, in the reverse of the elimination order."""
    for position in range(network.order.shape[0] - 1, -1, -1):
        v = network.order[position]
        if work.state[v] != ELIMINATED:
            continue
        n_left = unite(v, network, work)
        weights = work.d_space[network.belief[v] : network.belief[v] + network.n_states[v]]
        for c in range(drawn.shape[1]):
            for k in range(n_left):
                work.digit[k] = drawn[work.union[k], c]
            _weigh(v, c, cells, network, work, weights)
            total = 0.0
            for s in range(weights.shape[0]):
                total += weights[s]
            left = uniform[v] * total
            drawn[v, c] = 0
            for s in range(weights.shape[0]):
                if weights[s] > 0.0 and left >= 0.0:  # impossible values are never drawn
                    drawn[v, c] = s
                left -= weights[s]


@kernel
def _weigh(v, c, cells, network, work, weights):  # type: ignore[no-untyped-def]
    """Write the relative probabilities of a feature's values (1 for the best) given a class and the other values."""
    for s in range(weights.shape[0]):
        weights[s] = work.space[network.belief[v] + s * work.joint.shape[0] + c]
        f = work.head[v]
        while f >= 0:
            cell = cell_of(f, s, work) + c
            weights[s] += work.space[cell] if work.in_space[f] else cells[cell]
            f = work.following[f]
    top = -np.inf
    for s in range(weights.shape[0]):
        top = max(top, weights[s])
    for s in range(weights.shape[0]):
        weights[s] = exp(weights[s] - top) if top > -np.inf else 0.0
