"""Categories to codes and back."""

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
from tanlearn.data.category_index import TABLE_SPAN, CategoryIndex
from tanlearn.data.columns import read_columns, shorten
from tanlearn.data.table import Column

__all__ = [
    "LARGEST_N_STATES",
    "CategoryEncoder",
    "check_number",
    "distinct",
    "encode_categories",
    "find_categories",
    "refuse_unseen",
    "warn_of_new_categories",
    "warn_of_unseen",
]

#: So many categories a column may have.
LARGEST_N_STATES = missing_code(np.uint16)
_N_SHOWN = 10
# A column with fewer values that are all unseen may be as it should: where half of the values of a column are unseen,
# ten in a row are so by chance once in 1,000 tables, and one row, as in production, says nothing.
_FEWEST_UNSEEN = 10


class CategoryEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Number the categories of every feature.

    Categories are compared by value: ``True``, ``1`` and ``1.0`` are one category, ``"1"`` is another. A
    feature has the categories that its training rows hold, sorted; a column of a frame that declares
    categories (pandas ``category``, polars ``Enum``) has all of these, seen or not, in their order. A feature
    without any training value has one state, and every value of it is unseen.

    Parameters
    ----------
    handle_unknown : {"missing", "error"}, default="missing"
        What to do with a category that was not there in ``fit``: treat it as missing, or raise.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Categories of every feature; the code of a category is its index.
    n_states_ : ndarray of shape (n_features_in_,), intp
        Number of categories of every feature, at least 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the table had names.

    Examples
    --------
    >>> from tanlearn.data.categories import CategoryEncoder
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
        """Find the categories.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Strings, numbers, booleans or categories; NaN, None and the like mean missing.
        y : Ignored
            For scikit-learn's pipelines.

        Returns
        -------
        CategoryEncoder
            Itself.

        Raises
        ------
        ValueError
            If X is empty or infinite somewhere, or a column has more than 65,535 categories.
        TypeError
            If a column mixes strings and numbers, or holds something else.
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
        """Return the codes of the categories.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_features), uint8 or uint16
            Codes ``0..n_states_[i] - 1``, or the largest value of the type for "missing"; in Fortran order.

        Raises
        ------
        ValueError
            If X has other columns than in ``fit``, is infinite somewhere, or holds an unseen category and
            ``handle_unknown="error"``.
        TypeError
            If a column mixes strings and numbers, holds something else, or strings where there were numbers or numbers
            where there were strings.
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
        """Return the categories of codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), integer
            Codes as ``transform`` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object
            The categories, ``None`` where missing.

        Raises
        ------
        ValueError
            If the shape or a code does not fit.
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
                f"code {codes[row, j]} in row {row}, column {j} stands for nothing: the column has "
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
    """Return the categories of a column.

    Shapes: result: (n_categories,).
    """
    categories = column.categories
    if categories is None:
        categories = distinct(column)
    elif not column.is_declared:
        occurs = np.zeros(len(categories) + 1, np.bool_)  # one more at the end, which -1 finds
        occurs[column.values] = True
        categories = np.array(sorted(categories[occurs[:-1]].tolist()), dtype=object)
    check_number(len(categories), column.place)
    return categories


def check_number(n_categories: int, place: str) -> None:
    """Refuse more categories than codes can number."""
    if n_categories > LARGEST_N_STATES:
        raise ValueError(
            f"{place} has {n_categories} categories, more than {LARGEST_N_STATES}. It looks like "
            f"an identifier or a continuous column: drop it, or discretise it."
        )


def encode_categories(column: Column, index: CategoryIndex, handle_unknown: str) -> Codes:
    """Return the codes of a column.

    Shapes: result: (n_samples,).
    """
    if column.categories is None:
        codes = index.codes(column.values)
        if column.missing is not None:
            codes[column.missing] = index.unseen
    else:
        # One more entry at the end, which -1, the index of a missing value, finds.
        codes = np.append(index.codes(column.categories), index.dtype(index.unseen))[column.values]
    if len(index.categories) and codes[0] == index.unseen and (codes == index.unseen).all():
        _check_types(column, index.categories)
    if handle_unknown == "error":
        refuse_unseen(column, codes, index)
    return codes


def refuse_unseen(column: Column, codes: Codes, index: CategoryIndex) -> None:
    """Raise if a column holds what is no category of it.

    Shapes: codes: (n_samples,).
    """
    unknown = codes == index.unseen
    if column.missing is not None:
        unknown &= ~column.missing
    if unknown.any():
        raise _unknown(column, int(unknown.argmax()), index.categories)


def warn_of_unseen(columns: Sequence[Column], indexes: Sequence[CategoryIndex | None], codes: Codes) -> None:
    """Warn, once, of columns in which nothing is known: such values count as missing, and what they tell is lost.

    Shapes: codes: (n_features, n_samples).
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
            found.append(f"{column.place} holds {shorten(_value(column, present[0]))}, where {known} is known")
    if found:
        more = f", and {len(found) - _N_SHOWN:,} more" if len(found) > _N_SHOWN else ""
        warn(
            f"nothing in {len(found):,} column(s) was there in fit, so all of it counts as missing: "
            f"{', '.join(found[:_N_SHOWN])}{more}. Write the values as they were in fit, or fit with these, too.",
            UserWarning,
        )


def warn_of_new_categories(columns: Sequence[Column], categories: Sequence[AnyArray | None], codes: Codes) -> None:
    """Warn, once, of training rows with categories that the fitted encoder does not have.

    Shapes: codes: (n_features, n_samples).
    """
    is_unseen, found = codes == missing_code(codes.dtype), []
    for number in np.flatnonzero(is_unseen.any(axis=1)).tolist():
        known, column = categories[number], columns[number]
        if known is None:
            continue
        present = np.ones(codes.shape[1], np.bool_) if column.missing is None else ~column.missing
        n_unseen = int((is_unseen[number] & present).sum())
        is_named = len(known) and n_unseen == present.sum() >= _FEWEST_UNSEEN  # by warn_of_unseen
        if n_unseen and not is_named:
            found.append(column.place)
    if found:
        more = f", and {len(found) - _N_SHOWN:,} more" if len(found) > _N_SHOWN else ""
        # The values are left out: the same words for every chunk of a stream, so that Python shows them once.
        warn(
            f"{len(found):,} column(s) hold categories that the encoder was fitted without, so that these count as "
            f"missing: {', '.join(found[:_N_SHOWN])}{more}. Begin with more rows (a larger first chunk), or declare "
            f"the categories (pandas category, polars Enum). check_rows(X) counts such rows.",
            UserWarning,
        )


def distinct(column: Column) -> AnyArray:
    """Return the distinct values of a column, sorted.

    Shapes: result: (n_values,).
    """
    values = column.values if column.missing is None else column.values[~column.missing]
    if values.dtype.kind in "iu" and values.size > 0:
        low, high = values.min(), values.max()
        span = int(high) - int(low)
        if span < TABLE_SPAN:
            # 16 us for 7,000 values, for which numpy.unique takes 94. In 64 bits the differences are right even where
            # they wrap around.
            present = np.zeros(span + 1, np.bool_)
            present[values.astype(np.int64, copy=False) - low.astype(np.int64)] = True
            return np.flatnonzero(present).astype(values.dtype) + low
    if values.dtype.kind in "biuf":
        return np.unique(values)
    # Python's hashes take 1 ms for 60,000 strings, sorting them all 27 ms.
    return np.array(sorted(set(values.tolist())), dtype=object)


def _check_types(column: Column, categories: AnyArray) -> None:
    """Raise if no value of a column can be a category, because of their types."""
    present = np.ones(len(column.values), np.bool_) if column.missing is None else ~column.missing
    # Without a declaration, all values of a column are of one kind.
    differ = column.values[present] if column.categories is not None else np.zeros(np.count_nonzero(present))
    rows = np.flatnonzero(present)[np.unique(differ, return_index=True)[1]].tolist()
    values = [_value(column, row) for row in rows]
    if values and not {*map(_kind, values)} & {*map(_kind, categories.tolist())}:
        example = categories.tolist()[0]
        raise TypeError(
            f"{column.place} holds {shorten(values[0])} in row {rows[0]}, of {_kind(values[0])}, but held "
            f"{_kind(example)} such as {shorten(example)} in fit, and these are never equal. Cast the column to its "
            f"type in fit."
        )


def _kind(value: Any) -> str:
    """Return what a value has to be of to be equal to this one."""
    kinds = {Real: "numbers", str: "strings", bytes: "bytes"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), type(value).__name__)


def _value(column: Column, row: int) -> Any:
    """Return what is in a row of a column."""
    value = column.values[row] if column.categories is None else column.categories[column.values[row]]
    return np.asarray(value).item()


def _unknown(column: Column, row: int, categories: AnyArray) -> ValueError:
    """Return the error for an unseen category."""
    shown = ", ".join(map(repr, categories[:_N_SHOWN].tolist()))
    more = f", ... ({len(categories)} in all)" if len(categories) > _N_SHOWN else ""
    return ValueError(
        f"{column.place} holds {_value(column, row)!r} in row {row}, which was not there in fit; known "
        f"are {shown}{more}. Correct the value, fit with it, or set handle_unknown='missing'."
    )
