"""Encoding of categorical values as integer codes, and decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn.encoding.column_kinds import find_categories
from tanlearn.encoding.column_warnings import warn_of_unseen
from tanlearn.sources.columns import read_columns
from tanlearn.sources.table import LARGEST_EXACT, TABLE_SPAN, Column, kind_of_value, shorten

__all__ = ["CategoryEncoder", "CategoryIndex", "decode", "encode_categories", "refuse_unseen"]

_N_SHOWN = 10


class CategoryEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Encode the categories of every feature as integer codes.

    Categories are compared by value. ``True``, ``1`` and ``1.0`` are the same category, and ``"1"`` is a different
    category. The categories of a feature are its distinct training values in sorted order. If a frame column declares
    categories (pandas ``category``, polars ``Enum``), all declared categories are used in their order, even if they do
    not occur. If a feature has no training values, ``n_states_`` is 1 and every later value is unseen.

    Parameters
    ----------
    handle_unknown : {"missing", "error"}, default="missing"
        Treatment of categories that were not seen in ``fit``: as missing values, or as an error.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Categories of every feature. The code of a category is its position.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of categories of every feature, at least 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, set only if ``X`` had column names.

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
            If a column mixes strings and numbers, or contains values of any other type.
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
            Codes ``0..n_states_[i] - 1``, and the largest value of the type for missing values, in Fortran order.

        Raises
        ------
        ValueError
            If the columns of X differ from ``fit``, if X contains infinity, or if it contains an unseen category and
            ``handle_unknown="error"``.
        TypeError
            If a column mixes strings and numbers, contains values of any other type, or contains strings instead of the
            numbers in ``fit``, or vice versa.
        """
        check_is_fitted(self)
        columns = read_columns(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        dtype = codes_dtype(int(self.n_states_.max()))
        codes: AnyArray = np.empty((len(columns), len(columns[0].values)), dtype)
        for i, (column, index) in enumerate(zip(columns, self._indexes, strict=True)):
            codes[i] = encode_categories(column, index, self.handle_unknown)
        warn_of_unseen(columns, self.categories_, codes)
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
            Categories, with ``None`` for missing values.

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
        codes = codes.T
        missing = codes == missing_code(codes_dtype(int(self.n_states_.max())))
        return decode(codes, missing, np.array([len(known) for known in self.categories_]), self.categories_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class CategoryIndex:
    """Lookup table from category to code, which is created in ``fit`` and used in every prediction."""

    def __init__(self, categories: AnyArray, dtype: type) -> None:
        self.categories = categories  # (n_categories,) the code of a category is its index
        self.dtype = dtype  # numpy.uint8 or numpy.uint16
        self.unseen = missing_code(dtype)
        self._table: AnyArray | None = None
        self._before = 0
        self._is_exact = False
        numeric = categories.dtype.kind in "biuf"
        self._order = np.argsort(categories) if numeric else None
        self._by_value = {} if numeric else self._numbered()
        are_integers = categories.dtype.kind in "biu" or (numeric and (categories == np.floor(categories)).all())
        if are_integers and len(categories) > 0:
            low, high = int(categories.min()), int(categories.max())
            # low - 1 and high + 1 must also be 64-bit integers.
            small = high - low < max(TABLE_SPAN, 4 * len(categories))
            if small and low > np.iinfo(np.int64).min and high < np.iinfo(np.int64).max:
                self._before = low - 1
                self._is_exact = low >= -LARGEST_EXACT and high <= LARGEST_EXACT
                self._table = np.full(high - low + 3, self.unseen, dtype)
                self._table[categories.astype(np.int64) - self._before] = np.arange(len(categories))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the dictionary, whose keys may be objects that file formats cannot store as keys."""
        return {**vars(self), "_by_value": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._by_value = {} if self._order is not None else self._numbered()

    def table_for(self, dtype: np.dtype[Any]) -> tuple[int, int, AnyArray] | None:
        """Return ``(low, stop, codes)``, the integer lookup table that kernels use for numbers of a dtype.

        ``codes`` covers ``low..stop - 1``, followed by the codes of other numbers and of NaN. Returns None if there is
        no such table, or if not all numbers of the dtype can be compared exactly with the categories.
        """
        if self._table is None or not (self._is_exact or dtype.kind == "i"):
            return None
        return self._before + 1, self._before + len(self._table) - 1, np.append(self._table[1:], self._table[-1])

    def _numbered(self) -> dict[Any, int]:
        """Return a dictionary from category to code."""
        return {category: code for code, category in enumerate(self.categories.tolist())}

    def encode(self, column: Column) -> Codes:
        """Return the codes of a column, with the missing code for missing and unseen values. Shape: (n_samples,)."""
        if column.categories is not None:
            # Index -1, a missing value, selects the appended entry.
            return np.append(self.codes(column.categories), self.dtype(self.unseen))[column.values]
        codes = self.codes(column.values)
        if column.missing is not None:
            codes[column.missing] = self.unseen
        return codes

    def codes(self, values: AnyArray) -> Codes:
        """Return the code of every value, or the missing code for an unseen value. Shape: (n_samples,)."""
        # Unsigned integers from 2**63 on become negative int64, which is harmless if no category is negative.
        fits = values.dtype.kind in "biu" and (self._before >= -1 or values.dtype != np.uint64)
        if self._table is not None and fits and (self._is_exact or self.categories.dtype.kind != "f"):
            # mode="clip" moves values outside the table to its ends, which are unseen. A difference that wraps around
            # is clipped to the opposite end.
            return self._table.take(values.astype(np.int64, copy=False) - self._before, mode="clip")
        if len(self.categories) == 0:
            return np.full(len(values), self.unseen, self.dtype)
        if self._order is None or values.dtype.kind not in "biuf":
            index = self._by_value or self._numbered()
            found = (index.get(value, self.unseen) for value in values.tolist())
            return np.fromiter(found, self.dtype, len(values))
        position = np.searchsorted(self.categories, values, sorter=self._order)
        code = self._order[np.minimum(position, len(self.categories) - 1)]
        return np.where(self.categories[code] == values, code, self.unseen).astype(self.dtype)


def encode_categories(column: Column, index: CategoryIndex, handle_unknown: str) -> Codes:
    """Return the codes (n_samples,) of a column. An unseen category raises ValueError if ``handle_unknown="error"``."""
    codes = index.encode(column)
    if len(index.categories) and codes[0] == index.unseen and (codes == index.unseen).all():
        _check_types(column, index.categories)
    if handle_unknown == "error":
        refuse_unseen(column, codes, index)
    return codes


def decode(codes: AnyArray, missing: NDArray[np.bool_], n_codes: IntArray, values: Sequence[Any]) -> AnyArray:
    """Return the values of feature-major codes as Python objects (None if missing). Shape: (n_samples, n_features).

    ``values`` contains the values of the codes of each feature. The value of additional codes, up to ``n_codes``, is
    None.
    """
    wrong = ~missing & ((codes < 0) | (codes >= n_codes[:, np.newaxis]) | (codes != np.floor(codes)))
    if wrong.any():
        i, row = np.argwhere(wrong)[0]
        raise ValueError(
            f"code {codes[i, row]} of feature {i}, sample {row}, is out of range: the feature has {n_codes[i]} codes, "
            f"numbered from 0."
        )
    found = np.full(codes.T.shape, None, dtype=object)
    for i, own in enumerate(values):
        known = np.full(int(n_codes[i]) + 1, None, dtype=object)  # the last entry is for missing codes
        known[: len(own)] = own
        found[:, i] = known[np.where(missing[i], -1, codes[i].astype(np.intp))]
    return found


def refuse_unseen(column: Column, codes: Codes, index: CategoryIndex) -> None:
    """Raise ValueError if a column contains a value that is not one of its categories."""
    unknown = (codes == index.unseen) & column.present
    if unknown.any():
        raise _unknown(column, int(unknown.argmax()), index.categories)


def _check_types(column: Column, categories: AnyArray) -> None:
    """Raise TypeError if values of a column cannot be equal to any category because of their type."""
    present = column.present
    # Without declared categories, all values of a column have the same kind.
    differ = column.values[present] if column.categories is not None else np.zeros(np.count_nonzero(present))
    rows = np.flatnonzero(present)[np.unique(differ, return_index=True)[1]].tolist()
    values = [column.value(row) for row in rows]
    if values and not {*map(kind_of_value, values)} & {*map(kind_of_value, categories.tolist())}:
        example = categories.tolist()[0]
        kinds = kind_of_value(values[0]), kind_of_value(example)
        raise TypeError(
            f"{column.label} holds {shorten(values[0])} in row {rows[0]}, of {kinds[0]}, but held {kinds[1]} such as "
            f"{shorten(example)} in fit, and these are never equal. Cast the column to the type that it had in fit."
        )


def _unknown(column: Column, row: int, categories: AnyArray) -> ValueError:
    """Return the error for an unseen category."""
    shown = ", ".join(map(repr, categories[:_N_SHOWN].tolist()))
    more = f", ... ({len(categories)} in all)" if len(categories) > _N_SHOWN else ""
    return ValueError(
        f"{column.label} holds {column.value(row)!r} in row {row}, which was not seen in fit; the categories "
        f"are {shown}{more}. Correct the value, fit with it, or set handle_unknown='missing'."
    )
