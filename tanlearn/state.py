"""What gradient TAN learns, tables and structure logits of all candidates, and what an epoch is made of."""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np

from tanlearn._lanes import LANES
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.candidates import CandidateSets
from tanlearn.encoded_data import EncodedData
from tanlearn.kernels import trees
from tanlearn.noise_streams import skip_uniform
from tanlearn.parametrizations import Normalized
from tanlearn.quantization import FixedPoint, round_tables
from tanlearn.structures import Structure
from tanlearn.tables import Tables

__all__ = ["Plan", "State", "plan_epoch"]

#: An epoch's batches, (n_steps, batch_size) sample numbers, and uniform numbers for the noise, (n_steps, n_tables), or
#: where these begin in the stream of a generator.
Plan: TypeAlias = tuple[IntArray, AnyArray]


def plan_epoch(n_samples: int, batch_size: int, n_tables: int, rng: np.random.Generator, device: str = "cpu") -> Plan:
    """Draw all that is random in an epoch, so that all engines can be handed the same; noise is drawn on its device."""
    size = int(min(batch_size, n_samples))  # a NumPy integer is no step of a generator's stream
    n_steps = n_samples // size
    order = rng.permutation(n_samples)[: n_steps * size].reshape(n_steps, size)
    start = skip_uniform(rng, n_steps * n_tables) if device == "cuda" else None
    return order, rng.random((n_steps, n_tables), dtype=np.float32) if start is None else start


class State:
    """Tables and structure logits while they are learnt.

    With ``fixed_point`` the scores are those of rounded tables, and so are the tables of the outcome; gradients go
    straight through the rounding ([RE] eq. 8).

    Parameters
    ----------
    data : EncodedData
        Rows; families that miss something are not counted.
    candidates : CandidateSets
        What every feature may choose from.
    init : {"uniform", "maximum-likelihood"}
        Start of the parameters.
    dtype : {"float32", "float64"}
        Their type.
    rng : numpy.random.Generator
        Where a random start comes from.
    fixed_point : FixedPoint, optional
        The format that log-probabilities are rounded to.
    size_weight : float, default=0.0
        Price of a cell in the structure's part of the loss ([RE] eq. 17).

    Attributes
    ----------
    cells : ndarray of shape (n_cells + LANES,)
        Normalised log-probabilities of all tables. Kernels read rows as whole vector registers; the slack is what they
        may read behind the last.
    phi : ndarray of shape (n_tables,), float64
        Structure logits.
    price : ndarray of shape (n_tables,)
        Of every table; empty where nothing has one.
    selected : ndarray of shape (n_features,)
        The tables last drawn.
    """

    def __init__(
        self,
        data: EncodedData,
        candidates: CandidateSets,
        init: str,
        dtype: str,
        rng: np.random.Generator,
        fixed_point: FixedPoint | None = None,
        size_weight: float = 0.0,
    ) -> None:
        self.candidates = candidates
        self.fixed_point = fixed_point
        self.layout = candidates.layout(data.n_states, data.n_classes)
        if init == "maximum-likelihood":
            rho = np.log(self.layout.count(data.codes, data.y, data.weights, data.device) + 1.0)
        else:
            rho = rng.uniform(-0.1, 0.1, self.layout.n_cells)
        self.cells: FloatArray = np.zeros(self.layout.n_cells + LANES, dtype)
        Normalized(self.layout, dtype).forward(rho.astype(dtype), out=self.theta)
        self.phi: FloatArray = np.zeros(candidates.n_tables)
        self.price: FloatArray = size_weight * np.diff(self.layout.offset) if size_weight > 0 else np.empty(0)
        self.table_parent = candidates.parents[:, 0]
        self.selected: IntArray = np.empty(candidates.n_features, np.intp)
        nodes = 2 * candidates.n_features + 1 if candidates.arborescence else 0
        self.edges = np.empty((nodes, nodes)), np.empty((nodes, nodes), np.intp), np.empty((nodes, nodes), np.intp)
        self.work: IntArray = np.empty((5, nodes), np.intp)

    @property
    def theta(self) -> FloatArray:
        """The normalised log-probabilities of all tables."""
        return self.cells[: self.layout.n_cells]

    def move_to(self, theta: FloatArray, phi: FloatArray) -> None:
        """Take tables and logits that a training of the same candidates has left."""
        if theta.shape != self.theta.shape or phi.shape != self.phi.shape:
            raise ValueError(
                f"a training of {len(self.phi)} candidate tables with {len(self.theta)} cells cannot start from one of "
                f"{len(phi)} with {len(theta)}: candidates, columns, categories and classes must be the same."
            )
        self.theta[:], self.phi[:] = theta, phi

    def scoring_cells(self) -> FloatArray:
        """Return what rows are scored with: theta, or theta rounded."""
        return self.theta if self.fixed_point is None else self.fixed_point.round(self.theta).astype(self.theta.dtype)

    def perturb(self, noise: FloatArray) -> FloatArray:
        """Return log softmax(phi) + noise."""
        perturbed = np.empty_like(self.phi)
        trees.perturb(self.phi, noise, self.candidates.group, perturbed)
        return perturbed

    def draw(self, perturbed: FloatArray) -> IntArray:
        """Return the chosen tables."""
        group = self.candidates.group
        if self.candidates.arborescence:
            trees.draw_arborescence(perturbed, group, self.table_parent, *self.edges, self.work, self.selected)
        else:
            trees.draw_independent(perturbed, group, self.selected)
        return self.selected

    def most_probable(self) -> tuple[Structure, Tables]:
        """Return the structure without noise, and its tables in double precision."""
        selected = self.draw(self.perturb(np.zeros_like(self.phi))).copy()
        layout = self.layout.select(selected)
        rho = self.layout.select_cells(self.theta, selected).astype(np.float64)
        tables = Tables(layout, Normalized(layout).forward(rho))
        if self.fixed_point is not None:
            tables = round_tables(tables, self.fixed_point)
        return self.candidates.structure(selected), tables

    def probabilities(self) -> list[dict[int, float]]:
        """Return softmax(phi), feature by feature."""
        values = np.exp(self.perturb(np.zeros_like(self.phi))).tolist()
        parents = self.table_parent.tolist()
        edges = self.candidates.group.tolist()
        return [dict(zip(parents[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(edges)]

    def structure_entropy(self) -> float:
        """Return the mean entropy of the candidate distributions, in nats."""
        log_p = self.perturb(np.zeros_like(self.phi))
        return float(-(np.exp(log_p) * log_p).sum() / self.candidates.n_features)
