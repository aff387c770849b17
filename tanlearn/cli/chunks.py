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
from tanlearn.cli.tables import check_classes
from tanlearn.data.file_source import FileSource, MixedColumnsError
from tanlearn.data.table_files import TableFile

if TYPE_CHECKING:
    from tanlearn.data.table_encoder import TableEncoder


__all__ = ["ChunkSource", "check_counts", "learn_by_chunks", "note_texts"]

T = TypeVar("T")


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
        self._file = FileSource(table, names, target, n_rows, texts=texts, prepare=prepare)
        self._draw = draw  # draws the share of a pass that is done; None in the first pass, before rows are counted
        self._is_part = is_part  # whether other rows are elsewhere, so that one class here is enough

    @property
    def n_samples(self) -> int:
        """Number of rows with a class, once all were read."""
        return self._file.n_samples

    def read(self, work: Callable[[ChunkSource], T]) -> T:
        """Return the result of a function of the rows, which starts again if columns turn out to be mixed."""
        while True:
            try:
                return work(self)
            except MixedColumnsError as error:
                note(f"text and numbers stand in {', '.join(sorted(error.names))}: all of it counts as text.")

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        classes: set[Any] = set()
        n_done, n_samples = 0, self.n_samples
        for frame in self._file:
            y = frame[self._file.target].to_numpy()
            n_done += len(y)
            if not n_samples:
                classes.update(np.unique(y).tolist())
            yield frame[self._file.columns], y
            self._draw(n_done / n_samples if n_samples else None)
        if not n_samples:
            file = self._file
            if self._is_part and n_done:
                note_missing(file.n_without_class, n_done, file.target)
            else:
                check_classes(sorted(classes), file.n_without_class, n_done, file.target, file.table.name)
            note_dates(file.dates)


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
