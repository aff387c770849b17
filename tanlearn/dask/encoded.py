"""Encoded rows in partitions: counted, drawn from, and searched over, where they are."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.dask.objective import EncodedPart, PartitionedObjective
from tanlearn.dask.tree import compute, delayed, merged
from tanlearn.data.batches import Batches
from tanlearn.data.encoded_data import EncodedData, joined
from tanlearn.estimators.row_sources import EncodedSource, RowEncoder, choose_rows
from tanlearn.network.tables import TableLayout
from tanlearn.training.losses import Loss

__all__ = ["EncodedPartitions"]


class EncodedPartitions(EncodedSource):
    """The encoded rows of partitions.

    Parameters
    ----------
    batches : sequence of Delayed
        The batches of each partition that has rows of non-zero weight.
    n_samples : sequence of int
        How many of these it has.
    encoder : RowEncoder
        What makes codes of them; it is sent to each worker once.
    """

    def __init__(self, batches: Sequence[Any], n_samples: Sequence[int], encoder: RowEncoder) -> None:
        super().__init__(encoder)
        self._batches, self._n_rows = batches, n_samples
        self._sent = delayed(encoder, traverse=False)

    def add_to(self, counts: Any, *, n_jobs: int | None = None) -> Any:
        """Count all rows: every partition by itself, and sums of them from worker to worker.

        Parameters
        ----------
        counts : object
            With ``update(data, n_jobs=...)`` and ``merge(other)``; it stays as it is.
        n_jobs : int, optional
            Accepted like by other sources, and not used: a task takes a thread.

        Returns
        -------
        object
        """
        # Of no rows yet, they are zeros: 20 MB for the pairs of 200 features of 8 values, and 20 kB as they are sent.
        packed = delayed(zlib.compress(pickle.dumps(counts), 1))
        return compute(merged([delayed(_count)(*part, self._sent, packed) for part in self._parts()]))

    @cached_property
    def sample(self) -> EncodedData:
        """At most 65,536 rows, drawn from all of them, in their order: the same of the same rows in the same order."""
        chosen, first, parts = choose_rows(self.n_samples), 0, []
        for batches, n_rows in self._parts():
            begin, end = np.searchsorted(chosen, [first, first + n_rows])
            if begin < end:
                parts.append(delayed(_take)(batches, n_rows, self._sent, chosen[begin:end] - first))
            first += n_rows
        return joined(compute(parts))

    def objective(self, layout: TableLayout, loss: Loss) -> PartitionedObjective:
        """Return the mean loss of all rows; their codes stay on the workers as long as it is held.

        Parameters
        ----------
        layout : TableLayout
            One table a feature.
        loss : Loss
            Of a row.

        Returns
        -------
        PartitionedObjective
        """
        searched = delayed((layout, loss), traverse=False)
        parts = [delayed(_hold)(*part, self._sent, searched) for part in self._parts()]
        return PartitionedObjective(parts, layout)

    def _parts(self) -> Iterator[tuple[Any, int]]:
        """Yield the batches of every partition, and how many rows of non-zero weight they had."""
        return zip(self._batches, self._n_rows, strict=True)


def _encode(batches: Batches, n_samples: int, encoder: RowEncoder) -> Iterator[EncodedData]:
    """Yield the encoded batches of a partition that have rows of non-zero weight, as many as there were before."""
    found = 0
    for batch in batches:
        data = encoder.encode(batch)
        if data is not None:
            found += data.n_samples
            yield data
    if found != n_samples:
        raise ValueError(
            f"partition {batches.part} had {n_samples:,} row(s) of non-zero weight when it was first read, and has "
            f"{found:,} now. Partitions are read several times and have to be the same each time: keep them by "
            f"X = X.persist() before."
        )


def _count(batches: Batches, n_samples: int, encoder: RowEncoder, packed: bytes) -> Any:
    """Count a partition."""
    counts = pickle.loads(zlib.decompress(packed))
    for data in _encode(batches, n_samples, encoder):
        counts.update(data, n_jobs=1)
    return counts


def _take(batches: Batches, n_samples: int, encoder: RowEncoder, rows: IntArray) -> EncodedData:
    """Return some rows of a partition."""
    return joined(list(_encode(batches, n_samples, encoder))).take(rows)


def _hold(batches: Batches, n_samples: int, encoder: RowEncoder, searched: tuple[TableLayout, Loss]) -> EncodedPart:
    """Return the encoded rows of a partition."""
    return EncodedPart(joined(list(_encode(batches, n_samples, encoder))), *searched)
