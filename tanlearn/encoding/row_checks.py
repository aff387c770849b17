"""Counts of missing, unseen and out-of-range values in new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn.encoding.categories import CategoryIndex
from tanlearn.sources.table import Column, Table, shorten

__all__ = ["ColumnCheck", "RowCheck", "check_columns"]


@dataclass(frozen=True)
class ColumnCheck:
    """Counts of missing, unseen and out-of-range values in one column.

    Parameters
    ----------
    name : str or int
        Name of the column, or its number if the training data had no column names.
    n_missing : int
        Number of rows in which the value is missing.
    n_unseen : int
        Number of rows with a category that did not occur in training, and is therefore treated as missing in
        predictions. It is 0 for continuous columns.
    n_out_of_range : int or None
        Number of rows with a number below the smallest or above the largest training value. It is 0 for categorical
        columns, and None if the training range is unknown, as in files of earlier versions.
    example : object, optional
        The first unseen or out-of-range value.
    value_range : tuple of (float, float), optional
        The training range of a continuous column.
    """

    name: Any
    n_missing: int
    n_unseen: int
    n_out_of_range: int | None
    example: Any = None
    value_range: tuple[float, float] | None = None

    def __add__(self, other: ColumnCheck) -> ColumnCheck:
        outside = None
        if self.n_out_of_range is not None and other.n_out_of_range is not None:
            outside = self.n_out_of_range + other.n_out_of_range
        return ColumnCheck(
            self.name,
            self.n_missing + other.n_missing,
            self.n_unseen + other.n_unseen,
            outside,
            other.example if self.example is None else self.example,
            self.value_range,
        )

    def messages(self, n_samples: int) -> list[str]:
        """Return one sentence about unseen values and one about out-of-range values, if there are any.

        Parameters
        ----------
        n_samples : int
            Number of rows that were checked.

        Returns
        -------
        list of str
        """
        found = []
        if self.n_unseen:
            values, count = ("a value", "counts") if self.n_unseen == 1 else ("values", "count")
            found.append(
                f"{self.name}: {_rows(self.n_unseen, n_samples)} {values} not seen in training "
                f"({shorten(self.example)}), which {count} as missing."
            )
        if self.n_out_of_range and self.value_range is not None:
            low, high = self.value_range
            found.append(
                f"{self.name}: {_rows(self.n_out_of_range, n_samples)} "
                f"{'a number' if self.n_out_of_range == 1 else 'numbers'} outside the training range of {low:.6g} to "
                f"{high:.6g} ({shorten(self.example)})."
            )
        return found


@dataclass(frozen=True)
class RowCheck:
    """Result of :meth:`tanlearn.TableEncoder.check_rows`, with counts per column.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    columns : tuple of ColumnCheck
        Counts of every column, in the order of the training data.

    Notes
    -----
    ``str(check)`` lists the columns with non-zero counts.

    Examples
    --------
    >>> from tanlearn import TableEncoder
    >>> encoder = TableEncoder().fit([["car", 0.5], ["boat", 7.0], ["car", 1.5], ["boat", 7.5]], [0, 1, 0, 1])
    >>> check = encoder.check_rows([["train", 1.0], ["boat", 8.5], [None, 9.5]])
    >>> check.columns[0].n_missing, check.columns[0].n_unseen, check.columns[1].n_out_of_range
    (1, 1, 2)
    >>> print(check)
    3 rows, 2 columns
    0: 1 of 3 rows holds no value.
    0: 1 of 3 rows holds a value not seen in training ('train'), which counts as missing.
    1: 2 of 3 rows hold numbers outside the training range of 0.5 to 7.5 (8.5).
    """

    n_samples: int
    columns: tuple[ColumnCheck, ...]

    @property
    def is_clean(self) -> bool:
        """True if all values are present, and none is unseen or known to be out of range."""
        return not any(own.n_missing or own.n_unseen or own.n_out_of_range for own in self.columns)

    def __add__(self, other: RowCheck) -> RowCheck:
        columns = tuple(own + more for own, more in zip(self.columns, other.columns, strict=True))
        return RowCheck(self.n_samples + other.n_samples, columns)

    def messages(self) -> list[str]:
        """Return one sentence per column with unseen values, and one per column with out-of-range values.

        Returns
        -------
        list of str
        """
        return [message for own in self.columns for message in own.messages(self.n_samples)]

    def to_frame(self) -> Any:
        """Return the counts as a pandas DataFrame.

        Returns
        -------
        DataFrame of shape (n_features, 3)
            Indexed by column name, with columns ``missing``, ``unseen`` and ``out_of_range``. ``out_of_range`` is
            ``pandas.NA`` if the training range is unknown.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('to_frame needs pandas. Install it with: pip install "tanlearn[frames]"') from error
        index = pd.Index([own.name for own in self.columns], name="column")
        return pd.DataFrame(
            {
                "missing": [own.n_missing for own in self.columns],
                "unseen": [own.n_unseen for own in self.columns],
                "out_of_range": pd.array([own.n_out_of_range for own in self.columns], dtype="Int64"),
            },
            index=index,
        )

    def __str__(self) -> str:
        lines = [
            f"{self.n_samples:,} {'row' if self.n_samples == 1 else 'rows'}, "
            f"{len(self.columns):,} {'column' if len(self.columns) == 1 else 'columns'}"
        ]
        for own in self.columns:
            if own.n_missing:
                lines.append(f"{own.name}: {_rows(own.n_missing, self.n_samples)} no value.")
            lines += own.messages(self.n_samples)
            if own.n_out_of_range is None:
                lines.append(f"{own.name}: the training range is unknown.")
        return "\n".join(lines if len(lines) > 1 else [*lines, "All values were seen in training."])


def check_columns(
    columns: Table,
    indexes: Sequence[CategoryIndex | None],
    ranges: Sequence[tuple[float, float] | None],
    names: AnyArray | None,
) -> RowCheck:
    """Count missing, unseen and out-of-range values of each column.

    ``indexes`` contains None for continuous columns, ``ranges`` contains None for unknown training ranges, and
    ``names`` (n_features,) contains the column names, or is None.
    """
    found = []
    for i, (column, index, own) in enumerate(zip(columns, indexes, ranges, strict=True)):
        name = i if names is None else names[i]
        if index is not None:
            found.append(_check_categories(name, column, index))
        else:
            found.append(_check_numbers(name, column, own))
    return RowCheck(columns.n_samples, tuple(found))


def _rows(n: int, n_samples: int) -> str:
    """Format a number of rows, followed by "holds" or "hold"."""
    return f"{n:,} of {n_samples:,} {'row' if n_samples == 1 else 'rows'} {'holds' if n == 1 else 'hold'}"


def _check_categories(name: Any, column: Column, index: CategoryIndex) -> ColumnCheck:
    """Count missing and unseen values of a categorical column."""
    present = column.present
    unseen = (index.encode(column) == index.unseen) & present
    example = column.value(int(unseen.argmax())) if unseen.any() else None
    return ColumnCheck(name, int((~present).sum()), int(unseen.sum()), 0, example)


def _check_numbers(name: Any, column: Column, own: tuple[float, float] | None) -> ColumnCheck:
    """Count missing and out-of-range values of a continuous column."""
    values = column.numbers(were_numbers=True)
    n_missing = int((~column.present).sum())
    if own is None:
        return ColumnCheck(name, n_missing, 0, None)
    outside = (values < own[0]) | (values > own[1])  # False for NaN values and for NaN bounds
    example = values[outside.argmax()].item() if outside.any() else None
    return ColumnCheck(name, n_missing, 0, int(outside.sum()), example, own)
