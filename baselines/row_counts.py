"""Weighted counts of distinct rows per class, from which any other count of the rows can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.stored_values import check_array
from tanlearn.network.counts import type_with_room

__all__ = ["RowCounts", "distinct_columns"]


def distinct_columns(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Return the first position of each distinct column of a table, and for each column its position in that list.

    The distinct columns are sorted by the last key, then by the one before, and so on.

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


class RowCounts:
    """Distinct rows of a data set, with their classes and weights.

    Any count of the data can be computed from them. Integer weights are added exactly, so the result is bit-identical
    for any order of the rows and any split into batches. A row takes one or two bytes per feature.
    """

    def __init__(self, n_states: Any, n_classes: int) -> None:
        self.n_states: IntArray = np.asarray(n_states, np.intp)  # (n_features,) number of values of each feature
        self.n_classes = int(n_classes)
        # (n_features, n_rows) feature-major codes, as in EncodedData
        self.codes: Codes = np.empty((len(self.n_states), 0), codes_dtype(int(self.n_states.max())))
        self.y: IntArray = np.empty(0, np.intp)  # (n_rows,) classes, sorted
        self.weights: AnyArray = np.empty(0, np.int64)  # (n_rows,) above 0, int64 or float64

    @property
    def class_counts(self) -> AnyArray:
        """Total weight of each class, shape (n_classes,)."""
        counts = np.zeros(self.n_classes, self.weights.dtype)
        np.add.at(counts, self.y, self.weights)
        return counts

    def empty(self) -> RowCounts:
        """Return empty counts with the same features and classes."""
        return RowCounts(self.n_states, self.n_classes)

    def update(self, data: EncodedData, *, n_jobs: int | None = None) -> RowCounts:
        """Add the rows of a batch in place, except rows of weight 0; return self.

        Raises ValueError if the sum of integer weights would overflow. ``n_jobs`` is accepted as in CountState and
        ignored.
        """
        kept = np.flatnonzero(data.weights > 0)
        return self._add(data.codes[:, kept], data.y[kept], data.weights[kept])

    def merge(self, other: RowCounts) -> RowCounts:
        """Add the rows of other counts in place; return self.

        Raises ValueError if features or classes differ, or if the sum of integer weights would overflow.
        """
        if not np.array_equal(self.n_states, other.n_states) or self.n_classes != other.n_classes:
            raise ValueError(
                f"row counts can only be merged over the same columns: these have {self.n_classes} classes and "
                f"n_states {self.n_states.tolist()}, the others {other.n_classes} and {other.n_states.tolist()}."
            )
        return self._add(other.codes, other.y, other.weights)

    def _add(self, more: Codes, y: IntArray, weights: AnyArray) -> RowCounts:
        """Add rows, and merge the weights of equal ones."""
        dtype = type_with_room(self.weights, weights)
        codes, y = np.concatenate([self.codes, more], axis=1), np.append(self.y, y)
        weights = np.append(self.weights.astype(dtype), weights.astype(dtype))
        first, inverse = distinct_columns((*codes, y))
        self.codes, self.y = np.ascontiguousarray(codes[:, first]), y[first]
        self.weights = np.zeros(len(first), dtype)
        np.add.at(self.weights, inverse, weights)
        return self

    def restore(self, codes: Any, y: Any, weights: Any) -> None:
        """Restore the rows from arrays of a file, with ``y`` as int32; invalid arrays raise ValueError."""
        n_rows = np.size(weights)
        check_array("codes", codes, self.codes.dtype, (len(self.n_states), n_rows))
        check_array("y", y, np.int32, (n_rows,))
        dtype = np.float64 if getattr(weights, "dtype", None) == np.float64 else np.int64
        check_array("weights", weights, dtype, (n_rows,))
        known = np.where(codes == missing_code(codes.dtype), 0, codes)
        if n_rows == 0 or (known >= self.n_states[:, np.newaxis]).any():
            raise ValueError("codes must contain at least one row, and be below the number of values of each feature.")
        if y.min() < 0 or y.max() >= self.n_classes or not (weights > 0).all() or not np.isfinite(weights.sum()):
            raise ValueError("y must contain class numbers, and weights must be positive with a finite sum.")
        self.codes, self.y, self.weights = codes, y.astype(np.intp), weights

    def __eq__(self, other: object) -> bool:
        names = ("n_states", "n_classes", "codes", "y", "weights")
        return isinstance(other, RowCounts) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RowCounts(n_features={len(self.n_states)}, n_classes={self.n_classes}, n_rows={len(self.y)})"
