"""Encoded rows in partitions: counted, drawn from, and searched over, where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.dask.objective import EncodedPart, PartitionedObjective
from tanlearn.dask.parts import Part
from tanlearn.dask.tree import Weighed, compute, delayed, merged
from tanlearn.data.encoded_data import EncodedData, joined
from tanlearn.estimators.row_sources import EncodedSource, RowEncoder, choose_rows
from tanlearn.network.tables import TableLayout
from tanlearn.training.losses import Loss

__all__ = ["EncodedPartitions"]


class EncodedPartitions(EncodedSource):
    """The encoded rows of partitions.

    Parameters
    ----------
    parts : sequence of Part
        The partitions that have rows of non-zero weight.
    n_samples : sequence of int
        How many of these each has.
    encoder : RowEncoder
        What makes codes of them; it is sent to each worker once.
    """

    def __init__(self, parts: Sequence[Part], n_samples: Sequence[int], encoder: RowEncoder) -> None:
        super().__init__(encoder)
        self._parts, self._n_rows = parts, n_samples
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
        blank = delayed(counts, traverse=False)
        return compute(merged([delayed(_count)(part, self._sent, blank) for part in self._parts])).counts

    @cached_property
    def sample(self) -> EncodedData:
        """At most 65,536 rows, drawn from all of them, in their order: the same of the same rows in the same order."""
        chosen, first, taken = choose_rows(self.n_samples), 0, []
        for part, n_rows in zip(self._parts, self._n_rows, strict=True):
            begin, end = np.searchsorted(chosen, [first, first + n_rows])
            if begin < end:
                taken.append(delayed(_take)(part, self._sent, chosen[begin:end] - first))
            first += n_rows
        return joined(compute(taken))

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
        parts = [delayed(_hold)(part, self._sent, layout, loss) for part in self._parts]
        return PartitionedObjective(parts, layout)


@dataclass
class _Counted(Weighed):
    """Counts of some partitions."""

    counts: Any

    def merge(self, other: _Counted) -> Self:
        """Add those of other partitions."""
        self.counts.merge(other.counts)
        return self


def _encode(part: Part, encoder: RowEncoder) -> Iterator[EncodedData]:
    """Yield the encoded batches of a partition that have rows of non-zero weight."""
    for batch in part.open():
        data = encoder.encode(batch)
        if data is not None:
            yield data


def _count(part: Part, encoder: RowEncoder, counts: Any) -> _Counted:
    """Count a partition, in a copy of what other tasks of this worker count in, too."""
    counts = deepcopy(counts)
    for data in _encode(part, encoder):
        counts.update(data, n_jobs=1)
    return _Counted(counts)


def _take(part: Part, encoder: RowEncoder, rows: IntArray) -> EncodedData:
    """Return some rows of a partition."""
    return joined(list(_encode(part, encoder))).take(rows)


def _hold(part: Part, encoder: RowEncoder, layout: TableLayout, loss: Loss) -> EncodedPart:
    """Return the encoded rows of a partition."""
    return EncodedPart(joined(list(_encode(part, encoder))), layout, loss)
