"""Drawing of structures: Gumbel-max choices, maximum-weight arborescences, and the straight-through gradient."""
# Shapes: d features, T tables (candidate CPTs); those of child i are group[i]:group[i + 1]; table_parent (T,), -1 for
# none; uniform (T,); phi, noise, perturbed, d_choice, d_phi (T,); selected (d,): drawn tables

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._interpreter import interpretable
from tanlearn.kernels._jit import kernel, shared_kernel
from tanlearn.kernels._lanes import LANES, load, splat, store, store_first, where_less
from tanlearn.kernels.vector import log_lanes

_HALF_STEP = 2.0**-25
_LAST = 1.0 - 2.0**-24


class Graph(NamedTuple):
    """Work arrays for arborescences of N = 2 d + 1 nodes; empty if no trees are drawn."""

    weight: Any  # float64 (N, N) weight[i, j] of the edge j -> i
    source: Any  # int32 (N, N) original source of each edge
    target: Any  # int32 (N, N) original target of each edge
    work: Any  # int32 (6, N) node state of the algorithm; the sixth row is used on CUDA only


@shared_kernel
def gumbel(uniform, noise):  # type: ignore[no-untyped-def]
    """Write Gumbel(0, 1) noise, -log(-log(u)), from uniform float32 numbers u in [0, 1) with 24 bits.

    Half a step of the grid is added to avoid log 0; the largest number is reduced, because it would be rounded to 1.
    """
    last, zero, half_step = splat(_LAST), splat(0.0), splat(_HALF_STEP)
    count, n_whole = uniform.shape[0], uniform.shape[0] // LANES * LANES
    for first in range(0, n_whole, LANES):
        u = load(uniform, first) + half_step
        u = where_less(u, last, u, last)
        store(noise, first, zero - log_lanes(zero - log_lanes(u)))
    for t in range(n_whole, count):
        u = splat(uniform[t]) + half_step
        u = where_less(u, last, u, last)
        store_first(noise, t, zero - log_lanes(zero - log_lanes(u)), 1)


@shared_kernel
def perturb(phi, noise, group, perturbed):  # type: ignore[no-untyped-def]
    """Write log softmax(phi) + noise within each child's group (differentiable TAN, eq. 11)."""
    for i in range(group.shape[0] - 1):
        top = phi[group[i]]
        for t in range(group[i], group[i + 1]):
            top = max(top, phi[t])
        total = 0.0
        for t in range(group[i], group[i + 1]):
            total += np.exp(phi[t] - top)
        log_total = top + np.log(total)
        for t in range(group[i], group[i + 1]):
            perturbed[t] = phi[t] - log_total + noise[t]


@interpretable
@shared_kernel
def draw_independent(perturbed, group, selected):  # type: ignore[no-untyped-def]
    """Choose the best table of each child independently; ties go to the first."""
    for i in range(group.shape[0] - 1):
        best = group[i]
        for t in range(group[i] + 1, group[i + 1]):
            if perturbed[t] > perturbed[best]:
                best = t
        selected[i] = best


@interpretable
@kernel
def draw_acyclic(perturbed, group, parents, highest, ancestors, selected):  # type: ignore[no-untyped-def]
    """Choose tables with any number of parents, without cycles, by a greedy algorithm.

    Features choose in decreasing order of their best entries. Each feature takes the best table that closes no cycle
    with the tables chosen before; a table without parents never closes one. (With one parent per feature, the result is
    not the tree of maximum weight.) ``ancestors`` has a bit for each ancestor of each feature, including the feature
    itself.
    """
    d = group.shape[0] - 1
    for i in range(d):
        selected[i] = -1
        highest[i] = perturbed[group[i]]
        for t in range(group[i] + 1, group[i + 1]):
            highest[i] = max(highest[i], perturbed[t])
        for w in range(ancestors.shape[1]):
            ancestors[i, w] = 0
        ancestors[i, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    for _ in range(d):
        i = -1
        for j in range(d):
            if selected[j] < 0 and (i < 0 or highest[j] > highest[i]):
                i = j
        bit = np.uint64(1) << np.uint64(i & 63)
        best = -1
        for t in range(group[i], group[i + 1]):
            if best >= 0 and perturbed[t] <= perturbed[best]:
                continue
            is_free = True
            for p in parents[t]:
                if p >= 0 and ancestors[p, i >> 6] & bit:
                    is_free = False
            if is_free:
                best = t
        selected[i] = best
        for p in parents[best]:
            if p >= 0:
                for j in range(d):
                    if ancestors[j, i >> 6] & bit:
                        for w in range(ancestors.shape[1]):
                            ancestors[j, w] |= ancestors[p, w]


@kernel
def draw_arborescence(perturbed, group, table_parent, weight, source, target, work, selected):  # type: ignore[no-untyped-def]
    """Choose the tables that form the tree of maximum total weight; a table without parent is an edge from the root."""
    d = group.shape[0] - 1
    weight[:] = -np.inf
    for i in range(d):
        for t in range(group[i], group[i + 1]):
            j = table_parent[t] if table_parent[t] >= 0 else d
            weight[i, j] = perturbed[t]
    maximum_arborescence(d, weight, source, target, work, selected)
    for i in range(d):
        parent = selected[i]
        selected[i] = group[i]
        while table_parent[selected[i]] != parent:
            selected[i] += 1


@kernel
def maximum_arborescence(d, weight, source, target, work, parent):  # type: ignore[no-untyped-def]
    """Write the maximum-weight arborescence over nodes 0..d-1 with root d (Chu and Liu 1965; Edmonds 1967).

    ``weight[i, j]`` is the weight of the edge j -> i, -inf for no edge; each node must have a finite edge from the
    root. Cycles are contracted to new nodes d+1, d+2, ... as they close. ``source`` and ``target`` are the ends of the
    original edge that corresponds to the best edge between two (contracted) nodes. ``work`` has five rows: chosen
    in-neighbor, state, enclosing node, and the original ends of the chosen edge. ``parent`` is -1 for the root. All
    square arrays are (2 d + 1, 2 d + 1). Ties go to the lowest number.
    """
    pointer, state, around, edge_source, edge_target = work[0], work[1], work[2], work[3], work[4]
    for i in range(2 * d + 1):
        state[i] = 0  # 0 unvisited, 1 on the current path, 2 connected to the root, 3 inside a contracted node
        around[i] = -1
    state[d] = 2
    for i in range(d + 1):
        for j in range(d + 1):
            source[i, j] = j
            target[i, j] = i
    size = d + 1
    for start in range(d):
        node = start
        while around[node] >= 0:
            node = around[node]
        while state[node] != 2:
            state[node] = 1
            best = d
            for j in range(size):
                if state[j] != 3 and j != node and weight[node, j] > weight[node, best]:
                    best = j
            pointer[node] = best
            edge_source[node] = source[node, best]
            edge_target[node] = target[node, best]
            if state[best] == 0:
                node = best
            elif state[best] == 1:
                _contract(best, size, weight, source, target, work)
                node = size
                size += 1
            else:  # the whole path is connected to the root now
                node = start
                while around[node] >= 0:
                    node = around[node]
                while state[node] == 1:
                    state[node] = 2
                    node = pointer[node]
    for top in range(size - 1, d, -1):  # break each cycle at the node that its chosen edge enters
        member = edge_target[top]
        while around[member] != top:
            member = around[member]
        edge_source[member] = edge_source[top]
        edge_target[member] = edge_target[top]
    for i in range(d):
        parent[i] = edge_source[i] if edge_source[i] != d else -1


@kernel
def _contract(member, new, weight, source, target, work):  # type: ignore[no-untyped-def]
    """Replace the cycle through ``member`` by the node ``new``."""
    pointer, state, around = work[0], work[1], work[2]
    node = member
    while state[node] == 1:
        state[node] = 3
        around[node] = new
        node = pointer[node]
    state[new] = 1
    for j in range(new):
        weight[new, j] = -np.inf
        weight[j, new] = -np.inf
        if state[j] == 3:
            continue
        if state[j] == 1 and around[pointer[j]] == new:
            pointer[j] = new
        node = member
        while True:  # once around the cycle
            gain = weight[node, j] - weight[node, pointer[node]]
            if gain > weight[new, j]:
                weight[new, j] = gain
                source[new, j] = source[node, j]
                target[new, j] = target[node, j]
            if weight[j, node] > weight[j, new]:
                weight[j, new] = weight[j, node]
                source[j, new] = source[j, node]
                target[j, new] = target[j, node]
            node = pointer[node]
            if node == member:
                break


@kernel
def size_penalty_gradient(perturbed, noise, group, size_penalty, d_phi):  # type: ignore[no-untyped-def]
    """Add the gradient of the expected penalty, the sum of softmax(phi) times ``size_penalty`` ([RE] eq. 18).

    The softmax of each child is treated independently. This is the exact expectation if children are drawn
    independently. For arborescences, it is an approximation that is not from a paper: cycles are excluded, so edges are
    not drawn with their softmax probabilities.
    """
    for i in range(group.shape[0] - 1):
        mean = 0.0
        for t in range(group[i], group[i + 1]):
            mean += np.exp(perturbed[t] - noise[t]) * size_penalty[t]
        for t in range(group[i], group[i + 1]):
            d_phi[t] += np.exp(perturbed[t] - noise[t]) * (size_penalty[t] - mean)


@shared_kernel
def structure_gradient(perturbed, group, temperature, d_choice, d_phi):  # type: ignore[no-untyped-def]
    """Write the straight-through gradient of phi (differentiable TAN, eq. 12-13).

    With s = softmax(perturbed / temperature): d_phi[t] = s[t] (d_choice[t] - sum_u s[u] d_choice[u]) / temperature.
    """
    for i in range(group.shape[0] - 1):
        top = perturbed[group[i]]
        for t in range(group[i], group[i + 1]):
            top = max(top, perturbed[t])
        total = 0.0
        mean = 0.0
        for t in range(group[i], group[i + 1]):
            d_phi[t] = np.exp((perturbed[t] - top) / temperature)
            total += d_phi[t]
            mean += d_phi[t] * d_choice[t]
        mean /= total
        for t in range(group[i], group[i + 1]):
            d_phi[t] = d_phi[t] / total * (d_choice[t] - mean) / temperature
