"""Which columns of a table are categorical, and which hold quantities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray
from tanlearn.data.categories import distinct
from tanlearn.data.columns import Column

__all__ = ["MAX_NUMERIC_CATEGORIES", "find_discrete"]

# Whole numbers of more values than this are a quantity (a pixel, an age, an amount) more often than a code. Errors of
# Chow-Liu TAN with limits of 0, 10 and 64, means over 18 tables that had no part in the choice of the limit: 12.99,
# 12.59 and 15.76 %; over the 20 tables of the choice 17.70, 16.32 and 18.31 % (benchmarks/quality/whole_numbers.md).
MAX_NUMERIC_CATEGORIES = 10
# Of a column, so many rows are looked at first: most columns of more values show them there.
_FIRST_ROWS = 256


def find_discrete(option: Any, columns: list[Column], names: AnyArray | None) -> NDArray[np.bool_]:
    """Return which columns are categorical.

    Parameters
    ----------
    option : "auto", bool or array-like
        What :class:`~tanlearn.TableEncoder` calls ``discrete_features``.
    columns : list of Column
        The table.
    names : ndarray of shape (n_features,), optional
        Names of the columns, if the table has names.

    Returns
    -------
    ndarray of shape (n_features,), bool

    Raises
    ------
    ValueError
        If the option names columns that are not there.
    """
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


def _looks_categorical(column: Column) -> bool:
    """Return whether "auto" takes a column for categorical: of numbers, by their values and not by their type."""
    if column.categories is not None or column.values.dtype.kind not in "iuf":
        return True
    values = column.values if column.missing is None else column.values[~column.missing]
    if len(np.unique(values[:_FIRST_ROWS])) > MAX_NUMERIC_CATEGORIES:
        return False
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return False
    return len(distinct(column)) <= MAX_NUMERIC_CATEGORIES
