"""One epoch of gradient TAN: the fused engine, and its unfused twin, which is the oracle of it.

One step (differentiable TAN, section 3): draw a structure, score the batch with its tables only, and send the gradient
back to the cells of the drawn tables and, straight through the softmax, to the logits of all candidates.
"""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np

from tanlearn._typing import FloatArray, IntArray, missing_code
from tanlearn.candidates import CandidateSets
from tanlearn.encoded_data import EncodedData
from tanlearn.kernels import scores as score_kernels
from tanlearn.kernels import train as train_kernels
from tanlearn.kernels import trees
from tanlearn.losses import CompiledLoss, Loss, evaluate, is_built_in
from tanlearn.optimizers import Adam
from tanlearn.parametrizations import Normalized
from tanlearn.structures import Structure
from tanlearn.tables import Tables

__all__ = ["Plan", "State", "fused_epoch", "is_fusible", "plan_epoch", "unfused_epoch"]

#: An epoch's batches, (n_steps, batch_size) sample numbers, and uniform numbers for the noise, (n_steps, n_tables).
Plan: TypeAlias = tuple[IntArray, FloatArray]


def plan_epoch(n_samples: int, batch_size: int, n_tables: int, rng: np.random.Generator) -> Plan:
    """Draw all that is random in an epoch, so that both engines can be handed the same."""
    size = min(batch_size, n_samples)
    n_steps = n_samples // size
    order = rng.permutation(n_samples)[: n_steps * size].reshape(n_steps, size)
    return order, rng.random((n_steps, n_tables), dtype=np.float32)


def is_fusible(loss: Loss, dtype: str) -> bool:
    """Return whether the fused engine can train: a built-in loss, in float32."""
    return is_built_in(loss) and dtype == "float32"


class State:
    """Parameters, structure logits and their optimisers.

    Parameters
    ----------
    data : EncodedData
        Complete rows.
    candidates : CandidateSets
        What every feature may choose from.
    init : {"uniform", "maximum-likelihood"}
        Start of the parameters.
    dtype : {"float32", "float64"}
        Their type.
    rng : numpy.random.Generator
        Where a random start comes from.
    """

    def __init__(
        self, data: EncodedData, candidates: CandidateSets, init: str, dtype: str, rng: np.random.Generator
    ) -> None:
        self.candidates = candidates
        self.layout = candidates.layout(data.n_states, data.n_classes)
        if init == "maximum-likelihood":
            counts = self.layout.count(data.codes, data.y, data.weights)
            self.rho: FloatArray = np.log(counts + 1.0).astype(dtype)
        else:
            self.rho = rng.uniform(-0.1, 0.1, self.layout.n_cells).astype(dtype)
        self.phi: FloatArray = np.zeros(candidates.n_tables)
        self.parametrization = Normalized(self.layout, dtype)
        self.theta = self.parametrization.forward(self.rho)
        self.idle: IntArray = np.zeros(candidates.n_tables, np.intp)
        self.adam = Adam(self.rho)
        self.structure_adam = Adam(self.phi)
        self.selected: IntArray = np.empty(candidates.n_features, np.intp)
        self._table_parent = candidates.parents[:, 0]
        nodes = 2 * candidates.n_features + 1 if candidates.arborescence else 0
        self._weight = np.empty((nodes, nodes))
        self._ends = np.empty((2, nodes, nodes), np.intp)
        self._work = np.empty((5, nodes), np.intp)

    def perturb(self, noise: FloatArray) -> FloatArray:
        """Return log softmax(phi) + noise."""
        perturbed = np.empty_like(self.phi)
        trees.perturb(self.phi, noise, self.candidates.group, perturbed)
        return perturbed

    def draw(self, perturbed: FloatArray) -> IntArray:
        """Return the chosen tables."""
        group = self.candidates.group
        if self.candidates.arborescence:
            trees.draw_arborescence(
                perturbed,
                group,
                self._table_parent,
                self._weight,
                self._ends[0],
                self._ends[1],
                self._work,
                self.selected,
            )
        else:
            trees.draw_independent(perturbed, group, self.selected)
        return self.selected

    def most_probable(self) -> tuple[Structure, Tables]:
        """Return the structure without noise, and its tables in double precision."""
        selected = self.draw(self.perturb(np.zeros_like(self.phi))).copy()
        layout = self.layout.select(selected)
        rho = self.layout.select_cells(self.theta, selected).astype(np.float64)
        return self.candidates.structure(selected), Tables(layout, Normalized(layout).forward(rho))

    def probabilities(self) -> list[dict[int, float]]:
        """Return softmax(phi), feature by feature."""
        values = np.exp(self.perturb(np.zeros_like(self.phi))).tolist()
        parents = self._table_parent.tolist()
        edges = self.candidates.group.tolist()
        return [dict(zip(parents[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(edges)]

    def structure_entropy(self) -> float:
        """Return the mean entropy of the candidate distributions, in nats."""
        log_p = self.perturb(np.zeros_like(self.phi))
        return float(-(np.exp(log_p) * log_p).sum() / self.candidates.n_features)


def unfused_epoch(
    state: State,
    data: EncodedData,
    weights: FloatArray,
    loss: Loss,
    plan: Plan,
    rates: tuple[float, float],
    temperature: float,
) -> float:
    """Train one epoch, one kernel an equation.

    Parameters
    ----------
    state : State
        Changed in place.
    data : EncodedData
        Complete rows.
    weights : ndarray of shape (n_samples,), float32
        Weights of mean one.
    loss : Loss
        Any loss.
    plan : Plan
        Batches and noise.
    rates : tuple of (float, float)
        Learning rates of tables and structure logits.
    temperature : float
        Of the softmax that the structure gradient goes through.

    Returns
    -------
    float
        Mean loss of the drawn structures.
    """
    order, uniform = plan
    noise = np.empty_like(uniform)
    trees.gumbel(uniform, noise)
    arrays = state.layout.arrays()
    missing = missing_code(data.codes.dtype)
    rows = np.empty(order.shape[1], np.intp)
    scores = np.empty((order.shape[1], data.n_classes), state.rho.dtype)
    d_cells = np.zeros_like(state.rho)
    d_choice = np.empty_like(state.phi)
    d_phi = np.empty_like(state.phi)
    total = 0.0
    for batch, batch_noise in zip(order, noise, strict=True):
        codes, y = np.take(data.codes, batch, axis=1), data.y[batch]
        perturbed = state.perturb(batch_noise)
        selected = state.draw(perturbed)
        score_kernels.log_joint(codes, 0, state.theta, *arrays, selected, missing, rows, scores)
        losses, d_scores = evaluate(loss, scores, y)
        share = weights[batch] / np.float32(len(batch))
        total += float(losses @ share)
        d_scores = np.ascontiguousarray(d_scores * share[:, np.newaxis], dtype=state.rho.dtype)
        d_cells[:] = 0.0
        score_kernels.log_joint_adjoint(codes, 0, d_scores, *arrays, selected, missing, rows, d_cells)
        state.parametrization.pull_back(state.theta, d_cells, out=d_cells, tables=selected)
        state.adam.step(state.rho, d_cells, rates[0])
        if state.candidates.has_choice:
            score_kernels.choice_gradient(codes, 0, d_scores, state.theta, *arrays, missing, rows, d_choice)
            trees.structure_gradient(perturbed, state.candidates.group, temperature, d_choice, d_phi)
            state.structure_adam.step(state.phi, d_phi, rates[1])
        state.parametrization.forward(state.rho, out=state.theta)
    return total / len(order)


def fused_epoch(
    state: State,
    data: EncodedData,
    weights: FloatArray,
    loss: CompiledLoss,
    plan: Plan,
    rates: tuple[float, float],
    temperature: float,
) -> float:
    """Train one epoch in one compiled call, without the GIL.

    Parameters
    ----------
    state : State
        Changed in place: ``theta`` and the logits; ``rho`` is left behind, because normalised parameters
        serve as well.
    data : EncodedData
        Complete rows.
    weights : ndarray of shape (n_samples,), float32
        Weights of mean one.
    loss : CompiledLoss
        A built-in loss.
    plan : Plan
        Batches and noise.
    rates : tuple of (float, float)
        Learning rates of tables and structure logits.
    temperature : float
        Of the softmax that the structure gradient goes through.

    Returns
    -------
    float
        Mean loss of the drawn structures.
    """
    order, uniform = plan
    adam, structure_adam = state.adam, state.structure_adam
    real = np.float32
    total = train_kernels.train_epoch(
        data.codes,
        data.y,
        weights,
        order,
        uniform,
        *state.layout.arrays(),
        state.candidates.group,
        state.candidates.arborescence,
        loss.kind,
        np.array(loss.kernel_parameters(), real),
        adam.advance(len(order), rates[0]).astype(real),
        structure_adam.advance(len(order), rates[1]),
        real(adam.beta1),
        real(adam.beta2),
        real(adam.epsilon),
        temperature,
        adam.m,
        adam.v,
        state.theta,
        state.idle,
        structure_adam.m,
        structure_adam.v,
        state.phi,
    )
    return float(total) / len(order)
