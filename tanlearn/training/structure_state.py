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
    """Structure logits and numbers of all candidate tables while they are learnt.

    Parameters
    ----------
    data : EncodedData
        Rows, of which the tables are as large as features and classes ask for.
    candidates : CandidateSets
        What every feature may choose from.
    slack : int, default=0
        Zeros behind the cells, which kernels may read.
    dtype : dtype, default="float32"
        Type of the cells.

    Attributes
    ----------
    layout : TableLayout
        Of all candidates' tables.
    cells : ndarray of shape (n_cells + slack,)
        The class prior, the tables, and zeros behind them.
    phi : ndarray of shape (n_tables,), float64
        Structure logits.
    table_parent : ndarray of shape (n_tables,)
        The first parent of every table, -1 for none.
    selected : ndarray of shape (n_features,), intp
        The tables last drawn.
    graph, turns : tuples of ndarrays
        What draws of whole trees, and of acyclic pairs, work in.

    Raises
    ------
    TableMemoryError
        If there is no room for the tables.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import CandidateSets, EncodedData
    >>> from tanlearn.training.structure_state import StructureState
    >>> data = EncodedData.from_codes([[0, 0], [1, 1], [1, 0]], [0, 1, 1])
    >>> state = StructureState(data, CandidateSets.from_lists([[], [0]]))
    >>> state.draw(state.perturb(np.array([0.0, 0.0, 0.5]))).tolist()  # table 2 is that of feature 1 given feature 0
    [0, 2]
    >>> state.probabilities()
    [{-1: 1.0}, {-1: 0.5, 0: 0.5}]
    """

    #: Whether features may have two parents, which are told as tuples then.
    has_pairs: ClassVar[bool] = False

    def __init__(self, data: EncodedData, candidates: CandidateSets, slack: int = 0, dtype: Any = np.float32) -> None:
        self.candidates = candidates
        self.layout = candidates.layout(data.n_states, data.n_classes)
        self.layout.check_memory(data.n_samples)
        self.cells: FloatArray = np.zeros(self.layout.n_cells + slack, dtype)
        n_features = candidates.n_features
        self.phi: FloatArray = np.zeros(candidates.n_tables)
        self.table_parent = np.ascontiguousarray(candidates.parents[:, 0])
        self.selected: IntArray = np.empty(n_features, np.intp)
        nodes = 2 * n_features + 1 if candidates.arborescence else 0
        source, target = np.empty((2, nodes, nodes), np.int32)
        work = np.empty((6, nodes), np.int32)
        self.graph = trees.Graph(weight=np.empty((nodes, nodes)), source=source, target=target, work=work)
        n_turns = n_features if candidates.draws == "acyclic" else 0
        self.turns = np.empty(n_turns), np.empty((n_turns, -(-n_features // 64)), np.uint64)

    @property
    def theta(self) -> FloatArray:
        """The class prior and all tables, shape (n_cells,): a view of ``cells``."""
        return self.cells[: self.layout.n_cells]

    def move_to(self, theta: FloatArray | None, phi: FloatArray) -> None:
        """Take numbers and logits that a training of the same candidates has left.

        Parameters
        ----------
        theta : ndarray of shape (n_cells,) or None
            The class prior and all tables; None leaves them.
        phi : ndarray of shape (n_tables,)
            Structure logits.

        Raises
        ------
        ValueError
            If a shape is another, as that of other candidates, columns, categories or classes is.
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

        Parameters
        ----------
        layout : TableLayout
            Tables to count.
        data : EncodedData
            Rows; families that miss something are not counted.

        Returns
        -------
        ndarray of shape (n_cells,)
            Integers, where rows have no weights.
        """
        weights = data.weights
        if data.sample_weight is not None:
            weights = weights / weights[weights > 0].mean()
        return layout.count(data.codes, data.y, weights, data.device)

    def perturb(self, noise: FloatArray) -> FloatArray:
        """Return log softmax(phi) + noise, whose largest entry of every feature is drawn (differentiable TAN, eq. 11).

        Parameters
        ----------
        noise : ndarray of shape (n_tables,)
            Gumbel(0, 1) numbers; zeros for the most probable structure.

        Returns
        -------
        ndarray of shape (n_tables,), float64
            The softmax runs over the candidates of every feature.
        """
        perturbed = np.empty_like(self.phi)
        trees.perturb(self.phi, noise, self.candidates.group, perturbed)
        return perturbed

    def draw(self, perturbed: FloatArray) -> IntArray:
        """Choose a table for every feature, in the way that the candidates are drawn.

        The best by itself, or the best tree (Chu and Liu; Edmonds 1967); and where pairs of parents could form a cycle,
        feature after feature: see :attr:`~tanlearn.CandidateSets.draws`.

        Parameters
        ----------
        perturbed : ndarray of shape (n_tables,), float64
            What :meth:`perturb` returned.

        Returns
        -------
        ndarray of shape (n_features,), intp
            ``selected`` itself, which the next draw overwrites.
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
        """Return softmax(phi), feature by feature.

        Returns
        -------
        list of length n_features of dict
            Probability by parent, -1 for none; by the tuple of parents, where features may have two.
        """
        values = np.exp(self.perturb(np.zeros_like(self.phi))).tolist()
        candidates = self.candidates
        parents: list[Any] = candidates.parents[:, 0].tolist()
        if self.has_pairs:  # also where no candidate has two parents, as of two features
            parents = [tuple(j for j in row if j >= 0) for row in candidates.parents.tolist()]
        edges = candidates.group.tolist()
        return [dict(zip(parents[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(edges)]

    def structure_entropy(self) -> float:
        """Return the mean entropy of the features' candidate distributions.

        Returns
        -------
        float
            In nats, from 0, where all is decided, to the mean logarithm of the numbers of candidates.
        """
        log_p = self.perturb(np.zeros_like(self.phi))
        return float(-(np.exp(log_p) * log_p).sum() / self.candidates.n_features)
