"""From the columns of a table to codes, and back to typical values."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.data.categories import encode_categories, refuse_unseen, warn_of_unseen
from tanlearn.data.category_index import CategoryIndex
from tanlearn.data.column_kinds import find_all_categories
from tanlearn.data.column_names import check_names
from tanlearn.data.column_notes import warn_of_string_columns
from tanlearn.data.columns import read_columns
from tanlearn.data.discretize import MDLPDiscretizer
from tanlearn.data.lost_columns import LARGEST_SHARE, warn_of_lost_columns, warn_of_rounded_columns
from tanlearn.data.numbers import NumberEncoder
from tanlearn.data.other_frames import frame_of
from tanlearn.data.quantiles import QuantileDiscretizer
from tanlearn.data.row_checks import RowCheck, check_columns
from tanlearn.data.table import ArrayTable, Panel, Table
from tanlearn.data.validation import present_rows, zero_weight_rows
from tanlearn.kernels.encode import mean_of_states

__all__ = ["CUT_DISCRETIZERS", "TableEncoder"]

#: Discretisers whose cuts are all that there is to know of them; subclasses may encode otherwise.
CUT_DISCRETIZERS = MDLPDiscretizer, QuantileDiscretizer


class TableEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Turn a table of categorical and continuous columns into codes.

    Categorical columns are numbered as :class:`~tanlearn.data.categories.CategoryEncoder` does, continuous ones are
    discretised. Classifiers use it inside ``fit``: :meth:`encode` gives learners small integers, feature by feature. In
    a pipeline of scikit-learn, :meth:`transform` gives other estimators floating numbers, NaN where a value is missing
    or unseen, as ``OrdinalEncoder`` can.

    Parameters
    ----------
    discrete_features : "auto", bool or array-like, default="auto"
        Which columns are categorical: all (``True``), none (``False``), a mask, or a list of column numbers
        or names. "auto" takes a column of numbers for categorical if these are whole, and at most 10 distinct ones
        among the training values; all other numbers are continuous. The values decide and not their type, so that a
        table gives the same model, whether integers, floating numbers (which one missing value is enough for NumPy
        and pandas to make of integers, and which scikit-learn's ``OrdinalEncoder`` returns) or Python objects carry
        it. Columns of strings, booleans and declared categories are categorical. Codes of more values (postcodes,
        products) have to be named here, or cast to str.
    discretizer : object, optional
        How continuous columns are discretised: ``fit(X, y, sample_weight=None)`` and ``transform(X)``, which
        returns codes of shape (n_samples, n_features), uint8 or uint16, and the attribute ``n_states_``. By
        default :class:`~tanlearn.data.discretize.MDLPDiscretizer`.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do with a category that was not there in ``fit``: treat it as missing, or raise.
    n_jobs : int, optional
        Threads that read and encode tables, and those of the default discretizer (``None`` is 1, -1 all cores). The
        result does not depend on it.

    Attributes
    ----------
    is_discrete_ : ndarray of shape (n_features_in_,), bool
        Which columns are categorical.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of states of every feature.
    categories_ : list of (ndarray or None)
        Categories of every categorical feature, ``None`` for the others.
    typical_values_ : list of (ndarray of shape (n_states,) or None)
        For every state of a continuous feature the mean of the training values in it, nan where there are none;
        ``None`` for categorical features.
    value_ranges_ : list of (tuple of (float, float) or None)
        Smallest and largest training value of every continuous column, (nan, nan) if all its values are missing.
        ``None`` for categorical columns, and where the range is unknown: in models from files that earlier versions
        wrote, and from BIF and XMLBIF files.
    discretizer_ : object or None
        The discretizer fitted to the continuous columns, in their order; ``None`` if there are none.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if the table had names.

    Examples
    --------
    >>> from tanlearn import TableEncoder
    >>> X = [["red", 1.5], ["blue", 2.0], ["red", 3.0], ["blue", 10.0], ["red", 11.0], [None, 12.0]]
    >>> encoder = TableEncoder().fit(X, [0, 0, 0, 1, 1, 1])
    >>> encoder.is_discrete_, encoder.n_states_
    (array([ True, False]), array([2, 2]))
    >>> encoder.encode(X)
    array([[  1,   0,   1,   0,   1, 255],
           [  0,   0,   0,   1,   1,   1]], dtype=uint8)
    >>> encoder.transform([["blue", 10.5], ["green", None]])
    array([[ 0.,  1.],
           [nan, nan]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "discrete_features": [StrOptions({"auto"}), "boolean", "array-like"],
        "discretizer": [HasMethods(["fit", "transform"]), None],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        discrete_features: Any = "auto",
        discretizer: Any = None,
        handle_unknown: str = "missing",
        n_jobs: int | None = None,
    ) -> None:
        self.discrete_features = discrete_features
        self.discretizer = discretizer
        self.handle_unknown = handle_unknown
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TableEncoder:
        """Find categories and cuts.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            The table; NaN, None and the like mean missing.
        y : array-like of shape (n_samples,)
            Classes, at least two.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; rows of weight 0 count as absent.

        Returns
        -------
        TableEncoder
            Itself.

        Raises
        ------
        ValueError
            If the table, the classes, the weights or a parameter break a rule, which the message states.
        TypeError
            If a column mixes strings and numbers, holds something else, or is continuous and no number.

        Warns
        -----
        UserWarning
            Once, if the discretizer leaves columns with one state whose values differ. Columns of which one value takes
            nine tenths of the rows are no reason.
        """
        self._validate_params()
        columns = read_columns(X, n_jobs=self.n_jobs, ignored=zero_weight_rows(sample_weight))
        validate_data(self, frame_of(X), y, skip_check_array=True)
        columns, codes, _, weights, _ = present_rows(columns, y, sample_weight)
        warn_of_string_columns(columns, self.discrete_features)
        self.fit_columns(columns, codes, weights, names=getattr(self, "feature_names_in_", None))
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the codes of a table as scikit-learn's estimators take them.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            A table with the columns of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            ``0..n_states_[j] - 1`` in column ``j``, or NaN for "missing", which imputers, one-hot encoders and trees
            know, and whatever does not refuses. A frame after ``set_output``. Errors and warnings are those of
            :meth:`encode`.
        """
        codes = self.encode(X).T
        return np.where(codes == missing_code(codes.dtype), np.nan, codes)

    def inverse_transform(self, X: Any) -> AnyArray:
        """Return what codes stand for: categories, and of intervals the mean of the training values in them.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Codes as :meth:`transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object
            ``None`` where a code is missing or stands for nothing that was seen.

        Raises
        ------
        ValueError
            If the shape or a code does not fit.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> encoder = TableEncoder().fit([["a", 0.1], ["b", 0.3], ["a", 9.0], [None, 9.5]], [0, 0, 1, 1])
        >>> encoder.inverse_transform(encoder.transform([["b", 7.7], [None, 0.0]])).tolist()
        [['b', 9.25], [None, 0.2]]
        """
        check_is_fitted(self)
        codes = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X").T
        if len(codes) != self.n_features_in_:
            raise ValueError(
                f"X must hold codes in {self.n_features_in_} columns, one a feature, as transform returns them; got "
                f"{len(codes)}."
            )
        missing = np.isnan(codes)
        return self._values(np.where(missing, 0, codes), missing)

    def encode(self, X: Any, *, handle_unknown: str | None = None) -> Codes:
        """Return the codes of a table as learners take them.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            A table with the columns of ``fit``.
        handle_unknown : {"missing", "error"}, optional
            What to do with unseen categories; by default what the parameter of this name says.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            Feature-major and C-contiguous; ``0..n_states_[i] - 1``, or the largest value of the type for
            "missing".

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, is infinite somewhere, or holds an unseen category and
            ``handle_unknown="error"``.
        TypeError
            If a column mixes strings and numbers, a continuous one holds no numbers, or a categorical one strings where
            there were numbers or numbers where there were strings.

        Warns
        -----
        UserWarning
            Once, if columns have ten values or more, and none of them was there in ``fit``.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> encoder = TableEncoder().fit([["a", 0.1], ["b", 0.3], ["a", 9.0], [None, 9.5]], [0, 0, 1, 1])
        >>> encoder.encode([["b", 7.7], [None, 0.0]])
        array([[  1, 255],
               [  1,   0]], dtype=uint8)
        """
        check_is_fitted(self)
        columns = read_columns(X, n_jobs=self.n_jobs)
        check_names(self, X)
        return self.encode_columns(columns, handle_unknown=handle_unknown)

    def check_rows(self, X: Any) -> RowCheck:
        """Count missing, unseen and out-of-range values in every column of new rows.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            A table with the columns of ``fit``.

        Returns
        -------
        RowCheck
            Counts per column, with names where the training table had names. It prints as text, and ``to_frame``
            converts it to pandas. Out of range means below the smallest or above the largest training value
            (``value_ranges_``).

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, or is infinite somewhere.
        TypeError
            If a column mixes strings and numbers, or one that held numbers holds something else.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> encoder = TableEncoder().fit([["car", 0.5], ["boat", 7.0], ["car", 1.5], ["boat", 7.5]], [0, 1, 0, 1])
        >>> print(encoder.check_rows([["train", 1.0], ["boat", 8.5]]))
        2 rows, 2 columns
        0: 1 of 2 rows holds a value not seen in training ('train'), which counts as missing.
        1: 1 of 2 rows holds a number outside the training range of 0.5 to 7.5 (8.5).
        """
        check_is_fitted(self)
        columns = read_columns(X, n_jobs=self.n_jobs)
        check_names(self, X)
        return self.check_columns(columns)

    def check_columns(self, columns: Table) -> RowCheck:
        """Count missing, unseen and out-of-range values in columns that are read already, as :meth:`check_rows` does.

        Parameters
        ----------
        columns : Table
            The table, as :func:`tanlearn.data.columns.read_columns` reads it, with the columns of ``fit``.

        Returns
        -------
        RowCheck

        Raises
        ------
        TypeError
            If a column that held numbers holds something else.
        """
        unknown: list[tuple[float, float] | None] = [None] * self.n_features_in_  # in pickles of earlier versions
        ranges = getattr(self, "value_ranges_", unknown)
        return check_columns(columns, self._indexes, ranges, getattr(self, "feature_names_in_", None))

    def decode(self, codes: Codes) -> AnyArray:
        """Return what the codes of learners stand for, as :meth:`inverse_transform` does.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_samples), integer
            As :meth:`encode` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object

        Raises
        ------
        ValueError
            If the shape or a code does not fit.
        """
        check_is_fitted(self)
        codes = np.asarray(codes)
        if codes.ndim != 2 or len(codes) != len(self.n_states_) or codes.dtype.kind not in "iu":
            raise ValueError(
                f"codes must hold integers in {len(self.n_states_)} rows, one a feature, as encode returns them; got "
                f"shape {codes.shape} of dtype {codes.dtype}."
            )
        return self._values(codes, codes == missing_code(codes_dtype(int(self.n_states_.max()))))

    def fit_columns(
        self,
        columns: Table,
        y: IntArray,
        sample_weight: AnyArray | None = None,
        *,
        names: AnyArray | None = None,
    ) -> Codes:
        """Fit to columns that are read already, and return their codes; for estimators that read a table themselves.

        Parameters
        ----------
        columns : Table
            The table, as :func:`tanlearn.data.columns.read_columns` reads it.
        y : ndarray of shape (n_samples,)
            Class codes.
        sample_weight : ndarray of shape (n_samples,), optional
            Positive weights.
        names : ndarray of shape (n_features,), optional
            Names of the columns, if the table has names.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            As :meth:`encode` returns them.

        Raises
        ------
        ValueError
            If a parameter breaks a rule, or a column has too many categories.
        TypeError
            If a column that is to be continuous holds no numbers.
        """
        self._validate_params()
        if names is not None:
            self.feature_names_in_ = names
        categories = find_all_categories(self.discrete_features, columns, names, self.n_jobs)
        continuous = [i for i, known in enumerate(categories) if known is None]
        discretizer = None
        if continuous:
            unfitted = MDLPDiscretizer(n_jobs=self.n_jobs) if self.discretizer is None else self.discretizer
            discretizer = clone(unfitted)
            warn_of_rounded_columns(columns[i] for i in continuous)
            if type(discretizer) in CUT_DISCRETIZERS:
                discretizer.fit_columns(columns, continuous, y, sample_weight)
            else:
                discretizer.fit(_side_by_side(columns, continuous), y, sample_weight)
        self.restore(categories, [None] * len(columns), discretizer, _value_ranges(columns, continuous))
        total = columns.n_samples if sample_weight is None else float(sample_weight.sum())
        warn_of_lost_columns(self._lost_columns(columns), discretizer, columns.n_samples, total)
        codes = self.encode_columns(columns)
        self.typical_values_ = self._typical_values(columns, codes, sample_weight)
        return codes

    def with_ranges_of(self, columns: Table) -> TableEncoder:
        """Return this encoder with training ranges that also contain the values of further training rows.

        Parameters
        ----------
        columns : Table
            The rows, with the columns of ``fit``.

        Returns
        -------
        TableEncoder
            The encoder itself if its ranges contain all values, else a copy that shares categories and cut points.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> from tanlearn.data.columns import read_columns
        >>> encoder = TableEncoder(discrete_features=False).fit([[0.5], [1.5]], [0, 1])
        >>> encoder.with_ranges_of(read_columns([[1.0], [7.5]])).value_ranges_
        [(0.5, 7.5)]
        """
        known = getattr(self, "value_ranges_", [None] * len(columns))  # a pickle of an earlier version has none
        return self.with_ranges(_value_ranges(columns, [i for i, own in enumerate(known) if own is not None]))

    def with_ranges(self, others: list[tuple[float, float] | None]) -> TableEncoder:
        """Return this encoder with training ranges that also contain other ranges.

        Parameters
        ----------
        others : list of (tuple of (float, float) or None)
            A range for each column; None leaves its own as it is.

        Returns
        -------
        TableEncoder
            The encoder itself if its ranges contain the others, else a copy that shares categories and cut points.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> encoder = TableEncoder(discrete_features=False).fit([[0.5], [1.5]], [0, 1])
        >>> encoder.with_ranges([(-1.0, 1.0)]).value_ranges_
        [(-1.0, 1.5)]
        """
        known = getattr(self, "value_ranges_", [None] * len(others))
        wider = [
            own
            if own is None or other is None
            else (float(np.fmin(own[0], other[0])), float(np.fmax(own[1], other[1])))
            for own, other in zip(known, others, strict=True)
        ]
        if np.array_equal(_bounds(known), _bounds(wider), equal_nan=True):
            return self
        encoder = copy(self)
        encoder.value_ranges_ = wider
        return encoder

    def encode_columns(self, columns: Table, *, handle_unknown: str | None = None) -> Codes:
        """Return the codes of columns that are read already.

        Parameters
        ----------
        columns : Table
            The table, as :func:`tanlearn.data.columns.read_columns` reads it, with the columns of ``fit``.
        handle_unknown : {"missing", "error"}, optional
            As for :meth:`encode`.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            As :meth:`encode` returns them.

        Raises
        ------
        ValueError
            If ``handle_unknown`` is another word, or "error" and a category is unseen.
        """
        unknown = self.handle_unknown if handle_unknown is None else handle_unknown
        if unknown not in ("missing", "error"):
            raise ValueError(f"handle_unknown must be 'missing' or 'error', got {unknown!r}.")
        codes: AnyArray = np.empty((len(columns), columns.n_samples), codes_dtype(int(self.n_states_.max())))
        done = self._numbers.encode(columns, codes, self.n_jobs)
        complete = bool(done.all())
        for i, index in enumerate(self._indexes if not complete or unknown == "error" else ()):
            if index is not None and not done[i]:
                codes[i] = encode_categories(columns[i], index, unknown)
            elif index is not None and unknown == "error":
                refuse_unseen(columns[i], codes[i], index)
        warn_of_unseen(columns, self._indexes, codes)
        if complete:
            return codes
        continuous = [i for i, index in enumerate(self._indexes) if index is None and not done[i]]
        if continuous and type(self.discretizer_) in CUT_DISCRETIZERS:
            for i in continuous:  # of no number: an error, unless nothing is there
                columns[i].numbers(were_numbers=True)
                codes[i] = missing_code(codes.dtype)
        elif continuous:
            # Whatever set_output asks of transformers: of this one, codes are wanted.
            values = _side_by_side(columns, continuous, were_numbers=True)
            found = np.asarray(self.discretizer_.transform(values)).T
            missing = found == missing_code(found.dtype)
            codes[continuous] = np.where(missing, codes.dtype.type(missing_code(codes.dtype)), found)
        return codes

    def restore(
        self,
        categories: list[AnyArray | None],
        typical_values: list[AnyArray | None],
        discretizer: Any,
        value_ranges: list[tuple[float, float] | None] | None = None,
    ) -> TableEncoder:
        """Become an encoder of which everything is known, as from a file.

        Parameters
        ----------
        categories, typical_values : list of (ndarray or None)
            What is to become ``categories_`` and ``typical_values_``.
        discretizer : object or None
            Fitted to the columns that have no categories; ``None`` if all have.
        value_ranges : list of (tuple of (float, float) or None), optional
            What is to become ``value_ranges_``; by default, no range is known.

        Returns
        -------
        TableEncoder
            Itself.

        Examples
        --------
        >>> import numpy as np
        >>> from tanlearn import TableEncoder
        >>> TableEncoder().restore([np.array([3, 7])], [None], None).encode([[7], [3]])
        array([[1, 0]], dtype=uint8)
        """
        self.categories_, self.typical_values_, self.discretizer_ = categories, typical_values, discretizer
        self.value_ranges_ = [None] * len(categories) if value_ranges is None else value_ranges
        self.n_features_in_ = len(categories)
        self.is_discrete_ = np.array([known is not None for known in categories])
        self.n_states_: IntArray = np.array(
            [1 if known is None else max(len(known), 1) for known in categories], np.intp
        )
        if discretizer is not None:
            self.n_states_[~self.is_discrete_] = discretizer.n_states_
        dtype = codes_dtype(int(self.n_states_.max()))
        self._indexes = [None if known is None else CategoryIndex(known, dtype) for known in categories]
        cuts: list[FloatArray | None] = [None] * len(categories)
        if type(discretizer) in CUT_DISCRETIZERS:
            for i, own in zip(np.flatnonzero(~self.is_discrete_), discretizer.cut_points_, strict=True):
                cuts[i] = own
        self._numbers = NumberEncoder(self._indexes, cuts, dtype)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _values(self, codes: AnyArray, missing: NDArray[np.bool_]) -> AnyArray:
        """Return what feature-major codes stand for."""
        n_states = self.n_states_[:, np.newaxis]
        wrong = ~missing & ((codes < 0) | (codes >= n_states) | (codes != np.floor(codes)))
        if wrong.any():
            i, row = np.argwhere(wrong)[0]
            raise ValueError(
                f"code {codes[i, row]} of feature {i}, sample {row}, is none of its {self.n_states_[i]} states, which "
                f"are numbered from 0."
            )
        values = np.full(codes.T.shape, None, dtype=object)
        for i, (categories, typical) in enumerate(zip(self.categories_, self.typical_values_, strict=True)):
            known = np.full(int(self.n_states_[i]) + 1, None, dtype=object)  # the last is what missing codes find
            if categories is not None:
                known[: len(categories)] = categories
            elif typical is not None:
                known[:-1] = [None if np.isnan(value) else value for value in typical.tolist()]
            values[:, i] = known[np.where(missing[i], -1, codes[i].astype(np.intp))]
        return values

    def _lost_columns(self, columns: Table) -> list[str]:
        """Return what messages call the columns that have one state though their values differ."""
        lost = []
        for i in np.flatnonzero(~self.is_discrete_ & (self.n_states_ == 1)):
            column = columns[i]
            values = column.values if column.missing is None else column.values[~column.missing]
            # What takes such a share of the rows is the median: finding that takes a tenth of the time of sorting.
            middle = np.partition(values, len(values) // 2)[len(values) // 2] if len(values) else 0
            if np.count_nonzero(values == middle) < LARGEST_SHARE * len(values):
                lost.append(column.place)
        return lost

    def _typical_values(self, columns: Table, codes: Codes, sample_weight: AnyArray | None) -> list[FloatArray | None]:
        """Return the weighted means of the training values in the states of continuous features."""
        weights = np.ones(columns.n_samples) if sample_weight is None else sample_weight.astype(np.float64, copy=False)
        n_states, unseen = self.n_states_, missing_code(codes.dtype)
        typical: list[FloatArray | None] = [
            None if known else np.full(k, np.nan) for known, k in zip(self.is_discrete_, n_states, strict=True)
        ]

        def average(where: tuple[Panel, int]) -> None:
            panel, k = where
            i = panel.columns[k]
            total, mean = np.zeros(n_states[i]), np.zeros(n_states[i])
            mean_of_states(*panel[:3], k, codes[i], weights, unseen, total, mean)
            typical[i] = np.where(total > 0, mean, np.nan)

        panels = [(panel, k) for panel in columns.panels() for k in range(len(panel.columns))]
        in_threads(average, [(panel, k) for panel, k in panels if not self.is_discrete_[panel.columns[k]]], self.n_jobs)
        return typical


def _side_by_side(columns: Table, chosen: list[int], *, were_numbers: bool = False) -> AnyArray:
    """Return some columns of numbers as a table, in Fortran order."""
    return np.stack([columns[i].numbers(were_numbers=were_numbers) for i in chosen]).T


def _bounds(ranges: list[tuple[float, float] | None]) -> FloatArray:
    """Return ranges as an array, NaN where there is none."""
    return np.array([(np.nan, np.nan) if own is None else own for own in ranges])


def _value_ranges(columns: Table, chosen: list[int]) -> list[tuple[float, float] | None]:
    """Return the smallest and the largest value of the chosen columns, and None for the others.

    Zeros have no sign, as in summaries: which of 0.0 and -0.0 is the smallest would depend on the order of the rows.
    """
    found: list[tuple[float, float] | None] = [None] * len(columns)
    # fmin and fmax pass over NaN, and return it only where there is nothing else.
    if isinstance(columns, ArrayTable):  # by rows of an array, which is faster than by its columns
        low, high = (extreme.reduce(columns.values, axis=0).tolist() for extreme in (np.fmin, np.fmax))
        for i in chosen:
            found[i] = float(low[i]) + 0.0, float(high[i]) + 0.0
        return found
    for i in chosen:
        values = columns[i].numbers()
        found[i] = float(np.fmin.reduce(values)) + 0.0, float(np.fmax.reduce(values)) + 0.0
    return found
