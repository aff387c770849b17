"""Encoding of categorical values as integer codes, and decoding."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn._warnings import warn
from tanlearn.sources.category_index import CategoryIndex, distinct_values
from tanlearn.sources.columns import read_columns, shorten
from tanlearn.sources.table import Column

__all__ = [
    "LARGEST_N_STATES",
    "CategoryEncoder",
    "check_n_categories",
    "encode_categories",
    "find_categories",
    "refuse_unseen",
    "warn_of_new_categories",
    "warn_of_unseen",
]

#: Largest number of categories of a column.
LARGEST_N_STATES = missing_code(np.uint16)
_N_SHOWN = 10
# Below this number of values, an entirely unseen column is no reason to warn. If half of a column's values are unseen,
# ten unseen values in a row occur by chance once in 1,000 data sets; a single row, as in production, proves nothing.
_FEWEST_UNSEEN = 10


class CategoryEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Encode the categories of every feature as integer codes.

    Categories are compared by value: ``True``, ``1`` and ``1.0`` are one category, ``"1"`` is another. The
    categories of a feature are its distinct training values, sorted. A frame column that declares
    categories (pandas ``category``, polars ``Enum``) has all declared categories, seen or not, in their order. If a
    feature has no training values, ``n_states_`` is 1 and every later value is unseen.

    Parameters
    ----------
    handle_unknown : {"missing", "error"}, default="missing"
        How to treat a category that was not seen in ``fit``: as missing, or as an error.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Categories of every feature; the code of a category is its index.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of categories of every feature, at least 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Set only if X has column names.

    Examples
    --------
    >>> from tanlearn.encoding.categories import CategoryEncoder
    >>> encoder = CategoryEncoder().fit([["Graz", 1], ["Linz", 3], ["Graz", None]])
    >>> encoder.categories_
    [array(['Graz', 'Linz'], dtype=object), array([1, 3])]
    >>> codes = encoder.transform([["Linz", 1], ["Wels", 3]])
    >>> codes
    array([[  1,   0],
           [255,   1]], dtype=uint8)
    >>> encoder.inverse_transform(codes)
    array([['Linz', 1],
           [None, 3]], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"handle_unknown": [StrOptions({"missing", "error"})]}

    def __init__(self, *, handle_unknown: str = "missing") -> None:
        self.handle_unknown = handle_unknown

    def fit(self, X: Any, y: Any = None) -> CategoryEncoder:
        """Find the categories of every feature.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Strings, numbers, booleans or categories. NaN, None and other null values mean missing.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        CategoryEncoder
            Fitted encoder.

        Raises
        ------
        ValueError
            If X is empty or contains infinity, or a column has more than 65,535 categories.
        TypeError
            If a column mixes strings and numbers, or contains another type.
        """
        self._validate_params()
        columns = read_columns(X)
        validate_data(self, X, skip_check_array=True)
        self.categories_ = [find_categories(column) for column in columns]
        self.n_states_: IntArray = np.array([max(len(known), 1) for known in self.categories_], dtype=np.intp)
        dtype = codes_dtype(int(self.n_states_.max()))
        self._indexes = [CategoryIndex(known, dtype) for known in self.categories_]
        return self

    def transform(self, X: Any) -> Codes:
        """Encode categories as integer codes.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Data with the columns of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_features), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, or the largest value of the type for a missing value; in Fortran order.

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, contains infinity, or contains an unseen category and
            ``handle_unknown="error"``.
        TypeError
            If a column mixes strings and numbers, contains another type, or contains strings where ``fit`` had numbers
            or numbers where ``fit`` had strings.
        """
        check_is_fitted(self)
        columns = read_columns(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        dtype = codes_dtype(int(self.n_states_.max()))
        codes: AnyArray = np.empty((len(columns), len(columns[0].values)), dtype)
        for i, (column, index) in enumerate(zip(columns, self._indexes, strict=True)):
            codes[i] = encode_categories(column, index, self.handle_unknown)
        warn_of_unseen(columns, self._indexes, codes)
        return codes.T

    def inverse_transform(self, X: Any) -> AnyArray:
        """Decode integer codes to categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), integer
            Codes as ``transform`` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object
            The categories, ``None`` for missing values.

        Raises
        ------
        ValueError
            If X has the wrong shape or dtype, or a code is out of range.
        """
        check_is_fitted(self)
        codes = np.asarray(X)
        if codes.ndim != 2 or codes.shape[1] != self.n_features_in_ or codes.dtype.kind not in "iu":
            raise ValueError(
                f"X must hold integers of shape (n_samples, {self.n_features_in_}), got shape {codes.shape} "
                f"of dtype {codes.dtype}."
            )
        missing = codes == missing_code(codes_dtype(int(self.n_states_.max())))
        n_categories = np.array([len(known) for known in self.categories_])
        wrong = ~missing & ((codes < 0) | (codes >= n_categories))
        if wrong.any():
            row, j = np.argwhere(wrong)[0]
            raise ValueError(
                f"code {codes[row, j]} in row {row}, column {j} is out of range: the column has "
                f"{n_categories[j]} categories, numbered from 0."
            )
        values = np.full(codes.shape, None, dtype=object)
        for j, known in enumerate(self.categories_):
            present = ~missing[:, j]
            values[present, j] = known.astype(object)[codes[present, j]]
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def find_categories(column: Column) -> AnyArray:
    """Return the categories of a column, shape (n_categories,): declared ones in their order, otherwise sorted."""
    categories = column.categories
    if categories is None:
        categories = distinct_values(column)
    elif not column.is_declared:
        occurs = np.zeros(len(categories) + 1, np.bool_)  # the extra entry is for -1, a missing value
        occurs[column.values] = True
        categories = np.array(sorted(categories[occurs[:-1]].tolist()), dtype=object)
    check_n_categories(len(categories), column.label)
    return categories


def check_n_categories(n_categories: int, label: str) -> None:
    """Raise ValueError if a column has more than 65,535 categories."""
    if n_categories > LARGEST_N_STATES:
        raise ValueError(
            f"{label} has {n_categories} categories, more than {LARGEST_N_STATES}. It looks like "
            f"an identifier or a continuous column: drop it, or discretize it."
        )


def encode_categories(column: Column, index: CategoryIndex, handle_unknown: str) -> Codes:
    """Return the codes of a column, shape (n_samples,); ``handle_unknown="error"`` raises for an unseen category."""
    if column.categories is None:
        codes = index.codes(column.values)
        if column.missing is not None:
            codes[column.missing] = index.unseen
    else:
        # The appended entry is selected by -1, the index of a missing value.
        codes = np.append(index.codes(column.categories), index.dtype(index.unseen))[column.values]
    if len(index.categories) and codes[0] == index.unseen and (codes == index.unseen).all():
        _check_types(column, index.categories)
    if handle_unknown == "error":
        refuse_unseen(column, codes, index)
    return codes


def refuse_unseen(column: Column, codes: Codes, index: CategoryIndex) -> None:
    """Raise ValueError if a column contains a value that is not one of its categories."""
    unknown = codes == index.unseen
    if column.missing is not None:
        unknown &= ~column.missing
    if unknown.any():
        raise _unknown(column, int(unknown.argmax()), index.categories)


def warn_of_unseen(columns: Sequence[Column], indexes: Sequence[CategoryIndex | None], codes: Codes) -> None:
    """Warn once about columns with at least ten values of which none was seen in ``fit``.

    ``codes`` has shape (n_features, n_samples). Columns that had no value in ``fit`` are skipped.
    """
    unseen = missing_code(codes.dtype)
    found: list[str] = []
    if codes.shape[1] < _FEWEST_UNSEEN:
        return
    for number, (index, row) in enumerate(zip(indexes, codes, strict=True)):
        if index is None or row[0] != unseen or not len(index.categories) or not (row == unseen).all():
            continue
        column = columns[number]
        present = np.arange(len(row)) if column.missing is None else np.flatnonzero(~column.missing)
        if len(present) >= _FEWEST_UNSEEN:
            known = shorten(np.asarray(index.categories[0]).item())
            found.append(f"{column.label} (holds {shorten(_value(column, present[0]))}, fit had {known})")
    if found:
        more = f", and {len(found) - _N_SHOWN:,} more" if len(found) > _N_SHOWN else ""
        warn(
            f"no value in {len(found):,} column(s) was seen in fit, so all of them count as missing: "
            f"{', '.join(found[:_N_SHOWN])}{more}. Write the values as in fit, or fit again with these rows.",
            UserWarning,
        )


def warn_of_new_categories(columns: Sequence[Column], categories: Sequence[AnyArray | None], codes: Codes) -> None:
    """Warn once about training rows with categories that the fitted encoder does not have.

    ``codes`` has shape (n_features, n_samples). Columns reported by :func:`warn_of_unseen` are skipped.
    """
    is_unseen, found = codes == missing_code(codes.dtype), []
    for number in np.flatnonzero(is_unseen.any(axis=1)).tolist():
        known, column = categories[number], columns[number]
        if known is None:
            continue
        present = np.ones(codes.shape[1], np.bool_) if column.missing is None else ~column.missing
        n_unseen = int((is_unseen[number] & present).sum())
        is_named = len(known) and n_unseen == present.sum() >= _FEWEST_UNSEEN  # reported by warn_of_unseen
        if n_unseen and not is_named:
            found.append(column.label)
    if found:
        more = f", and {len(found) - _N_SHOWN:,} more" if len(found) > _N_SHOWN else ""
        # The values are left out: identical text for every chunk, so that Python shows the warning once.
        warn(
            f"{len(found):,} column(s) contain categories that were not seen when the encoder was fitted, which count "
            f"as missing: {', '.join(found[:_N_SHOWN])}{more}. Start with more rows (a larger first chunk), or declare "
            f"the categories (pandas category, polars Enum). check_rows(X) counts such rows.",
            UserWarning,
        )


def _check_types(column: Column, categories: AnyArray) -> None:
    """Raise TypeError if the type of a column's values rules out that any of them equals a category."""
    present = np.ones(len(column.values), np.bool_) if column.missing is None else ~column.missing
    # Without declared categories, all values of a column have one kind.
    differ = column.values[present] if column.categories is not None else np.zeros(np.count_nonzero(present))
    rows = np.flatnonzero(present)[np.unique(differ, return_index=True)[1]].tolist()
    values = [_value(column, row) for row in rows]
    if values and not {*map(_kind, values)} & {*map(_kind, categories.tolist())}:
        example = categories.tolist()[0]
        raise TypeError(
            f"{column.label} holds {shorten(values[0])} in row {rows[0]}, of {_kind(values[0])}, but held "
            f"{_kind(example)} such as {shorten(example)} in fit, and these are never equal. Cast the column to its "
            f"type in fit."
        )


def _kind(value: Any) -> str:
    """Return the kind of a value; values of different kinds are never equal."""
    kinds = {Real: "numbers", str: "strings", bytes: "bytes"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), type(value).__name__)


def _value(column: Column, row: int) -> Any:
    """Return the value of a column in one row, as a Python object."""
    value = column.values[row] if column.categories is None else column.categories[column.values[row]]
    return np.asarray(value).item()


def _unknown(column: Column, row: int, categories: AnyArray) -> ValueError:
    """Return the error for an unseen category."""
    shown = ", ".join(map(repr, categories[:_N_SHOWN].tolist()))
    more = f", ... ({len(categories)} in all)" if len(categories) > _N_SHOWN else ""
    return ValueError(
        f"{column.label} holds {_value(column, row)!r} in row {row}, which was not seen in fit; the categories "
        f"are {shown}{more}. Correct the value, fit with it, or set handle_unknown='missing'."
    )
