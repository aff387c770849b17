"""Files larger than memory: read in chunks, in as many passes as a learner needs.

The type of a column is determined by the whole file, as for tables in memory. A column with text in one chunk and
numbers in another counts as text, and a column contains dates only if all of its values are dates.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from tanlearn.baselines import LEARNERS
from tanlearn.cli.column_notes import note_dates, note_missing, note_numbers_as_texts
from tanlearn.cli.messages import note
from tanlearn.cli.tables import check_classes, labelled
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.data.table_files import TableFile, dates_as_days

__all__ = ["ChunkSource", "check_counts", "learn_by_chunks", "note_texts"]

T = TypeVar("T")


class _MixedError(Exception):
    """Error for columns with text in some chunks and other values in others."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(names)
        self.names = names


class ChunkSource:
    """Rows of a file as a source for ``fit_batches``; each iteration reads the file again."""

    def __init__(
        self,
        table: TableFile,
        target: str,
        names: Sequence[str],
        n_rows: int,
        draw: Callable[[float | None], None],
        *,
        texts: Collection[str] = (),
        prepare: Callable[[Any, Any], Any] | None = None,
        is_part: bool = False,
    ) -> None:
        self.n_samples = 0  # rows with a class; 0 before the first pass
        # target: column of the classes. names: feature columns. n_rows: rows per chunk.
        self._table, self._target, self._names, self._n_rows = table, target, list(names), n_rows
        # draw: shows the fraction of a pass; None in the first pass, which determines the number of rows. texts:
        # columns to read as text. prepare: converts a chunk to known types, given the number of its first row or of
        # all rows; by default, the file determines the types, and dates are days since 1970. is_part: the other rows
        # are in other files, so that one class is enough.
        self._draw, self._texts, self._prepare, self._is_part = draw, set(texts), prepare, is_part

    def read(self, work: Callable[["ChunkSource"], T]) -> T:
        """Return the result of ``work`` on the rows; if types differ between chunks, start again with text columns."""
        while True:
            try:
                return work(self)
            except _MixedError as error:
                if error.names <= self._texts:  # types declared in the file
                    raise ValueError(
                        f"{self._table.name}: {min(error.names)!r} holds values of several types. Convert them."
                    ) from None
                note(f"text and numbers are mixed in {', '.join(sorted(error.names))}: all values count as text.")
                self._texts |= error.names

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        kinds: dict[str, str] = {}
        mixed: set[str] = set()
        classes: set[Any] = set()
        n_done, n_missing = 0, 0
        is_first = not self.n_samples
        dropped: list[int] = []
        wanted = [*self._names, self._target]
        for frame in self._table.chunks(self._n_rows, wanted, texts=self._texts, target=self._target, dropped=dropped):
            found = {self._target: _kind(frame[self._target].dropna())} if is_first else {}
            if self._prepare is not None:  # before rows without a class are removed, for the row numbers
                is_text = self._table.format in ("csv", "tsv")
                first: Any = frame.index.to_numpy() + 1 if is_text else n_done + n_missing + 1
                prepared = self._prepare(frame[self._names], first)
                frame = prepared.assign(**{self._target: frame[self._target]})
            X, y, n_without = labelled(frame, self._target, self._table.name)
            if self._prepare is None:
                X, dates = dates_as_days(X, [name for name in self._names if name not in self._texts])
                found |= {name: "date" if name in dates else _kind(X[name].dropna()) for name in self._names}
            for name, kind in found.items():
                if kind is not None and kinds.setdefault(name, kind) != kind:
                    mixed.add(name)
            n_done, n_missing = n_done + len(y), n_missing + n_without
            if is_first:
                classes.update(np.unique(y).tolist())
            if not mixed:
                yield X, y
            self._draw(None if is_first else n_done / self.n_samples)
        n_missing += len(dropped)
        if mixed:  # raised after the last chunk, so that the file is read again only once
            raise _MixedError(mixed)
        if is_first:
            self.n_samples = n_done
            if self._is_part and n_done:
                note_missing(n_missing, n_done, self._target)
            else:
                check_classes(sorted(classes), n_missing, n_done, self._target, self._table.name)
            note_dates([name for name in self._names if kinds.get(name) == "date"])


def check_counts(estimator: Any, name: str) -> None:
    """Raise an error for a learner that needs all rows at once."""
    if not hasattr(estimator, "fit_batches"):
        able = [known.name for known in LEARNERS.values() if hasattr(known.make(), "fit_batches")]
        raise ValueError(
            f"{name} needs all rows at once, so it cannot be fitted in chunks. Learners that can: {', '.join(able)}. "
            f"--chunk-rows 0 reads the whole table."
        )


def learn_by_chunks(
    table: TableFile,
    target: str,
    names: Sequence[str],
    estimator: Any,
    n_rows: int,
    draw: Callable[[float | None], None],
) -> int:
    """Fit an estimator to a file in chunks, and return the number of rows."""
    source = ChunkSource(table, target, names, n_rows, draw)
    source.read(estimator.fit_batches)
    note_texts(names, estimator.encoder_)
    return source.n_samples


def note_texts(names: Sequence[str], encoder: TableEncoder) -> None:
    """Print notes about columns of number-like strings that count as text, with the reason."""
    from pandas import Series

    for name, known in zip(names, encoder.categories_, strict=True):
        if known is not None and known.dtype.kind == "O":
            note_numbers_as_texts(Series(known.tolist(), name=name, dtype=object))


def _kind(present: Any) -> str | None:
    """Return the type of the values of a column, or None without values."""
    if not len(present):
        return None
    if present.dtype.kind in "iuf":
        return "number"
    is_bool = present.dtype.kind == "b" or all(type(value) is bool for value in present.unique().tolist())
    return "bool" if is_bool else "text"
