"""Encoding and decoding by fitted categories and discretizers, and ranges and means of continuous columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.categories import CategoryIndex, decode, encode_categories, refuse_unseen
from tanlearn.encoding.cut_points import OtherFeatures
from tanlearn.encoding.discretize import CUT_POINT_DISCRETIZERS, discretize
from tanlearn.encoding.number_encoder import NumberEncoder
from tanlearn.encoding.strided_columns import StridedColumns, strided_columns
from tanlearn.kernels.encode import mean_of_states
from tanlearn.sources.table import Table

__all__ = ["ColumnEncoder", "category_codes", "mean_values", "value_ranges", "wider_ranges"]

#: Smallest and largest value of each column, or (nan, nan) without values, or None if unknown or categorical.
Ranges: TypeAlias = list[tuple[float, float] | None]


class ColumnEncoder:
    """Encoder of columns with categories, and of continuous columns with a fitted discretizer."""

    def __init__(
        self, categories: Sequence[AnyArray | None], discretizer: Any, has_missing_category: NDArray[np.bool_]
    ) -> None:
        self._discretizer = discretizer  # fitted to the columns without categories, or None without such columns
        self._has_missing_category = has_missing_category  # (n_features,) whether the last code is for missing values
        continuous = [i for i, known in enumerate(categories) if known is None]
        # (n_features,) numbers of categories or intervals, at least 1, including the category of missing values
        self.n_states: IntArray = np.array(
            [1 if known is None else max(len(known), 1) for known in categories], np.intp
        )
        if discretizer is not None:
            self.n_states[continuous] = discretizer.n_states_
        self.n_states += has_missing_category
        self._dtype = codes_dtype(int(self.n_states.max()))
        # Lookup tables for the categorical columns, with None for continuous columns
        self.indexes = [None if known is None else CategoryIndex(known, self._dtype) for known in categories]
        cuts: list[FloatArray | None] = [None] * len(categories)
        if type(discretizer) in CUT_POINT_DISCRETIZERS:
            for i, own in zip(continuous, discretizer.cut_points_, strict=True):
                cuts[i] = own
        self._numbers = NumberEncoder(self.indexes, cuts, self._dtype)

    @property
    def n_intervals(self) -> IntArray:
        """Numbers of intervals of continuous columns, and 0 for categorical columns. Shape: (n_features,)."""
        n_intervals = self.n_states - self._has_missing_category
        return np.where([index is None for index in self.indexes], n_intervals, 0)

    def encode(self, columns: Table, handle_unknown: str, n_jobs: int | None = None) -> Codes:
        """Return the codes (n_features, n_samples) of the columns, with the missing code for all missing values.

        ``handle_unknown`` ("missing" or "error") determines how unseen categories are treated.
        """
        codes: AnyArray = np.empty((len(columns), columns.n_samples), self._dtype)
        done = self._numbers.encode(columns, codes, n_jobs)
        if done.all() and handle_unknown == "missing":
            return codes
        for i, index in enumerate(self.indexes):
            if index is not None and not done[i]:
                codes[i] = encode_categories(columns[i], index, handle_unknown)
            elif index is not None and handle_unknown == "error":
                refuse_unseen(columns[i], codes[i], index)
        continuous = [i for i, index in enumerate(self.indexes) if index is None and not done[i]]
        if continuous and type(self._discretizer) not in CUT_POINT_DISCRETIZERS:
            found = discretize(self._discretizer, Table([columns[i] for i in continuous]))
            missing = found == missing_code(found.dtype)
            codes[continuous] = np.where(missing, codes.dtype.type(missing_code(codes.dtype)), found)
            return codes
        for i in continuous:  # for a column that is not numeric, raises an error unless all values are missing
            columns[i].numbers(were_numbers=True)
            codes[i] = missing_code(codes.dtype)
        return codes

    def mark_missing(self, columns: Table, codes: Codes) -> None:
        """Replace missing codes with the category of missing values, in place, in columns that have this category.

        Unseen categories keep the missing code. Shapes: codes: (n_features, n_samples).
        """
        for i in np.flatnonzero(self._has_missing_category).tolist():
            absent = codes[i] == missing_code(codes.dtype)
            if absent.any():
                codes[i, absent & ~columns[i].present] = self.n_states[i] - 1

    def decode(
        self, codes: AnyArray, missing: NDArray[np.bool_], typical_values: Sequence[FloatArray | None]
    ) -> AnyArray:
        """Return the categories, or the typical values of intervals, of feature-major codes; missing values are None.

        Codes of the category of missing values are also decoded to None. ``missing`` (n_features, n_samples) is a mask
        of missing codes. The result has shape (n_samples, n_features).
        """
        values: list[Any] = []
        for index, typical in zip(self.indexes, typical_values, strict=True):
            means = [] if typical is None else [None if np.isnan(value) else value for value in typical.tolist()]
            values.append(means if index is None else index.categories)
        return decode(codes, missing, self.n_states, values)


def category_codes(columns: Table, categories: Sequence[AnyArray | None], n_jobs: int | None) -> OtherFeatures | None:
    """Return the codes of the columns with categories, or None if there are no such columns."""
    chosen = [i for i, known in enumerate(categories) if known is not None]
    if not chosen:
        return None
    encoder = ColumnEncoder([categories[i] for i in chosen], None, np.zeros(len(chosen), np.bool_))
    return OtherFeatures(encoder.encode(Table([columns[i] for i in chosen]), "missing", n_jobs), encoder.n_states)


def value_ranges(columns: Table, chosen: list[int]) -> Ranges:
    """Return the smallest and the largest value of each chosen column, and None for all other columns.

    Zeros have no sign, as in summaries, because otherwise the order of the rows would decide between 0.0 and -0.0.
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
    """Return ranges extended by other ranges, or the same list if nothing changes. None does not extend a range."""
    wider = [
        own if own is None or other is None else (float(np.fmin(own[0], other[0])), float(np.fmax(own[1], other[1])))
        for own, other in zip(known, others, strict=True)
    ]
    return known if np.array_equal(_bounds(known), _bounds(wider), equal_nan=True) else wider


def _bounds(ranges: Ranges) -> FloatArray:
    """Return ranges as an array, with NaN where there is none."""
    return np.array([(np.nan, np.nan) if own is None else own for own in ranges])


def mean_values(
    columns: Table, codes: Codes, n_intervals: IntArray, sample_weight: AnyArray | None, n_jobs: int | None
) -> list[FloatArray | None]:
    """Return the weighted mean of the training values in each interval of each column, or NaN without values.

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
