"""Exact marginalization of missing features by bucket elimination (Dechter 1999), with its gradient and its cost.

The families of a sample that contain missing features are factors over these features. Eliminating a feature adds up
the factors that contain it and sums their exponentials over its values, which leaves a factor over the remaining
features. On a tree this is the upward pass of belief propagation; with more augmenting parents, factors are larger. The
backward pass distributes the posterior of the last factor over the factors from which it was computed. The results are
the expected indicators of the CPT entries. The same elimination is used for imputation (``completions.py``), with
maxima instead of sums for the most probable values.

All factors are logarithms. A missing feature may have a thousand children: products of so many probabilities would
underflow, and a value that has a low probability in the first factors, but is most probable in the end, would be lost.

Reference: R. Dechter, "Bucket elimination: a unifying framework for reasoning", Artificial Intelligence 113, 1999.
"""
# Shapes: d features, P the most parents, C classes, M parameters, F = 2 d factors, W the most features of a factor
# codes (d, n_all); samples (n,): columns to process; scores (n, C); row (C,); n_values (n,)
# cells (M,): the CPT of feature i starts at offset[i] and has the axes child, parent(s), class

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import exp, log

OBSERVED, ELIMINATED, BARREN = 0, 1, 2


class Network(NamedTuple):
    """Families of a network, and the elimination order of its features."""

    parents: Any  # intp (d, P) augmenting parents, -1 for none
    n_states: Any  # intp (d,)
    offset: Any  # intp (d + 1,) start of each CPT in cells
    order: Any  # intp (d,) features in elimination order
    rank: Any  # intp (d,) position of each feature in order
    downward: Any  # intp (d,) features, parents before children
    belief: Any  # intp (d + 1,) start of each feature's belief in Workspace.space


class Workspace(NamedTuple):
    """State of the elimination of the current sample. Factor f is over scope[f, :width[f]], in elimination order."""

    state: Any  # intp (d,) OBSERVED, ELIMINATED or BARREN
    is_needed: Any  # bool (d,) whether a child that is not barren depends on the feature
    scope: Any  # intp (F, W) features of each factor
    stride: Any  # intp (F, W) stride of each feature in the factor
    slot: Any  # intp (F, W) position of each feature in the factor that remains after elimination of the first
    width: Any  # intp (F,) number of features of each factor
    start: Any  # intp (F,) start of the factor's numbers, rows of C
    in_space: Any  # bool (F,) whether the numbers are in space or in cells
    following: Any  # intp (F,) next factor with the same first feature, or -1
    head: Any  # intp (d,) first factor with this first feature, or -1
    left: Any  # intp (d,) start in space of the factor that elimination of a feature leaves
    union: Any  # intp (W,) features of the remaining factor
    digit: Any  # intp (W,) current values of these features
    space: Any  # float64 (belief[d] + capacity,) beliefs (sums of single-feature factors), then remaining factors
    d_space: Any  # float64, shape of space: posteriors
    joint: Any  # float64 (C,) sum of all factors of a feature
    total: Any  # float64 (C,)
    log_sum: Any  # float64 (C,)


@kernel
def new_workspace(network, n_classes, max_width, capacity):  # type: ignore[no-untyped-def]
    """Allocate the workspace of a thread."""
    d = network.parents.shape[0]
    n_factors = 2 * d
    width = max(max_width, network.parents.shape[1] + 1)  # the features of a family
    n_space = network.belief[d] + capacity
    return Workspace(
        state=np.empty(d, np.intp),
        is_needed=np.empty(d, np.bool_),
        scope=np.empty((n_factors, width), np.intp),
        stride=np.empty((n_factors, width), np.intp),
        slot=np.empty((n_factors, width), np.intp),
        width=np.empty(n_factors, np.intp),
        start=np.empty(n_factors, np.intp),
        in_space=np.empty(n_factors, np.bool_),
        following=np.empty(n_factors, np.intp),
        head=np.empty(d, np.intp),
        left=np.empty(d, np.intp),
        union=np.empty(width, np.intp),
        digit=np.empty(width, np.intp),
        space=np.empty(n_space),
        d_space=np.empty(n_space),
        joint=np.empty(n_classes),
        total=np.empty(n_classes),
        log_sum=np.empty(n_classes),
    )


@kernel
def eliminate(  # type: ignore[no-untyped-def]
    codes, samples, cells, network, is_normalized, missing, max_width, capacity, reserve, scores
):
    """Write the log joint of samples with missing features; return the number processed before the capacity was short.

    If CPTs are normalized, a missing feature without observed descendants is skipped. With a ``reserve``, a feature
    whose joint factor would be too large is treated as independent copies, one per factor; the result is then no longer
    the exact log joint. The reserve must hold the factor that each CPT leaves when one of its features is eliminated;
    intermediate factors are overwritten.
    """
    work = new_workspace(network, scores.shape[1], max_width, capacity + reserve)
    for k in range(samples.shape[0]):
        n_factors = open_sample(codes, samples[k], cells, network, is_normalized, missing, work, scores[k])
        if eliminate_missing(cells, network, False, reserve, n_factors, work, scores[k]) < 0:
            return k
    return samples.shape[0]


@kernel
def eliminate_adjoint(  # type: ignore[no-untyped-def]
    codes, samples, cells, network, is_normalized, missing, max_width, capacity, d_scores, d_cells
):
    """Add the gradient of :func:`eliminate` with respect to the cells; return how many samples were processed.

    If ``d_scores`` is 1 for one class, the gradient is the expected indicators of the cells given that class. Families
    of barren features add nothing; their gradient is zero while CPTs stay normalized.
    """
    n_classes = d_scores.shape[1]
    work = new_workspace(network, n_classes, max_width, capacity)
    row = np.empty(n_classes)
    for k in range(samples.shape[0]):
        n_factors = open_sample(codes, samples[k], cells, network, is_normalized, missing, work, row)
        used = eliminate_missing(cells, network, False, 0, n_factors, work, row)
        if used < 0:
            return k
        _spread(cells, network, d_scores[k], used, work, d_cells)
        _close(codes, samples[k], network, d_scores[k], work, d_cells)
    return samples.shape[0]


@kernel
def count_values(  # type: ignore[no-untyped-def]
    codes, samples, network, n_classes, is_normalized, missing, max_width, capacity, n_values
):
    """Write the number of joint values in all joint factors of each sample's eliminated features.

    Returns the number of samples processed before the capacity was short, as :func:`eliminate` without a reserve.
    """
    work = new_workspace(network, n_classes, max_width, 0)
    first = network.belief[network.order.shape[0]]
    for k in range(samples.shape[0]):
        _find_states(codes, samples[k], network, is_normalized, missing, work)
        n_factors, used, n_values[k] = 0, first, 0
        for i in range(network.parents.shape[0]):
            if work.state[i] != BARREN:
                _family(codes, i, samples[k], network, n_classes, n_factors, work)
                if work.width[n_factors] > 1:
                    _file(n_factors, work)
                    n_factors += 1
        for position in range(network.order.shape[0]):
            v = network.order[position]
            if work.state[v] != ELIMINATED:
                continue
            n_left = unite(v, network, work)
            n_rows = _count_rows(n_left, n_classes, first + capacity - used, network, work)
            if n_rows < 0:
                return k
            n_values[k] += n_rows * network.n_states[v]
            if n_left > 1:
                _leave(n_left, used, n_classes, n_factors, network, work)
                n_factors += 1
                used += n_rows * n_classes
    return samples.shape[0]


@kernel
def _find_states(codes, n, network, is_normalized, missing, work):  # type: ignore[no-untyped-def]
    """Determine which features are observed, eliminated or barren, and reset the beliefs of eliminated ones."""
    d = network.parents.shape[0]
    work.is_needed[:] = False
    for position in range(d):
        i = network.downward[d - 1 - position]
        if codes[i, n] != missing:
            work.state[i] = OBSERVED
        elif is_normalized and not work.is_needed[i]:
            work.state[i] = BARREN
            continue
        else:
            work.state[i] = ELIMINATED
            work.head[i] = -1
            work.space[network.belief[i] : network.belief[i + 1]] = 0.0
        for p in range(network.parents.shape[1]):
            if network.parents[i, p] >= 0:
                work.is_needed[network.parents[i, p]] = True


@kernel
def open_sample(codes, n, cells, network, is_normalized, missing, work, row):  # type: ignore[no-untyped-def]
    """Create the factors of a sample's families, and add complete families to row; return the number of larger factors.

    Families with one missing feature are added to its belief; only factors of two or more features are counted.
    """
    n_classes = row.shape[0]
    _find_states(codes, n, network, is_normalized, missing, work)
    for c in range(n_classes):
        row[c] = cells[c]
    n_factors = 0
    for i in range(network.parents.shape[0]):
        if work.state[i] == BARREN:
            continue
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
def _family(codes, i, n, network, n_classes, f, work):  # type: ignore[no-untyped-def]
    """Store the missing features of family i in ``work`` as factor f, in elimination order.

    Return the index of the factor's first cell.
    """
    first = network.offset[i]
    stride = n_classes
    width = 0
    n_parents = network.parents.shape[1]
    for axis in range(n_parents + 1):  # parents first: the last parent varies fastest, the child slowest
        j = i if axis == n_parents else network.parents[i, n_parents - 1 - axis]
        if j >= 0:
            if work.state[j] == OBSERVED:
                first += codes[j, n] * stride
            else:
                k = width
                while k > 0 and network.rank[work.scope[f, k - 1]] > network.rank[j]:
                    work.scope[f, k] = work.scope[f, k - 1]
                    work.stride[f, k] = work.stride[f, k - 1]
                    k -= 1
                work.scope[f, k] = j
                work.stride[f, k] = stride
                width += 1
            stride *= network.n_states[j]
    work.width[f] = width
    return first


@kernel
def _file(f, work):  # type: ignore[no-untyped-def]
    """Add a factor to the list of its first feature."""
    v = work.scope[f, 0]
    work.following[f] = work.head[v]
    work.head[v] = f


@kernel
def _add(source, first, stride, n_values, n_classes, belief):  # type: ignore[no-untyped-def]
    """Add a factor of one feature to the feature's belief."""
    for s in range(n_values):
        values = source[first + s * stride : first + s * stride + n_classes]
        target = belief[s * n_classes : (s + 1) * n_classes]
        for c in range(n_classes):
            target[c] += values[c]


@kernel
def eliminate_missing(cells, network, is_maximum, reserve, n_factors, work, row):  # type: ignore[no-untyped-def]
    """Eliminate all missing features by sums or maxima; return the used length of the space, or -1 if too short."""
    n_classes = row.shape[0]
    used = network.belief[network.order.shape[0]]
    capacity = work.space.shape[0] - reserve
    used_apart = capacity
    for position in range(network.order.shape[0]):
        v = network.order[position]
        if work.state[v] != ELIMINATED:
            continue
        n_left = unite(v, network, work)
        n_rows = _count_rows(n_left, n_classes, capacity - used, network, work)
        if n_rows < 0:
            if reserve == 0:
                return -1
            used_apart = _take_apart(v, cells, network, used_apart, work, row)
            continue
        work.left[v] = used
        for r in range(n_rows):
            _choose(r, n_left, network, work)
            _sum_values(v, cells, network, is_maximum, work, work.space[used + r * n_classes :])
        if n_left == 0:
            for c in range(n_classes):
                row[c] += work.space[used + c]
        elif n_left == 1:
            u = work.union[0]
            _add(work.space, used, n_classes, n_rows, n_classes, work.space[network.belief[u] :])
        else:
            _leave(n_left, used, n_classes, n_factors, network, work)
            n_factors += 1
            used += n_rows * n_classes
    return used


@kernel
def _count_rows(n_left, n_classes, capacity, network, work):  # type: ignore[no-untyped-def]
    """Return the number of joint values of the remaining features, or -1 if they exceed the free space."""
    n_rows = 1
    for k in range(n_left):
        if n_rows * n_classes <= capacity:  # or the product might overflow
            n_rows *= network.n_states[work.union[k]]
    return n_rows if n_left >= 0 and n_rows * n_classes <= capacity else -1


@kernel
def _leave(n_left, start, n_classes, f, network, work):  # type: ignore[no-untyped-def]
    """Define the remaining factor as factor f, with its numbers from ``start`` in space on, last feature fastest."""
    stride = n_classes
    for k in range(n_left - 1, -1, -1):
        work.scope[f, k] = work.union[k]
        work.stride[f, k] = stride
        stride *= network.n_states[work.union[k]]
    work.width[f] = n_left
    work.start[f] = start
    work.in_space[f] = True
    _file(f, work)


@kernel
def _take_apart(v, cells, network, used, work, row):  # type: ignore[no-untyped-def]
    """Eliminate a feature from each of its factors separately; return the start of the free part of the reserve.

    Each factor averages over the values of the feature, independently of the other factors, so factors of normalized
    CPTs stay normalized. The belief of the feature is summed as a whole. The remaining factor is written to the reserve
    if the factor was a CPT, and otherwise over the factor itself: row r is written before the position of all numbers
    that later rows read.
    """
    n_classes = row.shape[0]
    n_values = network.n_states[v]
    first = network.belief[v]
    for c in range(n_classes):
        row[c] += _log_sum(work.space, first + c, n_classes, n_values)
    f = work.head[v]
    while f >= 0:
        following = work.following[f]
        n_left = work.width[f] - 1
        n_rows = 1
        for k in range(n_left):
            work.union[k] = work.scope[f, k + 1]
            work.slot[f, k + 1] = k
            n_rows *= network.n_states[work.union[k]]
        source, target = (work.space, work.start[f]) if work.in_space[f] else (cells, used)
        used += 0 if work.in_space[f] else n_rows * n_classes
        for r in range(n_rows):
            _choose(r, n_left, network, work)
            cell = cell_of(f, 0, work)
            for c in range(n_classes):
                total = _log_sum(source, cell + c, work.stride[f, 0], n_values)
                work.space[target + r * n_classes + c] = total - log(float(n_values))
        if n_left == 1:
            _add(work.space, target, n_classes, n_rows, n_classes, work.space[network.belief[work.union[0]] :])
        else:
            _leave(n_left, target, n_classes, f, network, work)
        f = following
    return used


@kernel
def _log_sum(source, first, stride, n_values):  # type: ignore[no-untyped-def]
    """Return the log of the sum of exponentials of numbers with a stride."""
    largest = -np.inf
    for s in range(n_values):
        largest = max(largest, source[first + s * stride])
    if largest == -np.inf:
        return largest
    total = 0.0
    for s in range(n_values):
        total += exp(source[first + s * stride] - largest)
    return largest + log(total)


@kernel
def _sum_values(v, cells, network, is_maximum, work, target):  # type: ignore[no-untyped-def]
    """Write the log of the sum (or the maximum) over a feature's values, at the chosen values of the other features."""
    n_classes = work.joint.shape[0]
    for c in range(n_classes):
        target[c] = -np.inf
    for s in range(network.n_states[v]):
        join(v, s, cells, network, work)
        for c in range(n_classes):
            target[c] = max(target[c], work.joint[c])
    if is_maximum:
        return
    work.total[:] = 0.0
    for s in range(network.n_states[v]):
        join(v, s, cells, network, work)
        for c in range(n_classes):
            if target[c] > -np.inf:
                work.total[c] += exp(work.joint[c] - target[c])
    for c in range(n_classes):
        if target[c] > -np.inf:
            target[c] += log(work.total[c])


@kernel
def unite(v, network, work):  # type: ignore[no-untyped-def]
    """Write the features that remain after elimination, in elimination order, and their positions for each factor.

    Returns the number of remaining features, or -1 if there are too many.
    """
    n_left = 0
    f = work.head[v]
    while f >= 0:
        for k in range(1, work.width[f]):
            j = work.scope[f, k]
            position = 0
            while position < n_left and network.rank[work.union[position]] < network.rank[j]:
                position += 1
            if position == n_left or work.union[position] != j:
                if n_left == work.union.shape[0]:
                    return -1
                for later in range(n_left, position, -1):
                    work.union[later] = work.union[later - 1]
                work.union[position] = j
                n_left += 1
        f = work.following[f]
    f = work.head[v]
    while f >= 0:
        position = 0
        for k in range(1, work.width[f]):
            while work.union[position] != work.scope[f, k]:
                position += 1
            work.slot[f, k] = position
        f = work.following[f]
    return n_left


@kernel
def _choose(r, n_left, network, work):  # type: ignore[no-untyped-def]
    """Write the values of the remaining features for row r, last feature fastest."""
    for k in range(n_left - 1, -1, -1):
        n_values = network.n_states[work.union[k]]
        work.digit[k] = r % n_values
        r //= n_values


@kernel
def cell_of(f, s, work):  # type: ignore[no-untyped-def]
    """Return the position in a factor of its first feature's value s and the chosen values of the others."""
    cell = work.start[f] + s * work.stride[f, 0]
    for k in range(1, work.width[f]):
        cell += work.digit[work.slot[f, k]] * work.stride[f, k]
    return cell


@kernel
def join(v, s, cells, network, work):  # type: ignore[no-untyped-def]
    """Write the sum of all factors of a feature at its value s and the chosen values of the others."""
    joint = work.joint
    n_classes = joint.shape[0]
    first = network.belief[v] + s * n_classes
    for c in range(n_classes):
        joint[c] = work.space[first + c]
    f = work.head[v]
    while f >= 0:
        cell = cell_of(f, s, work)
        values = work.space[cell : cell + n_classes] if work.in_space[f] else cells[cell : cell + n_classes]
        for c in range(n_classes):
            joint[c] += values[c]
        f = work.following[f]


@kernel
def _spread(cells, network, d_row, used, work, d_cells):  # type: ignore[no-untyped-def]
    """Write the posteriors of all eliminated factors, and add the posteriors of CPT factors to the gradient."""
    n_classes = d_row.shape[0]
    work.d_space[:used] = 0.0  # clearing all of it would take 100 us for a million numbers
    for position in range(network.order.shape[0] - 1, -1, -1):
        v = network.order[position]
        if work.state[v] != ELIMINATED:
            continue
        n_left = unite(v, network, work)
        n_rows = 1
        for k in range(n_left):
            n_rows *= network.n_states[work.union[k]]
        above = work.left[v] if n_left > 1 else network.belief[work.union[0]] if n_left == 1 else -1
        belief = network.belief[v]
        for r in range(n_rows):
            _choose(r, n_left, network, work)
            _sum_values(v, cells, network, False, work, work.log_sum)
            for s in range(network.n_states[v]):
                join(v, s, cells, network, work)
                for c in range(n_classes):
                    posterior = exp(work.joint[c] - work.log_sum[c]) if work.log_sum[c] > -np.inf else 0.0
                    work.joint[c] = posterior * (work.d_space[above + r * n_classes + c] if above >= 0 else 1.0)
                    work.d_space[belief + s * n_classes + c] += work.joint[c]
                f = work.head[v]
                while f >= 0:
                    cell = cell_of(f, s, work)
                    for c in range(n_classes):
                        if work.in_space[f]:
                            work.d_space[cell + c] += work.joint[c]
                        else:
                            d_cells[cell + c] += work.joint[c] * d_row[c]
                    f = work.following[f]


@kernel
def _close(codes, n, network, d_row, work, d_cells):  # type: ignore[no-untyped-def]
    """Add the gradient of the prior and of the families with no or one missing feature."""
    n_classes = d_row.shape[0]
    for c in range(n_classes):
        d_cells[c] += d_row[c]
    f = work.width.shape[0] - 1  # unused: there are at most 2 (d - 1) factors, a family and a remainder per feature
    for i in range(network.parents.shape[0]):
        if work.state[i] == BARREN:
            continue
        first = _family(codes, i, n, network, n_classes, f, work)
        if work.width[f] == 0:
            for c in range(n_classes):
                d_cells[first + c] += d_row[c]
        elif work.width[f] == 1:
            v, stride = work.scope[f, 0], work.stride[f, 0]
            belief = network.belief[v]
            for s in range(network.n_states[v]):
                for c in range(n_classes):
                    d_cells[first + s * stride + c] += d_row[c] * work.d_space[belief + s * n_classes + c]
