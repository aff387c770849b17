"""Gains of edges and triples: second-order estimates of the decrease in the loss if their terms are added."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype
from tanlearn._warnings import warn
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.weights import log_frequencies
from tanlearn.kernels import interaction_gains as kernels
from tanlearn.structures.knowledge import EdgeRules
from tanlearn.structures.restricted_forest import restricted_forest
from tanlearn.structures.structures import Structure, padded_parents
from tanlearn.terms.basis import Resolutions, TermStructure

__all__ = [
    "EdgeGains",
    "TripleGain",
    "edge_gains",
    "parents_of_gains",
    "strongest_features",
    "triple_gains",
    "warn_of_many_features",
    "with_triples",
]

#: Gain of the groups of three features, and the three features.
TripleGain = tuple[float, tuple[int, ...]]
#: Ridge of a cell in the formula of the gain.
SMOOTHING = 4.0
#: Maximum number of features for triples, those with the largest gains of edges: 2,024 triples.
MOST_FEATURES_OF_TRIPLES = 24
#: Maximum number of features with terms: 523,776 pairs. With 5,000 features, there would be 12.5 million pairs.
MOST_FEATURES = 1_024
#: Number of families per task of a thread.
_BLOCK = 2**12


class EdgeGains(NamedTuple):
    """Gains of the pairs of all features, or of some of them."""

    features: IntArray  # (m,) in order
    gains: FloatArray  # (m, m), symmetric and 0 on the diagonal

    def ranks(self, by_name: IntArray) -> IntArray:
        """Return the positions of the features, sorted by name; ``by_name`` (d,) contains all features."""
        position = np.full(len(by_name), -1)
        position[self.features] = np.arange(len(self.features))
        found: IntArray = position[by_name]
        return found[found >= 0]

    def parents(self, n_parents: int, by_name: IntArray, rules: EdgeRules | None = None) -> IntArray:
        """Return the parents (d, width) of all features, or -1 for none; see :func:`parents_of_gains`."""
        if rules is not None:  # required edges may connect any features
            every = np.zeros((len(by_name), len(by_name)))
            every[np.ix_(self.features, self.features)] = self.gains
            return parents_of_gains(every, n_parents, by_name, rules)
        found = np.full((len(by_name), n_parents), -1)
        own = parents_of_gains(self.gains, n_parents, self.ranks(by_name))
        found[self.features] = np.where(own < 0, -1, self.features[own])
        return found

    def network(self, n_parents: int, by_name: IntArray, rules: EdgeRules | None) -> TermStructure:
        """Return the network with at most ``n_parents`` parents per feature, without triples."""
        return TermStructure(self.parents(n_parents, by_name, rules))

    def triples(self, by_name: IntArray) -> list[tuple[int, ...]]:
        """Return all triples of the features with the largest gains, in the order of ``by_name`` (d,)."""
        ranks = self.ranks(by_name)
        ordered = self.gains[np.ix_(ranks, ranks)]
        most = np.sort(np.argsort(-np.maximum(ordered, 0).sum(axis=1), kind="stable")[:MOST_FEATURES_OF_TRIPLES])
        return list(itertools.combinations(self.features[ranks[most]].tolist(), 3))


def strongest_features(data: EncodedData, directions: IntArray | None = None, *, n_jobs: int | None = None) -> IntArray:
    """Return in order the features with the largest single gains over class frequencies, or all if they are few.

    Ties are broken by name. The result contains :data:`MOST_FEATURES` features, and all features with nonzero
    ``directions`` (n_features,).
    """
    if data.n_features <= MOST_FEATURES:
        return np.arange(data.n_features)
    frequencies = np.exp(log_frequencies(data.class_totals()))
    families = _Families(data, Resolutions(data), np.tile(frequencies, (data.n_samples, 1)), 2)
    gains = families.gains(np.arange(data.n_features)[:, np.newaxis], n_jobs)
    best = np.argsort(-gains[data.by_name], kind="stable")[:MOST_FEATURES]
    monotone = np.empty(0, np.intp) if directions is None else np.flatnonzero(directions)
    return np.union1d(data.by_name[best], monotone)


def warn_of_many_features(learner: str, n_features: int) -> None:
    """Issue a warning if there are more features than a learner uses."""
    if n_features > MOST_FEATURES:
        warn(
            f"{learner} uses only the {MOST_FEATURES:,} of {n_features:,} columns that predict the class best on "
            f"their own. If columns predict the class only together, select columns yourself and leave out the others."
        )


def edge_gains(
    data: EncodedData,
    resolutions: Resolutions,
    probabilities: FloatArray,
    features: IntArray | None = None,
    *,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the gain of every pair of some ``features`` (all by default), symmetric and 0 on the diagonal.

    Let g be the sum of the residuals ``[y = c] - p_c`` of the rows in a cell, and h the sum of their variances ``p_c
    (1 - p_c)``. Adding a parameter for the cell lowers the loss by about ``g^2 / (2 (h + ridge))``. Without a
    dependence, the expectation of g^2 is h. The gain of a pair is therefore defined as the sum of ``(g^2 - h) / (h +
    4)`` over cells and classes, which is then 0 on average for any number of cells. The gain is computed for the groups
    of both features and for the product of their scores, and the larger one is returned.

    ``probabilities`` are predictions of held-out rows, because residuals of training rows are too small. Identical
    features have gains that are equal bit for bit on every processor, so that ties are broken by name.

    Shapes: probabilities: (n_samples, n_classes); features: (m,); result: (m, m).
    """
    features = np.arange(data.n_features) if features is None else features
    families = _Families(data, resolutions, probabilities, 2)
    chosen = np.flatnonzero(families.is_divided[features])
    first, second = (chosen[own] for own in np.triu_indices(len(chosen), 1))
    gains = np.zeros((len(features), len(features)))
    found = families.gains(np.column_stack([features[first], features[second]]), n_jobs)
    gains[first, second] = gains[second, first] = found
    return gains


def triple_gains(
    data: EncodedData,
    resolutions: Resolutions,
    probabilities: FloatArray,
    triples: Sequence[tuple[int, ...]],
    *,
    n_jobs: int | None = None,
) -> list[TripleGain]:
    """Return the gains of the groups of three features, with the features, in decreasing order; ties keep their order.

    Gains are computed as in :func:`edge_gains`, from the probabilities of a model with edges. Triples are left out if
    one of their features has a single group.

    Shapes: probabilities: (n_samples, n_classes).
    """
    families = _Families(data, resolutions, probabilities, 3)
    divided = [own for own in triples if families.is_divided[list(own)].all()]
    gains = families.gains(np.array(divided, np.intp).reshape(-1, 3), n_jobs).tolist()
    return sorted(zip(gains, divided, strict=True), key=lambda one: -one[0])


class _Families:
    """Groups of the features and residuals and variances of the rows, for gains of families of a given size."""

    def __init__(self, data: EncodedData, resolutions: Resolutions, probabilities: FloatArray, n_features: int) -> None:
        weights = data.in_whole_rows().weights.astype(np.float64)[:, np.newaxis]
        residuals = weights * ((data.y[:, np.newaxis] == np.arange(data.n_classes)) - probabilities)
        self._rows: FloatArray = np.hstack([residuals, weights * probabilities * (1 - probabilities)])
        self._codes, n_groups = _encode(data.codes, resolutions, n_features)
        self._n_groups = np.array(n_groups, np.intp)
        #: Whether each feature has several groups, (n_features,). Columns of features with one group have no terms.
        self.is_divided = self._n_groups > 1
        self._is_scored = np.array(resolutions.is_ordered)
        self._scores = np.zeros((data.n_features, int(self._n_groups.max())))
        if n_features == 2:
            for i in np.flatnonzero(self._is_scored).tolist():
                self._scores[i, : n_groups[i]] = resolutions.scores(i)

    def gains(self, families: IntArray, n_jobs: int | None) -> FloatArray:
        """Return the gain of each family; shapes: families: (n_families, n_features); result: (n_families,)."""
        gains, most = np.empty(len(families)), int(self._n_groups.max()) ** families.shape[1]
        data = self._codes, self._n_groups, self._rows

        def write(first: int) -> None:
            cells = np.zeros((most, self._rows.shape[1]))
            scratch = cells, np.zeros(most, np.bool_), np.empty(most, np.intp), np.empty(cells.size)
            some, partials = slice(first, first + _BLOCK), np.empty(kernels.PARTIALS)
            scores = self._is_scored, self._scores, SMOOTHING
            kernels.write_gains(*data, families[some], *scores, *scratch, partials, gains[some])

        in_threads(write, range(0, len(families), _BLOCK), n_jobs)
        return gains


def _encode(codes: Codes, resolutions: Resolutions, n_features: int) -> tuple[Codes, list[int]]:
    """Return the groups (n_features, n_samples) of values in the finest division, and the numbers of groups.

    The group of missing values is the number of groups.
    """
    finest = [resolutions.finest(i, n_features) for i in range(len(codes))]
    n_groups = [int(groups.max()) + 1 for groups in finest]
    found: AnyArray = np.empty(codes.shape, codes_dtype(max(n_groups) + 1))
    for target, own, groups, size in zip(found, codes, finest, n_groups, strict=True):
        seen = own < len(groups)
        target[:] = np.where(seen, groups[np.where(seen, own, 0)], size)
    return found, n_groups


def parents_of_gains(gains: FloatArray, n_parents: int, by_name: IntArray, rules: EdgeRules | None = None) -> IntArray:
    """Return the parents of each feature: edges with the largest positive gains that form no cycle.

    With one parent per feature, the edges are the maximum spanning forest, directed away from the feature with the
    largest total gain of each tree. With more parents, an edge leads from the feature with the larger total gain to the
    other feature, and each feature keeps the parents with the largest gains. Ties are broken by name.

    With ``rules``, the structure contains all required edges, even if a feature then has more than ``n_parents``
    parents, and no forbidden edges. An edge then leads from the earlier feature to the later one, in an order by total
    gains that satisfies the rules.

    Shapes: gains: (n_features, n_features); by_name: (n_features,); result: (n_features, width), -1 for none.
    """
    if rules is not None:
        return _permitted_parents(gains, n_parents, by_name, rules)
    d = len(gains)
    ordered = gains[np.ix_(by_name, by_name)]
    order = np.argsort(-np.maximum(ordered, 0).sum(axis=1), kind="stable")  # largest gain first
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


def _permitted_parents(gains: FloatArray, n_parents: int, by_name: IntArray, rules: EdgeRules) -> IntArray:
    """Return the parents of :func:`parents_of_gains` under rules."""
    ordered, own = gains[np.ix_(by_name, by_name)], rules.with_most_parents(n_parents).take(by_name)
    order = np.argsort(-np.maximum(ordered, 0).sum(axis=1), kind="stable")
    required = own.parents()
    found: list[list[int]] = [[] for _ in required]
    if n_parents == 1 and max(map(len, required)) <= 1:
        parent = restricted_forest(ordered, own, order, spanning=False)
        found = [[] if j < 0 else [j] for j in parent.tolist()]
    else:
        order = own.ordered(order)
        for k, i in enumerate(order.tolist()):
            earlier = order[:k]
            best = earlier[np.argsort(-ordered[i, earlier], kind="stable")]
            best = best[(ordered[i, best] > 0) & own.allowed[i, best] & ~own.required[i, best]]
            found[i] = required[i] + best[: max(n_parents - len(required[i]), 0)].tolist()
    parents = padded_parents(found)
    result: IntArray = np.full((len(gains), max(1, n_parents, parents.shape[1])), -1)
    result[by_name, : parents.shape[1]] = np.where(parents < 0, -1, by_name[parents])
    return result


def with_triples(
    parents: IntArray,
    gains: Sequence[TripleGain],
    n_triples: int,
    max_parents: int,
    by_name: IntArray,
    rules: EdgeRules | None = None,
) -> TermStructure:
    """Return a network with at most ``n_triples`` triples, those with the largest positive gains.

    Of the three features, the last in the order of the network becomes the child, and the others become its parents. A
    triple is skipped if the child would have more than ``max_parents`` parents, or if ``rules`` forbid an edge. The
    order does not depend on the order of the columns.

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
        if len(wanted) <= max_parents and (rules is None or rules.allowed[child, wanted].all()):
            of_feature[child] = wanted
            triples.append((child, first, second))
    width = max(1, *map(len, of_feature))
    return TermStructure(np.array([row + [-1] * (width - len(row)) for row in of_feature]), tuple(triples))


def _spanning_forest(gains: FloatArray, order: IntArray) -> IntArray:
    """Return the parent of each feature in the maximum spanning forest of positive gains, or -1 for none.

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
