"""The learnt distribution over candidate tables of every feature, structures drawn from it, and what tables hold."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels import trees
from tanlearn.network.candidates import CandidateSets
from tanlearn.network.tables import TableLayout

__all__ = ["StructureState"]


class StructureState:
    """Structure logits and numbers of all candidate tables while they are learnt."""

    #: Whether features may have two parents, which are told as tuples then.
    has_pairs: ClassVar[bool] = False

    def __init__(self, data: EncodedData, candidates: CandidateSets, slack: int = 0, dtype: Any = np.float32) -> None:
        self.candidates = candidates  # What every feature may choose from
        self.layout = candidates.layout(data.n_states, data.n_classes)  # Of all candidates' tables
        self.layout.check_memory(data.n_samples)
        # (n_cells + slack,): The class prior, the tables, and zeros behind them
        self.cells: FloatArray = np.zeros(self.layout.n_cells + slack, dtype)
        n_features = candidates.n_features
        self.phi: FloatArray = np.zeros(candidates.n_tables)  # (n_tables,): Structure logits
        # (n_tables,): The first parent of every table, -1 for none
        self.table_parent = np.ascontiguousarray(candidates.parents[:, 0])
        self.selected: IntArray = np.empty(n_features, np.intp)  # (n_features,): The tables last drawn
        nodes = 2 * n_features + 1 if candidates.arborescence else 0
        source, target = np.empty((2, nodes, nodes), np.int32)
        work = np.empty((6, nodes), np.int32)
        # graph, turns: What draws of whole trees, and of acyclic pairs, work in
        self.graph = trees.Graph(weight=np.empty((nodes, nodes)), source=source, target=target, work=work)
        n_turns = n_features if candidates.draws == "acyclic" else 0
        self.turns = np.empty(n_turns), np.empty((n_turns, -(-n_features // 64)), np.uint64)

    @property
    def theta(self) -> FloatArray:
        """The class prior and all tables, shape (n_cells,): a view of ``cells``."""
        return self.cells[: self.layout.n_cells]

    def move_to(self, theta: FloatArray | None, phi: FloatArray) -> None:
        """Take numbers and logits that a training of the same candidates has left.

        Shapes: theta: (n_cells,); phi: (n_tables,).
        """
        theta = self.theta if theta is None else theta
        if theta.shape != self.theta.shape or phi.shape != self.phi.shape:
            raise ValueError(
                f"a training of {len(self.phi)} candidate tables with {len(self.theta)} cells cannot start from one of "
                f"{len(phi)} with {len(theta)}: candidates, columns, categories and classes must be the same."
            )
        self.theta[:], self.phi[:] = theta, phi

    @staticmethod
    def count(layout: TableLayout, data: EncodedData) -> AnyArray:
        """Return how often rows take what tables tell apart; weights are relative to their mean, as in the loss.

        Shapes: result: (n_cells,).
        """
        weights = data.weights
        if data.sample_weight is not None:
            weights = weights / weights[weights > 0].mean()
        return layout.count(data.codes, data.y, weights, data.device)

    def perturb(self, noise: FloatArray) -> FloatArray:
        """Return log softmax(phi) + noise, whose largest entry of every feature is drawn (differentiable TAN, eq. 11).

        Shapes: noise: (n_tables,); result: (n_tables,).
        """
        perturbed = np.empty_like(self.phi)
        trees.perturb(self.phi, noise, self.candidates.group, perturbed)
        return perturbed

    def draw(self, perturbed: FloatArray) -> IntArray:
        """Choose a table for every feature, in the way that the candidates are drawn.

        The best by itself, or the best tree (Chu and Liu; Edmonds 1967); and where pairs of parents could form a cycle,
        feature after feature: see :attr:`~tanlearn.CandidateSets.draws`.

        Shapes: perturbed: (n_tables,); result: (n_features,).
        """
        group = self.candidates.group
        if self.candidates.arborescence:
            trees.draw_arborescence(perturbed, group, self.table_parent, *self.graph, self.selected)
        elif self.candidates.draws == "acyclic":
            trees.draw_acyclic(perturbed, group, self.candidates.parents, *self.turns, self.selected)
        else:
            trees.draw_independent(perturbed, group, self.selected)
        return self.selected

    def probabilities(self) -> list[dict[int, float]]:
        """Return softmax(phi), feature by feature."""
        values = np.exp(self.perturb(np.zeros_like(self.phi))).tolist()
        candidates = self.candidates
        parents: list[Any] = candidates.parents[:, 0].tolist()
        if self.has_pairs:  # also where no candidate has two parents, as of two features
            parents = [tuple(j for j in row if j >= 0) for row in candidates.parents.tolist()]
        edges = candidates.group.tolist()
        return [dict(zip(parents[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(edges)]

    def structure_entropy(self) -> float:
        """Return the mean entropy of the features' candidate distributions."""
        log_p = self.perturb(np.zeros_like(self.phi))
        return float(-(np.exp(log_p) * log_p).sum() / self.candidates.n_features)
