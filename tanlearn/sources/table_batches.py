"""Batches of rows of any table: frames, lazy queries, Arrow streams and data sets, and files.

pandas and polars frames are sliced without a copy; all other sources are read as Arrow record batches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn.sources.arrow_columns import read_record_batch
from tanlearn.sources.columns import read_columns
from tanlearn.sources.file_formats import format_of
from tanlearn.sources.table import Table
from tanlearn.sources.table_files import TableFile, require_pyarrow

__all__ = ["TableBatch", "is_table", "rows_per_batch", "table_batches"]

# 32 MiB of 64-bit numbers. The number of rows is a power of two, as in row groups; other numbers slow
# Parquet down.
_VALUES_PER_BATCH = 2**22
_FEWEST_ROWS, _MOST_ROWS = 2**10, 2**17


@dataclass(frozen=True)
class TableBatch:
    """Some rows of a table."""

    rows: Any  # pandas or polars DataFrame, or pyarrow RecordBatch
    names: list[Any]  # names of its columns, in order
    # Columns of a record batch whose dictionaries encode plain strings
    string_columns: frozenset[str] = frozenset()

    def read(self, names: list[Any], ignored: AnyArray | None = None) -> Table:
        """Read some of the columns; ``ignored`` (n_samples,) masks rows whose values are not used."""
        if _is_frame(self.rows):
            return read_columns(self.rows[names], ignored=ignored)
        return read_record_batch(self.rows.select(names), self.string_columns, ignored)


def is_table(source: Any) -> bool:
    """Return whether :func:`table_batches` accepts an object."""
    if _is_frame(source) or _is_query(source) or isinstance(source, str | Path | TableFile):
        return True
    return hasattr(source, "__arrow_c_stream__") or _is_scanned(source, "Dataset", "Scanner")


def table_batches(
    source: Any, choose: Callable[[list[Any]], list[Any]], n_rows: int | None = None
) -> Iterator[TableBatch]:
    """Yield the non-empty batches of a table.

    ``choose`` maps the names of all columns to those to read. ``n_rows`` is the maximum number of rows per batch; by
    default, the power of two from 1,024 to 131,072 that gives about four million values.
    """
    if isinstance(source, str | Path):
        yield from _file_batches(Path(source), choose, n_rows)
    elif _is_scanned(source, "Dataset"):
        yield from _dataset_batches(source, choose, n_rows)
    elif _is_query(source):
        names = choose(source.collect_schema().names())
        query, size = source.select(names), rows_per_batch(names, n_rows)
        # polars before 1.34 can only collect a query as a whole.
        frames = query.collect_batches(chunk_size=size) if hasattr(query, "collect_batches") else [query.collect()]
        for frame in frames:
            yield from _slices(frame, names, size)
    elif _is_frame(source):
        names = choose(list(source.columns))
        yield from _slices(source, names, rows_per_batch(names, n_rows))
    else:
        if _is_scanned(source, "Scanner"):
            names, batches = source.projected_schema.names, source.to_batches()
        else:
            batches = require_pyarrow(f"{type(source).__name__}").RecordBatchReader.from_stream(source)
            names = batches.schema.names
        names = choose(names)
        for batch in batches:
            yield from _slices(batch.select(names), names, rows_per_batch(names, n_rows))


def rows_per_batch(names: list[Any], n_rows: int | None) -> int:
    """Return the maximum number of rows per batch."""
    if n_rows is not None:
        return n_rows
    return min(_MOST_ROWS, max(_FEWEST_ROWS, 2 ** ((_VALUES_PER_BATCH // len(names)).bit_length() - 1)))


def _slices(
    rows: Any, names: list[Any], size: int, string_columns: frozenset[str] = frozenset()
) -> Iterator[TableBatch]:
    """Yield batches of in-memory rows, without a copy."""
    for first in range(0, len(rows), size):
        part = rows.iloc[first : first + size] if hasattr(rows, "iloc") else rows.slice(first, size)
        yield TableBatch(part, names, string_columns)


def _dataset_batches(
    dataset: Any,
    choose: Callable[[list[Any]], list[Any]],
    n_rows: int | None,
    string_columns: frozenset[str] = frozenset(),
) -> Iterator[TableBatch]:
    """Yield batches of an Arrow data set."""
    names = choose(dataset.schema.names)
    size = rows_per_batch(names, n_rows)
    # A read-ahead of two batches keeps two threads as busy as pyarrow's default of sixteen, in less memory.
    for batch in dataset.to_batches(columns=names, batch_size=size, batch_readahead=2, fragment_readahead=1):
        yield from _slices(batch, names, size, string_columns)


def _file_batches(path: Path, choose: Callable[[list[Any]], list[Any]], n_rows: int | None) -> Iterator[TableBatch]:
    """Yield batches of a file, or of the Parquet files in a folder."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    pa = require_pyarrow(str(path))
    try:
        dataset, string_columns = _open(path, pa)
        batches = _dataset_batches(dataset, choose, n_rows, string_columns)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    while True:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if batch is None:
            return
        yield batch


def _open(path: Path, pa: Any) -> tuple[Any, frozenset[str]]:
    """Return the Arrow data set of a file or folder, and its string columns that are read as dictionaries."""
    found = "parquet" if path.is_dir() else format_of(path)
    if found == "feather":
        return pa.dataset.dataset(path, format="feather"), frozenset()
    plain = pa.dataset.dataset(path, format="parquet", partitioning="hive")
    if not plain.files:
        raise ValueError("there is no Parquet file in the folder.")
    string_columns = frozenset(
        field.name for field in plain.schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    )
    # Reading strings as dictionaries, as Parquet stores them, takes a fifth of the time. Without pre-buffering of row
    # groups, reading takes two thirds of the memory and the same time.
    parquet = pa.dataset.ParquetFileFormat(
        read_options=pa.dataset.ParquetReadOptions(dictionary_columns=string_columns),
        default_fragment_scan_options=pa.dataset.ParquetFragmentScanOptions(pre_buffer=False),
    )
    return pa.dataset.dataset(path, format=parquet, partitioning="hive"), string_columns


def _is_frame(source: Any) -> bool:
    """Return whether an object is a pandas or polars DataFrame."""
    modules = [sys.modules[name] for name in ("pandas", "polars") if name in sys.modules]
    return any(isinstance(source, module.DataFrame) for module in modules)


def _is_query(source: Any) -> bool:
    """Return whether an object is a polars LazyFrame."""
    return "polars" in sys.modules and isinstance(source, sys.modules["polars"].LazyFrame)


def _is_scanned(source: Any, *names: str) -> bool:
    """Return whether an object is an instance of the named classes of ``pyarrow.dataset``."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(source, tuple(getattr(module, name) for name in names))
