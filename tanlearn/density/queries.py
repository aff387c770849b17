"""Joint probabilities of several features given values of other features, evaluated for each combination of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tanlearn._typing import Codes, FloatArray
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.log_joint import log_evidence

__all__ = ["MOST_COMBINATIONS", "joint_probabilities"]

#: Maximum number of combinations of values in a query. The dictionary then takes about 20 MB.
MOST_COMBINATIONS = 100_000
#: Codes per block of combinations, which take 8 to 16 MB.
_BLOCK_CODES = 2**23


def joint_probabilities(
    network: BayesNet, codes: Codes, features: Sequence[int], *, n_jobs: int | None = None
) -> FloatArray:
    """Return p(values of the features | observed values) for all combinations; the last feature varies fastest.

    ``codes`` is one row, (n_features, 1), in which the features are missing. Raises ValueError if there are more than
    ``MOST_COMBINATIONS`` combinations.
    """
    shape = tuple(network.tables.layout.n_states[list(features)].tolist())
    n = math.prod(shape)
    if n > MOST_COMBINATIONS:
        raise ValueError(
            f"a query returns at most {MOST_COMBINATIONS:,} probabilities, but the columns have {n:,} combinations "
            f"of values ({' x '.join(map(str, shape))}). Query fewer columns at a time, use an encoder with fewer "
            f"intervals, or count rows of sample()."
        )
    logs = np.empty(n)
    n_rows = max(1, _BLOCK_CODES // len(codes))
    for first in range(0, n, n_rows):
        last = min(first + n_rows, n)
        block = np.tile(codes, last - first)
        block[list(features)] = np.unravel_index(np.arange(first, last), shape)
        logs[first:last] = log_evidence(network.log_joint(block, n_jobs=n_jobs))
    p: FloatArray = np.exp(logs - np.logaddexp.reduce(logs))
    return p
