"""MMPC: candidate parents and children of each node by tests of conditional independence (Tsamardinos et al. 2006).

The test is the G test. With counts n of two nodes X and T in each context s of a set S of nodes, the statistic is

    G = 2 sum n_xts log (n_xts n_s / (n_xs n_ts)),

compared with a chi-square distribution of sum_s (r_xs - 1)(r_ts - 1) degrees of freedom, where r_xs and r_ts are the
numbers of values that occur in the context. A set S with fewer than five rows per cell is not tested, and at most three
nodes are conditioned on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.counts import sum_xlogx
from tanlearn.kernels.mathematics import unit_scale
from tanlearn.structures.table_layout import TableLayout

__all__ = ["parents_and_children"]

#: Largest number of nodes of a conditioning set.
_MOST_CONDITIONS = 3
#: Fewest rows per cell of a tested table.
_ROWS_A_CELL = 5
#: Associations are compared up to this resolution, far above their rounding errors.
_RESOLUTION = 2.0**-24
#: Survival probabilities below this are computed from the first term of their asymptotic series.
_SMALLEST = 1e-280


def parents_and_children(data: EncodedData, significance: float, *, n_jobs: int | None = None) -> AnyArray:
    """Return the symmetric mask of pairs of nodes that are candidates for an arc. Shape: (n_features, n_features).

    The features of the data are the nodes, and its class is constant. The result does not depend on ``n_jobs``.
    """
    search = _Search(data, significance)
    found = in_threads(search.candidates, range(data.n_features), n_jobs)
    mask = np.zeros((data.n_features, data.n_features), bool)
    for target, nodes in enumerate(found):
        mask[target, nodes] = True
    return mask & mask.T


class _Search:
    """Tests of independence on the rows of a data set."""

    def __init__(self, data: EncodedData, significance: float) -> None:
        self._data = data.present()
        self._weights = self._data.weights
        self._weight = float(self._weights.sum())
        self._threshold = -math.log(significance)
        self._tested: dict[tuple[int, int, tuple[int, ...]], float] = {}  # by the two nodes and the conditions

    def candidates(self, target: int) -> list[int]:
        """Return the nodes that no tested set of candidates separates from the target (MMPC without symmetry)."""
        states = self._data.n_states
        others = np.array([j for j in range(self._data.n_features) if j != target], dtype=np.intp)
        least = self._associations(target, others, ())  # smallest association of each node given sets of candidates
        chosen: list[int] = []
        while (is_open := least > self._threshold).any():
            others, least = others[is_open], least[is_open]
            best = int(least.argmax())
            new = int(others[best])
            others, least = np.delete(others, best), np.delete(least, best)
            # Only sets with the new candidate have not been tested before.
            n_cells = float(states[target]) * float(states[new]) * float(states[others].min(initial=1))
            for given in self._subsets(chosen, _MOST_CONDITIONS - 1, n_cells):
                is_open = least > self._threshold
                found = self._associations(target, others[is_open], (*given, new))
                least[is_open] = np.minimum(least[is_open], found)
            chosen.append(new)
        for node in list(chosen):
            rest, single = [j for j in chosen if j != node], np.array([node])
            sets = self._subsets(rest, _MOST_CONDITIONS, float(states[target]) * float(states[node]))
            if any(self._associations(target, single, given)[0] <= self._threshold for given in sets):
                chosen.remove(node)
        return sorted(chosen)

    def _subsets(self, nodes: Sequence[int], most: int, n_cells: float) -> Iterator[tuple[int, ...]]:
        """Yield the subsets of up to ``most`` nodes with enough rows for ``n_cells`` times their values."""
        yield ()
        if not most:
            return
        for number, j in enumerate(nodes):
            n_more = n_cells * float(self._data.n_states[j])
            if n_more * _ROWS_A_CELL <= self._weight:
                for given in self._subsets(nodes[number + 1 :], most - 1, n_more):
                    yield (j, *given)

    def _associations(self, target: int, others: IntArray, given: Sequence[int]) -> FloatArray:
        """Return -log p of the test whether each node depends on the target given a set (inf with too few rows)."""
        states = self._data.n_states
        n_cells = float(states[target]) * math.prod(states[list(given)].tolist()) * states[others]
        is_tested = np.full(len(others), not given) | (n_cells * _ROWS_A_CELL <= self._weight)
        conditions = tuple(sorted(given))
        keys = [(min(target, x), max(target, x), conditions) for x in others.tolist()]
        new = [t for t in np.flatnonzero(is_tested).tolist() if keys[t] not in self._tested]
        if new:
            for t, value in zip(new, self._test(target, others[new], given), strict=True):
                self._tested[keys[t]] = value
        return np.array([self._tested[key] if tested else np.inf for key, tested in zip(keys, is_tested, strict=True)])

    def _test(self, target: int, others: IntArray, given: Sequence[int]) -> list[float]:
        """Return -log p of the test whether each node depends on the target given a set, from counts of the rows."""
        data, n_states = self._data, self._data.n_states
        parents = np.full((len(others), max(2, 1 + len(given))), -1)
        parents[:, : 1 + len(given)] = [target, *given]
        layout = TableLayout(others, parents, n_states, 1)
        counts = layout.count(data.codes, data.y, self._weights)
        tables = (counts[first:last] for first, last in itertools.pairwise(layout.offset.tolist()))
        return [
            _association(table.reshape(n_states[x], n_states[target], -1))
            for x, table in zip(others.tolist(), tables, strict=True)
        ]


def _association(counts: AnyArray) -> float:
    """Return -log p of the G test of counts laid out as [x][target][context]."""
    of_x, of_target, of_context = counts.sum(axis=1), counts.sum(axis=0), counts.sum(axis=(0, 1))
    freedom = int((np.maximum((of_x > 0).sum(axis=0) - 1, 0) * np.maximum((of_target > 0).sum(axis=0) - 1, 0)).sum())
    if not freedom:
        return 0.0
    scale = unit_scale(float(of_context.sum()))
    units = sum(sum_xlogx(np.ascontiguousarray(part).ravel(), scale) for part in (counts, of_context))
    units -= sum(sum_xlogx(np.ascontiguousarray(part).ravel(), scale) for part in (of_x, of_target))
    return round(_log_survival(max(2.0 * units / scale, 0.0), freedom) / -_RESOLUTION) * _RESOLUTION


def _log_survival(statistic: float, freedom: int) -> float:
    """Return the log probability that a chi-square variable exceeds a statistic."""
    from scipy.special import gammaincc

    half, shape = statistic / 2, freedom / 2
    p = float(gammaincc(shape, half))
    if p > _SMALLEST:
        return math.log(p)
    return (shape - 1) * math.log(half) - half - math.lgamma(shape)
