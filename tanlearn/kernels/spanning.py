"""Maximum spanning trees built by inserting vertices one by one, each with its edges to all earlier vertices.

Spira and Pan, "On finding and updating spanning trees and shortest paths", SIAM Journal on Computing 4, 1975; Chin and
Houck, "Algorithms for updating minimal spanning trees", Journal of Computer and System Sciences 16, 1978. Each edge is
visited once, and memory is proportional to the size of the tree.
"""
# Shapes: d vertices. parent (d,), -1 for the root; weight (d,): weight of the edge to the parent; n_children (d,)
# gain (rows, first + rows): row r contains the weights of the edges from vertex first + r to all earlier vertices
# to_come, best, changed (d,) intp and best_weight (d,): scratch; to_come: number of children not yet visited
# Edge numbers for a new vertex z: v < z is (v, z), and z + 1 + v is (v, parent[v])

from __future__ import annotations

from tanlearn.kernels._jit import kernel

_CUT = -2


@kernel
def is_better(weight, edge, other_weight, other, z, parent):  # type: ignore[no-untyped-def]
    """Return whether an edge is heavier than another; ties go to the lower pair (smaller vertex, larger vertex)."""
    if weight != other_weight:
        return weight > other_weight
    a, b = (edge, z) if edge < z else (edge - z - 1, parent[edge - z - 1])
    c, d = (other, z) if other < z else (other - z - 1, parent[other - z - 1])
    low, other_low = min(a, b), min(c, d)
    return low < other_low or (low == other_low and max(a, b) < max(c, d))


@kernel
def hang_on(vertex, top, top_weight, parent, weight, n_children):  # type: ignore[no-untyped-def]
    """Make a vertex the root of its tree, and attach it to the vertex ``top`` of another tree (-1 for none)."""
    child, child_weight = top, top_weight
    while vertex >= 0:
        above, above_weight = parent[vertex], weight[vertex]
        parent[vertex], weight[vertex] = child, child_weight
        if child >= 0:
            n_children[child] += 1
        if above >= 0:
            n_children[above] -= 1
        vertex, child, child_weight = above, vertex, above_weight


@kernel
def insert_vertices(gain, first, parent, weight, n_children, to_come, best, best_weight, changed):  # type: ignore[no-untyped-def]
    """Extend the maximum spanning tree of the vertices before ``first`` by the next vertices, in place.

    From the leaves to the root, ``best[v]`` becomes the bottleneck edge of the heaviest path from v, through its
    subtree, to the new vertex z. Of this edge and the edge from v to its parent, the heavier one remains in the tree.
    The other one is the bottleneck of the path from the parent through v.
    """
    for r in range(gain.shape[0]):
        z, row = first + r, gain[r]
        n_changed = 0
        for v in range(z):
            to_come[v], best[v], best_weight[v] = n_children[v], v, row[v]
        for leaf in range(z):
            v = leaf
            while 0 <= v <= leaf and to_come[v] == 0:
                to_come[v] = -1
                above = parent[v]
                edge, edge_weight = best[v], best_weight[v]
                if above < 0:
                    changed[n_changed] = v
                    n_changed += 1
                else:
                    if is_better(edge_weight, edge, weight[v], z + 1 + v, z, parent):
                        to_come[v] = _CUT
                        changed[n_changed] = v
                        n_changed += 1
                        edge, edge_weight = z + 1 + v, weight[v]
                    if is_better(edge_weight, edge, best_weight[above], best[above], z, parent):
                        best[above], best_weight[above] = edge, edge_weight
                    to_come[above] -= 1
                v = above
        for k in range(n_changed):
            if best[changed[k]] > z:  # this tree edge remains
                to_come[best[changed[k]] - z - 1] = -1
        for k in range(n_changed):
            v = changed[k]
            if to_come[v] == _CUT:
                n_children[parent[v]] -= 1
                parent[v] = -1
        parent[z], n_children[z] = -1, 0
        for k in range(n_changed):
            v = best[changed[k]]
            if v < z:
                hang_on(v, z, row[v], parent, weight, n_children)
