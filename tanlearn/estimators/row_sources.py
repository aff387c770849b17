"""Sources of rows for learners based on counts. They are read once for a summary, and encoded once per pass.

:class:`RowSource` and :class:`EncodedSource` are the interfaces. This module implements these interfaces for batches
that are read in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tanlearn._typing import AnyArray, IntArray, codes_dtype
from tanlearn.encoding.encoded_data import EncodedData, joined
from tanlearn.encoding.raw_numbers import raw_numbers
from tanlearn.encoding.summaries import TableSummary
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.encoding.weights import WeightSums, own_weights, warn_of_weights, weigh_classes
from tanlearn.sources.batches import Batch, Batches
from tanlearn.sources.validation import present_rows

__all__ = ["BatchSource", "EncodedBatches", "EncodedSource", "RowEncoder", "RowSource", "choose_rows"]

#: Maximum number of rows in the sample, which is used for decisions that need more than counts.
SAMPLE_ROWS = 2**16


class RowSource(Protocol):
    """Interface of raw rows."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, which are available after :meth:`summarize`, or None."""
        ...

    def summarize(self, exact: bool) -> TableSummary:
        """Read all rows, and return a summary of their values and classes."""
        ...

    def encoded(self, encoder: RowEncoder) -> EncodedSource:
        """Return the encoded rows."""
        ...


@dataclass(frozen=True, eq=False)
class RowEncoder:
    """Picklable encoder of batches, for this and other processes."""

    encoder: TableEncoder  # fitted to all rows
    classes: AnyArray  # (n_classes,) sorted class labels
    n_samples: int  # number of rows of nonzero weight in all batches
    is_ordered: AnyArray  # (n_features,) whether the codes of the feature are ordered
    class_weight: dict[Any, Any] | None  # factor for the weights of each class
    device: str

    @classmethod
    def of(cls, summary: TableSummary, encoder: TableEncoder, class_weight: Any, device: str) -> RowEncoder:
        """Return an encoder for the summarized rows, with ``class_weight`` converted to a factor per class."""
        totals = summary.class_counts
        weigh_classes(class_weight, np.arange(len(totals)), summary.classes_, totals)  # raises before rows are counted
        if isinstance(class_weight, str):  # "balanced" refers to all rows
            class_weight = dict(zip(summary.classes_.tolist(), totals.sum() / len(totals) / totals, strict=True))
        return cls(encoder, summary.classes_, summary.n_samples, summary.have_order(encoder), class_weight, device)

    def encode(self, batch: Batch) -> EncodedData | None:
        """Encode a batch. Return None if all of its weights are 0."""
        if batch.sample_weight is not None and not batch.sample_weight.any():
            return None
        with batch.located():
            given = batch.columns, batch.target, batch.sample_weight
            columns, y, _, weights, numbers = present_rows(*given, self.classes)
            codes = self.encoder.encode_columns(columns)
            multiplied = weigh_classes(self.class_weight, y, self.classes, weights)
            raw = raw_numbers(self.encoder, columns)
        rows = codes, self.encoder.n_states_, y, len(self.classes), multiplied, columns.labels, numbers
        base = own_weights(weights, multiplied)
        with_missing = self.encoder.has_missing_category_
        data = EncodedData(*rows, self.device, is_ordered=self.is_ordered, base_weight=base, raw=raw)
        return replace(data, has_missing_category=with_missing)


class EncodedSource(ABC):
    """Base class of encoded rows that can be read any number of times."""

    def __init__(self, encoder: RowEncoder) -> None:
        # Number of rows of nonzero weight, and numbers of values (n_features,).
        self.n_samples, self.n_states = encoder.n_samples, encoder.encoder.n_states_
        self.n_classes = len(encoder.classes)
        self._encoder = encoder

    @abstractmethod
    def add_to(self, counts: Any, *, n_jobs: int | None = None) -> Any:
        """Add all rows to the counts, and return them."""

    @property
    @abstractmethod
    def sample(self) -> EncodedData:
        """Random sample of at most 65,536 rows, in order. The same rows in the same order give the same sample."""

    @property
    def nothing(self) -> EncodedData:
        """Encoded data with zero rows."""
        codes = np.empty((len(self.n_states), 0), codes_dtype(int(self.n_states.max())))
        return EncodedData(codes, self.n_states, np.empty(0, np.intp), self.n_classes, device=self._encoder.device)


def choose_rows(n_samples: int) -> IntArray:
    """Return the sorted row numbers of a sample of at most ``SAMPLE_ROWS`` rows."""
    chosen: IntArray = np.arange(n_samples)
    if n_samples > SAMPLE_ROWS:
        chosen = np.sort(np.random.default_rng(0).choice(n_samples, SAMPLE_ROWS, replace=False))
    return chosen


class BatchSource:
    """Source of batches that are read in this process."""

    def __init__(self, batches: Batches, n_jobs: int | None = None) -> None:
        self._batches, self._n_jobs = batches, n_jobs

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, which are available after the first batch."""
        return self._batches.names

    def summarize(self, exact: bool) -> TableSummary:
        """Read all rows, and return a summary of their values and classes."""
        summary, sums = self._batches.read(lambda batches: self._summarize(batches, exact))
        warn_of_weights(sums)
        return summary

    def _summarize(self, batches: Batches, exact: bool) -> tuple[TableSummary, WeightSums]:
        """Return summaries of the values and of the weights."""
        summary, sums = TableSummary(exact=exact), WeightSums()
        for batch in batches:
            with batch.located():
                summary.update(batch.columns, batch.target, batch.sample_weight, n_jobs=self._n_jobs)
            sums.update(batch.sample_weight, batch.columns.n_samples)
        return summary, sums

    def encoded(self, encoder: RowEncoder) -> EncodedBatches:
        """Return the encoded rows."""
        return EncodedBatches(self._batches, encoder)


class EncodedBatches(EncodedSource):
    """Encoded rows of batches."""

    def __init__(self, batches: Batches, encoder: RowEncoder) -> None:
        super().__init__(encoder)
        self._batches = batches

    def __iter__(self) -> Iterator[EncodedData]:
        for batch in self._batches:
            data = self._encoder.encode(batch)
            if data is not None:
                yield data

    def add_to(self, counts: Any, *, n_jobs: int | None = None) -> Any:
        """Add all rows to the counts, batch by batch, and return them."""
        for data in self:
            counts.update(data, n_jobs=n_jobs)
        return counts

    @cached_property
    def sample(self) -> EncodedData:
        """Random sample of at most 65,536 rows, in order. The same rows in the same order give the same sample."""
        chosen = choose_rows(self.n_samples)
        parts, first = [], 0
        for data in self:
            begin, end = np.searchsorted(chosen, [first, first + data.n_samples])
            parts.append(data.take(chosen[begin:end] - first))
            first += data.n_samples
        return joined(parts)
