"""From a user's table, classes and weights to what learners learn from."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn._validation import Column, read_classes, read_columns, read_weights
from tanlearn.class_weights import weigh_classes
from tanlearn.discretize import MDLPDiscretizer
from tanlearn.encoded_data import EncodedData
from tanlearn.encoding import CategoryIndex, distinct, encode_categories, find_categories

__all__ = ["TableEncoder", "encode_rows", "encode_training"]

# An integer column with more distinct values than this is a quantity (a pixel, an age, an amount) far more
# often than a code, and as categories so many values would leave too few rows for every cell of a table.
MAX_INTEGER_CATEGORIES = 64


class TableEncoder(BaseEstimator):
    """Turn a table of categorical and continuous columns into codes.

    Categorical columns are numbered as :class:`~tanlearn.encoding.CategoryEncoder` does, continuous ones are
    discretised. It is what classifiers use inside ``fit``.

    Parameters
    ----------
    discrete_features : "auto", bool or array-like, default="auto"
        Which columns are categorical: all (``True``), none (``False``), a mask, or a list of column numbers
        or names. "auto" takes columns of floating type for continuous, columns of integers too if they hold
        more than 64 distinct training values, and all others for categorical. A column of Python numbers
        counts as one of floating type or of integers. A column of floating type that misses values counts as
        one of integers if all values it has are whole numbers, because one missing value is enough for pandas
        and NumPy to make floating numbers of integers.
    discretizer : object, optional
        How continuous columns are discretised: ``fit(X, y, sample_weight=None)`` and ``transform(X)``, which
        returns codes of shape (n_samples, n_features), uint8 or uint16, and the attribute ``n_states_``. By
        default :class:`~tanlearn.discretize.MDLPDiscretizer`.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do with a category that was not there in ``fit``: treat it as missing, or raise.
    n_jobs : int, optional
        Threads of the default discretizer.

    Attributes
    ----------
    is_discrete_ : ndarray of shape (n_features_in_,), bool
        Which columns are categorical.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of states of every feature.
    categories_ : list of (ndarray or None)
        Categories of every categorical feature, ``None`` for the others.
    discretizer_ : object or None
        The discretizer fitted to the continuous columns, in their order; ``None`` if there are none.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if the table had names.

    Examples
    --------
    >>> from tanlearn import TableEncoder
    >>> X = [["red", 1.0], ["blue", 2.0], ["red", 3.0], ["blue", 10.0], ["red", 11.0], [None, 12.0]]
    >>> encoder = TableEncoder().fit(X, [0, 0, 0, 1, 1, 1])
    >>> encoder.is_discrete_, encoder.n_states_
    (array([ True, False]), array([2, 2]))
    >>> encoder.transform(X)
    array([[  1,   0,   1,   0,   1, 255],
           [  0,   0,   0,   1,   1,   1]], dtype=uint8)
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
        """
        self._validate_params()
        columns = read_columns(X)
        validate_data(self, X, y, skip_check_array=True)
        columns, codes, _, weights, _ = _present(columns, y, sample_weight)
        self._learn(columns, codes, weights)
        return self

    def transform(self, X: Any) -> Codes:
        """Return the codes of a table.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            A table with the columns of ``fit``.

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
            If a column mixes strings and numbers, or a continuous one holds no numbers.
        """
        check_is_fitted(self)
        columns = read_columns(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._encode(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _learn(self, columns: list[Column], y: IntArray, sample_weight: AnyArray | None) -> None:
        """Fit to columns that are read already, after the names are known."""
        names = getattr(self, "feature_names_in_", None)
        self.is_discrete_ = _is_discrete(self.discrete_features, columns, names)
        pairs = list(zip(columns, self.is_discrete_, strict=True))
        self.categories_ = [find_categories(column) if discrete else None for column, discrete in pairs]
        n_categories = [0 if known is None else len(known) for known in self.categories_]
        self.n_states_: IntArray = np.maximum(np.array(n_categories, dtype=np.intp), 1)
        self.discretizer_ = None
        if not self.is_discrete_.all():
            unfitted = MDLPDiscretizer(n_jobs=self.n_jobs) if self.discretizer is None else self.discretizer
            self.discretizer_ = clone(unfitted).fit(self._continuous(columns), y, sample_weight)
            self.n_states_[~self.is_discrete_] = self.discretizer_.n_states_
        dtype = codes_dtype(int(self.n_states_.max()))
        self._indexes = [None if known is None else CategoryIndex(known, dtype) for known in self.categories_]

    def _encode(self, columns: list[Column], handle_unknown: str | None = None) -> Codes:
        """Encode columns read already; held-out rows take unknown categories for missing whatever the user wants."""
        unknown = self.handle_unknown if handle_unknown is None else handle_unknown
        dtype = codes_dtype(int(self.n_states_.max()))
        codes: AnyArray = np.empty((len(columns), len(columns[0].values)), dtype)
        for i, (column, index) in enumerate(zip(columns, self._indexes, strict=True)):
            if index is not None:
                codes[i] = encode_categories(column, index, unknown)
        if self.discretizer_ is not None:
            found = self.discretizer_.transform(self._continuous(columns)).T
            missing = found == missing_code(found.dtype)
            codes[~self.is_discrete_] = np.where(missing, dtype(missing_code(dtype)), found)
        return codes

    def _continuous(self, columns: list[Column]) -> AnyArray:
        """Return the continuous columns side by side, in Fortran order."""
        chosen = np.flatnonzero(~self.is_discrete_)
        return np.stack([columns[i].numbers() for i in chosen]).T


def encode_training(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, validation_fraction: float | None = None
) -> tuple[EncodedData, EncodedData | None]:
    """Check what an estimator's ``fit`` was given, and encode it.

    Sets ``encoder_``, ``classes_``, ``n_features_in_`` and, if the table has names, ``feature_names_in_`` on the
    estimator. Rows of weight 0 are dropped before anything is learnt from them, exactly as if they were absent.

    Parameters
    ----------
    estimator : estimator
        Its ``encoder`` is a :class:`TableEncoder`, which is cloned, or ``None`` for one with the estimator's
        ``n_jobs``; its ``class_weight`` multiplies the weights. scikit-learn's messages name the estimator.
    X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        Classes, at least two.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    validation_fraction : float, optional
        Share of the rows, class by class, that is held out: categories and cuts are not learnt from it. Drawn
        with the estimator's ``random_state``.

    Returns
    -------
    data : EncodedData
        The rows to learn from.
    held_out : EncodedData or None
        The rows held out, with values that the others lack marked as missing.

    Raises
    ------
    ValueError
        If the table, the classes, the weights or a parameter of the encoder break a rule, which the message
        states.
    TypeError
        If a column mixes strings and numbers, holds something else, or is continuous and no number.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.border import encode_training
    >>> estimator = NaiveBayesClassifier()
    >>> data, _ = encode_training(estimator, [["a"], ["b"], ["c"]], ["no", "yes", "no"], sample_weight=[1, 2, 0])
    >>> data
    EncodedData(n_samples=2, n_features=1, n_classes=2, n_states=2..2, weighted=True, missing=False)
    >>> estimator.classes_
    array(['no', 'yes'], dtype=object)
    """
    columns = read_columns(X)
    validate_data(estimator, X, y, skip_check_array=True)
    columns, codes, classes, weights, numbers = _present(columns, y, sample_weight)
    weights = weigh_classes(estimator.class_weight, codes, classes, weights)
    encoder = TableEncoder(n_jobs=estimator.n_jobs) if estimator.encoder is None else clone(estimator.encoder)
    encoder._validate_params()
    validate_data(encoder, X, skip_check_array=True)
    estimator.encoder_ = encoder
    estimator.classes_ = classes
    held_out = None
    if validation_fraction is None:
        encoder._learn(columns, codes, weights)
    else:
        held_out = hold_out(codes, len(classes), validation_fraction, generator(estimator.random_state))
        rest = ~held_out
        encoder._learn(
            [column.take(rest) for column in columns], codes[rest], None if weights is None else weights[rest]
        )
    places = tuple(column.place for column in columns)
    table = encoder._encode(columns, "missing")  # rows that were learnt from hold no unknown category
    data = EncodedData(table, encoder.n_states_, codes, len(classes), weights, places, numbers)
    return (data, None) if held_out is None else (data.take(~held_out), data.take(held_out))


def forget(estimator: Any) -> None:
    """Delete what an earlier fit left, so that one that fails leaves no mixture of two models.

    Parameters
    ----------
    estimator : estimator
        Loses every attribute whose name ends in an underscore.
    """
    for learnt in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, learnt)


def encode_held_out(encoder: TableEncoder, X: Any) -> Codes:
    """Encode rows to score on: categories that the training rows lack are missing, whatever ``handle_unknown``.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted to the training rows.
    X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        Rows of the table that the training rows came from.

    Returns
    -------
    ndarray of shape (n_features, n_samples), uint8 or uint16
    """
    return encoder._encode(read_columns(X), "missing")


def hold_out(y: IntArray, n_classes: int, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the rows to hold out: a share of every class, to the nearest row, but never all of them.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Class codes.
    n_classes : int
        Number of classes.
    fraction : float
        The share.
    rng : numpy.random.Generator
        Where randomness comes from.

    Returns
    -------
    ndarray of shape (n_samples,), bool

    Raises
    ------
    ValueError
        If the share is too small for a single row.
    """
    held_out = np.zeros(len(y), dtype=np.bool_)
    for c in range(n_classes):
        rows = rng.permutation(np.flatnonzero(y == c))
        held_out[rows[: min(round(fraction * rows.size), max(rows.size - 1, 0))]] = True
    if not held_out.any():
        raise ValueError(f"a held-out share of {fraction} of {len(y)} rows is not one row. Raise the share.")
    return held_out


def deal_folds(y: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Draw the fold of every row: of every class, and of all rows, folds get equally many to the nearest one.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Class codes.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Where randomness comes from.

    Returns
    -------
    ndarray of shape (n_samples,)
        Numbers of folds from 0.

    Raises
    ------
    ValueError
        If there are fewer rows than folds.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.border import deal_folds
    >>> np.bincount(deal_folds(np.array([0, 0, 0, 1, 1]), 2, np.random.default_rng(0))).tolist()
    [3, 2]
    """
    if len(y) < n_folds:
        raise ValueError(
            f"{n_folds} folds need as many rows of positive weight, but there are {len(y)}. Ask for fewer folds."
        )
    order = rng.permutation(len(y))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % n_folds
    return fold


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator of what scikit-learn calls a random state; an int gives the same one each time.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        What an estimator was given.

    Returns
    -------
    numpy.random.Generator
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def encode_rows(estimator: Any, X: Any) -> Codes:
    """Check what an estimator's ``predict`` was given, and encode it with the estimator's ``encoder_``.

    Parameters
    ----------
    estimator : estimator
        Fitted with :func:`encode_training`; scikit-learn's messages name it.
    X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        A table with the columns of the training table.

    Returns
    -------
    ndarray of shape (n_features, n_samples), uint8 or uint16
        As :meth:`TableEncoder.transform` returns it.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If X has other columns than in ``fit``, is infinite somewhere, or holds an unseen category and
        ``handle_unknown="error"``.
    TypeError
        If a column mixes strings and numbers, or a continuous one holds no numbers.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.border import encode_rows
    >>> estimator = NaiveBayesClassifier().fit([["a"], ["b"]], [0, 1])
    >>> encode_rows(estimator, [["b"], ["c"]])
    array([[  1, 255]], dtype=uint8)
    """
    check_is_fitted(estimator)
    columns = read_columns(X)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    codes: Codes = estimator.encoder_._encode(columns)
    return codes


def _present(
    columns: list[Column], y: Any, sample_weight: Any
) -> tuple[list[Column], IntArray, AnyArray, AnyArray | None, IntArray]:
    """Return columns, class codes, classes, weights and numbers of the rows whose weight is not zero."""
    n_samples = len(columns[0].values)
    weights = read_weights(sample_weight, n_samples)
    if weights is None or weights.all():
        codes, classes = read_classes(y, n_samples)
        return columns, codes, classes, weights, np.arange(n_samples)
    rows = weights > 0
    codes, classes = read_classes(y, n_samples, rows)
    return [column.take(rows) for column in columns], codes, classes, weights[rows], np.flatnonzero(rows)


def _is_discrete(option: Any, columns: list[Column], names: AnyArray | None) -> NDArray[np.bool_]:
    """Return which columns are categorical."""
    if isinstance(option, str):  # "auto", the only string that the constraints let pass
        return np.array([_looks_categorical(column) for column in columns])
    n_features = len(columns)
    chosen = np.asarray(option)
    if chosen.ndim == 0:
        return np.full(n_features, bool(option))
    if chosen.dtype.kind == "b" and chosen.shape == (n_features,):
        return chosen.copy()
    numbers = chosen
    if chosen.dtype.kind in "UO" and names is not None:
        place = {name: i for i, name in enumerate(names)}
        numbers = np.array([place.get(name, -1) for name in chosen])
    elif chosen.size == 0:
        numbers = chosen.astype(np.intp)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1 or ((numbers < 0) | (numbers >= n_features)).any():
        known = "without names" if names is None else f"named {', '.join(map(repr, names.tolist()))}"
        raise ValueError(
            f"discrete_features must be 'auto', a bool, a mask of shape ({n_features},), or a list of column "
            f"numbers from 0 to {n_features - 1} or of column names; got {option!r} for columns {known}."
        )
    discrete = np.zeros(n_features, dtype=np.bool_)
    discrete[numbers] = True
    return discrete


def _looks_categorical(column: Column) -> bool:
    """Return whether "auto" takes a column for categorical."""
    kind = column.values.dtype.kind
    if column.categories is not None or kind not in "iuf":
        return True
    values = column.values if column.missing is None else column.values[~column.missing]
    # One missing value is enough for pandas and NumPy to make floating numbers of integers.
    integral = kind != "f" or (column.missing is not None and len(values) > 0 and (values == np.floor(values)).all())
    return bool(integral) and len(distinct(column)) <= MAX_INTEGER_CATEGORIES
