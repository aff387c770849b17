"""Values of the discretized features, from which each fold fits its own cut points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.encoding.cut_points import OtherFeatures
from tanlearn.encoding.discretize import discretize, fit_discretizer
from tanlearn.encoding.quantile_discretizer import add_mdl_points
from tanlearn.sources.table import Column, Table

if TYPE_CHECKING:
    from tanlearn.encoding.table_encoder import TableEncoder

__all__ = ["RawNumbers", "joined_numbers", "raw_numbers"]


@dataclass(frozen=True, eq=False)
class RawNumbers:
    """Values of the discretized features, and the unfitted discretizer that folds fit to their training rows."""

    columns: tuple[AnyArray, ...]  # (n_all,) values of each discretized feature, with NaN for missing values
    features: IntArray  # (n_discretized,) feature indices in the encoded data
    discretizer: Any  # unfitted, and cloned for every fit
    # (n_samples,) selected rows of the columns, so that values need not be copied to take rows; None means all rows
    rows: IntArray | None = None
    # cut points of each column that do not depend on classes, and are the same in all folds
    quantiles: tuple[FloatArray, ...] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # the selected rows only
        return RawNumbers, (tuple(self.values), self.features, self.discretizer, None, self.quantiles)

    def take(self, rows: Any) -> RawNumbers:
        """Return the values of the given rows (row numbers or a mask)."""
        every = np.arange(len(self.columns[0])) if self.rows is None else self.rows
        return replace(self, rows=every[rows])

    def take_features(self, features: Any) -> RawNumbers | None:
        """Return the values of the given features of the encoded data, or None if none of them is discretized."""
        chosen = np.asarray(features, np.intp)
        positions = np.flatnonzero(np.isin(chosen, self.features))
        if not len(positions):
            return None
        own = np.searchsorted(self.features, chosen[positions])
        quantiles = None if self.quantiles is None else tuple(self.quantiles[k] for k in own)
        return replace(self, columns=tuple(self.columns[k] for k in own), features=positions, quantiles=quantiles)

    @property
    def values(self) -> list[AnyArray]:
        """Values of the selected rows, one array per discretized feature."""
        return list(self.columns) if self.rows is None else [column[self.rows] for column in self.columns]

    def fit(
        self, y: IntArray, sample_weight: AnyArray, others: Callable[[], OtherFeatures | None] = lambda: None
    ) -> Any:
        """Return a clone of the discretizer, fitted to these rows.

        ``y`` contains class codes of at least two classes, ``sample_weight`` the weights before class weights, and
        ``others`` the codes of the features that are not discretized.
        """
        discretizer = clone(self.discretizer)
        arguments = self._table, list(range(len(self.columns))), y, sample_weight
        if self.quantiles is None:
            fit_discretizer(discretizer, *arguments, others)
        else:
            add_mdl_points(discretizer.restore(list(self.quantiles)), *arguments)
        return discretizer

    def encode(self, discretizer: Any) -> Codes:
        """Encode the stored rows with a fitted discretizer. Return codes (n_discretized, n_samples)."""
        return discretize(discretizer, self._table)

    @property
    def _table(self) -> Table:
        """Values of the selected rows as columns."""
        return Table(
            [
                Column(values, np.isnan(values) if values.dtype.kind == "f" else None, None, f"column {i}")
                for i, values in enumerate(self.values)
            ]
        )


def raw_numbers(encoder: TableEncoder, columns: Table) -> RawNumbers | None:
    """Return the values of the features that an encoder discretizes, or None if cut points do not depend on classes."""
    features, discretizer = np.flatnonzero(~encoder.is_discrete_), encoder.discretizer_
    if discretizer is None or not len(features) or not getattr(discretizer, "uses_classes", True):
        return None
    numbers = tuple(columns[i].numbers(were_numbers=True) for i in features.tolist())
    quantiles = getattr(discretizer, "quantiles_", None)
    return RawNumbers(numbers, features, discretizer, quantiles=None if quantiles is None else tuple(quantiles))


def joined_numbers(parts: Sequence[RawNumbers]) -> RawNumbers:
    """Concatenate the rows of several parts with the same features."""
    columns = tuple(np.concatenate(values) for values in zip(*(part.values for part in parts), strict=True))
    return replace(parts[0], columns=columns, rows=None)
