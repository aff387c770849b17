"""Reading of files that are larger than memory, in chunks, with one or more passes per fit.

The type of a column depends on the whole file, as for tables in memory. A column with text in one chunk and numbers in
another is read as text, and a column contains dates only if all of its values are dates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tanlearn.cli.column_notes import note_dates, note_missing, note_number_strings
from tanlearn.cli.tables import check_classes
from tanlearn.sources.file_source import FileSource
from tanlearn.sources.table_files import TableFile

if TYPE_CHECKING:
    from tanlearn.encoding.table_encoder import TableEncoder


__all__ = ["ChunkSource", "check_counts", "learn_by_chunks", "note_string_columns"]


class ChunkSource:
    """Source of rows of a file for ``fit_batches``. Each iteration reads the file again."""

    def __init__(
        self,
        table: TableFile,
        target: str,
        names: Sequence[str],
        n_rows: int,
        draw: Callable[[float | None], None],
        *,
        string_columns: Collection[str] = (),
        prepare: Callable[[Any, Any], Any] | None = None,
        is_part: bool = False,
    ) -> None:
        self._file = FileSource(table, names, target, n_rows, string_columns=string_columns, prepare=prepare)
        self._draw = draw  # shows the finished fraction of a pass, or None in the first pass, before rows are counted
        self._is_part = is_part  # whether other files contain more rows, so that one class in this file is enough

    @property
    def n_samples(self) -> int:
        """Number of rows with a class, after all rows have been read."""
        return self._file.n_samples

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
    """Raise an error for a learner that needs all rows at once."""
    from tanlearn.baselines import LEARNERS

    if not hasattr(estimator, "fit_batches"):
        able = [known.name for known in LEARNERS.values() if hasattr(known.make(), "fit_batches")]
        raise ValueError(
            f"{name} cannot be fitted in chunks, because it needs all rows at once. Use one of these learners: "
            f"{', '.join(able)}, or read all rows at once with --chunk-rows 0."
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
    estimator.fit_batches(source)
    note_string_columns(names, estimator.encoder_)
    return source.n_samples


def note_string_columns(names: Sequence[str], encoder: TableEncoder) -> None:
    """Print the reasons for which columns of number-like strings are read as text."""
    from pandas import Series

    for name, known in zip(names, encoder.categories_, strict=True):
        if known is not None and known.dtype.kind == "O":
            note_number_strings(Series(known.tolist(), name=name, dtype=object))
