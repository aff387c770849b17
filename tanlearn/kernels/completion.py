"""Missing features filled in together with their most probable values: elimination with maxima in place of sums.

Eliminating a feature leaves the maximum over its values of the factors that hold it; the way back gives every feature
the best value for those that are filled in already (Dechter 1999).

The factors are those of elimination.py, but logarithms: without sums they cost no exponentials, and nothing has to be
scaled. Sums over what has nothing observed below are one, maxima are not: of 2,000 children of two missing parents they
meet in one product, which as a probability would be 0.
"""
# Shapes: d features, C classes, M cells; codes, completed (d, n_all); y (n_all,); samples (n,): the columns to do
# cells (M,): table i, of feature i, starts at offset[i] and has the axes child, parent(s), class; row (C,)

from __future__ import annotations

import numpy as np

from tanlearn._jit import kernel
from tanlearn.kernels.elimination import (
    OBSERVED,
    SUMMED_OUT,
    _cell,
    _choose,
    _family,
    _file,
    _unite,
    _workspace,
)


@kernel
def most_probable(  # type: ignore[no-untyped-def]
    codes, samples, cells, network, missing, max_width, capacity, y, completed
):
    """Write what samples miss, given their class, or where ``y`` is negative with the most probable class.

    Returns how many could be done before one was too large. Of equal classes and values it takes the first.
    """
    n_classes = network.offset[0]
    work = _workspace(network, n_classes, max_width, capacity)
    row = np.empty(n_classes)
    for k in range(samples.shape[0]):
        n = samples[k]
        n_factors = _open(codes, n, cells, network, missing, work, row)
        if not _eliminate(cells, network, n_factors, work, row):
            return k
        if y[n] < 0:
            y[n] = np.argmax(row)
        _trace_back(cells, network, y[n], work, completed[:, n])
    return samples.shape[0]


@kernel
def _open(codes, n, cells, network, missing, work, row):  # type: ignore[no-untyped-def]
    """Sort the families by what they miss; return the number of factors."""
    n_classes = row.shape[0]
    for i in range(network.parents.shape[0]):
        work.state[i] = OBSERVED if codes[i, n] != missing else SUMMED_OUT
        if work.state[i] == SUMMED_OUT:
            work.head[i] = -1
            work.space[network.belief[i] : network.belief[i + 1]] = 0.0
    row[:] = cells[:n_classes]
    n_factors = 0
    for i in range(network.parents.shape[0]):
        first = _family(codes, i, n, network, n_classes, n_factors, work)
        if work.width[n_factors] == 0:
            values = cells[first : first + n_classes]
            for c in range(n_classes):
                row[c] += values[c]
        elif work.width[n_factors] == 1:
            v, stride = work.scope[n_factors, 0], work.stride[n_factors, 0]
            _add(cells, first, stride, network.n_states[v], n_classes, work.space[network.belief[v] :])
        else:
            work.start[n_factors] = first
            work.in_space[n_factors] = False
            _file(n_factors, work)
            n_factors += 1
    return n_factors


@kernel
def _add(source, first, stride, n_values, n_classes, belief):  # type: ignore[no-untyped-def]
    """Add a factor of one feature to its belief."""
    for s in range(n_values):
        values = source[first + s * stride : first + s * stride + n_classes]
        target = belief[s * n_classes : (s + 1) * n_classes]
        for c in range(n_classes):
            target[c] += values[c]


@kernel
def _eliminate(cells, network, n_factors, work, row):  # type: ignore[no-untyped-def]
    """Maximise over all missing features; return whether there was room for it."""
    n_classes = row.shape[0]
    used = network.belief[network.order.shape[0]]
    for position in range(network.order.shape[0]):
        v = network.order[position]
        if work.state[v] != SUMMED_OUT:
            continue
        n_left = _unite(v, network, work)
        if n_left < 0:
            return False
        n_rows = 1
        for k in range(n_left):
            if used + n_rows * n_classes <= work.space.shape[0]:  # or the product might overflow
                n_rows *= network.n_states[work.union[k]]
        if used + n_rows * n_classes > work.space.shape[0]:
            return False
        for r in range(n_rows):
            _choose(r, n_left, network, work)
            target = work.space[used + r * n_classes : used + (r + 1) * n_classes]
            target[:] = -np.inf
            for s in range(network.n_states[v]):
                _sum(v, s, cells, network, work)
                for c in range(n_classes):
                    target[c] = max(target[c], work.product[c])
        if n_left == 0:
            for c in range(n_classes):
                row[c] += work.space[used + c]
        elif n_left == 1:
            u = work.union[0]
            _add(work.space, used, n_classes, n_rows, n_classes, work.space[network.belief[u] :])
        else:
            stride = n_classes
            for k in range(n_left - 1, -1, -1):
                work.scope[n_factors, k] = work.union[k]
                work.stride[n_factors, k] = stride
                stride *= network.n_states[work.union[k]]
            work.width[n_factors] = n_left
            work.start[n_factors] = used
            work.in_space[n_factors] = True
            _file(n_factors, work)
            n_factors += 1
            used += n_rows * n_classes
    return True


@kernel
def _sum(v, s, cells, network, work):  # type: ignore[no-untyped-def]
    """Write the sum of all factors of a feature at its value s and the chosen ones of the others."""
    total = work.product
    n_classes = total.shape[0]
    first = network.belief[v] + s * n_classes
    total[:] = work.space[first : first + n_classes]
    f = work.head[v]
    while f >= 0:
        cell = _cell(f, s, work)
        values = work.space[cell : cell + n_classes] if work.in_space[f] else cells[cell : cell + n_classes]
        for c in range(n_classes):
            total[c] += values[c]
        f = work.following[f]


@kernel
def _trace_back(cells, network, c, work, sample):  # type: ignore[no-untyped-def]
    """Write the best values given the class, those of the last feature to be eliminated first."""
    for position in range(network.order.shape[0] - 1, -1, -1):
        v = network.order[position]
        if work.state[v] != SUMMED_OUT:
            continue
        n_left = _unite(v, network, work)
        for k in range(n_left):
            work.digit[k] = sample[work.union[k]]
        best = -np.inf
        sample[v] = 0
        for s in range(network.n_states[v]):
            _sum(v, s, cells, network, work)
            if work.product[c] > best:
                best = work.product[c]
                sample[v] = s
