"""Orderings of features: the user's permutations, and pixel orders A, B and C of differentiable TAN (section 4.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import IntArray

__all__ = ["check_ordering", "pixel_ordering"]

PIXEL_ORDERINGS = ("A", "B", "C")


def check_ordering(ordering: Any, n_features: int) -> IntArray:
    """Validate an ordering (n_features,) that the user has passed, and return it as intp."""
    order = np.asarray(ordering)
    if order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(n_features)):
        raise ValueError(
            f"ordering must contain each number from 0 to {n_features - 1} once, got {ordering!r}. The pixel orderings "
            f"'A', 'B' and 'C' require candidates='heuristic' and image_shape."
        )
    return order.astype(np.intp)


def pixel_ordering(name: str, image_shape: tuple[int, int]) -> IntArray:
    """Return a pixel order of differentiable TAN (section 4.4).

    ``"A"`` proceeds row by row. ``"B"`` proceeds row by row through the diagonal and the lower triangle, and each pixel
    is followed by its mirror image above the diagonal. ``"C"`` starts in the center and adds one ring after another:
    first the row above and the row below, then the left and the right column, then the corners. B and C require a
    square image.

    Pixel ``(row, column)`` is feature ``row * width + column``. Shapes: result: (height * width,).
    """
    if name not in PIXEL_ORDERINGS:
        raise ValueError(f"a pixel order must be one of {', '.join(PIXEL_ORDERINGS)}, got {name!r}.")
    height, width = image_shape
    if name == "A":
        return np.arange(height * width)
    if height != width:
        raise ValueError(f"pixel order {name} is defined for square images, got {height} x {width}. Use order A.")
    pixels = _triangle(width) if name == "B" else _rings(width)
    return np.array([row * width + column for row, column in pixels], dtype=np.intp)


def _triangle(size: int) -> list[tuple[int, int]]:
    """Return the (row, column) of each pixel in order B."""
    pixels = []
    for row in range(size):
        for column in range(row):
            pixels += [(row, column), (column, row)]
        pixels.append((row, row))
    return pixels


def _rings(size: int) -> list[tuple[int, int]]:
    """Return the (row, column) of each pixel in order C, from the central pixel, or 2 x 2 pixels, outward."""
    side = 2 - size % 2
    first = (size - side) // 2
    pixels = [(first + row, first + column) for row in range(side) for column in range(side)]
    while first > 0:
        inside = range(first, first + side)
        low, high = first - 1, first + side
        pixels += [(row, column) for row in (low, high) for column in inside]
        pixels += [(row, column) for column in (low, high) for row in inside]
        pixels += [(row, column) for row in (low, high) for column in (low, high)]
        first, side = low, side + 2
    return pixels
