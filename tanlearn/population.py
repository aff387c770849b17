"""Many trainings at once: settings times data parts, one thread a training.

Gradient TAN is used by searching: over losses, rates, seeds and candidate draws. Trainings share nothing but the
encoded data, their epochs run without the GIL, and each has its own generator, so the outcome of a training does
not depend on how many run beside it or in which order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from tanlearn._typing import AnyArray, Codes
from tanlearn.encoded_data import EncodedData
from tanlearn.estimators import Classifier
from tanlearn.inference import log_joint

__all__ = ["Part", "Run", "RunResult", "run_population"]


@dataclass(frozen=True, eq=False)
class Part:
    """Encoded training rows, and rows to score on.

    Parameters
    ----------
    data : EncodedData
        What the runs train on; shared by all of them.
    codes : ndarray of shape (n_features, n_held_out)
        Rows to score on, encoded by what was learnt from the training rows.
    y : ndarray of shape (n_held_out,)
        Their class codes; -1 for a class that the training rows do not have.
    weight : ndarray of shape (n_held_out,) or None
        Their weights.
    """

    data: EncodedData
    codes: Codes
    y: AnyArray
    weight: AnyArray | None = None


@dataclass(frozen=True)
class Run:
    """One training: which settings on which part.

    Parameters
    ----------
    setting : int
        Number of the settings.
    part : int
        Number of the part.
    parameters : dict
        What to set on the estimator, ``random_state`` included.
    """

    setting: int
    part: int
    parameters: dict[str, Any]


@dataclass(frozen=True)
class RunResult:
    """How a training went.

    Parameters
    ----------
    setting : int
        Number of the settings.
    part : int
        Number of the part.
    score : float
        Share of held-out weight classified rightly; nan if the training failed.
    n_parameters : int
        Free parameters of the model.
    seconds : float
        Wall time of the training.
    failure : str
        Why it failed, or nothing.
    size_bits : int
        Bits of all numbers of the model's tables; 32 each, if they are not rounded.
    n_operations : int
        Additions for a prediction.
    """

    setting: int
    part: int
    score: float
    n_parameters: int
    seconds: float
    failure: str = ""
    size_bits: int = field(default=0, repr=False)
    n_operations: int = field(default=0, repr=False)


def run_population(
    estimator: Classifier, parts: Sequence[Part], runs: Sequence[Run], *, n_jobs: int | None = None
) -> Generator[RunResult]:
    """Train and score every run; yield the results as they come.

    Parameters
    ----------
    estimator : Classifier
        Cloned for every run.
    parts : sequence of Part
        Data.
    runs : sequence of Run
        What to train.
    n_jobs : int, optional
        Threads, as in joblib. Results do not depend on it, only their order does.

    Yields
    ------
    RunResult
        Closing the generator stops the trainings that are under way.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, TANClassifier
    >>> from tanlearn.population import Part, Run, run_population
    >>> y = np.arange(40) % 2
    >>> data = EncodedData.from_codes(np.stack([y, 1 - y], axis=1), y)
    >>> part = Part(data, data.codes, y)
    >>> runs = [Run(i, 0, {"learning_rate": rate, "random_state": 0}) for i, rate in enumerate([0.01, 0.1])]
    >>> estimator = TANClassifier(n_epochs=20, batch_size=10)
    >>> sorted((result.setting, result.score) for result in run_population(estimator, [part], runs))
    [(0, 1.0), (1, 1.0)]
    """
    stop = threading.Event()
    with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
        futures = [pool.submit(_train, estimator, parts[run.part], run, stop) for run in runs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:  # whoever stops listening stops the trainings, too
            stop.set()
            pool.shutdown(cancel_futures=True)


def _train(estimator: Classifier, part: Part, run: Run, stop: threading.Event) -> RunResult:
    """Train and score one run; a training that fails is a result, not an end of the others."""
    started = time.perf_counter()
    try:
        # The values are cloned, too: a loss in the settings is shared by all runs that have it.
        model = clone(estimator).set_params(**clone(run.parameters, safe=False))
        if "callback" in model.get_params(deep=False):
            model.set_params(callback=_Interruptible(model.get_params(deep=False)["callback"], stop))
        model.fit_encoded(part.data)
    except Exception as error:  # a user's loss may raise anything
        kind = "" if isinstance(error, (ValueError, FloatingPointError)) else f"{type(error).__name__}: "
        return RunResult(run.setting, run.part, np.nan, 0, time.perf_counter() - started, f"{kind}{error}")
    seconds = time.perf_counter() - started
    right = log_joint(model.tables_, model.structure_, part.codes).argmax(axis=1) == part.y
    score = float(np.average(right, weights=part.weight))
    costs = {"size_bits": model.size_bits_, "n_operations": model.n_operations_}
    return RunResult(run.setting, run.part, score, model.tables_.n_parameters, seconds, **costs)


@dataclass(frozen=True)
class _Interruptible:
    """The user's callback, and an end of the training when nobody waits for it any more."""

    callback: Callable[[Any], Any] | None
    stop: threading.Event

    def __call__(self, report: Any) -> Any:
        """Return whether to stop."""
        return self.stop.is_set() or (self.callback is not None and self.callback(report))
