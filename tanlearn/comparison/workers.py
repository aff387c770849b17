"""Processes that run one cell at a time. If a cell exceeds its time limit, its process is killed and replaced.

A process can be killed while it runs compiled code, but a thread cannot. Each worker is a new Python process, which
does not import the user's program. It reads tasks from its standard input and writes results to its standard output. It
ends when its standard input is closed, even if this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from joblib import parallel_config

from tanlearn._compilation import on_first_compilation, write_compilation_note
from tanlearn._tasks import dump
from tanlearn._threads import one_blas_thread
from tanlearn.baselines import Learner
from tanlearn.comparison.cells import RunSettings, reason, run_cell, warm_up
from tanlearn.comparison.protocol import SplitData
from tanlearn.comparison.results import CellResult

__all__ = ["run_in_workers", "serve"]

#: Maximum number of seconds for the first warm-up of a learner, which may compile its kernels, and for later warm-ups.
#: A warm-up that takes longer is skipped.
COMPILATION, WARM_UP = 120.0, 30.0

Task = tuple[int, Learner, CellResult]


def run_in_workers(
    tables: Sequence[SplitData],
    tasks: Sequence[Task],
    settings: RunSettings,
    n_workers: int,
    limit: float,
    *,
    notes: bool = False,
) -> Generator[CellResult]:
    """Run tasks (number of the data set, learner, cell) in worker processes, and yield cells as they finish.

    ``limit`` is the maximum number of seconds per cell, without the start and the warm-up of its worker. No cell begins
    after the deadline. Closing the generator kills the workers. With ``notes``, the first worker writes a line to
    standard error if it compiles kernels.
    """
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting = iter(tasks)
    with tempfile.TemporaryDirectory(prefix="tanlearn-") as folder:
        try:
            for k, table in enumerate(tables):
                Path(folder, f"{k}.pickle").write_bytes(dump(table))
            sent = [dump((k, learner, cell, settings)) for k, learner, cell in tasks]
        except TypeError as error:
            raise TypeError(
                f"{error} This is necessary if cell_time_limit is set, because cells then run in other processes."
            ) from error
        pool = _Pool(folder, limit, settings, zip(waiting, sent, strict=True), results, notes)
        threads = [threading.Thread(target=pool.work, daemon=True) for _ in range(n_workers)]
        for thread in threads:
            thread.start()
        try:
            n_active = len(threads)
            while n_active:
                found = results.get()
                if found is None:
                    n_active -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    cell, caught = found
                    for message in caught:
                        warnings.warn_explicit(*message)
                    yield cell
        finally:
            pool.stop()
            for thread in threads:
                thread.join()


class _Pool:
    """Queue of tasks for several threads, each with its own worker process."""

    def __init__(self, folder: str, limit: float, settings: RunSettings, tasks: Any, results: Any, notes: bool) -> None:
        self.folder, self.limit, self.settings, self.tasks, self.results = folder, limit, settings, tasks, results
        self.notes = notes
        self.lock = threading.Lock()
        self.is_stopped = False
        self.warmed: set[str] = set()  # learners that have been warmed up once
        self.left_out: set[tuple[int, str]] = set()  # data sets and learners whose warm-up took too long
        self.workers: list[_Worker] = []

    def work(self) -> None:
        """Run tasks until no task is left. A killed worker is replaced. The final result None marks the end."""
        worker = None
        try:
            while (task := self._next()) is not None:
                (k, learner, cell), sent = task
                found = None
                while found is None and not self.is_stopped:
                    if worker is not None and not worker.is_alive:
                        worker.end()
                        worker = None
                    worker = worker or self._start()
                    if worker is not None:
                        allowed = self._warm_up_limit(k, learner.name)
                        found = worker.run(cell, sent, allowed, self.limit)
                        if found is None:
                            self.left_out.add((k, learner.name))
                if not self.is_stopped:
                    self.results.put(found)
        except BaseException as error:  # raised again by the code that receives the results
            self.results.put(error)
        finally:
            if worker is not None:
                worker.end()
            self.results.put(None)

    def stop(self) -> None:
        """Kill all workers, and start no more tasks."""
        with self.lock:
            self.is_stopped = True
            for worker in self.workers:
                worker.kill()

    def _next(self) -> Any:
        with self.lock:
            return None if self.is_stopped or self.settings.is_over else next(self.tasks, None)

    def _warm_up_limit(self, k: int, learner: str) -> float:
        """Return the maximum number of seconds for a warm-up, or 0 to skip it."""
        with self.lock:
            allowed = 0.0 if (k, learner) in self.left_out else WARM_UP if learner in self.warmed else COMPILATION
            self.warmed.add(learner)
            return allowed

    def _start(self) -> _Worker | None:
        with self.lock:
            if self.is_stopped:
                return None
            self.workers.append(_Worker(self.folder, notes=self.notes and not self.workers))
            return self.workers[-1]


class _Worker:
    """Handle of one worker process."""

    def __init__(self, folder: str, *, notes: bool) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({folder!r}, {notes})"
        # The worker has its own process group. Ctrl-C in a terminal then interrupts only this process, and child
        # processes of the worker can be killed with it.
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        self.is_alive, self.is_late = True, False

    def run(
        self, cell: CellResult, sent: bytes, warm_up_limit: float, limit: float
    ) -> tuple[CellResult, list[Any]] | None:
        """Run a task. A cell fails if it exceeds the limit or ends its process.

        Returns None if the warm-up exceeds its own limit. A limit of 0 skips the warm-up.
        """
        assert self.process.stdin is not None
        has_begun = False
        try:
            self.process.stdin.write(pickle.dumps(warm_up_limit > 0) + sent)
            self.process.stdin.flush()
            self._answer(None)  # the start of the process, which reads the data set
            self._answer(warm_up_limit or None)
            has_begun = self.is_alive  # the limit of the warm-up may have just been exceeded
            answer = self._answer(limit)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.is_alive = False
            code = self.process.wait()
            if self.is_late and not has_begun:
                return None
            return replace(cell, failure=self._failure(limit, code)), []
        return answer

    def _answer(self, allowed: float | None) -> Any:
        """Return the next answer. If there is a limit, kill the process after that number of seconds."""
        timer = threading.Timer(min(allowed or threading.TIMEOUT_MAX, threading.TIMEOUT_MAX), self._expire)
        timer.daemon = True
        timer.start()
        try:
            return pickle.load(self.process.stdout)  # type: ignore[arg-type]
        finally:
            timer.cancel()
            timer.join()  # so that no thread is left when a comparison ends

    def _expire(self) -> None:
        self.is_late, self.is_alive = True, False
        self.kill()

    def _failure(self, limit: float, code: int) -> str:
        """Return the reason for which the process has ended."""
        if self.is_late:
            return f"took longer than the limit of {limit:g} s"
        if code >= 0:
            return f"its process ended with exit code {code}"
        return f"its process was ended by {signal.Signals(-code).name}, which the system does when memory runs out"

    def kill(self) -> None:
        """Kill the process and its child processes."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # the process has ended meanwhile
                if os.name == "posix":
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()

    def end(self) -> None:
        """Kill the process when its work is finished, and close its streams."""
        self.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):  # an unfinished task is still in the buffer
                stream.close()


def serve(folder: str, notes: bool = False) -> None:
    """In a worker process, run the tasks from standard input until it is closed."""
    with on_first_compilation(write_compilation_note) if notes else contextlib.nullcontext():
        _serve(folder)


def _serve(folder: str) -> None:
    """Run the tasks from standard input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that learners print must not be mixed with the answers
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(tasks,), daemon=True).start()
    number, warm = -1, set[str]()
    table: Any = None
    while True:
        is_warmed, (k, learner, cell, settings) = tasks.get()
        if k != number:
            number, table, warm = k, pickle.loads(Path(folder, f"{k}.pickle").read_bytes()), set()
        _send(answers, None)
        with parallel_config(backend="threading", n_jobs=settings.n_jobs), one_blas_thread():
            if is_warmed and learner.name not in warm:
                warm_up(settings, learner, table)
                warm.add(learner.name)
            _send(answers, None)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = run_cell(table, learner, cell, replace(settings, deadline=float("inf")))
        _send(answers, (found, [(str(one.message), one.category, one.filename, one.lineno) for one in caught]))


def _send(stream: Any, answer: Any) -> None:
    stream.write(pickle.dumps(answer))
    stream.flush()


def _receive(tasks: Any) -> None:
    """Pass tasks on as they arrive. When there are no more tasks, end the process, even during a fit."""
    while True:
        try:
            tasks.put((pickle.load(sys.stdin.buffer), pickle.load(sys.stdin.buffer)))
        except EOFError:
            os._exit(0)
        except Exception as error:
            print(f"tanlearn: a worker process cannot read a task: {reason(error)}", file=sys.stderr)  # noqa: T201
            os._exit(1)
