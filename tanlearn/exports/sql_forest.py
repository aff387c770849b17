"""SQL expressions for the scores of a forest.

For each family of each network, a forest adds the weighted gains of the contexts of a row
(:mod:`tanlearn.forest.context_tables`). In SQL, these are nested CASE expressions over the values of the parents.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.exports.dialects import Dialect
from tanlearn.exports.raw_columns import MISSING
from tanlearn.exports.sql_scores import Step
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_network import Discretization, ForestNetwork

__all__ = ["ForestScores", "merged_codes"]


class ForestScores:
    """Log probabilities of the classes by a forest, as SQL expressions of the codes ``x0``, ``x1``, ..."""

    has_log_joint = False
    has_zeros = False

    def __init__(self, forest: Forest, dialect: Dialect) -> None:
        self._forest, self._dialect = forest, dialect
        self.n_classes = len(forest.log_prior)
        self._groups = [[k] for k in range(len(forest.members))]
        if not forest.is_average:
            self._groups = [list(range(len(forest.members)))]

    def steps(self) -> Iterator[Step]:
        """Yield the columns of the queries: values of each network, scores and probabilities of each group."""
        dialect, groups, classes = self._dialect, range(len(self._groups)), range(self.n_classes)
        values = {}
        for k, member in enumerate(self._forest.members):
            values.update(merged_codes(member.cuts, f"v{k}_"))
        yield values, []
        yield {f"g{g}_{y}": self._score(g, y) for g in groups for y in classes}, list(values)
        yield {f"h{g}": dialect.maximum([f"g{g}_{y}" for y in classes]) for g in groups}, []
        yield {f"q{g}_{y}": dialect.exponential(f"g{g}_{y} - h{g}") for g in groups for y in classes}, []
        yield {f"t{g}": dialect.total([f"q{g}_{y}" for y in classes]) for g in groups}, []

    def log_joint(self, y: int) -> str:
        """Return the log probability of a class."""
        forest, number = self._forest, self._dialect.number
        total = self._dialect.total([f"q{g}_{y} / t{g}" for g in range(len(self._groups))])
        share = number((1.0 - forest.label_noise) / len(self._groups))
        noise = number(forest.label_noise / self.n_classes)
        return f"ln(({total}) * {share} + {noise}) + {number(float(forest.shift[y]))}"

    def _score(self, group: int, y: int) -> str:
        """Return the score of a class by a group of networks."""
        parts = [self._dialect.number(float(self._forest.log_prior[y]))]
        for k in self._groups[group]:
            family = _Families(self._forest.members[k], self._forest.weights[k], f"v{k}_", self._dialect)
            parts += [family.score(f, y) for f in range(len(family.parents))]
        return self._dialect.total(parts)


def merged_codes(cuts: Discretization, prefix: str) -> dict[str, str]:
    """Return the expressions of merged codes, by names with a prefix, from the codes ``x0``, ``x1``, ..."""
    found = {}
    for i, n_states in enumerate(cuts.n_states.tolist()):
        merged = cuts.merged[cuts.start[i] : cuts.start[i + 1]].astype(np.intp)
        values = np.where(merged < n_states, merged, MISSING)
        last = np.flatnonzero(np.append(np.diff(values[:-1]) != 0, True))  # of each run of equal values
        runs = "".join(f" WHEN x{i} <= {code} THEN {values[code]}" for code in last.tolist())
        found[f"{prefix}{i}"] = f"CASE WHEN x{i} = {MISSING} THEN {values[-1]}{runs} END"
    return found


class _Families:
    """Weighted gains of the families of one network."""

    def __init__(self, network: ForestNetwork, weights: AnyArray, prefix: str, dialect: Dialect) -> None:
        tables = network.tables
        self._trie, self._gain, self._unseen = tables.trie, tables.gain, tables.unseen
        self._root, self._weights, self._prefix, self._dialect = tables.root, weights, prefix, dialect
        self.parents = [[j for j in row if j >= 0] for row in tables.parents.tolist()]

    def score(self, f: int, y: int) -> str:
        """Return the contribution of a family to the score of a class. A missing child adds nothing."""
        nothing, name = self._dialect.number(0.0), f"{self._prefix}{f}"
        gains = self._context(f, int(self._root[f]), 0, y) or nothing
        return f"CASE WHEN {name} IS NULL THEN NULL WHEN {name} = {MISSING} THEN {nothing} ELSE {gains} END"

    def _context(self, f: int, node: int, level: int, y: int) -> str | None:
        """Return the gains of a context and of the contexts below it, or None if they have no gains for the class."""
        trie = self._trie
        parts = []
        first, last = int(trie.class_start[node]), int(trie.class_start[node + 1])
        position = first + int(np.searchsorted(trie.classes[first:last], y))
        if position < last and trie.classes[position] == y:
            parts.append(self._gains(f, node, position - first, float(self._weights[f, level])))
        if level < len(self.parents[f]):
            below = []
            stop = int(self._root[f + 1]) if f + 1 < len(self._root) else len(trie.branch)
            for child in range(int(trie.children[node]), min(int(trie.children[node + 1]), stop)):
                own = self._context(f, child, level + 1, y)
                if own is not None:
                    below.append(f" WHEN {trie.branch[child]} THEN {own}")
            if below:
                parent = f"{self._prefix}{self.parents[f][level]}"
                parts.append(f"CASE {parent}{''.join(below)} ELSE {self._dialect.number(0.0)} END")
        return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0] if parts else None

    def _gains(self, f: int, node: int, position: int, weight: float) -> str:
        """Return the gains of one context for a class, given by its position among the classes of the context."""
        trie, number = self._trie, self._dialect.number
        values = range(int(trie.value_start[node]), int(trie.value_start[node + 1]))
        gains: FloatArray = (
            self._gain[[int(trie.entry_start[v]) + position for v in values]].astype(np.float64) * weight
        )
        branches = "".join(
            f" WHEN {trie.values[v]} THEN {number(own)}" for v, own in zip(values, gains.tolist(), strict=True)
        )
        unseen = number(float(self._unseen[int(trie.class_start[node]) + position]) * weight)
        return f"CASE {self._prefix}{f}{branches} ELSE {unseen} END"
