"""SQL expressions for the log joint of one network, with missing values marginalized in trees.

The log joint of a class is its log prior plus one contribution per feature. If feature i has no parent, or its parent p
is observed, its contribution is

- ``log P(x_i | x_p, y)`` if the feature is observed;
- ``log sum_v P(v | x_p, y) b_i(v)`` if it is missing, where ``log b_i(v)`` is the sum of the contributions of its
  children for the value v of their parent. Without children, this is 0 in normalized CPTs.

If the parent is missing, the contribution is part of the contribution of the parent. For each height of the tree, from
the leaves to the roots, a query therefore computes ``log b_i(v)`` of the features with children. The numbers b_i are
divided by the largest of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.exports.dialects import Dialect
from tanlearn.exports.raw_columns import MISSING, RawColumn
from tanlearn.models.bayes_net import BayesNet

__all__ = ["NetworkScores", "Step"]

#: Columns that a query computes (expressions by name), and names of earlier columns that later queries do not need.
Step: TypeAlias = tuple[dict[str, str], list[str]]
#: Codes of each entry along an axis of a lookup, and the expression for the code.
_Axis: TypeAlias = tuple[str, list[list[int]]]
#: Natural logarithm of the largest ratio of probabilities that double precision can represent, with a margin.
_MOST_NATS = 690.0


class NetworkScores:
    """Contributions of the features of a network to the log joint, as SQL expressions of the codes ``x0``, ``x1``, ...

    If ``is_exact``, missing values are marginalized, which requires a tree. Otherwise, a contribution is NULL if a
    parent is missing.
    """

    has_log_joint = True

    def __init__(
        self, network: BayesNet, columns: Sequence[RawColumn], dialect: Dialect, *, is_exact: bool, codes: str = "x"
    ) -> None:
        self._code = codes  # the name of the code of a feature, before its number
        self._tables, self._structure, self._dialect = network.tables, network.structure, dialect
        self._is_exact = is_exact
        self._columns = columns
        n_features = len(columns)
        parents = network.structure.parents
        self._parents = [[j for j in row if j >= 0] for row in parents.tolist()]
        self._children: list[list[int]] = [[] for _ in range(n_features)]
        for i, own in enumerate(self._parents):
            for j in own:
                self._children[j].append(i)
        self.n_classes = network.tables.layout.n_classes
        self._n_states = network.tables.layout.n_states.tolist()
        self._marginals: dict[int, FloatArray] = {}

    def log_joint(self, y: int) -> str:
        """Return the log joint of a class."""
        prior = self._dialect.number(float(self._tables.log_prior[y]))
        return self._dialect.total([prior, *(self._contribution(i, y) for i in range(len(self._columns)))])

    def steps(self) -> Iterator[Step]:
        """Yield the columns of the queries that marginalize features with children, from the leaves to the roots."""
        if not self._is_exact:
            return
        by_height: dict[int, list[int]] = {}
        for i in self._structure.order[::-1].tolist():
            if self._is_summed(i):
                self._check_range(i)
                by_height.setdefault(self._height(i), []).append(i)
        for height in sorted(by_height):
            own = by_height[height]
            yield self._beliefs(own), []
            yield self._largest(own), []
            yield self._ratios(own), [f"b{i}_{v}_{y}" for i in own for v, y in self._values_and_classes(i)]

    def _is_summed(self, i: int) -> bool:
        """Return whether a feature has children and can be missing."""
        return bool(self._children[i]) and self._columns[i].can_be_missing

    def _height(self, i: int) -> int:
        """Return the longest path from a feature down to a feature without children."""
        return 1 + max(map(self._height, self._children[i])) if self._children[i] else 0

    def _values_and_classes(self, i: int) -> list[tuple[int, int]]:
        """Return all pairs of a value of a feature and a class."""
        return [(v, y) for v in range(self._n_states[i]) for y in range(self.n_classes)]

    def _if_missing(self, i: int, expression: str) -> str:
        """Return the expression for rows in which a feature is missing, and NULL otherwise."""
        return f"CASE WHEN {self._code}{i} = {MISSING} THEN {expression} END"

    def _beliefs(self, features: list[int]) -> dict[str, str]:
        """Return the log of b_i(v): the sum of the contributions of the children for each value of their parent."""
        found = {}
        for i in features:
            for v, y in self._values_and_classes(i):
                parts = [self._contribution_given(c, v, y) for c in self._children[i]]
                found[f"b{i}_{v}_{y}"] = self._if_missing(i, self._dialect.total(parts))
        return found

    def _largest(self, features: list[int]) -> dict[str, str]:
        """Return the largest log b_i(v), or 0 if it is -inf."""
        found = {}
        for i in features:
            for y in range(self.n_classes):
                most = self._dialect.maximum([f"b{i}_{v}_{y}" for v in range(self._n_states[i])])
                if self.has_zeros:
                    nothing = self._dialect.number(-np.inf)
                    most = f"CASE WHEN {most} = {nothing} THEN {self._dialect.number(0.0)} ELSE {most} END"
                found[f"m{i}_{y}"] = self._if_missing(i, most)
        return found

    def _ratios(self, features: list[int]) -> dict[str, str]:
        """Return all b_i(v), divided by the largest of them."""
        return {
            f"e{i}_{v}_{y}": self._if_missing(i, f"exp(b{i}_{v}_{y} - m{i}_{y})")
            for i in features
            for v, y in self._values_and_classes(i)
        }

    def _contribution(self, i: int, y: int) -> str:
        """Return the contribution of a feature to the log joint of a class."""
        observed = self._observed(i, y)
        parents, branches = self._parents[i], ""
        if any(self._columns[j].can_be_missing for j in parents):
            nothing = self._dialect.number(0.0) if self._is_exact else "NULL"
            branches += f" WHEN {MISSING} IN ({', '.join(f'{self._code}{j}' for j in parents)}) THEN {nothing}"
        if self._columns[i].can_be_missing:
            branches += f" WHEN {self._code}{i} = {MISSING} THEN {self._marginal(i, y)}"
        return f"CASE{branches} ELSE {observed} END" if branches else observed

    def _contribution_given(self, i: int, value: int, y: int) -> str:
        """Return the contribution of a feature given the value of its only parent."""
        observed = self._observed(i, y, value)
        if not self._columns[i].can_be_missing:
            return observed
        return f"CASE WHEN {self._code}{i} = {MISSING} THEN {self._marginal_given(i, y, value)} ELSE {observed} END"

    def _observed(self, i: int, y: int, value: int | None = None) -> str:
        """Return log P(x_i | parents, y), where ``value`` is the value of a single parent (None if observed)."""
        parts = []
        for features, groups, cells in self._tables.addends(i):
            table, axes = cells[..., y], []
            for axis, (j, group) in enumerate(zip(features, groups, strict=True)):
                if axis and value is not None:
                    table = table[..., group[value]]
                else:
                    codes = [np.flatnonzero(group == g).tolist() for g in range(table.shape[axis])]
                    axes.append((f"{self._code}{j}", codes))
            parts.append(self._lookup(axes, table))
        return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]

    def _marginal(self, i: int, y: int) -> str:
        """Return the contribution of a missing feature whose parents are observed."""
        parents = self._parents[i]
        if not self._structure.is_acyclic or (self._children[i] and not self._is_exact):
            return "NULL"
        if not self._children[i]:
            if self._tables.is_normalized:
                return self._dialect.number(0.0)
            axes = [(f"{self._code}{j}", [[k] for k in range(self._n_states[j])]) for j in parents]
            return self._lookup(axes, self._log_sums(i)[..., y])
        if not parents:
            return self._marginal_given(i, y, None)
        values = range(self._n_states[parents[0]])
        branches = "".join(f" WHEN {v} THEN {self._marginal_given(i, y, v)}" for v in values)
        return f"CASE {self._code}{parents[0]}{branches} END"

    def _marginal_given(self, i: int, y: int, value: int | None) -> str:
        """Return the contribution of a missing feature given the value of its only parent (None without a parent)."""
        if not self._children[i]:
            sums = np.zeros(self.n_classes) if self._tables.is_normalized else self._log_sums(i)
            return self._dialect.number(float(sums[y] if sums.ndim == 1 else sums[value, y]))
        log_p = self._tables[i][..., y] if value is None else self._tables[i][:, value, y]
        products = [f"{self._dialect.number(p)} * e{i}_{v}_{y}" for v, p in enumerate(np.exp(log_p).tolist())]
        total, most = self._dialect.total(products), f"m{i}_{y}"
        if not self.has_zeros:
            return f"(ln({total}) + {most})"
        nothing = f"CASE WHEN {most} IS NULL THEN NULL ELSE {self._dialect.number(-np.inf)} END"
        return f"coalesce(ln(nullif({total}, {self._dialect.number(0.0)})) + {most}, {nothing})"

    def _log_sums(self, i: int) -> FloatArray:
        """Return the log of the sum of the probabilities of a feature. Shape: (values of each parent, n_classes)."""
        if i not in self._marginals:
            self._marginals[i] = np.logaddexp.reduce(np.asarray(self._tables[i], np.float64), axis=0)
        return self._marginals[i]

    @cached_property
    def has_zeros(self) -> bool:
        """True if probabilities are 0."""
        return bool(self._tables.is_dense and np.isneginf(self._tables.cells).any())

    def _check_range(self, i: int) -> None:
        """Raise ValueError if the product of probabilities of a feature and of its children can underflow."""
        own = np.asarray(self._tables[i], np.float64)
        nats = self._spread(i) - float(own.min(where=np.isfinite(own), initial=0.0))
        if nats > _MOST_NATS:
            raise ValueError(
                f"SQL can marginalize column {self._columns[i].name!r} only if probabilities of its children differ "
                f"by at most {_MOST_NATS:.0f} nats in double precision, but they differ by up to {nats:.0f}. Pass "
                f"missing='null'."
            )

    def _spread(self, i: int) -> float:
        """Return an upper bound of the differences between finite log b_i(v) of a feature."""
        nats = 0.0
        for c in self._children[i]:
            table = np.asarray(self._tables[c], np.float64)
            if self.has_zeros:  # values of the parent may exclude different values of the child
                nats += _range(table) + np.log(len(table)) + self._spread(c)
            else:
                nats += float((table.max(axis=1) - table.min(axis=1)).max())
        return nats

    def _lookup(self, axes: list[_Axis], table: AnyArray) -> str:
        """Return the entry of a table for the codes of its axes, or NULL for codes that are not on an axis."""
        if not axes:
            return self._dialect.number(float(table))
        expression, groups = axes[0]
        entries = [self._lookup(axes[1:], table[k]) for k in range(len(groups))]
        if all(len(codes) == 1 for codes in groups):
            branches = "".join(f" WHEN {codes[0]} THEN {one}" for codes, one in zip(groups, entries, strict=True))
            return f"CASE {expression}{branches} END"
        listed = [", ".join(map(str, codes)) for codes in groups]
        pairs = zip(listed, entries, strict=True)
        branches = "".join(f" WHEN {expression} IN ({codes}) THEN {one}" for codes, one in pairs)
        return f"CASE{branches} END"


def _range(table: Any) -> float:
    """Return the difference between the largest and the smallest finite entry."""
    finite = table[np.isfinite(table)]
    return float(finite.max() - finite.min()) if finite.size else 0.0
