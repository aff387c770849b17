"""Gradient training of many models on CUDA in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tanlearn.training.cuda_population import CudaEngine, CudaPopulation
from tanlearn.training.losses import is_built_in
from tanlearn.training.settings import TrainingOutcome
from tanlearn.training.training import Training

__all__ = ["train_together"]


def train_together(
    trainings: Sequence[Training], progress: Callable[[str], Any] | None = None
) -> list[TrainingOutcome | Exception]:
    """Run all trainings on CUDA, together where they share rows, batch size and type, and return outcomes in order.

    The trainings must not have begun. Each outcome equals that of a separate run. A training that fails returns its
    exception and does not affect the others. Custom losses are evaluated on the host, so their trainings run
    separately. ``progress`` receives a line of text about ten times per group.
    """
    outcomes: list[TrainingOutcome | Exception | None] = [None] * len(trainings)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, training in enumerate(trainings):
        if is_built_in(training.loss) and not training.data.has_missing:
            data = training.data
            arrays = data.codes, data.y, data.sample_weight, data.n_states
            key = *map(id, arrays), data.n_classes, training.settings.batch_size, training.settings.dtype
            groups.setdefault(key, []).append(number)
            continue
        try:
            outcomes[number] = training.run()
        except Exception as error:  # the user's loss may raise anything
            outcomes[number] = error.with_traceback(None)
        _release([training])
    for members in groups.values():
        for number, outcome in zip(members, _train_group([trainings[m] for m in members], progress), strict=True):
            outcomes[number] = outcome
    return [outcome for outcome in outcomes if outcome is not None]


def _train_group(
    trainings: Sequence[Training], progress: Callable[[str], Any] | None
) -> list[TrainingOutcome | Exception]:
    """Train one population; if memory does not suffice, train its halves one after the other."""
    first = trainings[0]
    problem: Exception
    try:
        population = CudaPopulation(
            [training.state for training in trainings],
            first.data,
            first.weights,
            [training.loss for training in trainings if is_built_in(training.loss)],
            first.settings.batch_size,
        )
    except Exception as error:
        problem = error.with_traceback(None)  # its frames would keep the allocated device memory alive
    else:
        return _train_population(population, trainings, progress)
    if len(trainings) == 1:
        return [problem]
    middle = len(trainings) // 2
    return _train_group(trainings[:middle], progress) + _train_group(trainings[middle:], progress)


def _train_population(
    population: CudaPopulation, trainings: Sequence[Training], progress: Callable[[str], Any] | None
) -> list[TrainingOutcome | Exception]:
    """Train all runs of the population until each has ended."""
    for run, training in enumerate(trainings):
        training.engine = CudaEngine(population, run, training.data)
    failures: dict[int, Exception] = {}
    plans = [training.plan() for training in trainings]
    active = list(range(len(trainings)))
    n_epochs = max(training.settings.n_epochs for training in trainings)
    for epoch in range(1, n_epochs + 1):
        if not active:
            break
        chosen = [plans[run] if run in active else None for run in range(len(trainings))]
        schedules = [training.schedule() for training in trainings]
        population.start_epoch(chosen, [rates for rates, _ in schedules], [heat for _, heat in schedules])
        try:
            # Plans are drawn while the device computes. A run that stops early has drawn one unused plan.
            for run in active:
                if not trainings[run].is_last:
                    plans[run] = trainings[run].plan()
        finally:  # also after an interrupt: memory that CUDA still writes to must not be reused
            losses = population.finish_epoch()
        for run in list(active):
            training = trainings[run]
            try:
                training.tell(training.end_epoch(losses[run]))
            except Exception as error:  # a callback may raise anything
                # The frames of the traceback would keep the population alive.
                failures[run] = error.with_traceback(None)
            if run in failures or training.is_over or training.is_stopped:
                active.remove(run)
        if progress is not None and (epoch % max(1, n_epochs // 10) == 0 or not active):
            progress(f"epoch {epoch}/{n_epochs} of {len(trainings)} trainings in step, {len(active)} of them go on")
    outcomes = [failures[run] if run in failures else training.outcome() for run, training in enumerate(trainings)]
    _release(trainings)
    return outcomes


def _release(trainings: Sequence[Training]) -> None:
    """Delete the engines of the trainings, to free their device memory."""
    for training in trainings:
        vars(training).pop("engine", None)
