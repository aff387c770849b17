"""Discretization by cut points: minimum description length or quantiles.

The code of a value is the number of cut points below it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.number_encoder import NumberEncoder
from tanlearn.kernels._interpreter import interpretation_is_allowed
from tanlearn.kernels.discretize import DIGIT_BITS, N_DIGITS, collapse, mdlp_cuts, merge_runs, sort_keys
from tanlearn.kernels.mathematics import tabulate_xlogx, unit_scale
from tanlearn.sources.columns import read_columns
from tanlearn.sources.table import Column, Table
from tanlearn.sources.validation import read_classes, read_weights, zero_weight_rows

__all__ = [
    "CUT_POINT_DISCRETIZERS",
    "CutPointDiscretizer",
    "MDLPDiscretizer",
    "QuantileDiscretizer",
    "add_mdl_points",
    "between",
    "discretize",
    "fit_discretizer",
]

#: Logarithms of all counts are tabulated if the total count is at most this multiple of the number of rows.
_LARGEST_LOG_TABLE = 4
#: Minimum weight of the rows of an interval if a quantile interval is divided.
_LEAST_WEIGHT = 5.0
#: Up to this number of rows, NumPy sorts a feature, in at most 0.1 ms more. Two kernels less are compiled (1 s).
_FEW_ROWS = 2_000


class CutPointDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of discretizers by cut points; subclasses choose the cut points.

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
        """True if cut points depend on classes, so that each fold must fit its own."""
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the cut points of every feature.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Finite numbers. NaN, None and other null values mean missing.
        y : array-like of shape (n_samples,)
            Class labels, strings or numbers. :class:`~tanlearn.MDLPDiscretizer` uses them and needs at least two
            classes. :class:`~tanlearn.QuantileDiscretizer` ignores them, unless ``mdl_points`` is set.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of 2 equals repeating the row, a weight of 0 equals removing it. The scale of the
            weights matters for the criterion of minimum description length (MDL): a set of rows whose total weight is
            below 2 is never split. The scale does not matter for quantiles.

        Returns
        -------
        CutPointDiscretizer
            Fitted discretizer.

        Raises
        ------
        ValueError
            If X is empty or contains infinity, y has missing labels or too few classes and the discretizer uses
            classes, or the weights are negative or all zero.
        TypeError
            If a column does not contain numbers.
        """
        self._validate_params()
        columns = read_columns(X, n_jobs=self.n_jobs, ignored=zero_weight_rows(sample_weight))
        validate_data(self, X, y, skip_check_array=True)
        return self.fit_columns(columns, list(range(len(columns))), y, sample_weight)

    def fit_columns(self, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None) -> Any:
        """Find the cut points of the chosen columns, which become the features in this order.

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
            The discretizer itself, fitted.
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
            Codes ``0..n_states_[i] - 1``, or the largest value of the type for a missing value; in Fortran order.

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
        """Encode each value as the number of its interval, in columns that are already read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`, with the columns of ``fit`` only.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, or the largest value of the type for a missing value.

        Raises
        ------
        TypeError
            If a column does not contain numbers.
        """
        codes: AnyArray = np.empty((len(columns), columns.n_samples), codes_dtype(int(self.n_states_.max())))
        done = NumberEncoder([None] * len(codes), self.cut_points_, codes.dtype.type).encode(
            columns, codes, self.n_jobs
        )
        for i in np.flatnonzero(~done):  # not numeric: raises unless all values are missing
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
    """Return a cut point ``c`` with ``low <= c < high`` for every pair, shape (n_cut_points,).

    It is the midpoint, or ``low`` if rounding leaves no number in between.
    """
    # Halve first: the sum or difference of two large numbers may overflow.
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


class MDLPDiscretizer(CutPointDiscretizer):
    """Supervised discretization by minimum description length (Fayyad and Irani, 1993).

    The set S of training values of a feature A is split in two at the cut point T that minimizes the class information
    entropy of the two subsets, E(A, T; S). The subsets are split recursively as long as the information gain exceeds
    the description length of the cut point (MDLPC criterion)::

        Gain > log2(N - 1) / N + (log2(3^k - 2) - [k H(S) - k1 H(S1) - k2 H(S2)]) / N

    with N rows and k classes in the set S, and k1, k2 classes in the subsets S1, S2. Among cut points of equal entropy,
    the lowest is chosen. A cut point lies midway between two adjacent training values, and a value equal to a cut point
    belongs to the lower interval. A feature without an accepted cut point has a single interval. Missing values are
    ignored in ``fit`` and remain missing in ``transform``.

    Parameters
    ----------
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

    References
    ----------
    U. Fayyad and K. Irani, "Multi-interval discretization of continuous-valued attributes for classification
    learning", IJCAI 1993, 1022-1027.

    Examples
    --------
    >>> from tanlearn.encoding.discretize import MDLPDiscretizer
    >>> X = [[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]]
    >>> discretizer = MDLPDiscretizer().fit(X, [0, 0, 0, 1, 1, 1])
    >>> discretizer.cut_points_
    [array([6.5])]
    >>> discretizer.transform([[6.5], [7.0], [float("nan")]]).T
    array([[  0,   1, 255]], dtype=uint8)
    """

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit_columns(self, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None) -> MDLPDiscretizer:
        """Find the cut points of columns that are already read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`.
        chosen : list of int
            Column numbers; these columns become the features in this order.
        y : array-like of shape (n_samples,)
            Class labels, at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of 2 equals repeating the row.

        Returns
        -------
        MDLPDiscretizer
            Fitted discretizer.

        Raises
        ------
        ValueError
            As in :meth:`fit`.
        TypeError
            As in :meth:`fit`.
        """
        n_samples = columns.n_samples
        weights = read_weights(sample_weight, n_samples)
        rows = None if weights is None or weights.all() else weights > 0
        codes, classes = read_classes(y, n_samples, rows)
        if weights is not None:
            weights = weights.astype(np.float64)
            columns, weights = (columns, weights) if rows is None else (columns.take(rows), weights[rows])
            weights = None if (weights == 1).all() else weights
        by_class = np.argsort(codes.astype(np.uint16) if len(classes) < 2**16 else codes, kind="stable")  # radix sort

        def cut_points(number: int) -> FloatArray:
            return _mdlp_cut_points(columns[number], codes, weights, by_class, len(classes))

        self.restore(in_threads(cut_points, chosen, self.n_jobs))
        return self


def _mdlp_cut_points(
    column: Column, y: IntArray, weight: FloatArray | None, by_class: IntArray, n_classes: int
) -> FloatArray:
    """Return the cut points of one feature; ``by_class`` are row numbers sorted by class."""
    x: AnyArray = column.numbers()
    present = None if column.missing is None else ~column.missing
    if present is not None and not present.any():
        return np.empty(0)
    if weight is None:
        rows = by_class if present is None else by_class[present[by_class]]
        x, classes_of = _sort_by_class(x.take(rows).astype(np.float64, copy=False), y[rows], n_classes)
    else:
        if present is not None:
            x, y, weight = x[present], y[present], weight[present]
        x = x.astype(np.float64)
        # Sums of real weights depend on the order of equal values, which for NumPy's default sort depends on the CPU.
        order = np.argsort(x, kind=None if _are_integers(weight) else "stable")
        x, classes_of, weight = x[order], y[order].astype(np.int32), weight[order]
    n = len(x)
    weight = np.ones(n) if weight is None else weight
    are_integers = _are_integers(weight)
    first, last, weights = np.empty(n), np.empty(n), np.empty(n)
    start, classes, slot = np.empty(n + 1, np.intp), np.empty(n, np.int32), np.full(n_classes, -1, np.intp)
    n_sets = collapse(x, classes_of, weight, are_integers, slot, first, last, start, classes, weights)
    total = weights[: start[n_sets]].cumsum()[-1]  # sequential: numpy.sum depends on the processor
    scale = unit_scale(total)
    units = np.empty(int(total) + 1 if are_integers and total <= _LARGEST_LOG_TABLE * n else 0, np.int64)
    tabulate_xlogx(scale, units)
    is_cut_point = np.zeros(max(n_sets - 1, 0), np.bool_)
    mdlp_cuts(start[: n_sets + 1], classes, weights, n_classes, scale, units, is_cut_point)
    return between(last[: n_sets - 1][is_cut_point], first[1:n_sets][is_cut_point])


def _are_integers(weight: FloatArray) -> bool:
    """Return whether all weights are integers, so that their sums are exact in any order."""
    return bool((weight == np.floor(weight)).all())


def _sort_by_class(x: FloatArray, y: IntArray, n_classes: int) -> tuple[FloatArray, NDArray[np.int32]]:
    """Sort values that are grouped by class, in place, and return them with their classes.

    Each class is sorted separately and the classes are merged pairwise, without row numbers to carry along. Floats are
    sorted as integers: with the sign bit flipped, or all bits of negative numbers, they have the order of their values.
    """
    if len(x) <= _FEW_ROWS and interpretation_is_allowed():
        order = np.argsort(x, kind="stable")
        return x[order], y[order].astype(np.int32)
    runs = [0, *np.cumsum(np.bincount(y, minlength=n_classes)).tolist()]
    keys = x.view(np.int64)
    keys ^= (keys >> 63) | np.int64(-(2**63))
    spare, count = np.empty(len(x), np.uint64), np.empty(N_DIGITS << DIGIT_BITS, np.intp)
    for begin, end in pairwise(runs):
        run = keys[begin:end].view(np.uint64)
        if sort_keys(run, spare[begin:end], count):
            run[:] = spare[begin:end]
    keys ^= (~keys >> 63) | np.int64(-(2**63))
    classes = np.repeat(np.arange(n_classes, dtype=np.int32), np.diff(runs))
    other_x, other_classes = np.empty_like(x), np.empty_like(classes)
    while len(runs) > 2:
        if len(runs) % 2 == 0:  # an odd number of runs: the last is merged with an empty one
            runs.append(runs[-1])
        for begin, middle, end in zip(runs[:-2:2], runs[1:-1:2], runs[2::2], strict=True):
            merge_runs(x, classes, begin, middle, end, other_x, other_classes)
        x, classes, other_x, other_classes = other_x, other_classes, x, classes
        runs = runs[::2]
    return x, classes


class QuantileDiscretizer(CutPointDiscretizer):
    """Discretize every feature into intervals with about equally many rows.

    A feature with at most ``max_bins`` distinct values gets one interval per value. A cut point lies midway between two
    adjacent training values, and a value equal to a cut point belongs to the lower interval. Every feature with at
    least two distinct values has a cut point. Missing values are ignored in ``fit`` and remain missing in
    ``transform``. Classes are not used, unless ``mdl_points`` is set.

    Parameters
    ----------
    max_bins : int, default=1024
        Largest number of intervals of a feature, from 2 to 65,535; ``mdl_points`` may add some.
    mdl_points : bool, default=False
        Whether to add the cut points of :class:`~tanlearn.MDLPDiscretizer`, which separate classes. A cut point is
        added if the rows on both sides, up to the next cut points, have a total weight of at least 5. With few
        intervals, quantiles miss exact thresholds, in particular those that separate a small class.
    n_jobs : int, optional
        Number of threads, over features in ``fit`` and over rows in ``transform`` (``None`` is 1, -1 all cores). The
        result does not depend on it.

    Attributes
    ----------
    cut_points_ : list of ndarray of shape (n_states_[i] - 1,), float64
        Increasing cut points of every feature.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of intervals of every feature.
    quantiles_ : list of ndarray, float64
        Cut points of every feature that do not depend on classes, and are the same in all folds. Set only with
        ``mdl_points``.
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
        **CutPointDiscretizer._parameter_constraints,
        "max_bins": [Interval(Integral, 2, 2**16 - 1, closed="both")],
        "mdl_points": ["boolean"],
    }

    def __init__(self, *, max_bins: int = 1024, mdl_points: bool = False, n_jobs: int | None = None) -> None:
        self.max_bins = max_bins
        self.mdl_points = mdl_points
        self.n_jobs = n_jobs

    @property
    def uses_classes(self) -> bool:
        """True if cut points depend on classes, so that each fold must fit its own."""
        return bool(self.mdl_points)

    def fit_columns(self, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None) -> QuantileDiscretizer:
        """Find the cut points of columns that are already read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`.
        chosen : list of int
            Column numbers; these columns become the features in this order.
        y : array-like of shape (n_samples,)
            Class labels, at least two classes; not used without ``mdl_points``.
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

        def cut_points(number: int) -> FloatArray:
            return _quantile_cut_points(columns[number], weights, self.max_bins)

        quantiles = in_threads(cut_points, chosen, self.n_jobs)
        self.restore(quantiles)
        if self.mdl_points:
            self.quantiles_ = quantiles
            add_mdl_points(self, columns, chosen, y, sample_weight)
        return self


def _quantile_cut_points(column: Column, weights: AnyArray | None, max_bins: int) -> FloatArray:
    """Return the cut points of one feature.

    All rows are used: sorting a million takes 0.1 s, and every n-th row would be biased for data with a period.
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
    # A cut point lies after the first value that reaches a quantile, but before the last value; duplicates are merged.
    after = np.searchsorted(reached, reached[-1] * np.arange(1, max_bins) / max_bins)
    after = np.unique(np.minimum(after, len(values) - 2))
    return between(values[after], values[after + 1])


def add_mdl_points(
    discretizer: CutPointDiscretizer, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None
) -> None:
    """Add the cut points of :class:`MDLPDiscretizer` to those of a fitted discretizer of the chosen columns."""
    weights = read_weights(sample_weight, columns.n_samples)
    points = MDLPDiscretizer(n_jobs=discretizer.n_jobs).fit_columns(columns, chosen, y, sample_weight).cut_points_

    def cut_points(k: int) -> FloatArray:
        return _with_cut_points(discretizer.cut_points_[k], points[k], columns[chosen[k]], weights)

    discretizer.restore(in_threads(cut_points, range(len(chosen)), discretizer.n_jobs))


def _with_cut_points(cuts: FloatArray, more: FloatArray, column: Column, weights: AnyArray | None) -> FloatArray:
    """Return cut points with those of ``more`` that leave a weight of :data:`_LEAST_WEIGHT` on both sides."""
    x, present = column.numbers().astype(np.float64, copy=False), column.present
    x, own = x[present], np.ones(int(present.sum())) if weights is None else weights[present].astype(np.float64)
    order = np.argsort(x, kind="stable")  # the sums of real weights depend on the order of equal values
    x, reached = x[order], np.append(0.0, np.cumsum(own[order]))
    found = [-np.inf, *cuts.tolist(), np.inf]
    for cut in more.tolist():
        k = bisect_left(found, cut)
        if found[k] != cut:
            before, at, after = reached[np.searchsorted(x, [found[k - 1], cut, found[k]], side="right")].tolist()
            if min(at - before, after - at) >= _LEAST_WEIGHT:
                found.insert(k, cut)
    return np.array(found[1:-1])


#: Discretizers that are fully described by their cut points; subclasses may encode differently.
CUT_POINT_DISCRETIZERS = MDLPDiscretizer, QuantileDiscretizer


def fit_discretizer(
    discretizer: Any, columns: Table, chosen: list[int], y: IntArray, sample_weight: AnyArray | None
) -> None:
    """Fit any discretizer to the chosen columns, which become its features in this order."""
    if type(discretizer) in CUT_POINT_DISCRETIZERS:
        discretizer.fit_columns(columns, chosen, y, sample_weight)
    else:
        discretizer.fit(_side_by_side(columns, chosen), y, sample_weight)


def discretize(discretizer: Any, columns: Table) -> Codes:
    """Return the codes of the columns of any fitted discretizer, shape (n_features, n_samples)."""
    codes: Codes
    if type(discretizer) in CUT_POINT_DISCRETIZERS:
        codes = discretizer.transform_columns(columns)
    else:  # np.asarray undoes set_output, which may turn the codes into a frame
        codes = np.asarray(discretizer.transform(_side_by_side(columns, range(len(columns)), were_numbers=True))).T
    return codes


def _side_by_side(columns: Table, chosen: Iterable[int], *, were_numbers: bool = False) -> AnyArray:
    """Stack numeric columns into a matrix, in Fortran order."""
    return np.stack([columns[i].numbers(were_numbers=were_numbers) for i in chosen]).T
