"""Scores of boosted terms as nodes of an ONNX graph.

The splits of a term on one feature divide its values into groups. Missing values are an additional group. A term is a
table over the groups of its features, with additional entries for missing values, which are means. The graph looks up
the groups of a row, adds their strides to the index of an entry, and looks up the entry. Terms are added in blocks,
which limits the memory of a batch.

Shapes: n rows, C classes, T terms of a block with up to W features; codes (n, n_features).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.exports.onnx_graph import Graph
from tanlearn.models.boosted_terms import BoostedTerms, Term

__all__ = ["add_terms"]

#: Number of terms per block.
_BLOCK = 128


def add_terms(graph: Graph, terms: BoostedTerms, codes: str) -> str:
    """Append boosted terms. Return their scores (n, C)."""
    groups = _AllGroups(terms.n_states)
    own = [_table_of(term, groups) for term in terms.terms()]
    own = own or [_Table([], [], [], np.zeros((1, len(terms.log_prior))))]  # scores of all rows, from the prior alone
    of_values = graph.constant(groups.of_values())
    scores = [graph.constant(np.asarray(terms.log_prior, np.float64)[np.newaxis])]
    blocks = [own[first : first + _BLOCK] for first in range(0, len(own), _BLOCK)]
    scores += [_sum_of_block(graph, block, of_values, codes) for block in blocks]
    return graph.add("Sum", scores)


class _Groups(NamedTuple):
    """Groups of the values of a feature by the sides of its splits in a term, with a last group for missing values."""

    start: int  # first of the entries of the feature in the list of all groups
    sides: IntArray  # (n_groups,) sides of the splits, as bits of the number of a cell; 0 for the last
    known: int  # bits of the splits


class _Table(NamedTuple):
    """Term as a table over groups."""

    features: list[int]
    starts: list[int]  # of the groups of each feature
    strides: list[int]  # of the groups of each feature, in the rows of ``values``
    values: FloatArray  # (product of the numbers of groups, n_classes)


class _AllGroups:
    """Groups of all values and of missing values, for all splits. Equal splits of several terms are stored once."""

    def __init__(self, n_states: IntArray) -> None:
        self._lists = [np.zeros(int(n_states.max()) + 1, np.int64)]  # for absent features of terms with fewer
        self._size = len(self._lists[0])
        self._starts: dict[tuple[int, bytes], int] = {}

    def of_splits(self, term: Term, feature: int) -> _Groups:
        """Return the groups of a feature by the splits of a term."""
        splits = np.flatnonzero(term.features == feature).tolist()
        cell = sum(term.sides[s].astype(np.int64) << s for s in splits)
        sides, group = np.unique(cell, return_inverse=True)
        own = np.append(group.ravel(), len(sides)).astype(np.int64)
        key = feature, own.tobytes()
        if key not in self._starts:
            self._starts[key] = self._size
            self._lists.append(own)
            self._size += len(own)
        return _Groups(self._starts[key], np.append(sides, 0), sum(1 << s for s in splits))

    def of_values(self) -> IntArray:
        """Return the list of all groups."""
        return np.concatenate(self._lists)


def _table_of(term: Term, groups: _AllGroups) -> _Table:
    """Return a term as a table over groups of values and missing values."""
    features = list(dict.fromkeys(term.features.tolist()))
    own = [groups.of_splits(term, i) for i in features]
    sizes = [len(one.sides) for one in own]
    cell = known = np.zeros(1, np.int64)
    for one in own:
        is_known = np.append(np.ones(len(one.sides) - 1, bool), False)
        cell = (cell[:, np.newaxis] + one.sides).ravel()
        known = (known[:, np.newaxis] + np.where(is_known, one.known, 0)).ravel()
    strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    return _Table(features, [one.start for one in own], strides, _means(term, cell, known))


def _means(term: Term, cell: IntArray, known: IntArray) -> FloatArray:
    """Return the mean value of the cells that agree with the known bits of a cell, with their weights, (any, C)."""
    n_cells = len(term.weights)
    values = np.asarray(term.values, np.float64)[cell]
    is_incomplete = np.flatnonzero(known != n_cells - 1)
    agrees = ((np.arange(n_cells) ^ cell[is_incomplete, np.newaxis]) & known[is_incomplete, np.newaxis]) == 0
    weights: AnyArray = np.where(agrees, term.weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    values[is_incomplete] = (weights[:, :, np.newaxis] * term.values).sum(axis=1)
    return values


def _sum_of_block(graph: Graph, tables: Sequence[_Table], of_values: str, codes: str) -> str:
    """Append the sum (n, C) of the given terms."""
    width = max(1, *(len(own.features) for own in tables))
    features, starts, strides = np.zeros((3, len(tables), width), np.int64)
    for t, own in enumerate(tables):
        n = len(own.features)
        features[t, :n], starts[t, :n], strides[t, :n] = own.features, own.starts, own.strides
    sizes = [len(own.values) for own in tables]
    first = np.cumsum(sizes) - sizes
    code = graph.add("Gather", [codes, graph.constant(features)], axis=1)  # (n, T, W)
    place = graph.add("Add", [code, graph.constant(starts[np.newaxis])])
    group = graph.add("Gather", [of_values, place])
    offsets = graph.add("Mul", [group, graph.constant(strides[np.newaxis])])
    entry = graph.add("ReduceSum", [offsets, graph.constant(np.array([2]))], keepdims=0)
    row = graph.add("Add", [entry, graph.constant(first[np.newaxis].astype(np.int64))])
    values = graph.constant(np.concatenate([own.values for own in tables]))
    return graph.add("ReduceSum", [graph.add("Gather", [values, row]), graph.constant(np.array([1]))], keepdims=0)
