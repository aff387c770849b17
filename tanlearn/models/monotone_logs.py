"""Log probabilities of contexts with monotone log odds of two classes, rounded so that sums are exact.

The probabilities come from ``kernels/monotone_contexts.py``, and their logarithms are rounded to multiples of a step.
Rounding keeps equal log odds equal, and never reverses their order.
"""

from __future__ import annotations

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.kernels.mathematics import log_all
from tanlearn.kernels.monotone_contexts import smooth_rising

__all__ = ["monotone_logs"]

#: Bits of the largest log probability if no step is given. float32 represents such multiples exactly.
_BITS = 23


def monotone_logs(
    counts: FloatArray, above: IntArray, m: float, n_ranked: int, direction: int, step: float | None = None
) -> FloatArray:
    """Return log P(value | class) of contexts, smoothed toward the context above with ``m`` pseudo-counts.

    The log odds of the first ``n_ranked`` values rise, or fall if ``direction`` is -1. ``above`` is -1 for a root,
    which is smoothed toward equally likely values. All numbers are multiples of ``step``, by default the smallest power
    of two for which float32 represents them. Pseudo-counts are added to ``counts`` in place, which makes them positive.

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
