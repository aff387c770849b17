"""Statistics of continuous columns in training: value ranges and means of intervals."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.encoding.strided_columns import StridedColumns, strided_columns
from tanlearn.kernels.encode import mean_of_states
from tanlearn.sources.table import Table

__all__ = ["mean_values", "value_ranges", "wider_ranges"]

#: Smallest and largest value of each column, (nan, nan) without values; None for categorical columns and if unknown.
Ranges: TypeAlias = list[tuple[float, float] | None]


def value_ranges(columns: Table, chosen: list[int]) -> Ranges:
    """Return the smallest and largest value of the chosen columns, and None for the others.

    Zeros have no sign, as in summaries, because the order of rows would decide between 0.0 and -0.0.
    """
    found: Ranges = [None] * len(columns)
    # fmin and fmax skip NaN, and return it only if there is no other value.
    if columns.matrix is not None:  # one reduction over rows is faster than one per column
        low, high = (extreme.reduce(columns.matrix, axis=0).tolist() for extreme in (np.fmin, np.fmax))
        for i in chosen:
            found[i] = float(low[i]) + 0.0, float(high[i]) + 0.0
        return found
    for i in chosen:
        values = columns[i].numbers()
        found[i] = float(np.fmin.reduce(values)) + 0.0, float(np.fmax.reduce(values)) + 0.0
    return found


def wider_ranges(known: Ranges, others: Ranges) -> Ranges:
    """Return the known ranges, each extended by another range unless that is None; the same list if none is wider."""
    wider = [
        own if own is None or other is None else (float(np.fmin(own[0], other[0])), float(np.fmax(own[1], other[1])))
        for own, other in zip(known, others, strict=True)
    ]
    return known if np.array_equal(_bounds(known), _bounds(wider), equal_nan=True) else wider


def _bounds(ranges: Ranges) -> FloatArray:
    """Return ranges as an array, NaN where there is none."""
    return np.array([(np.nan, np.nan) if own is None else own for own in ranges])


def mean_values(
    columns: Table, codes: Codes, n_intervals: IntArray, sample_weight: AnyArray | None, n_jobs: int | None
) -> list[FloatArray | None]:
    """Return the weighted mean of the training values in each interval of each column, NaN without values.

    ``n_intervals`` (n_features,) is 0 for categorical columns, whose means are None. Shapes: codes: (n_features,
    n_samples).
    """
    weights = np.ones(columns.n_samples) if sample_weight is None else sample_weight.astype(np.float64, copy=False)
    unseen = missing_code(codes.dtype)
    means: list[FloatArray | None] = [None if n == 0 else np.full(n, np.nan) for n in n_intervals.tolist()]

    def average(where: tuple[StridedColumns, int]) -> None:
        view, k = where
        i = view.columns[k]
        total, mean = np.zeros(n_intervals[i]), np.zeros(n_intervals[i])
        mean_of_states(*view[:3], k, codes[i], weights, unseen, total, mean)
        means[i] = np.where(total > 0, mean, np.nan)

    views = [(view, k) for view in strided_columns(columns) for k in range(len(view.columns))]
    in_threads(average, [(view, k) for view, k in views if n_intervals[view.columns[k]] > 0], n_jobs)
    return means
