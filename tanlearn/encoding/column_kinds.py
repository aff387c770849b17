"""Classification of columns as categorical or continuous, and as ordered or unordered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray
from tanlearn.encoding.categories import find_categories
from tanlearn.encoding.number_encoder import FIRST_ROWS, distinct_numbers
from tanlearn.sources.category_index import distinct_values
from tanlearn.sources.table import Column, Table

__all__ = ["MAX_NUMERIC_CATEGORIES", "find_all_categories", "have_order", "named_columns"]

# Integers with more distinct values than this are usually a quantity (a pixel, an age, an amount) and not a code. Mean
# error of Chow-Liu TAN with limits of 0, 10 and 64: 12.99, 12.59 and 15.76 % over 18 data sets not used to choose the
# limit; 17.70, 16.32 and 18.31 % over the 20 used (benchmarks/quality/whole_numbers.md).
MAX_NUMERIC_CATEGORIES = 10


def find_all_categories(
    option: Any, table: Table, names: AnyArray | None, n_jobs: int | None = None
) -> list[AnyArray | None]:
    """Return the categories of each column, shape (n_categories,), or None for a continuous column.

    ``option`` is ``discrete_features`` of :class:`~tanlearn.TableEncoder`; ``names`` are the column names, if any.
    """
    is_auto = isinstance(option, str)  # "auto", the only string that parameter validation accepts
    chosen = _may_be_categorical(table) if is_auto else named_columns(option, len(table), names)
    known = distinct_numbers(table, np.flatnonzero(chosen), n_jobs)
    found: list[AnyArray | None] = [None] * len(table)
    for i in np.flatnonzero(chosen).tolist():
        if i in known:
            found[i] = known[i] if not is_auto or len(known[i]) <= MAX_NUMERIC_CATEGORIES else None
        elif not is_auto or _is_categorical(table[i]):
            found[i] = find_categories(table[i])
    return found


def have_order(option: Any, table: Table, categories: Sequence[AnyArray | None]) -> NDArray[np.bool_]:
    """Return a mask of the columns whose codes are ordered: quantities and ordered categories, shape (n_features,).

    Under "auto", integer columns taken as categories keep their numeric order. Numeric columns that the user declares
    categorical are unordered.
    """
    is_auto = isinstance(option, str)
    return np.array(
        [
            known is None or (is_auto and _holds_numbers(table, i)) or table[i].is_ordered
            for i, known in enumerate(categories)
        ]
    )


def _holds_numbers(table: Table, number: int) -> bool:
    """Return whether a column contains numbers that are not booleans."""
    values = table.values_of(number)
    return values is not None and values.dtype.kind != "b"


def named_columns(option: Any, n_features: int, names: AnyArray | None) -> NDArray[np.bool_]:
    """Return a mask of the columns that ``discrete_features`` selects, for values other than "auto"."""
    chosen = np.asarray(option)
    if chosen.ndim == 0:
        return np.full(n_features, bool(option))
    if chosen.dtype.kind == "b" and chosen.shape == (n_features,):
        return chosen.copy()
    numbers = chosen
    if chosen.dtype.kind in "UO" and names is not None:
        index = {name: i for i, name in enumerate(names)}
        numbers = np.array([index.get(name, -1) for name in chosen])
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


def _may_be_categorical(table: Table) -> NDArray[np.bool_]:
    """Return a mask without the columns that their first rows already show to be continuous under "auto"."""
    return np.array([_few_at_first(table, i) for i in range(len(table))])


def _few_at_first(table: Table, number: int) -> bool:
    """Return whether the first rows of a column contain no numbers, or few distinct numbers that are all integers."""
    values = table.values_of(number)
    if values is None:
        return True
    first, missing = values[:FIRST_ROWS], table.missing_mask(number)
    first = first[first == first if missing is None else ~missing[:FIRST_ROWS]]
    return len(np.unique(first)) <= MAX_NUMERIC_CATEGORIES and (first.dtype.kind != "f" or (first % 1 == 0).all())


def _is_categorical(column: Column) -> bool:
    """Return whether "auto" takes a column as categorical; for numbers, the values decide and not the dtype."""
    if column.categories is not None or column.values.dtype.kind not in "iuf":
        return True
    values = column.values if column.missing is None else column.values[~column.missing]
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return False
    return len(distinct_values(column)) <= MAX_NUMERIC_CATEGORIES
