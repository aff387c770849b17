"""Gains of edges: how much the loss falls, to second order, if the terms of an edge are added to a model."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.terms.basis import Resolutions

__all__ = ["edge_gains", "parents_of_gains"]

#: Ridge of a cell in its gain.
SMOOTHING = 4.0
#: Numbers of the one-hot matrix of a block of rows, at most: 256 MB.
_MOST_NUMBERS = 2**26


def edge_gains(data: EncodedData, resolutions: Resolutions, probabilities: FloatArray) -> FloatArray:
    """Return the gain of every pair of features, symmetric and 0 on the diagonal.

    Let g be the sum of the residuals ``[y = c] - p_c`` of the rows in a cell, and h the sum of their variances ``p_c (1
    - p_c)``. Adding a parameter for the cell lowers the loss by about ``g^2 / (2 (h + ridge))``. Without a dependence,
    the expectation of g^2 is h. The gain of a pair is therefore the sum over cells and classes of ``(g^2 - h) / (h +
    4)``: it is 0 on average, whatever the number of cells. It is computed for the groups of both features, and for the
    product of their scores, and the larger one counts.

    ``probabilities`` are those of held-out rows: those of training rows have residuals that are too small.

    Shapes: probabilities: (n_samples, n_classes); result: (n_features, n_features).
    """
    d, n_classes = data.n_features, data.n_classes
    groups, scores = [resolutions.finest(i) for i in range(d)], [resolutions.scores(i) for i in range(d)]
    first = np.append(0, np.cumsum([int(g.max()) + 1 for g in groups]))
    weights = data.in_whole_rows().weights.astype(np.float64)
    shape = n_classes, int(first[-1]), int(first[-1])
    table, smooth = np.zeros((d, d)), np.zeros((d, d))
    n_rows = max(1, min(data.n_samples, _MOST_NUMBERS // max(1, shape[1])))
    for c in range(n_classes):
        sums, products = np.zeros((2, *shape[1:])), np.zeros((2, d, d))
        for start in range(0, data.n_samples, n_rows):
            rows = slice(start, start + n_rows)
            onehot, z = _design(data.codes[:, rows], resolutions, groups, scores, first)
            p, w = probabilities[rows, c], weights[rows]
            for k, factor in enumerate((w * ((data.y[rows] == c) - p), w * p * (1 - p))):
                sums[k] += (onehot * factor[:, np.newaxis].astype(np.float32)).T @ onehot
            products[0] += (z * (w * ((data.y[rows] == c) - p))[:, np.newaxis]).T @ z
            products[1] += (z**2 * (w * p * (1 - p))[:, np.newaxis]).T @ z**2
        gain = (sums[0] ** 2 - sums[1]) / (sums[1] + SMOOTHING)
        table += np.add.reduceat(np.add.reduceat(gain, first[:-1], axis=0), first[:-1], axis=1)
        smooth += (products[0] ** 2 - products[1]) / (products[1] + SMOOTHING)
    gains: FloatArray = np.maximum(table, smooth)
    gains = (gains + gains.T) / 2
    np.fill_diagonal(gains, 0)
    return gains


def _design(
    codes: AnyArray, resolutions: Resolutions, groups: list[IntArray], scores: list[FloatArray], first: IntArray
) -> tuple[AnyArray, FloatArray]:
    """Return the groups of rows as a one-hot matrix, and their scores; both are 0 for missing values."""
    n_samples = codes.shape[1]
    onehot, z = np.zeros((n_samples, int(first[-1])), np.float32), np.zeros((n_samples, len(groups)))
    for i, n_states in enumerate(resolutions.n_states):
        rows = np.flatnonzero(codes[i] < n_states)
        own = groups[i][codes[i, rows]]
        onehot[rows, first[i] + own] = 1
        z[rows, i] = scores[i][own]
    return onehot, z


def parents_of_gains(gains: FloatArray, n_parents: int, by_name: IntArray) -> IntArray:
    """Return the parents of each feature, without a cycle: the edges of the largest positive gains.

    With one parent per feature, it is the maximum spanning forest, directed away from the feature of the largest total
    gain of each tree. With more, an edge leads from the feature of larger total gain to the other one, and each feature
    keeps its largest gains. Ties are broken by name.

    Shapes: gains: (n_features, n_features); by_name: (n_features,); result: (n_features, n_parents), -1 for none.
    """
    d = len(gains)
    ordered = gains[np.ix_(by_name, by_name)]
    order = np.argsort(-np.maximum(ordered, 0).sum(axis=1), kind="stable")  # most gain first
    found = np.full((d, n_parents), -1)
    if n_parents == 1:
        parent = _spanning_forest(ordered, order)
        found[by_name, 0] = np.where(parent < 0, -1, by_name[parent])
        return found
    for k, i in enumerate(order.tolist()):
        earlier = order[:k]
        best = earlier[np.argsort(-ordered[i, earlier], kind="stable")][:n_parents]
        best = best[ordered[i, best] > 0]
        found[by_name[i], : len(best)] = by_name[best]
    return found


def _spanning_forest(gains: FloatArray, order: IntArray) -> IntArray:
    """Return the parent of each feature in the maximum spanning forest of positive gains, -1 for none.

    The root of each tree is the first of its features in ``order``.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    i, j = np.nonzero(np.triu(gains > 0))
    tree = minimum_spanning_tree(coo_array((-gains[i, j], (i, j)), shape=gains.shape).tocsr())
    parent = np.full(len(gains), -1)
    seen = np.zeros(len(gains), np.bool_)
    for root in order.tolist():
        if not seen[root]:
            reached, before = breadth_first_order(tree, root, directed=False)
            seen[reached] = True
            parent[reached[1:]] = before[reached[1:]]
    return parent
