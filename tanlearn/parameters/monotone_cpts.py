"""Isotonic regression of trained CPTs, so that the log odds of two classes rise or fall with some features.

Let f be a feature without children. The log odds of the classes depend on its value x only through

    log p(x | 1, parents) - log p(x | 0, parents),

so they are monotone in x if this difference is monotone for all values of the parents. Of all CPTs with this property,
the following CPTs have the smallest sum of Kullback-Leibler divergences KL(p || q) over both classes:

    q(x | 1) = (p(x | 0) + p(x | 1)) phi_x,   q(x | 0) = (p(x | 0) + p(x | 1)) (1 - phi_x),

where phi is the isotonic regression of p(x | 1) / (p(x | 0) + p(x | 1)) with weights p(x | 0) + p(x | 1). These CPTs
are normalized. A calibration of both classes by the same temperature and power is an increasing function of the log
odds, so it preserves monotonicity.

Reference: Dykstra, Kochar, Robertson: Inference for likelihood ratio ordering in the two-sample problem. Journal of the
American Statistical Association 90, 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.monotone_logs import monotone_logs
from tanlearn.models.tables import Tables
from tanlearn.structures.monotone_columns import numbers_of_ranked, read_directions
from tanlearn.structures.structures import Structure

__all__ = ["QUANTUM", "MonotoneCPTs", "refuse_bits"]

#: Log probabilities are multiples of this number of nats, 9e-13, so that their sums and differences are exact.
QUANTUM = 2.0**-40
_FEW_BITS = (
    "the entries of CPTs with few bits are rounded one by one, which could make the log odds of columns in increasing "
    "and decreasing non-monotone. Leave bits out, or remove the columns from increasing and decreasing."
)
#: Smallest probability in isotonic regression. The product of two such probabilities is positive, so log odds are
#: finite.
_LEAST = 1e-150


@dataclass(frozen=True)
class MonotoneCPTs:
    """Isotonic regression of the CPTs of monotone features.

    Shapes: directions: (n_features,), 1 rising, -1 falling, 0 free; n_ranked: (n_features,), number of ordered values.
    """

    directions: IntArray
    n_ranked: IntArray

    @classmethod
    def of_columns(cls, increasing: Sequence[Any], decreasing: Sequence[Any], data: EncodedData) -> MonotoneCPTs | None:
        """Return the isotonic regression for the given columns of the data, or None without such columns.

        Raises ``ValueError`` unless there are two classes, or if a column is unknown, is listed twice or has no order.
        """
        directions = read_directions(increasing, decreasing, data)
        return cls(directions, numbers_of_ranked(data)) if directions.any() else None

    def on(self, data: EncodedData) -> MonotoneCPTs:
        """Return a copy for other rows, which may have other cut points, for example in a cross-validation split."""
        return replace(self, n_ranked=numbers_of_ranked(data))

    def check_parents(self, parents: IntArray, child: IntArray, data: EncodedData, name: str) -> None:
        """Raise ValueError if a monotone feature is a parent. ``name`` is the parameter that contains the edges.

        Shapes: parents: (n_families, k), -1 for none; child: (n_families,).
        """
        is_wrong = (parents >= 0) & (self.directions[parents] != 0)
        for family, column in np.argwhere(is_wrong)[:1].tolist():
            parent, label = int(parents[family, column]), data.label(int(child[family]))
            monotone = data.label(parent)
            raise ValueError(
                f"{name} has an edge from {monotone} to {label}, but {monotone} is in increasing or decreasing, and "
                f"such columns have no children. Forbid the edge with Knowledge, or remove {monotone} from increasing "
                f"and decreasing."
            )

    def check_structure(self, structure: Structure, data: EncodedData) -> None:
        """Raise ValueError if a monotone feature has a child."""
        self.check_parents(structure.parents, np.arange(structure.n_features), data, "structure")

    def apply(self, tables: Tables) -> Tables:
        """Return the closest CPTs with monotone log odds. Other CPTs change only by rounding.

        Raises ``ValueError`` for CPTs with few bits.
        """
        if tables.bits is not None:
            raise ValueError(_FEW_BITS)
        layout, cells = tables.layout, np.rint(tables.cells / QUANTUM) * QUANTUM
        for t in range(layout.n_tables):
            i = int(layout.child[t])
            if self.directions[i]:
                own = cells[layout.offset[t] : layout.offset[t + 1]]
                cells[layout.offset[t] : layout.offset[t + 1]] = self._pooled(own.reshape(layout.shape(t)), i).ravel()
        return Tables(layout, cells, tables.is_normalized)

    def _pooled(self, log_p: AnyArray, feature: int) -> FloatArray:
        """Return the pooled CPT (values, values of each parent, 2) of a feature, which may not be normalized."""
        n_values, most = len(log_p), log_p.max(axis=0)
        p = np.exp(log_p - most)
        totals = p.sum(axis=0)
        p = np.moveaxis(np.maximum(p / totals, _LEAST).reshape(n_values, -1, 2), 0, 1)
        roots, how = np.full(len(p), -1), (int(self.n_ranked[feature]), int(self.directions[feature]))
        logs = monotone_logs(np.ascontiguousarray(p), roots, 0.0, *how, QUANTUM)
        scale = np.rint((most + np.log(totals)) / QUANTUM) * QUANTUM
        found: FloatArray = np.moveaxis(logs, 0, 1).reshape(log_p.shape) + scale
        return found


def refuse_bits(directions: dict[str, Sequence[Any]]) -> None:
    """Raise ValueError if columns are declared monotone.

    Rounding to few bits could make their log odds non-monotone.
    """
    if any(directions.values()):
        raise ValueError(_FEW_BITS)
