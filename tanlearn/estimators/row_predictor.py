"""Fast prediction of single rows, for services: validation and lookup tables are prepared in advance."""

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
from tanlearn.kernels.scores import score_row
from tanlearn.models.bayes_net import BayesNet
from tanlearn.sources.columns import read_columns
from tanlearn.sources.table import shorten

__all__ = ["RowPredictor"]

#: Types that are looked up or compared directly. Other objects may equal a category here, but not in ``predict``.
_PLAIN = frozenset({str, bytes, bool, int, float, type(None), np.str_, np.bool_}) | {
    np.dtype(code).type for code in "bhilqBHILQefd"
}
_LARGEST = 2**63


class RowPredictor:
    """Fast predictor of single rows, in microseconds, as returned by ``row_predictor()`` of classifiers.

    It returns the classes of ``predict``, with the same warnings for rows of probability zero. Later changes of the
    classifier do not affect it. Threads may share it, and it can be pickled for other processes. Rows with unseen
    values, or with objects other than strings and numbers, are passed to the slower code of ``predict``, with the same
    results and errors.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted encoder.
    network : BayesNet
        Structure and CPTs.
    classes : ndarray of shape (n_classes,)
        Class labels in sorted order.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0], ["rain", 9.0]]
    >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach", "home"])
    >>> predictor = model.row_predictor()
    >>> predictor.predict(("sun", 29.0)), predictor.predict(("rain", None))
    ('beach', 'home')
    >>> predictor.predict_codes(model.encoder_.encode([["sun", 29.0]])[:, 0])
    'beach'
    """

    def __init__(self, encoder: TableEncoder, network: BayesNet, classes: AnyArray) -> None:
        self._encoder, self._network, self._tables, self._classes = encoder, network, network.tables, classes
        tables, layout = network.tables, network.tables.layout
        self._dtype = codes_dtype(int(layout.n_states.max()))
        self._missing = missing_code(self._dtype)
        self._is_rounded = tables.bits is not None
        self._has_zeros = tables.is_dense and not self._is_rounded and bool(np.isneginf(tables.cells).any())
        if tables.is_dense:
            self._arrays = tables.scoring_cells, layout.parents, layout.n_states, layout.offset, self._missing
        self._encoders: list[Callable[[Any], int]] = []
        self._others: dict[int, _Codes] = {}
        cuts = iter(getattr(encoder.discretizer_, "cut_points_", ()))
        codes_of_missing = np.where(encoder.has_missing_category_, encoder.n_states_ - 1, self._missing).tolist()
        for i, categories in enumerate(encoder.categories_):
            if categories is not None:
                known = _Codes(categories.tolist(), codes_of_missing[i])
                self._encoders.append(known.__getitem__)
                if not _PLAIN.issuperset(map(type, known)):
                    self._others[i] = known
            elif type(encoder.discretizer_) in CUT_POINT_DISCRETIZERS:
                self._encoders.append(_counter(next(cuts).tolist(), codes_of_missing[i]))
            else:
                self._encoders.append(_unknown)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._encoder, self._network, self._classes)

    def predict(self, row: Sequence[Any] | Mapping[str, Any]) -> Any:
        """Return the class of a row of raw values.

        Parameters
        ----------
        row : sequence of shape (n_features,), mapping or pandas Series
            A tuple or list of values in the column order of ``fit``. If the columns had names in ``fit``, also a
            mapping or a Series of values by name, which is slower. None and NaN are missing values.

        Returns
        -------
        object
            The predicted class.

        Raises
        ------
        ValueError
            If the length or the names of the row are wrong, a number is infinite, or a category is unseen and the
            encoder has ``handle_unknown="error"``.
        TypeError
            If the type of a value differs from ``fit``, the row is a string, or the row has names and ``fit`` had none.
        """
        if type(row) is not tuple and type(row) is not list:
            row = self._in_order(row)
        if len(row) != len(self._encoders):
            raise ValueError(
                f"the row holds {len(row)} value(s), but there were {len(self._encoders)} columns in fit. Pass one "
                f"value per column; None is a missing value."
            )
        if _PLAIN.issuperset(map(type, row)):
            try:
                codes = [encode(value) for encode, value in zip(self._encoders, row, strict=True)]
                return self._class_of(np.array(codes, np.intp))
            except (KeyError, OverflowError, TypeError, ValueError):  # unseen, invalid or too large values: see _encode
                pass
        return self._class_of(self._encode(row))

    def _in_order(self, row: Any) -> Sequence[Any]:
        """Return the values of a mapping, Series or other sequence in the order of the columns."""
        remedy = "pass a tuple, in the order of the columns in fit"
        if isinstance(row, str | bytes):
            raise TypeError(f"a row must be a sequence of values, got {shorten(row)}: {remedy}.")
        is_series = "pandas" in sys.modules and isinstance(row, sys.modules["pandas"].Series)
        if not is_series and not isinstance(row, Mapping):
            values: Sequence[Any] = row
            return values
        if not hasattr(self._encoder, "feature_names_in_"):
            if is_series and row.index.tolist() == list(range(len(row))):
                numbered: Sequence[Any] = row.tolist()  # a row of a frame without names
                return numbered
            kind = type(row).__name__
            raise TypeError(f"the row is a {kind}, but the columns had no names in fit: {remedy}.")
        known, given = self._encoder.feature_names_in_.tolist(), Counter(row.keys())
        for name in known:
            if given[name] != 1:
                raise ValueError(
                    f"the row has {given[name]} values for column {name!r} of fit, and needs one (None is a missing "
                    f"value). Its names are {', '.join(map(repr, row.keys()))}. Correct them, or {remedy}."
                )
        if len(given) > len(known):
            unknown = next(name for name in given if name not in known)
            raise ValueError(f"the row has a value for {unknown!r}, which was not a column in fit. Leave it out.")
        return [row[name] for name in known]

    def _encode(self, row: Sequence[Any]) -> IntArray:
        """Return the codes of a row, encoded as by ``predict``.

        Declared categories of unusual types are looked up here, because a list cannot declare them.
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
        """Return the class of a row of codes.

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
            If the number of codes is not the number of features, or a code is out of range.
        TypeError
            If the codes are not integers.
        """
        row = np.asarray(codes)
        if row.shape != (len(self._encoders),):
            raise ValueError(f"codes must have shape ({len(self._encoders)},), one per feature; got {row.shape}.")
        if row.dtype.kind not in "iu":
            raise TypeError(f"codes must be integers, got {row.dtype}. Pass a column of encoder_.encode(X).")
        return self._class_of(row.astype(np.intp, copy=False))

    def _class_of(self, row: IntArray) -> Any:
        """Return the class of a row of codes."""
        scores: FloatArray = np.empty(len(self._classes), self._tables.sum_dtype)
        if not self._tables.is_dense:
            wrong = (row != self._missing) & ((row < 0) | (row >= self._tables.layout.n_states))
            best = -2 if wrong.any() else -1
        else:
            best = score_row(row, *self._arrays, scores)
        if best == -2:
            wrong = (row != self._missing) & ((row < 0) | (row >= self._tables.layout.n_states))
            i = int(wrong.argmax())
            raise ValueError(
                f"code {row[i]} of feature {i} is out of range: its {self._tables.layout.n_states[i]} values have "
                f"codes from 0, and {self._missing} is a missing value."
            )
        if best == -1:
            column: AnyArray = row.astype(self._dtype)[:, np.newaxis]
            scores = self._network.log_joint(column)[0]
            best = int(scores.argmax())
        elif self._is_rounded:
            best = int(self._tables.decode(scores).argmax())
        if self._has_zeros and np.isneginf(scores[best]):
            best = replace_impossible(scores[np.newaxis], self._network.log_joint_without_features)[0].argmax().item()
        return self._classes[best]


class _Codes(dict[Any, int]):
    """Lookup table from category to code, in which None and NaN are missing."""

    def __init__(self, categories: Sequence[Any], missing: int) -> None:
        super().__init__({category: code for code, category in enumerate(categories)})
        self[None] = self._missing = missing

    def __missing__(self, value: Any) -> int:
        if value != value:
            return self._missing
        raise KeyError(value)


def _counter(cuts: list[float], missing: int) -> Callable[[Any], int]:
    """Return a function that counts the cut points below a number."""

    def count(value: Any) -> int:
        if value is None or value != value:
            return missing
        # As a Python float: NumPy booleans and float16 do not compare with 64-bit numbers. Strings raise TypeError.
        if not math.fabs(value) < _LARGEST:  # infinite, or more than 64 bits
            raise ValueError
        return bisect_left(cuts, float(value))

    return count


def _unknown(value: Any) -> int:
    """Raise KeyError, so that the encoder and its custom discretizer encode the row."""
    raise KeyError
