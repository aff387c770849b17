"""Slices of a row: one copy per combination of values of some of its missing features.

If the factors of a row do not fit in memory, the elimination conditions on some missing features. It sets their values,
eliminates the others in each slice, and adds the results: log p(x, c) = log sum_s p(x, s, c). Slices are numbered in
mixed radix, with the last conditioned feature varying fastest. They are created in blocks, so they are never in memory
all at once.

Shapes: a block of slices is codes (n_features, n_slices), its scores are (n_slices, n_classes).

Invariant: all slices of a block belong to one row, and the other missing features keep their missing codes. Sums are
exact up to rounding and the same on every CPU, because exponentials and logarithms come from
``kernels/mathematics.py``. Reference: cutset conditioning, Darwiche, Modeling and Reasoning with Bayesian Networks,
2009, chapter 8.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tanlearn._typing import Codes, FloatArray
from tanlearn.kernels.mathematics import exp_all, log_all

__all__ = ["blocks_of_slices", "expand_slices", "log_sum", "posterior"]

#: Codes per block of slices.
_BLOCK = 2**16


def expand_slices(column: Codes, features: list[int], n_states: list[int], first: int, last: int) -> Codes:
    """Return the slices ``first`` to ``last - 1`` of a row, with the last of the given features varying fastest.

    Shapes: column: (n_features,); result: (n_features, last - first).
    """
    slices = np.repeat(column[:, np.newaxis], last - first, axis=1)
    number = np.arange(first, last)
    for j in reversed(features):
        number, slices[j] = np.divmod(number, n_states[j])
    return slices


def blocks_of_slices(n_slices: int, n_features: int) -> Iterator[tuple[int, int]]:
    """Yield the half-open range (first, last) of the slices of each block."""
    size = max(1, _BLOCK // n_features)
    for first in range(0, n_slices, size):
        yield first, min(first + size, n_slices)


def log_sum(scores: FloatArray) -> FloatArray:
    """Compute log-sum-exp over the first axis, with the same result on every CPU.

    Shapes: scores: (n_slices, n_classes), at least one slice; result: (n_classes,).
    """
    if len(scores) == 1:
        return scores[0]
    largest = scores.max(axis=0)
    total = posterior(scores, largest).sum(axis=0)
    found = np.empty_like(total)
    log_all(total, found)
    return largest + found


def posterior(scores: FloatArray, total: FloatArray) -> FloatArray:
    """Compute the probability of each slice: ``exp(scores - total)``, or 0 where the total is -inf.

    The total is the sum by `log_sum` or the maximum. Shapes: scores: (n_slices, n_classes); total: (n_classes,).
    """
    # Rounding may leave a score above its total, but the kernel requires exponents of at most 0.
    exponent = np.minimum(scores - np.where(total > -np.inf, total, 0.0), 0.0)
    found = np.empty_like(exponent)
    exp_all(exponent.ravel(), found.ravel())
    return found
