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
    """Train structure and parameters together by gradient.

    Parameters
    ----------
    data : EncodedData
        Rows. What they miss is summed out under the structures drawn (complete ones only, if cycles are allowed).
        Weights multiply the loss, relative to their mean.
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
    checkpoint : str or path, optional
        A file to go on from, if it is there, and to write finished epochs to: before the first one, then at the first
        end of an epoch after ten seconds, or after 50 times what the last writing took if that is more, and when the
        training ends, by an exception such as KeyboardInterrupt too. SIGTERM and SIGKILL end a process without: what
        was written last is there. One path is for one process at a time: of two, the later writer would replace the
        other's epochs. All other arguments but ``callback`` and ``n_jobs`` must be those that the file was made with,
        the state of ``rng`` included.
    start : tuple of ndarrays, optional
        The ``parameters`` of an earlier outcome, to start from in place of ``settings.init``; with None in the place of
        the first, tables start there all the same.

    Returns
    -------
    TrainingOutcome

    Raises
    ------
    ValueError
        If a value is missing and the structure may have cycles or the device is "cuda", there is only one class,
        ``start`` is of other candidates, or the checkpoint is of another training, damaged, or of a newer version.
    OSError
        If the checkpoint cannot be read or written; what stood there before is unchanged. Where permission is lacking
        between the first and the last writing, that is a RuntimeWarning. Where another exception ends the training, it
        is a note of that one.
    FloatingPointError
        If the loss or a gradient is no longer finite.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import CandidateSets, EncodedData, Hybrid
    >>> from tanlearn.training.settings import TrainingSettings
    >>> from tanlearn.training.training import train
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (200, 2))
    >>> data = EncodedData.from_codes(x, x[:, 0] ^ x[:, 1])  # exclusive or: naive Bayes cannot learn it
    >>> outcome = train(data, CandidateSets.from_lists([[], [0]]), Hybrid(trade_off=10), TrainingSettings(n_epochs=20),
    ...                 np.random.default_rng(0))
    >>> outcome.structure.parent.tolist()
    [-1, 0]
    """
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
    """A training under way, between two epochs.

    Parameters
    ----------
    data, candidates, loss, settings, rng, validation, callback, start : as for :func:`train`

    Attributes
    ----------
    engine : Engine
        What trains epochs; :meth:`run` makes it.
    state : State
        What is learnt.
    history : list of EpochReport
        One report a finished epoch.

    Raises
    ------
    ValueError
        If a value is missing and the structure may have cycles, there is only one class, or ``start`` is of other
        candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import CandidateSets, EncodedData, Hybrid
    >>> from tanlearn.training.settings import TrainingSettings
    >>> from tanlearn.training.training import Training
    >>> y = np.arange(200) % 2
    >>> data, settings = EncodedData.from_codes(y[:, np.newaxis], y), TrainingSettings(n_epochs=2)
    >>> training = Training(data, CandidateSets.from_lists([[]]), Hybrid(), settings, np.random.default_rng(0))
    >>> training.is_over, training.schedule()  # rates of tables and structure logits, temperature
    (False, ((0.03, 0.001), 10.0))
    >>> outcome = training.run()
    >>> training.is_over, len(training.history), outcome.structure.parent.tolist()
    (True, 2, [-1])
    """

    engine: Engine

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
        self.data, self.loss, self.settings, self.rng, self.validation = data, loss, settings, rng, validation
        self.callback = callback
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
        self.history: list[EpochReport] = []
        self.best: _Best | None = None
        #: Whether the callback has said that it is enough.
        self.is_stopped = False

    def run(self, n_jobs: int | None = None, file: TrainingCheckpoint | None = None) -> TrainingOutcome:
        """Train all epochs.

        Parameters
        ----------
        n_jobs : int, optional
            Threads, as in joblib.
        file : TrainingCheckpoint, optional
            Where to go on from, and to write to.

        Returns
        -------
        TrainingOutcome

        Raises
        ------
        ValueError, OSError, FloatingPointError
            As by :func:`train`.
        """
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
        """Return about how much memory this takes on CUDA, the rows aside: tables, and an epoch's batches.

        Returns
        -------
        int
            Bytes.
        """
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
        """Return what is random in an epoch; every epoch has a plan of its own, drawn in order.

        Returns
        -------
        Plan
            What :func:`~tanlearn.training.state.plan_epoch` returns, for the device of the engine.
        """
        data, n_tables = self.data, self.state.candidates.n_tables
        return plan_epoch(data.n_samples, self.settings.batch_size, n_tables, self.rng, self.engine.noise_device)

    def schedule(self) -> tuple[tuple[float, float], float]:
        """Return what the next epoch is trained with; after the last one, what that was.

        Returns
        -------
        rates : tuple of (float, float)
            Learning rates of tables and of structure logits.
        temperature : float
            Of the softmax that the structure gradient goes through.
        """
        n_done = min(len(self.history), self.settings.n_epochs - 1)
        return (self.rates[n_done], self.settings.structure_learning_rate), self.temperatures[n_done]

    def tell(self, report: EpochReport) -> None:
        """Have the callback look at an epoch, and say whether it is enough.

        Parameters
        ----------
        report : EpochReport
            What :meth:`end_epoch` returned.
        """
        self.is_stopped = self.callback is not None and bool(self.callback(report))

    def end_epoch(self, mean_loss: float) -> EpochReport:
        """Look at an epoch that the engine has trained, and remember its model if it is the best on validation rows.

        Parameters
        ----------
        mean_loss : float
            What the engine returned: the mean loss of a row under the structures drawn.

        Returns
        -------
        EpochReport
            The last of ``history``.

        Raises
        ------
        FloatingPointError
            If the loss is not finite.
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
        report = EpochReport(epoch, settings.n_epochs, mean_loss, rate, temperature, state.structure_entropy(), error)
        self.history.append(report)
        return report

    def outcome(self) -> TrainingOutcome:
        """Return the model of the best epoch, or without validation rows, of the last.

        Returns
        -------
        TrainingOutcome
        """
        state = self.engine.pull()
        parameters = state.theta, state.phi
        if self.best is not None:
            return TrainingOutcome(*self.best[2:], self.history, parameters)
        return TrainingOutcome(*state.most_probable(), state.probabilities(), self.history, parameters)

    def freeze(self) -> Callable[[], dict[str, Any]]:
        """Return what returns all that the rest of the training depends on now, as values that a file can hold.

        The history is read when that is called: read after every epoch, it would make the time quadratic.

        Returns
        -------
        callable
            Without arguments; returns the dictionary that :meth:`set_state` takes.
        """
        engine, rng, n_done, best = self.engine.get_state(), self.rng.bit_generator.state, len(self.history), self.best
        return lambda: {
            "engine": engine,
            "rng": rng,
            "history": [vars(report) for report in self.history[:n_done]],
            "best": None if best is None else {**best._asdict(), "tables": best.tables.cells},
        }

    def set_state(self, state: Any) -> None:
        """Go on where a training with the same arguments was.

        Parameters
        ----------
        state : dict
            What the callable of its :meth:`freeze` returned.

        Raises
        ------
        ValueError
            If that is of another training.
        """
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
    """Return the weighted share of rows that a model gets wrong.

    Parameters
    ----------
    structure : Structure
        The model's parents.
    tables : Tables
        Their tables.
    data : EncodedData
        Rows; what they miss is summed out.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, MaximumLikelihood, Structure
    >>> from tanlearn.training.training import error_rate
    >>> data = EncodedData.from_codes([[0], [1], [1], [1]], [0, 1, 1, 0])
    >>> tables = MaximumLikelihood().fit(Structure([-1]), data, np.random.default_rng(0))
    >>> error_rate(Structure([-1]), tables, data)
    0.25
    """
    wrong = log_joint(tables, structure, data.codes, device=data.device).argmax(axis=1) != data.y
    return float(np.average(wrong, weights=data.sample_weight))
