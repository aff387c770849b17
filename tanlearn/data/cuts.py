"""What discretisers by cuts share: a value's code is the number of cuts below it."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.data.columns import read_columns
from tanlearn.data.numbers import NumberEncoder
from tanlearn.data.table import Table
from tanlearn.data.validation import zero_weight_rows

__all__ = ["CutDiscretizer", "between"]


class CutDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Cuts of every feature; subclasses find them.

    Attributes
    ----------
    cut_points_ : list of ndarray of shape (n_states_[i] - 1,), float64
        Increasing cuts of every feature.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of intervals of every feature.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_jobs": [Integral, None]}
    #: Whether cut points depend on classes, so that folds fit their own.
    uses_classes: ClassVar[bool] = True
    n_jobs: int | None
    cut_points_: list[FloatArray]
    n_states_: IntArray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the cuts.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Finite numbers; NaN, None and the like mean missing.
        y : array-like of shape (n_samples,)
            Classes, strings or numbers. :class:`~tanlearn.MDLPDiscretizer` cuts where these change, and needs at least
            two; :class:`~tanlearn.QuantileDiscretizer` takes no account of them.
        sample_weight : array-like of shape (n_samples,), optional
            Numbers of repetitions: weight 2 is the row twice, weight 0 its absence. They have a scale where a cut must
            pay: by the principle of minimum description length (MDL) it has to save more in telling the rows' classes
            than it takes to say where it lies, so that a set of total weight below 2 is never cut. Quantiles have none.

        Returns
        -------
        CutDiscretizer
            Itself.

        Raises
        ------
        ValueError
            If X is empty or infinite somewhere, y lacks a class where classes count, or the weights are negative or all
            zero.
        TypeError
            If a column does not hold numbers.
        """
        self._validate_params()
        columns = read_columns(X, n_jobs=self.n_jobs, ignored=zero_weight_rows(sample_weight))
        validate_data(self, X, y, skip_check_array=True)
        return self.fit_columns(columns, list(range(len(columns))), y, sample_weight)

    def fit_columns(self, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None) -> Any:
        """Find the cuts of some columns that are read already.

        Parameters
        ----------
        columns : Table
            As :func:`tanlearn.data.columns.read_columns` reads it.
        chosen : list of int
            Numbers of columns, which become features in this order.
        y : array-like of shape (n_samples,)
            Classes, at least two.
        sample_weight : array-like of shape (n_samples,), optional
            Numbers of repetitions.

        Returns
        -------
        CutDiscretizer
            Itself.

        Raises
        ------
        NotImplementedError
            If a subclass does not say how cuts are found.
        """
        raise NotImplementedError(type(self).__name__)

    def restore(self, cut_points: list[FloatArray]) -> Any:
        """Become a discretiser of which the cuts are known.

        Parameters
        ----------
        cut_points : list of ndarray, float64
            Increasing cuts of every feature.

        Returns
        -------
        CutDiscretizer
            Itself.
        """
        self.n_features_in_ = len(cut_points)
        self.cut_points_ = cut_points
        self.n_states_ = np.array([len(cuts) + 1 for cuts in cut_points], dtype=np.intp)
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
        columns = read_columns(X, n_jobs=self.n_jobs)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.transform_columns(columns).T

    def transform_columns(self, columns: Table) -> Codes:
        """Return the intervals of columns that are read already.

        Parameters
        ----------
        columns : Table
            As :func:`tanlearn.data.columns.read_columns` reads it, with the columns of ``fit`` only.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, or the largest value of the type for "missing".

        Raises
        ------
        TypeError
            If a column does not hold numbers.
        """
        codes: AnyArray = np.empty((len(columns), columns.n_samples), codes_dtype(int(self.n_states_.max())))
        done = NumberEncoder([None] * len(codes), self.cut_points_, codes.dtype.type).encode(
            columns, codes, self.n_jobs
        )
        for i in np.flatnonzero(~done):  # of no number: an error, unless nothing is there
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
    """Return a cut, low <= cut < high, for every pair: its midpoint, or low where rounding leaves none.

    Shapes: low, high: (n_cuts,); result: (n_cuts,).
    """
    # Halves first: the sum of two large numbers, or their difference, may be infinite.
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)
