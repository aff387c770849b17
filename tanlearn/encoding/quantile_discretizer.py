"""Cut points at quantiles, and optionally by minimum description length."""

from __future__ import annotations

from bisect import bisect_left
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.cut_points import CutPointDiscretizer, quantile_cut_points
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.sources.table import Column, Table
from tanlearn.sources.validation import read_weights

__all__ = ["QuantileDiscretizer", "add_mdl_points"]

#: Minimum weight of the rows in each interval if a quantile interval is divided.
_LEAST_WEIGHT = 5.0


class QuantileDiscretizer(CutPointDiscretizer):
    """Discretize every feature into intervals with about equally many rows.

    A feature with at most ``max_bins`` distinct values has one interval per value. A cut point lies midway between two
    adjacent training values, and a value equal to a cut point belongs to the lower interval. Every feature with at
    least two distinct values has a cut point. Missing values are ignored in ``fit`` and remain missing in
    ``transform``. Classes are not used unless ``mdl_points`` is set.

    Parameters
    ----------
    max_bins : int, default=1024
        Maximum number of intervals per feature, from 2 to 65,535. With ``mdl_points``, there may be more.
    mdl_points : bool, default=False
        Whether to add the cut points of :class:`~tanlearn.MDLPDiscretizer`, which separate classes. A cut point is
        added if the rows on both sides, up to the next cut points, have a total weight of at least 5. If there are only
        a few intervals, quantiles miss exact thresholds, in particular thresholds that separate a small class.
    n_jobs : int, optional
        Number of threads, as in joblib. Threads work on features in ``fit``, and on rows in ``transform``. Results do
        not depend on it.

    Attributes
    ----------
    cut_points_ : list of ndarray of shape (n_states_[i] - 1,), float64
        Increasing cut points of every feature.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of intervals of every feature.
    quantiles_ : list of ndarray, float64
        Cut points of every feature that do not depend on classes, and are therefore the same in all folds. It is set
        only if ``mdl_points`` is True.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, set only if ``X`` had column names.

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
        """True if cut points depend on classes, so that each fold must fit its own cut points."""
        return bool(self.mdl_points)

    def fit_columns(self, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None) -> QuantileDiscretizer:
        """Find the cut points of columns that have already been read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`.
        chosen : list of int
            Numbers of the columns, which are the features of the discretizer in this order.
        y : array-like of shape (n_samples,)
            Class labels of at least two classes. They are used only if ``mdl_points`` is set.
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
            return quantile_cut_points(columns[number], weights, self.max_bins)

        quantiles = in_threads(cut_points, chosen, self.n_jobs)
        self.restore(quantiles)
        if self.mdl_points:
            self.quantiles_ = quantiles
            add_mdl_points(self, columns, chosen, y, sample_weight)
        return self


def add_mdl_points(
    discretizer: CutPointDiscretizer, columns: Table, chosen: list[int], y: Any, sample_weight: Any = None
) -> None:
    """Add the cut points of :class:`MDLPDiscretizer` to a fitted discretizer of the chosen columns."""
    weights = read_weights(sample_weight, columns.n_samples)
    points = MDLPDiscretizer(n_jobs=discretizer.n_jobs).fit_columns(columns, chosen, y, sample_weight).cut_points_

    def cut_points(k: int) -> FloatArray:
        return _with_cut_points(discretizer.cut_points_[k], points[k], columns[chosen[k]], weights)

    discretizer.restore(in_threads(cut_points, range(len(chosen)), discretizer.n_jobs))


def _with_cut_points(cuts: FloatArray, more: FloatArray, column: Column, weights: AnyArray | None) -> FloatArray:
    """Return cut points, and all cut points in ``more`` with at least :data:`_LEAST_WEIGHT` on both sides."""
    x, present = column.numbers().astype(np.float64, copy=False), column.present
    x, own = x[present], np.ones(int(present.sum())) if weights is None else weights[present].astype(np.float64)
    order = np.argsort(x, kind="stable")  # sums of real weights depend on the order of equal values
    x, reached = x[order], np.append(0.0, np.cumsum(own[order]))
    found = [-np.inf, *cuts.tolist(), np.inf]
    for cut in more.tolist():
        k = bisect_left(found, cut)
        if found[k] != cut:
            before, at, after = reached[np.searchsorted(x, [found[k - 1], cut, found[k]], side="right")].tolist()
            if min(at - before, after - at) >= _LEAST_WEIGHT:
                found.insert(k, cut)
    return np.array(found[1:-1])
