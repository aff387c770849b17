"""Files that are larger than memory: read chunk by chunk, and as often as a learner asks for them.

What a column is, the whole file decides, as it does for tables in memory: where there are texts in one chunk and
numbers in another, all of it counts as text, and dates are dates if all are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tanlearn.cli.column_notes import note_dates, note_missing, note_numbers_as_texts
from tanlearn.cli.messages import note
from tanlearn.cli.tables import check_classes, labelled
from tanlearn.data.table_files import TableFile, dates_as_days

if TYPE_CHECKING:
    from tanlearn.data.table_encoder import TableEncoder


__all__ = ["ChunkSource", "check_counts", "learn_by_chunks", "note_texts"]

T = TypeVar("T")


class _MixedError(Exception):
    """Columns hold texts in some chunks, and something else in others."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(names)
        self.names = names


class ChunkSource:
    """The rows of a file, as ``fit_batches`` takes them: every iteration reads them anew."""

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
        self.n_samples = 0  # Rows with a class, once all were read
        # table: The file. target: The column with the classes. names: The columns to learn from. n_rows: Rows a
        # chunk.
        self._table, self._target, self._names, self._n_rows = table, target, list(names), n_rows
        # draw: Of the share of a reading that is done; None in the first one, which finds out how many rows there
        # are. texts: Columns that are texts, whatever they look like. prepare: Of a chunk and the number of its first
        # row, or those of all rows, returns it as columns of known kinds. Otherwise the file decides on kinds, and
        # dates are days. is_part: Whether other rows stand elsewhere, so that one class here is enough.
        self._draw, self._texts, self._prepare, self._is_part = draw, set(texts), prepare, is_part

    def read(self, work: Callable[[ChunkSource], T]) -> T:
        """Return what is made of the rows; where kinds turn out to differ, it is begun anew with texts."""
        while True:
            try:
                return work(self)
            except _MixedError as error:
                if error.names <= self._texts:  # of types that a file declares
                    raise ValueError(
                        f"{self._table.name}: {min(error.names)!r} holds values of several kinds."
                    ) from None
                note(f"text and numbers stand in {', '.join(sorted(error.names))}: all of it counts as text.")
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
            if self._prepare is not None:  # with all rows, which it numbers
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
        if mixed:  # all of them, so that a file is begun anew once
            raise _MixedError(mixed)
        if is_first:
            self.n_samples = n_done
            if self._is_part and n_done:
                note_missing(n_missing, n_done, self._target)
            else:
                check_classes(sorted(classes), n_missing, n_done, self._target, self._table.name)
            note_dates([name for name in self._names if kinds.get(name) == "date"])


def check_counts(estimator: Any, name: str) -> None:
    """Refuse a learner that needs all rows at once."""
    from tanlearn.baselines import LEARNERS

    if not hasattr(estimator, "fit_batches"):
        able = [known.name for known in LEARNERS.values() if hasattr(known.make(), "fit_batches")]
        raise ValueError(
            f"{name} needs all rows at once, so it cannot learn by chunks. Those that can: {', '.join(able)}. "
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
    """Learn from a file chunk by chunk."""
    source = ChunkSource(table, target, names, n_rows, draw)
    source.read(estimator.fit_batches)
    note_texts(names, estimator.encoder_)
    return source.n_samples


def note_texts(names: Sequence[str], encoder: TableEncoder) -> None:
    """Say which columns of numbers are columns of texts, and why."""
    from pandas import Series

    for name, known in zip(names, encoder.categories_, strict=True):
        if known is not None and known.dtype.kind == "O":
            note_numbers_as_texts(Series(known.tolist(), name=name, dtype=object))


def _kind(present: Any) -> str | None:
    """Return of what kind the values of a column are, or None if there are none."""
    if not len(present):
        return None
    if present.dtype.kind in "iuf":
        return "number"
    is_bool = present.dtype.kind == "b" or all(type(value) is bool for value in present.unique().tolist())
    return "bool" if is_bool else "text"
