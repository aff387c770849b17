"""Slices: a row once for every combination of values of some missing features, and sums over these."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tanlearn._typing import Codes, FloatArray
from tanlearn.kernels.mathematics import exp_all, log_all

__all__ = ["blocks_of_slices", "expand_slices", "log_sum", "posterior"]

#: Codes that a block of slices may have.
_BLOCK = 2**16


def expand_slices(column: Codes, features: list[int], n_states: list[int], first: int, last: int) -> Codes:
    """Return a row once for every combination of values of some features, the last feature varying fastest.

    Shapes: column: (n_features,); result: (n_features, last - first).
    """
    slices = np.repeat(column[:, np.newaxis], last - first, axis=1)
    number = np.arange(first, last)
    for j in reversed(features):
        number, slices[j] = np.divmod(number, n_states[j])
    return slices


def blocks_of_slices(n_slices: int, n_features: int) -> Iterator[tuple[int, int]]:
    """Yield the first slice, and the one past the last, of every block."""
    size = max(1, _BLOCK // n_features)
    for first in range(0, n_slices, size):
        yield first, min(first + size, n_slices)


def log_sum(scores: FloatArray) -> FloatArray:
    """Return the log of the sum of exponentials over the first axis, the same on every CPU.

    Shapes: scores: (n_slices, n_classes); result: (n_classes,).
    """
    if len(scores) == 1:
        return scores[0]
    largest = scores.max(axis=0)
    total = posterior(scores, largest).sum(axis=0)
    found = np.empty_like(total)
    log_all(total, found)
    return largest + found


def posterior(scores: FloatArray, total: FloatArray) -> FloatArray:
    """Return the probability of every slice, ``exp(scores - total)``.

    Shapes: scores: (n_slices, n_classes); total: (n_classes,); result: (n_slices, n_classes).
    """
    # Rounding may leave a score above its total; the kernel takes exponents up to 0.
    exponent = np.minimum(scores - np.where(total > -np.inf, total, 0.0), 0.0)
    found = np.empty_like(exponent)
    exp_all(exponent.ravel(), found.ravel())
    return found
