"""Categories and cut points that the user declares without rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.column_kinds import check_n_categories, find_categories, named_columns
from tanlearn.sources.columns import from_objects
from tanlearn.sources.table import Column, shorten

__all__ = ["read_declared"]


def read_declared(columns: Any, option: Any) -> tuple[AnyArray | None, list[AnyArray | None], list[FloatArray | None]]:
    """Validate declared columns, and return their names, categories and cut points.

    ``columns`` maps names to values, or is a list of values. ``option`` is ``discrete_features`` of
    :class:`~tanlearn.TableEncoder`. For a list, names are None. For each column, either the categories or the cut
    points are None.
    """
    names, values = _read_columns(columns)
    labels = [f"X column {i if names is None else repr(names[i])}" for i in range(len(values))]
    read = [_read_values(own, label) for own, label in zip(values, labels, strict=True)]
    is_discrete = np.array([own.categories is not None or own.values.dtype.kind not in "iuf" for own in read])
    if not isinstance(option, str):  # "auto"
        is_discrete |= named_columns(option, len(read), names)
    categories: list[AnyArray | None] = [None] * len(read)
    cut_points: list[FloatArray | None] = [None] * len(read)
    for i, column in enumerate(read):
        if is_discrete[i]:
            categories[i] = find_categories(column)
        else:
            cut_points[i] = _read_cut_points(column)
    return names, categories, cut_points


def _read_columns(columns: Any) -> tuple[AnyArray | None, list[Any]]:
    """Return the names, or None, and the values of each column."""
    if isinstance(columns, Mapping):
        names, values = list(columns), list(columns.values())
        if any(not isinstance(name, str) for name in names):
            raise TypeError(f"the names of columns must be strings, got {shorten(names)}. Pass a list without names.")
    elif isinstance(columns, list | tuple):
        names, values = None, list(columns)
    else:
        raise TypeError(
            f"columns must be a dictionary from names to categories or cut points, or a list of categories or cut "
            f"points with one entry per column, got {type(columns).__name__}. Pass a dictionary such as "
            f"{{'age': [30, 50], 'sex': ['female', 'male']}}."
        )
    if not values:
        raise ValueError("no column is declared. Declare categories or cut points for every column.")
    return None if names is None else np.array(names, dtype=object), values


def _read_values(values: Any, label: str) -> Column:
    """Return the declared values of a column. Raise ValueError if there are no values, or if a value is missing."""
    if isinstance(values, str) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise TypeError(f"{label}: categories or cut points must be a list, got {shorten(values)}.")
    given = np.empty(len(values), dtype=object)
    given[:] = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not len(given):
        raise ValueError(f"{label} has no declared values. Declare at least one category or one cut point.")
    column = from_objects(given, label)
    if not column.present.all():
        raise ValueError(
            f"{label} declares a missing value at position {int((~column.present).argmax())}. Leave it out: missing "
            f"values are marginalized, or get a category with handle_missing='category'."
        )
    return column


def _read_cut_points(column: Column) -> FloatArray:
    """Return the cut points of a column. Raise ValueError unless they increase."""
    found: FloatArray = np.asarray(column.numbers(), dtype=np.float64)
    wrong = np.flatnonzero(found[1:] <= found[:-1])
    if len(wrong):
        raise ValueError(
            f"{column.label}: cut points must increase, but {shorten(found[wrong[0] + 1].item())} follows "
            f"{shorten(found[wrong[0]].item())}. Sort them, or list the column in discrete_features if its numbers "
            f"are categories."
        )
    check_n_categories(len(found) + 1, column.label)
    return found
