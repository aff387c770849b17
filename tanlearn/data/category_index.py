"""Where the categories of a column are found."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, missing_code

__all__ = ["LARGEST_EXACT", "TABLE_SPAN", "CategoryIndex"]

# Integers are looked up in a table of all that they span, 0.2 ms for 60,000 values instead of 2, if that is
# less than this, or than four entries a category.
TABLE_SPAN = 2**12
#: Up to here, floating numbers of 64 bits hold every integer and its neighbours.
LARGEST_EXACT = 2**53 - 2


class CategoryIndex:
    """Where the categories of a column are found: made once in ``fit``, asked in every prediction."""

    def __init__(self, categories: AnyArray, dtype: type) -> None:
        self.categories = categories  # (n_categories,): What the codes stand for
        self.dtype = dtype  # ``numpy.uint8`` or ``numpy.uint16``, large enough for the categories
        self.unseen = missing_code(dtype)
        self._table: AnyArray | None = None
        self._before = 0
        self._is_exact = False
        numeric = categories.dtype.kind in "biuf"
        self._order = np.argsort(categories) if numeric else None
        self._by_value = {} if numeric else self._numbered()
        whole = categories.dtype.kind in "biu" or (numeric and (categories == np.floor(categories)).all())
        if whole and len(categories) > 0:
            low, high = int(categories.min()), int(categories.max())
            # Both neighbours must be 64-bit integers too.
            small = high - low < max(TABLE_SPAN, 4 * len(categories))
            if small and low > np.iinfo(np.int64).min and high < np.iinfo(np.int64).max:
                self._before = low - 1
                self._is_exact = low >= -LARGEST_EXACT and high <= LARGEST_EXACT
                self._table = np.full(high - low + 3, self.unseen, dtype)
                self._table[categories.astype(np.int64) - self._before] = np.arange(len(categories))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the dictionary of categories, which may be objects that no file has as keys."""
        return {**vars(self), "_by_value": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._by_value = {} if self._order is not None else self._numbered()

    def table_for(self, dtype: np.dtype[Any]) -> tuple[int, int, AnyArray] | None:
        """Return what kernels look numbers of a type up in."""
        if self._table is None or not (self._is_exact or dtype.kind == "i"):
            return None
        return self._before + 1, self._before + len(self._table) - 1, np.append(self._table[1:], self._table[-1])

    def _numbered(self) -> dict[Any, int]:
        """Return the number of every category."""
        return {category: code for code, category in enumerate(self.categories.tolist())}

    def codes(self, values: AnyArray) -> Codes:
        """Return the index of every value among the categories, the missing code for others.

        Shapes: values: (n_samples,); result: (n_samples,).
        """
        # As 64-bit integers, unsigned ones from 2**63 on are negative: no harm where no category is.
        fits = values.dtype.kind in "biu" and (self._before >= -1 or values.dtype != np.uint64)
        if self._table is not None and fits and (self._is_exact or self.categories.dtype.kind != "f"):
            # What lies outside is moved to the ends of the table, which stand for no category; a difference that
            # wraps around lies far outside on the other side.
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
