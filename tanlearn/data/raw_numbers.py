"""Numbers behind the codes of discretized features, for cut points that the rows of a fold must not influence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.data.table import Column, Table
from tanlearn.data.table_encoder import CUT_DISCRETIZERS

__all__ = ["FittedCuts", "RawNumbers", "joined_numbers", "raw_numbers"]


@dataclass(frozen=True, eq=False)
class RawNumbers:
    """Values of the discretized features, and the discretizer that has yet to be fitted to some of their rows."""

    columns: tuple[AnyArray, ...]  # (n_all,): One array per discretized feature; NaN where a value is missing
    features: IntArray  # (n_discretized,): Numbers of these features in the encoded data
    discretizer: Any  # Unfitted; it is cloned for every fit
    # (n_samples,): Which rows of the columns these are, so that taking rows copies no numbers. ``None`` means all of
    # them.
    rows: IntArray | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RawNumbers, (tuple(self.values), self.features, self.discretizer)  # other rows are not sent along

    def take(self, rows: Any) -> RawNumbers:
        """Return the numbers of some rows.

        Shapes: rows: (n_taken,).
        """
        every = np.arange(len(self.columns[0])) if self.rows is None else self.rows
        return replace(self, rows=every[rows])

    def take_features(self, features: Any) -> RawNumbers | None:
        """Return the numbers of some features of the encoded data.

        Shapes: features: (n_taken,).
        """
        chosen = np.asarray(features, np.intp)
        places = np.flatnonzero(np.isin(chosen, self.features))
        if not len(places):
            return None
        own = np.searchsorted(self.features, chosen[places])
        return replace(self, columns=tuple(self.columns[k] for k in own), features=places)

    @property
    def values(self) -> list[AnyArray]:
        """The numbers of these rows, one array per discretized feature."""
        return list(self.columns) if self.rows is None else [column[self.rows] for column in self.columns]

    def fit(self, y: IntArray, sample_weight: AnyArray) -> FittedCuts:
        """Fit the discretizer to these rows.

        Shapes: y: (n_samples,); sample_weight: (n_samples,).
        """
        discretizer, values = clone(self.discretizer), self.values
        if type(discretizer) in CUT_DISCRETIZERS:
            discretizer.fit_columns(_table(values), list(range(len(values))), y, sample_weight)
        else:
            discretizer.fit(np.stack(values).T, y, sample_weight)
        return FittedCuts(discretizer)


@dataclass(frozen=True, eq=False)
class FittedCuts:
    """A discretizer that is fitted to the rows of a fold."""

    discretizer: Any  # Fitted

    @property
    def n_states(self) -> IntArray:
        """Number of intervals of every discretized feature."""
        n_states: IntArray = np.asarray(self.discretizer.n_states_, np.intp)
        return n_states

    def encode(self, raw: RawNumbers) -> Codes:
        """Return the intervals of rows.

        Shapes: result: (n_discretized, n_samples).
        """
        codes: Codes
        if type(self.discretizer) in CUT_DISCRETIZERS:
            codes = self.discretizer.transform_columns(_table(raw.values))
        else:
            codes = np.asarray(self.discretizer.transform(np.stack(raw.values).T)).T
        return codes


def raw_numbers(columns: Table, features: IntArray, discretizer: Any) -> RawNumbers | None:
    """Return the numbers of discretized features, if their cut points depend on classes.

    Shapes: features: (n_discretized,).
    """
    if discretizer is None or not len(features) or not getattr(discretizer, "uses_classes", True):
        return None
    numbers = tuple(columns[i].numbers(were_numbers=True) for i in features.tolist())
    return RawNumbers(numbers, features, discretizer)


def joined_numbers(parts: Sequence[RawNumbers]) -> RawNumbers:
    """Return the numbers of several parts of a table, one part behind the other."""
    columns = tuple(np.concatenate(values) for values in zip(*(part.values for part in parts), strict=True))
    return replace(parts[0], columns=columns, rows=None)


def _table(values: Sequence[AnyArray]) -> Table:
    """Return arrays of numbers as the columns of a table."""
    columns = []
    for i, column in enumerate(values):
        missing = np.isnan(column) if column.dtype.kind == "f" else None
        has_gaps = missing is not None and missing.any()
        columns.append(Column(column, missing if has_gaps else None, None, f"column {i}"))
    return Table(columns)
