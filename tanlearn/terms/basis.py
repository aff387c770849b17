"""Terms of features, edges and triples: groups of values from coarse to fine, and smooth functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.weights import weights_of_values
from tanlearn.models.term_tables import TermColumn, encode_columns
from tanlearn.structures.knowledge import EdgeRules
from tanlearn.structures.structures import padded_parents
from tanlearn.structures.value_groups import group_scores, nested_groups, normal_scores, with_own_group

__all__ = [
    "EDGE_GROUPS",
    "EDGE_SMOOTH",
    "OWN_GROUPS",
    "OWN_SMOOTH",
    "TRIPLE_GROUPS",
    "Resolutions",
    "TermBasis",
    "TermStructure",
]

#: Kinds of terms. Each kind has its own ridge.
OWN_GROUPS, OWN_SMOOTH, EDGE_GROUPS, EDGE_SMOOTH, TRIPLE_GROUPS = range(5)
#: Kind of the groups of a column, by its number of features.
GROUPS = (OWN_GROUPS, EDGE_GROUPS, TRIPLE_GROUPS)
#: Maximum numbers of groups of an ordered feature in its own terms (in addition to its values), in edges and in
#: triples.
OWN_SIZES, EDGE_SIZES, TRIPLE_SIZES = (4, 8, 16, 32), (2, 4, 8), (2, 4)
#: Maximum numbers of groups of an unordered feature in edges and in triples. The rarest values share the last group.
MOST_IN_EDGES, MOST_IN_TRIPLES = 32, 8


@dataclass(frozen=True)
class TermStructure:
    """Parents of each feature, and the triples that have a column."""

    parents: IntArray  # (n_features, width), -1 for none
    triples: tuple[tuple[int, int, int], ...] = ()  # a child and two of its parents

    @classmethod
    def empty(cls, n_features: int) -> TermStructure:
        """Return the structure without edges."""
        return cls(np.full((n_features, 1), -1))

    @classmethod
    def least(cls, n_features: int, rules: EdgeRules | None) -> TermStructure:
        """Return the structure of the required edges."""
        return cls.empty(n_features) if rules is None else cls(padded_parents(rules.parents()))

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Child and parent of each edge."""
        return [(i, j) for i, row in enumerate(self.parents.tolist()) for j in row if j >= 0]


class Resolutions:
    """Groups and scores of the values of each feature, computed from this feature only.

    ``directions`` (n_features,) are 1 for features with rising log odds of two classes, -1 for falling log odds, and 0
    otherwise. Only ``features`` (any,) have terms; by default, all have.
    """

    def __init__(self, data: EncodedData, directions: IntArray | None = None, features: IntArray | None = None) -> None:
        self.directions: IntArray = np.zeros(data.n_features, np.intp) if directions is None else directions
        self.features: IntArray = np.arange(data.n_features) if features is None else features
        self._is_used = np.isin(np.arange(data.n_features), self.features)
        self.n_states: list[int] = data.n_states.tolist()
        self.is_ordered = [data.is_ordered is not None and bool(data.is_ordered[i]) for i in range(data.n_features)]
        masks = data.has_missing_category, data.is_ordered
        #: Ordered features with a category for missing values as the last value, which has no position in the order.
        self.has_missing = [all(mask is not None and bool(mask[i]) for mask in masks) for i in range(data.n_features)]
        #: Weight of the rows with each value, (n_states,) per feature. Missing values do not count.
        self.weights = weights_of_values(data.codes, data.n_states, data.in_whole_rows().weights)
        rules = (EDGE_SIZES, MOST_IN_EDGES), (TRIPLE_SIZES, MOST_IN_TRIPLES)
        self._joint = [
            [self.divide(i, of_ordered if self.is_ordered[i] else (most,)) for i in range(data.n_features)]
            for of_ordered, most in rules
        ]

    def ranked(self, feature: int) -> FloatArray:
        """Return the weights of a feature's values, without a category for missing values if the feature is ordered."""
        weights = self.weights[feature]
        return weights[:-1] if self.has_missing[feature] else weights

    def divide(self, feature: int, sizes: Sequence[int]) -> list[IntArray]:
        """Return the divisions of the values of a feature into groups, from coarse to fine, each (n_states,).

        The list is empty if the feature has no terms. In an ordered feature, the category for missing values is a
        separate group in each division.
        """
        if not self._is_used[feature]:
            return []
        weights = self.ranked(feature)
        found = nested_groups(weights, sizes, is_ordered=self.is_ordered[feature])
        return with_own_group(found, len(weights)) if self.has_missing[feature] else found

    def divisions(self, feature: int, n_features: int = 2) -> list[IntArray]:
        """Return the divisions (n_states,) of the values for columns of two or three features, from coarse to fine."""
        return self._joint[n_features - 2][feature]

    def finest(self, feature: int, n_features: int = 2) -> IntArray:
        """Return the finest division (n_states,) for columns of several features; all 0 if it has a single value."""
        divisions = self.divisions(feature, n_features)
        return divisions[-1] if divisions else np.zeros(self.n_states[feature], np.intp)

    def n_terms_of_edges(self, structure: TermStructure) -> int:
        """Return an upper bound of the number of terms of the edges and triples of a network."""
        families = *structure.edges, *structure.triples
        n_cells = sum(math.prod(int(self.finest(i, len(own)).max()) + 1 for i in own) for own in families)
        return 3 * n_cells // 2  # divisions into 4 + 16 + 64 cells and a product of scores

    def scores(self, feature: int) -> FloatArray:
        """Return the scores (n_groups,) of the groups of an edge, which are zeros if values are not ordered."""
        groups = self.finest(feature)
        scores: FloatArray = np.zeros(int(groups.max()) + 1)
        if self.is_ordered[feature]:
            weights = self.ranked(feature)
            known = group_scores(weights, groups[: len(weights)])
            scores[: len(known)] = known  # the score of missing values is 0
        return scores


class TermBasis:
    """Columns of a network, and the linear map from its terms to the cells of all columns.

    The cells (n_cells, n_classes) are ``expansion @ terms``. The last cell of each column stands for missing values; it
    has no term and is 0.
    """

    def __init__(self, resolutions: Resolutions, network: TermStructure) -> None:
        built = [_own_terms(resolutions, i) for i in range(len(resolutions.n_states))]
        built += [_joint_terms(resolutions, one) for one in (*network.edges, *network.triples)]
        self.columns = [column for column, _, _ in built]
        #: For each monotone feature: its number, direction, number of ranked values, and the first term of its values.
        self.monotone: list[tuple[int, int, int, int]] = []
        first = 0
        for i, (direction, (_, groups_of_terms, smooth)) in enumerate(
            zip(resolutions.directions.tolist(), built, strict=False)
        ):
            sizes = [int(groups.max()) + 1 for groups in groups_of_terms]
            if direction and sizes:  # a feature with a single value has no terms
                self.monotone.append((i, direction, len(resolutions.ranked(i)), first + sum(sizes[:-1])))
            first += sum(sizes) + len(smooth)
        self.expansion, self.kinds = _block_diagonal(built)

    @property
    def n_states(self) -> IntArray:
        """Number of cells of each column, including the cell of missing values. Shape: (n_columns,)."""
        return np.array([column.n_cells + 1 for column in self.columns], np.intp)

    def encode(self, codes: Codes) -> Codes:
        """Return the cell of each row in every column. Shape: (n_columns, n_samples)."""
        return encode_columns(self.columns, codes)

    def cells(self, terms: FloatArray) -> FloatArray:
        """Return the cells of all columns (n_cells, n_classes) of terms (n_terms, n_classes)."""
        cells: FloatArray = self.expansion @ terms
        return cells

    def pull_back(self, d_cells: FloatArray) -> FloatArray:
        """Return the gradient with respect to the terms, given the gradient with respect to the cells."""
        d_terms: FloatArray = self.expansion.T @ d_cells
        return d_terms

    def split(self, cells: FloatArray) -> list[FloatArray]:
        """Return the cells of each column, without the cell of missing values."""
        ends = np.cumsum(self.n_states)
        return [cells[end - column.n_cells - 1 : end - 1] for end, column in zip(ends, self.columns, strict=True)]


def _own_terms(resolutions: Resolutions, feature: int) -> tuple[TermColumn, list[IntArray], list[FloatArray]]:
    """Return the column of a feature, the group of each cell in its terms, and its smooth functions."""
    weights, n_states = resolutions.ranked(feature), resolutions.n_states[feature]
    column = TermColumn((feature,), (np.arange(n_states),), (n_states,))
    if not resolutions.is_ordered[feature]:
        return column, resolutions.divide(feature, (n_states,)), []
    divisions = resolutions.divide(feature, (*OWN_SIZES, n_states))
    smooth = []
    if divisions and len(weights) > 2:
        z = normal_scores(weights)
        nothing = np.zeros(n_states - len(weights))  # for missing values
        smooth = [np.append(z, nothing), np.append((z**2 - 1) / np.sqrt(2), nothing)]
    return column, divisions, smooth


def _joint_terms(
    resolutions: Resolutions, features: tuple[int, ...]
) -> tuple[TermColumn, list[IntArray], list[FloatArray]]:
    """Return the column of an edge or a triple, the group of each cell in its terms, and the product of the scores."""
    width = len(features)
    finest = tuple(resolutions.finest(i, width) for i in features)
    n_groups = tuple(int(groups.max()) + 1 for groups in finest)
    column, divisions = TermColumn(features, finest, n_groups), [resolutions.divisions(i, width) for i in features]
    depth = max(map(len, divisions)) if all(divisions) else 0
    terms = []
    for k in range(depth):
        # All features are refined together; a feature with fewer divisions keeps its coarsest division at first.
        cell = np.zeros((), np.intp)
        for groups, fine in zip(divisions, finest, strict=True):
            of_group = np.zeros(int(fine.max()) + 1, np.intp)
            of_group[fine] = groups[max(0, len(groups) - depth + k)]
            cell = np.add.outer(cell * (int(of_group.max()) + 1), of_group)
        terms.append(cell.ravel())
    smooth = []
    if width == 2 and all(resolutions.is_ordered[i] for i in features) and min(n_groups) > 1:
        smooth = [np.outer(*(resolutions.scores(i) for i in features)).ravel()]
    return column, terms, smooth


def _block_diagonal(
    built: Sequence[tuple[TermColumn, list[IntArray], list[FloatArray]]],
) -> tuple[Any, AnyArray]:
    """Return the expansion (n_cells, n_terms) of all columns, and the kind of each term."""
    from scipy.sparse import csr_array

    rows: list[IntArray] = []
    places: list[IntArray] = []
    entries: list[FloatArray] = []
    kinds: list[IntArray] = []
    n_cells = n_terms = 0
    for column, groups_of_terms, smooth in built:
        n_features = len(column.features)
        cells = n_cells + np.arange(column.n_cells)
        for groups in groups_of_terms:
            n_groups = int(groups.max()) + 1
            rows.append(cells)
            places.append(n_terms + groups)
            entries.append(np.ones(len(cells)))
            kinds.append(np.full(n_groups, GROUPS[n_features - 1]))
            n_terms += n_groups
        for function in smooth:
            rows.append(cells)
            places.append(np.full(len(cells), n_terms))
            entries.append(function)
            kinds.append(np.full(1, EDGE_SMOOTH if n_features > 1 else OWN_SMOOTH))
            n_terms += 1
        n_cells += column.n_cells + 1
    if not kinds:  # every feature has a single value
        return csr_array((n_cells, 0)), np.empty(0, np.intp)
    at = np.concatenate(rows), np.concatenate(places)
    return csr_array((np.concatenate(entries), at), shape=(n_cells, n_terms)), np.concatenate(kinds)
