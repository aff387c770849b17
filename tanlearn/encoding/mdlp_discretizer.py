"""Cut points by minimum description length."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.cut_points import CutPointDiscretizer, OtherFeatures, between
from tanlearn.kernels._interpreter import interpretation_is_allowed
from tanlearn.kernels.discretize import DIGIT_BITS, N_DIGITS, collapse, mdlp_cuts, merge_runs, sort_keys
from tanlearn.kernels.mathematics import tabulate_xlogx, unit_scale
from tanlearn.sources.table import Column, Table
from tanlearn.sources.validation import check_classes, read_classes, read_weights

__all__ = ["MDLPDiscretizer"]

#: Ratio of total count to number of rows up to which the logarithms of all counts are tabulated.
_LARGEST_LOG_TABLE = 4
#: Number of rows up to which NumPy sorts a feature. This takes at most 0.1 ms longer, but two kernels need not be
#: compiled (1 s).
_FEW_ROWS = 2_000


class MDLPDiscretizer(CutPointDiscretizer):
    """Supervised discretization by minimum description length (Fayyad and Irani, 1993).

    The set S of training values of a feature A is split in two at the cut point T that minimizes the class information
    entropy of the two subsets, E(A, T; S). The subsets are split recursively as long as the information gain exceeds
    the description length of the cut point (MDLPC criterion)::

        Gain > log2(N - 1) / N + (log2(3^k - 2) - [k H(S) - k1 H(S1) - k2 H(S2)]) / N

    with N rows and k classes in the set S, and k1 and k2 classes in the subsets S1 and S2. If several cut points have
    the same entropy, the lowest one is chosen. A cut point lies midway between two adjacent training values, and a
    value equal to a cut point belongs to the lower interval. A feature without an accepted cut point has a single
    interval. Missing values are ignored in ``fit`` and remain missing in ``transform``.

    Parameters
    ----------
    interactions : bool, default=False
        Whether to search features without an accepted cut point again, among rows with the same value of one other
        feature. The entropies and the criterion are then summed over the values of the other feature, and log2(d - 1)
        is added to the cost of each cut point for the choice among d - 1 other features. Cut points are chosen between
        64 quantiles. The other feature is a discretized feature or a feature with at most 16 categories. The feature
        that shortens the description most is chosen. For example, the sign of a product of two numbers depends on
        neither of them alone. Only classifiers that combine features benefit, so naive Bayes does not use it. If the
        number of pairs of features times the number of rows is above 1e8, a random subset of the rows is searched,
        which is the same for equal tables. With more than 16,384 pairs, this search is skipped.
    n_jobs : int, optional
        Number of threads, as in joblib. Threads work on features in ``fit``, and on rows in ``transform``. Results do
        not depend on it.

    Attributes
    ----------
    cut_points_ : list of ndarray of shape (n_states_[i] - 1,), float64
        Increasing cut points of every feature.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of intervals of every feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, set only if ``X`` had column names.

    References
    ----------
    U. Fayyad and K. Irani, "Multi-interval discretization of continuous-valued attributes for classification
    learning", IJCAI 1993, 1022-1027.

    Examples
    --------
    >>> from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
    >>> X = [[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]]
    >>> discretizer = MDLPDiscretizer().fit(X, [0, 0, 0, 1, 1, 1])
    >>> discretizer.cut_points_
    [array([6.5])]
    >>> discretizer.transform([[6.5], [7.0], [float("nan")]]).T
    array([[  0,   1, 255]], dtype=uint8)

    The class is the sign of the product of two numbers, and depends on neither of them alone:

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> MDLPDiscretizer().fit(X, y).n_states_
    array([1, 1])
    >>> MDLPDiscretizer(interactions=True).fit(X, y).n_states_
    array([2, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CutPointDiscretizer._parameter_constraints,
        "interactions": ["boolean"],
    }

    interactions = False  # in subclasses and pickles without this parameter

    def __init__(self, *, interactions: bool = False, n_jobs: int | None = None) -> None:
        self.interactions = interactions
        self.n_jobs = n_jobs

    @property
    def uses_other_features(self) -> bool:
        """True if cut points of a feature depend on the other features of the table."""
        return bool(self.interactions)

    def fit_columns(
        self,
        columns: Table,
        chosen: list[int],
        y: Any,
        sample_weight: Any = None,
        get_others: Callable[[], OtherFeatures | None] = lambda: None,
    ) -> MDLPDiscretizer:
        """Find the cut points of columns that have already been read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`.
        chosen : list of int
            Numbers of the columns, which are the features of the discretizer in this order.
        y : array-like of shape (n_samples,)
            Class labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights. A weight of 2 equals repeating the row.
        get_others : callable, optional
            Function that returns the codes of the categorical features (``OtherFeatures``). It is used only with
            ``interactions``.

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
        # As of a part, without scikit-learn's warning of many classes: estimators issue it once for all rows, and each
        # fold would repeat it.
        codes, classes = read_classes(y, n_samples, rows, is_part=True)
        check_classes(classes, np.bincount(codes, minlength=len(classes)), len(codes))
        if weights is not None:
            weights = weights.astype(np.float64)
            columns, weights = (columns, weights) if rows is None else (columns.take(rows), weights[rows])
            weights = None if (weights == 1).all() else weights
        by_class = np.argsort(codes.astype(np.uint16) if len(classes) < 2**16 else codes, kind="stable")  # radix sort

        def cut_points(number: int) -> FloatArray:
            return _mdlp_cut_points(columns[number], codes, weights, by_class, len(classes))

        found = in_threads(cut_points, chosen, self.n_jobs)
        if self.interactions:
            # with kernels that few fits need
            from tanlearn.encoding.interacting_cut_points import with_interacting_cut_points

            def others() -> OtherFeatures | None:
                all_rows = get_others()
                return all_rows if rows is None or all_rows is None else all_rows.take(rows)

            known = [columns[i] for i in chosen]
            found, self._has_searched = with_interacting_cut_points(known, found, others, codes, weights, self.n_jobs)
        self.restore(found)
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
        # Sums of real weights depend on the order of equal values, which depends on the CPU with NumPy's default sort.
        order = np.argsort(x, kind=None if _are_integers(weight) else "stable")
        x, classes_of, weight = x[order], y[order].astype(np.int32), weight[order]
    n = len(x)
    weight = np.ones(n) if weight is None else weight
    are_integers = _are_integers(weight)
    first, last, weights = np.empty(n), np.empty(n), np.empty(n)
    start, classes, slot = np.empty(n + 1, np.intp), np.empty(n, np.int32), np.full(n_classes, -1, np.intp)
    n_sets = collapse(x, classes_of, weight, are_integers, slot, first, last, start, classes, weights)
    total = weights[: start[n_sets]].cumsum()[-1]  # a sequential sum, because numpy.sum depends on the processor
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

    Each class is sorted separately, and the classes are merged pairwise, so that no row numbers need to be moved.
    Floats are sorted by their bit patterns, read as unsigned integers. If the sign bit of nonnegative numbers and all
    bits of negative numbers are flipped, the integers have the same order as the numbers.
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
        if len(runs) % 2 == 0:  # if the number of runs is odd, the last run is merged with an empty run
            runs.append(runs[-1])
        for begin, middle, end in zip(runs[:-2:2], runs[1:-1:2], runs[2::2], strict=True):
            merge_runs(x, classes, begin, middle, end, other_x, other_classes)
        x, classes, other_x, other_classes = other_x, other_classes, x, classes
        runs = runs[::2]
    return x, classes
