"""Gradient TAN: structure and parameters learnt together (differentiable TAN, section 3)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tanlearn._threads import number_of_threads
from tanlearn._typing import FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.files.archive import fields
from tanlearn.files.fingerprints import digest
from tanlearn.files.values import restore_tables
from tanlearn.kernels._cuda import row_packing
from tanlearn.network.candidates import CandidateSets
from tanlearn.network.inference import log_joint
from tanlearn.network.quantization import round_tables
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.training.checkpoint import TrainingCheckpoint
from tanlearn.training.cuda_population import CudaEngine, CudaPopulation
from tanlearn.training.engines import Engine, FusedEngine, UnfusedEngine, is_fusible
from tanlearn.training.losses import Loss, is_built_in
from tanlearn.training.settings import EpochReport, TrainingOutcome, TrainingSettings
from tanlearn.training.state import Plan, State, plan_epoch
from tanlearn.training.term_engine import TermEngine
from tanlearn.training.term_state import TermState

__all__ = ["Training", "error_rate", "train"]

#: The learning rate of the tables and the temperature fall exponentially, epoch by epoch ([DT] 4.2).
DECAY = 1e-3


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
    checkpoint: str | os.PathLike[str] | None = None,
    start: tuple[FloatArray | None, FloatArray] | None = None,
) -> TrainingOutcome:
    """Train structure and parameters together by gradient."""
    file = None
    if checkpoint is not None:
        arguments = [data, candidates, loss, settings, rng.bit_generator.state, validation]
        arguments += [] if start is None else [start]
        file = TrainingCheckpoint(checkpoint, digest("training", arguments))
    training = Training(data, candidates, loss, settings, rng, validation=validation, callback=callback, start=start)
    return training.run(n_jobs, file)


class _Best(NamedTuple):
    """The best epoch so far on validation rows."""

    error: float
    #: The first epoch with this error; the model is that of the last.
    since: int
    structure: Structure
    tables: Tables
    probabilities: list[dict[int, float]]


class Training:
    """A training under way, between two epochs."""

    engine: Engine  # What trains epochs; :meth:`run` makes it

    def __init__(
        self,
        data: EncodedData,
        candidates: CandidateSets,
        loss: Loss,
        settings: TrainingSettings,
        rng: np.random.Generator,
        *,
        validation: EncodedData | None = None,
        callback: Callable[[EpochReport], Any] | None = None,
        start: tuple[FloatArray | None, FloatArray] | None = None,
    ) -> None:
        if candidates.allow_cycles:
            data.require_complete("A pseudo-TAN, whose structure may have cycles,")
        if candidates.draws == "acyclic" and not (candidates.has_one_parent or settings.terms):
            raise ValueError(
                "these candidates may form a cycle, and hold pairs of parents, which are no trees to draw. Use "
                "KTreeClassifier, or restrict every feature to parents before it in some order."
            )
        if data.has_missing and not (candidates.is_acyclic or settings.terms):
            raise ValueError(
                "values are missing, and cannot be summed out of the cycles that these candidates may form. Draw whole "
                "trees, by arborescence=True, or restrict every feature to parents before it in some order."
            )
        if data.n_classes < 2:
            raise ValueError(
                f"training by gradient needs at least 2 classes, the data have {data.n_classes}. Add rows of another "
                f"class, or use MaximumLikelihood()."
            )
        # data, candidates, loss, settings, rng, validation, callback, start:
        self.data, self.loss, self.settings, self.rng, self.validation = data, loss, settings, rng, validation
        self.callback = callback
        # What is learnt
        self.state: Any  # of one kind or the other
        if settings.terms:
            self.state = TermState(data, candidates, settings.fixed_point)
        else:
            self.state = State(
                data, candidates, settings.init, settings.dtype, rng, settings.fixed_point, settings.size_weight
            )
        if start is not None:
            self.state.move_to(*start)
        self.weights: FloatArray = (data.weights / data.weights.mean()).astype(np.float32)
        self.rates = settings.schedule(settings.learning_rate, settings.learning_rate * DECAY).tolist()
        self.temperatures = settings.schedule(*settings.temperature).tolist()
        self.history: list[EpochReport] = []  # One report a finished epoch
        self.best: _Best | None = None
        #: Whether the callback has said that it is enough.
        self.is_stopped = False

    def run(self, n_jobs: int | None = None, file: TrainingCheckpoint | None = None) -> TrainingOutcome:
        """Train all epochs."""
        self.engine = self._make_engine(n_jobs)
        if file is not None:
            file.restore(self.set_state)
            if not self.is_over:
                file.keep(self.freeze())  # a path that cannot be written to is an error now, and not in ten minutes
        with contextlib.nullcontext() if file is None else file:
            while not (self.is_over or self.is_stopped):
                report = self.end_epoch(self.engine.epoch(self.plan(), *self.schedule()))
                if file is not None:
                    file.keep(self.freeze())
                self.tell(report)
        return self.outcome()

    def _make_engine(self, n_jobs: int | None) -> Engine:
        """Return what trains this one on its device."""
        data, settings, loss, state = self.data, self.settings, self.loss, self.state
        if isinstance(state, TermState):
            if data.device != "cpu" or not is_fusible(loss, settings.dtype):
                raise ValueError(
                    f"k-trees are trained by the library's own losses, in float32 and on device='cpu'; got {loss!r}, "
                    f"{settings.dtype} and device={data.device!r}."
                )
            return TermEngine(state, data, self.weights, loss, settings.batch_size)
        if data.device == "cuda":
            data.require_complete("Gradient TAN on device='cuda' (not so on 'cpu', which sums them out)")
            if is_built_in(loss):
                population = CudaPopulation([state], data, self.weights, [loss], settings.batch_size)
                return CudaEngine(population, 0, data)
        elif is_fusible(loss, settings.dtype) and (state.candidates.has_one_parent or not data.has_missing):
            n_threads = number_of_threads(n_jobs)
            return FusedEngine(state, data, self.weights, loss, settings.batch_size, n_threads)
        return UnfusedEngine(state, data, self.weights, loss)

    def cuda_bytes(self) -> int:
        """Return about how much memory this takes on CUDA, the rows aside: tables, and an epoch's batches."""
        size = min(self.settings.batch_size, self.data.n_samples)
        n_steps = self.data.n_samples // size
        chunk = row_packing(self.data.n_classes, self.state.cells.dtype)[1]
        codes = -(-size // chunk) * chunk * self.data.n_features * self.data.codes.itemsize
        batches = n_steps * (codes + 4 * size + 4 * len(self.state.phi))
        return 4 * self.state.cells.nbytes + batches + 3 * sum(array.nbytes for array in self.state.graph)

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done, or patience is at its end."""
        n_done, patience = len(self.history), self.settings.patience
        impatient = patience is not None and self.best is not None and n_done - self.best.since >= patience
        return impatient or n_done >= self.settings.n_epochs

    @property
    def is_last(self) -> bool:
        """Whether the next epoch is the last that is planned."""
        return len(self.history) + 1 >= self.settings.n_epochs

    def plan(self) -> Plan:
        """Return what is random in an epoch; every epoch has a plan of its own, drawn in order."""
        data, n_tables = self.data, self.state.candidates.n_tables
        return plan_epoch(data.n_samples, self.settings.batch_size, n_tables, self.rng, self.engine.noise_device)

    def schedule(self) -> tuple[tuple[float, float], float]:
        """Return what the next epoch is trained with; after the last one, what that was."""
        n_done = min(len(self.history), self.settings.n_epochs - 1)
        return (self.rates[n_done], self.settings.structure_learning_rate), self.temperatures[n_done]

    def tell(self, report: EpochReport) -> None:
        """Have the callback look at an epoch, and say whether it is enough."""
        self.is_stopped = self.callback is not None and bool(self.callback(report))

    def end_epoch(self, mean_loss: float) -> EpochReport:
        """Look at an epoch that the engine has trained, and remember its model if it is the best on validation rows."""
        settings, state = self.settings, self.state
        (rate, _), temperature = self.schedule()
        epoch = len(self.history) + 1
        if not np.isfinite(mean_loss):
            raise FloatingPointError(
                f"training diverged in epoch {epoch}: the loss is {mean_loss}. Lower learning_rate "
                f"({settings.learning_rate}) or the weight of the loss ({self.loss})."
            )
        error = None
        if self.validation is not None:
            model = self.engine.pull().most_probable()
            error = error_rate(*model, self.validation)
            if self.best is None or error <= self.best.error:
                since = epoch if self.best is None or error < self.best.error else self.best.since
                self.best = _Best(error, since, *model, state.probabilities())
        report = EpochReport(epoch, settings.n_epochs, mean_loss, rate, temperature, state.structure_entropy(), error)
        self.history.append(report)
        return report

    def outcome(self) -> TrainingOutcome:
        """Return the model of the best epoch, or without validation rows, of the last."""
        state = self.engine.pull()
        parameters = state.theta, state.phi
        if self.best is not None:
            return TrainingOutcome(*self.best[2:], self.history, parameters)
        return TrainingOutcome(*state.most_probable(), state.probabilities(), self.history, parameters)

    def freeze(self) -> Callable[[], dict[str, Any]]:
        """Return what returns all that the rest of the training depends on now, as values that a file can hold.

        The history is read when that is called: read after every epoch, it would make the time quadratic.
        """
        engine, rng, n_done, best = self.engine.get_state(), self.rng.bit_generator.state, len(self.history), self.best
        return lambda: {
            "engine": engine,
            "rng": rng,
            "history": [vars(report) for report in self.history[:n_done]],
            "best": None if best is None else {**best._asdict(), "tables": best.tables.cells},
        }

    def set_state(self, state: Any) -> None:
        """Go on where a training with the same arguments was."""
        engine, rng, history, best = fields(state, "engine", "rng", "history", "best")
        self.engine.set_state(engine)
        self.rng.bit_generator.state = rng
        self.history = [EpochReport(**report) for report in history]
        if best is not None:
            error, since, structure, cells, probabilities = fields(best, *_Best._fields)
            table = structure, self.data.n_states, self.data.n_classes, cells
            tables = restore_tables(*table, is_normalized=not self.settings.terms)
            if self.settings.fixed_point is not None:
                tables = round_tables(tables, self.settings.fixed_point)
            self.best = _Best(error, since, structure, tables, probabilities)


def error_rate(structure: Structure, tables: Tables, data: EncodedData) -> float:
    """Return the weighted share of rows that a model gets wrong."""
    wrong = log_joint(tables, structure, data.codes, device=data.device).argmax(axis=1) != data.y
    return float(np.average(wrong, weights=data.sample_weight))
