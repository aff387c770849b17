"""Distinct values of a column, and lookup tables from category to code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, missing_code
from tanlearn.sources.table import Column

__all__ = ["LARGEST_EXACT", "TABLE_SPAN", "CategoryIndex", "distinct_values"]

# Integers are looked up in an array over their whole span if the span is below this number or below four entries per
# category: 0.2 ms for 60,000 values instead of 2.
TABLE_SPAN = 2**12
#: Up to this value, 64-bit floats represent every integer and its two adjacent integers exactly.
LARGEST_EXACT = 2**53 - 2


def distinct_values(column: Column) -> AnyArray:
    """Return the distinct values of a column without declared categories, sorted, shape (n_values,)."""
    values = column.values if column.missing is None else column.values[~column.missing]
    if values.dtype.kind in "iu" and values.size > 0:
        low, high = values.min(), values.max()
        span = int(high) - int(low)
        if span < TABLE_SPAN:
            # 16 us for 7,000 values; numpy.unique takes 94. Differences of 64-bit integers are correct even if they
            # wrap around.
            present = np.zeros(span + 1, np.bool_)
            present[values.astype(np.int64, copy=False) - low.astype(np.int64)] = True
            return np.flatnonzero(present).astype(values.dtype) + low
    if values.dtype.kind in "biuf":
        return np.unique(values)
    # A set takes 1 ms for 60,000 strings, sorting all of them 27 ms.
    return np.array(sorted(set(values.tolist())), dtype=object)


class CategoryIndex:
    """Lookup table from category to code, built in ``fit`` and used in every prediction."""

    def __init__(self, categories: AnyArray, dtype: type) -> None:
        self.categories = categories  # (n_categories,) the code of a category is its index
        self.dtype = dtype  # numpy.uint8 or numpy.uint16
        self.unseen = missing_code(dtype)
        self._table: AnyArray | None = None
        self._before = 0
        self._is_exact = False
        numeric = categories.dtype.kind in "biuf"
        self._order = np.argsort(categories) if numeric else None
        self._by_value = {} if numeric else self._numbered()
        are_integers = categories.dtype.kind in "biu" or (numeric and (categories == np.floor(categories)).all())
        if are_integers and len(categories) > 0:
            low, high = int(categories.min()), int(categories.max())
            # low - 1 and high + 1 must be 64-bit integers too.
            small = high - low < max(TABLE_SPAN, 4 * len(categories))
            if small and low > np.iinfo(np.int64).min and high < np.iinfo(np.int64).max:
                self._before = low - 1
                self._is_exact = low >= -LARGEST_EXACT and high <= LARGEST_EXACT
                self._table = np.full(high - low + 3, self.unseen, dtype)
                self._table[categories.astype(np.int64) - self._before] = np.arange(len(categories))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the dictionary, whose keys may be objects that file formats cannot store as keys."""
        return {**vars(self), "_by_value": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._by_value = {} if self._order is not None else self._numbered()

    def table_for(self, dtype: np.dtype[Any]) -> tuple[int, int, AnyArray] | None:
        """Return ``(low, stop, codes)``, the integer lookup table that kernels use for numbers of a dtype.

        ``codes`` covers ``low..stop - 1``, followed by the codes of other numbers and of NaN. Returns None without such
        a table, or if not all numbers of the dtype can be compared with the categories exactly.
        """
        if self._table is None or not (self._is_exact or dtype.kind == "i"):
            return None
        return self._before + 1, self._before + len(self._table) - 1, np.append(self._table[1:], self._table[-1])

    def _numbered(self) -> dict[Any, int]:
        """Return a dictionary from category to code."""
        return {category: code for code, category in enumerate(self.categories.tolist())}

    def codes(self, values: AnyArray) -> Codes:
        """Return the code of every value, or the missing code for an unseen value, shape (n_samples,)."""
        # Unsigned integers from 2**63 on become negative int64, which is harmless if no category is negative.
        fits = values.dtype.kind in "biu" and (self._before >= -1 or values.dtype != np.uint64)
        if self._table is not None and fits and (self._is_exact or self.categories.dtype.kind != "f"):
            # mode="clip" moves values outside the table to its ends, which are unseen. A difference that wraps around
            # is clipped to the opposite end.
            return self._table.take(values.astype(np.int64, copy=False) - self._before, mode="clip")
        if len(self.categories) == 0:
            return np.full(len(values), self.unseen, self.dtype)
        if self._order is None or values.dtype.kind not in "biuf":
            index = self._by_value or self._numbered()
            found = (index.get(value, self.unseen) for value in values.tolist())
            return np.fromiter(found, self.dtype, len(values))
        position = np.searchsorted(self.categories, values, sorter=self._order)
        code = self._order[np.minimum(position, len(self.categories) - 1)]
        return np.where(self.categories[code] == values, code, self.unseen).astype(self.dtype)
