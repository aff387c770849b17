"""Maximum-weight forest with all required edges and no excluded edges.

An edge may be excluded in only one direction, so the forest is a maximum-weight branching (Chu and Liu 1965; Edmonds
1967) instead of a spanning tree. A feature without a parent has an edge of weight 0 from an artificial root.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.kernels.trees import maximum_arborescence
from tanlearn.structures.knowledge import EdgeRules

__all__ = ["dense_gains", "restricted_forest"]

#: Weight, in nats, that is added to the gain of each edge, so that even edges with a gain of 0 are used. Gains have the
#: same resolution.
_OF_AN_EDGE = 2.0**-40


def dense_gains(blocks: Iterable[tuple[int, FloatArray]], n_features: int) -> FloatArray:
    """Combine blocks of rows to a symmetric matrix (n_features, n_features) of gains, whose diagonal is 0."""
    gains = np.zeros((n_features, n_features))
    for first, block in blocks:
        gains[first : first + len(block), : block.shape[1]] = block
    gains = np.tril(gains, -1)
    return gains + gains.T


def restricted_forest(gains: FloatArray, rules: EdgeRules, roots: IntArray, *, spanning: bool) -> IntArray:
    """Return the parent of each feature (-1 for none) in the maximum-weight forest that the rules permit.

    The rules must allow one parent per feature. Without ``spanning``, edges with a gain of 0 or less are left out
    unless they are required. Gains do not depend on the direction, so the root of each tree is the first feature in
    ``roots`` from which all its edges lead in allowed directions.

    Shapes: gains: (n_features, n_features), symmetric; roots: (n_features,), a permutation; result: (n_features,).
    """
    d = len(gains)
    size = 2 * d + 1
    usable = (rules.allowed & (spanning | (gains > 0))) | rules.required
    weight = np.full((size, size), -np.inf)  # [child, parent]; d is the artificial root
    weight[:d, :d] = np.where(usable, gains + _OF_AN_EDGE, -np.inf)
    weight[:d, d] = np.where(rules.required.any(axis=1), -np.inf, 0.0)
    parent = np.empty(d, np.intp)
    source, target = np.empty((2, size, size), np.int32)
    maximum_arborescence(d, weight, source, target, np.empty((5, size), np.int32), parent)
    return _with_first_roots(parent, rules, roots)


def _with_first_roots(parent: IntArray, rules: EdgeRules, roots: IntArray) -> IntArray:
    """Direct the edges of each tree away from the first possible feature in ``roots`` (n_features,)."""
    neighbors: list[list[int]] = [[] for _ in parent]
    for i, j in enumerate(parent.tolist()):
        if j >= 0:
            neighbors[i].append(j)
            neighbors[j].append(i)
    found = np.full(len(parent), -1)
    is_done = np.zeros(len(parent), np.bool_)
    for root in roots.tolist():
        if not is_done[root]:
            above = _directed_away(root, neighbors, rules)
            for i, j in above.items():
                found[i], is_done[i] = j, True
    return found


def _directed_away(root: int, neighbors: list[list[int]], rules: EdgeRules) -> dict[int, int]:
    """Return the parent of each feature in the tree of a root (-1 for the root), or {} if a direction is excluded."""
    above, reached = {root: -1}, [root]
    for j in reached:
        for i in neighbors[j]:
            if i == above[j]:
                continue
            if not rules.allowed[i, j]:
                return {}
            above[i] = j
            reached.append(i)
    return above
