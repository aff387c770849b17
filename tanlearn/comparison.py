"""Comparison of several learners on the same splits of one data set: test error, size and time.

Compilation is excluded from the times. Before its first timed fit, each learner is fitted to a few rows for two epochs,
and before its first timed prediction it predicts once.
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
from tanlearn.encoding.splits import stratified_splits
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.sources.datasets import Dataset
from tanlearn.sources.validation import read_classes

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

#: Called with the name of the current learner and the fraction of its work that is done, ``None`` during the warm-up.
Progress: TypeAlias = Callable[[str, float | None], Any]

#: Rows per class and epochs of the warm-up fit.
WARM_ROWS, WARM_EPOCHS = 10, 2
#: Number of timed predictions, of which the fastest counts: other processes can only slow a prediction down.
N_PREDICTIONS = 3

HEADERS = ("learner", "test error [%]", "log loss", "parameters", "fit [s]", "predict [us/row]")


@dataclass(frozen=True)
class Result:
    """Result of one learner: its measures, or the reason of its failure.

    Parameters
    ----------
    dataset, learner : str
        Names of the data set and the learner.
    n_folds : int
        Number of splits.
    n_train, n_test : int
        Numbers of training and test rows of the first split.
    test_error : float or None
        Misclassified test rows in percent, mean over the splits.
    test_error_std : float or None
        Standard deviation of the error over the splits (ddof = 1); None for a single split.
    log_loss : float or None
        Mean negative log-probability of the true class of test rows, mean over the splits.
    n_parameters : int or None
        Number of free parameters, mean over the splits.
    fit_seconds : float or None
        Wall-clock time of ``fit`` from raw values, including encoding, mean over the splits.
    predict_microseconds : float or None
        Wall-clock time of ``predict`` per test row, including encoding, mean over the splits.
    failure : str or None
        Reason of the failure, if the learner failed.

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
    """Train and test several learners on the same splits.

    If a learner fails, its result contains the reason, and the others continue.

    Parameters
    ----------
    dataset : Dataset
        Raw values; continuous columns are discretized within each fit.
    learners : sequence of str or Learner
        Names of registered learners, or your own entries.
    n_folds : int, optional
        Number of folds of a stratified cross-validation, for a data set without predefined splits. By default a
        stratified third of the rows is held out.
    random_state : int, default=0
        Seed of the splits and of the learners.
    n_epochs : int, optional
        Number of epochs of HYB, gradient TANs and k-trees, which are then trained with a fixed loss (see
        :meth:`tanlearn.baselines.Learner.make`). By default, the loss is selected on held-out rows.
    n_jobs : int, optional
        Number of threads, as in joblib. Splits run in parallel, and each learner uses the remaining threads. The
        fitted models do not depend on it, but the times do. Within ``joblib.parallel_config(backend="dask")``, or with
        another process backend, all splits of all learners run on its workers with one thread each, and the data set
        is sent once. Warnings are then issued in the workers.
    progress : callable, optional
        Called as ``progress(learner, share)`` with the fraction, 0 to 1, of the learner's work that is done. The
        fraction is ``None`` during the warm-up, which on a new machine compiles its kernels. Other processes report
        only finished splits.
    finished : callable, optional
        Called with each result when it is complete.
    time_limit : float, optional
        Seconds after which no further learner or split begins, according to the clock of the machine that would run
        it. A learner without all its splits has no result. The results of the others do not depend on the limit.

    Returns
    -------
    list of Result
        Results in the order of the learners, for all learners or for those completed within the time limit.

    Raises
    ------
    ValueError
        If the list of learners is empty or contains an unknown name, ``n_jobs`` is 0, the time limit is not above 0,
        the classes are invalid, or the split is not possible.
    TypeError
        If a process backend cannot serialize a learner.

    Examples
    --------
    >>> from tanlearn.comparison import compare
    >>> from tanlearn.sources.datasets import load_digits
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
    with _each_warning_once():
        # In this process learners run one after another, so that only splits of the same learner run in parallel and
        # affect each other's times.
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
def _each_warning_once() -> Iterator[None]:
    """Collect warnings, and issue the first one of each line of code at the end, also after an error.

    All learners read the same data and would otherwise repeat the same warnings.
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
    """Return the results with the lowest test error: one, several in case of ties, or none if all learners failed.

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
    """Return one line with the best learner, its error and how the error was measured.

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
    """Return one row of a printed table, with the columns of ``HEADERS``; a failed learner has the error "failed"."""
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
    """Return the results as a JSON list of objects, with null for unavailable measures.

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
    """Return the results as comma-separated values with a header line; unavailable measures are empty.

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
    """Return the results as a Markdown table with the lowest error in bold, followed by the reasons of failures.

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
    """Ignore progress."""


def _splits(dataset: Dataset, n_folds: int | None, random_state: int) -> list[tuple[IntArray, IntArray]]:
    """Return the training and test rows of each split."""
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
        warnings.filterwarnings("ignore", "The least populated class in y", UserWarning)  # check_folds names the class
        return stratified_splits(codes, n_folds, random_state)


def check_folds(y: AnyArray, n_folds: int | None) -> None:
    """Raise ValueError if the classes have too few rows for the folds; warn if only some classes have too few.

    If ``n_folds`` is None, a third of the rows is held out, which needs at least two rows per class.
    """
    codes, classes = read_classes(y, len(y))
    sizes = np.bincount(codes)
    names, least, most = classes.tolist(), int(sizes.argmin()), int(sizes.max())
    rare = f"the least populated class, {names[least]!r}, has {sizes[least]} row(s)"
    if n_folds is None:
        if sizes[least] < 2:
            raise ValueError(f"{rare}: no row is left to hold out. Remove the class, collect more rows, or use folds.")
    elif most < n_folds:
        raise ValueError(f"no class has a row for each of {n_folds} folds. Use at most {most} folds.")
    elif sizes[least] < n_folds:
        warn(f"{rare}, so not every one of {n_folds} folds tests it.", UserWarning)


@dataclass(frozen=True)
class _Settings:
    """Settings shared by all learners, and the deadline for starting work, in seconds since 1970."""

    random_state: int
    n_epochs: int | None
    deadline: float
    n_jobs: int | None = None

    @property
    def is_over(self) -> bool:
        """True once the deadline has passed."""
        return time.time() >= self.deadline

    def make(self, learner: Learner, dataset: Dataset, *, is_short: bool = False) -> Any:
        """Return an unfitted classifier; ``is_short`` limits its epochs for the warm-up."""
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
    """Yield index and measures over all splits of each learner, as they complete.

    If splits run in this process, ``learners`` has a single entry.
    """
    is_home, n_folds = are_at_home(), len(folds)
    n_beside, settings = n_jobs, replace(settings, n_jobs=1)
    if is_home:
        if settings.is_over:
            return
        n_threads = number_of_threads(n_jobs)
        n_beside = min(n_threads, n_folds)
        # A learner that runs alone gets the user's n_jobs.
        settings = replace(settings, n_jobs=n_jobs if n_beside == 1 else max(1, n_threads // n_beside))
        report(learners[0].name, None)
        _warm_up(settings, learners[0], dataset, folds[0][0])
        report(learners[0].name, 0.0)
    progress = [_FoldProgress(report, learner.name, n_folds) for learner in learners]
    rows = dataset, folds
    tasks = [
        (rows, (learner, k, settings, reporter.report_fold if is_home else None))
        for learner, reporter in zip(learners, progress, strict=True)
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
                progress[number].report_fold(k, 1.0)
                runs[number][k] = outcome
                is_left[number] = len(runs[number]) < n_folds
                if not is_left[number]:
                    yield number, _averaged([runs[number][k] for k in range(n_folds)])
            else:  # a failure of one learner must not discard the results of the others
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
    report_fold: Callable[[int, float], Any] | None,
) -> tuple[float, ...] | str | None:
    """Return the measures of a learner on one split, the reason of its failure, or None after the deadline."""
    dataset, folds = rows
    if settings.is_over:
        return None
    try:
        if report_fold is None:  # this worker process has not warmed up the learner
            _warm_up(settings, learner, dataset, folds[0][0])
        estimator = settings.make(learner, dataset)
        if report_fold is not None and "training__callback" in estimator.get_params():
            estimator.set_params(training__callback=lambda epoch: report_fold(k, epoch.epoch / epoch.n_epochs))
        return _fit_and_predict(estimator, dataset, *folds[k])
    except Exception as error:
        return f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _averaged(runs: Sequence[tuple[float, ...]]) -> dict[str, Any]:
    """Return the measures of a learner, averaged over its splits."""
    error, log_loss, n_parameters, seconds, microseconds = np.mean(runs, axis=0).tolist()
    return {
        "test_error": error,
        "test_error_std": float(np.std([run[0] for run in runs], ddof=1)) if len(runs) > 1 else None,
        "log_loss": log_loss,
        "n_parameters": round(n_parameters),
        "fit_seconds": seconds,
        "predict_microseconds": microseconds,
    }


class _FoldProgress:
    """Progress of a learner over folds that run in parallel; it never stops a training."""

    def __init__(self, report: Progress, learner: str, n_folds: int) -> None:
        self.report, self.learner = report, learner
        self.shares = [0.0] * n_folds
        self.lock = threading.Lock()

    def report_fold(self, fold: int, share: float) -> None:
        """Report the finished fraction of a fold."""
        with self.lock:
            self.shares[fold] = share
            self.report(self.learner, sum(self.shares) / len(self.shares))


def _warm_up(settings: _Settings, learner: Learner, dataset: Dataset, train: IntArray) -> None:
    """Compile the kernels of a learner or load them from Numba's cache; errors are left to the actual fit."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classes, codes = np.unique(dataset.y[train], return_inverse=True)
        rows = np.concatenate([train[codes == c][:WARM_ROWS] for c in range(len(classes))])
        X, y = dataset.take(rows)
        settings.make(learner, dataset, is_short=True).fit(X, y).predict(X)


def _fit_and_predict(estimator: Any, dataset: Dataset, train: IntArray, test: IntArray) -> tuple[float, ...]:
    """Return test error in percent, log loss, number of parameters, seconds per fit and microseconds per row."""
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
    # A class without training rows has probability zero; zeros count as the smallest positive float.
    known = np.searchsorted(estimator.classes_, y).clip(0, len(estimator.classes_) - 1)
    log_p = estimator.predict_log_proba(X)[np.arange(len(y)), known]
    log_p = np.where(estimator.classes_[known] == y, log_p, -np.inf).clip(np.log(np.finfo(np.float64).tiny))
    return float(error), float(-log_p.mean()), estimator.n_parameters_, seconds, 1e6 * min(durations) / len(test)
