"""Copies of frames and arrays with imputed missing values."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.sources.columns import read_columns

__all__ = ["completed_rows"]


def completed_rows(X: Any, values: AnyArray) -> Any:
    """Return a copy of ``X`` in which ``values`` (n_samples, n_features) replace missing values.

    A frame stays a frame. Columns keep their types if these can represent the imputed values. If a categorical type
    does not declare an imputed category, the category is added. Integers become floats of the same library if floats
    are imputed. The type of a pandas column of objects is inferred.
    """
    absent = np.zeros(values.shape, bool)
    for i, given in enumerate(read_columns(X)):
        if given.categories is not None:
            absent[:, i] = given.values < 0
        elif given.missing is not None:
            absent[:, i] = given.missing
    for module, fill in (("pandas", _fill_pandas), ("polars", _fill_polars)):
        if module in sys.modules and isinstance(X, sys.modules[module].DataFrame):
            filled = X.copy() if module == "pandas" else X.clone()
            for i in np.flatnonzero(absent.any(axis=0)).tolist():
                name = X.columns[i]
                column = fill(sys.modules[module], X[name], absent[:, i], values[absent[:, i], i].tolist())
                if module == "pandas":
                    filled[name] = column
                else:
                    filled = filled.with_columns(column)
            return filled
    table = np.array(X, dtype=object)
    table[absent] = values[absent]
    return table


def _fill_pandas(pandas: Any, column: Any, absent: AnyArray, imputed: list[Any]) -> Any:
    """Return a copy of a pandas column with imputed values."""
    dtype = column.dtype
    try:
        if isinstance(dtype, pandas.CategoricalDtype):
            if new := _undeclared(imputed, dtype.categories):
                dtype = pandas.CategoricalDtype([*dtype.categories, *new], ordered=dtype.ordered)
        elif (dtype.kind in "iu" or "decimal" in str(dtype)) and _has_floats(imputed):
            is_arrow = isinstance(dtype, pandas.ArrowDtype)
            dtype = pandas.api.types.pandas_dtype("double[pyarrow]" if is_arrow else "Float64")
        own = pandas.array(imputed, dtype=dtype)
        if not pandas.api.types.is_object_dtype(dtype) and _are_kept(imputed, own.tolist()):
            filled = column.astype(dtype)
            filled.iloc[np.flatnonzero(absent)] = own
            return filled
    except (TypeError, ValueError):  # for example, strings in a column of NaN
        pass
    return pandas.Series(_merged(column.to_list(), absent, imputed), column.index)


def _fill_polars(polars: Any, column: Any, absent: AnyArray, imputed: list[Any]) -> Any:
    """Return a copy of a polars column with imputed values."""
    dtype, cells = column.dtype, _merged(column.to_list(), absent, imputed)
    if _has_floats(imputed):  # the mean of integers may not be an integer
        cells = [None if value is None else float(value) for value in cells]
        dtype = dtype if dtype.is_float() else polars.Float64
    try:
        if dtype == polars.Enum and (new := _undeclared(imputed, dtype.categories.to_list())):
            dtype = polars.Enum([*dtype.categories, *new])
        own = polars.Series(column.name, cells, dtype=dtype)
        if _are_kept(cells, own.to_list()):
            return own
    except (TypeError, ValueError, polars.exceptions.PolarsError):  # for example, strings in a column without values
        pass
    return polars.Series(column.name, cells)


def _undeclared(imputed: list[Any], categories: Any) -> list[Any]:
    """Return the imputed categories that are not declared. None is skipped; it stands for values that stay missing."""
    return [value for value in dict.fromkeys(imputed) if value is not None and value not in categories]


def _has_floats(imputed: list[Any]) -> bool:
    """Return whether numbers of a continuous column are imputed."""
    return any(isinstance(value, float) for value in imputed)


def _are_kept(values: list[Any], converted: list[Any]) -> bool:
    """Return whether strings, booleans and numbers have the same kind after the conversion to a type."""
    return all(old is None or _kind(old) == _kind(new) for old, new in zip(values, converted, strict=True))


def _kind(value: Any) -> str:
    """Return the kind of a value that is not missing."""
    if value is None or isinstance(value, str):
        return "missing" if value is None else "string"
    return "boolean" if isinstance(value, bool | np.bool_) else "number"


def _merged(cells: list[Any], absent: AnyArray, imputed: list[Any]) -> list[Any]:
    """Return the values of a column, with missing values replaced by imputed values."""
    new = iter(imputed)
    return [next(new) if gone else old for old, gone in zip(cells, absent.tolist(), strict=True)]
