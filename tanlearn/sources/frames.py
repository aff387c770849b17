"""Data frames: conversion of frames of other libraries, and comparison of column names with ``fit``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Set
from typing import Any

from sklearn.utils.validation import validate_data

from tanlearn._warnings import warn

__all__ = ["check_names", "lazy_error", "native_frame", "record_error", "warn_of_row_order"]

#: Name in messages, and the call that returns the rows, by package and type.
_LAZY_TYPES = {
    ("polars", "LazyFrame"): ("polars LazyFrame", "X.collect()"),
    ("narwhals", "LazyFrame"): ("narwhals LazyFrame", "X.collect()"),
    ("duckdb", "DuckDBPyRelation"): ("DuckDB relation", "X.df() or X.pl()"),
    ("pyspark", "DataFrame"): ("Spark DataFrame", "X.toPandas()"),
    ("ibis", "Table"): ("Ibis table", "X.to_pandas()"),
    ("daft", "DataFrame"): ("Daft DataFrame", "X.to_pandas()"),
    ("vaex", "DataFrameLocal"): ("Vaex DataFrame", "X.to_pandas_df()"),
    ("pyarrow", "RecordBatchReader"): ("pyarrow RecordBatchReader", "X.read_all()"),
    ("pyarrow", "Dataset"): ("pyarrow Dataset", "X.to_table()"),
    ("pyarrow", "Scanner"): ("pyarrow Scanner", "X.to_table()"),
    ("datafusion", "DataFrame"): ("DataFusion DataFrame", "X.to_pandas()"),
}
#: Method that converts an eager frame to pandas or polars, by package.
_CONVERSIONS = {"narwhals": "to_native", "modin": "_to_pandas", "cudf": "to_pandas"}


def lazy_error(X: Any, name: str = "X") -> TypeError | None:
    """Return the error for a lazy query, or None if ``X`` is any other object.

    ``name`` is the name of the argument in the message.
    """
    for kind in type(X).__mro__:
        package = kind.__module__.partition(".")[0].lstrip("_")
        found = _LAZY_TYPES.get((package, kind.__name__))
        if found is None and package in ("dask", "dask_expr") and hasattr(X, "__dask_graph__"):
            found = f"Dask {kind.__name__}", "X.compute(), or use the classifiers of tanlearn.dask"
        if found is not None:
            call = found[1].replace("X.", f"{name}.") if name.isidentifier() else found[1]
            return TypeError(f"{name} is a {found[0]}, a query that has no rows yet. Run it first: pass {call}.")
    return None


def record_error(X: Any) -> TypeError | None:
    """Return the error for dictionaries, records, paths and other objects without rows and columns, or None."""
    first = X[0] if isinstance(X, list | tuple) and X else None
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # sparse matrices of keys are mappings, too
        kind = f"but X is a {type(X).__name__}"
        is_of_columns = len(X) > 0 and not any(map(_is_scalar, X.values()))
        remedy = "pandas.DataFrame(X)" if is_of_columns else "pandas.DataFrame([X]) for a single row"
    elif isinstance(first, Mapping):
        kind, remedy = f"but X[0] is a {type(first).__name__}", "pandas.DataFrame(X)"
    elif getattr(getattr(X, "dtype", None), "names", None):
        kind, remedy = f"but X is an array of records of dtype {X.dtype}", "pandas.DataFrame(X)"
    elif isinstance(X, str | bytes | os.PathLike):
        kind, remedy = f"got {X!r}", "tanlearn.read_table(X) if it is the path of a file"
    elif isinstance(X, Iterator | Set):
        kind, remedy = f"but X is a {type(X).__name__}", "list(X) if it contains rows"
    elif X is None:
        kind, remedy = "got None", "the rows to learn from or to predict"
    else:
        return None
    return TypeError(f"X must be a frame, an array or a list of lists, {kind}. Pass {remedy}.")


def _is_scalar(value: Any) -> bool:
    """Return whether a value is a string or has no length."""
    return isinstance(value, str) or not hasattr(value, "__len__")


def native_frame(X: Any) -> Any:
    """Convert eager frames of pyarrow, narwhals, modin and cuDF to pandas or polars. Return other objects unchanged."""
    package = type(X).__module__.partition(".")[0]
    if package == "pyarrow" and type(X).__name__ in ("Table", "RecordBatch"):
        import pandas as pd
        import pyarrow as pa

        table = pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X
        # ArrowDtype keeps integer columns with missing values integer; dictionaries become declared categories.
        return table.to_pandas(
            ignore_metadata=True,
            types_mapper=lambda dtype: None if pa.types.is_dictionary(dtype) else pd.ArrowDtype(dtype),
        )
    if package in _CONVERSIONS and hasattr(X, "columns") and hasattr(X, _CONVERSIONS[package]):
        return native_frame(getattr(X, _CONVERSIONS[package])())  # narwhals may wrap one of the others
    return X


def check_names(estimator: Any, X: Any) -> None:
    """Raise ValueError, with a remedy, if columns are missing, added or in another order than in ``fit``."""
    try:
        validate_data(estimator, native_frame(X), reset=False, skip_check_array=True)
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip()}\n{_remedy(estimator, X)}") from error


def warn_of_row_order(X: Any, y: Any) -> None:
    """Warn if a pandas frame and a pandas series have the same row labels in another order."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame) or not isinstance(y, pandas.Series):
        return
    own, other = X.index, y.index
    if len(own) != len(other) or own.equals(other) or not own.is_unique or not own.isin(other).all():
        return
    row = int((own != other).argmax())
    labels = [index[row : row + 1].tolist()[0] for index in (own, other)]
    warn(
        f"X and y have the same row labels in another order: row {row} is {labels[0]!r} in X and {labels[1]!r} in y. "
        f"Rows are matched by position, not by label. To match them by label, pass y.loc[X.index].",
        UserWarning,
    )


def _remedy(estimator: Any, X: Any) -> str:
    """Return the call that selects the columns of ``fit`` from a frame, or advice for data without column names."""
    names = getattr(estimator, "feature_names_in_", None)
    given = [name for name in getattr(native_frame(X), "columns", ()) if isinstance(name, str)]
    if names is None or not given:
        return (
            f"Pass the {estimator.n_features_in_} columns of fit in their order, without the class and without others; "
            f"use NaN or None for a missing value."
        )
    missing = [name for name in names.tolist() if name not in given]
    is_pandas = hasattr(X, "reindex")
    if missing and not is_pandas and type(X).__module__.partition(".")[0] != "polars" and hasattr(X, "to_pandas"):
        return (
            "If a column was renamed, rename it. Columns that are not available can be missing in every row: "
            "X.to_pandas().reindex(columns=model.feature_names_in_)."
        )
    if missing and not is_pandas:
        return (
            "If a column was renamed, rename it. Columns that are not available can be missing in every row: add them "
            "with nulls, as with X.with_columns(polars.lit(None).alias(name)), then select the columns of fit, "
            "X.select(list(model.feature_names_in_))."
        )
    if missing:
        return (
            "If a column was renamed, rename it. Columns that are not available can be missing in every row: "
            "X.reindex(columns=model.feature_names_in_)."
        )
    call = "X[list(model.feature_names_in_)]" if is_pandas else "X.select(list(model.feature_names_in_))"
    return f"Select the columns by name: {call}."
