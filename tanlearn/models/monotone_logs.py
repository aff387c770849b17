"""Log probabilities of contexts with monotone log odds of two classes, in multiples of a step, so that sums are exact.

The probabilities are those of ``kernels/monotone_contexts.py``. Log odds that are equal, or in order, before rounding
are so after rounding.
"""

from __future__ import annotations

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.kernels.mathematics import log_all
from tanlearn.kernels.monotone_contexts import smooth_rising

__all__ = ["monotone_logs"]

#: Bits of the largest log probability if the step is open; float32 represents such multiples exactly.
_BITS = 23


def monotone_logs(
    counts: FloatArray, above: IntArray, m: float, n_ranked: int, direction: int, step: float | None = None
) -> FloatArray:
    """Return log P(value | class) of contexts, smoothed with ``m`` rows from the context above each.

    The log odds of the first ``n_ranked`` values rise, or fall if ``direction`` is -1. ``above`` is -1 for a root,
    whose values are equally likely above. All numbers are multiples of ``step``, by default the smallest power of two
    with which float32 represents them. The counts get pseudo-counts, and are positive then.

    Shapes: counts: (n_contexts, n_values, 2), above: (n_contexts,); result: (n_contexts, n_values, 2).
    """
    n_contexts, n_values, _ = counts.shape
    p, odds = np.empty(counts.shape), np.empty((n_contexts, n_values))
    scratch = np.empty((n_values, 2)), np.empty(n_values, np.intp)
    smooth_rising(above, m, n_ranked, direction < 0, counts, *scratch, p, odds)
    log_p, log_odds, log_totals = (_logs(values) for values in (p, odds, counts.sum(axis=1)))
    ranked = log_odds[:, :n_ranked][:, ::direction]
    ranked[:] = np.maximum.accumulate(ranked, axis=1)  # rounding errors of almost equal pools
    if step is None:
        step = float(np.exp2(np.frexp(np.abs(log_p).max())[1] - _BITS))
    zero, log_odds = (step * np.rint(values / step) for values in (log_p[:, :, 0], log_odds))
    shift = step * np.rint((log_totals[:, :1] - log_totals[:, 1:]) / step)
    return np.stack([zero, zero + log_odds + shift], axis=2)


def _logs(values: FloatArray) -> FloatArray:
    """Return the logarithms of positive numbers, with equal bits on every CPU."""
    found = np.empty(values.shape)
    log_all(np.ascontiguousarray(values).ravel(), found.ravel())
    return found
