"""Counts with noise, and the number of counts that one row changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.counts.pair_counts import PairCounts

__all__ = ["add_noise", "n_changed_counts"]

#: Largest count after noise, so that sums of counts cannot overflow.
_LARGEST = 2**50


def n_changed_counts(counts: Any) -> int:
    """Return the largest number of counts that one row changes, each by 1.

    A row belongs to one class. It is counted at most once for each family, or for each feature and each pair, and is
    not counted if a value is missing. The result is the L1 sensitivity and the squared L2 sensitivity for adding or
    removing a row.
    """
    if isinstance(counts, PairCounts):
        return 1 + counts.n_features + counts.n_features * (counts.n_features - 1) // 2
    return 1 + int(counts.layout.n_tables)


def add_noise(counts: Any, draw: Callable[[], int]) -> Any:
    """Return a copy of counts in which noise from ``draw`` is added to every count. Negative counts are replaced by 0.

    Class counts are raised to at least 1, because classifiers need rows of every class. Learners divide the counts of
    each table by the sum of that table, so the sums of different tables need not agree.
    """
    noisy = {name: _noisy(array, draw) for name, array in counts.arrays().items()}
    noisy["cells"][: counts.n_classes] = np.maximum(noisy["cells"][: counts.n_classes], 1)
    if isinstance(counts, PairCounts):
        return PairCounts.from_state(noisy, counts.n_states, counts.n_classes)
    found = FamilyCounts(counts.layout)
    found.cells = noisy["cells"]
    return found


def _noisy(counts: AnyArray, draw: Callable[[], int]) -> IntArray:
    """Return counts with noise, clipped to the range from 0 to the largest count. The noise may exceed 64 bits."""
    sums = [min(max(count + draw(), 0), _LARGEST) for count in counts.tolist()]
    return np.array(sums, np.int64)
