"""Values in new rows that differ from all training values: unseen categories and out-of-range numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.sources.table import Table

if TYPE_CHECKING:
    from tanlearn.encoding.table_encoder import TableEncoder

__all__ = ["Novelty", "find_novelty"]

#: Ratio of the range to the standard deviation of a uniform distribution.
_RANGE_PER_DEVIATION = np.sqrt(12.0)


class Novelty(NamedTuple):
    """Unseen categories and out-of-range numbers in rows."""

    is_unseen: AnyArray  # (n_features, n_samples) True if a value is present but did not occur in training
    # (n_samples,) log density of out-of-range numbers relative to the density at the mean of the outermost interval,
    # summed over the columns
    log_density: FloatArray


def find_novelty(encoder: TableEncoder, columns: Table, codes: Codes) -> Novelty:
    """Find the values in new rows that did not occur in the training rows of an encoder.

    ``codes`` (n_features, n_samples) are the codes of the rows. If ranges are unknown, as in networks from other
    programs, no number is out of range.
    """
    is_unseen = codes == missing_code(codes.dtype)
    log_density = np.zeros(codes.shape[1])
    for i, bounds in enumerate(encoder.value_ranges_):
        if is_unseen[i].any():
            is_unseen[i] &= columns[i].present
        if bounds is None or encoder.is_discrete_[i]:
            continue
        low, high = (float(bound) for bound in bounds)
        values = np.asarray(columns[i].numbers(), np.float64)
        is_below, is_above = values < low, values > high
        if low < high:
            lowest, highest = _tails(encoder, i, low, high)
            with np.errstate(over="ignore"):  # an infinite distance is valid
                log_density[is_below] -= (lowest.mean - values[is_below]) / lowest.scale
                log_density[is_above] -= (values[is_above] - highest.mean) / highest.scale
        else:  # in a constant or empty column, any other number counts as an unseen category
            is_unseen[i] |= is_below | is_above | (np.isnan(low) & ~np.isnan(values))
    return Novelty(is_unseen, log_density)


class _Tail(NamedTuple):
    """Exponential density of the numbers in an outermost interval."""

    mean: float
    scale: float


def _tails(encoder: TableEncoder, i: int, low: float, high: float) -> tuple[_Tail, _Tail]:
    """Return the lower and upper tail of a continuous column with at least two distinct values.

    The exponential density starts at the cut point, and its scale is the mean distance from it. A column with a single
    interval has the mean and standard deviation of a uniform distribution over the training range instead.
    """
    deviation = high / _RANGE_PER_DEVIATION - low / _RANGE_PER_DEVIATION
    tails = [_Tail(low / 2 + high / 2, deviation)] * 2
    typical = encoder.typical_values_[i]
    cut_points = getattr(encoder.discretizer_, "cut_points_", None)
    own: AnyArray = np.empty(0) if cut_points is None else cut_points[int(np.count_nonzero(~encoder.is_discrete_[:i]))]
    if typical is not None and len(own):
        for side, (mean, cut, sign) in enumerate(((typical[0], own[0], -1), (typical[-1], own[-1], 1))):
            scale = sign * (float(mean) - float(cut))
            if scale > 0:  # the scale is 0 or NaN if the interval has no values, or only its cut point
                tails[side] = _Tail(float(mean), scale)
    return tails[0], tails[1]
