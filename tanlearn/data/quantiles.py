"""Unsupervised discretization at quantiles, fine enough for learners that merge intervals themselves."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.cuts import CutDiscretizer, between
from tanlearn.data.table import Column, Table
from tanlearn.data.validation import read_weights

__all__ = ["QuantileDiscretizer"]


class QuantileDiscretizer(CutDiscretizer):
    """Discretize every feature into intervals with about equally many rows.

    A feature with at most ``max_bins`` distinct values gets one interval per value. A cut point lies midway between two
    adjacent training values, and a value equal to a cut point belongs to the lower interval. Every feature with at
    least two distinct values has a cut point. Missing values are ignored in ``fit`` and remain missing in
    ``transform``. Classes are not used.

    Parameters
    ----------
    max_bins : int, default=1024
        Largest number of intervals of a feature, from 2 to 65,535.
    n_jobs : int, optional
        Number of threads, over features in ``fit`` and over rows in ``transform`` (``None`` is 1, -1 all cores). The
        result does not depend on it.

    Attributes
    ----------
    cut_points_ : list of ndarray of shape (n_states_[i] - 1,), float64
        Increasing cut points of every feature.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of intervals of every feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Set only if X has column names.

    Examples
    --------
    >>> from tanlearn import QuantileDiscretizer
    >>> X = [[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]]
    >>> QuantileDiscretizer(max_bins=3).fit(X, [0, 1, 0, 1, 0, 1]).cut_points_
    [array([ 2.5, 10.5])]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CutDiscretizer._parameter_constraints,
        "max_bins": [Interval(Integral, 2, 2**16 - 1, closed="both")],
    }

    uses_classes: ClassVar[bool] = False

    def __init__(self, *, max_bins: int = 1024, n_jobs: int | None = None) -> None:
        self.max_bins = max_bins
        self.n_jobs = n_jobs

    def fit_columns(self, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None) -> QuantileDiscretizer:
        """Find the cut points of columns that are already read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.data.columns.read_columns`.
        chosen : list of int
            Column numbers; these columns become the features in this order.
        y : array-like of shape (n_samples,)
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. Rows of weight 0 are ignored.

        Returns
        -------
        QuantileDiscretizer
            Fitted discretizer.

        Raises
        ------
        ValueError
            If a column contains infinity, or weights are negative or all zero.
        TypeError
            If a column does not contain numbers.
        """
        weights = read_weights(sample_weight, columns.n_samples)

        def cut(number: int) -> FloatArray:
            return _cut_points(columns[number], weights, self.max_bins)

        self.restore(in_threads(cut, chosen, self.n_jobs))
        return self


def _cut_points(column: Column, weights: AnyArray | None, max_bins: int) -> FloatArray:
    """Return the cut points of one feature.

    All rows are used: sorting a million takes 0.1 s, and every n-th row would be biased for data with a period.
    """
    x = column.numbers().astype(np.float64, copy=False)
    if column.missing is not None:
        x, weights = x[~column.missing], None if weights is None else weights[~column.missing]
    if weights is None:
        values, of_values = np.unique(x, return_counts=True)
    else:
        values, place = np.unique(x[weights > 0], return_inverse=True)
        of_values = np.bincount(place, weights[weights > 0])
    if len(values) <= max_bins:
        return between(values[:-1], values[1:])
    reached = np.cumsum(of_values)
    # A cut point lies after the first value that reaches a quantile, but before the last value; duplicates are merged.
    after = np.searchsorted(reached, reached[-1] * np.arange(1, max_bins) / max_bins)
    after = np.unique(np.minimum(after, len(values) - 2))
    return between(values[after], values[after + 1])
