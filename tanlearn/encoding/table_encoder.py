"""Encoder of categorical and continuous columns as integer codes, with decoding."""

from __future__ import annotations

from copy import copy
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.column_encoder import ColumnEncoder, category_codes, mean_values, value_ranges, wider_ranges
from tanlearn.encoding.column_kinds import check_missing_categories, find_all_categories
from tanlearn.encoding.column_warnings import warn_of_fitted_columns, warn_of_unseen
from tanlearn.encoding.declared_columns import read_declared
from tanlearn.encoding.discretize import fit_discretizer
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.missing_values import with_missing_category
from tanlearn.encoding.row_checks import RowCheck, check_columns
from tanlearn.sources.columns import read_columns
from tanlearn.sources.frames import check_names, native_frame
from tanlearn.sources.table import Table
from tanlearn.sources.validation import present_rows, zero_weight_rows

__all__ = ["TableEncoder"]


class TableEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Encode categorical and continuous columns as integer codes.

    Categorical columns are encoded as by :class:`~tanlearn.encoding.categories.CategoryEncoder`, and continuous columns
    are discretized. Classifiers use the encoder inside ``fit``: :meth:`encode` returns feature-major integer codes. In
    a scikit-learn pipeline, :meth:`transform` returns floating numbers. NaN stands for unseen categories, and for
    missing values in columns without a category for them.

    Parameters
    ----------
    discrete_features : "auto", bool or array-like, default="auto"
        Categorical columns: all (``True``), none (``False``), a mask, or a list of column numbers or names. With
        "auto", columns of strings, booleans or declared categories are categorical. A numeric column is categorical if
        its training values are integers with at most 10 distinct values, and otherwise continuous. The dtype is
        ignored, because NumPy and pandas convert integers with a missing value to floats. Columns of integer codes with
        more distinct values (postcodes, products) must be listed here or cast to str.
    discretizer : object, optional
        Discretizer of continuous columns with ``fit(X, y, sample_weight=None)``, ``transform(X)``, which returns codes
        of shape (n_samples, n_features), uint8 or uint16, and the attribute ``n_states_``. The default is
        :class:`~tanlearn.MDLPDiscretizer`. Some classifiers have another default. Classifiers whose networks have edges
        use the same discretizer with ``interactions=True``.
    handle_unknown : {"missing", "error"}, default="missing"
        Treatment of categories that were not seen in ``fit``: as missing values, or as an error.
    handle_missing : {"marginalize", "category", "auto"}, optional
        Treatment of missing values. With "marginalize", a missing value is marginalized, so it does not affect
        predictions. With "category", each column that has both values and missing values in ``fit`` has a category for
        missing values. It is the last category, and is used like all other categories. With "auto", only columns whose
        missing values depend on the class have this category. The criterion is that one rate of missing values per
        class is more probable than one rate for all classes (Bayes factor above 1, with Beta(1/2, 1/2) priors). Missing
        values of other columns, and unseen categories, are always marginalized. The default is "auto" in
        :class:`~tanlearn.TermNetClassifier`, :class:`~tanlearn.BoostedTermsClassifier` and
        :class:`~tanlearn.BayesEnsembleClassifier`, and "marginalize" in other classifiers.
    n_jobs : int, optional
        Number of threads for reading, encoding and the default discretizer, as in joblib. Results do not depend on it.

    Attributes
    ----------
    is_discrete_ : ndarray of shape (n_features_in_,), bool
        Mask of the categorical columns.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of categories or intervals of every feature, including the category of missing values.
    has_missing_category_ : ndarray of shape (n_features_in_,), bool
        Mask of the columns with a category for missing values. Its code is ``n_states_[j] - 1``.
    categories_ : list of (ndarray or None)
        Categories of every categorical feature, without the category of missing values, and ``None`` for continuous
        features.
    typical_values_ : list of (ndarray of shape (n_intervals,) or None)
        Mean of the training values in each interval of a continuous feature, with NaN for intervals without values. The
        entry is ``None`` for categorical features.
    value_ranges_ : list of (tuple of (float, float) or None)
        Smallest and largest training value of every continuous column, or (nan, nan) if all values are missing. The
        entry is ``None`` for categorical columns, or if the range is unknown, as in BIF and XMLBIF files and in model
        files of earlier versions.
    discretizer_ : object or None
        Discretizer that was fitted to the continuous columns, in their order, or ``None`` if there are no continuous
        columns.
    is_declared_ : bool
        Whether categories and cut points were declared by :meth:`declare` instead of computed from rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.

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
        "handle_missing": [StrOptions({"marginalize", "category", "auto"}), None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        discrete_features: Any = "auto",
        discretizer: Any = None,
        handle_unknown: str = "missing",
        handle_missing: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.discrete_features = discrete_features
        self.discretizer = discretizer
        self.handle_unknown = handle_unknown
        self.handle_missing = handle_missing
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TableEncoder:
        """Find the categories and cut points of every column.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Training data. NaN, None and other null values mean missing.
        y : array-like of shape (n_samples,)
            Class labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. A weight of 0 equals removing the row.

        Returns
        -------
        TableEncoder
            Fitted encoder.

        Raises
        ------
        ValueError
            If the data, the classes, the weights or a parameter are invalid. The message states the rule.
        TypeError
            If a column mixes strings and numbers, contains values of any other type, or is continuous but not numeric.

        Warns
        -----
        UserWarning
            If the discretizer finds a single interval for columns with different values. Columns in which one value has
            at least nine tenths of the rows are not reported.
        """
        self._validate_params()
        columns = read_columns(X, n_jobs=self.n_jobs, ignored=zero_weight_rows(sample_weight))
        validate_data(self, native_frame(X), y, skip_check_array=True)
        columns, codes, _, weights, _ = present_rows(columns, y, sample_weight)
        self.fit_columns(columns, codes, weights, names=getattr(self, "feature_names_in_", None))
        return self

    def declare(self, columns: Any) -> TableEncoder:
        """Set categories and cut points without reading rows.

        Declared values do not depend on rows, which is required for differential privacy. Counts of several sites can
        be added if the same values are declared.

        Parameters
        ----------
        columns : dict or list
            Categories or cut points of every column: a dictionary from names to values in the order of the columns, or
            a list for data without names. Strings and booleans are categories. Numbers are cut points, unless
            ``discrete_features`` selects the column. The k cut points of a column separate k + 1 intervals, and a value
            equal to a cut point belongs to the lower interval.

        Returns
        -------
        TableEncoder
            The encoder itself, fitted.

        Raises
        ------
        ValueError
            If a column has no declared values, a missing value, or cut points that do not increase. The error is also
            raised if ``discretizer`` is set, which computes cut points from rows, or ``handle_missing`` is "auto",
            which needs rows.
        TypeError
            If ``columns`` is not a dictionary or a list, or a column mixes strings and numbers.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> encoder = TableEncoder().declare({"age": [30, 50], "sex": ["male", "female"]})
        >>> encoder.n_states_.tolist(), encoder.categories_[1].tolist()
        ([3, 2], ['female', 'male'])
        """
        self._validate_params()
        if self.discretizer is not None:
            raise ValueError(
                "discretizer computes cut points from rows, but cut points are declared here. Use discretizer=None."
            )
        if self.handle_missing == "auto":
            raise ValueError(
                "handle_missing='auto' needs rows, but columns are declared without rows. Use 'category', which gives "
                "every column a category for missing values, or 'marginalize'."
            )
        names, categories, cut_points = read_declared(columns, self.discrete_features)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        cuts = [own for own in cut_points if own is not None]
        typical = [None if own is None else np.full(len(own) + 1, np.nan) for own in cut_points]
        with_missing = np.full(len(categories), self.handle_missing == "category")
        discretizer = MDLPDiscretizer().restore(cuts) if cuts else None
        self.restore(categories, typical, discretizer, has_missing_category=with_missing)
        check_missing_categories(self, [f"X column {i}" for i in range(len(categories))])
        self.is_declared_ = True
        return self

    def transform(self, X: Any) -> FloatArray:
        """Encode data as floating numbers for scikit-learn estimators.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Data with the columns of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            Codes ``0..n_states_[j] - 1`` in column ``j``, with NaN for unseen categories, and for missing values of
            columns without a category for them. ``set_output`` can be used to return a frame. Errors and warnings are
            the same as in :meth:`encode`.
        """
        codes = self.encode(X).T
        return np.where(codes == missing_code(codes.dtype), np.nan, codes)

    def inverse_transform(self, X: Any) -> AnyArray:
        """Decode codes to categories or to the mean training value of an interval.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Codes as :meth:`transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object
            Decoded values, with ``None`` for the code of missing values and for codes without training values.

        Raises
        ------
        ValueError
            If X has the wrong shape, or a code is out of range.

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
                f"X must hold codes in {self.n_features_in_} columns, one per feature, as transform returns them, got "
                f"{len(codes)}."
            )
        missing = np.isnan(codes)
        return self._encoder.decode(np.where(missing, 0, codes), missing, self.typical_values_)

    def encode(self, X: Any, *, handle_unknown: str | None = None) -> Codes:
        """Encode data as feature-major integer codes for learners.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Data with the columns of ``fit``.
        handle_unknown : {"missing", "error"}, optional
            Treatment of unseen categories. The default is the parameter ``handle_unknown`` of the encoder.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, with the largest value of the type for missing values. The array is
            C-contiguous.

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, contains infinity, or contains an unseen category and
            ``handle_unknown="error"``.
        TypeError
            If a column mixes strings and numbers, a continuous column is not numeric, or a categorical column contains
            strings where ``fit`` had numbers or numbers where ``fit`` had strings.

        Warns
        -----
        UserWarning
            If columns have at least ten values and none of them was seen in ``fit``.

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
        """Count missing, unseen and out-of-range values in each column of new data.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Data with the columns of ``fit``.

        Returns
        -------
        RowCheck
            Counts per column, with the column names of the training data if there were any. It can be printed, and
            ``to_frame`` converts it to a pandas frame. Out of range means below the smallest or above the largest
            training value (``value_ranges_``).

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, or contains infinity.
        TypeError
            If a column mixes strings and numbers, or a column that was numeric in ``fit`` is not numeric.

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
        """Count missing, unseen and out-of-range values as :meth:`check_rows` does, in columns that have been read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`, with the columns of ``fit``.

        Returns
        -------
        RowCheck

        Raises
        ------
        TypeError
            If a column that was numeric in ``fit`` is not numeric.
        """
        names = getattr(self, "feature_names_in_", None)
        return check_columns(columns, self._encoder.indexes, self.value_ranges_, names)

    def decode(self, codes: Codes) -> AnyArray:
        """Decode feature-major codes, as in :meth:`inverse_transform`.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_samples), integer
            Codes as :meth:`encode` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object
            Decoded values.

        Raises
        ------
        ValueError
            If codes have the wrong shape or dtype, or a code is out of range.
        """
        check_is_fitted(self)
        codes = np.asarray(codes)
        if codes.ndim != 2 or len(codes) != len(self.n_states_) or codes.dtype.kind not in "iu":
            raise ValueError(
                f"codes must be an integer array with {len(self.n_states_)} rows (one per feature), as returned by "
                f"encode, got shape {codes.shape} and dtype {codes.dtype}."
            )
        missing = codes == missing_code(codes_dtype(int(self.n_states_.max())))
        return self._encoder.decode(codes, missing, self.typical_values_)

    def fit_columns(
        self,
        columns: Table,
        y: IntArray,
        sample_weight: AnyArray | None = None,
        *,
        names: AnyArray | None = None,
    ) -> Codes:
        """Fit to columns that have been read and return their codes, for estimators that read the data themselves.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`.
        y : ndarray of shape (n_samples,)
            Class codes.
        sample_weight : ndarray of shape (n_samples,), optional
            Positive weights.
        names : ndarray of shape (n_features,), optional
            Names of the columns, if any.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            Codes as :meth:`encode` returns them.

        Raises
        ------
        ValueError
            If a parameter is invalid, or a column has too many categories.
        TypeError
            If a continuous column is not numeric.
        """
        self._validate_params()
        if names is not None:
            self.feature_names_in_ = names
        categories = find_all_categories(self.discrete_features, columns, names, self.n_jobs)
        continuous = [i for i, known in enumerate(categories) if known is None]
        discretizer = None
        if continuous:
            discretizer = clone(MDLPDiscretizer(n_jobs=self.n_jobs) if self.discretizer is None else self.discretizer)
            others = partial(category_codes, columns, categories, self.n_jobs)
            fit_discretizer(discretizer, columns, continuous, y, sample_weight, others)
        with_missing = with_missing_category(self.handle_missing, columns, y, sample_weight)
        self.restore(categories, [None] * len(columns), discretizer, has_missing_category=with_missing)
        check_missing_categories(self, columns.labels)
        codes = self._encoder.encode(columns, "missing", self.n_jobs)
        self.value_ranges_ = value_ranges(columns, continuous)
        self.typical_values_ = mean_values(columns, codes, self._encoder.n_intervals, sample_weight, self.n_jobs)
        warn_of_fitted_columns(self, columns, sample_weight)
        self._encoder.mark_missing(columns, codes)
        return codes

    def with_ranges_of(self, columns: Table) -> TableEncoder:
        """Return the encoder with its training ranges extended to the values of additional training rows.

        Parameters
        ----------
        columns : Table
            Additional training rows, with the columns of ``fit``.

        Returns
        -------
        TableEncoder
            The encoder itself if its ranges contain all values, otherwise a copy that shares categories and cut points.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> from tanlearn.sources.columns import read_columns
        >>> encoder = TableEncoder(discrete_features=False).fit([[0.5], [1.5]], [0, 1])
        >>> encoder.with_ranges_of(read_columns([[1.0], [7.5]])).value_ranges_
        [(0.5, 7.5)]
        """
        known = [i for i, own in enumerate(self.value_ranges_) if own is not None]
        return self.with_ranges(value_ranges(columns, known))

    def with_ranges(self, others: list[tuple[float, float] | None]) -> TableEncoder:
        """Return the encoder with its training ranges extended to other ranges.

        Parameters
        ----------
        others : list of (tuple of (float, float) or None)
            One range per column. ``None`` leaves the range of the column unchanged.

        Returns
        -------
        TableEncoder
            The encoder itself if its ranges contain the other ranges, otherwise a copy that shares categories and cut
            points.

        Examples
        --------
        >>> from tanlearn import TableEncoder
        >>> encoder = TableEncoder(discrete_features=False).fit([[0.5], [1.5]], [0, 1])
        >>> encoder.with_ranges([(-1.0, 1.0)]).value_ranges_
        [(-1.0, 1.5)]
        """
        wider = wider_ranges(self.value_ranges_, others)
        if wider is self.value_ranges_:
            return self
        encoder = copy(self)
        encoder.value_ranges_ = wider
        return encoder

    def encode_columns(self, columns: Table, *, handle_unknown: str | None = None) -> Codes:
        """Encode columns that have already been read.

        Parameters
        ----------
        columns : Table
            Output of :func:`tanlearn.sources.columns.read_columns`, with the columns of ``fit``.
        handle_unknown : {"missing", "error"}, optional
            Treatment of unseen categories, as in :meth:`encode`.

        Returns
        -------
        ndarray of shape (n_features, n_samples), uint8 or uint16
            Codes as :meth:`encode` returns them.

        Raises
        ------
        ValueError
            If ``handle_unknown`` is invalid, or is "error" and a category is unseen.
        """
        unknown = self.handle_unknown if handle_unknown is None else handle_unknown
        if unknown not in ("missing", "error"):
            raise ValueError(f"handle_unknown must be 'missing' or 'error', got {unknown!r}. Pass one of them.")
        codes = self._encoder.encode(columns, unknown, self.n_jobs)
        warn_of_unseen(columns, self.categories_, codes)
        self._encoder.mark_missing(columns, codes)
        return codes

    def restore(
        self,
        categories: list[AnyArray | None],
        typical_values: list[AnyArray | None],
        discretizer: Any,
        value_ranges: list[tuple[float, float] | None] | None = None,
        has_missing_category: NDArray[np.bool_] | None = None,
    ) -> TableEncoder:
        """Set all fitted attributes from known values, for example from a file.

        Parameters
        ----------
        categories, typical_values : list of (ndarray or None)
            Values of ``categories_`` and ``typical_values_``.
        discretizer : object or None
            Discretizer that was fitted to the columns without categories, or ``None`` if all columns have categories.
        value_ranges : list of (tuple of (float, float) or None), optional
            Value of ``value_ranges_``. By default, all ranges are unknown.
        has_missing_category : ndarray of shape (n_features,), bool, optional
            Value of ``has_missing_category_``. By default, no column has such a category.

        Returns
        -------
        TableEncoder
            The encoder itself, fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from tanlearn import TableEncoder
        >>> TableEncoder().restore([np.array([3, 7])], [None], None).encode([[7], [3]])
        array([[1, 0]], dtype=uint8)
        """
        self.categories_, self.typical_values_, self.discretizer_ = categories, typical_values, discretizer
        self.is_declared_ = False
        self.value_ranges_ = [None] * len(categories) if value_ranges is None else value_ranges
        self.n_features_in_ = len(categories)
        self.is_discrete_: NDArray[np.bool_] = np.array([known is not None for known in categories])
        if has_missing_category is None:
            has_missing_category = np.zeros(len(categories), np.bool_)
        self.has_missing_category_ = has_missing_category
        self._encoder: ColumnEncoder = ColumnEncoder(categories, discretizer, has_missing_category)
        self.n_states_: IntArray = self._encoder.n_states
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
