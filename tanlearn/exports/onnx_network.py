"""Log joint of a network as nodes of an ONNX graph, with missing values marginalized by variable elimination.

A factor is a table of log probabilities over values of some features. Without missing values, the log joint is a sum of
entries of factors, which ``Gather`` looks up. With missing values, features that can be missing and have children are
marginalized one after another in the product of the factors:

    message(v) = log sum_x exp(evidence(x) + sum of the factors that depend on x, for x and v)

``evidence(x)`` is 0 if the feature is missing or has the value x, and -inf otherwise. The graph has one order of
elimination for all rows, so the cost of a row with missing values does not depend on their number. A feature without
children adds 0 when it is missing, if the CPTs are normalized. If they are not, it is eliminated like other features.

Shapes: n rows, m of them with missing values, C classes; codes (n,); factor (n or 1, values of each feature, C).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.exports.onnx_graph import Graph
from tanlearn.exports.raw_columns import RawColumn
from tanlearn.models.bayes_net import BayesNet

__all__ = ["NetworkNodes"]

#: Maximum number of bytes of the largest sum of factors per row: 16 GiB for 1,000 rows with missing values.
_MOST_BYTES = 2**24
_BYTES_PER_NUMBER = 8

#: Features of a factor, ascending, and the name of its array.
_Factor: TypeAlias = tuple[tuple[int, ...], str]


class _Elimination(NamedTuple):
    """Sum over the values of a feature."""

    feature: int
    scope: tuple[int, ...]  # the feature and those that the sum depends on, ascending


class NetworkNodes:
    """Nodes that compute the log joint of a network from codes. The number of values represents a missing value."""

    def __init__(self, graph: Graph, network: BayesNet, columns: Sequence[RawColumn]) -> None:
        self._graph, self._tables = graph, network.tables
        self._n_states = network.tables.layout.n_states.tolist()
        self._n_classes = network.tables.layout.n_classes
        parents = network.structure.parents
        is_parent = np.isin(np.arange(len(columns)), parents)
        self._hidden = [
            i
            for i, column in enumerate(columns)
            if column.can_be_missing and (is_parent[i] or not network.tables.is_normalized)
        ]
        self._plan = self._plan_elimination()
        self._check_memory(columns)

    def log_joint(self, codes: Sequence[str]) -> str:
        """Append the nodes. Return the log joint (n, C)."""
        graph = self._graph
        scores = self._total([self._prior(), *(name for _, name in self._factors(codes, []))])
        if not self._hidden:
            return scores
        missing = graph.constant(np.array([[self._n_states[i] for i in self._hidden]]))
        is_missing = graph.add("Equal", [graph.columns([codes[i] for i in self._hidden]), missing])
        number = graph.add("Cast", [is_missing], to=graph.integer)
        is_incomplete = graph.add("ReduceMax", [number], axes=[1], keepdims=0)
        rows = graph.add("Transpose", [graph.add("NonZero", [is_incomplete])], perm=[1, 0])  # (m, 1)
        flat = graph.add("Squeeze", [rows, graph.constant(np.array([1]))])
        own = [graph.add("Gather", [code, flat]) for code in codes]
        return graph.add("ScatterND", [scores, rows, self._eliminate(own)])

    def _prior(self) -> str:
        """Return the log prior of the classes, (1, C)."""
        return self._graph.constant(np.asarray(self._tables.log_prior, np.float64)[np.newaxis])

    def _total(self, parts: list[str]) -> str:
        """Return the sum of arrays."""
        return self._graph.add("Sum", parts)

    def _factors(self, codes: Sequence[str], hidden: Sequence[int]) -> Iterator[_Factor]:
        """Yield the factors of all families, over the features that are marginalized."""
        for i in range(len(codes)):
            for features, groups, cells in self._tables.addends(i):
                yield self._factor(features, groups, np.asarray(cells, np.float64), codes, set(hidden))

    def _factor(
        self,
        features: Sequence[int],
        groups: Sequence[AnyArray],
        table: AnyArray,
        codes: Sequence[str],
        hidden: set[int],
    ) -> _Factor:
        """Return an addend of a CPT, looked up for the features that are not marginalized."""
        for axis, (i, group) in enumerate(zip(features, groups, strict=True)):
            if i in hidden:
                table = np.take(table, group, axis=axis)
        kept = sorted((axis for axis, i in enumerate(features) if i in hidden), key=lambda axis: features[axis])
        given = [axis for axis, i in enumerate(features) if i not in hidden]
        scope = tuple(features[axis] for axis in kept)
        table = table.transpose([*given, *kept, len(features)])
        if not given:
            return scope, self._graph.constant(table[np.newaxis])
        if given[0] == 0:  # a missing value of the child adds 0
            table = np.concatenate([table, np.zeros((1, *table.shape[1:]))])
        sizes = table.shape[: len(given)]
        strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
        index = ""
        for axis, size, stride in zip(given, sizes, strides, strict=True):
            # The value of a missing parent does not matter: its rows are replaced by the elimination.
            offsets = np.append(groups[axis], size - 1) * stride
            own = self._graph.add("Gather", [self._graph.constant(offsets.astype(np.int64)), codes[features[axis]]])
            index = self._graph.add("Add", [index, own]) if index else own
        rows = table.reshape(-1, *table.shape[len(given) :])
        return scope, self._graph.add("Gather", [self._graph.constant(rows), index])

    def _plan_elimination(self) -> list[_Elimination]:
        """Return an order of elimination, in which the next feature always has the fewest combinations of values."""
        hidden = set(self._hidden)
        neighbors: dict[int, set[int]] = {i: {i} for i in self._hidden}
        for i in range(len(self._n_states)):
            for features, _, _ in self._tables.addends(i):
                inside = hidden.intersection(features)
                for j in inside:
                    neighbors[j] |= inside
        size = {i: self._size(own) for i, own in neighbors.items()}
        plan = []
        while neighbors:
            feature = min(size, key=lambda i: (size[i], i))
            scope = neighbors.pop(feature)
            del size[feature]
            plan.append(_Elimination(feature, tuple(sorted(scope))))
            for i in scope - {feature}:
                neighbors[i] = (neighbors[i] | scope) - {feature}
                size[i] = self._size(neighbors[i])
        return plan

    def _size(self, features: Sequence[int] | set[int] | tuple[int, ...]) -> int:
        """Return the number of combinations of the values of features."""
        return math.prod(self._n_states[i] for i in features)

    def _check_memory(self, columns: Sequence[RawColumn]) -> None:
        """Raise ValueError if the elimination takes too many bytes per row."""
        scopes = [step.scope for step in self._plan]
        largest = max(scopes, key=self._size, default=())
        n_bytes = self._size(largest) * self._n_classes * _BYTES_PER_NUMBER
        if n_bytes <= _MOST_BYTES:
            return
        names = ", ".join(repr(columns[i].name) for i in largest)
        raise ValueError(
            f"marginalization of missing values in ONNX may take at most {_MOST_BYTES:,} bytes per row, but would "
            f"take {n_bytes:,}, because these columns depend on each other: {names}. Fit with fewer parents per "
            f"column or fewer values, or use to_javascript, which marginalizes only the missing values of a row."
        )

    def _eliminate(self, codes: Sequence[str]) -> str:
        """Append the elimination of all features that can be missing. Return the log joint (m, C)."""
        graph = self._graph
        by_feature: dict[int, list[_Factor]] = {i: [] for i in self._hidden}
        roots = [self._prior()]

        def keep(factor: _Factor) -> None:
            """Keep a factor until the first of its features is eliminated."""
            if factor[0]:
                by_feature[min(factor[0], key=position.__getitem__)].append(factor)
            else:
                roots.append(factor[1])

        position = {step.feature: k for k, step in enumerate(self._plan)}
        for factor in self._factors(codes, self._hidden):
            keep(factor)
        for feature, scope in self._plan:
            own = by_feature.pop(feature)
            rest = tuple(i for i in scope if i != feature)
            parts = [self._evidence(feature, scope, codes[feature]), *(self._spread(factor, scope) for factor in own)]
            axis = 1 + scope.index(feature)
            keep((rest, graph.add("ReduceLogSumExp", [self._total(parts)], axes=[axis], keepdims=0)))
        return self._total(roots)

    def _evidence(self, feature: int, scope: tuple[int, ...], code: str) -> str:
        """Return the evidence of a feature, with axes of length 1 for the other features and the classes."""
        n = self._n_states[feature]
        table = np.append(np.where(np.eye(n, dtype=bool), 0.0, -np.inf), np.zeros((1, n)), axis=0)
        shape = [n + 1, *(n if i == feature else 1 for i in scope), 1]
        return self._graph.add("Gather", [self._graph.constant(table.reshape(shape)), code])

    def _spread(self, factor: _Factor, scope: tuple[int, ...]) -> str:
        """Return a factor with axes of length 1 for the features of a scope that it does not have."""
        features, name = factor
        axes = [1 + k for k, i in enumerate(scope) if i not in features]
        return self._graph.add("Unsqueeze", [name, self._graph.constant(np.array(axes))]) if axes else name
