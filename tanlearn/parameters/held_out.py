"""Choice of parameter learners, and of their iterations, on held-out rows.

The structure is given, or is learned again without the held-out rows of each part (``learned_structure``). Every
learner is fitted to every part of the rows, and the held-out rows of the part are classified along the way. Rows are
few as a rule, so that the smallest error of many may be smallest by chance. Of all candidates whose error is close to
the smallest, the one with the best probabilities of the classes is chosen, each at its best temperature. The scale by
which its scores become probabilities belongs to the choice.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.data.class_weights import log_frequencies
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.splits import validation_masks
from tanlearn.network.calibration import Calibration, EvidenceCalibration
from tanlearn.network.inference import log_joint
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.parameters.calibration import calibrate, temper_evidence
from tanlearn.parameters.learned_structure import structures_of_parts

__all__ = ["Choice", "Trained", "choose", "held_out_parts", "looks"]

#: Where log losses are measured: 1/4 to 128, in steps of a square root of two.
TEMPERATURES = 2.0 ** np.arange(-2, 7.25, 0.5)
#: Rows and scores a part at most that say how scores become probabilities: every look keeps them.
MOST_ROWS, MOST_SCORES = 10_000, 500_000
#: Held-out errors this many standard errors above the least are as good as it.
TOLERANCE = 1.0


@dataclass(frozen=True)
class Choice:
    """What held-out rows have decided.

    Parameters
    ----------
    index : int
        Number of the learner.
    n_iter : int
        Its iterations; of a learner that does not iterate, nothing.
    calibration : Calibration
        How its scores become probabilities.
    iterations : ndarray of shape (n_looks,)
        Numbers of iterations after which the learners were looked at.
    errors : ndarray of shape (n_learners, n_looks)
        Share of held-out weight that was classified wrongly then.
    log_losses : ndarray of shape (n_learners, n_looks)
        Mean negative log-probability of the true class then, at the best temperature.
    split_errors : ndarray of shape (n_parts, n_learners, n_looks)
        The errors of every part.
    best_looks : ndarray of shape (n_learners,)
        Which look each learner is best taken at; of the others than the chosen one, as if it were the only one.
    """

    index: int
    n_iter: int
    calibration: Calibration
    iterations: IntArray
    errors: FloatArray
    log_losses: FloatArray
    split_errors: FloatArray
    best_looks: IntArray


class Trained:
    """A learner that has learnt already, for held-out rows that it has not seen.

    Parameters
    ----------
    tables : Tables
        What it has come to.
    structure : Structure, optional
        Their structure, if it is another than that of other learners.
    """

    def __init__(self, tables: Tables, structure: Structure | None = None) -> None:
        self.tables, self.structure = tables, structure

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables.

        Parameters
        ----------
        structure, data, rng : as for :meth:`~tanlearn.parameters.learner.ParameterLearner.fit`
            Not used.

        Returns
        -------
        Tables
        """
        return self.tables


def held_out_parts(data: EncodedData, cv: float | None = None) -> list[tuple[EncodedData, EncodedData]]:
    """Split rows into those that learners see and those that are held out, once or in folds.

    The same rows are split the same way: learners that draw nothing else need no seed for it.

    Parameters
    ----------
    data : EncodedData
        Rows; those of weight 0 are as good as absent.
    cv : float, optional
        Below 1 the share that is held out once, from 2 on the number of folds. By default what there is time for: five
        folds of a table with up to 300,000 numbers (rows times features times classes, which is what a pass reads),
        three with up to 3,000,000, and once a fifth of larger ones.

    Returns
    -------
    list of (EncodedData, EncodedData)
        Nothing where there are fewer than two rows.
    """
    present = data.take(np.flatnonzero(data.weights))
    n = present.n_samples
    if n < 2:
        return []
    if cv is None:
        size = n * present.n_features * present.n_classes
        # One fold of five, and no share: of classes with a row or two, a share would be none.
        n_folds, n_used = (5, 5) if size <= 300_000 else (3, 3) if size <= 3_000_000 else (5, 1)
        masks = validation_masks(present.y, present.n_classes, min(n, n_folds), np.random.default_rng(0))[:n_used]
    else:
        masks = validation_masks(present.y, present.n_classes, cv, np.random.default_rng(0))
    return [present.split(held_out) for held_out in masks]


def looks(max_iter: int) -> list[int]:
    """Return the numbers of iterations after which a run of so many is looked at, each half as many again.

    Parameters
    ----------
    max_iter : int
        Most iterations.

    Returns
    -------
    list of int

    Examples
    --------
    >>> from tanlearn.parameters.held_out import looks
    >>> looks(30)
    [0, 1, 2, 3, 5, 8, 11, 17, 26, 30]
    """
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
) -> Choice:
    """Have held-out rows choose between learners, and between their iterations.

    Parameters
    ----------
    learners : sequence of ParameterLearner or of lists of Trained
        A copy of each learns each part. What is trained already has one entry a part.
    structure : Structure or sequence of Structure
        The augmenting parents, of all parts or of each. A structure that a learner found is learned again for each part
        (see :func:`~tanlearn.parameters.learned_structure.structures_of_parts`).
    parts : sequence of (EncodedData, EncodedData)
        Rows to learn from, and rows to look at; at least one pair.
    iterations : sequence of int, optional
        When to look at learners that iterate, increasing; 0 is the start. Others, and by default all, are looked at
        once, when they are done.
    patience : int, optional
        End a run after so many iterations in which neither held-out error nor log loss has become less.
    n_jobs : int, optional
        Threads, one a learner and part, as in joblib. The choice does not depend on it.

    Returns
    -------
    Choice
    """
    n_rows = sum(held_out.in_whole_rows().weights.sum() for _, held_out in parts)
    structures = structures_of_parts(structure, parts, n_jobs) if isinstance(structure, Structure) else structure

    def run(task: tuple[int, int]) -> _Path:
        i, k = task
        learner = learners[i][k] if isinstance(learners[i], list) else learners[i]
        own = learner.structure if isinstance(learner, Trained) else None
        path = _Path(structures[k] if own is None else own, parts[k][1], 1 / n_rows, iterations, patience)
        # A copy keeps what it finds; settings and losses are shared, as nothing changes them.
        return path.follow(copy(learner), parts[k][0], np.random.default_rng(k))

    tasks = [(i, k) for i in range(len(learners)) for k in range(len(parts))]
    with warnings.catch_warnings():
        # SciPy hushes failed line searches one by one, in a way not made for threads: 3 of 30 fits in four threads
        # warned. So they are hushed throughout.
        warnings.filterwarnings("ignore", message="The line search algorithm")
        paths = in_threads(run, tasks, n_jobs)
    n_looks = max(len(path.wrong) for path in paths)
    shape = (len(learners), len(parts), n_looks)
    # A run that has ended stays where it was.
    wrong = np.array([path.wrong + path.wrong[-1:] * (n_looks - len(path.wrong)) for path in paths]).reshape(shape)
    losses = np.array([path.losses + path.losses[-1:] * (n_looks - len(path.losses)) for path in paths])
    losses = losses.reshape(*shape, len(TEMPERATURES)).sum(axis=1)
    weights = np.array([held_out.weights.sum() for _, held_out in parts], dtype=np.float64)
    errors, log_losses = wrong.sum(axis=1) / weights.sum(), losses.min(axis=-1) / weights.sum()
    index, look = _best(errors, log_losses, n_rows)
    chosen = paths[index * len(parts) : (index + 1) * len(parts)]
    distances, y, row_weights = map(np.concatenate, zip(*(path.watched(look) for path in chosen), strict=True))
    row_weights = row_weights / min(1, row_weights.mean())
    calibration = calibrate(distances, y, row_weights, _lowest(losses[index, look]))
    log_frequency = np.concatenate(
        [np.tile(_log_frequency(part[0]), (len(path.some), 1)) for path, part in zip(chosen, parts, strict=True)]
    )
    evidence = temper_evidence(distances, y, row_weights, log_frequency, calibration)
    if evidence.is_better and not any(path.is_rounded for path in chosen):
        calibration = EvidenceCalibration.of_frequencies(evidence.temperature, _log_frequency(*parts[0]))
    alone = [_best(errors[[i]], log_losses[[i]], n_rows)[1] for i in range(len(learners))]
    alone[index] = look
    return Choice(
        index=index,
        n_iter=0 if iterations is None else iterations[look],
        calibration=calibration,
        iterations=np.array([0] if iterations is None else iterations[:n_looks]),
        errors=errors,
        log_losses=log_losses,
        split_errors=np.moveaxis(wrong, 1, 0) / weights[:, np.newaxis, np.newaxis],
        best_looks=np.array(alone),
    )


class _Path:
    """What held-out rows say of a learner along its way."""

    def __init__(
        self,
        structure: Structure,
        held_out: EncodedData,
        smoothing: float,
        iterations: Sequence[int] | None,
        patience: int | None,
    ) -> None:
        self.structure, self.held_out, self.smoothing = structure, held_out, smoothing
        self.iterations, self.patience = iterations, patience
        self.wrong: list[float] = []
        self.losses: list[FloatArray] = []
        rows = np.flatnonzero(held_out.weights)
        most = min(MOST_ROWS, max(1, MOST_SCORES // held_out.n_classes))
        self.some = rows if len(rows) <= most else np.random.default_rng(0).choice(rows, most, replace=False)
        self.distances: list[AnyArray] = []
        #: Whether tables have few bits: programs in C add these up, and know no calibration.
        self.is_rounded = False

    def follow(self, learner: Any, data: EncodedData, rng: np.random.Generator) -> _Path:
        """Run a learner to its end, or that of patience."""
        iterations = self.iterations
        if iterations is None or not hasattr(learner, "improve"):
            self.look(learner.fit(self.structure, data, rng))
            return self
        tables = learner.start(self.structure, data, rng)
        n_done = 0
        if iterations[0] == 0:
            self.look(tables)

        def callback(tables: Tables) -> bool:
            nonlocal n_done
            n_done += 1
            return n_done == iterations[len(self.wrong)] and self.look(tables)

        tables = learner.improve(tables, data, callback, n_iter=iterations[-1])
        if not self.wrong or n_done > iterations[len(self.wrong) - 1]:  # it ended between two looks
            self.look(tables)
        return self

    def watched(self, look: int) -> tuple[AnyArray, IntArray, AnyArray]:
        """Return what calibrates at a look: distances of scores, true classes, and weights."""
        distances = self.distances[min(look, len(self.distances) - 1)]
        return distances, self.held_out.y[self.some], self.held_out.weights[self.some]

    def look(self, tables: Tables) -> bool:
        """Classify the held-out rows, and return whether patience is at its end."""
        held_out, self.is_rounded = self.held_out, tables.bits is not None
        scores = log_joint(tables, self.structure, held_out.codes, device=held_out.device)
        self.wrong.append(float(held_out.weights[scores.argmax(axis=1) != held_out.y].sum()))
        self.losses.append(log_loss_by_temperature(scores, held_out.y, held_out.weights, self.smoothing))
        some = scores[self.some]
        self.distances.append((some.max(axis=1, keepdims=True) - some).astype(np.float32))
        if self.patience is None or self.iterations is None:
            return False
        best = max(int(np.argmin(self.wrong)), int(np.argmin(np.min(self.losses, axis=1))))
        return self.iterations[len(self.wrong) - 1] - self.iterations[best] >= self.patience


def log_loss_by_temperature(scores: FloatArray, y: IntArray, weights: Any, smoothing: float = 0.0) -> FloatArray:
    """Return the sum of the rows' negative log-probabilities of their classes, at every one of ``TEMPERATURES``.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        Log joint, finite.
    y : ndarray of shape (n_samples,)
        True classes.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.
    smoothing : float, default=0.0
        Share of a row's weight that is added to all classes alike: without it, rows that are all classified rightly
        would want a temperature of 0, and so certainty.

    Returns
    -------
    ndarray of shape (n_temperatures,)
    """
    relative = scores - scores.max(axis=1, keepdims=True)  # a shift of a row's scores changes no probability
    target = relative[np.arange(len(y)), y] + smoothing * relative.mean(axis=1)
    normalizers = np.stack([np.log(np.exp(relative / temperature).sum(axis=1)) for temperature in TEMPERATURES])
    rows = (1 + smoothing) * normalizers - target / TEMPERATURES[:, np.newaxis]
    return (rows * weights).sum(axis=1)


def _log_frequency(*parts: EncodedData) -> FloatArray:
    """Return log frequencies of the classes among rows, each as if one row more belonged to it."""
    return log_frequencies(
        np.sum([np.bincount(part.y, part.in_whole_rows().weights, part.n_classes) for part in parts], axis=0)
    )


def _best(errors: FloatArray, log_losses: FloatArray, n_rows: float) -> tuple[int, int]:
    """Return learner and look of the least log loss among those that err hardly more than the least."""
    least = errors.min()
    standard_error = np.sqrt(max(least * (1 - least), 1 / n_rows) / n_rows)  # of no error at all, that of one
    eligible = np.where(errors <= least + TOLERANCE * standard_error, log_losses, np.inf)
    index, look = np.unravel_index(int(eligible.argmin()), errors.shape)
    return int(index), int(look)


def _lowest(losses: FloatArray) -> float:
    """Return the temperature of the lowest loss: between those measured, by a parabola of its logarithm."""
    k = int(losses.argmin())
    if not 0 < k < len(losses) - 1:
        return float(TEMPERATURES[k])
    below, here, above = losses[k - 1 : k + 2]  # below > here: argmin returns the first of equal losses
    shift = (below - above) / (2 * (below - 2 * here + above))
    return float(TEMPERATURES[k] * np.sqrt(2.0) ** shift)
