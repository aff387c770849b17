"""Exact leave-one-out predictions of networks that back off to fewer parents.

Each row is scored after its own weight is removed from the counts of all its contexts. The scores of level j use the
first j parents of each feature, smoothed by the concentrations m of levels 0 to j (``back_off.py``). They are used to
choose the concentrations and the number of features and parents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.counts.context_counts import FamilyColumns, SortedFamily
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels import leave_one_out as kernels

__all__ = ["LeaveOneOut"]

#: Maximum number of scores of all scored rows: 16 MB per partial sum, and the same for products.
_NUMBERS = 2**21
#: Probabilities multiplied before taking a logarithm. With six levels and 10**8 rows they are above 1e-55.
_FACTORS = 4
#: Number of partial sums, whatever the number of threads, so that rounding does not depend on it.
_PARTS = 4


class _Family(NamedTuple):
    """Sorted rows of a family, with their weights and their positions among the scored rows (-1 for none)."""

    sorted: SortedFamily
    weights: FloatArray
    slot: IntArray


class LeaveOneOut:
    """Leave-one-out scores of the classes, in networks that back off to fewer parents.

    From a row of weight w > 1, a weight of 1 is removed; a row of weight w < 1 is removed completely. All rows are
    counted, but with very many rows, only an evenly spaced subset is scored. The subset is smaller for more
    ``n_alternatives`` (sets of scores in memory at the same time). Results do not depend on ``n_jobs``.
    """

    def __init__(self, data: EncodedData, parents: IntArray, n_alternatives: int, *, n_jobs: int | None = None) -> None:
        # parents: (n_features, width), -1 for none, absent ones last
        self._data, self._parents, self._n_jobs = data, parents, n_jobs
        n_judged = min(data.n_samples, max(1, _NUMBERS // (data.n_classes * n_alternatives)))
        self._judged = np.arange(n_judged) * data.n_samples // n_judged
        self._slot = np.full(data.n_samples, -1, np.intp)
        self._slot[self._judged] = np.arange(n_judged)
        self._y = data.y[self._judged]
        self._weights = data.weights.astype(np.float64)
        self._depth = (parents >= 0).sum(axis=1)
        self.n_levels = 1 + int(self._depth.max())  # 1 + the largest number of parents of a feature

    def choose(self, grid: Sequence[float]) -> tuple[FloatArray, tuple[float, float]]:
        """Choose the concentration of each level by the mean leave-one-out log loss.

        The levels are chosen greedily, beginning with the level without parents. Each concentration is chosen in the
        network with the parents of its level, given the concentrations of the previous levels. ``grid`` contains
        positive candidates; ties go to the first one. Returns the concentrations m (n_levels,), and the mean log loss
        and the error rate of the network with these concentrations.
        """
        candidates = np.array(grid, np.float64)
        m, losses = np.ones(self.n_levels), np.empty((len(candidates), 2))
        base, best = self._prior(), 0
        for level in range(self.n_levels):
            deeper = np.flatnonzero(self._depth >= level)
            scores = base + self._sum(deeper, level, m, candidates)
            kernels.class_losses(scores, self._y, self._weights[self._judged], losses)
            best = int(losses[:, 0].argmin())
            m[level] = candidates[best]
            ended = np.flatnonzero(self._depth == level)
            base += self._sum(ended, level, m, m[level : level + 1])[0]
        total = float(self._weights[self._judged].sum())
        return m, (float(losses[best, 0]) / total, float(losses[best, 1]) / total)

    def prefixes(self, order: IntArray, m: FloatArray) -> FloatArray:
        """Compute the losses of networks with the first features of ``order`` and the first parents of each feature.

        The losses are the mean log loss and the error rate. Shapes: order: (n_features,); m: (n_levels,); result:
        (n_features + 1, n_levels, 2), by number of features and number of parents per feature.
        """
        scores = np.repeat(self._prior()[np.newaxis], self.n_levels, axis=0)
        losses = np.empty((len(order) + 1, self.n_levels, 2))
        weights = self._weights[self._judged]
        kernels.class_losses(scores, self._y, weights, losses[0])

        def judge(i: int) -> FloatArray:
            added = np.zeros_like(scores)
            family = self._family(i)
            chances = self._start(family, i)
            for level in range(self.n_levels):
                if level <= self._depth[i]:
                    self._leave_out(family, level, m[level], chances)
                kernels.add_logs(chances, added[level])
            return added

        for first in range(0, len(order), _PARTS):
            block = order[first : first + _PARTS]
            for place, added in enumerate(in_threads(judge, block.tolist(), self._n_jobs), first + 1):
                scores += added
                kernels.class_losses(scores, self._y, weights, losses[place])
        return losses / weights.sum()

    def _prior(self) -> FloatArray:
        """Return the leave-one-out log probabilities of the classes, with add-one smoothing."""
        counts = np.bincount(self._data.y, self._weights, self._data.n_classes)
        own = np.minimum(self._weights[self._judged], 1.0)
        left = np.tile(counts, (len(own), 1))
        left[np.arange(len(own)), self._y] -= own
        chances = (left + 1.0) / (left + 1.0).sum(axis=1, keepdims=True)
        scores = np.zeros_like(chances)
        kernels.add_logs(chances, scores)
        return scores

    def _sum(self, features: IntArray, level: int, m: FloatArray, candidates: FloatArray) -> FloatArray:
        """Sum the contributions of features to the scores, for each candidate concentration of a level."""
        shape = len(candidates), len(self._judged), self._data.n_classes

        def add(part: int) -> FloatArray:
            scores, products = np.zeros(shape), np.ones(shape)
            for n_done, i in enumerate(features[part::_PARTS].tolist(), 1):
                family = self._family(i)
                chances = self._start(family, i)
                for above in range(level):
                    self._leave_out(family, above, m[above], chances)
                cells, totals = self._counts(i)
                arrays = family.weights, family.slot, candidates, cells, totals, chances, products
                kernels.multiply_left_out(*self._columns(family, level), *arrays)
                if n_done % _FACTORS == 0:
                    self._take_logs(products, scores)
            self._take_logs(products, scores)
            return scores

        total = np.zeros(shape)
        for scores in in_threads(add, range(min(_PARTS, len(features))), self._n_jobs):
            total += scores
        return total

    def _take_logs(self, products: FloatArray, scores: FloatArray) -> None:
        """Add the logarithms of products to the scores, and reset the products to 1."""
        for one, other in zip(products, scores, strict=True):
            kernels.add_logs(one, other)
        products[:] = 1.0

    def _family(self, i: int) -> _Family:
        """Return the sorted rows of a feature."""
        data, given = self._data, self._parents[i][self._parents[i] >= 0]
        columns = FamilyColumns.of_rows(data.codes, data.y, i, given, data.n_states, data.n_classes)
        return _Family(columns.sort(), self._weights[columns.rows], self._slot[columns.rows])

    def _start(self, family: _Family, i: int) -> FloatArray:
        """Return the probabilities of the scored rows before any count, 1 / n_states."""
        chances = np.empty((len(self._judged), self._data.n_classes))
        kernels.start_chances(family.sorted.columns.values, int(self._data.n_states[i]), family.slot, chances)
        return chances

    def _leave_out(self, family: _Family, level: int, m: float, chances: FloatArray) -> None:
        """Replace the probabilities of level - 1 by the probabilities of the level, in place."""
        cells, totals = self._counts(int(family.sorted.columns.n_values[-2]), is_size=True)
        kernels.leave_out(*self._columns(family, level), family.weights, family.slot, m, cells, totals, chances)

    def _counts(self, i: int, *, is_size: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return zeros for the counts of a context, (n_states, n_classes) and (n_classes,)."""
        n_states = i if is_size else int(self._data.n_states[i])
        return np.zeros((n_states, self._data.n_classes)), np.zeros(self._data.n_classes)

    def _columns(self, family: _Family, level: int) -> tuple[AnyArray, IntArray, AnyArray, int, int]:
        """Return the arguments of the kernels that describe a family at a level."""
        columns = family.sorted.columns
        absent = int(columns.n_values[level - 1]) if level > 0 else 0
        return columns.values, family.sorted.order, family.sorted.shared, level, absent
