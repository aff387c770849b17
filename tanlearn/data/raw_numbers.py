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
    """Values of the discretized features, and the discretizer that has yet to be fitted to some of their rows.

    Parameters
    ----------
    columns : tuple of ndarray of shape (n_all,)
        One array per discretized feature; NaN where a value is missing.
    features : ndarray of shape (n_discretized,), intp
        Numbers of these features in the encoded data.
    discretizer : object
        Unfitted; it is cloned for every fit.
    rows : ndarray of shape (n_samples,), intp, optional
        Which rows of the columns these are, so that taking rows copies no numbers. ``None`` means all of them.
    """

    columns: tuple[AnyArray, ...]
    features: IntArray
    discretizer: Any
    rows: IntArray | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RawNumbers, (tuple(self.values), self.features, self.discretizer)  # other rows are not sent along

    def take(self, rows: Any) -> RawNumbers:
        """Return the numbers of some rows.

        Parameters
        ----------
        rows : ndarray of shape (n_taken,), int, or of shape (n_samples,), bool
            Row numbers or a mask.

        Returns
        -------
        RawNumbers
        """
        every = np.arange(len(self.columns[0])) if self.rows is None else self.rows
        return replace(self, rows=every[rows])

    def take_features(self, features: Any) -> RawNumbers | None:
        """Return the numbers of some features of the encoded data.

        Parameters
        ----------
        features : array-like of shape (n_taken,), int
            Feature numbers.

        Returns
        -------
        RawNumbers or None
            ``None`` if none of these features is discretized.
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

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Class codes, of two classes at least.
        sample_weight : ndarray of shape (n_samples,)
            Weights before class weights.

        Returns
        -------
        FittedCuts
        """
        discretizer, values = clone(self.discretizer), self.values
        if type(discretizer) in CUT_DISCRETIZERS:
            discretizer.fit_columns(_table(values), list(range(len(values))), y, sample_weight)
        else:
            discretizer.fit(np.stack(values).T, y, sample_weight)
        return FittedCuts(discretizer)


@dataclass(frozen=True, eq=False)
class FittedCuts:
    """A discretizer that is fitted to the rows of a fold.

    Parameters
    ----------
    discretizer : object
        Fitted.
    """

    discretizer: Any

    @property
    def n_states(self) -> IntArray:
        """Number of intervals of every discretized feature."""
        n_states: IntArray = np.asarray(self.discretizer.n_states_, np.intp)
        return n_states

    def encode(self, raw: RawNumbers) -> Codes:
        """Return the intervals of rows.

        Parameters
        ----------
        raw : RawNumbers
            Their numbers.

        Returns
        -------
        ndarray of shape (n_discretized, n_samples), uint8 or uint16
            The largest value of the type is missing.
        """
        codes: Codes
        if type(self.discretizer) in CUT_DISCRETIZERS:
            codes = self.discretizer.transform_columns(_table(raw.values))
        else:
            codes = np.asarray(self.discretizer.transform(np.stack(raw.values).T)).T
        return codes


def raw_numbers(columns: Table, features: IntArray, discretizer: Any) -> RawNumbers | None:
    """Return the numbers of discretized features, if their cut points depend on classes.

    Parameters
    ----------
    columns : Table
        All columns of the encoded rows.
    features : ndarray of shape (n_discretized,), intp
        Features that are discretized.
    discretizer : object or None
        What discretizes them, fitted or not.

    Returns
    -------
    RawNumbers or None
    """
    if discretizer is None or not len(features) or not getattr(discretizer, "uses_classes", True):
        return None
    numbers = tuple(columns[i].numbers(were_numbers=True) for i in features.tolist())
    return RawNumbers(numbers, features, discretizer)


def joined_numbers(parts: Sequence[RawNumbers]) -> RawNumbers:
    """Return the numbers of several parts of a table, one part behind the other.

    Parameters
    ----------
    parts : sequence of RawNumbers
        Of the same features, at least one.

    Returns
    -------
    RawNumbers
    """
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
