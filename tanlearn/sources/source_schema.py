"""Consistency checks across the batches or partitions of a source: column names and kinds."""

from __future__ import annotations

from typing import Self

from tanlearn.sources.table import Column, Table, kind_of_value

__all__ = ["SourceSchema", "kind_of"]


class SourceSchema:
    """Columns, kinds of values and use of weights shared by all batches of a source."""

    def __init__(self) -> None:
        self._labels: tuple[str, ...] | None = None
        self._first = ""
        self._kinds: dict[str, tuple[str, str]] = {}
        self._weights: tuple[bool, str] | None = None

    def check(self, part: str, table: Table) -> None:
        """Raise ValueError if the columns differ from earlier batches, and TypeError if the kinds of values differ."""
        self._check_labels(part, table.labels)
        for j, label in enumerate(table.labels):
            self.check_kind(part, label, _kind_in(table, j))

    def check_kind(self, part: str, label: str, kind: str | None) -> None:
        """Raise TypeError if a column contains another kind of values than before; ``kind`` is from :func:`kind_of`."""
        if kind is None:
            return
        before, first = self._kinds.setdefault(label, (kind, part))
        if before != kind:
            raise TypeError(
                f"{label} holds {kind} where {first} has {before}, and values of these kinds are never equal. "
                f"Cast it to the same type in all batches."
            )

    def check_weights(self, part: str, are_there: bool) -> None:
        """Raise ValueError if this batch has weights and earlier ones do not, or vice versa."""
        self._weights = before, first = self._weights or (are_there, part)
        if before != are_there:
            there, then = ("weights", "none") if are_there else ("no weights", "some")
            raise ValueError(f"there are {there} where {first} has {then}. Pass weights for all rows, or for none.")

    def merge(self, other: SourceSchema) -> Self:
        """Compare with the schema of later batches, and merge both. Raise the errors of the other methods."""
        if other._labels is None:
            return self
        try:
            self._check_labels(other._first, other._labels)
            if other._weights is not None:
                self.check_weights(other._first, other._weights[0])
        except ValueError as error:
            raise ValueError(f"in {other._first}: {error}") from error
        for label, (kind, part) in other._kinds.items():
            try:
                self.check_kind(part, label, kind)
            except TypeError as error:
                raise TypeError(f"in {part}: {error}") from error
        return self

    def _check_labels(self, part: str, labels: tuple[str, ...]) -> None:
        """Compare the column names."""
        if self._labels is None:
            self._labels, self._first = labels, part
        if len(labels) != len(self._labels):
            raise ValueError(
                f"there are {len(labels)} column(s) where {self._first} has {len(self._labels)}. All parts of a source "
                f"need the same columns in the same order."
            )
        for j, (label, expected) in enumerate(zip(labels, self._labels, strict=True)):
            if label != expected:
                raise ValueError(
                    f"column {j} is {label} where {self._first} has {expected}. All parts of a source need the same "
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
    return prefix + kind_of_value(first)


def _kind_in(table: Table, j: int) -> str | None:
    """Return the kind of values in a column; columns that begin with a number are not scanned for missing values."""
    values = table.values_of(j)
    if values is None or not len(values) or table.missing_mask(j) is not None or values[0] != values[0]:
        return kind_of(table[j])
    return "numbers"
