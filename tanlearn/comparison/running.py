"""Comparison of learners, whose unfinished cells run in this process, in joblib's workers or in separate processes."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from sklearn.exceptions import FitFailedWarning

from tanlearn._compilation import on_first_compilation, write_compilation_note
from tanlearn._tasks import are_at_home, as_completed
from tanlearn._threads import number_of_threads
from tanlearn._warnings import warn
from tanlearn.baselines import Learner
from tanlearn.comparison.cell_warnings import each_warning_once
from tanlearn.comparison.cells import RunSettings, run_cell, warm_up
from tanlearn.comparison.comparison import Comparison
from tanlearn.comparison.inputs import named_datasets, named_learners
from tanlearn.comparison.protocol import SplitData, plan, split_data
from tanlearn.comparison.results import CellResult, ResultFile, check_agreement
from tanlearn.comparison.workers import run_in_workers

__all__ = ["Progress", "compare"]


class Progress(NamedTuple):
    """Progress of a comparison, passed to ``progress``.

    Parameters
    ----------
    dataset, learner : str
        Names of the current data set and learner.
    share : float or None
        Finished fraction, from 0 to 1, of the work of this learner on this data set, or None during the warm-up.
    n_done, n_cells : int
        Number of finished cells, and number of all cells, including the cells that were read from ``path``.
    """

    dataset: str
    learner: str
    share: float | None
    n_done: int
    n_cells: int


def compare(
    datasets: Any,
    learners: Any,
    *,
    n_folds: int | None = None,
    n_repeats: int = 1,
    random_state: int = 0,
    n_epochs: int | None = None,
    path: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    cell_time_limit: float | None = None,
    progress: bool | Callable[[Progress], Any] = False,
    finished: Callable[[CellResult], Any] | None = None,
) -> Comparison:
    """Train and test learners on the same splits of data sets.

    If a learner fails in a cell, the reason is stored in the result, and all other cells are still run. A warning at
    the end (``sklearn.exceptions.FitFailedWarning``) contains the first reason. If ``path`` is set, each finished cell
    is appended to a file, and the next call with the same path runs only the cells that the file does not contain.

    Parameters
    ----------
    datasets : data set, list or dict
        One or several data sets. The keys of a dict are used as names. A data set is

        - a name: "digits", "iris", "wine", "breast_cancer" or "openml:NAME",
        - the path of an ``.npz`` file, or ``(path, target)`` for a table with a column of classes,
        - ``(X, y)``, or ``(frame, target)`` with the name of a column,
        - a :class:`~tanlearn.sources.datasets.Dataset`; predefined splits are used as they are, in one repeat.
    learners : learner, list or dict
        One or several learners. The keys of a dict are used as names. A learner is a name in the registry, a
        :class:`~tanlearn.baselines.Learner`, or an unfitted classifier with scikit-learn's interface. A classifier is
        fitted to raw values. If its ``random_state`` is None, it is set to the seed of the repeat.
    n_folds : int, optional
        Number of folds of a stratified cross-validation. The default is 5. With 1, a stratified third of the rows is
        held out.
    n_repeats : int, default=1
        Number of repeats of the cross-validation, each with different folds.
    random_state : int, default=0
        Seed of the first repeat, for splits and learners. It increases by 1 with each repeat.
    n_epochs : int, optional
        Number of training epochs for learners named HYB, gradient TANs and k-trees in the registry. These are then
        trained with a fixed loss (see :meth:`tanlearn.baselines.Learner.make`). By default, the loss is selected on
        held-out rows.
    path : str or Path, optional
        CSV file for finished cells, which is created if it does not exist. If the process is killed, only the running
        cells are lost.
    retry_failed : bool, default=False
        Whether to run cells again that have failed according to ``path``, for example with a larger
        ``cell_time_limit``. New results are appended to the file, and the last result of each cell is used.
    n_jobs : int, optional
        Number of threads, as in joblib. Folds run in parallel, and each learner uses the remaining threads. Measured
        times depend on ``n_jobs``, but other results do not. For comparable times, use 1 on an idle machine. Within
        ``joblib.parallel_config(backend="dask")``, or with another process backend, all cells run on the workers of the
        backend with one thread each, and each data set is sent once.
    time_limit : float, optional
        Number of seconds after which no more cells are started. The result then contains the finished cells.
    cell_time_limit : float, optional
        Maximum number of seconds per cell, without its warm-up. The cells run in ``n_jobs`` separate processes. A
        process that exceeds the limit is killed and replaced, and its cell counts as failed. A warm-up is stopped after
        30 seconds (the first warm-up of a learner after 120 seconds).
    progress : bool or callable, default=False
        If True, a line per finished cell is written to stderr. If it is a function, it is called with a
        :class:`Progress`.
    finished : callable, optional
        Function that is called with each :class:`CellResult` as soon as the cell is finished. Before that, it is called
        with the results that were read from ``path``.

    Returns
    -------
    Comparison
        The finished cells, in the order of data sets, learners, repeats and folds.

    Raises
    ------
    ValueError
        If a name is unknown or occurs twice, a number is out of range, the classes are invalid, a split is not
        possible, or the file contains results for the same names, but with other data, folds, seeds or settings.
    TypeError
        If a data set or a learner has the wrong type, or cannot be sent to another process.
    OSError
        If the file cannot be read or written.

    Examples
    --------
    >>> from tanlearn.comparison import compare
    >>> comparison = compare(["iris", "wine"], ["NB ML", "TAN-CMI ML"], n_folds=3)
    >>> comparison
    Comparison(2 data sets, 2 learners, 12 cells)
    >>> [round(one.test_error, 1) for one in comparison.means() if one.dataset == "iris"]
    [4.7, 4.7]
    """
    _check_limits(n_jobs, time_limit=time_limit, cell_time_limit=cell_time_limit)
    entries = named_learners(learners)
    tables = split_data(named_datasets(datasets), n_folds, n_repeats, random_state)
    cells = plan(tables, entries, random_state, n_epochs, is_stored=path is not None)
    settings = RunSettings(n_epochs, math.inf if time_limit is None else time.time() + time_limit)
    with contextlib.ExitStack() as closed:
        if progress is True:
            closed.enter_context(on_first_compilation(write_compilation_note))
        file = None if path is None else closed.enter_context(ResultFile.opened(path))
        done = {} if file is None else _finished_cells(file, cells, retry_failed)
        report = _Reporter(cells, done, progress)
        for cell in done.values():
            if finished is not None:
                finished(cell)
        todo = [cell for cell in cells if cell.key not in done]
        closed.enter_context(each_warning_once([table.dataset.name for table in tables]))
        run = _run(tables, entries, todo, settings, n_jobs, cell_time_limit, report)
        results = closed.enter_context(contextlib.closing(run))
        for cell in results:
            if file is not None:
                file.append(cell)
            done[cell.key] = cell
            report.add(cell)
            if finished is not None:
                finished(cell)
    _warn_of_failures([done[cell.key] for cell in todo if cell.key in done])
    return Comparison([done[cell.key] for cell in cells if cell.key in done])


def _warn_of_failures(cells: Sequence[CellResult]) -> None:
    """Issue one warning about the failures of the cells that were run, with the first reason."""
    failed = [cell for cell in cells if cell.failure is not None]
    if failed:
        others = sorted({cell.learner for cell in failed} - {failed[0].learner})
        more = f" Other learners with failures: {', '.join(others)}." if others else ""
        reason = str(failed[0].failure).rstrip(".")
        warn(
            f"{len(failed)} of {len(cells)} cells failed. The first is {failed[0].label}: {reason}.{more} The "
            f"attribute failures of the comparison lists all failures.",
            FitFailedWarning,
        )


def _check_limits(n_jobs: int | None, **limits: float | None) -> None:
    """Raise ValueError if the number of threads or a number of seconds is out of range."""
    number_of_threads(n_jobs)
    for name, limit in limits.items():
        if limit is not None and not limit > 0:
            raise ValueError(f"{name} must be a number of seconds above 0, got {limit!r}.")


def _finished_cells(
    file: ResultFile, cells: Sequence[CellResult], retry_failed: bool
) -> dict[tuple[str, str, int, int], CellResult]:
    """Return the planned cells that a file contains. Raise ValueError if data, folds, seeds or settings differ."""
    check_agreement(file.cells, cells, str(file.path), "this comparison")
    planned = {cell.key: cell for cell in cells}
    done = {cell.key: cell for cell in file.cells if cell.key in planned}
    failed = [cell for cell in done.values() if cell.failure is not None]
    if failed and retry_failed:
        done = {key: cell for key, cell in done.items() if cell.failure is None}
    elif failed:
        warn(
            f"{len(failed)} failed cell(s) of {file.path} are kept and not run again. The first is "
            f"{failed[0].label}. Set retry_failed=True to run them again."
        )
    versions = {cell.versions for cell in done.values()} - {cell.versions for cell in cells}
    if versions:
        warn(f"{file.path} contains results of other versions: {'; '.join(sorted(versions))}.")
    return done


def _run(
    tables: Sequence[SplitData],
    learners: Sequence[Learner],
    todo: Sequence[CellResult],
    settings: RunSettings,
    n_jobs: int | None,
    limit: float | None,
    report: _Reporter,
) -> Generator[CellResult]:
    """Run cells, and yield them as they finish."""
    number = {table.dataset.name: k for k, table in enumerate(tables)}
    entry = {learner.name: learner for learner in learners}
    if not todo:
        return
    n_threads = number_of_threads(n_jobs)
    if limit is not None:
        n_workers = min(n_threads, len(todo))
        shared = replace(settings, n_jobs=max(1, n_threads // n_workers))
        tasks = [(number[cell.dataset], entry[cell.learner], cell) for cell in todo]
        yield from run_in_workers(tables, tasks, shared, n_workers, limit, notes=report.is_shown)
    elif not are_at_home():
        shared = replace(settings, n_jobs=1)
        sent = [(tables[number[cell.dataset]], (entry[cell.learner], cell, shared)) for cell in todo]
        with contextlib.closing(as_completed(_warm_up_and_run, sent, n_jobs)) as outcomes:
            yield from (cell for _, cell in outcomes if cell is not None)
    else:
        # Learners run one after another, so that only cells of the same learner slow each other down.
        for (dataset, name), group in groupby(todo, key=lambda cell: (cell.dataset, cell.learner)):
            if settings.is_over:
                return
            own = list(group)
            n_beside = min(n_threads, len(own))
            # If only one cell runs at a time, its learner uses the n_jobs of the user.
            shared = replace(settings, n_jobs=n_jobs if n_beside == 1 else max(1, n_threads // n_beside))
            table, learner = tables[number[dataset]], entry[name]
            report.begin(own[0])
            warm_up(shared, learner, table)
            report.advance(own[0], 0.0)
            local = [(table, (learner, cell, shared, report.advance)) for cell in own]
            with contextlib.closing(as_completed(run_cell, local, n_beside)) as outcomes:
                yield from (cell for _, cell in outcomes if cell is not None)


def _warm_up_and_run(table: SplitData, learner: Learner, cell: CellResult, settings: RunSettings) -> CellResult | None:
    """Warm up the learner, and run a cell, in a worker process of joblib."""
    if not settings.is_over:
        warm_up(settings, learner, table)
    return run_cell(table, learner, cell, settings)


class _Reporter:
    """Progress of all cells. Several threads may report it at the same time."""

    def __init__(
        self, cells: Sequence[CellResult], done: dict[Any, CellResult], progress: bool | Callable[[Progress], Any]
    ) -> None:
        self.call = progress if callable(progress) else None
        self.is_printed, self.is_shown = progress is True, bool(progress)
        self.n_done, self.n_cells, self.n_before = len(done), len(cells), len(done)
        self.started = time.monotonic()
        self.lock = threading.Lock()
        self.shares: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
        for cell in cells:
            parts = self.shares.setdefault((cell.dataset, cell.learner), {})
            parts[cell.repeat, cell.fold] = float(cell.key in done)

    def begin(self, cell: CellResult) -> None:
        """Report the warm-up of a learner on a data set."""
        if self.call is not None:
            self.call(Progress(cell.dataset, cell.learner, None, self.n_done, self.n_cells))

    def advance(self, cell: CellResult, share: float) -> None:
        """Report the finished fraction of a cell."""
        with self.lock:
            parts = self.shares[cell.dataset, cell.learner]
            parts[cell.repeat, cell.fold] = share
            if self.call is not None:
                whole = sum(parts.values()) / len(parts)
                self.call(Progress(cell.dataset, cell.learner, whole, self.n_done, self.n_cells))

    def add(self, cell: CellResult) -> None:
        """Report a finished cell."""
        self.n_done += 1
        self.advance(cell, 1.0)
        if self.is_printed:
            rate = (time.monotonic() - self.started) / (self.n_done - self.n_before)
            outcome = f"failed: {cell.failure}" if cell.failure else f"{cell.error:.2f} % in {cell.fit_seconds:.2f} s"
            rest = f"; about {rate * (self.n_cells - self.n_done):.0f} s left" if self.n_done < self.n_cells else ""
            sys.stderr.write(f"{self.n_done}/{self.n_cells} {cell.label}: {outcome}{rest}\n")
