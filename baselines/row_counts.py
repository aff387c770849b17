"""Weighted counts of distinct rows per class, from which any other count of the rows can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn.counts.counts_base import Counts, check_counts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import check_array, fields

__all__ = ["RowCounts", "distinct_columns"]


def distinct_columns(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Return the first position of each distinct column of a table, and for each column its position in that list.

    The distinct columns are sorted by the last key, then by the previous key, and so on.

    Shapes: keys: n_rows arrays (n_columns,); result first: (n_distinct,); result inverse: (n_columns,).
    """
    order = np.lexsort(keys)
    is_new = np.arange(len(order)) == 0
    for key in keys:  # one key at a time: comparing all at once would need a copy of the table
        ordered = key[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    inverse = np.empty(len(order), np.intp)
    inverse[order] = np.cumsum(is_new) - 1
    return order[is_new], inverse


class RowCounts(Counts):
    """Distinct rows of a data set, with their classes and weights, from which any count can be computed.

    A row takes one or two bytes per feature.
    """

    def __init__(self, n_states: Any, n_classes: int) -> None:
        super().__init__(n_states, n_classes)
        # (n_features, n_rows) feature-major codes, as in EncodedData
        self.codes: Codes = np.empty((self.n_features, 0), codes_dtype(int(self.n_states.max())))
        self.y: IntArray = np.empty(0, np.intp)  # (n_rows,) classes, sorted
        self.weights: AnyArray = np.empty(0, np.int64)  # (n_rows,) above 0, int64 or float64

    @property
    def class_counts(self) -> AnyArray:
        """Total weight of each class. Shape: (n_classes,)."""
        counts = np.zeros(self.n_classes, self.weights.dtype)
        np.add.at(counts, self.y, self.weights)
        return counts

    def empty(self) -> RowCounts:
        """Return empty counts with the same features and classes."""
        return RowCounts(self.n_states, self.n_classes)

    def arrays(self) -> dict[str, AnyArray]:
        """Return the distinct rows, their classes as int32, and their weights."""
        return {"codes": self.codes, "y": self.y.astype(np.int32), "weights": self.weights}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> RowCounts:
        """Restore counts from the output of :meth:`state`; raise ValueError for inconsistent values."""
        codes, y, weights = fields(state, "codes", "y", "weights")
        counts, n_rows = cls(n_states, n_classes), np.size(weights)
        check_array("codes", codes, counts.codes.dtype, (counts.n_features, n_rows))
        check_array("y", y, np.int32, (n_rows,))
        check_counts("weights", weights, (n_rows,))
        known = np.where(codes == missing_code(codes.dtype), 0, codes)
        if (known >= counts.n_states[:, np.newaxis]).any():
            raise ValueError("codes must be below the number of values of each feature.")
        is_class = (y >= 0) & (y < n_classes)
        if not is_class.all() or not (weights > 0).all() or not np.isfinite(weights.sum()):
            raise ValueError("y must contain class numbers, and weights must be positive with a finite sum.")
        counts.codes, counts.y, counts.weights = codes, y.astype(np.intp), weights
        return counts

    def _count(self, data: EncodedData, dtype: np.dtype[Any], n_jobs: int | None) -> None:
        """Add the rows of a batch, except rows of weight 0; ``n_jobs`` is ignored."""
        self._add(data.take(data.weights > 0), dtype)

    def _add(self, other: RowCounts | EncodedData, dtype: np.dtype[Any]) -> None:
        """Add rows, and merge the weights of equal ones."""
        codes, y = np.concatenate([self.codes, other.codes], axis=1), np.append(self.y, other.y)
        weights = np.append(self.weights.astype(dtype), other.weights.astype(dtype))
        first, inverse = distinct_columns((*codes, y))
        self.codes, self.y = np.ascontiguousarray(codes[:, first]), y[first]
        self.weights = np.zeros(len(first), dtype)
        np.add.at(self.weights, inverse, weights)
