"""Support for frames of other libraries: eager ones are converted, lazy ones are rejected with a remedy."""

from __future__ import annotations

from typing import Any

__all__ = ["frame_of", "lazy_error"]

#: Name in messages, and the call that returns the rows, by package and type.
_LAZY = {
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
_EAGER = {"narwhals": "to_native", "modin": "_to_pandas", "cudf": "to_pandas"}


def lazy_error(X: Any, name: str = "X") -> TypeError | None:
    """Return the error for a lazy query, or None for any other object; ``name`` is the argument's name."""
    for kind in type(X).__mro__:
        package = kind.__module__.partition(".")[0].lstrip("_")
        found = _LAZY.get((package, kind.__name__))
        if found is None and package in ("dask", "dask_expr") and hasattr(X, "__dask_graph__"):
            found = f"Dask {kind.__name__}", "X.compute(), or use the classifiers of tanlearn.dask"
        if found is not None:
            call = found[1].replace("X.", f"{name}.") if name.isidentifier() else found[1]
            return TypeError(f"{name} is a {found[0]}, a query that has no rows yet. Run it first: pass {call}.")
    return None


def frame_of(X: Any) -> Any:
    """Convert pyarrow tables and eager frames of narwhals, modin and cuDF to pandas or polars; return others as is."""
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
    if package in _EAGER and hasattr(X, "columns") and hasattr(X, _EAGER[package]):
        return frame_of(getattr(X, _EAGER[package])())  # narwhals may wrap one of the others
    return X
