"""Gradient TAN: joint training of structure and parameters (differentiable TAN, section 3)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tanlearn._memory import format_size
from tanlearn._threads import number_of_threads
from tanlearn._typing import FloatArray
from tanlearn._warnings import warn
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import fields
from tanlearn.files.fingerprints import digest
from tanlearn.kernels._cuda import is_out_of_memory
from tanlearn.models.bayes_net import restore_tables
from tanlearn.models.log_joint import log_joint
from tanlearn.models.quantization import round_tables
from tanlearn.models.tables import Tables
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.structures import Structure
from tanlearn.training.checkpoint import TrainingCheckpoint
from tanlearn.training.cuda_population import CudaEngine, CudaPopulation, MemoryNeed, memory_need
from tanlearn.training.engines import Engine, FusedEngine, UnfusedEngine, is_fusible
from tanlearn.training.history import EpochReport, Stopwatch
from tanlearn.training.losses import Loss, is_built_in
from tanlearn.training.settings import TrainingOutcome, TrainingSettings
from tanlearn.training.tan_state import Plan, State, plan_epoch
from tanlearn.training.term_engine import TermEngine
from tanlearn.training.term_state import TermState

__all__ = ["Training", "error_rate", "train"]

#: Ratio of the last to the first learning rate of the CPTs. The decay is exponential ([DT] 4.2).
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
    is_format_given: bool = True,
) -> TrainingOutcome:
    """Train structure and parameters together by gradient descent.

    Missing values are marginalized in the drawn structures. This is supported only for acyclic structures on the CPU.
    Weights multiply the loss, relative to their mean. If every feature has one candidate, the structure is fixed.

    If there are ``validation`` rows, the parameters of the epoch with the lowest validation error are returned (the
    last of several such epochs), and ``settings.patience`` may end the training early. ``callback`` is called with an
    :class:`EpochReport` after each epoch, and a true return value stops the training. ``n_jobs`` threads are used if a
    step is long enough. The outcome does not depend on the number of threads. ``start`` contains the ``parameters`` of
    an earlier outcome. If its first entry is None, the CPTs are initialized as usual. If ``is_format_given`` is true, a
    warning is issued if the number format rounds initial CPTs to zero.

    ``checkpoint`` is a file for finished epochs, from which the training resumes if the file exists. It is written
    before the first epoch, then at the end of an epoch if ten seconds, and 50 times the duration of the last write,
    have passed, and when the training ends, even by an exception such as KeyboardInterrupt. After SIGTERM or SIGKILL,
    the file contains the last write. Only one process at a time may use a path. All arguments except ``callback`` and
    ``n_jobs`` must be the same as in the interrupted training, including the state of ``rng``.

    Raises ValueError if the data are not supported, or if the checkpoint or ``start`` belongs to another training;
    OSError if the checkpoint cannot be read or written; and FloatingPointError if the loss or a gradient is not finite.
    """
    file = None
    if checkpoint is not None:
        arguments = [data, candidates, loss, settings, rng.bit_generator.state, validation]
        arguments += [] if start is None else [start]
        file = TrainingCheckpoint(checkpoint, digest("training", arguments))
    training = Training(data, candidates, loss, settings, rng, validation=validation, callback=callback, start=start)
    if is_format_given and settings.fixed_point is not None and not settings.terms:
        _warn_of_zeros(training.state, data)
    return training.run(n_jobs, file)


def _warn_of_zeros(state: State, data: EncodedData) -> None:
    """Warn if the number format rounds the initial CPTs of features to zero."""
    features = state.features_at_zero()
    if not features.size:
        return
    form: Any = state.fixed_point
    warn(
        f"bits=({form.integer_bits}, {form.fraction_bits}) rounds all initial log-probabilities of {len(features)} of "
        f"{state.candidates.n_features} features to 0 (the first is {data.label(features[0])}), because the step "
        f"of {form.step:g} is too large for them. The parents of these features have no gradient until training has "
        f"lowered a log-probability below {-form.step / 2:g}. Use more fraction bits, or bits={form.n_bits}, which "
        f"trains with several numbers of integer and fraction bits and keeps the best."
    )


class _Best(NamedTuple):
    """Model of the best epoch so far according to the validation rows."""

    error: float
    #: First epoch with this error. The model is from the last epoch with this error.
    since: int
    structure: Structure
    tables: Tables
    probabilities: list[dict[int, float]]


class Training:
    """Gradient training that can be run epoch by epoch, with the arguments of :func:`train`."""

    engine: Engine  # trains the epochs, created by :meth:`run`

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
                "these candidates can form a cycle and contain pairs of parents, so they cannot be drawn as trees. Use "
                "KTreeClassifier, or restrict each feature to parents that precede it in some order."
            )
        if data.has_missing and not (candidates.is_acyclic or settings.terms):
            raise ValueError(
                "values are missing and cannot be marginalized in the cycles that these candidates can form. Draw "
                "trees with arborescence=True, or restrict each feature to parents that precede it in some order."
            )
        if data.n_classes < 2:
            raise ValueError(
                f"training by gradient needs at least two classes, got {data.n_classes}. Add rows of another class, "
                f"or use MaximumLikelihood()."
            )
        self.data, self.loss, self.settings, self.rng, self.validation = data, loss, settings, rng, validation
        self.callback = callback
        self.state: Any  # State or TermState
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
        self.history: list[EpochReport] = []  # one report per finished epoch
        self._stopwatch, self._seconds_before = Stopwatch(), 0.0
        self.best: _Best | None = None
        #: True if the callback has stopped the training.
        self.is_stopped = False

    def run(self, n_jobs: int | None = None, file: TrainingCheckpoint | None = None) -> TrainingOutcome:
        """Resume from ``file`` if it exists, train all remaining epochs, and return the outcome."""
        self.engine = self._make_engine(n_jobs)
        if file is not None:
            file.restore(self.set_state)
            if not self.is_over:
                file.keep(self.freeze())  # raises an error at once if the path is not writable
        with contextlib.nullcontext() if file is None else file:
            while not (self.is_over or self.is_stopped):
                report = self.end_epoch(self.engine.epoch(self.plan(), *self.schedule()))
                if file is not None:
                    file.keep(self.freeze())
                self.tell(report)
        return self.outcome()

    def _make_engine(self, n_jobs: int | None) -> Engine:
        """Create the engine for the loss, dtype and device of this training."""
        data, settings, loss, state = self.data, self.settings, self.loss, self.state
        if isinstance(state, TermState):
            if data.device != "cpu" or not is_fusible(loss, settings.dtype):
                raise ValueError(
                    f"k-trees support only built-in losses, dtype float32 and device='cpu', got {loss!r}, "
                    f"{settings.dtype} and device={data.device!r}."
                )
            return TermEngine(state, data, self.weights, loss, settings.batch_size)
        if data.device != "cpu":
            data.require_complete(
                f"Gradient TAN on device={data.device!r} (unlike 'cpu', which marginalizes missing values)"
            )
            if is_built_in(loss):
                try:
                    population = CudaPopulation([state], data, self.weights, [loss], settings.batch_size)
                except Exception as error:
                    if is_out_of_memory(error):
                        raise self.memory_error(error) from error
                    raise
                return CudaEngine(population, 0, data)
        elif is_fusible(loss, settings.dtype) and (state.candidates.has_one_parent or not data.has_missing):
            n_threads = number_of_threads(n_jobs)
            return FusedEngine(state, data, self.weights, loss, settings.batch_size, n_threads)
        return UnfusedEngine(state, data, self.weights, loss)

    def cuda_memory(self) -> MemoryNeed:
        """Return the CUDA memory that this training needs, and the part that trainings on the same rows share."""
        return memory_need(self.state, self.data, self.settings.batch_size)

    def memory_error(self, error: Exception) -> MemoryError:
        """Return the error for a training that does not fit into the device, given the error of CuPy or CUDA."""
        size = format_size(sum(self.cuda_memory()))
        return MemoryError(
            f"this training needs about {size} on device={self.data.device!r}, more than the free memory ({error}). "
            f"Use fewer candidates per feature or fewer values per column, end other programs on the device, or use "
            f"device='cpu'."
        )

    @property
    def is_over(self) -> bool:
        """True if all epochs are finished or the patience is exhausted."""
        n_done, patience = len(self.history), self.settings.patience
        impatient = patience is not None and self.best is not None and n_done - self.best.since >= patience
        return impatient or n_done >= self.settings.n_epochs

    def plan(self) -> Plan:
        """Draw the random numbers for the next epoch on the engine's device. Call this once per epoch, in order."""
        data, n_tables = self.data, self.state.candidates.n_tables
        return plan_epoch(data.n_samples, self.settings.batch_size, n_tables, self.rng, self.engine.noise_device)

    def schedule(self, n_done: int | None = None) -> tuple[tuple[float, float], float]:
        """Return the learning rates (CPTs, structure logits) and the temperature of the epoch after ``n_done`` epochs.

        By default, these are the values for the next epoch. After the last epoch, the values of the last epoch are
        returned.
        """
        n_done = min(len(self.history) if n_done is None else n_done, self.settings.n_epochs - 1)
        return (self.rates[n_done], self.settings.structure_learning_rate), self.temperatures[n_done]

    def tell(self, report: EpochReport) -> None:
        """Call the callback with the report of an epoch, and stop the training if it returns true."""
        self.is_stopped = self.callback is not None and bool(self.callback(report))

    def end_epoch(self, mean_loss: float) -> EpochReport:
        """Record a trained epoch, keep its model if it is the best on the validation rows, and return a report.

        Raises FloatingPointError if ``mean_loss`` is not finite.
        """
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
        seconds = self._seconds_before + self._stopwatch.seconds
        entropy = state.structure_entropy()
        report = EpochReport(epoch, settings.n_epochs, mean_loss, rate, temperature, entropy, error, seconds)
        self.history.append(report)
        return report

    def outcome(self) -> TrainingOutcome:
        """Return the outcome with the model of the best epoch, or of the last epoch if there are no validation rows."""
        state = self.engine.pull()
        if not np.isfinite(state.theta).all():  # checks the last step, after which no loss was computed
            raise FloatingPointError(
                f"training diverged in epoch {len(self.history)}: a parameter is not finite. Lower learning_rate "
                f"({self.settings.learning_rate}) or the weight of the loss ({self.loss})."
            )
        parameters = state.theta, state.phi
        if self.best is not None:
            return TrainingOutcome(*self.best[2:], self.history, parameters)
        return TrainingOutcome(*state.most_probable(), state.probabilities(), self.history, parameters)

    def freeze(self) -> Callable[[], dict[str, Any]]:
        """Return a function that returns the current state of the training as values that a file can store.

        The history is copied only when the function is called, because copying it after each epoch would take quadratic
        time.
        """
        engine, rng, n_done, best = self.engine.get_state(), self.rng.bit_generator.state, len(self.history), self.best
        return lambda: {
            "engine": engine,
            "rng": rng,
            "history": [vars(report) for report in self.history[:n_done]],
            "best": None if best is None else {**best._asdict(), "tables": best.tables.cells},
        }

    def set_state(self, state: Any) -> None:
        """Resume from a state of a training with the same arguments. Raise ValueError if the training was different."""
        engine, rng, history, best = fields(state, "engine", "rng", "history", "best")
        self.engine.set_state(engine)
        self.rng.bit_generator.state = rng
        self.history = [EpochReport(**report) for report in history]
        self._seconds_before = self.history[-1].seconds if self.history else 0.0
        if best is not None:
            error, since, structure, cells, probabilities = fields(best, *_Best._fields)
            table = structure, self.data.n_states, self.data.n_classes, cells
            tables = restore_tables(*table, is_normalized=not self.settings.terms)
            if self.settings.fixed_point is not None:
                tables = round_tables(tables, self.settings.fixed_point)
            self.best = _Best(error, since, structure, tables, probabilities)


def error_rate(structure: Structure, tables: Tables, data: EncodedData) -> float:
    """Return the weighted fraction of rows that the model misclassifies, with missing values marginalized."""
    wrong = log_joint(tables, structure, data.codes, device=data.device).argmax(axis=1) != data.y
    return float(np.average(wrong, weights=data.sample_weight))
