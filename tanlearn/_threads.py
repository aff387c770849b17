"""Work in threads of this process: item by item, or block of rows by block of rows."""

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
    """Return how many threads there are to work."""
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads from 1, or -1 for all cores; got 0.")
    if n_jobs is None:
        n_jobs = get_active_backend()[1]
    if n_jobs == 1:
        return 1
    backend, _ = get_active_backend(prefer="threads", require="sharedmem")
    return int(backend.effective_n_jobs(n_jobs))


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = None) -> list[Result]:
    """Call a function with every item.

    joblib says how many threads there are, also within threads, and Python starts them: ``joblib.Parallel`` looks for
    results every 10 ms, so that two tasks that do nothing take it 12 ms (0.2 ms here), and 23 batches a second.
    """
    tasks = list(items)
    n_threads = min(number_of_threads(n_jobs), len(tasks))
    if n_threads <= 1:
        return [function(task) for task in tasks]
    # Within these there are as many threads as joblib would start within its own, or none.
    backend, n_more = get_active_backend(prefer="threads", require="sharedmem")[0].get_nested_backend()
    pool = ThreadPoolExecutor(n_threads, initializer=partial(parallel_config, backend, n_jobs=n_more))
    try:
        with one_blas_thread():
            return list(pool.map(function, tasks))
    finally:  # after an error or Ctrl-C nobody is waited for
        pool.shutdown(wait=False, cancel_futures=True)


def one_blas_thread() -> Any:
    """Return a context in which BLAS computes in the thread that calls it.

    SciPy's L-BFGS asks BLAS for products of short vectors, and OpenBLAS wakes threads for some: on two cores, at work
    with something else, gradient TAN took ten times as long for 120 rows (1.12 s against 0.11). And sums over long
    vectors depended on the threads.
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> Any:
    """Return the libraries of this process that have threads; to look for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_blocks(function: Callable[[int, int], object], n_rows: int, size: int, n_jobs: int | None = None) -> None:
    """Call a function with the first and past the last row of every block; blocks do not depend on the threads."""
    starts = range(0, n_rows, size)
    n_threads = max(1, min(number_of_threads(n_jobs), len(starts)))
    waiting = iter(starts)  # its next number is taken under the GIL, by one thread

    def work(_: int) -> None:
        for first in waiting:
            function(first, min(first + size, n_rows))

    try:
        in_threads(work, range(n_threads), n_threads)
    finally:  # after an error or Ctrl-C, who is still at work finds nothing more to do
        for _ in waiting:
            pass
