"""Fast prediction of single rows, for example in services, with validation and lookup tables prepared in advance."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.discretize import CUT_POINT_DISCRETIZERS
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.impossible_rows import replace_impossible
from tanlearn.models.calibration import Calibration
from tanlearn.models.model import Model
from tanlearn.sources.columns import MISSING_TYPES, read_columns
from tanlearn.sources.table import LARGEST_EXACT, shorten

__all__ = ["RowPredictor"]

_NUMBERS = frozenset({bool, int, float, np.bool_}) | {np.dtype(code).type for code in "bhilqBHILQefd"}
_STRINGS = frozenset({str, np.str_})
#: Types of values that are looked up or compared directly. In a lookup table, an object of another type may be equal to
#: a category although it is not equal in ``predict``.
_PLAIN = _NUMBERS | _STRINGS | {bytes, type(None)}
_LARGEST = 2**63


class RowPredictor:
    """Predictor of single rows within microseconds, returned by ``row_predictor()`` of classifiers.

    The predictor makes the same predictions as the classifier, with the same warnings for rows with probability zero.
    Later changes to the classifier do not affect the predictor. Threads may share it, and it can be pickled for other
    processes. Rows with missing or unseen values are predicted equally fast. If a row contains objects other than
    strings and numbers, or if the discretizer is a custom class, the row is encoded by the slower code of ``predict``,
    with the same results and errors.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted encoder.
    model : Model
        Fitted model, which predicts from codes.
    classes : ndarray of shape (n_classes,)
        Class labels in sorted order.
    calibration : Calibration, optional
        Calibration of the log joint. By default, the log joint is not calibrated.
    joint_error : str, optional
        Message of the AttributeError that :meth:`log_joint` raises. By default, :meth:`log_joint` is available.

    Notes
    -----
    The results are equal, bit for bit, to the results of ``predict``, ``predict_proba`` and ``predict_joint_log_proba``
    for the same row. There is one exception: in networks of terms with two or more parents per feature, log
    probabilities of rows with missing values may differ in the last digits.

    The predictor of a forest or an ensemble contains a copy of the parameters of the forest.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0], ["rain", 9.0]]
    >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach", "home"])
    >>> predictor = model.row_predictor()
    >>> predictor.predict(("sun", 29.0)), predictor.predict(("rain", None))
    ('beach', 'home')
    >>> predictor.predict_proba(("snow", 29.0)).round(2).tolist()
    [0.43, 0.57]
    >>> predictor.predict_codes(model.encoder_.encode([["sun", 29.0]])[:, 0])
    'beach'
    """

    def __init__(
        self,
        encoder: TableEncoder,
        model: Model,
        classes: AnyArray,
        calibration: Calibration | None = None,
        joint_error: str | None = None,
    ) -> None:
        self._encoder, self._model, self._classes = encoder, model, classes
        self._calibration = Calibration() if calibration is None else calibration
        self._joint_error = joint_error
        self._score = model.row_scorer()
        self._n_states = model.numbers_of_values()
        self._limits = self._n_states.astype(np.uintp)  # viewed as uintp, negative codes exceed the limits, too
        self._missing = missing_code(codes_dtype(int(self._n_states.max())))
        nothing = np.zeros(len(classes))
        shifted = self._calibration.shifted(nothing)
        self._shift: FloatArray | None = None if shifted is nothing else shifted
        self._encoders: list[Callable[[Any], int]] = []
        self._others: dict[int, _Codes] = {}
        cuts = iter(getattr(encoder.discretizer_, "cut_points_", ()))
        codes_of_missing = np.where(encoder.has_missing_category_, encoder.n_states_ - 1, self._missing).tolist()
        unseen = self._missing if encoder.handle_unknown == "missing" else None
        for i, categories in enumerate(encoder.categories_):
            if categories is not None:
                known = _Codes(categories.tolist(), codes_of_missing[i], unseen)
                self._encoders.append(known.__getitem__)
                if not _PLAIN.issuperset(map(type, known)):
                    self._others[i] = known
            elif type(encoder.discretizer_) in CUT_POINT_DISCRETIZERS:
                self._encoders.append(_counter(next(cuts).tolist(), codes_of_missing[i]))
            else:
                self._encoders.append(_unknown)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._encoder, self._model, self._classes, self._calibration, self._joint_error)

    def predict(self, row: Sequence[Any] | Mapping[str, Any]) -> Any:
        """Return the predicted class for a row of raw values.

        Parameters
        ----------
        row : sequence of shape (n_features,), mapping or pandas Series
            Tuple or list of values, in the order of the columns in ``fit``. If the columns had names in ``fit``, a
            mapping or Series from names to values is also accepted, but slower. None and NaN are missing values.

        Returns
        -------
        object
            The predicted class.

        Raises
        ------
        ValueError
            If the length or the names of the row are wrong, if a number is infinite, or if a category is unseen and the
            encoder has ``handle_unknown="error"``.
        TypeError
            If a value has another type than in ``fit``, if the row is a string, or if the row has names although the
            columns in ``fit`` had no names.

        Warns
        -----
        ImpossibleRowsWarning
            If the row has probability zero in every class. It is then predicted like a row in which every feature is
            missing.
        """
        return self._class_of(self._codes(row))

    def predict_proba(self, row: Sequence[Any] | Mapping[str, Any]) -> FloatArray:
        """Return the probability of each class for a row of raw values.

        Parameters
        ----------
        row : sequence of shape (n_features,), mapping or pandas Series
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_classes,)
            Probabilities, in the sorted order of the classes.

        Raises
        ------
        ValueError, TypeError
            As in :meth:`predict`.

        Warns
        -----
        ImpossibleRowsWarning
            As in :meth:`predict`.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"], ["rain"]], ["beach", "home", "home"])
        >>> model.row_predictor().predict_proba(("rain",)).round(2).tolist()
        [0.23, 0.77]
        """
        scores = self._possible(self._score(self._codes(row)))
        if self._calibration.power != 1:
            return np.exp(self._calibration.log_posterior(scores[np.newaxis])[0])
        # The operations of Calibration.log_posterior that are necessary for one row take 4 instead of 14 microseconds.
        scores = self._shifted(scores) / self._calibration.temperature
        scores -= scores.max()
        scores -= np.log(np.exp(scores).sum())
        return np.exp(scores, out=scores)

    def log_joint(self, row: Sequence[Any] | Mapping[str, Any]) -> FloatArray:
        """Return log p(class, features) for a row of raw values, with missing features marginalized.

        Parameters
        ----------
        row : sequence of shape (n_features,), mapping or pandas Series
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_classes,)
            Log joint probabilities, as returned by ``predict_joint_log_proba`` of the classifier, in the order of
            ``classes_``.

        Raises
        ------
        AttributeError
            If the classifier does not model the distribution of the features, for example a forest or an ensemble.
        ValueError, TypeError
            As in :meth:`predict`.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"], ["rain"]], ["beach", "home", "home"])
        >>> model.row_predictor().log_joint(("rain",)).round(2).tolist()
        [-2.01, -0.8]
        """
        if self._joint_error is not None:
            raise AttributeError(self._joint_error)
        return self._score(self._codes(row))

    def _codes(self, row: Sequence[Any] | Mapping[str, Any]) -> IntArray:
        """Return the codes (n_features,) of a row of raw values."""
        if type(row) is not tuple and type(row) is not list:
            row = self._in_order(row)
        if len(row) != len(self._encoders):
            raise ValueError(
                f"the row must have {len(self._encoders)} values, one for each column used in fit, got {len(row)}. "
                f"Pass None for a missing value."
            )
        if not _PLAIN.issuperset(map(type, row)):
            row = [None if type(value).__name__ in MISSING_TYPES else value for value in row]
        if _PLAIN.issuperset(map(type, row)):
            try:
                codes = [encode(value) for encode, value in zip(self._encoders, row, strict=True)]
                return np.array(codes, np.intp)
            except (KeyError, OverflowError, TypeError, ValueError):  # invalid or too large values (see _encode)
                pass
        return self._encode(row)

    def _in_order(self, row: Any) -> Sequence[Any]:
        """Return the values of a mapping, Series or other sequence in the order of the columns."""
        remedy = "pass a tuple, in the order of the columns in fit"
        if isinstance(row, str | bytes):
            raise TypeError(f"a row must be a sequence of values, got {shorten(row)}: {remedy}.")
        if not isinstance(row, tuple | list) and len(getattr(row, "shape", (0,))) != 1:
            raise TypeError(
                f"a row must be a sequence of values, got {type(row).__name__} of shape {tuple(row.shape)}. Pass one "
                f"row, such as X.iloc[0] or X[0], or pass all rows to the methods of the classifier."
            )
        is_series = "pandas" in sys.modules and isinstance(row, sys.modules["pandas"].Series)
        if not is_series and not isinstance(row, Mapping):
            values: Sequence[Any] = row
            return values
        if not hasattr(self._encoder, "feature_names_in_"):
            if is_series and row.index.tolist() == list(range(len(row))):
                numbered: Sequence[Any] = row.tolist()  # a row of a frame without column names
                return numbered
            kind = type(row).__name__
            raise TypeError(f"the row must not be a {kind}, because the columns had no names in fit: {remedy}.")
        known, given = self._encoder.feature_names_in_.tolist(), Counter(row.keys())
        for name in known:
            if given[name] != 1:
                raise ValueError(
                    f"the row must have exactly one value for each column used in fit (None if it is missing), but has "
                    f"{given[name]} values for column {name!r}. Its names are {', '.join(map(repr, row.keys()))}. Pass "
                    f"one value per name, or {remedy}."
                )
        if len(given) > len(known):
            unknown = next(name for name in given if name not in known)
            raise ValueError(f"the row has a value for {unknown!r}, which was not a column in fit. Leave it out.")
        return [row[name] for name in known]

    def _encode(self, row: Sequence[Any]) -> IntArray:
        """Encode a row in the same way as ``predict``.

        Declared categories of unusual types are looked up here, because a list of values cannot declare them.
        """
        values = list(row)
        declared = {}
        for i, known in self._others.items():
            with suppress(KeyError, TypeError):
                declared[i], values[i] = known[row[i]], None
        codes = self._encoder.encode_columns(read_columns([tuple(values)]))[:, 0].astype(np.intp)
        codes[list(declared)] = list(declared.values())
        return codes

    def predict_codes(self, codes: Sequence[int]) -> Any:
        """Return the predicted class for a row of codes.

        Parameters
        ----------
        codes : sequence of shape (n_features,), int
            A column of ``encoder_.encode(X)``.

        Returns
        -------
        object
            The predicted class.

        Raises
        ------
        ValueError
            If there is not exactly one code per feature, or if a code is out of range.
        TypeError
            If the codes are not integers.
        """
        row = np.asarray(codes)
        if row.shape != (len(self._encoders),):
            raise ValueError(f"codes must have shape ({len(self._encoders)},), one per feature, got {row.shape}.")
        if row.dtype.kind not in "iu":
            raise TypeError(f"codes must be integers, got {row.dtype}. Pass a column of encoder_.encode(X).")
        row = row.astype(np.intp, copy=False)
        if np.count_nonzero(row.view(np.uintp) >= self._limits):
            wrong = (row != self._missing) & ((row < 0) | (row >= self._n_states))
            if wrong.any():
                i = int(wrong.argmax())
                raise ValueError(
                    f"the code of feature {i} must be below {self._n_states[i]}, its number of values, or "
                    f"{self._missing} for a missing value, got {row[i]}."
                )
        return self._class_of(row)

    def _class_of(self, row: IntArray) -> Any:
        """Return the predicted class for a row of valid codes."""
        return self._classes[self._shifted(self._possible(self._score(row))).argmax()]

    def _possible(self, scores: FloatArray) -> FloatArray:
        """Return the scores. If they are -inf in every class, warn and return the scores of a row without features."""
        if scores.max() > -math.inf:
            return scores
        return replace_impossible(scores[np.newaxis], self._model.log_joint_without_features)[0]

    def _shifted(self, scores: FloatArray) -> FloatArray:
        """Return the scores whose maximum is the predicted class."""
        return scores if self._shift is None else scores + self._shift


class _Codes(dict[Any, int]):
    """Lookup table from category to code, in which None and NaN are missing values.

    All other values of the same kind have the code ``unseen``, or raise KeyError if ``unseen`` is None.
    """

    def __init__(self, categories: Sequence[Any], missing: int, unseen: int | None) -> None:
        super().__init__({category: code for code, category in enumerate(categories)})
        kinds = [kind for kind in (_STRINGS, _NUMBERS) if kind.issuperset(map(type, categories))]
        if kinds == [_NUMBERS] and max(map(abs, categories)) > LARGEST_EXACT:
            kinds = []  # other numbers may be equal to a float of another dtype
        self._kind = frozenset[type]().union(*kinds)
        self[None] = self._missing = missing
        self._unseen = unseen

    def __missing__(self, value: Any) -> int:
        if value != value:
            return self._missing
        kind = type(value)
        if self._unseen is None or kind not in self._kind:
            raise KeyError(value)
        if kind not in _STRINGS and not math.fabs(value) <= LARGEST_EXACT:  # infinite, or too large to compare exactly
            raise KeyError(value)
        return self._unseen


def _counter(cuts: list[float], missing: int) -> Callable[[Any], int]:
    """Return a function that counts the cut points below a number."""

    def count(value: Any) -> int:
        if value is None or value != value:
            return missing
        # fabs returns a Python float, because NumPy booleans and float16 cannot be compared with 64-bit numbers.
        # Strings raise TypeError.
        if not math.fabs(value) < _LARGEST:  # infinite, or more than 64 bits
            raise ValueError
        return bisect_left(cuts, float(value))

    return count


def _unknown(value: Any) -> int:
    """Raise KeyError, so that the row is encoded by the encoder with its custom discretizer."""
    raise KeyError
