"""Orderings of features by their information about the class (order-based 2008, section 4.1)."""

from __future__ import annotations

import numpy as np

from tanlearn._threads import in_threads, number_of_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.counts.rounded_information import round_information
from tanlearn.encoding.encoded_data import EncodedData, name_order
from tanlearn.kernels.counts import conditional_mutual_information
from tanlearn.kernels.partition import class_entropies

__all__ = ["all_parents_ordering", "single_parent_ordering"]


def all_parents_ordering(data: EncodedData, *, n_jobs: int | None = None) -> IntArray:
    """Order the features greedily by I(C; X | all features before) (eq. 5); requires complete rows.

    Rows that agree on all features chosen so far form a group, and only the class entropy within groups is needed. The
    rows of a group with a single class are dropped, because they contribute nothing to later steps. When no rows are
    left, the chosen features determine the class, and the remaining features are ordered by restarting with all rows.

    Ties are broken by name, or, without names, by index. The result does not depend on ``n_jobs``.
    """
    data.require_complete("An ordering by all parents")
    weights = data.weights.astype(np.float64)
    total = float(weights.sum())
    remaining = data.by_name
    samples, group = _ungrouped(data)
    ordering = []
    while len(remaining):
        start = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))

        def entropies(features: IntArray, samples: IntArray = samples, start: IntArray = start) -> FloatArray:
            n_values = int(data.n_states[features].max())
            counts, totals = np.zeros((n_values, data.n_classes)), np.zeros(n_values)
            entropy = np.empty(len(features))
            class_entropies(data.codes, samples, start, data.y, weights, total, features, counts, totals, entropy)
            return entropy

        n_threads = min(number_of_threads(n_jobs), len(remaining))
        parts = in_threads(entropies, np.array_split(remaining, n_threads), n_threads)
        best = int(round_information(np.concatenate(parts)).argmin())
        ordering.append(remaining[best])
        samples, group = _refine(data, samples, group, data.codes[remaining[best]])
        remaining = np.delete(remaining, best)
        if not len(samples):
            samples, group = _ungrouped(data)
    return np.array(ordering, dtype=np.intp)


def single_parent_ordering(state: PairCounts) -> IntArray:
    """Order the features greedily by the largest I(C; X | one feature before) (eq. 6), from pair counts.

    Ties are broken by name, or, without names, by index.
    """
    d, order = state.n_features, name_order(state.names, state.n_features)
    alone = round_information(state.mutual_information())[order]
    given = np.full((d, d), -np.inf)  # I(C; X_i | X_j) in row i, column j
    for i in range(d):
        for j in range(i):
            table = state.pair(i, j)
            given[i, j], given[j, i] = _information(table), _information(table.swapaxes(0, 1))
    given = round_information(given)[np.ix_(order, order)]
    ordering = [int(alone.argmax())]
    best = given[:, ordering[0]].copy()
    for _ in range(d - 1):
        best[ordering] = -np.inf
        ordering.append(int(best.argmax()))
        best = np.maximum(best, given[:, ordering[-1]])
    return order[ordering]


def _information(table: AnyArray) -> float:
    """Return I(C; X | Z) in nats of counts laid out as [x][z][class]."""
    n_values, n_given, n_classes = table.shape
    counts = np.ascontiguousarray(table.swapaxes(1, 2)).ravel()
    margins = np.empty((n_values + n_classes + 1) * n_given, table.dtype)
    return conditional_mutual_information(counts, n_values, n_classes, n_given, margins)


def _ungrouped(data: EncodedData) -> tuple[IntArray, IntArray]:
    """Return the indices of all rows with positive weight, as one group."""
    samples = np.flatnonzero(data.weights)
    return samples, np.zeros(len(samples), dtype=np.intp)


def _refine(data: EncodedData, samples: IntArray, group: IntArray, x: IntArray) -> tuple[IntArray, IntArray]:
    """Split the groups of rows by the values of a feature, and drop groups of a single class."""
    key = group * (int(x.max()) + 1) + x[samples]
    order = np.argsort(key, kind="stable")
    samples, (_, group) = samples[order], np.unique(key[order], return_inverse=True)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    is_mixed = np.maximum.reduceat(data.y[samples], first) != np.minimum.reduceat(data.y[samples], first)
    keep = is_mixed[group]
    return samples[keep], group[keep]
