"""Gains of edges and triples: how much the loss falls, to second order, if their terms are added to a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels import scores as kernels
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.terms.basis import Resolutions, TermStructure

__all__ = ["TripleGain", "edge_gains", "parents_of_gains", "triple_gains", "with_triples"]

#: Gain of the groups of three features, and the features.
TripleGain = tuple[float, tuple[int, ...]]
#: Ridge of a cell in its gain.
SMOOTHING = 4.0
#: Triples are sought among at most so many features, those of the largest gains of edges: 2,024 triples.
MOST_FEATURES = 24
#: Families whose cells are added up at once.
_BLOCK = 64


def edge_gains(
    data: EncodedData, resolutions: Resolutions, probabilities: FloatArray, *, n_jobs: int | None = None
) -> FloatArray:
    """Return the gain of every pair of features, symmetric and 0 on the diagonal.

    Let g be the sum of the residuals ``[y = c] - p_c`` of the rows in a cell, and h the sum of their variances ``p_c (1
    - p_c)``. Adding a parameter for the cell lowers the loss by about ``g^2 / (2 (h + ridge))``. Without a dependence,
    the expectation of g^2 is h. The gain of a pair is therefore the sum over cells and classes of ``(g^2 - h) / (h +
    4)``: it is 0 on average, whatever the number of cells. It is computed for the groups of both features, and for the
    product of their scores, and the larger one counts.

    ``probabilities`` are those of held-out rows: those of training rows have residuals that are too small. Gains of
    equal features are equal bit by bit, on every processor, so that ties are broken by name.

    Shapes: probabilities: (n_samples, n_classes); result: (n_features, n_features).
    """
    d = data.n_features
    sums = _CellSums(data, resolutions, probabilities, 2)
    scores = [resolutions.scores(i) for i in range(d)]
    pairs = [pair for pair in itertools.combinations(range(d), 2) if sums.are_divided(pair)]

    def gain(pair: tuple[int, ...], g: FloatArray, h: FloatArray) -> float:
        product = np.multiply.outer(*(scores[i] for i in pair)).ravel()
        smooth = _gain(_exact_sums(g * product), _exact_sums(h * product**2))
        return max(_total(_gain(g, h)), _total(smooth))

    gains = np.zeros((d, d))
    for (i, j), one in zip(pairs, sums.map(gain, pairs, n_jobs), strict=True):
        gains[i, j] = gains[j, i] = one
    return gains


def triple_gains(
    data: EncodedData,
    resolutions: Resolutions,
    probabilities: FloatArray,
    of_edges: FloatArray,
    *,
    n_jobs: int | None = None,
) -> list[TripleGain]:
    """Return the gains of the groups of three features, with the features, largest first; ties are broken by name.

    Gains are those of :func:`edge_gains`, given the probabilities of a model with edges.

    Shapes: probabilities: (n_samples, n_classes); of_edges: (n_features, n_features).
    """
    sums = _CellSums(data, resolutions, probabilities, 3)
    ordered = of_edges[np.ix_(data.by_name, data.by_name)]
    most = np.sort(np.argsort(-np.maximum(ordered, 0).sum(axis=1), kind="stable")[:MOST_FEATURES])
    triples = [one for one in itertools.combinations(data.by_name[most].tolist(), 3) if sums.are_divided(one)]
    gains = sums.map(lambda _, g, h: _total(_gain(g, h)), triples, n_jobs)
    return sorted(zip(gains, triples, strict=True), key=lambda one: -one[0])


def _gain(g: FloatArray, h: FloatArray) -> FloatArray:
    """Return the gain of a parameter from the sums of its residuals and variances."""
    gain: FloatArray = (g**2 - h) / (h + SMOOTHING)
    return gain


def _total(gains: FloatArray) -> float:
    """Return the exactly rounded sum, which does not depend on the order of the entries."""
    return math.fsum(gains.ravel().tolist())


def _exact_sums(table: FloatArray) -> FloatArray:
    """Return the exactly rounded sum of each row."""
    return np.array([math.fsum(row) for row in table.tolist()])


class _CellSums:
    """Sums of residuals and variances over the rows of each cell, for families of so many features."""

    def __init__(self, data: EncodedData, resolutions: Resolutions, probabilities: FloatArray, n_features: int) -> None:
        weights = data.in_whole_rows().weights.astype(np.float64)[:, np.newaxis]
        residuals = weights * ((data.y[:, np.newaxis] == np.arange(data.n_classes)) - probabilities)
        self._rows: FloatArray = np.hstack([residuals, weights * probabilities * (1 - probabilities)])
        self._codes, n_groups = _encode(data.codes, resolutions, n_features)
        #: Groups of each feature, (n_features,), with a last one for missing values.
        self._n_states = np.array(n_groups, np.intp) + 1

    def are_divided(self, features: Sequence[int]) -> bool:
        """Return whether each feature has several groups. A column of other features would have no terms."""
        return bool((self._n_states[list(features)] > 2).all())

    def map(
        self,
        function: Callable[[tuple[int, ...], FloatArray, FloatArray], float],
        families: Sequence[tuple[int, ...]],
        n_jobs: int | None,
    ) -> list[float]:
        """Return ``function(family, g, h)`` of each family, with g and h of shape (n_classes, n_cells)."""
        blocks = [families[first : first + _BLOCK] for first in range(0, len(families), _BLOCK)]

        def run(block: Sequence[tuple[int, ...]]) -> list[float]:
            return [
                function(family, *np.split(table.reshape(-1, table.shape[-1]).T, 2))
                for family, table in zip(block, self._tables(block), strict=True)
            ]

        return [one for found in in_threads(run, blocks, n_jobs) for one in found]

    def _tables(self, families: Sequence[tuple[int, ...]]) -> Iterator[FloatArray]:
        """Yield the sums of the cells of each family without missing values, (groups of each, 2 n_classes)."""
        features = np.array(families, np.intp)
        layout = TableLayout(features[:, 0], features[:, 1:], self._n_states, self._rows.shape[1])
        cells, every = np.zeros(layout.n_cells), np.arange(len(families))
        row_of = np.empty(len(self._rows), np.intp)
        no_code = missing_code(self._codes.dtype)  # missing values have a group of their own
        kernels.log_joint_adjoint(self._codes, 0, self._rows, *layout.arrays(), every, no_code, row_of, cells)
        for k in every.tolist():
            table = cells[layout.offset[k] : layout.offset[k + 1]].reshape(layout.shape(k))
            yield table[(*[slice(-1)] * features.shape[1],)]


def _encode(codes: Codes, resolutions: Resolutions, n_features: int) -> tuple[Codes, list[int]]:
    """Return the group of each value in its finest division, (n_features, n_samples), and the numbers of groups.

    The group of missing values is the number of groups.
    """
    finest = [resolutions.finest(i, n_features) for i in range(len(codes))]
    n_groups = [int(groups.max()) + 1 for groups in finest]
    found: AnyArray = np.empty(codes.shape, codes_dtype(max(n_groups) + 1))
    for target, own, groups, size in zip(found, codes, finest, n_groups, strict=True):
        seen = own < len(groups)
        target[:] = np.where(seen, groups[np.where(seen, own, 0)], size)
    return found, n_groups


def parents_of_gains(gains: FloatArray, n_parents: int, by_name: IntArray) -> IntArray:
    """Return the parents of each feature, without a cycle: the edges of the largest positive gains.

    With one parent per feature, it is the maximum spanning forest, directed away from the feature of the largest total
    gain of each tree. With more, an edge leads from the feature of larger total gain to the other one, and each feature
    keeps its largest gains. Ties are broken by name.

    Shapes: gains: (n_features, n_features); by_name: (n_features,); result: (n_features, n_parents), -1 for none.
    """
    d = len(gains)
    ordered = gains[np.ix_(by_name, by_name)]
    order = np.argsort(-np.maximum(ordered, 0).sum(axis=1), kind="stable")  # most gain first
    found = np.full((d, n_parents), -1)
    if n_parents == 1:
        parent = _spanning_forest(ordered, order)
        found[by_name, 0] = np.where(parent < 0, -1, by_name[parent])
        return found
    for k, i in enumerate(order.tolist()):
        earlier = order[:k]
        best = earlier[np.argsort(-ordered[i, earlier], kind="stable")][:n_parents]
        best = best[ordered[i, best] > 0]
        found[by_name[i], : len(best)] = by_name[best]
    return found


def with_triples(
    parents: IntArray, gains: Sequence[TripleGain], n_triples: int, max_parents: int, by_name: IntArray
) -> TermStructure:
    """Return a network with the triples of largest positive gain, at most ``n_triples``.

    The last of three features in the order of the network becomes the child, and the others become its parents, as long
    as it has at most ``max_parents``. The order does not depend on that of the columns.

    Shapes: parents: (n_features, width), -1 for none; by_name: (n_features,).
    """
    position, rank = np.empty((2, len(parents)), np.intp)
    position[by_name] = np.arange(len(parents))
    in_order_of_names = np.where(parents < 0, -1, position[parents])[by_name]
    rank[by_name[Structure(in_order_of_names).order]] = np.arange(len(parents))
    of_feature = [[j for j in row if j >= 0] for row in parents.tolist()]
    triples: list[tuple[int, int, int]] = []
    for gain, features in gains:
        if gain <= 0 or len(triples) == n_triples:
            break
        first, second, child = sorted(features, key=lambda i: int(rank[i]))
        wanted = of_feature[child] + [j for j in (first, second) if j not in of_feature[child]]
        if len(wanted) <= max_parents:
            of_feature[child] = wanted
            triples.append((child, first, second))
    width = max(1, *map(len, of_feature))
    return TermStructure(np.array([row + [-1] * (width - len(row)) for row in of_feature]), tuple(triples))


def _spanning_forest(gains: FloatArray, order: IntArray) -> IntArray:
    """Return the parent of each feature in the maximum spanning forest of positive gains, -1 for none.

    The root of each tree is the first of its features in ``order``.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    i, j = np.nonzero(np.triu(gains > 0))
    tree = minimum_spanning_tree(coo_array((-gains[i, j], (i, j)), shape=gains.shape).tocsr())
    parent = np.full(len(gains), -1)
    seen = np.zeros(len(gains), np.bool_)
    for root in order.tolist():
        if not seen[root]:
            reached, before = breadth_first_order(tree, root, directed=False)
            seen[reached] = True
            parent[reached[1:]] = before[reached[1:]]
    return parent
