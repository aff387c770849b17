"""Forests with weighted gains that are few-bit integers times a power of two."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.counts.context_tries import level_starts
from tanlearn.forest.context_tables import ContextTables
from tanlearn.forest.forest import Forest
from tanlearn.models.rounded_terms import check_terms_bits

__all__ = ["RoundedForest", "round_forest"]


class RoundedForest(NamedTuple):
    """Forest whose class scores are multiples of a step, before label noise; all weights are 1."""

    forest: Forest
    step: float  # a power of two


def round_forest(forest: Forest, bits: int) -> RoundedForest:
    """Round the weighted gains to signed integers of some bits, in steps of the smallest possible power of two.

    Raises ValueError if ``bits`` is outside of 2 to 16, or if the forest averages probabilities.
    """
    check_terms_bits(bits)
    if forest.is_average:
        raise ValueError(
            "the forest averages probabilities, which integers cannot represent. Fit it with weights='auto'."
        )
    pairs = [_weighted(network.tables, weight) for network, weight in zip(forest.members, forest.weights, strict=True)]
    largest = max(float(np.abs(own).max(initial=0.0)) for pair in pairs for own in pair)
    most = 2 ** (bits - 1) - 1
    step = 2.0**-20
    while np.rint(largest / step) > most:
        step *= 2.0
    members = []
    for network, (gain, unseen) in zip(forest.members, pairs, strict=True):
        tables = replace(network.tables, gain=_rounded(gain, step), unseen=_rounded(unseen, step))
        members.append(replace(network, tables=tables))
    prior = step * np.rint((forest.log_prior - forest.log_prior.max()) / step)
    return RoundedForest(replace(forest, members=members, weights=np.ones_like(forest.weights), log_prior=prior), step)


def _rounded(gain: AnyArray, step: float) -> AnyArray:
    """Round gains to multiples of a step, which float32 represents exactly."""
    rounded: AnyArray = (step * np.rint(gain / step)).astype(np.float32)
    return rounded


def _weighted(tables: ContextTables, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gains of seen and unseen values of a network, times the weights (n_features, n_levels)."""
    trie = tables.trie
    of_contexts = np.empty(len(trie.branch))
    for family, (root, stop) in enumerate(pairwise([*tables.root.tolist(), len(trie.branch)])):
        starts = level_starts(trie.children, root, stop, tables.n_levels)
        for level, (first, last) in enumerate(pairwise(starts)):
            of_contexts[first:last] = weight[family, level]
    of_values = np.repeat(of_contexts, np.diff(trie.value_start))
    gain: FloatArray = tables.gain * np.repeat(of_values, np.diff(trie.entry_start))
    unseen: FloatArray = tables.unseen * np.repeat(of_contexts, np.diff(trie.class_start))
    return gain, unseen
