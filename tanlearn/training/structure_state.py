"""Distribution over the candidate CPTs of each feature, random structures drawn from it, and parameters of CPTs."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels import trees
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.table_layout import TableLayout

__all__ = ["StructureState"]

#: Logit of a CPT that is never drawn. Its probability and its gradient are exactly 0, so the logit does not change. It
#: is finite, because in the algorithm that draws trees, differences of infinite weights would be nan.
_NEVER = -1e6


class StructureState:
    """Structure logits and parameters of all candidate CPTs during training.

    ``slack`` is the number of zeros after the cells, which kernels may read. Raises TableMemoryError if the CPTs do not
    fit into memory.
    """

    #: Whether features may have two parents; :meth:`probabilities` then uses tuples of parents as keys.
    has_pairs: ClassVar[bool] = False

    def __init__(self, data: EncodedData, candidates: CandidateSets, slack: int = 0, dtype: Any = np.float32) -> None:
        self.candidates = candidates  # candidate parents of each feature
        self.layout = candidates.layout(data.n_states, data.n_classes)  # layout of all candidate CPTs
        self.layout.check_memory(data.n_samples, data.label)
        # (n_cells + slack,) class prior, then CPTs, then zeros
        self.cells: FloatArray = np.zeros(self.layout.n_cells + slack, dtype)
        n_features = candidates.n_features
        self.phi: FloatArray = np.zeros(candidates.n_tables)  # (n_tables,) structure logits
        if candidates.selectable is not None:
            self.phi[~candidates.selectable] = _NEVER
        # (n_tables,) first parent of each CPT, -1 for none
        self.table_parent = np.ascontiguousarray(candidates.parents[:, 0])
        self.selected: IntArray = np.empty(n_features, np.intp)  # (n_features,) CPTs that were drawn last
        nodes = 2 * n_features + 1 if candidates.arborescence else 0
        source, target = np.empty((2, nodes, nodes), np.int32)
        work = np.empty((6, nodes), np.int32)
        # graph, turns: working memory of the draws of trees and of acyclic pairs
        self.graph = trees.Graph(weight=np.empty((nodes, nodes)), source=source, target=target, work=work)
        n_turns = n_features if candidates.draws == "acyclic" else 0
        self.turns = np.empty(n_turns), np.empty((n_turns, -(-n_features // 64)), np.uint64)

    @property
    def theta(self) -> FloatArray:
        """Class prior and all CPTs, as a view (n_cells,) of ``cells``."""
        return self.cells[: self.layout.n_cells]

    def move_to(self, theta: FloatArray | None, phi: FloatArray) -> None:
        """Copy parameters (n_cells,) and structure logits (n_tables,) of another training with the same candidates.

        If ``theta`` is None, the parameters are kept. Raises ValueError if a shape differs.
        """
        theta = self.theta if theta is None else theta
        if theta.shape != self.theta.shape or phi.shape != self.phi.shape:
            raise ValueError(
                f"candidates, columns, categories and classes must be the same as in the training from which this one "
                f"starts, but this training has {len(self.phi)} candidate CPTs with {len(self.theta)} entries, and "
                f"that training has {len(phi)} with {len(theta)}."
            )
        self.theta[:], self.phi[:] = theta, phi

    @staticmethod
    def count(layout: TableLayout, data: EncodedData) -> AnyArray:
        """Return the weighted counts (n_cells,) for all CPTs. They are integers if the rows have no weights.

        Families with a missing value are not counted. Weights are relative to their mean, as in the loss.
        """
        weights = data.weights
        if data.sample_weight is not None:
            weights = weights / weights[weights > 0].mean()
        return layout.count(data.codes, data.y, weights, data.device)

    def perturb(self, noise: FloatArray) -> FloatArray:
        """Return log softmax(phi) + noise (n_tables,). The largest entry of each feature is drawn.

        This is eq. 11 of differentiable TAN. The softmax runs over the candidates of each feature. The noise
        (n_tables,) is Gumbel(0, 1), or zero for the most probable structure.
        """
        perturbed = np.empty_like(self.phi)
        trees.perturb(self.phi, noise, self.candidates.group, perturbed)
        return perturbed

    def draw(self, perturbed: FloatArray) -> IntArray:
        """Choose a CPT for each feature from the perturbed logits (n_tables,). Update and return ``selected``.

        The choice is the best CPT per feature, or the best tree (Chu and Liu; Edmonds 1967). If pairs of parents could
        form a cycle, CPTs are chosen for one feature after another (see :attr:`~tanlearn.CandidateSets.draws`).
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
        """Return, for each feature, a dictionary from parents (-1 for none) or tuples of parents to softmax(phi)."""
        values = np.exp(self.perturb(np.zeros_like(self.phi))).tolist()
        candidates = self.candidates
        parents: list[Any] = candidates.parents[:, 0].tolist()
        if self.has_pairs:  # keys are tuples even if no candidate has two parents, as with two features
            parents = [tuple(j for j in row if j >= 0) for row in candidates.parents.tolist()]
        edges = candidates.group.tolist()
        return [dict(zip(parents[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(edges)]

    def structure_entropy(self) -> float:
        """Return the mean entropy of the candidate distributions, in nats. It is 0 if all choices are certain."""
        log_p = self.perturb(np.zeros_like(self.phi))
        return float(-(np.exp(log_p) * log_p).sum() / self.candidates.n_features)
