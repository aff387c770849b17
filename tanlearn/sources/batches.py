"""Batches of features, classes and weights from data sources of any size.

Every batch must have the same columns as the first batch, in the same order and of the same kinds. Errors name the
batch and its first row. A source may be one partition of a larger source; a partition may have no rows, a total weight
of zero or a single class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn._warnings import warn
from tanlearn.sources.columns import read_columns
from tanlearn.sources.file_formats import FORMATS, format_of
from tanlearn.sources.file_source import FileSource, MixedColumnsError, warn_of_rows_without_class
from tanlearn.sources.notation import Notation
from tanlearn.sources.source_schema import SourceSchema, kind_of
from tanlearn.sources.table import Column, Table, shorten
from tanlearn.sources.table_batches import TableBatch, is_table, rows_per_batch, table_batches
from tanlearn.sources.table_files import TableFile, open_table
from tanlearn.sources.validation import check_total, read_labels, read_target, row_weights, zero_weight_rows

__all__ = ["Batch", "Batches", "located", "open_batches"]

T = TypeVar("T")

_REMEDY = (
    "To read it several times, pass a list, a file, a data set, or a function without arguments that returns the "
    "source."
)


class Batch(NamedTuple):
    """Some rows of a source: features, classes and weights."""

    columns: Table  # features
    target: Column  # class labels as read
    sample_weight: AnyArray | None  # (n_samples,) finite and non-negative; may be all zero
    position: str = "batch 0"  # name of the batch in messages

    @property
    def n_samples(self) -> int:
        """Number of rows, at least 1."""
        return self.columns.n_samples

    @property
    def y(self) -> AnyArray:
        """Class labels, not encoded. Shape: (n_samples,)."""
        return read_labels(self.target)

    def located(self) -> AbstractContextManager[None]:
        """Return a context manager that adds the position of the batch to errors."""
        return located(self.position)


@contextmanager
def located(position: str) -> Iterator[None]:
    """Prefix the message of a ``TypeError`` or ``ValueError`` with a position."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"in {position}: {error}") from error
    except ValueError as error:
        raise ValueError(f"in {position}: {error}") from error


class Batches:
    """Iterable over the batches of a source; each iteration reads the source again."""

    def __init__(
        self,
        source: Any,
        target: Any,
        weight: Any,
        columns: Sequence[Any] | None,
        batch_rows: int | None,
        part: int | None,
        string_columns: Collection[Any] = (),
        notation: Notation | None = None,
    ) -> None:
        if batch_rows is not None and (not isinstance(batch_rows, int | np.integer) or batch_rows < 1):
            raise ValueError(f"batch_rows must be an integer of at least 1, got {batch_rows!r}.")
        for what, name in (("target", target), ("weight", weight)):
            if np.ndim(name) > 0:
                raise TypeError(
                    f"{what} must be the name of a column of the source, got {shorten(name)}. To pass classes and "
                    f"weights as arrays, use a source of tuples: [(X, y)] or [(X, y, sample_weight)]."
                )
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, got {columns!r}. Put it in brackets.")
        if not (is_table(source) or callable(source) or _is_sequence(source)):
            raise _unknown("source", source)
        # Feature names; None before the first batch has been read, and for sources without names
        self.names: tuple[str, ...] | None = None
        self._source = source
        self._target, self._weight = target, weight
        self._columns = None if columns is None else list(columns)
        self._batch_rows = batch_rows
        self._part = part
        self._string_columns = set(string_columns)
        self._notation = Notation() if notation is None else notation
        self._kinds: dict[str, str] = {}  # of the columns of all files of text
        self._files: dict[Any, FileSource] = {}  # files of text among the source, once they were opened
        self._is_begun = False
        # Set by the first pass; later passes must match.
        self.schema = SourceSchema()
        self.n_samples: int | None = None  # number of rows, including rows of weight 0; None before the first full pass

    @property
    def is_rereadable(self) -> bool:
        """True if the source can be iterated more than once, and False for iterators."""
        return not hasattr(self._source, "__next__")

    @property
    def notation(self) -> Notation | None:
        """The notation of the files after a pass, or None if it is the default or not the same in all files."""
        stated = {file.table.notation for file in self._files.values()}
        return stated.pop() if len(stated) == 1 and stated != {Notation()} else None

    def read(self, work: Callable[[Batches], T]) -> T:
        """Return the result of a function of the batches.

        If a column of a file contains strings and other values, the function is called again, and all values of the
        column are read as strings.
        """
        while True:
            try:
                return work(self)
            except MixedColumnsError as error:
                if self._string_columns.issuperset(error.names):
                    raise
                warn(f"{error}, so all values are read as text.")
                self._string_columns.update(error.names)
                self._files.clear()
                self.schema = SourceSchema()

    def __iter__(self) -> Iterator[Batch]:
        if self._is_begun and not self.is_rereadable:
            raise ValueError(
                f"the source (of type {type(self._source).__name__}) can be read only once, and was "
                f"already read. {_REMEDY}"
            )
        self._is_begun = True
        return self._read()

    def _read(self) -> Iterator[Batch]:
        """Yield the batches of one pass over the source."""
        self._kinds.clear()
        first, total, is_weighted = 0, 0, False
        for number, item in enumerate(self._items()):
            name, position = f"batch {number}", f"batch {number}, whose row 0 is row {first:,} of the source"
            if self._part is not None:
                name = position = f"partition {self._part}" + (f", from row {first:,} on" if first else "")
            with located(position):
                batch, names = self._batch(item)
                batch = batch._replace(position=position)
                columns, target = batch.columns, batch.target
                if (ignored := zero_weight_rows(batch.sample_weight)) is not None:  # these rows set no types
                    columns, target = columns.take(~ignored), target.take(~ignored)
                self.schema.check(name, columns)
                self.schema.check_kind(name, "y", kind_of(replace(target, is_declared=False)))
                self.schema.check_weights(name, batch.sample_weight is not None)
                if number == 0:
                    self.names = _string_names(names)
            if batch.sample_weight is not None:
                is_weighted = True
                with np.errstate(over="ignore"):  # check_total raises for an infinite sum
                    total += batch.sample_weight.sum().item()
            first += batch.n_samples
            yield batch
        if self.n_samples not in (None, first):
            raise ValueError(
                f"the source (of type {type(self._source).__name__}) must have the same rows in each pass, but had "
                f"{self.n_samples:,} row(s) in the first pass, and has {first:,} now. {_REMEDY}"
            )
        if self.n_samples is None:
            for file in self._files.values():
                warn_of_rows_without_class(file.table.name, file.target, file.n_without_class, file.n_samples)
        self.n_samples = first
        if self._part is not None:
            return
        if first == 0:
            raise ValueError("the source has no rows. Pass a source with at least one row.")
        if is_weighted:
            check_total(total, first)

    def _items(self) -> Iterator[TableBatch | tuple[Any, ...]]:
        """Yield the non-empty slices of frames, and the non-empty tuples, of the source."""
        source = self._source
        if callable(source) and not is_table(source):
            source = source()
        if is_table(source):
            yield from self._table_batches(source)
            return
        if not _is_sequence(source):
            raise _unknown("source", source)
        for number, item in enumerate(source):
            if isinstance(item, tuple) and len(item) in (2, 3):
                if (self._target, self._weight, self._columns) != (None, None, None):
                    raise ValueError(
                        f"target, weight and columns select columns of a table, but item {number} of the source is a "
                        f"tuple, which already contains classes and weights. Leave them out, or pass tables."
                    )
                if not hasattr(item[0], "__len__") or len(item[0]):
                    yield item
            elif is_table(item):
                yield from self._table_batches(item)
            else:
                raise _unknown(f"item {number} of the source", item)

    def _table_batches(self, source: Any) -> Iterator[TableBatch]:
        """Yield the non-empty slices of a table source."""
        file = self._file_source(source)
        if file is None:
            yield from table_batches(source, self._choose, self._batch_rows)
            return
        for frame in file:
            if len(frame):
                yield TableBatch(frame, [*file.columns, file.target, *file.others])

    def _file_source(self, source: Any) -> FileSource | None:
        """Return the rows of a text file or of an open file, or None for other sources."""
        if isinstance(source, str | Path):
            if not Path(source).is_file() or FORMATS[format_of(Path(source))].separator is None:
                return None
            source = open_table(source, **self._notation._asdict())
        if not isinstance(source, TableFile):
            return None
        key = source.path, source.format, source.separator, source.encoding, source.layout, source.notation
        if key not in self._files:
            chosen = self._choose(list(source.columns))
            n_others = 0 if self._weight is None else 1
            features, others = chosen[: -1 - n_others], chosen[len(chosen) - n_others :]
            size = rows_per_batch(chosen, self._batch_rows)
            string_columns = [name for name in self._string_columns if name in chosen]
            self._files[key] = FileSource(
                source, features, self._target, size, others=others, string_columns=string_columns, kinds=self._kinds
            )
        return self._files[key]

    def _choose(self, names: list[Any]) -> list[Any]:
        """Return the columns to read: features, then target, then weight."""
        known, times = f"There are: {', '.join(map(repr, names))}.", Counter(names)
        if self._target is None:
            raise ValueError(f"target must be the name of the column with the classes. {known}")
        others = [self._target] if self._weight is None else [self._target, self._weight]
        features = [name for name in names if name not in others] if self._columns is None else self._columns
        for name in (*others, *features):
            if times[name] != 1:
                raise ValueError(f"{'several columns are' if times[name] else 'no column is'} called {name!r}. {known}")
        chosen = [*features, *others]
        for name, n_times in Counter(chosen).items():
            if n_times > 1:
                raise ValueError(
                    f"{name!r} occurs {n_times} times among columns, target and weight. Use each column once."
                )
        if not features:
            raise ValueError(f"there must be at least one feature besides target and weight. {known}")
        return chosen

    def _batch(self, item: TableBatch | tuple[Any, ...]) -> tuple[Batch, list[Any]]:
        """Return a batch and its feature names, which are empty for data without column names."""
        weights = None
        if isinstance(item, tuple):
            X, y, sample_weight = (*item, None)[:3]
            ignored = zero_weight_rows(sample_weight)
            table = read_columns(X, ignored=ignored)
            if sample_weight is not None:
                weights = row_weights(sample_weight, table.n_samples)
            names = getattr(X, "column_names", getattr(X, "columns", ()))
            return Batch(table, read_target(y, table.n_samples, ignored), weights), list(names)
        features = item.names[: -1 if self._weight is None else -2]
        if self._weight is not None:
            weights = _weights_of(*item.read([self._weight]))
        ignored = zero_weight_rows(weights)
        table, (y,) = item.read(features, ignored), item.read([self._target], ignored)
        y = replace(y, label=f"the class (column {self._target!r})")
        return Batch(table, read_target(y, ignored=ignored), weights), features


def _string_names(names: list[Any]) -> tuple[str, ...] | None:
    """Return the feature names if all of them are strings, or None if no name is. Raise TypeError for a mix."""
    n_strings = sum(isinstance(name, str) for name in names)
    if 0 < n_strings < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            f"either all column names or none must be strings, but {other!r} is not a string and others are. Convert "
            f"all names to strings."
        )
    return tuple(names) if n_strings else None


def _weights_of(column: Column) -> AnyArray:
    """Return the row weights stored in a column."""
    kind = kind_of(column)
    if kind not in (None, "numbers"):
        raise TypeError(f"{column.label} holds {kind}, but weights must be numbers. Cast the column to numbers.")
    return row_weights(column.numbers(), len(column.values))


def _is_sequence(source: Any) -> bool:
    """Return whether a source yields tables or tuples; a dictionary yields its keys."""
    return isinstance(source, Iterable) and not isinstance(source, Mapping)


def _unknown(what: str, found: Any) -> TypeError:
    """Return the error for an object that is not a supported source."""
    return TypeError(
        f"{what} must be a table (a DataFrame of pandas or polars, a LazyFrame, a Table, RecordBatchReader or data set "
        f"of Arrow, or anything else with __arrow_c_stream__), the path of a Parquet, Feather or CSV file, an iterable "
        f"of tables or of tuples (X, y) or (X, y, sample_weight), or a function without arguments that returns one of "
        f"these, got {shorten(found)} of type {type(found).__name__}."
    )


def open_batches(
    source: Any,
    target: Any = None,
    *,
    weight: Any = None,
    columns: Sequence[Any] | None = None,
    batch_rows: int | None = None,
    part: int | None = None,
    string_columns: Collection[Any] = (),
    notation: Notation | None = None,
) -> Batches:
    """Wrap a source of rows as batches of features, classes and weights; nothing is read until iteration.

    Sources are

    - a table: a pandas or polars DataFrame, a polars LazyFrame (collected as a whole before polars 1.34), a pyarrow
      data set or Scanner, or any object with Arrow's C stream interface, such as a DuckDB relation;
    - the path of a Parquet, Feather or text file, a folder of Parquet files, or a file opened by
      :func:`tanlearn.open_table`. The kinds of the columns of a text file depend on the whole file, see
      :mod:`tanlearn.sources.file_source`;
    - an iterable of tables, such as pandas' chunk reader;
    - an iterable of tuples ``(X, y)`` or ``(X, y, sample_weight)``, one batch each;
    - a function without arguments that returns one of these; it is called once per pass.

    ``target``, ``weight`` and ``columns`` name columns of a table; ``columns=None`` means all others. ``batch_rows`` is
    the maximum number of rows per batch; by default, the power of two from 1,024 to 131,072 that gives about four
    million values. ``part`` is the number of the partition if the source is one partition of a larger source; a
    partition may have no rows, or a total weight of zero. ``string_columns`` are columns of text files that are always
    read as strings. ``notation`` is the notation of files given by their paths.

    Values are converted batch by batch as by :func:`tanlearn.sources.columns.read_columns`. Arrow dictionaries declare
    categories, like pandas ``category`` and polars ``Enum``.
    """
    return Batches(source, target, weight, columns, batch_rows, part, string_columns, notation)
