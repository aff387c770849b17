"""Columns with which the log odds of two classes rise or fall, checked against the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import ColumnNumbers

__all__ = ["numbers_of_ranked", "read_directions", "require_two_classes"]


def read_directions(increasing: Sequence[Any], decreasing: Sequence[Any], data: EncodedData) -> IntArray:
    """Return 1 for each increasing, -1 for each decreasing and 0 for each other feature, shape (n_features,).

    Raises ``ValueError`` if there are not two classes, or a column is unknown, is listed twice or has no order.
    """
    columns = ColumnNumbers(data.names, data.n_features)
    found = np.zeros(data.n_features, np.intp)
    for name, direction, given in (("increasing", 1, increasing), ("decreasing", -1, decreasing)):
        for k, column in enumerate(given):
            i = columns.find(f"{name}[{k}]", column)
            if found[i]:
                raise ValueError(f"{column!r} is listed twice in increasing and decreasing. Remove one of them.")
            found[i] = direction
            if data.is_ordered is None or not data.is_ordered[i]:
                raise ValueError(
                    f"{name}[{k}] is {data.label(i)}, which has no order, so log odds cannot be monotone. Pass "
                    f"numbers or ordered categories, or leave the column out. (Codes: "
                    f"EncodedData.from_codes(..., is_ordered=...).)"
                )
    if found.any():
        require_two_classes(data)
    return found


def require_two_classes(data: EncodedData) -> None:
    """Raise ValueError unless there are two classes."""
    if data.n_classes != 2:
        raise ValueError(
            f"monotone log odds need two classes, but the data have {data.n_classes}. Merge classes, or fit one "
            f"classifier per class against the others."
        )


def numbers_of_ranked(data: EncodedData) -> IntArray:
    """Return the number of values of each feature without its category for missing values, shape (n_features,).

    This category is the last value, and outside of the order.
    """
    has_missing: AnyArray | bool = False if data.has_missing_category is None else data.has_missing_category
    ranked: IntArray = data.n_states - np.asarray(has_missing, np.intp)
    return ranked
