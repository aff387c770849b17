"""Groups of values, from coarse to fine, and scores of ordered values, for CPTs that are sums of terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tanlearn._typing import FloatArray, IntArray

__all__ = ["group_scores", "group_values", "nested_groups", "normal_scores", "with_own_group"]

#: Minimum distance of ranks from 0 and 1. The score of a rare extreme value is then at most 3.1.
_MARGIN = 1e-3
_NOTHING = 1e-300


def group_values(weights: FloatArray, n_groups: int, *, is_ordered: bool) -> IntArray:
    """Return the group (n_values,) of each value. Groups are numbered from 0 and are not empty.

    Ordered values are divided into at most ``n_groups`` groups of adjacent values of about equal weight. The groups for
    ``n_groups`` are unions of the groups for ``2 * n_groups``. If values are unordered, each of the ``n_groups - 1``
    most frequent values is a separate group, and the last group contains all other values. Among equally frequent
    values, the lower code comes first.

    Shapes: weights: (n_values,), the total weight of the rows that have each value.
    """
    n_values = len(weights)
    if n_values <= n_groups:
        return np.arange(n_values)
    if is_ordered:
        group = np.minimum((_middle_ranks(weights) * n_groups).astype(np.intp), n_groups - 1)
        found: IntArray = np.unique(group, return_inverse=True)[1]
        return found
    group = np.full(n_values, n_groups - 1)
    group[np.sort(np.argsort(-weights, kind="stable")[: n_groups - 1])] = np.arange(n_groups - 1)
    return group


def nested_groups(weights: FloatArray, sizes: Sequence[int], *, is_ordered: bool) -> list[IntArray]:
    """Return the distinct divisions into several groups, from coarse to fine.

    Shapes: weights: (n_values,); each division: (n_values,).
    """
    found: list[IntArray] = []
    for size in sizes:
        group = group_values(weights, size, is_ordered=is_ordered)
        if group.max() > (found[-1].max() if found else 0):
            found.append(group)
    return found


def with_own_group(divisions: Sequence[IntArray], n_values: int) -> list[IntArray]:
    """Add a value to divisions of ``n_values`` values, as a separate group in each division.

    If there are no divisions, the other values form one group.

    Shapes: each division: (n_values,); each result: (n_values + 1,).
    """
    known = divisions or [np.zeros(n_values, np.intp)]
    return [np.append(division, division.max() + 1) for division in known]


def normal_scores(weights: FloatArray) -> FloatArray:
    """Return the normal scores of ordered values, which are standardized normal quantiles of their middle ranks.

    The scores have mean 0 and variance 1. They depend only on the order of the values, so they do not change if a
    column is transformed monotonically.

    Shapes: weights, result: (n_values,).
    """
    from scipy.special import ndtri

    return _standardized(ndtri(np.clip(_middle_ranks(weights), _MARGIN, 1 - _MARGIN)), weights)


def group_scores(weights: FloatArray, groups: IntArray) -> FloatArray:
    """Return the mean normal scores (n_groups,) of groups of ordered values, standardized over the groups."""
    of_group = np.bincount(groups, weights).astype(np.float64)
    means = np.bincount(groups, weights * normal_scores(weights)) / np.maximum(of_group, _NOTHING)
    return _standardized(means, of_group)


def _middle_ranks(weights: FloatArray) -> FloatArray:
    """Return, for each value, the fraction of the weight before it plus half of its own weight."""
    total = weights.sum()
    if total <= 0:
        return (np.arange(len(weights)) + 0.5) / len(weights)
    ranks: FloatArray = (np.cumsum(weights) - weights / 2) / total
    return ranks


def _standardized(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Shift and scale scores to weighted mean 0 and variance 1. Constant scores become 0."""
    total = max(float(weights.sum()), _NOTHING)
    centered = scores - (weights * scores).sum() / total
    deviation = float(np.sqrt((weights * centered**2).sum() / total))
    result: FloatArray = centered / deviation if deviation > 1e-9 else np.zeros_like(centered)
    return result
