"""The maximum spanning forest out of a matrix of weights, by sorting all edges."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree


def maximum_spanning_forest(gain, root, spanning):
    """Return parents; of equal edges (i, j), i < j, the one with the lower i is taken, then the lower j."""
    n_features = gain.shape[0]
    i, j = np.triu_indices(n_features, 1)
    edge = gain[i, j]
    keep = np.full(edge.shape, True) if spanning else edge > 0
    order = np.argsort(-edge[keep], kind="stable")
    cost = np.empty(len(order))
    cost[order] = np.arange(1, len(order) + 1)  # ranks: no two edges are equal, so no sorting decides
    ends = i[keep].astype(np.int32), j[keep].astype(np.int32)  # as SciPy 1.12 wants them
    tree = minimum_spanning_tree(coo_array((cost, ends), shape=(n_features, n_features)).tocsr())
    labels = connected_components(tree, directed=False)[1]
    parent = np.full(n_features, -1, dtype=np.intp)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        start = root if root in members else members[0]
        order, predecessors = breadth_first_order(tree, start, directed=False)
        parent[order[1:]] = predecessors[order[1:]]
    return parent
