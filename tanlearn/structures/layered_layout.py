"""Layered layout for drawing a structure, with parents above their children and trees side by side."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import FloatArray, IntArray

__all__ = ["layered_positions", "margins"]

#: Ratio of width to height of a picture.
_ASPECT = 1.6


def layered_positions(parents: IntArray, order: IntArray) -> FloatArray:
    """Compute the coordinates of all features in layers, with siblings side by side and subtrees close together.

    A feature is one layer below the deepest of its parents, so edges to this parent never cross. Edges to a second
    parent may cross. Trees are placed side by side, in several lines if one line would be too wide. Features without
    edges come last.

    In the result, x increases to the right, and y increases upward. The distance between layers is 1. The distance
    between adjacent features of a layer is at least 1. ``order`` (n_features,) lists parents before their children.
    """
    above = _deepest_parents(parents, order)
    children: list[list[int]] = [[] for _ in above]
    for i in order.tolist():
        if above[i] >= 0:
            children[above[i]].append(i)
    linked = set(parents[parents >= 0].tolist())
    positions = np.zeros((len(above), 2))
    trees: list[int] = []
    alone: list[int] = []
    for root in np.flatnonzero(above < 0).tolist():
        (trees if root in linked else alone).append(root)
    shapes = [_place(root, children, positions) for root in trees]
    shapes += [[root] for root in alone]
    _pack(shapes, positions)
    return positions


def margins(positions: FloatArray) -> tuple[float, float, float, float]:
    """Return the left, right, bottom and top of a picture that extends 0.5 beyond the outermost features."""
    left, bottom = positions.min(axis=0) - 0.5
    right, top = positions.max(axis=0) + 0.5
    return float(left), float(right), float(bottom), float(top)


def _deepest_parents(parents: IntArray, order: IntArray) -> IntArray:
    """Return, for each feature, the parent in the lowest layer, or -1 for none."""
    depth = np.zeros(len(parents), np.intp)
    above = np.full(len(parents), -1)
    for i in order.tolist():
        known = [j for j in parents[i].tolist() if j >= 0]
        if known:
            above[i] = max(known, key=depth.__getitem__)
            depth[i] = depth[above[i]] + 1
    return above


def _place(root: int, children: list[list[int]], positions: FloatArray) -> list[int]:
    """Write the coordinates of a tree with its root at y = 0 and its leftmost feature at x = 0. Return its features."""
    members, stack = [], [root]
    while stack:
        i = stack.pop()
        members.append(i)
        for child in children[i]:
            positions[child, 1] = positions[i, 1] - 1
            stack.append(child)
    # Children come before their parents. In each subtree, x is relative to its root.
    outlines: dict[int, list[tuple[float, float]]] = {}  # leftmost and rightmost x of each subtree, layer by layer
    shift = np.zeros(len(positions))  # x of a child relative to its parent
    for i in reversed(members):
        placed: list[tuple[float, float]] = []
        at: list[float] = []
        for child in children[i]:
            outline = outlines.pop(child)
            pairs = zip(placed, outline, strict=False)  # common layers
            x = max((left[1] + 1 - right[0] for left, right in pairs), default=0.0)
            at.append(x)
            moved = [(a + x, b + x) for a, b in outline]
            both = [(a[0], b[1]) for a, b in zip(placed, moved, strict=False)]
            longer = placed[len(both) :] or moved[len(both) :]
            placed = both + longer
        middle = (at[0] + at[-1]) / 2 if at else 0.0
        for child, x in zip(children[i], at, strict=True):
            shift[child] = x - middle
        outlines[i] = [(0.0, 0.0), *((a - middle, b - middle) for a, b in placed)]
    leftmost = min(a for a, _ in outlines[root])
    for i in members:  # parents come first here
        if i == root:
            positions[i, 0] = -leftmost
        for child in children[i]:
            positions[child, 0] = positions[i, 0] + shift[child]
    return members


def _pack(shapes: list[list[int]], positions: FloatArray) -> None:
    """Move the trees side by side, into several lines if one line would be too wide."""
    sizes = [positions[members].max(axis=0) - positions[members].min(axis=0) + 1 for members in shapes]
    area = sum(float(width * (height + 0.5)) for width, height in sizes)
    widest = max([*(float(width) for width, _ in sizes), (_ASPECT * area) ** 0.5])
    x = y = row_height = 0.0
    for members, (width, height) in zip(shapes, sizes, strict=True):
        if x > 0 and x + width > widest + 1e-9:
            x, y, row_height = 0.0, y - row_height - 0.5, 0.0
        positions[members] += (x, y)
        x, row_height = x + float(width), max(row_height, float(height))
