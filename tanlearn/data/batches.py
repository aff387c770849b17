"""Batches of columns, classes and weights, of data of any size, as often as they are asked for.

Every batch has the columns of the first, in their order and of their kinds. What is wrong is told with the batch and
the number of its first row. A source may also be a part of a larger one, whose parts are read elsewhere: by itself it
may have no rows, no weight and one class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.data.columns import read_columns, shorten
from tanlearn.data.same_columns import SameColumns, kind_of
from tanlearn.data.table import Column, Table
from tanlearn.data.table_pieces import Piece, holds_table, table_pieces
from tanlearn.data.validation import check_total, read_labels, read_target, row_weights, zero_weight_rows

__all__ = ["Batch", "Batches", "located", "open_batches"]

_REMEDY = (
    "To have it read again, pass what begins anew: a list, a file, a data set, or a function without arguments that "
    "returns the source."
)


class Batch(NamedTuple):
    """Some rows of a source."""

    columns: Table  # The features
    target: Column  # The classes as they were read
    sample_weight: AnyArray | None  # (n_samples,): Weights, finite and non-negative, perhaps all zero
    place: str = "batch 0"  # What messages call it

    @property
    def n_samples(self) -> int:
        """Number of rows, at least 1."""
        return self.columns.n_samples

    @property
    def y(self) -> AnyArray:
        """The classes as they are, not numbered, shape (n_samples,)."""
        return read_labels(self.target)

    def located(self) -> AbstractContextManager[None]:
        """Return a context in which errors tell where the batch is."""
        return located(self.place)


@contextmanager
def located(place: str) -> Iterator[None]:
    """Say where something is wrong."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"in {place}: {error}") from error
    except ValueError as error:
        raise ValueError(f"in {place}: {error}") from error


class Batches:
    """A source of batches; every iteration is a new reading of it."""

    def __init__(
        self,
        source: Any,
        target: Any,
        weight: Any,
        columns: Sequence[Any] | None,
        batch_rows: int | None,
        part: int | None,
    ) -> None:
        if batch_rows is not None and (not isinstance(batch_rows, int | np.integer) or batch_rows < 1):
            raise ValueError(f"batch_rows must be a whole number of at least 1, got {batch_rows!r}.")
        for what, name in (("target", target), ("weight", weight)):
            if np.ndim(name) > 0:
                raise TypeError(
                    f"{what} must be the name of a column of the source, got {shorten(name)}. Classes and weights that "
                    f"are at hand stand beside the table: pass [(X, y)] or [(X, y, sample_weight)]."
                )
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, got {columns!r}. Put it in brackets.")
        if not (holds_table(source) or callable(source) or isinstance(source, Iterable)):
            raise _unknown("source", source)
        # Names of the features; ``None`` if the source has none, and before the first batch has been read
        self.names: tuple[str, ...] | None = None
        self._source = source  # source, target, weight, columns, batch_rows, part: As for :func:`open_batches`
        self._target, self._weight = target, weight
        self._columns = None if columns is None else list(columns)
        self._batch_rows = batch_rows
        self._part = part
        self._is_begun = False
        # What the first reading has found, and later ones have to find again.
        self.same = SameColumns()  # What the batches that have been read have in common
        self.n_samples: int | None = None  # Rows, of any weight, once all were read

    @property
    def is_rereadable(self) -> bool:
        """Whether the source can be read more than once: iterators, which end for good, cannot."""
        return not hasattr(self._source, "__next__")

    def __iter__(self) -> Iterator[Batch]:
        if self._is_begun and not self.is_rereadable:
            raise ValueError(f"the source, of type {type(self._source).__name__}, has been read already. {_REMEDY}")
        self._is_begun = True
        return self._read()

    def _read(self) -> Iterator[Batch]:
        """Yield the batches of one reading."""
        first, total, is_weighted = 0, 0, False
        for number, piece in enumerate(self._pieces()):
            name, place = f"batch {number}", f"batch {number}, whose row 0 is row {first:,} of the source"
            if self._part is not None:
                name = place = f"partition {self._part}" + (f", from row {first:,} of it on" if first else "")
            with located(place):
                batch, names = self._batch(piece)
                batch = batch._replace(place=place)
                columns, target = batch.columns, batch.target
                if (ignored := zero_weight_rows(batch.sample_weight)) is not None:  # they decide on no type
                    columns, target = columns.take(~ignored), target.take(~ignored)
                self.same.check(name, columns)
                self.same.check_kind(name, "y", kind_of(replace(target, is_declared=False)))
                self.same.check_weights(name, batch.sample_weight is not None)
                if number == 0:
                    self.names = _string_names(names)
            if batch.sample_weight is not None:
                is_weighted = True
                with np.errstate(over="ignore"):  # an infinite sum is refused at the end
                    total += batch.sample_weight.sum().item()
            first += batch.n_samples
            yield batch
        if self.n_samples not in (None, first):
            raise ValueError(
                f"the source, of type {type(self._source).__name__}, had {self.n_samples:,} row(s) when it was first "
                f"read, and has {first:,} now. {_REMEDY}"
            )
        self.n_samples = first
        if self._part is not None:
            return
        if first == 0:
            raise ValueError("the source has no rows, but learning needs some. Pass one that has.")
        if is_weighted:
            check_total(total, first)

    def _pieces(self) -> Iterator[Piece | tuple[Any, ...]]:
        """Yield pieces of tables, and tuples, that have any rows."""
        source = self._source
        if callable(source) and not holds_table(source):
            source = source()
        if holds_table(source):
            yield from table_pieces(source, self._choose, self._batch_rows)
            return
        if not isinstance(source, Iterable):
            raise _unknown("source", source)
        for number, item in enumerate(source):
            if isinstance(item, tuple) and len(item) in (2, 3):
                if (self._target, self._weight, self._columns) != (None, None, None):
                    raise ValueError(
                        f"target, weight and columns name columns of tables, but item {number} of the source is a "
                        f"tuple, which holds classes and weights itself. Leave them out, or pass tables."
                    )
                if not hasattr(item[0], "__len__") or len(item[0]):
                    yield item
            elif holds_table(item):
                yield from table_pieces(item, self._choose, self._batch_rows)
            else:
                raise _unknown(f"item {number} of the source", item)

    def _choose(self, names: list[Any]) -> list[Any]:
        """Return features, then target and weight, among the columns of a table."""
        known, times = f"There are: {', '.join(map(repr, names))}.", Counter(names)
        if self._target is None:
            raise ValueError(f"target must name the column that holds the classes. {known}")
        others = [self._target] if self._weight is None else [self._target, self._weight]
        features = [name for name in names if name not in others] if self._columns is None else self._columns
        for name in (*others, *features):
            if times[name] != 1:
                raise ValueError(f"{'several columns are' if times[name] else 'no column is'} called {name!r}. {known}")
        chosen = [*features, *others]
        for name, n_times in Counter(chosen).items():
            if n_times > 1:
                raise ValueError(f"{name!r} is named {n_times} times among columns, target and weight. Name it once.")
        if not features:
            raise ValueError(f"there is no feature beside target and weight. {known}")
        return chosen

    def _batch(self, piece: Piece | tuple[Any, ...]) -> tuple[Batch, list[Any]]:
        """Return a batch, and the names of its features or what stands for them."""
        weights = None
        if isinstance(piece, tuple):
            X, y, sample_weight = (*piece, None)[:3]
            ignored = zero_weight_rows(sample_weight)
            table = read_columns(X, ignored=ignored)
            if sample_weight is not None:
                weights = row_weights(sample_weight, table.n_samples)
            names = getattr(X, "column_names", getattr(X, "columns", ()))
            return Batch(table, read_target(y, table.n_samples, ignored), weights), list(names)
        features = piece.names[: -1 if self._weight is None else -2]
        if self._weight is not None:
            weights = _weights_of(*piece.read([self._weight]))
        ignored = zero_weight_rows(weights)
        table, (y,) = piece.read(features, ignored), piece.read([self._target], ignored)
        y = replace(y, place=f"the class (column {self._target!r})")
        return Batch(table, read_target(y, ignored=ignored), weights), features


def _string_names(names: list[Any]) -> tuple[str, ...] | None:
    """Return names that are strings; others are none."""
    n_strings = sum(isinstance(name, str) for name in names)
    if 0 < n_strings < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            f"names of columns are strings but for {other!r}, so predictions could not compare them. Make all of them "
            f"strings."
        )
    return tuple(names) if n_strings else None


def _weights_of(column: Column) -> AnyArray:
    """Return the weights that a column holds."""
    kind = kind_of(column)
    if kind not in (None, "numbers"):
        raise TypeError(f"{column.place} holds {kind}, but weights must be numbers. Cast the column to numbers.")
    return row_weights(column.numbers(), len(column.values))


def _unknown(what: str, found: Any) -> TypeError:
    """Return the error for what holds no rows."""
    return TypeError(
        f"{what} must be a table (a DataFrame of pandas or polars, a LazyFrame, a Table, RecordBatchReader or data set "
        f"of Arrow, or anything else with __arrow_c_stream__), the path of a Parquet, Feather or CSV file, an iterable "
        f"of tables or of tuples (X, y) or (X, y, sample_weight), or a function without arguments that returns one of "
        f"these; got {shorten(found)} of type {type(found).__name__}."
    )


def open_batches(
    source: Any,
    target: Any = None,
    *,
    weight: Any = None,
    columns: Sequence[Any] | None = None,
    batch_rows: int | None = None,
    part: int | None = None,
) -> Batches:
    """Take whatever holds rows as batches of columns, classes and weights.

    Nothing is read before batches are asked for. Values are read as :func:`tanlearn.data.columns.read_columns` reads
    them, batch by batch; Arrow's dictionaries declare categories, as pandas' ``category`` and polars' ``Enum`` do.
    """
    return Batches(source, target, weight, columns, batch_rows, part)
