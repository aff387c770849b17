"""Gradient TAN: structure and parameters learnt together (differentiable TAN, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from tanlearn._typing import FloatArray
from tanlearn.candidates import CandidateSets
from tanlearn.encoded_data import EncodedData
from tanlearn.engines import Engine, FusedEngine, UnfusedEngine, is_fusible
from tanlearn.inference import log_joint
from tanlearn.losses import Loss
from tanlearn.state import State, plan_epoch
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
    epoch : int
        Number of the epoch, from 1.
    n_epochs : int
        Number of epochs planned.
    loss : float
        Mean training loss of the drawn structures over the epoch.
    learning_rate : float
        Rate of the tables in the epoch.
    temperature : float
        Softmax temperature in the epoch.
    structure_entropy : float
        Mean entropy of the features' candidate distributions, in nats; 0 means that all is decided.
    validation_error : float or None
        Share of validation rows that the most probable structure gets wrong.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import TANClassifier
    >>> model = TANClassifier(n_epochs=3, random_state=0).fit(*load_iris(return_X_y=True))
    >>> [report.epoch for report in model.history_]
    [1, 2, 3]
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
        For every feature the softmax of its candidates' logits, by parent (-1 for none).
    history : list of EpochReport
        One report an epoch.
    """

    structure: Structure
    tables: Tables
    probabilities: list[dict[int, float]]
    history: list[EpochReport] = field(repr=False)


def train(
    data: EncodedData,
    candidates: CandidateSets,
    loss: Loss,
    settings: TrainingSettings,
    rng: np.random.Generator,
    *,
    validation: EncodedData | None = None,
    callback: Callable[[EpochReport], Any] | None = None,
    n_jobs: int | None = None,
) -> TrainingOutcome:
    """Train structure and parameters together by gradient.

    Parameters
    ----------
    data : EncodedData
        Rows, complete if there is a choice of candidates; otherwise what they miss is summed out. Weights multiply the
        loss, relative to their mean.
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
    n_jobs : int, optional
        Threads, as in joblib; they are used where a step is long enough to be shared. The outcome is the same.

    Returns
    -------
    TrainingOutcome

    Raises
    ------
    ValueError
        If a value is missing and the structure is to be learnt, or there is only one class.
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
    if candidates.has_choice:
        data.require_complete("Structure learning by gradient")
    if data.n_classes < 2:
        raise ValueError(f"training by gradient needs at least 2 classes, the data have {data.n_classes}.")
    state = State(data, candidates, settings.init, settings.dtype, rng)
    weights = (data.weights / data.weights.mean()).astype(np.float32)
    rates = settings.schedule(settings.learning_rate, settings.learning_rate * DECAY)
    temperatures = settings.schedule(*settings.temperature)
    engine: Engine
    if is_fusible(loss, settings.dtype) and not data.has_missing:
        engine = FusedEngine(state, data, weights, loss, settings.batch_size, effective_n_jobs(n_jobs))
    else:
        engine = UnfusedEngine(state, data, weights, loss)
    history: list[EpochReport] = []
    best: tuple[float, int, tuple[Structure, Tables], list[dict[int, float]]] | None = None
    for epoch, (rate, temperature) in enumerate(zip(rates.tolist(), temperatures.tolist(), strict=True), start=1):
        plan = plan_epoch(data.n_samples, settings.batch_size, candidates.n_tables, rng)
        mean_loss = engine.epoch(plan, (rate, settings.structure_learning_rate), temperature)
        if not np.isfinite(mean_loss) or not np.isfinite(state.theta).all():
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


def _error(model: tuple[Structure, Tables], data: EncodedData) -> float:
    """Return the weighted share of rows that a model gets wrong."""
    structure, tables = model
    wrong = log_joint(tables, structure, data.codes).argmax(axis=1) != data.y
    return float(np.average(wrong, weights=data.sample_weight))
