"""Tables of other libraries: the eager ones as frames that are read, the lazy ones with the call that runs them."""

from __future__ import annotations

from typing import Any

__all__ = ["frame_of", "lazy_error"]

#: By package and type: what messages call a query, and the call that returns its rows.
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
#: By package: how an eager table becomes one of pandas or polars.
_EAGER = {"narwhals": "to_native", "modin": "_to_pandas", "cudf": "to_pandas"}


def lazy_error(X: Any, name: str = "X") -> TypeError | None:
    """Return the error for a query that has no rows yet."""
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
    """Return a table as one that is read column by column."""
    package = type(X).__module__.partition(".")[0]
    if package == "pyarrow" and type(X).__name__ in ("Table", "RecordBatch"):
        import pandas as pd
        import pyarrow as pa

        table = pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X
        # Arrow's own types keep integers beside missing values; dictionaries become declared categories.
        return table.to_pandas(
            ignore_metadata=True,
            types_mapper=lambda dtype: None if pa.types.is_dictionary(dtype) else pd.ArrowDtype(dtype),
        )
    if package in _EAGER and hasattr(X, "columns") and hasattr(X, _EAGER[package]):
        return frame_of(getattr(X, _EAGER[package])())  # narwhals may hold one of the others
    return X
