"""Copies of frames and arrays whose missing values are imputed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.sources.columns import read_columns

__all__ = ["completed_rows"]


def completed_rows(X: Any, values: AnyArray) -> Any:
    """Return a copy of ``X`` with ``values`` (n_samples, n_features) where ``X`` has none; a frame stays a frame.

    Imputed categories that a categorical column does not declare are added to its type.
    """
    absent = np.zeros(values.shape, bool)
    for i, given in enumerate(read_columns(X)):
        if given.categories is not None:
            absent[:, i] = given.values < 0
        elif given.missing is not None:
            absent[:, i] = given.missing
    for module in ("pandas", "polars"):
        if module in sys.modules and isinstance(X, sys.modules[module].DataFrame):
            library, filled = sys.modules[module], X.copy() if module == "pandas" else X.clone()
            for i in np.flatnonzero(absent.any(axis=0)).tolist():
                name, dtype = X.columns[i], X.dtypes[i] if module == "polars" else X.dtypes.iloc[i]
                cells = zip(X[name].to_list(), values[:, i], absent[:, i], strict=True)
                column = [new if gone else old for old, new, gone in cells]
                imputed = list(dict.fromkeys(values[absent[:, i], i].tolist()))
                if module == "pandas":
                    is_declared = isinstance(dtype, library.CategoricalDtype)
                    if is_declared and (new := [value for value in imputed if value not in dtype.categories]):
                        dtype = library.CategoricalDtype([*dtype.categories, *new], ordered=dtype.ordered)
                    filled[name] = library.Series(column, X.index, dtype=dtype if is_declared else None)
                else:
                    is_declared = dtype in (library.Enum, library.Categorical)
                    if dtype == library.Enum and (new := [value for value in imputed if value not in dtype.categories]):
                        dtype = library.Enum([*dtype.categories, *new])
                    if any(isinstance(value, float) for value in column):  # means of integers need not be integers
                        column = [None if value is None else float(value) for value in column]
                    filled = filled.with_columns(library.Series(name, column, dtype=dtype if is_declared else None))
            return filled
    table = np.array(X, dtype=object)
    table[absent] = values[absent]
    return table
