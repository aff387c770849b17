"""Log probabilities of a forest as nodes of an ONNX graph.

A family of a network has a trie of contexts (:mod:`tanlearn.forest.context_tables`). A row starts in the root context
of each family, and descends to the next level by its value of the next parent. A ``LabelEncoder``, which is a hash
table, maps pairs of a context and such a value to the context of the next level. The size of the constants therefore
grows with the number of contexts that occur, not with the number of combinations of values. A second hash table maps
pairs of a context and a value of the feature to their first entry. All families of a network descend together.

A context has entries for some classes. Each set of classes has a row of positions, -1 for classes without entries.

Shapes: n rows, d features, C classes; codes and contexts (n, d), where -1 is no context.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.exports.onnx_graph import Graph
from tanlearn.forest.context_tables import ContextTables
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_network import Discretization, ForestNetwork

__all__ = ["add_forest", "merged_codes"]


def add_forest(graph: Graph, forest: Forest, codes: str) -> str:
    """Append a forest, and return the unnormalized log probabilities, (n, C)."""
    n_classes = len(forest.log_prior)
    prior = graph.constant(np.asarray(forest.log_prior, np.float64)[np.newaxis])
    scores = [
        list(_network_scores(graph, member, weights, n_classes, codes))
        for member, weights in zip(forest.members, forest.weights, strict=True)
    ]
    groups = scores if forest.is_average else [[one for own in scores for one in own]]
    p = [graph.add("Softmax", [graph.add("Sum", [prior, *own])], axis=1) for own in groups]
    share = graph.constant(np.array((1.0 - forest.label_noise) / len(groups)))
    noise = graph.constant(np.array(forest.label_noise / n_classes))
    mixed = graph.add("Add", [graph.add("Mul", [graph.add("Sum", p), share]), noise])
    return graph.add("Add", [graph.add("Log", [mixed]), graph.constant(np.asarray(forest.shift, np.float64))])


def merged_codes(graph: Graph, cuts: Discretization, codes: str) -> str:
    """Append the merged codes (n, d) of all features. A missing value has the number of merged values as its code."""
    merged = [
        np.minimum(own.astype(np.int64), n)
        for own, n in zip(np.split(cuts.merged, cuts.start[1:-1]), cuts.n_states.tolist(), strict=True)
    ]
    place = graph.add("Add", [codes, graph.constant(cuts.start[np.newaxis, :-1].astype(np.int64))])
    return graph.add("Gather", [graph.constant(np.concatenate(merged)), place])


class _Level(NamedTuple):
    """Contexts of one level of all families."""

    contexts: IntArray
    above: IntArray  # the context above each


def _levels(tables: ContextTables) -> Iterator[_Level]:
    """Yield the contexts level by level, starting from the roots."""
    trie, root = tables.trie, tables.root.astype(np.int64)
    children = np.asarray(trie.children, np.int64)
    stop = np.append(root[1:], len(trie.branch))
    contexts, family = root, np.arange(len(root))
    above = np.full(len(root), -1)
    while len(contexts):
        yield _Level(contexts, above)
        first = children[contexts]
        sizes = np.maximum(np.minimum(children[contexts + 1], stop[family]) - first, 0)
        above, family = np.repeat(contexts, sizes), np.repeat(family, sizes)
        contexts = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(above))


def _network_scores(
    graph: Graph, network: ForestNetwork, weights: AnyArray, n_classes: int, codes: str
) -> Iterator[str]:
    """Yield the weighted gains of each level of a network, summed over families, (n, C)."""
    tables = network.tables
    trie, n_values = tables.trie, int(tables.n_states.max()) + 1  # per context, with a missing value
    values = merged_codes(graph, network.cuts, codes)
    gains = _Gains(graph, tables, n_classes)
    is_observed = graph.add("Less", [values, graph.constant(tables.n_states[np.newaxis].astype(np.int64))])
    none = graph.constant(np.array(-1))
    node = ""
    for level, own in enumerate(_levels(tables)):
        if level == 0:
            roots = graph.constant(own.contexts[np.newaxis])
            node = graph.add("Where", [is_observed, roots, none])
        else:
            parents = np.maximum(tables.parents[:, level - 1], 0).astype(np.int64)
            of_parents = graph.add("Gather", [values, graph.constant(parents)], axis=1)
            keys = own.above * n_values + np.asarray(trie.branch, np.int64)[own.contexts]
            node = graph.lookup(keys, own.contexts, _keys(graph, node, n_values, of_parents))
        of_values = _keys(graph, node, n_values, values)
        yield gains.of_level(own.contexts, n_values, node, of_values, np.asarray(weights[:, level], np.float64))


def _keys(graph: Graph, node: str, n_values: int, values: str) -> str:
    """Append the keys of contexts and values. Keys without a context are negative."""
    return graph.add("Add", [graph.add("Mul", [node, graph.constant(np.array(n_values))]), values])


class _Gains:
    """Gains of the contexts of one network."""

    def __init__(self, graph: Graph, tables: ContextTables, n_classes: int) -> None:
        trie = tables.trie
        self._graph, self._trie = graph, trie
        n_contexts, n_gains = len(trie.branch), len(tables.gain)
        start = np.asarray(trie.class_start, np.int64)
        sizes = np.diff(start)
        positions = np.full((n_contexts + 1, n_classes), -1, np.int16)  # the last context has no classes
        rows = np.repeat(np.arange(n_contexts), sizes)
        positions[rows, trie.classes] = np.arange(len(rows)) - start[rows]
        kinds, kind = np.unique(positions, axis=0, return_inverse=True)
        flat = np.concatenate([tables.gain, tables.unseen, np.zeros(1, np.float32)])
        self._gains = graph.constant(flat.astype(np.float32))
        self._positions = graph.constant(kinds.astype(np.int64))
        self._kind = graph.constant(kind.ravel().astype(np.int64))
        self._of_unseen = graph.constant(np.append(n_gains + start[:-1], 0))
        self._nothing = graph.constant(np.array(len(flat) - 1))
        self._zero, self._last = graph.constant(np.array(0)), graph.constant(np.array([2]))

    def of_level(self, contexts: IntArray, n_values: int, node: str, keys: str, weights: AnyArray) -> str:
        """Append the weighted gains of the contexts of a level, (n, C)."""
        graph, trie = self._graph, self._trie
        first = np.asarray(trie.value_start, np.int64)
        sizes = first[contexts + 1] - first[contexts]
        of_context = np.repeat(contexts, sizes)
        pairs = np.repeat(first[contexts] - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(of_context))
        known = of_context * n_values + np.asarray(trie.values, np.int64)[pairs]
        entry = graph.lookup(known, np.asarray(trie.entry_start, np.int64)[pairs], keys)
        is_unseen = graph.add("Less", [entry, self._zero])
        start = graph.add("Where", [is_unseen, graph.add("Gather", [self._of_unseen, node]), entry])
        position = graph.add("Gather", [self._positions, graph.add("Gather", [self._kind, node])])
        place = graph.add("Add", [graph.add("Unsqueeze", [start, self._last]), position])
        is_absent = graph.add("Less", [position, self._zero])
        gain = graph.add("Gather", [self._gains, graph.add("Where", [is_absent, self._nothing, place])])
        own = graph.add("Cast", [gain], to=graph.number)
        weighted = graph.add("Mul", [own, graph.constant(weights[np.newaxis, :, np.newaxis])])
        return graph.add("ReduceSum", [weighted, graph.constant(np.array([1]))], keepdims=0)
