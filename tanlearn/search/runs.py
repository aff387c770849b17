"""Many trainings at once: settings times data parts, one task a training.

Gradient TAN is used by searching: over losses, rates, seeds and candidate draws. Trainings share nothing but the
encoded data, their epochs run without the GIL, and each has its own generator, so the outcome of a training does
not depend on how many run beside it or in which order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._tasks import are_at_home, as_completed
from tanlearn._typing import AnyArray, Codes
from tanlearn.data.encoded_data import EncodedData
from tanlearn.estimators.base import Classifier
from tanlearn.kernels._cuda import check_device, cupy
from tanlearn.network.inference import log_joint
from tanlearn.training.cuda_training import train_together
from tanlearn.training.training import Training

#: Share of CUDA's free memory that trainings may take, and the most that take their steps together: with so many,
#: a launch of any shape in use fills the largest device several times over.
MEMORY_SHARE, MOST_TOGETHER = 0.8, 256

__all__ = ["Part", "Run", "RunResult", "run_population"]


@dataclass(frozen=True, eq=False)
class Part:
    """Encoded training rows, and rows to score on."""

    data: EncodedData  # What the runs train on; shared by all of them
    codes: Codes  # (n_features, n_held_out): Rows to score on, encoded by what was learnt from the training rows
    y: AnyArray  # (n_held_out,): Their class codes; -1 for a class that the training rows do not have
    weight: AnyArray | None = None  # (n_held_out,): Their weights


@dataclass(frozen=True)
class Run:
    """One training: which settings on which part."""

    setting: int  # Number of the settings
    part: int  # Number of the part
    parameters: dict[str, Any]  # What to set on the estimator, ``random_state`` included


@dataclass(frozen=True)
class RunResult:
    """How a training went."""

    setting: int  # Number of the settings
    part: int  # Number of the part
    score: float  # Share of held-out weight classified rightly; nan if the training failed
    n_parameters: int  # Free parameters of the model
    seconds: float  # Wall time of the training; of those that went side by side on CUDA, their share
    failure: str = ""  # Why it failed, or nothing
    # Bits of all numbers of the model's tables; 32 each, if they are not rounded
    size_bits: int = field(default=0, repr=False)
    n_operations: int = field(default=0, repr=False)  # Additions for a prediction


def run_population(
    estimator: Classifier,
    parts: Sequence[Part],
    runs: Sequence[Run],
    *,
    n_jobs: int | None = None,
    progress: Callable[[str], Any] | None = None,
) -> Generator[RunResult]:
    """Train and score every run; yield the results as they come."""
    device = getattr(estimator, "device", "cpu")
    check_device(device)
    if device == "cuda" and hasattr(estimator, "begin_encoded"):
        yield from _run_on_cuda(estimator, parts, runs, progress)
        return
    stop = threading.Event()
    is_over = stop.is_set if are_at_home() else None
    tasks = [(parts[run.part], (estimator, run, is_over)) for run in runs]
    with closing(as_completed(_train, tasks, n_jobs)) as results:
        try:
            for _, result in results:
                yield result
        finally:  # whoever stops listening stops the trainings, too
            stop.set()


def _train(part: Part, estimator: Classifier, run: Run, is_over: Callable[[], bool] | None) -> RunResult:
    """Train and score one run; a training that fails is a result, not an end of the others."""
    started = time.perf_counter()
    try:
        model = _configured(estimator, run)
        if is_over is not None and "callback" in model.get_params(deep=False):
            model.set_params(callback=_Interruptible(model.get_params(deep=False)["callback"], is_over))
        model.fit_encoded(part.data)
    except Exception as error:  # a user's loss may raise anything
        return _failed(run, error, time.perf_counter() - started)
    return _scored(run, model, part, time.perf_counter() - started)


def _run_on_cuda(
    estimator: Classifier, parts: Sequence[Part], runs: Sequence[Run], progress: Callable[[str], Any] | None
) -> Generator[RunResult]:
    """Train and score all runs on CUDA, as many at once as it has memory for."""
    waiting = deque(runs)
    while waiting:
        yield from _run_some(estimator, parts, waiting, progress)


def _run_some(
    estimator: Classifier, parts: Sequence[Part], waiting: deque[Run], progress: Callable[[str], Any] | None
) -> Generator[RunResult]:
    """Take runs off the queue, and train and score them; when it ends, so does their memory."""
    started = time.perf_counter()
    cupy().get_default_memory_pool().free_all_blocks()
    room = cupy().cuda.runtime.memGetInfo()[0] * MEMORY_SHARE
    begun: list[tuple[Run, Any, list[Training]]] = []
    while waiting and (room > 0 or not begun) and len(begun) < MOST_TOGETHER:
        run = waiting.popleft()
        try:
            model = _configured(estimator, run)
            if model.device != "cuda" or model.checkpoint is not None:  # goes by itself
                yield _train(parts[run.part], estimator, run, None)
                continue
            trainings = model.begin_encoded(parts[run.part].data)
        except Exception as error:
            yield _failed(run, error, 0.0)
            continue
        room -= sum(training.cuda_bytes() for training in trainings)
        begun.append((run, model, trainings))
    outcomes = iter(train_together([training for *_, trainings in begun for training in trainings], progress))
    seconds = (time.perf_counter() - started) / max(1, len(begun))  # a share: they went side by side
    for run, model, trainings in begun:
        failure = None
        try:
            model.end_encoded(trainings, [next(outcomes) for _ in trainings])
        except Exception as error:
            failure = error.with_traceback(None)  # which would keep this frame, and with it the memory of all
        yield _scored(run, model, parts[run.part], seconds) if failure is None else _failed(run, failure, seconds)


def _configured(estimator: Classifier, run: Run) -> Any:
    """Return the estimator with a run's parameters; the values are cloned, too, because runs share losses."""
    model = clone(estimator).set_params(**clone(run.parameters, safe=False))
    parameters = model.get_params(deep=False)
    # Runs are scored by predicted classes. A calibration moves those of tables of few bits with a prior only.
    is_needless = "calibrate" in parameters and parameters.get("bits") is not None and model.class_prior is None
    return model.set_params(calibrate=False) if is_needless else model


def _failed(run: Run, error: Exception, seconds: float) -> RunResult:
    """Return what is known of a run that has failed."""
    kind = "" if isinstance(error, (ValueError, FloatingPointError)) else f"{type(error).__name__}: "
    return RunResult(run.setting, run.part, np.nan, 0, seconds, f"{kind}{error}")


def _scored(run: Run, model: Any, part: Part, seconds: float) -> RunResult:
    """Return how a fitted model does on the held-out rows."""
    scores = log_joint(model.tables_, model.structure_, part.codes, device=getattr(model, "device", "cpu"))
    scores = model.calibration_.shifted(scores)  # as predict does
    score = float(np.average(scores.argmax(axis=1) == part.y, weights=part.weight))
    costs = {"size_bits": model.size_bits_, "n_operations": model.n_operations_}
    return RunResult(run.setting, run.part, score, model.tables_.n_parameters, seconds, **costs)


@dataclass(frozen=True)
class _Interruptible:
    """The user's callback, and an end of the training when nobody waits for it any more."""

    callback: Callable[[Any], Any] | None
    is_over: Callable[[], bool]

    def __call__(self, report: Any) -> Any:
        """Return whether to stop."""
        return self.is_over() or (self.callback is not None and self.callback(report))
