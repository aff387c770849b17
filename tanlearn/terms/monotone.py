"""Terms with log odds that rise or fall with chosen features.

In a network of terms, isotonic regression makes the curve of a feature monotone.

A boosted term divides the rows by splits, and a cell is a combination of their sides. If two cells differ only in the
splits of one monotone feature, the cell with the higher values of the feature comes later in the order. If the values
of the cells respect this order in every term, so does the sum of the terms. The computed scores respect it exactly,
because floating-point addition is monotone in each argument.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.models.term_tables import TermTables

__all__ = ["MonotoneFeatures", "in_exact_order", "isotonic", "rising"]

#: Maximum number of iterations of Dykstra's algorithm, and the relative change of values that ends it.
MAX_ITER, TOL = 200, 1e-10
#: Parameters of networks are multiples of this number of nats, 9e-13, so that their sums are exact.
QUANTUM = 2.0**-40
#: Smallest weight of a pattern of sides relative to all rows, so that values without training rows have a weight.
LEAST_SHARE = 2.0**-20


@dataclass(frozen=True)
class MonotoneFeatures:
    """Features with monotone log odds of two classes.

    Shapes: directions: (n_features,), 1 rising, -1 falling, 0 free; n_ranked: (n_features,), number of ordered values.
    """

    directions: IntArray
    n_ranked: IntArray

    def split_gains(self, feature: int, order: IntArray, sums: FloatArray, ridge: float) -> FloatArray:
        """Return the gain of each initial part of ``order``, where cells in the wrong order get a common value.

        Shapes: order: (n_values,); sums: (n_cells, n_values, 2), residuals and variances; result: (n_values - 1,).
        """
        left = sums[:, order].cumsum(axis=1)
        total, left = left[:, -1:], left[:, :-1]
        right = total - left

        def gain(own: FloatArray, n_sides: int = 1) -> FloatArray:
            found: FloatArray = own[..., 0] ** 2 / (own[..., 1] + n_sides * ridge)
            return found

        steps = (own[..., 0] / (own[..., 1] + ridge) for own in (left, right))
        is_wrong = np.subtract(*steps) * self.directions[feature] > 0
        after = np.where(is_wrong, gain(total, 2), gain(left) + gain(right))
        gains: FloatArray = (after - gain(total)).sum(axis=0)
        return gains

    def patterns(self, features: IntArray, sides: Sequence[AnyArray]) -> dict[int, tuple[int, IntArray, IntArray]]:
        """Return the bits in a cell number and the patterns of sides of each monotone feature of a term.

        There are two arrays of patterns: of the ranked values in the order of rising log odds, (n_ranked_patterns,),
        and of all values, (n_patterns,).
        """
        found = {}
        for i in np.unique(features).tolist():
            if not self.directions[i]:
                continue
            splits = np.flatnonzero(features == i).tolist()
            of_values = sum(sides[s].astype(np.intp) << s for s in splits)
            ranked = np.asarray(of_values)[: self.n_ranked[i]][:: int(self.directions[i])]
            ordered = ranked[np.append(True, ranked[1:] != ranked[:-1])]
            found[i] = sum(1 << s for s in splits), ordered, np.unique(of_values)
        return found

    def isotonic_steps(
        self, features: IntArray, sides: Sequence[AnyArray], steps: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the steps of cells that are in the right order and closest to ``steps``. Shape: (n_cells,).

        Shapes: steps: (n_cells,); weights: (n_cells,), positive weights of the squared differences.
        """
        chains = self.patterns(features, sides)
        cells = np.arange(len(steps))
        pairs: list[tuple[IntArray, IntArray]] = []
        others = {i: cells[(cells & mask) == 0] for i, (mask, _, _) in chains.items()}
        for i, (_, ordered, _) in chains.items():
            for first in (0, 1):  # disjoint pairs, so that all of them are pooled at once
                low, high = ordered[first:-1:2], ordered[first + 1 :: 2]
                if len(low):
                    pairs.append((np.add.outer(low, others[i]).ravel(), np.add.outer(high, others[i]).ravel()))
        found = isotonic(steps, weights, pairs)
        for i, (_, ordered, _) in chains.items():  # the rest of the iteration's error
            for low, high in itertools.pairwise(ordered.tolist()):
                found[high + others[i]] = np.maximum(found[high + others[i]], found[low + others[i]])
        return found

    def weights(self, features: IntArray, sides: Sequence[AnyArray], weights: FloatArray) -> FloatArray:
        """Return weights of the cells of a term that keep the order if values are missing. Shape: (n_cells,).

        For a missing value, the weighted mean over cells is used. The sides of a monotone feature may change the
        weights only by a common factor. These factors are powers of two, so that rounding errors do not depend on the
        sides.
        """
        chains = self.patterns(features, sides)
        if not chains:
            return weights
        cells, total = np.arange(len(weights)), weights.sum()
        free = cells & ~sum(mask for mask, _, _ in chains.values())
        found: FloatArray = np.bincount(free, weights, len(cells))[free]
        for mask, _, possible in chains.values():
            factors = np.zeros(len(cells))
            shares = np.bincount(cells & mask, weights, len(cells))[possible] / total
            factors[possible] = np.exp2(np.rint(np.log2(np.maximum(shares, LEAST_SHARE))))
            found *= factors[cells & mask]
        return found


def rising(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the non-decreasing values with the least weighted squared difference (pool adjacent violators).

    Shapes: values, weights (positive), result: (n,).
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight and number of values
    for pool in zip(values.tolist(), weights.tolist(), itertools.repeat(1)):
        mean, weight, size = pool
        while pools and pools[-1][0] > mean:
            other, of_other, n_others = pools.pop()
            mean = (mean * weight + other * of_other) / (weight + of_other)
            weight, size = weight + of_other, size + n_others
        pools.append((mean, weight, size))
    found: FloatArray = np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])
    return found


def in_exact_order(tables: TermTables, directions: IntArray, n_ranked: IntArray) -> TermTables:
    """Return CPTs with exactly monotone log odds, whose parameters are multiples of a small number.

    Sums and differences of such parameters are exact. No column of terms may contain a monotone feature and another
    feature.

    Shapes: directions, n_ranked: (n_features,).
    """
    if not directions.any():
        return tables
    values = []
    for column, own in zip(tables.columns, tables.values, strict=True):
        rounded, i = np.rint(own / QUANTUM) * QUANTUM, column.features[0]
        if directions[i]:
            direction, ranked = int(directions[i]), rounded[: n_ranked[i]]
            odds = np.maximum.accumulate((ranked[:, 1] - ranked[:, 0])[::direction])[::direction]
            ranked[:, 1] = ranked[:, 0] + odds
        values.append(rounded)
    prior = np.rint(tables.log_prior / QUANTUM) * QUANTUM
    rule: dict[str, Any] = {"is_normalized": tables.is_normalized, "prior_shift": tables.prior_shift}
    return TermTables(tables.layout, tables.columns, values, prior, **rule)


def isotonic(values: FloatArray, weights: FloatArray, pairs: Sequence[tuple[IntArray, IntArray]]) -> FloatArray:
    """Return the closest values (in weighted squares) with ``found[low] <= found[high]``, up to a tolerance.

    Dykstra's algorithm of alternating projections is used. ``pairs`` contains lists of positions ``low`` and ``high``.
    The positions of one list are disjoint. Shapes: values, weights (positive), result: (n,).
    """
    found: FloatArray = values.copy()
    corrections = np.zeros((len(pairs), len(values)))
    scale = TOL * max(float(np.abs(values).max(initial=0.0)), np.finfo(float).tiny)
    for _ in range(MAX_ITER):
        before = found.copy()
        for k, (low, high) in enumerate(pairs):
            start = found + corrections[k]
            found = start.copy()
            wrong = start[low] > start[high]
            a, b = low[wrong], high[wrong]
            mean = (weights[a] * start[a] + weights[b] * start[b]) / (weights[a] + weights[b])
            found[a] = found[b] = mean
            corrections[k] = start - found
        if np.abs(found - before).max(initial=0.0) <= scale:
            break
    return found
