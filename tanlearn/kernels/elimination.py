"""Missing features summed out exactly, one after the other, the transpose of that, and what it takes.

The families of a sample that miss something are factors over what they miss. Eliminating a feature adds up the factors
that hold it and sums their exponentials over its values, which leaves a factor over the others (bucket elimination,
Dechter 1999). On a tree that is the upward pass; more augmenting parents make larger factors. The way back spreads the
posterior of the last factor over those that it was made of, which gives the expected cells of a sample. (On it values
are filled in, too: ``completions.py``, which takes maxima in place of sums for the most probable ones.)

All factors are logarithms. A missing feature may have a thousand children: as probabilities, products of so many would
underflow, or a value that trails at first and wins in the end would have been lost on the way.
"""
# Shapes: d features, P the most parents, C classes, M cells, F = 2 d factors, W the most features of a factor
# codes (d, n_all); samples (n,): the columns to do; scores (n, C); row (C,); n_values (n,)
# cells (M,): table i, of feature i, starts at offset[i] and has the axes child, parent(s), class

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import exp, log

OBSERVED, ELIMINATED, BARREN = 0, 1, 2


class Network(NamedTuple):
    """Families, and in which order to eliminate their features."""

    parents: Any  # (d, P), -1 for none
    n_states: Any  # (d,)
    offset: Any  # (d + 1,)
    order: Any  # (d,): features as they are eliminated
    rank: Any  # (d,): its inverse
    downward: Any  # (d,): parents before children
    belief: Any  # (d + 1,): where the belief of a feature starts in a workspace


class Workspace(NamedTuple):
    """What is known of the sample in hand. Factor f is over scope[f, :width[f]], features as they are eliminated."""

    state: Any  # (d,): OBSERVED, ELIMINATED or BARREN
    is_needed: Any  # (d,): whether a child that is not barren asks for the feature
    scope: Any  # (F, W)
    stride: Any  # (F, W): of the features
    slot: Any  # (F, W): positions of the features in what is left when the first is eliminated
    width: Any  # (F,)
    start: Any  # (F,): of the cells, C wide
    in_space: Any  # (F,): whether they lie in space, or in the tables
    following: Any  # (F,): next factor with the same first feature, or -1
    head: Any  # (d,): first factor whose first feature is this one, or -1
    left: Any  # (d,): where what eliminating a feature leaves starts in space
    union: Any  # (W,): the features of that
    digit: Any  # (W,): values of these
    space: Any  # beliefs, the sums of all factors of one feature alone, then what eliminating left
    d_space: Any  # like space: posteriors
    joint: Any  # (C,): of all factors of a feature
    total: Any  # (C,)
    log_sum: Any  # (C,)


@kernel
def new_workspace(network, n_classes, max_width, capacity):  # type: ignore[no-untyped-def]
    """Return the scratch of a thread."""
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
    """Write the log joint of samples that miss features; return how many could be done before one was too large.

    Where tables are normalised, a missing feature without observed ones below costs nothing. With a ``reserve``, a
    feature whose factors would be too large together is taken for as many features as it has factors, each of which
    knows nothing of the others: that is no longer the log joint. It takes room for a value of each table at most, which
    are the numbers of the reserve; what is made on the way is overwritten.
    """
    work = new_workspace(network, scores.shape[1], max_width, capacity + reserve)
    for k in range(samples.shape[0]):
        n_factors = open_sample(codes, samples[k], cells, network, is_normalized, missing, work, scores[k])
        if sum_out(cells, network, False, reserve, n_factors, work, scores[k]) < 0:
            return k
    return samples.shape[0]


@kernel
def eliminate_adjoint(  # type: ignore[no-untyped-def]
    codes, samples, cells, network, is_normalized, missing, max_width, capacity, d_scores, d_cells
):
    """Add the gradient of :func:`eliminate` for the cells; return how many samples could be done.

    With a one for a class in ``d_scores`` these are the expected indicators of the cells given that class. Families of
    barren features have none; nor has the gradient, where tables stay normalised.
    """
    n_classes = d_scores.shape[1]
    work = new_workspace(network, n_classes, max_width, capacity)
    row = np.empty(n_classes)
    for k in range(samples.shape[0]):
        n_factors = open_sample(codes, samples[k], cells, network, is_normalized, missing, work, row)
        used = sum_out(cells, network, False, 0, n_factors, work, row)
        if used < 0:
            return k
        _spread(cells, network, d_scores[k], used, work, d_cells)
        _close(codes, samples[k], network, d_scores[k], work, d_cells)
    return samples.shape[0]


@kernel
def count_values(  # type: ignore[no-untyped-def]
    codes, samples, network, n_classes, is_normalized, missing, max_width, capacity, n_values
):
    """Write how many values the eliminated features of each sample take, together with those that they are tied to.

    Returns how many samples could be counted before one was too large, as :func:`eliminate` does without a reserve.
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
    """Find out what has to be eliminated, of which nothing is known yet."""
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
    """Sort the families by what they miss; return the number of factors of more than one feature."""
    n_classes = row.shape[0]
    _find_states(codes, n, network, is_normalized, missing, work)
    row[:] = cells[:n_classes]
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
    """Write what a family misses as factor f, in the order of elimination; return where its cells start."""
    first = network.offset[i]
    stride = n_classes
    width = 0
    n_parents = network.parents.shape[1]
    for axis in range(n_parents + 1):  # parents first: the last of them varies fastest, the child slowest
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
    """Put a factor on the list of its first feature."""
    v = work.scope[f, 0]
    work.following[f] = work.head[v]
    work.head[v] = f


@kernel
def _add(source, first, stride, n_values, n_classes, belief):  # type: ignore[no-untyped-def]
    """Add a factor of one feature to its belief."""
    for s in range(n_values):
        values = source[first + s * stride : first + s * stride + n_classes]
        target = belief[s * n_classes : (s + 1) * n_classes]
        for c in range(n_classes):
            target[c] += values[c]


@kernel
def sum_out(cells, network, is_maximum, reserve, n_factors, work, row):  # type: ignore[no-untyped-def]
    """Sum all missing features out, or take the maximum; return how much of the space that took, or -1 for no room."""
    n_classes = row.shape[0]
    used = network.belief[network.order.shape[0]]
    room = work.space.shape[0] - reserve
    used_apart = room
    for position in range(network.order.shape[0]):
        v = network.order[position]
        if work.state[v] != ELIMINATED:
            continue
        n_left = unite(v, network, work)
        n_rows = _count_rows(n_left, n_classes, room - used, network, work)
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
def _count_rows(n_left, n_classes, room, network, work):  # type: ignore[no-untyped-def]
    """Return how many values the features that are left have together, or -1 if there is no room for them."""
    n_rows = 1
    for k in range(n_left):
        if n_rows * n_classes <= room:  # or the product might overflow
            n_rows *= network.n_states[work.union[k]]
    return n_rows if n_left >= 0 and n_rows * n_classes <= room else -1


@kernel
def _leave(n_left, start, n_classes, f, network, work):  # type: ignore[no-untyped-def]
    """Make what is left factor f, whose cells start there in space, the last feature varying fastest."""
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
    """Sum a feature out of each of its factors by itself; return where the reserve is free from now on.

    Every factor sees all values equally often, but those of no other feature, which are taken together: so what is left
    of normalised tables is normalised. What a factor leaves goes to the reserve if it was a table, and else to where
    the factor is: row r stands before all that is read for the rows behind it.
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
    """Return the log of the sum of exponentials of numbers that lie a stride apart."""
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
    """Write the log of the sum over a feature's values, or the maximum, at the chosen values of the others."""
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
    """Write what the factors of a feature leave, in the order of elimination, and the positions of theirs in it.

    Returns the number of features, or -1 if they are too many.
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
    """Write the values that row r of what is left stands for, the last feature varying fastest."""
    for k in range(n_left - 1, -1, -1):
        n_values = network.n_states[work.union[k]]
        work.digit[k] = r % n_values
        r //= n_values


@kernel
def cell_of(f, s, work):  # type: ignore[no-untyped-def]
    """Return where a factor has the first feature's value s and the chosen ones of the others."""
    cell = work.start[f] + s * work.stride[f, 0]
    for k in range(1, work.width[f]):
        cell += work.digit[work.slot[f, k]] * work.stride[f, k]
    return cell


@kernel
def join(v, s, cells, network, work):  # type: ignore[no-untyped-def]
    """Write the sum of all factors of a feature at its value s and the chosen ones of the others."""
    joint = work.joint
    n_classes = joint.shape[0]
    first = network.belief[v] + s * n_classes
    joint[:] = work.space[first : first + n_classes]
    f = work.head[v]
    while f >= 0:
        cell = cell_of(f, s, work)
        values = work.space[cell : cell + n_classes] if work.in_space[f] else cells[cell : cell + n_classes]
        for c in range(n_classes):
            joint[c] += values[c]
        f = work.following[f]


@kernel
def _spread(cells, network, d_row, used, work, d_cells):  # type: ignore[no-untyped-def]
    """Write the posteriors of all that was summed out, and add those of the factors that are tables."""
    n_classes = d_row.shape[0]
    work.d_space[:used] = 0.0  # the whole of it would take 100 us where the room is for a million numbers
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
                    share = exp(work.joint[c] - work.log_sum[c]) if work.log_sum[c] > -np.inf else 0.0
                    work.joint[c] = share * (work.d_space[above + r * n_classes + c] if above >= 0 else 1.0)
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
    """Add the gradient of the prior and of the families that miss nothing or one feature."""
    n_classes = d_row.shape[0]
    for c in range(n_classes):
        d_cells[c] += d_row[c]
    f = work.width.shape[0] - 1  # not in use: there are at most a family and a remainder for every feature but one
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
