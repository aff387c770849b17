"""Gains of edges: how much the loss falls, to second order, if the terms of an edge are added to a model."""

from __future__ import annotations

import math

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.counts import add_pair
from tanlearn.terms.basis import Resolutions

__all__ = ["edge_gains", "parents_of_gains"]

#: Ridge of a cell in its gain.
SMOOTHING = 4.0


def edge_gains(
    data: EncodedData, resolutions: Resolutions, probabilities: FloatArray, *, n_jobs: int | None = None
) -> FloatArray:
    """Return the gain of every pair of features, symmetric and 0 on the diagonal.

    Let g be the sum of the residuals ``[y = c] - p_c`` of the rows in a cell, and h the sum of their variances ``p_c (1
    - p_c)``. Adding a parameter for the cell lowers the loss by about ``g^2 / (2 (h + ridge))``. Without a dependence,
    the expectation of g^2 is h. The gain of a pair is therefore the sum over cells and classes of ``(g^2 - h) / (h +
    4)``: it is 0 on average, whatever the number of cells. It is computed for the groups of both features, and for the
    product of their scores, and the larger one counts.

    ``probabilities`` are those of held-out rows: those of training rows have residuals that are too small. Gains of
    equal features are equal bit by bit, on every processor, so that ties are broken by name.

    Shapes: probabilities: (n_samples, n_classes); result: (n_features, n_features).
    """
    d, n_classes = data.n_features, data.n_classes
    groups, n_groups = _encode(data.codes, resolutions)
    missing = missing_code(groups.dtype)
    scores = [resolutions.scores(i) for i in range(d)]
    weights, p = data.in_whole_rows().weights.astype(np.float64), probabilities.T
    residuals = weights * ((data.y == np.arange(n_classes)[:, np.newaxis]) - p)
    factors = np.concatenate([residuals, weights * p * (1 - p)])
    no_class = np.zeros(data.n_samples, np.intp)
    gains = np.zeros((d, d))

    def fill(i: int) -> None:
        for j in range(i):
            if n_groups[i] == 1 or n_groups[j] == 1:  # the edge would have no terms
                continue
            sums = np.zeros((2 * n_classes, n_groups[i] * n_groups[j]))
            for factor, cells in zip(factors, sums, strict=True):
                add_pair(groups[i], groups[j], no_class, factor, n_groups[j], 1, missing, cells)
            product = np.outer(scores[i], scores[j]).ravel()
            g, h = sums[:n_classes], sums[n_classes:]
            smooth = _gain(_row_sums(g * product), _row_sums(h * product**2))
            gains[i, j] = gains[j, i] = max(math.fsum(one.ravel().tolist()) for one in (_gain(g, h), smooth))

    in_threads(fill, range(d), n_jobs)
    return gains


def _gain(g: FloatArray, h: FloatArray) -> FloatArray:
    """Return the gain of a parameter from the sums of its residuals and variances."""
    gain: FloatArray = (g**2 - h) / (h + SMOOTHING)
    return gain


def _row_sums(table: FloatArray) -> FloatArray:
    """Return the exactly rounded sum of each row, which does not depend on the order of its entries."""
    return np.array([math.fsum(row) for row in table.tolist()])


def _encode(codes: Codes, resolutions: Resolutions) -> tuple[Codes, list[int]]:
    """Return the group of each value in its finest division, (n_features, n_samples), and the numbers of groups."""
    finest = [resolutions.finest(i) for i in range(len(codes))]
    n_groups = [int(groups.max()) + 1 for groups in finest]
    dtype = codes_dtype(max(n_groups))
    missing = missing_code(dtype)
    found: AnyArray = np.full(codes.shape, missing, dtype)
    for target, own, groups in zip(found, codes, finest, strict=True):
        seen = own < len(groups)
        target[seen] = groups[own[seen]]
    return found, n_groups


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
