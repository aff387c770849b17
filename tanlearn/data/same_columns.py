"""What all batches of a source have in common: columns, the kinds of these, and the categories that they declare."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.data.columns import shorten
from tanlearn.data.table import Column, Table

__all__ = ["SameColumns", "kind_of"]

_KINDS: dict[str, Any] = {"numbers": (Real, np.bool_), "strings": str, "bytes": bytes}


class SameColumns:
    """What the batches of one reading have in common, as far as they have been seen.

    Examples
    --------
    >>> from tanlearn.data.columns import read_columns
    >>> from tanlearn.data.same_columns import SameColumns
    >>> same = SameColumns()
    >>> _ = same.check(0, read_columns([["Graz", 31]]))
    >>> same.check(1, read_columns([["Linz", "old"]]))
    Traceback (most recent call last):
    ...
    TypeError: X column 1 holds strings where batch 0 has numbers, and these are never equal. Cast it to one type in ...
    """

    def __init__(self) -> None:
        self._places: tuple[str, ...] | None = None
        self._kinds: dict[str, tuple[str, int]] = {}
        self._declared: dict[int, AnyArray] = {}

    def check(self, number: int, table: Table) -> Table:
        """Check the columns of a batch.

        Parameters
        ----------
        number : int
            Of the batch, from 0.
        table : Table
            Its columns.

        Returns
        -------
        Table
            The same, where columns that declare categories also declare, before their own, those of earlier batches.

        Raises
        ------
        ValueError
            If there are other columns than before, or ordered categories are others.
        TypeError
            If a column is of another kind.
        """
        places = table.places
        self._places = places if self._places is None else self._places
        if len(places) != len(self._places):
            raise ValueError(
                f"there are {len(places)} column(s) where batch 0 has {len(self._places)}. Every batch needs the same "
                f"columns in the same order."
            )
        for j, (place, expected) in enumerate(zip(places, self._places, strict=True)):
            if place != expected:
                raise ValueError(
                    f"column {j} is {place} where batch 0 has {expected}. Every batch needs the same columns in the "
                    f"same order: rename or reorder them."
                )
        for j, place in enumerate(places):
            self.check_kind(number, place, _kind_in(table, j))
        if not any(_declares(table, j) for j in range(len(table))):
            return table
        return Table([self._grown(j, column) for j, column in enumerate(table)])

    def check_kind(self, number: int, place: str, kind: str | None) -> None:
        """Check what a column holds.

        Parameters
        ----------
        number : int
            Of the batch.
        place : str
            What messages call the column.
        kind : str or None
            As of :func:`kind_of`.

        Raises
        ------
        TypeError
            If it held something else before.
        """
        if kind is None:
            return
        before, first = self._kinds.setdefault(place, (kind, number))
        if before != kind:
            raise TypeError(
                f"{place} holds {kind} where batch {first} has {before}, and these are never equal. Cast it to one "
                f"type in all batches."
            )

    def _grown(self, j: int, column: Column) -> Column:
        """Return a column, and of declared categories those of the batches before, followed by its new ones."""
        if column.categories is None or not column.is_declared:
            return column
        before = self._declared.setdefault(j, column.categories)
        known, own = before.tolist(), column.categories.tolist()
        if known == own:
            return replace(column, categories=before)
        if column.is_ordered:
            raise ValueError(
                f"{column.place} declares the ordered categories {shorten(own)} where batches before declare "
                f"{shorten(known)}. Declare the same ones, in the same order, in all batches."
            )
        code = {category: k for k, category in enumerate(known)}
        for category in own:
            code.setdefault(category, len(code))
        codes = np.array([*map(code.__getitem__, own), -1])  # one more at the end, which -1 finds
        self._declared[j] = np.concatenate([before, column.categories[codes[:-1] >= len(known)]])
        return replace(column, values=codes[column.values], categories=self._declared[j])


def kind_of(column: Column) -> str | None:
    """Return what a column holds, where values of one kind are never equal to those of another.

    Parameters
    ----------
    column : Column
        Any.

    Returns
    -------
    str or None
        None if it holds nothing.

    Examples
    --------
    >>> from tanlearn.data.columns import read_columns
    >>> from tanlearn.data.same_columns import kind_of
    >>> [kind_of(column) for column in read_columns([["Graz", True, None]])]
    ['strings', 'numbers', None]
    """
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
    """Return what a column of a table holds, without looking for the gaps of one that begins with a number."""
    values = table.values_of(j)
    if values is None or table.gaps(j) is not None or values[0] != values[0]:
        return kind_of(table[j])
    return "numbers"


def _declares(table: Table, j: int) -> bool:
    """Return whether a column declares its categories."""
    return table.values_of(j) is None and table[j].categories is not None and table[j].is_declared
