"""Base class of discretizers by cut points.

The code of a value is the number of cut points below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.number_encoder import NumberEncoder
from tanlearn.sources.columns import read_columns
from tanlearn.sources.table import Column, Table
from tanlearn.sources.validation import zero_weight_rows

__all__ = ["CutPointDiscretizer", "OtherFeatures", "between", "quantile_cut_points"]


@dataclass(frozen=True, eq=False)
class OtherFeatures:
    """Codes of features that are not discretized. Codes from ``n_values`` on represent missing values."""

    codes: AnyArray  # (m, n_samples)
    n_values: IntArray  # (m,)

    def take(self, rows: AnyArray) -> OtherFeatures:
        """Return the codes of the given rows."""
        return OtherFeatures(self.codes[:, rows], self.n_values)


class CutPointDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of discretizers by cut points. Subclasses choose the cut points.

    Attributes
    ----------
    cut_points_ : list of ndarray of shape (n_states_[i] - 1,), float64
        Increasing cut points of every feature.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of intervals of every feature.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_jobs": [Integral, None]}
    n_jobs: int | None
    cut_points_: list[FloatArray]
    n_states_: IntArray

    @property
    def uses_classes(self) -> bool:
        """True if cut points depend on classes, so that each fold must fit its own cut points."""
        return True

    @property
    def uses_other_features(self) -> bool:
        """True if cut points of a feature depend on the other features of the table."""
        return False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the cut points of every feature.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Finite numbers. NaN, None and other null values mean missing.
        y : array-like of shape (n_samples,)
            Class labels, which are strings or numbers. :class:`~tanlearn.MDLPDiscretizer` uses them and needs at least
            two classes. :class:`~tanlearn.QuantileDiscretizer` ignores them unless ``mdl_points`` is set.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of 2 equals repeating the row, and a weight of 0 equals removing it. The scale of
            the weights matters for the criterion of minimum description length (MDL): a set of rows whose total weight
            is below 2 is never split. The scale does not matter for quantiles.

        Returns
        -------
        CutPointDiscretizer
            Fitted discretizer.

        Raises
        ------
        ValueError
            If X is empty or contains infinity, if weights are negative or all zero, or if the discretizer uses classes
            but y has missing labels or too few classes.
        TypeError
            If a column does not contain numbers.
        """
        self._validate_params()
        columns = read_columns(X, n_jobs=self.n_jobs, ignored=zero_weight_rows(sample_weight))
        validate_data(self, X, y, skip_check_array=True)
        return self.fit_columns(columns, list(range(len(columns))), y, sample_weight)

    def fit_columns(self, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None) -> Any:
        """Find the cut points of the chosen columns, which are the features of the discretizer in this order.

        Subclasses implement this method. ``y`` are class labels and ``sample_weight`` are sample weights, each of shape
        (n_samples,).
        """
        raise NotImplementedError(type(self).__name__)

    def restore(self, cut_points: list[FloatArray]) -> Any:
        """Set the fitted attributes from known cut points.

        Parameters
        ----------
        cut_points : list of ndarray, float64
            Increasing cut points of every feature.

        Returns
        -------
        CutPointDiscretizer
            The fitted discretizer itself.
        """
        self.n_features_in_ = len(cut_points)
        self.cut_points_ = cut_points
        self.n_states_ = np.array([len(cuts) + 1 for cuts in cut_points], dtype=np.intp)
        return self

    def transform(self, X: Any) -> Codes:
        """Encode each value as the number of its interval.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Finite numbers. NaN, None and other null values mean missing.

        Returns
        -------
        ndarray of shape (n_samples, n_features), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, with the largest value of the type for missing values, in Fortran order.

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, or contains infinity.
        TypeError
            If a column does not contain numbers.
        """
        check_is_fitted(self)
        columns = read_columns(X, n_jobs=self.n_jobs)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.transform_columns(columns).T

    def transform_columns(self, columns: Table) -> Codes:
        """Encode each value as the number of its interval, in columns that have been read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`, with the columns of ``fit`` only.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, with the largest value of the type for missing values.

        Raises
        ------
        TypeError
            If a column does not contain numbers.
        """
        codes: AnyArray = np.empty((len(columns), columns.n_samples), codes_dtype(int(self.n_states_.max())))
        done = NumberEncoder([None] * len(codes), self.cut_points_, codes.dtype.type).encode(
            columns, codes, self.n_jobs
        )
        for i in np.flatnonzero(~done):  # not numeric: raises an error unless all values are missing
            columns[i].numbers(were_numbers=True)
            codes[i] = missing_code(codes.dtype)
        return codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a cut point ``c`` with ``low <= c < high`` for every pair. Shape: (n_cut_points,).

    The cut point is the midpoint, or ``low`` if there is no floating-point number in between.
    """
    # The numbers are halved first, because the sum or difference of two large numbers may overflow.
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def quantile_cut_points(column: Column, weights: AnyArray | None, max_bins: int) -> FloatArray:
    """Return the cut points between quantiles of a column, at most ``max_bins - 1``.

    All rows are used. Sorting a million rows takes 0.1 s, and taking every n-th row would be biased for periodic data.
    """
    x = column.numbers().astype(np.float64, copy=False)
    if column.missing is not None:
        x, weights = x[~column.missing], None if weights is None else weights[~column.missing]
    if weights is None:
        values, of_values = np.unique(x, return_counts=True)
    else:
        values, position = np.unique(x[weights > 0], return_inverse=True)
        of_values = np.bincount(position, weights[weights > 0])
    if len(values) <= max_bins:
        return between(values[:-1], values[1:])
    reached = np.cumsum(of_values)
    # A cut point lies after the first value that reaches a quantile, but before the last value. Duplicates are merged.
    after = np.searchsorted(reached, reached[-1] * np.arange(1, max_bins) / max_bins)
    after = np.unique(np.minimum(after, len(values) - 2))
    return between(values[after], values[after + 1])
