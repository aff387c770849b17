"""Counts of whole rows: how much every distinct row weighs in every class, the sparsest counts that say everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.files.values import check_array
from tanlearn.network.counts import type_with_room

__all__ = ["RowCounts", "distinct_columns"]


def distinct_columns(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Return where every distinct column of a table stands first, and which of them every column is.

    Shapes: keys: (n_columns,); result first: (n_distinct,); result inverse: (n_columns,).
    """
    order = np.lexsort(keys)
    is_new = np.arange(len(order)) == 0
    for key in keys:  # not all at once, which would take another table
        ordered = key[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    inverse = np.empty(len(order), np.intp)
    inverse[order] = np.cumsum(is_new) - 1
    return order[is_new], inverse


class RowCounts:
    """The distinct rows of a table, with their classes and weights.

    Whatever is counted in the table can be counted in these. Integer weights add up exactly, so the state is the same
    to the last bit whatever the order of the rows, and the batches that they came in. A row takes a byte or two a
    feature.
    """

    def __init__(self, n_states: Any, n_classes: int) -> None:
        self.n_states: IntArray = np.asarray(n_states, np.intp)  # (n_features,): Number of values of every feature
        self.n_classes = int(n_classes)  # Number of classes
        # (n_features, n_rows): Feature-major codes, as in :class:`~tanlearn.EncodedData`
        self.codes: Codes = np.empty((len(self.n_states), 0), codes_dtype(int(self.n_states.max())))
        self.y: IntArray = np.empty(0, np.intp)  # (n_rows,): Their classes. Rows are sorted by class.
        self.weights: AnyArray = np.empty(0, np.int64)  # (n_rows,): Above 0

    @property
    def class_counts(self) -> AnyArray:
        """Weight of every class, shape (n_classes,)."""
        counts = np.zeros(self.n_classes, self.weights.dtype)
        np.add.at(counts, self.y, self.weights)
        return counts

    def empty(self) -> RowCounts:
        """Return counts of no rows of the same table."""
        return RowCounts(self.n_states, self.n_classes)

    def update(self, data: EncodedData, *, n_jobs: int | None = None) -> RowCounts:
        """Add the rows of a batch; those of weight 0 are left out."""
        kept = np.flatnonzero(data.weights > 0)
        return self._add(data.codes[:, kept], data.y[kept], data.weights[kept])

    def merge(self, other: RowCounts) -> RowCounts:
        """Add the rows of other counts."""
        if not np.array_equal(self.n_states, other.n_states) or self.n_classes != other.n_classes:
            raise ValueError(
                f"rows add up only over one and the same table: these have {self.n_classes} classes and n_states "
                f"{self.n_states.tolist()}, the others {other.n_classes} and {other.n_states.tolist()}."
            )
        return self._add(other.codes, other.y, other.weights)

    def _add(self, more: Codes, y: IntArray, weights: AnyArray) -> RowCounts:
        """Add rows, and keep every distinct one once."""
        dtype = type_with_room(self.weights, weights)
        codes, y = np.concatenate([self.codes, more], axis=1), np.append(self.y, y)
        weights = np.append(self.weights.astype(dtype), weights.astype(dtype))
        first, inverse = distinct_columns((*codes, y))
        self.codes, self.y = np.ascontiguousarray(codes[:, first]), y[first]
        self.weights = np.zeros(len(first), dtype)
        np.add.at(self.weights, inverse, weights)
        return self

    def restore(self, codes: Any, y: Any, weights: Any) -> None:
        """Take rows that a file holds."""
        n_rows = np.size(weights)
        check_array("codes", codes, self.codes.dtype, (len(self.n_states), n_rows))
        check_array("y", y, np.int32, (n_rows,))
        dtype = np.float64 if getattr(weights, "dtype", None) == np.float64 else np.int64
        check_array("weights", weights, dtype, (n_rows,))
        known = np.where(codes == missing_code(codes.dtype), 0, codes)
        if n_rows == 0 or (known >= self.n_states[:, np.newaxis]).any():
            raise ValueError("codes must be of at least one row, and below the number of values of their features.")
        if y.min() < 0 or y.max() >= self.n_classes or not (weights > 0).all() or not np.isfinite(weights.sum()):
            raise ValueError("rows must be of known classes, and of weights above 0 whose sum is finite.")
        self.codes, self.y, self.weights = codes, y.astype(np.intp), weights

    def __eq__(self, other: object) -> bool:
        names = ("n_states", "n_classes", "codes", "y", "weights")
        return isinstance(other, RowCounts) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RowCounts(n_features={len(self.n_states)}, n_classes={self.n_classes}, n_rows={len(self.y)})"
