"""Supervised discretisation of continuous features by class entropy and the MDL principle."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.data.columns import Column, read_columns
from tanlearn.data.validation import read_classes, read_weights
from tanlearn.kernels.discretize import collapse, mdlp_cuts

__all__ = ["MDLPDiscretizer"]


class MDLPDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Discretise every feature where that tells the classes apart (Fayyad and Irani, 1993).

    A feature's values are cut in two where the class entropy of the two parts, E(A, T; S), is least, and the
    parts again, as long as the information gain exceeds what a cut costs to describe (MDLPC criterion)::

        Gain > log2(N - 1) / N + (log2(3^k - 2) - [k H(S) - k1 H(S1) - k2 H(S2)]) / N

    with N rows and k classes in the set S, and k1, k2 classes in the parts S1, S2. Among cuts of equal
    entropy the lowest wins. A cut lies midway between two neighbouring training values, and a value equal to
    a cut belongs to the left. A feature without an accepted cut has one state. Missing values are left out
    when a feature is fitted, and stay missing.

    Parameters
    ----------
    n_jobs : int, optional
        Threads over features (``None`` is 1, -1 all cores). The result does not depend on it.

    Attributes
    ----------
    cut_points_ : list of ndarray of shape (n_states_[i] - 1,), float64
        Increasing cuts of every feature.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of intervals of every feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the table had names.

    References
    ----------
    U. Fayyad and K. Irani, "Multi-interval discretization of continuous-valued attributes for classification
    learning", IJCAI 1993, 1022-1027.

    Examples
    --------
    >>> from tanlearn.data.discretize import MDLPDiscretizer
    >>> X = [[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]]
    >>> discretizer = MDLPDiscretizer().fit(X, [0, 0, 0, 1, 1, 1])
    >>> discretizer.cut_points_
    [array([6.5])]
    >>> discretizer.transform([[6.5], [7.0], [float("nan")]]).T
    array([[  0,   1, 255]], dtype=uint8)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_jobs": [Integral, None]}

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MDLPDiscretizer:
        """Find the cuts.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Finite numbers; NaN, None and the like mean missing.
        y : array-like of shape (n_samples,)
            Classes, at least two.
        sample_weight : array-like of shape (n_samples,), optional
            Numbers of repetitions: weight 2 is the row twice, weight 0 its absence. They have a scale, as the
            MDL principle weighs rows against a description: a set of total weight below 2 is never cut.

        Returns
        -------
        MDLPDiscretizer
            Itself.

        Raises
        ------
        ValueError
            If X is empty or infinite somewhere, y lacks a class, or the weights are negative or all zero.
        TypeError
            If a column does not hold numbers.
        """
        self._validate_params()
        columns = read_columns(X)
        validate_data(self, X, y, skip_check_array=True)
        n_samples = len(columns[0].values)
        weights = read_weights(sample_weight, n_samples)
        weights = np.ones(n_samples) if weights is None else weights.astype(np.float64)
        rows = weights > 0
        codes, classes = read_classes(y, n_samples, rows)
        weights = weights[rows]
        self.cut_points_ = in_threads(
            lambda column: _cut_points(column.take(rows), codes, weights, len(classes)), columns, self.n_jobs
        )
        self.n_states_: IntArray = np.array([len(cuts) + 1 for cuts in self.cut_points_], dtype=np.intp)
        return self

    def transform(self, X: Any) -> Codes:
        """Return the number of the interval that every value lies in.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Finite numbers; NaN, None and the like mean missing.

        Returns
        -------
        ndarray of shape (n_samples, n_features), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, or the largest value of the type for "missing"; in Fortran order.

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, or is infinite somewhere.
        TypeError
            If a column does not hold numbers.
        """
        check_is_fitted(self)
        columns = read_columns(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        dtype = codes_dtype(int(self.n_states_.max()))
        codes: AnyArray = np.empty((len(columns), len(columns[0].values)), dtype)
        for i, (column, cuts) in enumerate(zip(columns, self.cut_points_, strict=True)):
            codes[i] = np.searchsorted(cuts, column.numbers().astype(np.float64, copy=False), side="left")
            if column.missing is not None:
                codes[i, column.missing] = missing_code(dtype)
        return codes.T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _cut_points(column: Column, y: IntArray, weight: FloatArray, n_classes: int) -> FloatArray:
    """Return the cuts of one feature."""
    x: AnyArray = column.numbers().astype(np.float64, copy=False)
    if column.missing is not None:
        present = ~column.missing
        x, y, weight = x[present], y[present], weight[present]
    n = len(x)
    # Sums of real weights depend on the order of rows that are equal, and that of a fast sort on the CPU.
    order = np.argsort(x, kind=None if (weight == np.floor(weight)).all() else "stable")
    values, weights, slot = np.empty(n), np.empty(n), np.full(n_classes, -1, np.intp)
    start, classes = np.empty(n + 1, np.intp), np.empty(n, np.intp)
    n_values = collapse(x, y, weight, order, slot, values, start, classes, weights)
    is_cut = np.zeros(max(n_values - 1, 0), np.bool_)
    mdlp_cuts(start[: n_values + 1], classes, weights, n_classes, is_cut)
    return _between(values[: n_values - 1][is_cut], values[1:n_values][is_cut])


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a cut, low <= cut < high, for every pair: its midpoint, or low where rounding leaves none."""
    # Halves first: the sum of two large numbers, or their difference, may be infinite.
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)
