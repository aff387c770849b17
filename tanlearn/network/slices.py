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

    Parameters
    ----------
    column : ndarray of shape (n_features,)
        Codes of the row.
    features : list of int
        Features that take all of their values.
    n_states : list of int
        Number of values of every feature.
    first, last : int
        The first combination, and the one past the last.

    Returns
    -------
    ndarray of shape (n_features, last - first)

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.network.slices import expand_slices
    >>> expand_slices(np.array([7, 255, 255], np.uint8), [1, 2], [9, 2, 2], 1, 4).tolist()
    [[7, 7, 7], [0, 1, 1], [1, 0, 1]]
    """
    slices = np.repeat(column[:, np.newaxis], last - first, axis=1)
    number = np.arange(first, last)
    for j in reversed(features):
        number, slices[j] = np.divmod(number, n_states[j])
    return slices


def blocks_of_slices(n_slices: int, n_features: int) -> Iterator[tuple[int, int]]:
    """Yield the first slice, and the one past the last, of every block.

    Parameters
    ----------
    n_slices : int
        Number of slices of a row.
    n_features : int
        Codes per slice.

    Yields
    ------
    tuple of (int, int)

    Examples
    --------
    >>> from tanlearn.network.slices import blocks_of_slices
    >>> list(blocks_of_slices(5, 2**15))
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, _BLOCK // n_features)
    for first in range(0, n_slices, size):
        yield first, min(first + size, n_slices)


def log_sum(scores: FloatArray) -> FloatArray:
    """Return the log of the sum of exponentials over the first axis, the same on every CPU.

    Parameters
    ----------
    scores : ndarray of shape (n_slices, n_classes)
        Log-probabilities; at least one row.

    Returns
    -------
    ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.network.slices import log_sum
    >>> np.exp(log_sum(np.log([[0.25, 0.5], [0.5, 0.125]]))).round(3).tolist()
    [0.75, 0.625]
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

    Parameters
    ----------
    scores : ndarray of shape (n_slices, n_classes)
        Log-probabilities.
    total : ndarray of shape (n_classes,)
        Their sums, as :func:`log_sum` returns them, or their maxima.

    Returns
    -------
    ndarray of shape (n_slices, n_classes)
        0 where the total is -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.network.slices import posterior
    >>> posterior(np.log([[0.25], [0.75]]), np.zeros(1)).round(3).tolist()
    [[0.25], [0.75]]
    """
    # Rounding may leave a score above its total; the kernel takes exponents up to 0.
    exponent = np.minimum(scores - np.where(total > -np.inf, total, 0.0), 0.0)
    found = np.empty_like(exponent)
    exp_all(exponent.ravel(), found.ravel())
    return found
