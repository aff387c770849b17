"""Counts of all pairs of features on CUDA."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, missing_code
from tanlearn.kernels._cuda import to_device
from tanlearn.kernels.cuda import twins

__all__ = ["add_pair_counts"]


def add_pair_counts(
    codes: Codes,
    y: IntArray,
    weights: AnyArray,
    n_states: IntArray,
    n_classes: int,
    pair_offset: IntArray,
    counts: AnyArray,
) -> AnyArray:
    """Return the counts with those of a batch added to them, sample by sample.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_samples), uint8 or uint16
        A sample counts for the pairs of which it misses neither.
    y : ndarray of shape (n_samples,)
        Class codes.
    weights : ndarray of shape (n_samples,), int64 or float64
        Of the type of ``counts``. Real weights are added in the order of the rows.
    n_states : ndarray of shape (n_features,)
        Number of values of every feature.
    n_classes : int
        Number of classes.
    pair_offset : ndarray of shape (n_features * (n_features - 1) / 2 + 1,)
        Where the counts of pair (i, j < i), number i (i - 1) / 2 + j, begin.
    counts : ndarray of shape (pair_offset[-1],)
        Counts so far; left as they are.

    Returns
    -------
    ndarray of shape (pair_offset[-1],)
    """
    arrays = to_device(codes, y, weights, np.arange(len(n_states)), n_states, pair_offset, counts)
    cuda_codes, cuda_y, cuda_weights, features, cuda_states, offset, total = arrays
    samples = cuda_codes, cuda_y, cuda_weights
    for i in range(1, len(n_states)):
        tables = features[:i], cuda_states, n_classes, offset
        twins.count_pairs(*samples, i, *tables, missing_code(codes.dtype), total)
    added: AnyArray = total.get()
    return added
