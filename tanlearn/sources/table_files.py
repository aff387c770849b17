"""Reading of delimited text, Parquet and Feather files, as a whole or in batches.

In text files, spaces around names and values are ignored, and digits with leading zeros are strings. Malformed content
raises an error with its line number.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from tanlearn.sources.file_formats import FORMATS, SPREADSHEETS, compression_error, format_of
from tanlearn.sources.notation import Notation, parse_strings
from tanlearn.sources.string_formats import contains_strings
from tanlearn.sources.text_files import (
    DAMAGE_ERRORS,
    MISSING,
    CheckedRows,
    Layout,
    damage,
    find_separator,
    open_text,
    undecodable,
    without_prefix,
)

__all__ = ["TableFile", "open_table", "require_pandas", "require_pyarrow"]


@dataclass(frozen=True)
class TableFile:
    """Table in a file. Only its column names are in memory."""

    path: Path
    name: str  # name of the file in messages
    format: str  # a name in FORMATS
    columns: tuple[str, ...]  # column names, in the order of the file
    # The next four fields apply to text files only.
    separator: str = ","
    encoding: str = "utf-8-sig"
    layout: Layout = Layout()  # noqa: RUF009 - Layout is immutable
    notation: Notation = Notation()  # noqa: RUF009 - Notation is immutable
    # Columns of a Parquet file that pandas wrote as the index; not among the columns
    index: tuple[str, ...] = ()
    # pandas' description of an index that is not stored as a column: start, step and name
    numbering: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_text(self) -> bool:
        """True if the file is delimited text."""
        return FORMATS[self.format].separator is not None

    @property
    def has_index(self) -> bool:
        """True if the rows have an index other than their numbers from 0."""
        rows = self.numbering
        return bool(self.index) or bool(rows and (rows["start"], rows["step"], rows["name"]) != (0, 1, None))

    @property
    def n_bytes(self) -> int:
        """Size of the file in bytes."""
        return self.path.stat().st_size

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        string_columns: Collection[str] = (),
        target: str | None = None,
        dropped: list[int] | None = None,
    ) -> Any:
        """Return the whole table as a pandas DataFrame; for the parameters, see :meth:`batches`."""
        (frame,) = self.batches(None, columns, string_columns=string_columns, target=target, dropped=dropped)
        return frame

    def batches(
        self,
        n_rows: int | None,
        columns: Sequence[str] | None = None,
        *,
        string_columns: Collection[str] = (),
        target: str | None = None,
        dropped: list[int] | None = None,
    ) -> Iterator[Any]:
        """Yield the table as pandas DataFrames with at most ``n_rows`` rows (None: one frame with all rows).

        ``columns`` selects and orders the columns. ``string_columns`` names columns of a text file that stay strings;
        the types of others are inferred per batch. Rows of a text file without a value in the column ``target`` are
        left out before types are inferred: ``dropped`` receives their row numbers, from 0, and the index of the frames
        contains the row numbers of the other rows. Values of ``target`` are never converted by ``thousands``,
        ``symbols`` and ``dates``. Other file formats declare their types, and all rows are returned. At least one frame
        is yielded.
        """
        wanted = list(self.columns if columns is None else columns)
        left_out: list[int] = [] if dropped is None else dropped
        batches = (
            self._text_batches(n_rows, wanted, string_columns, target, left_out)
            if self.is_text
            else self._binary_batches(n_rows, wanted)
        )
        is_empty = True
        units: dict[str, set[str]] = {}
        try:
            for batch in batches:
                if len(batch):
                    is_empty = False
                    yield self._converted(batch[wanted], {*string_columns, target}, units)
        except UnicodeDecodeError as error:
            raise undecodable(self.path, self.name, self.encoding, error) from error
        except (ValueError, OSError, *DAMAGE_ERRORS) as error:  # pandas' and pyarrow's parsing errors are ValueErrors
            raise ValueError(f"{self.name} cannot be read: {damage(error)}") from error
        if is_empty and left_out:
            yield require_pandas(self.name).DataFrame(columns=wanted)
        elif is_empty:
            raise ValueError(f"{self.name} has no rows, only column names.")

    def _converted(self, batch: Any, unchanged: Collection[str | None], units: dict[str, set[str]]) -> Any:
        """Convert the numbers and dates of a batch.

        ``units`` contains the units of earlier batches by column, and is updated in place.
        """
        thousands, symbols, dates = self.notation.thousands, self.notation.symbols, self.notation.dates
        if not (thousands or symbols or dates):
            return batch
        written = thousands, self.notation.decimal, symbols, dates
        return batch.assign(
            **{
                name: parse_strings(batch[name], *written, units=units.setdefault(name, set()))
                for name in batch.columns
                if name not in unchanged
            }
        )

    def _text_batches(
        self,
        n_rows: int | None,
        columns: list[str],
        string_columns: Collection[str],
        target: str | None,
        dropped: list[int],
    ) -> Iterator[Any]:
        """Yield the batches of a text file."""
        pd = require_pandas(self.name)
        with open_text(self.path, self.encoding) as file:
            required = None if target is None else self.columns.index(target)
            rows = CheckedRows(file, self.separator, self.notation.missing, self.layout, required)
            rows.dropped = dropped
            marks = MISSING.union(self.notation.missing)
            try:
                with pd.read_csv(
                    rows,
                    sep=self.separator,
                    header=None,
                    names=list(self.columns),
                    usecols=columns,
                    index_col=False,
                    skipinitialspace=True,
                    dtype=dict.fromkeys(string_columns, str),
                    na_values=list(self.notation.missing),
                    decimal=self.notation.decimal,
                    low_memory=False,
                    iterator=True,
                ) as reader:
                    batch = reader.read(n_rows)
                    while len(batch):
                        codes = [self.columns[j] for j in rows.marked if self.columns[j] in columns]
                        if dropped:  # shift the index by the number of rows left out before each row
                            shifts = np.array(dropped) - np.arange(len(dropped))
                            batch.index += np.searchsorted(shifts, batch.index, side="right")
                        batch = batch.assign(**{name: without_prefix(batch[name]) for name in codes})
                        # pandas keeps missing marks as text in columns with integers of more than 64 bits.
                        strings = [name for name in batch.columns if batch[name].dtype.kind in "OU"]
                        kept = {name: batch[name].isin(marks) for name in strings}
                        yield batch.assign(**{name: batch[name].mask(own) for name, own in kept.items() if own.any()})
                        batch = reader.read(n_rows) if n_rows is not None else ()
            except (pd.errors.EmptyDataError, StopIteration):
                return

    def _binary_batches(self, n_rows: int | None, columns: list[str]) -> Iterator[Any]:
        """Yield the batches of a Parquet or Feather file."""
        pa = require_pyarrow(self.name)
        # The whole table is read by the same code as batches, so that both have the same types.
        found, names = pa.dataset.dataset(self.path, format=self.format), [*columns, *self.index]
        for name in columns:
            if pa.types.is_nested(found.schema.field(name).type):
                raise ValueError(f"{name!r} has nested values ({found.schema.field(name).type}). Leave the column out.")
        if n_rows is None:
            tables = iter([found.to_table(columns=names)])
        else:
            batches = found.to_batches(columns=names, batch_size=n_rows, use_threads=False)
            tables = (pa.Table.from_batches([batch]) for batch in batches)
        n_before = 0
        for table in tables:
            frame = _stripped(_exact(table.to_pandas(ignore_metadata=True), table))
            if self.index:
                frame = frame.set_index(list(self.index))
                frame.index.names = [None if name.startswith("__index_level_") else name for name in self.index]
            elif self.numbering:
                start, step = (self.numbering[key] for key in ("start", "step"))
                rows = range(start + n_before * step, start + (n_before + len(frame)) * step, step)
                frame.index = require_pandas(self.name).RangeIndex(rows, name=self.numbering["name"])
            n_before += len(frame)
            yield frame


def open_table(
    path: str | Path,
    *,
    name: str | None = None,
    format: str | None = None,
    encoding: str = "utf-8-sig",
    missing: Sequence[str] = (),
    decimal: str = ".",
    separator: str | None = None,
    layout: Layout | None = None,
    thousands: str = "",
    symbols: Sequence[str] = (),
    dates: str = "",
) -> TableFile:
    r"""Open a table in a file; only its format, separator and column names are read.

    Classifiers accept the result as the source of ``fit_batches``, and read its rows with its notation.

    Parameters
    ----------
    path : str or Path
        The file. Text may be compressed, with the extension .gz, .bz2 or .xz.
    name : str, optional
        The name of the file in messages; by default the path.
    format : {"csv", "tsv", "parquet", "feather"}, optional
        The format; by default, determined by the extension or by the first bytes. Fields of "csv" are separated by
        commas, or by semicolons or tabs if the header has no comma.
    encoding : str, default="utf-8-sig"
        Encoding of text; the default is UTF-8 with or without a byte order mark.
    missing : sequence of str, default=()
        Strings for a missing value, besides the empty field, NA, NaN, null and similar.
    decimal : {".", ","}, default="."
        Decimal mark of numbers in text.
    separator : str, optional
        The character between fields of text; by default, determined by a first line such as ``sep=;``, or by the
        header.
    layout : Layout, optional
        Skipped lines, comments and header of text.
    thousands : {"", ",", ".", "'", " "}, default=""
        Thousands separator of numbers in text. A column is converted only if all its values are numbers.
    symbols : sequence of str, default=()
        Symbols and units around numbers, such as "$", "%" or "kg"; "()" for negative numbers in parentheses.
    dates : {"", "day-first", "month-first", "year-first"}, default=""
        Order of dates in text that are not in ISO 8601 format.

    Returns
    -------
    TableFile
        Its method ``read`` returns all rows as a pandas DataFrame, ``batches`` yields them in parts.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is empty, malformed, a spreadsheet, or has duplicate column names.
    TypeError
        If ``missing`` or ``symbols`` is a string instead of a list.
    ImportError
        If reading it needs a package that is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tanlearn
    >>> _ = Path("fruit.csv").write_text("kind;kg\nplum;0,5\nplum;0,7\npear;1,2\npear;1,4\n")
    >>> fruit = tanlearn.open_table("fruit.csv", decimal=",")
    >>> fruit.read()["kg"].tolist()
    [0.5, 0.7, 1.2, 1.4]
    >>> tanlearn.NaiveBayesClassifier().fit_batches(fruit, "kind").classes_.tolist()
    ['pear', 'plum']
    """
    for option, strings in (("missing", missing), ("symbols", symbols)):
        if isinstance(strings, str):
            raise TypeError(f"{option} must be a list of strings, got {strings!r}. Put it in brackets: [{strings!r}].")
    if separator is not None and len(separator) != 1:
        raise ValueError(f"the separator must be one character, got {separator!r}.")
    Notation(decimal, thousands, tuple(symbols), dates, tuple(missing)).check()
    path = Path(path)
    name = str(path) if name is None else name
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {name}.")
    if format is None and path.suffix.lower() in SPREADSHEETS:
        raise ValueError(f"{name} is a spreadsheet, which cannot be read. Save it as .csv.")
    if path.stat().st_size == 0:
        raise ValueError(f"{name} cannot be read: it is empty, without even a header line.")
    found = format_of(path) if format is None else format
    given, layout = separator, Layout() if layout is None else layout
    usual = FORMATS[found].separator
    separator = given or usual or ","
    index: list[Any] = []
    if usual is not None:
        if (reason := compression_error(path)) is not None:
            raise ValueError(f"{name} cannot be read: {reason}")
        try:
            with open_text(path, encoding) as file:
                if found == "csv" and given is None:
                    separator = find_separator(file, layout)
                columns = CheckedRows(file, separator, layout=layout).header
        except UnicodeDecodeError as error:
            raise undecodable(path, name, encoding, error) from error
        except (LookupError, OSError, ValueError, *DAMAGE_ERRORS) as error:
            raise ValueError(f"{name} cannot be read: {damage(error)}") from error
        columns = _named(columns)
    else:
        columns, index = _binary_columns(path, name, found)
    twice = next((column for j, column in enumerate(columns) if column in columns[:j]), None)
    if not columns or twice is not None:
        reason = "there is no header line" if not columns else f"two columns are called {twice!r}. Rename one"
        raise ValueError(f"{name} cannot be read: {reason}.")
    names = tuple(one for one in index if isinstance(one, str))
    numbering = next((one for one in index if isinstance(one, dict)), {})
    symbols, missing = tuple(map(str.strip, symbols)), tuple(map(str.strip, missing))
    notation = Notation(decimal, thousands, symbols, dates, missing)
    return TableFile(path, name, found, tuple(columns), separator, encoding, layout, notation, names, numbering)


def require_pandas(what: str) -> Any:
    """Import pandas, or raise ImportError with the message that ``what`` needs it."""
    return _require("pandas", what)


def require_pyarrow(what: str) -> Any:
    """Import pyarrow with its data sets; the ImportError reports that ``what`` needs it."""
    _require("pyarrow.dataset", what)
    return _require("pyarrow", what)


def _require(module: str, what: str) -> Any:
    """Import a module of the extra ``frames``."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'{what} needs {package}. Install it with: pip install "tanlearn[frames]"') from error


def _named(columns: list[str]) -> list[str]:
    """Fill in empty column names as pandas does, with unique names."""
    found = list(columns)
    for j, column in enumerate(columns):
        if not column:
            names = (f"Unnamed: {j}" + (f".{k}" if k else "") for k in count())
            found[j] = next(name for name in names if name not in columns)
    return found


def _binary_columns(path: Path, name: str, found: str) -> tuple[list[str], list[Any]]:
    """Return the columns of a Parquet or Feather file, and the columns that pandas stored as the index."""
    require_pandas(name)
    pa = require_pyarrow(name)
    try:
        schema = pa.dataset.dataset(path, format=found).schema
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} cannot be read: {error}") from error
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [column for column in schema.names if column not in index], index


def _exact(frame: Any, table: Any) -> Any:
    """Restore 64-bit integers that pandas rounded to floats because the column has missing values."""
    import pyarrow as pa

    pd = require_pandas("a table")
    kinds = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
    rounded = [
        name
        for name in frame.columns
        if table[name].type in kinds and frame[name].dtype.kind == "f" and (frame[name].abs() >= 2**53).any()
    ]
    return frame.assign(**{name: table[name].to_pandas(types_mapper=kinds.get) for name in rounded})


def _stripped(frame: Any) -> Any:
    """Strip spaces around the strings of a frame."""
    strings = {name: frame[name].str.strip() for name in frame.columns if contains_strings(frame[name])}
    return frame.assign(**strings) if strings else frame
