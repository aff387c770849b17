"""Contributions of single features and of pairs to the log odds of a class, as functions of their values.

The log odds of a complete row are a sum over CPTs. A CPT depends on a feature and its parents, so it contains effects
of single features and effects of pairs. The functional ANOVA separates these effects. A function of two features is

    F(x_i, x_j) = c + a(x_i) + b(x_j) + f(x_i, x_j),

where a and b have mean 0 over the rows, and f has mean 0 over the rows of each value of x_i, and of each value of x_j.
The parts stay the same if a function of x_j is moved from the CPT of the child to the CPT of the parent, for example
when CPTs are normalized. Parts of several CPTs that depend on the same features are added.

[L] Lengerich, Tan, Chang, Hooker, Caruana: Purifying interaction effects with the functional ANOVA. AISTATS 2020.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.models.tables import Tables

__all__ = ["Contributions", "fit_sum", "log_odds_of", "smoothed_counts"]


class Contributions:
    """Parts of the log odds of each class against the other classes, for the distribution of given rows.

    The log odds of class c against the others are its log probability minus the mean log probability of the other
    classes. With two classes, they are the usual log odds.

    Shapes: codes: (n_features, n_samples); weights: (n_samples,); targets: codes of some classes.
    """

    def __init__(
        self, tables: Tables, codes: Codes, weights: FloatArray, targets: Sequence[int], *, temperature: float = 1.0
    ) -> None:
        self._tables, self._targets, self._temperature = tables, targets, temperature
        self._codes, self._weights = codes, weights
        self._missing = missing_code(codes.dtype)

    def of_feature(self, feature: int) -> FloatArray:
        """Return the contribution of each value, with mean 0 over the rows. Shape: (n_values, n_targets)."""
        n_values = int(self._tables.layout.n_states[feature])
        total = self._parts((feature,), np.zeros((n_values, len(self._targets))))
        counts = self.counts(feature)
        if not counts.any():
            counts = np.ones(n_values)
        mean: FloatArray = (counts[:, np.newaxis] * total).sum(axis=0) / counts.sum()
        return total - mean

    def of_pair(self, first: int, second: int) -> FloatArray:
        """Return the contribution of each pair of values beyond the single values.

        Shapes: result: (n_values, n_values, n_targets).
        """
        n_states = self._tables.layout.n_states
        shape = int(n_states[first]), int(n_states[second]), len(self._targets)
        if first > second:
            return self._parts((second, first), np.zeros((shape[1], shape[0], shape[2]))).swapaxes(0, 1)
        return self._parts((first, second), np.zeros(shape))

    def counts(self, *features: int) -> FloatArray:
        """Return the weight of the rows with each combination of values, (n_values of each feature)."""
        n_states = self._tables.layout.n_states
        return self._counts(features, [np.arange(n_states[i]) for i in features])

    def counts_of_pair(self, first: int, second: int) -> FloatArray:
        """Return for each pair of values the weight of the rows in the same groups of the model.

        Shapes: result: (n_values, n_values).
        """
        n_states = self._tables.layout.n_states
        total = np.zeros((int(n_states[first]), int(n_states[second])))
        for i in (first, second):
            for features, groups, _ in self._tables.addends(i):
                if first in features and second in features:
                    own = [groups[features.index(k)] for k in (first, second)]
                    total = np.maximum(total, self._counts((first, second), own)[np.ix_(*own)])
        return total

    def pairs(self, feature: int | None = None) -> list[tuple[int, int]]:
        """Return the pairs of features (lower, higher) that share a CPT: all pairs, or the pairs of one feature."""
        families = [features for i in range(len(self._tables)) for features, _, _ in self._tables.addends(i)]
        found = {pair for family in families for pair in itertools.combinations(sorted(family), 2)}
        return sorted(pair for pair in found if feature is None or feature in pair)

    def _parts(self, wanted: tuple[int, ...], total: FloatArray) -> FloatArray:
        """Add the parts of all CPTs that depend on exactly the ``wanted`` features, in increasing order."""
        for i in range(len(self._tables)):
            for features, groups, values in self._tables.addends(i):
                if not set(wanted) <= set(features):
                    continue
                table = log_odds_of(values, self._targets) / self._temperature
                if not np.isfinite(table).all():
                    raise ValueError(
                        f"log odds need positive probabilities, but feature {i} has a probability of 0. Smooth the "
                        f"CPTs, for example with MaximumLikelihood(alpha=1)."
                    )
                counts = self._counts(features, groups)
                parts = _anova(table, smoothed_counts(counts))
                axes = tuple(features.index(k) for k in wanted)
                part = parts[tuple(sorted(axes))]
                if axes != tuple(sorted(axes)):
                    part = part.swapaxes(0, 1)
                total += part[np.ix_(*(groups[axis] for axis in axes))]
        return total

    def _counts(self, features: Sequence[int], groups: Sequence[IntArray]) -> FloatArray:
        """Return the weight of the rows in each combination of groups; rows with a missing value are left out."""
        sizes = [int(own.max()) + 1 for own in groups]
        seen: AnyArray = np.all([self._codes[i] != self._missing for i in features], axis=0)
        places = [own[self._codes[i][seen]] for i, own in zip(features, groups, strict=True)]
        cell = np.ravel_multi_index(places, sizes)
        counts: FloatArray = np.bincount(cell, self._weights[seen], int(np.prod(sizes))).astype(np.float64)
        return counts.reshape(sizes)


def log_odds_of(values: FloatArray, targets: Sequence[int]) -> FloatArray:
    """Return the log odds of target classes against the mean of all others. The last axis becomes the targets."""
    own = values[..., list(targets)]
    with np.errstate(invalid="ignore"):  # infinite log probabilities are refused by the caller
        others: FloatArray = (values.sum(axis=-1, keepdims=True) - own) / (values.shape[-1] - 1)
        return own - others


def smoothed_counts(counts: FloatArray) -> FloatArray:
    """Add one row of independent features, so that each combination has a positive weight."""
    sides = []
    for axis, size in enumerate(counts.shape):
        side = counts.sum(axis=tuple(k for k in range(counts.ndim) if k != axis)) + 1 / size
        sides.append(side / side.sum())
    smoothed: FloatArray = counts + reduce(np.multiply.outer, sides)
    return smoothed


def _anova(table: FloatArray, weights: FloatArray) -> dict[tuple[int, ...], FloatArray]:
    """Return the parts of a table by their axes. The sum of all parts differs from the table by a constant.

    Shapes: table: (*sizes, n_targets); weights: sizes; the part of some axes: (*sizes of these axes, n_targets).
    """
    axes = tuple(range(weights.ndim))
    if len(axes) == 1:
        return {axes: table - (weights[:, np.newaxis] * table).sum(axis=0) / weights.sum()}
    margins = list(itertools.combinations(axes, len(axes) - 1))
    fitted = fit_sum(table, weights) if len(axes) == 2 else _fit_margins(table, weights, margins)
    found = {axes: table.copy()}
    for margin, part in zip(margins, fitted, strict=True):
        (left_out,) = set(axes) - set(margin)
        found[axes] -= np.expand_dims(part, left_out)
        for inner, one in _anova(part, weights.sum(axis=left_out)).items():
            key = tuple(margin[k] for k in inner)
            found[key] = found[key] + one if key in found else one
    return found


def fit_sum(table: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit the sum of a function of each axis to a table of two axes, by weighted least squares.

    One of the two functions is arbitrary up to a constant. Weights are positive.

    Shapes: table: (n, m, n_targets); weights: (n, m); result: (n, n_targets) and (m, n_targets).
    """
    if len(table) < table.shape[1]:
        second, first = fit_sum(table.swapaxes(0, 1), weights.T)
        return first, second
    weighted = weights[..., np.newaxis] * table
    rows, columns = weights.sum(axis=1), weights.sum(axis=0)
    share = weights / rows[:, np.newaxis]
    # The first function is eliminated; the rank-one matrix selects one of the constants.
    system = np.diag(columns) - np.einsum("im,ik->mk", weights, share) + columns.mean()
    means = weighted.sum(axis=1) / rows[:, np.newaxis]
    right = weighted.sum(axis=0) - np.einsum("im,it->mt", weights, means)
    second = np.linalg.solve(system, right)
    return means - np.einsum("im,mt->it", share, second), second


def _fit_margins(table: FloatArray, weights: FloatArray, margins: Sequence[tuple[int, ...]]) -> list[FloatArray]:
    """Fit the sum of functions of given axes to a table of three or more axes, by weighted least squares."""
    from scipy.sparse import csr_array, diags_array, hstack
    from scipy.sparse.linalg import lsqr

    sizes, n_targets = weights.shape, table.shape[-1]
    cells = np.arange(weights.size)
    coordinates = np.unravel_index(cells, sizes)
    shapes = [tuple(sizes[k] for k in margin) for margin in margins]
    indicators = [
        csr_array((np.ones(len(cells)), (cells, np.ravel_multi_index([coordinates[k] for k in margin], shape))))
        for margin, shape in zip(margins, shapes, strict=True)
    ]
    design, root = hstack(indicators, format="csr"), np.sqrt(weights.ravel())
    norms = np.sqrt(design.T @ weights.ravel())  # columns of unit norm need fewer iterations
    scaled = (diags_array(root) @ design @ diags_array(1 / norms)).tocsr()
    solution = np.empty((len(norms), n_targets))
    for k in range(n_targets):
        right = root * table[..., k].ravel()
        solution[:, k] = lsqr(scaled, right, atol=1e-14, btol=1e-14, conlim=0, iter_lim=10 * len(norms))[0] / norms
    ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
    return [part.reshape(*shape, n_targets) for part, shape in zip(np.split(solution, ends), shapes, strict=True)]
