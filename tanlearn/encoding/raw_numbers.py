"""Values of the discretized features, from which each fold fits its own cut points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.encoding.discretize import CUT_POINT_DISCRETIZERS
from tanlearn.sources.table import Column, Table

__all__ = ["FittedDiscretizer", "RawNumbers", "joined_numbers", "raw_numbers"]


@dataclass(frozen=True, eq=False)
class RawNumbers:
    """Values of the discretized features, and the unfitted discretizer that folds fit to their training rows."""

    columns: tuple[AnyArray, ...]  # (n_all,) for each discretized feature; NaN where missing
    features: IntArray  # (n_discretized,) feature numbers in the encoded data
    discretizer: Any  # unfitted; cloned for every fit
    # (n_samples,) selected rows of the columns, so that taking rows copies no values; None means all rows
    rows: IntArray | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RawNumbers, (tuple(self.values), self.features, self.discretizer)  # the selected rows only

    def take(self, rows: Any) -> RawNumbers:
        """Return the values of some rows, given as row numbers or as a mask."""
        every = np.arange(len(self.columns[0])) if self.rows is None else self.rows
        return replace(self, rows=every[rows])

    def take_features(self, features: Any) -> RawNumbers | None:
        """Return the values of some features of the encoded data; None if none of them is discretized."""
        chosen = np.asarray(features, np.intp)
        positions = np.flatnonzero(np.isin(chosen, self.features))
        if not len(positions):
            return None
        own = np.searchsorted(self.features, chosen[positions])
        return replace(self, columns=tuple(self.columns[k] for k in own), features=positions)

    @property
    def values(self) -> list[AnyArray]:
        """Values of the selected rows, one array per discretized feature."""
        return list(self.columns) if self.rows is None else [column[self.rows] for column in self.columns]

    def fit(self, y: IntArray, sample_weight: AnyArray) -> FittedDiscretizer:
        """Fit a clone of the discretizer to these rows.

        ``y`` are class codes of at least two classes, and ``sample_weight`` the weights before class weights.
        """
        discretizer, values = clone(self.discretizer), self.values
        if type(discretizer) in CUT_POINT_DISCRETIZERS:
            discretizer.fit_columns(_table(values), list(range(len(values))), y, sample_weight)
        else:
            discretizer.fit(np.stack(values).T, y, sample_weight)
        return FittedDiscretizer(discretizer)


@dataclass(frozen=True, eq=False)
class FittedDiscretizer:
    """Discretizer fitted to the training rows of a fold."""

    discretizer: Any

    @property
    def n_states(self) -> IntArray:
        """Number of intervals of every discretized feature."""
        n_states: IntArray = np.asarray(self.discretizer.n_states_, np.intp)
        return n_states

    def encode(self, raw: RawNumbers) -> Codes:
        """Discretize rows to codes, shape (n_discretized, n_samples)."""
        codes: Codes
        if type(self.discretizer) in CUT_POINT_DISCRETIZERS:
            codes = self.discretizer.transform_columns(_table(raw.values))
        else:
            codes = np.asarray(self.discretizer.transform(np.stack(raw.values).T)).T
        return codes


def raw_numbers(columns: Table, features: IntArray, discretizer: Any) -> RawNumbers | None:
    """Return the values of the discretized features, or None if the cut points do not depend on classes.

    ``features`` are the numbers of the discretized features, shape (n_discretized,).
    """
    if discretizer is None or not len(features) or not getattr(discretizer, "uses_classes", True):
        return None
    numbers = tuple(columns[i].numbers(were_numbers=True) for i in features.tolist())
    return RawNumbers(numbers, features, discretizer)


def joined_numbers(parts: Sequence[RawNumbers]) -> RawNumbers:
    """Concatenate the rows of several parts with the same features."""
    columns = tuple(np.concatenate(values) for values in zip(*(part.values for part in parts), strict=True))
    return replace(parts[0], columns=columns, rows=None)


def _table(values: Sequence[AnyArray]) -> Table:
    """Wrap numeric arrays as the columns of a table."""
    columns = []
    for i, column in enumerate(values):
        missing = np.isnan(column) if column.dtype.kind == "f" else None
        has_missing = missing is not None and missing.any()
        columns.append(Column(column, missing if has_missing else None, None, f"column {i}"))
    return Table(columns)
