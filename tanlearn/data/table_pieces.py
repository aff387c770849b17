"""Anything that holds a table, some rows at a time: frames, queries, streams and data sets of Arrow, and files.

Frames of pandas and polars are cut, and read as they are in whole; all else comes as record batches of Arrow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn.data.arrow_columns import read_record_batch
from tanlearn.data.columns import read_columns
from tanlearn.data.table import Table
from tanlearn.data.table_files import format_of, require_pyarrow
from tanlearn.data.text_files import DAMAGED, Layout, find_separator, open_text

__all__ = ["Piece", "holds_table", "table_pieces"]

# Cells a piece: 32 MiB of 64-bit numbers. A power of two of rows, as row groups have: others take Parquet longer.
_CELLS = 2**22
_FEWEST_ROWS, _MOST_ROWS = 2**10, 2**17
# Text has its types from its first block, and comes in pieces of a block: of one MiB, pyarrow's own, they are small.
_TEXT_BLOCK = 2**24


@dataclass(frozen=True)
class Piece:
    """Some rows of a table."""

    rows: Any  # They, with all columns that are wanted
    names: list[Any]  # Which these are, in the order that ``choose`` has given
    texts: frozenset[str] = frozenset()  # Columns of a record batch whose dictionaries were made of texts

    def read(self, names: list[Any], ignored: AnyArray | None = None) -> Table:
        """Return some of the columns.

        Shapes: ignored: (n_samples,).
        """
        if _is_frame(self.rows):
            return read_columns(self.rows[names], ignored=ignored)
        return read_record_batch(self.rows.select(names), self.texts, ignored)


def holds_table(source: Any) -> bool:
    """Return whether :func:`table_pieces` takes something."""
    if _is_frame(source) or _is_query(source) or isinstance(source, str | Path):
        return True
    return hasattr(source, "__arrow_c_stream__") or _is_scanned(source, "Dataset", "Scanner")


def table_pieces(source: Any, choose: Callable[[list[Any]], list[Any]], n_rows: int | None = None) -> Iterator[Piece]:
    """Yield a table piece by piece."""
    if isinstance(source, str | Path):
        yield from _of_file(Path(source), choose, n_rows)
    elif _is_scanned(source, "Dataset"):
        yield from _of_dataset(source, choose, n_rows)
    elif _is_query(source):
        names = choose(source.collect_schema().names())
        query, size = source.select(names), _size(names, n_rows)
        # Before 1.34, polars had no way to a query but all of it.
        frames = query.collect_batches(chunk_size=size) if hasattr(query, "collect_batches") else [query.collect()]
        for frame in frames:
            yield from _cut(frame, names, size)
    elif _is_frame(source):
        names = choose(list(source.columns))
        yield from _cut(source, names, _size(names, n_rows))
    else:
        if _is_scanned(source, "Scanner"):
            names, batches = source.projected_schema.names, source.to_batches()
        else:
            batches = require_pyarrow(f"{type(source).__name__}").RecordBatchReader.from_stream(source)
            names = batches.schema.names
        names = choose(names)
        for batch in batches:
            yield from _cut(batch.select(names), names, _size(names, n_rows))


def _size(names: list[Any], n_rows: int | None) -> int:
    """Return the number of rows a piece."""
    if n_rows is not None:
        return n_rows
    return min(_MOST_ROWS, max(_FEWEST_ROWS, 2 ** ((_CELLS // len(names)).bit_length() - 1)))


def _cut(rows: Any, names: list[Any], size: int, texts: frozenset[str] = frozenset()) -> Iterator[Piece]:
    """Yield rows of memory in pieces, which are not copied."""
    for first in range(0, len(rows), size):
        piece = rows.iloc[first : first + size] if hasattr(rows, "iloc") else rows.slice(first, size)
        yield Piece(piece, names, texts)


def _of_dataset(
    dataset: Any, choose: Callable[[list[Any]], list[Any]], n_rows: int | None, texts: frozenset[str] = frozenset()
) -> Iterator[Piece]:
    """Yield a data set of Arrow."""
    names = choose(dataset.schema.names)
    size = _size(names, n_rows)
    # Two pieces ahead keep two threads as busy as pyarrow's sixteen do, in less memory.
    for batch in dataset.to_batches(columns=names, batch_size=size, batch_readahead=2, fragment_readahead=1):
        yield from _cut(batch, names, size, texts)


def _of_file(path: Path, choose: Callable[[list[Any]], list[Any]], n_rows: int | None) -> Iterator[Piece]:
    """Yield a file, or the Parquet files in a folder."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    pa = require_pyarrow(str(path))
    try:
        dataset, texts = _open(path, pa)
        pieces = _of_dataset(dataset, choose, n_rows, texts)
    except (OSError, ValueError, *DAMAGED) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    while True:
        try:
            piece = next(pieces, None)
        except (OSError, pa.ArrowException, *DAMAGED) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if piece is None:
            return
        yield piece


def _open(path: Path, pa: Any) -> tuple[Any, frozenset[str]]:
    """Return the data set that files make, and its columns of texts that come as dictionaries."""
    found = "parquet" if path.is_dir() else format_of(path)
    if found in ("csv", "tsv"):
        from pyarrow import csv

        with open_text(path, "utf-8-sig") as file:
            parse = csv.ParseOptions(delimiter="\t" if found == "tsv" else find_separator(file))
            skipped = int(Layout().is_skipped(1, file.readline()))  # a line such as sep=;
        options = pa.dataset.CsvFragmentScanOptions(
            csv.ConvertOptions(strings_can_be_null=True), csv.ReadOptions(block_size=_TEXT_BLOCK, skip_rows=skipped)
        )
        text = pa.dataset.CsvFileFormat(parse, default_fragment_scan_options=options)
        return pa.dataset.dataset(path, format=text), frozenset()
    if found == "feather":
        return pa.dataset.dataset(path, format="feather"), frozenset()
    plain = pa.dataset.dataset(path, format="parquet", partitioning="hive")
    if not plain.files:
        raise ValueError("there is no Parquet file in the folder.")
    texts = frozenset(
        field.name for field in plain.schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    )
    # Parquet keeps strings as dictionaries, and needs a fifth of the time where it need not spell them out; without
    # buffers of the next row groups it takes two thirds of the memory, and the same time.
    parquet = pa.dataset.ParquetFileFormat(
        read_options=pa.dataset.ParquetReadOptions(dictionary_columns=texts),
        default_fragment_scan_options=pa.dataset.ParquetFragmentScanOptions(pre_buffer=False),
    )
    return pa.dataset.dataset(path, format=parquet, partitioning="hive"), texts


def _is_frame(source: Any) -> bool:
    """Return whether something is a DataFrame of pandas or polars."""
    modules = [sys.modules[name] for name in ("pandas", "polars") if name in sys.modules]
    return any(isinstance(source, module.DataFrame) for module in modules)


def _is_query(source: Any) -> bool:
    """Return whether something is a LazyFrame of polars."""
    return "polars" in sys.modules and isinstance(source, sys.modules["polars"].LazyFrame)


def _is_scanned(source: Any, *names: str) -> bool:
    """Return whether something is one of these classes of pyarrow's data sets."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(source, tuple(getattr(module, name) for name in names))
