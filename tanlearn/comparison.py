"""Train several learners on the same splits of one data set: test error, size, and time.

The clocks exclude compilation: before its first timed fit every learner is fitted to a few rows for two epochs, and
before its first timed prediction it predicts once.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from tanlearn._tasks import are_at_home, as_completed
from tanlearn._threads import number_of_threads
from tanlearn._typing import AnyArray, IntArray
from tanlearn._warnings import warn
from tanlearn.baselines import Learner, find_learner
from tanlearn.data.datasets import Dataset
from tanlearn.data.splits import stratified_splits
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.data.validation import read_classes

__all__ = [
    "HEADERS",
    "Progress",
    "Result",
    "as_csv",
    "as_json",
    "as_markdown",
    "best",
    "cells",
    "check_folds",
    "compare",
    "summary",
]

#: Called with the name of the learner at work and the share of it that is done, ``None`` during the warm-up.
Progress: TypeAlias = Callable[[str, float | None], Any]

#: Rows of every class, and epochs, that a learner is warmed up with.
WARM_ROWS, WARM_EPOCHS = 10, 2
#: The fastest of so many predictions counts: the operating system can only make one slower.
N_PREDICTIONS = 3

HEADERS = ("learner", "test error [%]", "log loss", "parameters", "fit [s]", "predict [us/row]")


@dataclass(frozen=True)
class Result:
    """What came of one learner: its measures, or else why it failed.

    Parameters
    ----------
    dataset, learner : str
        Their names.
    n_folds : int
        Number of splits.
    n_train, n_test : int
        Rows of the first split.
    test_error : float or None
        Wrong test rows in percent, mean of the splits.
    test_error_std : float or None
        Standard deviation over the splits (ddof = 1), if there are several.
    log_loss : float or None
        Mean negative log-probability of the true class of test rows, mean of the splits.
    n_parameters : int or None
        Free parameters, mean of the splits.
    fit_seconds : float or None
        Wall-clock time of ``fit`` from raw values, encoding included, mean of the splits.
    predict_microseconds : float or None
        Wall-clock time of ``predict`` per test row, encoding included, mean of the splits.
    failure : str or None
        Why the learner failed.

    Examples
    --------
    >>> from tanlearn.comparison import Result, cells
    >>> cells(Result("digits", "NB ML", 1, 1198, 599, 10.515, None, 0.7184, 1189, 0.031, 1.2))
    ('NB ML', '10.52', '0.718', '1,189', '0.03', '1.2')
    """

    dataset: str
    learner: str
    n_folds: int
    n_train: int
    n_test: int
    test_error: float | None = None
    test_error_std: float | None = None
    log_loss: float | None = None
    n_parameters: int | None = None
    fit_seconds: float | None = None
    predict_microseconds: float | None = None
    failure: str | None = None


def compare(
    dataset: Dataset,
    learners: Sequence[str | Learner],
    *,
    n_folds: int | None = None,
    random_state: int = 0,
    n_epochs: int | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    finished: Callable[[Result], Any] | None = None,
    time_limit: float | None = None,
) -> list[Result]:
    """Train and test every learner on the same splits.

    A learner that fails leaves its reason behind, and the others go on.

    Parameters
    ----------
    dataset : Dataset
        Raw values; continuous columns are discretised inside every fit.
    learners : sequence of str or Learner
        Names in the registry, or entries of one's own.
    n_folds : int, optional
        Stratified cross-validation with so many folds, for a data set without splits of its own. By default a
        stratified third of the rows is held out.
    random_state : int, default=0
        Seed of the splits and of the learners.
    n_epochs : int, optional
        Have HYB learn by stochastic gradient on ``Hybrid()``, with so many passes over the data; by default, held-out
        rows choose its loss and length.
    n_jobs : int, optional
        Threads, as in joblib. Splits are learnt side by side, and a learner has the threads that are left; what it
        learns does not depend on them, but the time that it takes does. Inside of
        ``joblib.parallel_config(backend="dask")``, or any other of processes, all splits of all learners go to its
        workers, one thread each, and the data set once; what workers warn of, they tell.
    progress : callable, optional
        ``progress(learner, share)`` with the share, 0 to 1, of the learner's work that is done; ``None`` while it is
        warmed up, which on a new machine compiles its kernels. Of other processes it hears when a split is done.
    finished : callable, optional
        Called with every result as soon as it is there.
    time_limit : float, optional
        After so many seconds no learner and no split is begun any more, by the clocks of those that would begin. A
        learner without all its splits has no result; those of the others do not depend on the limit.

    Returns
    -------
    list of Result
        In the order of the learners: of all, or of those within the time limit.

    Raises
    ------
    ValueError
        If no learner is named or one does not exist, ``n_jobs`` is 0, the time limit is not above 0, the classes break
        a rule, or the split is not possible.
    TypeError
        If splits are for other processes, and a learner of one's own cannot be sent there.

    Examples
    --------
    >>> from tanlearn.comparison import compare
    >>> from tanlearn.data.datasets import load_digits
    >>> bayes, tree = compare(load_digits(), ["NB ML", "TAN-CMI ML"])
    >>> bool(tree.test_error < bayes.test_error < 15)
    True
    """
    if not learners:
        raise ValueError("there is nothing to compare: name at least one learner.")
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads from 1, or -1 for all cores; got 0.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a number of seconds above 0, got {time_limit!r}.")
    entries = [find_learner(learner) if isinstance(learner, str) else learner for learner in learners]
    folds = _splits(dataset, n_folds, random_state)
    sizes: dict[str, Any] = {"n_folds": len(folds), "n_train": len(folds[0][0]), "n_test": len(folds[0][1])}
    report = progress if progress is not None else _silence
    deadline = math.inf if time_limit is None else time.time() + time_limit
    results: dict[int, Result] = {}
    with _told_once():
        # In this process one after the other, so that the times of splits beside each other are of one learner.
        for group in [[i] for i in range(len(entries))] if are_at_home() else [list(range(len(entries)))]:
            chosen = [entries[i] for i in group]
            settings = _Settings(random_state, n_epochs, deadline)
            for number, measures in _measure(dataset, chosen, folds, settings, n_jobs, report):
                entry = chosen[number]
                if "failure" in measures:
                    report(entry.name, 1.0)
                results[group[number]] = Result(dataset.name, entry.name, **sizes, **measures)
                if finished is not None:
                    finished(results[group[number]])
    return [results[i] for i in sorted(results)]


@contextlib.contextmanager
def _told_once() -> Iterator[None]:
    """Keep warnings to the end: every learner reads the same table, so of what a line of code warns of, tell the first.

    Whatever ends the work, they are told.
    """
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        for first in {(one.filename, one.lineno): one for one in reversed(caught)}.values():
            warnings.warn_explicit(first.message, first.category, first.filename, first.lineno)


def best(results: Sequence[Result]) -> list[Result]:
    """Return the results with the lowest test error: one, several equal ones, or none if all learners failed.

    Parameters
    ----------
    results : sequence of Result
        From :func:`compare`.

    Returns
    -------
    list of Result
    """
    lowest = min((result.test_error for result in results if result.test_error is not None), default=None)
    return [result for result in results if result.test_error is not None and result.test_error == lowest]


def summary(results: Sequence[Result]) -> str:
    """Return one line that says which learner was best, and how that was measured.

    Parameters
    ----------
    results : sequence of Result
        From :func:`compare`.

    Returns
    -------
    str

    Examples
    --------
    >>> from tanlearn.comparison import Result, summary
    >>> summary([Result("digits", "NB ML", 1, 1198, 599, 10.0, None, 0.7, 1189, 0.031, 1.2)])
    'Best: NB ML, 10.00 % of 599 held-out rows wrong (standard error 1.23), trained on 1,198.'
    """
    winners = best(results)
    if not winners:
        return "No learner succeeded."
    names, first = " and ".join(winner.learner for winner in winners), winners[0]
    error = float(first.test_error or 0.0)
    if first.n_folds > 1:
        return (
            f"Best: {names}, {error:.2f} % of the test rows wrong, mean of {first.n_folds} folds (standard deviation "
            f"{first.test_error_std:.2f})."
        )
    standard_error = np.sqrt(error * (100.0 - error) / first.n_test)
    return (
        f"Best: {names}, {error:.2f} % of {first.n_test:,} held-out rows wrong (standard error "
        f"{standard_error:.2f}), trained on {first.n_train:,}."
    )


def cells(result: Result) -> tuple[str, ...]:
    """Return one row of a printed table, under ``HEADERS``."""
    if result.failure is not None:
        return result.learner, "failed", "", "", "", ""
    spread = "" if result.test_error_std is None else f" +- {result.test_error_std:.2f}"
    return (
        result.learner,
        f"{result.test_error:.2f}{spread}",
        f"{result.log_loss:.3f}",
        f"{result.n_parameters:,}",
        f"{result.fit_seconds:.2f}",
        f"{result.predict_microseconds:.1f}",
    )


def as_json(results: Sequence[Result]) -> str:
    """Return the results as a JSON list of objects, null for what there is not.

    Parameters
    ----------
    results : sequence of Result
        From :func:`compare`.

    Returns
    -------
    str
    """
    return json.dumps([asdict(result) for result in results], indent=2)


def as_csv(results: Sequence[Result]) -> str:
    """Return the results as comma-separated values under a line of names, empty for what there is not.

    Parameters
    ----------
    results : sequence of Result
        From :func:`compare`.

    Returns
    -------
    str
    """
    lines = io.StringIO()
    writer = csv.DictWriter(lines, [field.name for field in fields(Result)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(result) for result in results)
    return lines.getvalue().rstrip("\n")


def as_markdown(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table with the lowest error in bold, and the reasons of failures below.

    Parameters
    ----------
    results : sequence of Result
        From :func:`compare`.

    Returns
    -------
    str
    """
    winners = best(results)
    lines = [" | ".join(HEADERS), " | ".join(["---", *["---:"] * (len(HEADERS) - 1)])]
    for result in results:
        name, error, *others = cells(result)
        lines.append(" | ".join([name, f"**{error}**" if result in winners else error, *others]))
    failures = [f"{result.learner} failed: {result.failure}" for result in results if result.failure is not None]
    return "\n\n".join(["\n".join(f"| {line} |" for line in lines), *failures])


def _silence(learner: str, share: float | None) -> None:
    """Report nothing."""


def _splits(dataset: Dataset, n_folds: int | None, random_state: int) -> list[tuple[IntArray, IntArray]]:
    """Return the training and test rows of every split."""
    codes, _ = read_classes(dataset.y, dataset.X.shape[0])
    if dataset.folds is not None:
        if n_folds is not None:
            raise ValueError(
                f"{dataset.name} has its own split into training and test rows, so it cannot be split into {n_folds} "
                f"folds. Leave n_folds out."
            )
        return list(dataset.folds)
    check_folds(dataset.y, n_folds)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class in y", UserWarning)  # told with its name already
        return stratified_splits(codes, n_folds, random_state)


def check_folds(y: AnyArray, n_folds: int | None) -> None:
    """Refuse folds, or a third to hold out, that classes have too few rows for; warn if it is only some classes.

    Shapes: y: (n_samples,).
    """
    codes, classes = read_classes(y, len(y))
    sizes = np.bincount(codes)
    names, least, most = classes.tolist(), int(sizes.argmin()), int(sizes.max())
    rare = f"the least populated class, {names[least]!r}, has {sizes[least]} row(s)"
    if n_folds is None:
        if sizes[least] < 2:
            raise ValueError(f"{rare}: none is left to hold out. Leave it out, collect more rows, or ask for folds.")
    elif most < n_folds:
        raise ValueError(f"no class has a row for each of {n_folds} folds. Ask for at most {most} folds.")
    elif sizes[least] < n_folds:
        warn(f"{rare}, so not every one of {n_folds} folds tests it.", UserWarning)


@dataclass(frozen=True)
class _Settings:
    """What all learners are told, and when nothing may be begun any more, in seconds since 1970."""

    random_state: int
    n_epochs: int | None
    deadline: float
    n_jobs: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing may be begun any more."""
        return time.time() >= self.deadline

    def make(self, learner: Learner, dataset: Dataset, *, is_short: bool = False) -> Any:
        """Return an unfitted classifier."""
        encoder = TableEncoder(discrete_features=dataset.discrete_features, n_jobs=self.n_jobs)
        n_epochs = WARM_EPOCHS if is_short and self.n_epochs is not None else self.n_epochs
        return learner.make(random_state=self.random_state, n_epochs=n_epochs, n_jobs=self.n_jobs, encoder=encoder)


def _measure(
    dataset: Dataset,
    learners: Sequence[Learner],
    folds: Sequence[tuple[IntArray, IntArray]],
    settings: _Settings,
    n_jobs: int | None,
    report: Progress,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the measures over all splits of every learner, as they come; of one, if in this process."""
    is_home, n_folds = are_at_home(), len(folds)
    n_beside, settings = n_jobs, replace(settings, n_jobs=1)
    if is_home:
        if settings.is_over:
            return
        n_threads = number_of_threads(n_jobs)
        n_beside = min(n_threads, n_folds)
        # A learner by itself is told what the user has said.
        settings = replace(settings, n_jobs=n_jobs if n_beside == 1 else max(1, n_threads // n_beside))
        report(learners[0].name, None)
        _warm_up(settings, learners[0], dataset, folds[0][0])
        report(learners[0].name, 0.0)
    progress = [_SharesOfFolds(report, learner.name, n_folds) for learner in learners]
    rows = dataset, folds
    tasks = [
        (rows, (learner, k, settings, told.tell if is_home else None))
        for learner, told in zip(learners, progress, strict=True)
        for k in range(n_folds)
    ]
    runs: list[dict[int, tuple[float, ...]]] = [{} for _ in learners]
    is_left = [True] * len(learners)
    with contextlib.closing(as_completed(_run, tasks, n_beside)) as outcomes:
        for task, outcome in outcomes:
            number, k = divmod(task, n_folds)
            if not is_left[number]:
                continue
            if isinstance(outcome, tuple):
                progress[number].tell(k, 1.0)
                runs[number][k] = outcome
                is_left[number] = len(runs[number]) < n_folds
                if not is_left[number]:
                    yield number, _summed_up([runs[number][k] for k in range(n_folds)])
            else:  # what one learner stumbles over must not cost the work of the others
                is_left[number] = False
                if outcome is not None:
                    yield number, {"failure": outcome}
            if not any(is_left):
                return


def _run(
    rows: tuple[Dataset, Sequence[tuple[IntArray, IntArray]]],
    learner: Learner,
    k: int,
    settings: _Settings,
    tell: Callable[[int, float], Any] | None,
) -> tuple[float, ...] | str | None:
    """Return the measures of a learner on one split, or why it failed, or None if time is over."""
    dataset, folds = rows
    if settings.is_over:
        return None
    try:
        if tell is None:  # nobody in this process has done so
            _warm_up(settings, learner, dataset, folds[0][0])
        estimator = settings.make(learner, dataset)
        if tell is not None and "callback" in estimator.get_params(deep=False):
            estimator.set_params(callback=lambda epoch: tell(k, epoch.epoch / epoch.n_epochs))
        return _fit_and_predict(estimator, dataset, *folds[k])
    except Exception as error:
        return f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _summed_up(runs: Sequence[tuple[float, ...]]) -> dict[str, Any]:
    """Return the measures of a learner, given those of its splits."""
    error, log_loss, n_parameters, seconds, microseconds = np.mean(runs, axis=0).tolist()
    return {
        "test_error": error,
        "test_error_std": float(np.std([run[0] for run in runs], ddof=1)) if len(runs) > 1 else None,
        "log_loss": log_loss,
        "n_parameters": round(n_parameters),
        "fit_seconds": seconds,
        "predict_microseconds": microseconds,
    }


class _SharesOfFolds:
    """What is done of every fold, of several at a time, as a share of all; it never stops a training."""

    def __init__(self, report: Progress, learner: str, n_folds: int) -> None:
        self.report, self.learner = report, learner
        self.shares = [0.0] * n_folds
        self.lock = threading.Lock()

    def tell(self, fold: int, share: float) -> None:
        """Report that so much of a fold is done."""
        with self.lock:
            self.shares[fold] = share
            self.report(self.learner, sum(self.shares) / len(self.shares))


def _warm_up(settings: _Settings, learner: Learner, dataset: Dataset, train: IntArray) -> None:
    """Have every kernel of a learner compiled, or loaded from Numba's cache; the fit to all rows says what is wrong."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classes, codes = np.unique(dataset.y[train], return_inverse=True)
        rows = np.concatenate([train[codes == c][:WARM_ROWS] for c in range(len(classes))])
        X, y = dataset.take(rows)
        settings.make(learner, dataset, is_short=True).fit(X, y).predict(X)


def _fit_and_predict(estimator: Any, dataset: Dataset, train: IntArray, test: IntArray) -> tuple[float, ...]:
    """Return test error in percent, log loss, parameters, seconds a fit, and microseconds a predicted row."""
    X, y = dataset.take(train)
    started = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - started
    X, y = dataset.take(test)
    error = 100.0 * np.mean(estimator.predict(X) != y)
    durations = []
    for _ in range(N_PREDICTIONS):
        started = time.perf_counter()
        estimator.predict(X)
        durations.append(time.perf_counter() - started)
    # A class that training has not seen has no probability; what is 0 counts as the least that is not.
    known = np.searchsorted(estimator.classes_, y).clip(0, len(estimator.classes_) - 1)
    log_p = estimator.predict_log_proba(X)[np.arange(len(y)), known]
    log_p = np.where(estimator.classes_[known] == y, log_p, -np.inf).clip(np.log(np.finfo(np.float64).tiny))
    return float(error), float(-log_p.mean()), estimator.n_parameters_, seconds, 1e6 * min(durations) / len(test)
