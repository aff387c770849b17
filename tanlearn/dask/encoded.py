"""Encoded rows in partitions, with counting, sampling and gradient training on the workers."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.dask.objective import EncodedPart, PartitionedObjective
from tanlearn.dask.parts import Part
from tanlearn.dask.tree import Weighed, compute, delayed, merged
from tanlearn.encoding.encoded_data import EncodedData, joined
from tanlearn.estimators.row_sources import EncodedBatches, EncodedSource, RowEncoder, choose_rows
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.losses import Loss

__all__ = ["EncodedPartitions"]


class EncodedPartitions(EncodedSource):
    """Encoded rows of the partitions that have rows of nonzero weight."""

    def __init__(self, parts: Sequence[Part], n_samples: Sequence[int], encoder: RowEncoder) -> None:
        super().__init__(encoder)
        self._parts, self._n_rows = parts, n_samples  # partitions, and how many rows of nonzero weight each has
        self._sent = delayed(encoder, traverse=False)  # sent to each worker once

    def add_to(self, counts: Any, *, n_jobs: int | None = None) -> Any:
        """Return the sum of ``counts`` and the counts of all rows, added up by the workers; ``counts`` is not modified.

        ``n_jobs`` is accepted for compatibility with other sources but ignored, because each task uses one thread.
        """
        # Empty counts are zeros. For the pairs of 200 features with 8 values, they take 20 MB, or 20 kB compressed.
        packed = delayed(zlib.compress(pickle.dumps(counts), 1))
        tasks = [delayed(_count)(part, n_rows, self._sent, packed) for part, n_rows in self._held()]
        return compute(merged(tasks)).counts

    @cached_property
    def sample(self) -> EncodedData:
        """Sample of at most 65,536 rows, in order. Which rows it contains depends only on the number of rows."""
        chosen, first, taken = choose_rows(self.n_samples), 0, []
        for part, n_rows in self._held():
            begin, end = np.searchsorted(chosen, [first, first + n_rows])
            if begin < end:
                taken.append(delayed(_take)(part, n_rows, self._sent, chosen[begin:end] - first))
            first += n_rows
        return joined(compute(taken))

    def objective(self, layout: TableLayout, loss: Loss) -> PartitionedObjective:
        """Return the mean loss of all rows as a function. The codes stay on the workers while this object exists."""
        searched = delayed((layout, loss), traverse=False)
        parts = [delayed(_hold)(part, n_rows, self._sent, searched) for part, n_rows in self._held()]
        return PartitionedObjective(parts, layout)

    def _held(self) -> Iterator[tuple[Part, int]]:
        """Yield each partition with its number of rows of nonzero weight."""
        return zip(self._parts, self._n_rows, strict=True)


@dataclass
class _Counted(Weighed):
    """Counts of some partitions."""

    counts: Any

    def merge(self, other: _Counted) -> Self:
        """Add the counts of other partitions in place."""
        self.counts.merge(other.counts)
        return self


def _encode(part: Part, n_samples: int, encoder: RowEncoder) -> Iterator[EncodedData]:
    """Yield the encoded batches of a partition. Raise ValueError unless ``n_samples`` rows have nonzero weight."""
    found = 0
    for data in EncodedBatches(part.open(), encoder):
        found += data.n_samples
        yield data
    if found != n_samples:
        raise ValueError(
            f"partitions must have the same rows each time they are read, but partition {part.number} had "
            f"{n_samples:,} row(s) of nonzero weight at first, and now has {found:,}. Call X = X.persist() first."
        )


def _count(part: Part, n_samples: int, encoder: RowEncoder, packed: bytes) -> _Counted:
    """Count the rows of a partition."""
    counts = pickle.loads(zlib.decompress(packed))
    for data in _encode(part, n_samples, encoder):
        counts.update(data, n_jobs=1)
    return _Counted(counts)


def _take(part: Part, n_samples: int, encoder: RowEncoder, rows: IntArray) -> EncodedData:
    """Return the rows of a partition at the given positions."""
    return joined(list(_encode(part, n_samples, encoder))).take(rows)


def _hold(part: Part, n_samples: int, encoder: RowEncoder, searched: tuple[TableLayout, Loss]) -> EncodedPart:
    """Return the encoded rows of a partition, to be kept by the worker."""
    data = joined(list(_encode(part, n_samples, encoder)))
    return EncodedPart(replace(data, raw=None), *searched)  # workers keep codes but no raw numbers
