"""Functions that process items or blocks of rows in threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

from joblib import parallel_config
from joblib.parallel import get_active_backend

__all__ = ["in_blocks", "in_threads", "number_of_threads", "one_blas_thread"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def number_of_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``, as in joblib; None uses ``joblib.parallel_config``, or 1.

    In worker processes of a pool, threads are counted, too. There, joblib's own ``effective_n_jobs`` warns that it
    cannot start processes. ``n_jobs=0`` raises ValueError.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive number of threads, or -1 for all cores, got 0.")
    if n_jobs is None:
        n_jobs = get_active_backend()[1]
    if n_jobs == 1:
        return 1
    backend, _ = get_active_backend(prefer="threads", require="sharedmem")
    return int(backend.effective_n_jobs(n_jobs))


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = None) -> list[Result]:
    """Call a function for each item in threads, and return the results in the order of the items.

    joblib determines the number of threads, even for nested calls, but does not start them: ``joblib.Parallel`` polls
    for results every 10 ms, so two empty tasks would take 12 ms instead of 0.2 ms.
    """
    tasks = list(items)
    n_threads = min(number_of_threads(n_jobs), len(tasks))
    if n_threads <= 1:
        return [function(task) for task in tasks]
    # Nested calls have as many threads as joblib would give them.
    backend, n_more = get_active_backend(prefer="threads", require="sharedmem")[0].get_nested_backend()
    pool = ThreadPoolExecutor(n_threads, initializer=partial(parallel_config, backend, n_jobs=n_more))
    try:
        with one_blas_thread():
            return list(pool.map(function, tasks))
    finally:  # do not wait for threads after an error or Ctrl-C
        pool.shutdown(wait=False, cancel_futures=True)


def one_blas_thread() -> Any:
    """Return a context manager within which BLAS uses only the calling thread.

    SciPy's L-BFGS computes products of short vectors with BLAS, and OpenBLAS wakes threads for some of these products.
    On two busy cores, fitting gradient TAN to 120 rows therefore took ten times as long (1.12 s instead of 0.11 s).
    Sums over long vectors also depended on the number of threads. The limit applies to the process: if several threads
    enter at once, one setting may be lost.
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> Any:
    """Return the controller of the thread pools of loaded libraries, cached because creating it takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_blocks(function: Callable[[int, int], object], n_rows: int, size: int, n_jobs: int | None = None) -> None:
    """Call ``function(first, last)`` for each block of ``size`` rows, ``last`` exclusive, in threads.

    The blocks do not depend on the number of threads. Each thread takes the next block when it has finished one,
    because a separate task per block would take 60 µs.
    """
    starts = range(0, n_rows, size)
    n_threads = max(1, min(number_of_threads(n_jobs), len(starts)))
    waiting = iter(starts)  # next() holds the GIL, so each block goes to one thread

    def work(_: int) -> None:
        for first in waiting:
            function(first, min(first + size, n_rows))

    try:
        in_threads(work, range(n_threads), n_threads)
    finally:  # after an error or Ctrl-C, exhaust the iterator so that the other threads stop
        for _ in waiting:
            pass
