"""Consistency checks across the batches or partitions of a source: column names and kinds."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np

from tanlearn.data.table import Column, Table

__all__ = ["SameColumns", "kind_of"]

_KINDS: dict[str, Any] = {"numbers": (Real, np.bool_), "strings": str, "bytes": bytes}


class SameColumns:
    """Columns, kinds of values and use of weights shared by all batches of a source."""

    def __init__(self) -> None:
        self._places: tuple[str, ...] | None = None
        self._first = ""
        self._kinds: dict[str, tuple[str, str]] = {}
        self._weights: tuple[bool, str] | None = None

    def check(self, part: str, table: Table) -> None:
        """Raise ValueError for other columns, and TypeError for other kinds of values, than in earlier batches."""
        self._check_places(part, table.places)
        for j, place in enumerate(table.places):
            self.check_kind(part, place, _kind_in(table, j))

    def check_kind(self, part: str, place: str, kind: str | None) -> None:
        """Raise TypeError if a column contains another kind of values than before; ``kind`` is from :func:`kind_of`."""
        if kind is None:
            return
        before, first = self._kinds.setdefault(place, (kind, part))
        if before != kind:
            raise TypeError(
                f"{place} holds {kind} where {first} has {before}, and these are never equal. Cast it to one type in "
                f"all of them."
            )

    def check_weights(self, part: str, are_there: bool) -> None:
        """Raise ValueError if this batch has weights and earlier ones do not, or vice versa."""
        self._weights = before, first = self._weights or (are_there, part)
        if before != are_there:
            there, then = ("weights", "none") if are_there else ("no weights", "some")
            raise ValueError(f"there are {there} where {first} has {then}. Pass weights for all rows, or for none.")

    def merge(self, other: SameColumns) -> Self:
        """Compare with the checks of later batches and include them; raise as the other methods do."""
        if other._places is None:
            return self
        try:
            self._check_places(other._first, other._places)
            if other._weights is not None:
                self.check_weights(other._first, other._weights[0])
        except ValueError as error:
            raise ValueError(f"in {other._first}: {error}") from error
        for place, (kind, part) in other._kinds.items():
            try:
                self.check_kind(part, place, kind)
            except TypeError as error:
                raise TypeError(f"in {part}: {error}") from error
        return self

    def _check_places(self, part: str, places: tuple[str, ...]) -> None:
        """Compare the column names."""
        if self._places is None:
            self._places, self._first = places, part
        if len(places) != len(self._places):
            raise ValueError(
                f"there are {len(places)} column(s) where {self._first} has {len(self._places)}. All parts of a source "
                f"need the same columns in the same order."
            )
        for j, (place, expected) in enumerate(zip(places, self._places, strict=True)):
            if place != expected:
                raise ValueError(
                    f"column {j} is {place} where {self._first} has {expected}. All parts of a source need the same "
                    f"columns in the same order: rename or reorder them."
                )


def kind_of(column: Column) -> str | None:
    """Return the kind of values in a column, or None without values; values of different kinds are never equal."""
    values, missing, prefix = column.values, column.missing, ""
    if column.categories is not None and column.is_declared:
        values, missing, prefix = column.categories, None, "declared categories of "
    if len(values) == 0 or (missing is not None and missing.all()):
        return None
    first = values[0 if missing is None else missing.argmin()]
    if column.categories is not None and not column.is_declared:
        first = column.categories[first]
    known = (name for name, kind in _KINDS.items() if isinstance(first, kind))
    return prefix + next(known, type(first).__name__)


def _kind_in(table: Table, j: int) -> str | None:
    """Return the kind of values in a column; columns that begin with a number are not scanned for missing values."""
    values = table.values_of(j)
    if values is None or not len(values) or table.missing_mask(j) is not None or values[0] != values[0]:
        return kind_of(table[j])
    return "numbers"
