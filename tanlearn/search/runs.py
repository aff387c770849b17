"""Trainings of a search: one task per combination of settings and split.

Trainings share only the encoded data, run epochs without the GIL, and have their own random generators. The result of a
training therefore does not depend on the number or the order of other trainings.
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
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.estimators.classifier import Classifier
from tanlearn.kernels._cuda import check_device, cupy, on_device
from tanlearn.models.log_joint import log_joint
from tanlearn.training.cuda_training import train_together
from tanlearn.training.training import Training

#: Fraction of the free CUDA memory that trainings may use, and maximum number of trainings that run together. With this
#: number, every kernel launch fills the largest device several times over.
MEMORY_SHARE, MOST_TOGETHER = 0.8, 256

__all__ = ["Part", "Run", "RunResult", "run_population"]


@dataclass(frozen=True, eq=False)
class Part:
    """Encoded training rows and held-out rows of a split."""

    data: EncodedData  # training rows, shared by all runs
    codes: Codes  # (n_features, n_held_out) held-out rows, encoded by the encoder of the training rows
    y: AnyArray  # (n_held_out,) class codes, -1 for a class that the training rows do not contain
    weight: AnyArray | None = None  # (n_held_out,) weights


@dataclass(frozen=True)
class Run:
    """One training: the settings, and the split whose rows are used."""

    setting: int  # index of the settings
    part: int  # index of the split
    parameters: dict[str, Any]  # parameters of the estimator, including random_state


@dataclass(frozen=True)
class RunResult:
    """Result of one training."""

    setting: int  # index of the settings
    part: int  # index of the split
    score: float  # weighted accuracy on the held-out rows; nan if the training failed
    n_parameters: int  # free parameters of the model
    seconds: float  # wall time of the training; on CUDA, time of the group divided by its size
    failure: str = ""  # reason for a failure, or an empty string
    # bits of all parameters of the model, 32 per parameter if they are not rounded
    size_bits: int = field(default=0, repr=False)
    n_operations: int = field(default=0, repr=False)  # number of additions per prediction


def run_population(
    estimator: Classifier,
    parts: Sequence[Part],
    runs: Sequence[Run],
    *,
    n_jobs: int | None = None,
    progress: Callable[[str], Any] | None = None,
) -> Generator[RunResult]:
    """Train and score all runs, and yield the results in the order of completion.

    ``n_jobs`` is the number of threads, or of workers of the backend set by :func:`joblib.parallel_config`. Each split
    is sent to a worker only once. Only the order of the results depends on ``n_jobs``. If the estimator's ``device`` is
    a GPU, as many trainings of gradient TANs run together on the device as fit into its memory. The results of such a
    group arrive together, so ``progress`` is called with messages before that.

    If the generator is closed, trainings in threads or on loky's workers stop. Trainings that are running on a cluster
    are finished, but no more trainings begin. Raises ImportError or RuntimeError if the device is not available, and
    TypeError if a process backend cannot serialize the estimator or a value.
    """
    device = getattr(estimator, "device", "cpu")
    check_device(device)
    if device != "cpu":
        yield from _run_on_cuda(estimator, parts, runs, progress)
        return
    stop = threading.Event()
    is_over = stop.is_set if are_at_home() else None
    tasks = [(parts[run.part], (estimator, run, is_over)) for run in runs]
    with closing(as_completed(_train, tasks, n_jobs)) as results:
        try:
            for _, result in results:
                yield result
        finally:  # closing the generator also stops the trainings
            stop.set()


def _train(part: Part, estimator: Classifier, run: Run, is_over: Callable[[], bool] | None) -> RunResult:
    """Train and score one run. A failure is returned as a result, so that the other runs continue."""
    started = time.perf_counter()
    try:
        model = _configured(estimator, run)
        settings = model.get_params()
        if is_over is not None and "training__callback" in settings:
            model.set_params(training__callback=_Interruptible(settings["training__callback"], is_over))
        model.fit_encoded(part.data)
    except Exception as error:  # a user's loss may raise anything
        return _failed(run, error, time.perf_counter() - started)
    return _scored(run, model, part, time.perf_counter() - started)


def _run_on_cuda(
    estimator: Classifier, parts: Sequence[Part], runs: Sequence[Run], progress: Callable[[str], Any] | None
) -> Generator[RunResult]:
    """Train and score all runs on CUDA, as many together as fit into memory."""
    waiting = deque(runs)
    while waiting:
        yield from _run_some(estimator, parts, waiting, progress)


def _run_some(
    estimator: Classifier, parts: Sequence[Part], waiting: deque[Run], progress: Callable[[str], Any] | None
) -> Generator[RunResult]:
    """Take runs off the queue, train and score them together, and free their memory at the end."""
    started = time.perf_counter()
    free_bytes = _free_bytes(estimator.device) * MEMORY_SHARE
    begun: list[tuple[Run, Any, list[Training]]] = []
    shared: set[tuple[Any, ...]] = set()  # rows and batch sizes whose memory has been counted
    while waiting and len(begun) < MOST_TOGETHER:
        run = waiting.popleft()
        try:
            model = _configured(estimator, run)
            # Runs with a checkpoint or another device are trained one by one.
            if model.device != estimator.device or model.get_params()["training__checkpoint"] is not None:
                yield _train(parts[run.part], estimator, run, None)
                continue
            trainings = model.begin_encoded(parts[run.part].data)
        except Exception as error:
            yield _failed(run, error, 0.0)
            continue
        needs = [training.cuda_memory() for training in trainings]
        free_bytes -= sum(need.per_run for need in needs)
        rows = id(parts[run.part].data), model.get_params()["training__batch_size"]
        if rows not in shared:
            free_bytes -= max(need.shared for need in needs)
            shared.add(rows)
        if free_bytes < 0 and begun:  # this run starts again in the next group
            waiting.appendleft(run)
            break
        begun.append((run, model, trainings))
    outcomes = iter(train_together([training for *_, trainings in begun for training in trainings], progress))
    seconds = (time.perf_counter() - started) / max(1, len(begun))  # the time of the group divided by its size
    for run, model, trainings in begun:
        failure = None
        try:
            model.end_encoded(trainings, [next(outcomes) for _ in trainings])
        except Exception as error:
            failure = error.with_traceback(None)  # the traceback would keep this frame and the memory of all trainings
        yield _scored(run, model, parts[run.part], seconds) if failure is None else _failed(run, failure, seconds)


def _free_bytes(device: str) -> int:
    """Free the memory that CuPy keeps for later arrays, and return the free memory of a device in bytes."""
    with on_device(device):
        cupy().get_default_memory_pool().free_all_blocks()
        return int(cupy().cuda.runtime.memGetInfo()[0])


def _configured(estimator: Classifier, run: Run) -> Any:
    """Return a clone of the estimator with the parameters of a run, which are cloned because runs share losses."""
    model = clone(estimator).set_params(**clone(run.parameters, safe=False))
    parameters = model.get_params(deep=False)
    # Runs are scored by predicted classes. With few bits, calibration changes the classes only if a prior is set.
    is_needless = "calibrate" in parameters and parameters.get("bits") is not None and model.class_prior is None
    return model.set_params(calibrate=False) if is_needless else model


def _failed(run: Run, error: Exception, seconds: float) -> RunResult:
    """Return the result of a failed run."""
    kind = "" if isinstance(error, (ValueError, FloatingPointError)) else f"{type(error).__name__}: "
    return RunResult(run.setting, run.part, np.nan, 0, seconds, f"{kind}{error}")


def _scored(run: Run, model: Any, part: Part, seconds: float) -> RunResult:
    """Score a fitted model on the held-out rows, and return the result."""
    scores = log_joint(model.tables_, model.structure_, part.codes, device=getattr(model, "device", "cpu"))
    scores = model.calibration_.shifted(scores)  # as predict does
    score = float(np.average(scores.argmax(axis=1) == part.y, weights=part.weight))
    costs = {"size_bits": model.size_bits_, "n_operations": model.n_operations_}
    return RunResult(run.setting, run.part, score, model.tables_.n_parameters, seconds, **costs)


@dataclass(frozen=True)
class _Interruptible:
    """Callback that calls the user's callback, and also stops the training if its result is no longer needed."""

    callback: Callable[[Any], Any] | None
    is_over: Callable[[], bool]

    def __call__(self, report: Any) -> Any:
        """Return whether to stop the training."""
        return self.is_over() or (self.callback is not None and self.callback(report))
