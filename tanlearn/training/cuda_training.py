"""Gradient training of many models on CUDA in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn.kernels._cuda import cupy, is_out_of_memory, on_device, without_frames
from tanlearn.training.cuda_population import CudaEngine, CudaPopulation
from tanlearn.training.history import EpochReport
from tanlearn.training.losses import is_built_in
from tanlearn.training.settings import TrainingOutcome
from tanlearn.training.tan_state import Plan
from tanlearn.training.training import Training

__all__ = ["train_together"]


def train_together(
    trainings: Sequence[Training], progress: Callable[[str], Any] | None = None
) -> list[TrainingOutcome | Exception]:
    """Run all trainings on CUDA, together if they share rows, batch size and dtype, and return their outcomes in order.

    The trainings must not have begun. Each outcome is the same as in a separate run. If a training fails, its outcome
    is the exception, and the others are not affected. Trainings with custom losses run separately, because these losses
    are evaluated on the host. ``progress`` receives a line of text about ten times per group.

    If memory runs out, even within an epoch, the group is divided into two halves, which continue one after the other.
    The results stay the same; only with 64 or more features, the last bits may depend on the size of a group.
    """
    outcomes: list[TrainingOutcome | Exception | None] = [None] * len(trainings)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, training in enumerate(trainings):
        if is_built_in(training.loss) and not training.data.has_missing:
            data = training.data
            arrays = data.codes, data.y, data.sample_weight, data.n_states
            key = *map(id, arrays), data.device, data.n_classes, training.settings.batch_size, training.settings.dtype
            groups.setdefault(key, []).append(number)
            continue
        try:
            outcomes[number] = training.run()
        except Exception as error:  # the user's loss may raise anything
            outcomes[number] = without_frames(error)
        _release([training])
    for numbers in groups.values():
        group = [_GroupedTraining(trainings[number]) for number in numbers]
        _train_group(group, progress)
        for number, one in zip(numbers, group, strict=True):
            outcomes[number] = one.outcome
    return [outcome for outcome in outcomes if outcome is not None]


class _GroupedTraining:
    """One training of a group, with a copy of its parameters at the end of an epoch, from which it can be continued.

    If memory runs out, the epochs after this copy are trained again in a smaller population, with the same random
    numbers. Recorded epochs are not recorded again.
    """

    def __init__(self, training: Training) -> None:
        self.training = training
        self.outcome: TrainingOutcome | Exception | None = None
        self.n_kept = 0  # epochs before the kept parameters
        self.n_trained = 0  # epochs of the present parameters
        self._state: dict[str, AnyArray] | None = None  # kept parameters; None for the initial parameters
        self._phi = training.state.phi.copy()  # of the beginning
        #: Initial CPTs, if the evaluation of validation rows overwrites them.
        self._theta = None if training.validation is None else training.state.theta.copy()
        self._rng_state = training.rng.bit_generator.state  # before the plan of the first epoch after the kept epochs
        self._rng_states: dict[int, Any] = {}  # before the last two plans, by the number of epochs before them
        self._n_planned = 0
        self._loss: float | None = None  # of a trained epoch that is not recorded

    def restart(self) -> None:
        """Return to the kept parameters before a population is created."""
        training = self.training
        self.n_trained = self._n_planned = self.n_kept
        self._rng_states.clear()
        training.rng.bit_generator.state = self._rng_state
        if self.n_kept != len(training.history) + 1:
            self._loss = None  # of an epoch that is trained again
        if self._state is None:
            training.state.phi[:] = self._phi
            if self._theta is not None:
                training.state.theta[:] = self._theta

    def join(self, population: CudaPopulation, run: int) -> None:
        """Copy the kept parameters to a run of a population, which then trains the next epochs."""
        self.training.engine = CudaEngine(population, run, self.training.data)
        if self._state is not None:
            population.set_state(run, self._state, self.n_kept)

    def keep(self, population: CudaPopulation, run: int) -> None:
        """Keep the present parameters, unless an unfinished epoch has changed them."""
        is_present = self.n_trained == self.n_kept + population.n_epochs
        if self.outcome is None and population.n_epochs and is_present:
            self._state = population.get_state(run)
            self._rng_state = self._rng_states.get(self.n_trained, self.training.rng.bit_generator.state)
            self.n_kept = self.n_trained

    def plan(self) -> Plan | None:
        """Draw the random numbers of the next epoch, unless the last epoch is already planned."""
        if self._n_planned >= self.training.settings.n_epochs:
            return None
        state = self.training.rng.bit_generator.state
        self._rng_states = {self._n_planned - 1: self._rng_states.get(self._n_planned - 1), self._n_planned: state}
        plan = self.training.plan()
        self._n_planned += 1
        return plan

    def take(self, loss: float) -> None:
        """Store the mean loss of a trained epoch."""
        self.n_trained += 1
        if self.n_trained > len(self.training.history):
            self._loss = loss

    def record(self) -> None:
        """Record the epoch of the last loss, if there is one, and the outcome if the training has ended.

        If the training raises an error, the error is the outcome. If memory runs out before the epoch is recorded, the
        error is raised.
        """
        training = self.training
        try:
            if self._loss is not None:
                report = training.end_epoch(self._loss)
                self._loss = None
                self._call_back(report)
            if self.outcome is None and (training.is_over or training.is_stopped):
                self.outcome = training.outcome()
        except Exception as error:
            if is_out_of_memory(error):
                raise
            self.outcome = without_frames(error)

    def _call_back(self, report: EpochReport) -> None:
        """Call the callback of the training, which may raise anything."""
        try:
            self.training.tell(report)
        except Exception as error:
            self.outcome = without_frames(error)


def _train_group(grouped: Sequence[_GroupedTraining], progress: Callable[[str], Any] | None) -> None:
    """Train a group in one population, or in halves if memory runs out, until each training has an outcome."""
    groups = [list(grouped)]
    while groups:
        group = [one for one in groups.pop() if one.outcome is None]
        if not group:
            continue
        error = _try_group(group, progress)
        if error is None:
            continue
        with on_device(group[0].training.data.device):
            cupy().get_default_memory_pool().free_all_blocks()
        if len(group) == 1:
            group[0].outcome = group[0].training.memory_error(error) if is_out_of_memory(error) else error
            continue
        if progress is not None:
            progress(
                f"{len(group)} trainings together do not fit into the memory of the device, so they continue in two "
                f"halves"
            )
        middle = len(group) // 2
        groups += [group[middle:], group[:middle]]


def _try_group(group: Sequence[_GroupedTraining], progress: Callable[[str], Any] | None) -> Exception | None:
    """Train a group in one population. Return the error if memory runs out and the group can be divided."""
    population = None
    trainings = [one.training for one in group]
    first = trainings[0]
    for one in group:
        one.restart()
    try:
        population = CudaPopulation(
            [training.state for training in trainings],
            first.data,
            first.weights,
            [training.loss for training in trainings if is_built_in(training.loss)],
            first.settings.batch_size,
        )
        _train_population(population, group, progress)
    except Exception as error:
        if population is not None:
            if not is_out_of_memory(error):
                raise
            with suppress(MemoryError):  # more epochs are trained again
                for run, one in enumerate(group):
                    one.keep(population, run)
        return without_frames(error)
    finally:
        _release(trainings)
    return None


def _train_population(
    population: CudaPopulation, group: Sequence[_GroupedTraining], progress: Callable[[str], Any] | None
) -> None:
    """Train all runs of the population until each has an outcome."""
    for run, one in enumerate(group):
        one.join(population, run)
        one.record()  # an epoch that was trained when memory ran out
    active = [run for run, one in enumerate(group) if one.outcome is None]
    plans = [group[run].plan() if run in active else None for run in range(len(group))]
    n_epochs = max(one.training.settings.n_epochs for one in group)
    while active:
        chosen = [plans[run] if run in active else None for run in range(len(group))]
        schedules = [one.training.schedule(one.n_trained) for one in group]
        population.start_epoch(chosen, [rates for rates, _ in schedules], [heat for _, heat in schedules])
        try:
            # Plans are drawn while the device computes. A run that stops early has drawn one unused plan.
            for run in active:
                plans[run] = group[run].plan()
        finally:  # also after an interrupt: memory that CUDA still writes to must not be reused
            losses = population.finish_epoch()
        for run in active:
            group[run].take(losses[run])
        for run in active:
            group[run].record()
        epoch = group[active[0]].n_trained
        active = [run for run in active if group[run].outcome is None]
        if progress is not None and (epoch % max(1, n_epochs // 10) == 0 or not active):
            progress(
                f"epoch {epoch}/{n_epochs} of {len(group)} simultaneous trainings, {len(active)} of them still running"
            )


def _release(trainings: Sequence[Training]) -> None:
    """Delete the engines of the trainings, to free their device memory."""
    for training in trainings:
        vars(training).pop("engine", None)
