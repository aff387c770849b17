"""Codes of columns by fitted categories, cut points and discretizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.categories import CategoryIndex, encode_categories, refuse_unseen
from tanlearn.encoding.discretize import CUT_POINT_DISCRETIZERS, discretize
from tanlearn.encoding.number_encoder import NumberEncoder
from tanlearn.sources.table import Table

__all__ = ["ColumnEncoder"]


class ColumnEncoder:
    """Encoder of columns with categories, and of continuous columns with a fitted discretizer."""

    def __init__(self, categories: Sequence[AnyArray | None], discretizer: Any, n_states: IntArray) -> None:
        self._dtype = codes_dtype(int(n_states.max()))
        self._discretizer = discretizer  # fitted to the columns without categories; None if there are none
        # Lookup tables of the categorical columns, None for continuous columns
        self.indexes = [None if known is None else CategoryIndex(known, self._dtype) for known in categories]
        cuts: list[FloatArray | None] = [None] * len(categories)
        if type(discretizer) in CUT_POINT_DISCRETIZERS:
            continuous = [i for i, known in enumerate(categories) if known is None]
            for i, own in zip(continuous, discretizer.cut_points_, strict=True):
                cuts[i] = own
        self._numbers = NumberEncoder(self.indexes, cuts, self._dtype)

    def encode(self, columns: Table, handle_unknown: str, n_jobs: int | None = None) -> Codes:
        """Return the codes of the columns, shape (n_features, n_samples).

        ``handle_unknown`` is "missing" or "error", for unseen categories.
        """
        codes: AnyArray = np.empty((len(columns), columns.n_samples), self._dtype)
        done = self._numbers.encode(columns, codes, n_jobs)
        if done.all() and handle_unknown == "missing":
            return codes
        for i, index in enumerate(self.indexes):
            if index is not None and not done[i]:
                codes[i] = encode_categories(columns[i], index, handle_unknown)
            elif index is not None and handle_unknown == "error":
                refuse_unseen(columns[i], codes[i], index)
        continuous = [i for i, index in enumerate(self.indexes) if index is None and not done[i]]
        if continuous and type(self._discretizer) not in CUT_POINT_DISCRETIZERS:
            found = discretize(self._discretizer, Table([columns[i] for i in continuous]))
            missing = found == missing_code(found.dtype)
            codes[continuous] = np.where(missing, codes.dtype.type(missing_code(codes.dtype)), found)
            return codes
        for i in continuous:  # not numeric: raises unless all values are missing
            columns[i].numbers(were_numbers=True)
            codes[i] = missing_code(codes.dtype)
        return codes
