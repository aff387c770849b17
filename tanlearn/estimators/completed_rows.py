"""Frames and arrays with imputed values."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray

__all__ = ["filled_rows"]


def filled_rows(X: Any, absent: AnyArray, values: AnyArray) -> Any:
    """Return a copy of ``X`` with ``values`` where ``absent`` is True; a frame stays a frame."""
    for module in ("pandas", "polars"):
        if module in sys.modules and isinstance(X, sys.modules[module].DataFrame):
            library, filled = sys.modules[module], X.copy() if module == "pandas" else X.clone()
            for i in np.flatnonzero(absent.any(axis=0)).tolist():
                name, dtype = X.columns[i], X.dtypes[i] if module == "polars" else X.dtypes.iloc[i]
                cells = zip(X[name].to_list(), values[:, i], absent[:, i], strict=True)
                column = [new if gone else old for old, new, gone in cells]
                if module == "pandas":
                    is_declared = isinstance(dtype, library.CategoricalDtype)
                    filled[name] = library.Series(column, X.index, dtype=dtype if is_declared else None)
                else:
                    is_declared = dtype in (library.Enum, library.Categorical)
                    if any(isinstance(value, float) for value in column):  # means of integers need not be integers
                        column = [None if value is None else float(value) for value in column]
                    filled = filled.with_columns(library.Series(name, column, dtype=dtype if is_declared else None))
            return filled
    table = np.array(X, dtype=object)
    table[absent] = values[absent]
    return table
