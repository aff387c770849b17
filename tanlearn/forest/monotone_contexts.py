"""Context tries of a family, smoothed so that the log odds are monotone in every context.

Let D_j(x) = log P_j(x | 1) / P_j(x | 0) be the log odds of a value in a context of level j, up to a constant. A forest
adds sum_j w_j (D_j - D_j-1) of the contexts of a row. By summation by parts, this is

    sum_j (w_j - w_j+1) D_j,   w_k+1 = 0 for the last context, of level k.

This sum is monotone in x if all D_j are monotone and w_0 >= w_1 >= ... >= 0. The contexts are the same for all x,
because the feature is not its own parent. If the feature has no children, no other family depends on it. The log odds
of a network are then monotone, and so are the log odds of a sum of networks. An average of monotone probabilities is
monotone, too, and label noise is an increasing function of the probability.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.counts.context_tries import CountedContexts, as_index
from tanlearn.kernels.context_trie import ContextTrie
from tanlearn.models.monotone_logs import monotone_logs

__all__ = ["MonotoneFamilies", "monotone_gains", "nonincreasing"]


class MonotoneFamilies(NamedTuple):
    """Families of a network that have monotone log odds of two classes."""

    directions: IntArray  # (n_features,) 1 rising, -1 falling, 0 free
    n_ranked: IntArray  # (n_features,) number of ordered values, which come before the unordered ones


def monotone_gains(
    contexts: CountedContexts, n_values: int, n_ranked: int, direction: int, smoothing: float
) -> tuple[ContextTrie, AnyArray, AnyArray]:
    """Return the trie of one family, its gains and its unseen gains. All contexts have all values and both classes.

    Gains are multiples of a power of two that float32 represents exactly. Their sums over levels are therefore exact.

    Shapes: gain: (n_contexts * n_values * 2,) float32; unseen: (n_contexts * 2,) float32, without meaning.
    """
    trie, n_contexts = contexts.trie, len(contexts.trie.branch)
    of_values = np.repeat(np.arange(n_contexts), np.diff(trie.value_start))
    in_values = np.diff(trie.entry_start)
    counts = np.zeros((n_contexts, n_values, 2))
    counts[np.repeat(of_values, in_values), np.repeat(trie.values, in_values), trie.entry_class] = contexts.counts
    above = np.searchsorted(trie.children, np.arange(n_contexts), side="right") - 1
    log_p = monotone_logs(counts, above, smoothing, n_ranked, direction)
    gain = log_p - np.where(above[:, np.newaxis, np.newaxis] >= 0, log_p[above], 0.0)
    numbers = np.arange(n_contexts + 1)
    whole = trie._replace(
        class_start=as_index(2 * numbers),
        classes=np.tile(np.arange(2, dtype=np.uint16), n_contexts),
        value_start=as_index(n_values * numbers),
        values=np.tile(np.arange(n_values, dtype=np.uint16), n_contexts),
        entry_start=as_index(2 * np.arange(n_contexts * n_values + 1)),
    )
    return whole, gain.astype(np.float32).ravel(), np.zeros(2 * n_contexts, np.float32)


def nonincreasing(weights: FloatArray) -> FloatArray:
    """Return the closest weights of levels (n_levels,) that are nonnegative and nonincreasing."""
    from sklearn.isotonic import isotonic_regression

    found: FloatArray = isotonic_regression(weights, increasing=False, y_min=0.0)
    return found
