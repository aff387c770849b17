"""Selection of parameter learners and their numbers of iterations on held-out rows.

The structure is given, or it is learned again without the held-out rows of each split (``learned_structure``). Each
learner is fitted to each split, and the held-out rows are classified at several numbers of iterations. There are
usually few rows, so the lowest of many errors may be low by chance. Of all candidates whose error is close to the
lowest error, the candidate with the lowest log loss is selected. Each candidate is evaluated at its best temperature.
The result includes the calibration of the scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import validation_masks
from tanlearn.encoding.weights import log_frequencies
from tanlearn.models.calibration import Calibration, EvidenceCalibration
from tanlearn.models.log_joint import log_joint
from tanlearn.models.tables import Tables
from tanlearn.parameters.held_out_calibration import calibrate, temper_evidence
from tanlearn.parameters.learned_structure import structures_of_parts
from tanlearn.parameters.monotone_cpts import MonotoneCPTs
from tanlearn.parameters.parameter_learner import needs_of
from tanlearn.structures.structures import Structure

__all__ = ["Choice", "FittedTables", "after_iterations", "choose", "evaluation_iterations", "held_out_parts"]

#: Temperatures at which log losses are measured: 1/4 to 128, in steps of a factor sqrt(2).
TEMPERATURES = 2.0 ** np.arange(-2, 7.25, 0.5)
#: Maximum number of rows, and of scores, per split for calibration. They are stored for each evaluation.
MOST_ROWS, MOST_SCORES = 10_000, 500_000
#: Number of standard errors above the lowest held-out error up to which an error counts as equal to it.
TOLERANCE = 1.0


@dataclass(frozen=True)
class Choice:
    """Result of the selection on held-out rows."""

    index: int  # index of the selected learner
    n_iter: int  # selected number of iterations, 0 for learners without iterations
    calibration: Calibration  # calibration of the scores of the selected learner
    iterations: IntArray  # (n_evaluations,) numbers of iterations at which learners were evaluated
    errors: FloatArray  # (n_learners, n_evaluations) weighted error on the held-out rows
    # (n_learners, n_evaluations) mean negative log-probability of the true class, at the best temperature
    log_losses: FloatArray
    split_errors: FloatArray  # (n_parts, n_learners, n_evaluations) errors of each split
    # (n_learners,) best evaluation of each learner, regardless of the other learners
    best_evaluations: IntArray


class FittedTables:
    """Learner that returns given CPTs, which were fitted without the held-out rows."""

    def __init__(self, tables: Tables, structure: Structure | None = None) -> None:
        # The structure is set only if it differs from the structure of the other learners.
        self.tables, self.structure = tables, structure

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the given CPTs."""
        return self.tables


class ScheduledCallback:
    """Callback of ``improve`` that evaluates CPTs after some iterations.

    Learners may call :meth:`skip` instead of the callback unless ``is_due``, and need not compute the CPTs then.
    """

    def __init__(self, iterations: Sequence[int], evaluate: Callable[[Tables], bool]) -> None:
        self._iterations, self._evaluate = frozenset(iterations), evaluate
        #: Number of iterations that are done.
        self.n_done = 0

    @property
    def is_due(self) -> bool:
        """True if the CPTs after the present iteration are evaluated."""
        return self.n_done + 1 in self._iterations

    def skip(self) -> bool:
        """Count an iteration without its CPTs."""
        self.n_done += 1
        return False

    def __call__(self, tables: Tables) -> bool:
        """Evaluate the CPTs if an evaluation is due, and return whether the search should stop."""
        is_due = self.is_due
        self.n_done += 1
        return is_due and self._evaluate(tables)


def after_iterations(
    callback: Callable[[Tables], Any] | None, tables_of: Callable[[FloatArray], Tables]
) -> Callable[[FloatArray], Any] | None:
    """Return a callback of an optimizer's parameters from a callback of CPTs, which are computed only if needed."""
    if callback is None:
        return None
    scheduled: Any = callback  # has is_due and skip if not every iteration is evaluated

    def report(parameters: FloatArray) -> Any:
        if not getattr(scheduled, "is_due", True):
            return scheduled.skip()
        return scheduled(tables_of(parameters))

    return report


def held_out_parts(data: EncodedData, cv: float | None = None) -> list[tuple[EncodedData, EncodedData]]:
    """Split rows into pairs of training and held-out rows for cross-validation, or for a single split.

    If ``cv`` is below 1, it is the fraction of rows that is held out once. Otherwise, it is the number of folds. By
    default, there are five folds if rows times features times classes, the number of values that one pass reads, are at
    most 300,000, and three folds up to 3,000,000. For larger data, one fifth of the rows is held out once. Rows of
    weight 0 are dropped. The split depends only on the rows, so deterministic learners need no seed. The list is empty
    if there are fewer than two rows.
    """
    present = data.present()
    n = present.n_samples
    if n < 2:
        return []
    if cv is None:
        size = n * present.n_features * present.n_classes
        # This is one of five folds, because a random fifth might not contain a row of a rare class.
        n_folds, n_used = (5, 5) if size <= 300_000 else (3, 3) if size <= 3_000_000 else (5, 1)
        masks = validation_masks(present.y, present.n_classes, min(n, n_folds), np.random.default_rng(0))[:n_used]
    else:
        masks = validation_masks(present.y, present.n_classes, cv, np.random.default_rng(0))
    return [present.split(held_out) for held_out in masks]


def evaluation_iterations(max_iter: int) -> list[int]:
    """Return the numbers of iterations at which a run is evaluated. They start at 0 and increase by half each time."""
    numbers = np.unique(np.round(1.5 ** np.arange(0, 64)).clip(0, max_iter).astype(int)).tolist()
    return [0, *numbers]


def choose(
    learners: Sequence[Any],
    structure: Structure | Sequence[Structure],
    parts: Sequence[tuple[EncodedData, EncodedData]],
    *,
    iterations: Sequence[int] | None = None,
    patience: int | None = 20,
    n_jobs: int | None = None,
    monotone: MonotoneCPTs | None = None,
) -> Choice:
    """Select a learner and its number of iterations on held-out rows.

    A copy of each learner is fitted to each pair in ``parts`` (training rows, held-out rows). A learner may also be a
    list of FittedTables with one entry per split. Iterative learners are evaluated at the increasing numbers
    ``iterations``, where 0 is the start. Other learners are evaluated once after the fit. If ``iterations`` is None,
    this also applies to iterative learners. A run ends early after ``patience`` iterations without a lower held-out
    error or log loss. A learned structure is learned again for each split
    (:func:`~tanlearn.parameters.learned_structure.structures_of_parts`). If ``monotone`` is set, CPTs are evaluated
    after isotonic regression. The result does not depend on ``n_jobs``.
    """
    n_rows = sum(held_out.in_whole_rows().weights.sum() for _, held_out in parts)
    structures = structures_of_parts(structure, parts, n_jobs) if isinstance(structure, Structure) else structure

    def run_one(task: tuple[int, int]) -> _HeldOutRun:
        i, k = task
        learner = learners[i][k] if isinstance(learners[i], list) else learners[i]
        own = learner.structure if isinstance(learner, FittedTables) else None
        of_part = structures[k] if own is None else own
        own_monotone = None if monotone is None else monotone.on(parts[k][0])
        run = _HeldOutRun(of_part, parts[k][1], 1 / n_rows, iterations, patience, own_monotone)
        # Fitted attributes are set on a shallow copy. Settings and losses are shared, because fitting does not change
        # them.
        return run.fit(copy(learner), parts[k][0], np.random.default_rng(k))

    tasks = [(i, k) for i in range(len(learners)) for k in range(len(parts))]
    with warnings.catch_warnings():
        # SciPy suppresses each warning about a failed line search separately, which is not thread-safe: 3 of 30 fits in
        # four threads issued warnings. They are therefore suppressed throughout.
        warnings.filterwarnings("ignore", message="The line search algorithm")
        runs = in_threads(run_one, tasks, n_jobs)
    n_evaluations = max(len(run.wrong) for run in runs)
    shape = (len(learners), len(parts), n_evaluations)
    # After a run has ended, its last values are used.
    wrong = np.array([run.wrong + run.wrong[-1:] * (n_evaluations - len(run.wrong)) for run in runs]).reshape(shape)
    losses = np.array([run.losses + run.losses[-1:] * (n_evaluations - len(run.losses)) for run in runs])
    losses = losses.reshape(*shape, len(TEMPERATURES)).sum(axis=1)
    weights = np.array([held_out.weights.sum() for _, held_out in parts], dtype=np.float64)
    errors, log_losses = wrong.sum(axis=1) / weights.sum(), losses.min(axis=-1) / weights.sum()
    index, evaluation = _best(errors, log_losses, n_rows)
    chosen = runs[index * len(parts) : (index + 1) * len(parts)]
    distances, y, row_weights = map(
        np.concatenate, zip(*(run.calibration_rows(evaluation) for run in chosen), strict=True)
    )
    row_weights = row_weights / min(1, row_weights.mean())
    calibration = calibrate(distances, y, row_weights, _lowest(losses[index, evaluation]))
    log_frequency = np.concatenate(
        [np.tile(_log_frequency(part[0]), (len(run.stored_rows), 1)) for run, part in zip(chosen, parts, strict=True)]
    )
    evidence = temper_evidence(distances, y, row_weights, log_frequency, calibration)
    if evidence.is_better and not any(run.is_rounded for run in chosen):
        calibration = EvidenceCalibration.of_frequencies(evidence.temperature, _log_frequency(*parts[0]))
    alone = [_best(errors[[i]], log_losses[[i]], n_rows)[1] for i in range(len(learners))]
    alone[index] = evaluation
    return Choice(
        index=index,
        n_iter=0 if iterations is None else iterations[evaluation],
        calibration=calibration,
        iterations=np.array([0] if iterations is None else iterations[:n_evaluations]),
        errors=errors,
        log_losses=log_losses,
        split_errors=np.moveaxis(wrong, 1, 0) / weights[:, np.newaxis, np.newaxis],
        best_evaluations=np.array(alone),
    )


class _HeldOutRun:
    """Evaluations of one learner on the held-out rows of one split."""

    def __init__(
        self,
        structure: Structure,
        held_out: EncodedData,
        smoothing: float,
        iterations: Sequence[int] | None,
        patience: int | None,
        monotone: MonotoneCPTs | None = None,
    ) -> None:
        self.structure, self.held_out, self.smoothing = structure, held_out, smoothing
        self.iterations, self.patience, self.monotone = iterations, patience, monotone
        self.wrong: list[float] = []
        self.losses: list[FloatArray] = []
        rows = np.flatnonzero(held_out.weights)
        most = min(MOST_ROWS, max(1, MOST_SCORES // held_out.n_classes))
        self.stored_rows = rows if len(rows) <= most else np.random.default_rng(0).choice(rows, most, replace=False)
        self.distances: list[AnyArray] = []
        #: Whether CPTs have few bits. They are added up by exported C code, which does not apply a calibration.
        self.is_rounded = False

    def fit(self, learner: Any, data: EncodedData, rng: np.random.Generator) -> _HeldOutRun:
        """Fit a learner, and evaluate it repeatedly until the fit ends or the patience is exhausted."""
        iterations = self.iterations
        if iterations is None or needs_of(learner) != "gradients":
            self.evaluate(learner.fit(self.structure, data, rng))
            return self
        tables = learner.start(self.structure, data, rng)
        if iterations[0] == 0:
            self.evaluate(tables)
        callback = ScheduledCallback(iterations, self.evaluate)
        tables = learner.improve(tables, data, callback, n_iter=iterations[-1])
        if not self.wrong or callback.n_done > iterations[len(self.wrong) - 1]:  # ended between two evaluations
            self.evaluate(tables)
        return self

    def calibration_rows(self, evaluation: int) -> tuple[AnyArray, IntArray, AnyArray]:
        """Return the calibration data of an evaluation: distances of scores, true classes and weights."""
        distances = self.distances[min(evaluation, len(self.distances) - 1)]
        return distances, self.held_out.y[self.stored_rows], self.held_out.weights[self.stored_rows]

    def evaluate(self, tables: Tables) -> bool:
        """Evaluate CPTs on the held-out rows, and return whether the patience is exhausted."""
        if self.monotone is not None:
            tables = self.monotone.apply(tables)
        held_out, self.is_rounded = self.held_out, tables.bits is not None
        scores = log_joint(tables, self.structure, held_out.codes, device=held_out.device)
        self.wrong.append(float(held_out.weights[scores.argmax(axis=1) != held_out.y].sum()))
        self.losses.append(log_loss_by_temperature(scores, held_out.y, held_out.weights, self.smoothing))
        stored = scores[self.stored_rows]
        self.distances.append((stored.max(axis=1, keepdims=True) - stored).astype(np.float32))
        if self.patience is None or self.iterations is None:
            return False
        best = max(int(np.argmin(self.wrong)), int(np.argmin(np.min(self.losses, axis=1))))
        return self.iterations[len(self.wrong) - 1] - self.iterations[best] >= self.patience


def log_loss_by_temperature(scores: FloatArray, y: IntArray, weights: Any, smoothing: float = 0.0) -> FloatArray:
    """Return the summed log loss (n_temperatures,) at each of ``TEMPERATURES``.

    ``scores`` (n_samples, n_classes) must be finite. ``smoothing`` is the fraction of the weight of a row that is added
    to all classes equally. Without it, the temperature would be 0 if all rows are classified correctly, and all
    probabilities would be 0 or 1.
    """
    relative = scores - scores.max(axis=1, keepdims=True)  # a constant per row does not change probabilities
    target = relative[np.arange(len(y)), y] + smoothing * relative.mean(axis=1)
    normalizers = np.stack([np.log(np.exp(relative / temperature).sum(axis=1)) for temperature in TEMPERATURES])
    rows = (1 + smoothing) * normalizers - target / TEMPERATURES[:, np.newaxis]
    return (rows * weights).sum(axis=1)


def _log_frequency(*parts: EncodedData) -> FloatArray:
    """Return the log class frequencies of the rows, with one pseudo-count per class."""
    return log_frequencies(np.sum([part.class_totals() for part in parts], axis=0))


def _best(errors: FloatArray, log_losses: FloatArray, n_rows: float) -> tuple[int, int]:
    """Return the learner with the lowest log loss among those with nearly the lowest error, and its best evaluation."""
    least = errors.min()
    standard_error = np.sqrt(max(least * (1 - least), 1 / n_rows) / n_rows)  # without errors, as with one error
    eligible = np.where(errors <= least + TOLERANCE * standard_error, log_losses, np.inf)
    index, evaluation = np.unravel_index(int(eligible.argmin()), errors.shape)
    return int(index), int(evaluation)


def _lowest(losses: FloatArray) -> float:
    """Return the temperature with the lowest loss, interpolated by a parabola over the log temperature."""
    k = int(losses.argmin())
    if not 0 < k < len(losses) - 1:
        return float(TEMPERATURES[k])
    below, here, above = losses[k - 1 : k + 2]  # below > here: argmin returns the first of equal losses
    shift = (below - above) / (2 * (below - 2 * here + above))
    return float(TEMPERATURES[k] * np.sqrt(2.0) ** shift)
