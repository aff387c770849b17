"""Gradient TAN: structure and parameters learnt together (differentiable TAN, section 3).

One step: draw a structure, score the batch with its tables only, and send the gradient back to the cells of the
drawn tables and, straight through the softmax, to the logits of all candidates. This is the unfused form,
one kernel an equation; it is what any faster engine has to agree with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray, IntArray, missing_code
from tanlearn.candidates import CandidateSets
from tanlearn.encoded_data import EncodedData
from tanlearn.inference import log_joint
from tanlearn.kernels import scores as score_kernels
from tanlearn.kernels import trees
from tanlearn.losses import Loss
from tanlearn.optimizers import Adam
from tanlearn.parametrizations import Normalized
from tanlearn.structures import Structure
from tanlearn.tables import Tables

__all__ = ["EpochReport", "TrainingOutcome", "TrainingSettings", "train"]

#: The learning rate of the tables and the temperature fall exponentially, epoch by epoch ([DT] 4.2).
DECAY = 1e-3


@dataclass(frozen=True)
class TrainingSettings:
    """How to train; the defaults are the protocol of differentiable TAN, section 4.2.

    Parameters
    ----------
    learning_rate : float
        Adam's rate for the tables at the start; it falls exponentially to a thousandth.
    structure_learning_rate : float
        Adam's rate for the structure logits, not decayed.
    n_epochs : int
        Passes over the data.
    batch_size : int
        Rows a step; the last partial batch of an epoch is dropped.
    temperature : tuple of (float, float)
        Softmax temperature of the first and last epoch, exponential in between.
    init : {"uniform", "maximum-likelihood"}
        Start of ``rho``: from U(-0.1, 0.1), or at the smoothed (alpha = 1) log-frequencies.
    dtype : {"float32", "float64"}
        Type of parameters and scores while training.
    patience : int or None
        With validation data: stop after that many epochs without a better validation error.
    """

    learning_rate: float = 3e-2
    structure_learning_rate: float = 1e-3
    n_epochs: int = 500
    batch_size: int = 100
    temperature: tuple[float, float] = (10.0, 0.1)
    init: str = "uniform"
    dtype: str = "float32"
    patience: int | None = None

    def schedule(self, start: float, stop: float) -> FloatArray:
        """Return one value an epoch, exponentially from ``start`` to ``stop``."""
        return np.geomspace(start, stop, self.n_epochs) if self.n_epochs > 1 else np.array([start])


@dataclass(frozen=True)
class EpochReport:
    """What a callback is told after every epoch.

    Parameters
    ----------
    epoch, n_epochs : int
        Number of the epoch, from 1, and of all.
    loss : float
        Mean training loss of the drawn structures over the epoch.
    learning_rate, temperature : float
        As used in the epoch.
    structure_entropy : float
        Mean entropy of the features' candidate distributions, in nats; 0 means that all is decided.
    validation_error : float or None
        Share of validation rows that the most probable structure gets wrong.
    """

    epoch: int
    n_epochs: int
    loss: float
    learning_rate: float
    temperature: float
    structure_entropy: float
    validation_error: float | None


@dataclass(frozen=True)
class TrainingOutcome:
    """What training leaves behind.

    Parameters
    ----------
    structure : Structure
        The most probable structure.
    tables : Tables
        Its tables, float64.
    probabilities : list of dict
        For every feature the probability of each candidate parent (-1 for none).
    history : list of EpochReport
        One report an epoch.
    """

    structure: Structure
    tables: Tables
    probabilities: list[dict[int, float]]
    history: list[EpochReport] = field(repr=False)


class _State:
    """Parameters, structure logits and the arrays that a step needs."""

    def __init__(
        self, data: EncodedData, candidates: CandidateSets, settings: TrainingSettings, rng: np.random.Generator
    ) -> None:
        self.candidates = candidates
        self.layout = candidates.layout(data.n_states, data.n_classes)
        dtype = np.dtype(settings.dtype)
        if settings.init == "maximum-likelihood":
            counts = self.layout.count(data.codes, data.y, data.weights)
            self.rho: FloatArray = np.log(counts + 1.0).astype(dtype)
        else:
            self.rho = rng.uniform(-0.1, 0.1, self.layout.n_cells).astype(dtype)
        self.phi: FloatArray = np.zeros(candidates.n_tables)
        self.parametrization = Normalized(self.layout, dtype)
        self.theta = self.parametrization.forward(self.rho)
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
        rho = self.layout.select_cells(self.rho, selected).astype(np.float64)
        return self.candidates.structure(selected), Tables(layout, Normalized(layout).forward(rho))

    def probabilities(self) -> list[dict[int, float]]:
        """Return softmax(phi), feature by feature."""
        values = np.exp(self.perturb(np.zeros_like(self.phi))).tolist()
        parents = self._table_parent.tolist()
        edges = self.candidates.group.tolist()
        return [dict(zip(parents[a:b], values[a:b], strict=True)) for a, b in zip(edges[:-1], edges[1:], strict=True)]

    def structure_entropy(self) -> float:
        """Return the mean entropy of the candidate distributions, in nats."""
        log_p = self.perturb(np.zeros_like(self.phi))
        return float(-(np.exp(log_p) * log_p).sum() / self.candidates.n_features)


def train(
    data: EncodedData,
    candidates: CandidateSets,
    loss: Loss,
    settings: TrainingSettings,
    rng: np.random.Generator,
    *,
    validation: EncodedData | None = None,
    callback: Callable[[EpochReport], Any] | None = None,
) -> TrainingOutcome:
    """Train structure and parameters together by gradient.

    Parameters
    ----------
    data : EncodedData
        Complete rows. Weights multiply the loss, relative to their mean.
    candidates : CandidateSets
        What every feature may choose from; sets without a choice train a fixed structure.
    loss : Loss
        Built-in or the user's own.
    settings : TrainingSettings
        Rates, schedules, sizes.
    rng : numpy.random.Generator
        Where randomness comes from.
    validation : EncodedData, optional
        Held-out rows. With them the parameters of the epoch with the lowest error on them are returned (of
        equals, the latest), and ``settings.patience`` may stop early.
    callback : callable, optional
        Called with an :class:`EpochReport` after every epoch; a true answer stops the training.

    Returns
    -------
    TrainingOutcome

    Raises
    ------
    ValueError
        If a value is missing.
    FloatingPointError
        If the loss or a gradient is no longer finite.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import CandidateSets, EncodedData, Hybrid
    >>> from tanlearn.training import TrainingSettings, train
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 2))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 1])  # exclusive or: naive Bayes cannot learn it
    >>> outcome = train(data, CandidateSets.from_lists([[], [0]]), Hybrid(trade_off=10), TrainingSettings(n_epochs=20),
    ...                 np.random.default_rng(0))
    >>> outcome.structure.parent.tolist()
    [-1, 0]
    """
    data.require_complete("Gradient training")
    state = _State(data, candidates, settings, rng)
    weights = None if data.sample_weight is None else (data.sample_weight / data.sample_weight.mean())
    rates = settings.schedule(settings.learning_rate, settings.learning_rate * DECAY)
    temperatures = settings.schedule(*settings.temperature)
    adam = Adam(state.rho, learning_rate=settings.learning_rate)
    structure_adam = Adam(state.phi, learning_rate=settings.structure_learning_rate)
    history: list[EpochReport] = []
    best: tuple[float, int, tuple[Structure, Tables], list[dict[int, float]]] | None = None
    for epoch, (rate, temperature) in enumerate(zip(rates.tolist(), temperatures.tolist(), strict=True), start=1):
        mean_loss = _epoch(state, data, weights, loss, adam, structure_adam, rate, temperature, settings, rng)
        if not np.isfinite(mean_loss) or not np.isfinite(state.rho).all():
            raise FloatingPointError(
                f"training diverged in epoch {epoch}: the loss is {mean_loss}. Lower learning_rate "
                f"({settings.learning_rate}) or the weight of the loss ({loss})."
            )
        error = None
        if validation is not None:
            model = state.most_probable()
            error = _error(model, validation)
            if best is None or error <= best[0]:
                since = epoch if best is None or error < best[0] else best[1]
                best = (error, since, model, state.probabilities())
        report = EpochReport(epoch, settings.n_epochs, mean_loss, rate, temperature, state.structure_entropy(), error)
        history.append(report)
        stop = callback is not None and callback(report)
        out_of_patience = settings.patience is not None and best is not None and epoch - best[1] >= settings.patience
        if stop or out_of_patience:
            break
    if best is not None:
        (structure, tables), probabilities = best[2], best[3]
    else:
        (structure, tables), probabilities = state.most_probable(), state.probabilities()
    return TrainingOutcome(structure, tables, probabilities, history)


def _epoch(
    state: _State,
    data: EncodedData,
    weights: FloatArray | None,
    loss: Loss,
    adam: Adam,
    structure_adam: Adam,
    rate: float,
    temperature: float,
    settings: TrainingSettings,
    rng: np.random.Generator,
) -> float:
    """Run one pass over the data in place and return the mean loss."""
    batch_size = min(settings.batch_size, data.n_samples)
    n_steps = data.n_samples // batch_size
    order = rng.permutation(data.n_samples)[: n_steps * batch_size].reshape(n_steps, batch_size)
    # All noise of an epoch at once, so that a fused epoch can be handed the same numbers.
    noise = rng.gumbel(size=(n_steps, state.candidates.n_tables))
    arrays = state.layout.arrays()
    missing = missing_code(data.codes.dtype)
    rows = np.empty(batch_size, np.intp)
    scores = np.empty((batch_size, data.n_classes), state.rho.dtype)
    d_cells = np.zeros_like(state.rho)
    d_choice = np.empty_like(state.phi)
    d_phi = np.empty_like(state.phi)
    total = 0.0
    for batch, batch_noise in zip(order, noise, strict=True):
        codes, y = np.take(data.codes, batch, axis=1), data.y[batch]
        perturbed = state.perturb(batch_noise)
        selected = state.draw(perturbed)
        score_kernels.log_joint(codes, 0, state.theta, *arrays, selected, missing, rows, scores)
        losses, d_scores = loss.value_and_gradient(scores, y)
        share = 1.0 / batch_size if weights is None else weights[batch, np.newaxis] / batch_size
        d_scores = np.ascontiguousarray(d_scores * share, dtype=state.rho.dtype)
        total += float(losses.mean() if weights is None else losses @ weights[batch] / batch_size)
        d_cells[:] = 0.0
        score_kernels.log_joint_adjoint(codes, 0, d_scores, *arrays, selected, missing, rows, d_cells)
        state.parametrization.pull_back(state.theta, d_cells, out=d_cells, tables=selected)
        adam.step(state.rho, d_cells, rate)
        if state.candidates.has_choice:
            score_kernels.choice_gradient(codes, 0, d_scores, state.theta, *arrays, missing, rows, d_choice)
            trees.structure_gradient(perturbed, state.candidates.group, temperature, d_choice, d_phi)
            structure_adam.step(state.phi, d_phi)
        state.parametrization.forward(state.rho, out=state.theta)
    return total / n_steps


def _error(model: tuple[Structure, Tables], data: EncodedData) -> float:
    """Return the weighted share of rows that a model gets wrong."""
    structure, tables = model
    wrong = log_joint(tables, structure, data.codes).argmax(axis=1) != data.y
    return float(np.average(wrong, weights=data.sample_weight))
