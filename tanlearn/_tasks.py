"""Independent tasks on joblib's active backend: in threads of this process, in other processes, or on a cluster.

The input of a task has two parts: a possibly large part that many tasks share, such as the rows, and the task's own
part. For other processes, the shared part is pickled once. joblib's Dask backend sends large arguments to the cluster
only once. loky pickles all arguments for each task, but writes arrays above its ``max_nbytes`` to a file that all
workers map. The shared part is therefore packed into arrays of bytes.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend

from tanlearn._threads import number_of_threads, one_blas_thread
from tanlearn._typing import AnyArray

__all__ = ["are_at_home", "as_completed", "dump", "in_order"]

Result = TypeVar("Result")

#: Alignment, in bytes, of the largest number type in use.
_ALIGNMENT = 8


def are_at_home() -> bool:
    """Return whether tasks run in this process, which is the case if joblib's active backend shares memory."""
    backend, _ = get_active_backend(prefer="threads")
    return bool(getattr(backend, "supports_sharedmem", False))


def as_completed(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, tuple[Any, ...]]], n_jobs: int | None = None
) -> Generator[tuple[int, Result]]:
    """Call ``function(shared, *own)`` for each task (shared, own), and yield (task number, result) as results complete.

    The shared object may be large and is the same object in many tasks. All tasks are created before the first one
    starts. Tasks in other processes have one thread each. Closing the generator cancels tasks that have not started:
    joblib stops loky's workers, and workers of a cluster finish their current task. Raises TypeError if an object
    cannot be sent to another process.
    """
    todo = list(tasks)
    if are_at_home():
        n_threads = min(number_of_threads(n_jobs), len(todo))
        if n_threads <= 1:
            for number, (shared, own) in enumerate(todo):
                yield number, function(shared, *own)
            return
        calls = [delayed(_numbered)(number, function, shared, *own) for number, (shared, own) in enumerate(todo)]
        results = _results(calls, n_threads)
    else:
        packed = {key: _Packed(shared) for key, shared in {id(shared): shared for shared, _ in todo}.items()}
        dumped = [(packed[id(shared)], dump((function, own))) for shared, own in todo]
        results = _results([delayed(_unpacked)(number, *task) for number, task in enumerate(dumped)], n_jobs)
    with one_blas_thread():
        try:
            for result in results:  # noqa: UP028 (`yield from` would be the first to close them)
                yield result
        finally:
            with warnings.catch_warnings():  # joblib warns about results that are not retrieved
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def in_order(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, tuple[Any, ...]]], n_jobs: int | None = None
) -> list[Result]:
    """Call ``function(shared, *own)`` for each task (shared, own), and return the results in the order of the tasks.

    Raises TypeError if an object cannot be sent to another process.
    """
    return [result for _, result in sorted(as_completed(function, tasks, n_jobs), key=lambda found: found[0])]


def _results(calls: list[Any], n_jobs: int | None) -> Generator[Any]:
    """Yield results as they complete, or all at the end for backends without generators (multiprocessing, Ray).

    Calls are dispatched only when workers are free, so waiting calls stay in this process. Arrays are mapped from files
    in copy-on-write mode, because kernels are compiled for writable arrays. For read-only arrays, kernels would be
    compiled again, which takes seconds.
    """
    backend, _ = get_active_backend(prefer="threads")
    return_as = "generator_unordered" if getattr(backend, "supports_return_generator", False) else "list"
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as, pre_dispatch="n_jobs", mmap_mode="c")
    yield from parallel(calls)


class _Packed:
    """Object pickled to arrays of bytes, without copies of its arrays."""

    def __init__(self, content: Any) -> None:
        self.buffers: list[AnyArray] = []
        frame = dump(content, protocol=5, buffer_callback=lambda own: self.buffers.append(np.asarray(own.raw())))
        self.frame = np.frombuffer(frame, np.uint8)

    def __sizeof__(self) -> int:  # joblib sends large objects to a Dask cluster only once
        return sum(buffer.nbytes for buffer in [self.frame, *self.buffers]) + 2**10

    def unpack(self) -> Any:
        """Return the object, with arrays copied to aligned memory where necessary.

        Dask may store arrays at any address, and kernels would be compiled again for unaligned arrays.
        """
        buffers = [own if own.ctypes.data % _ALIGNMENT == 0 else own.copy() for own in self.buffers]
        return pickle.loads(self.frame.data, buffers=buffers)


def dump(content: Any, **options: Any) -> bytes:
    """Pickle an object. Raise TypeError if that fails, because joblib would wait forever for such a task on Dask."""
    try:
        import cloudpickle  # a requirement of joblib 1.6 and of Dask
    except ImportError:
        from joblib.externals import cloudpickle
    try:
        dumped: bytes = cloudpickle.dumps(content, **options)
    except Exception as error:  # pickling an object may raise any error
        raise TypeError(
            f"a task cannot be sent to another process: {error}. Remove callbacks and losses that contain locks, files "
            f"or connections, or run tasks in this process: joblib.parallel_config(backend='threading')."
        ) from error
    return dumped


def _numbered(number: int, function: Callable[..., Result], *arguments: Any) -> tuple[int, Result]:
    """Run a task in this process."""
    return number, function(*arguments)


def _unpacked(number: int, shared: _Packed, own: bytes) -> tuple[int, Any]:
    """Run a task in another process without nested joblib workers, which with Dask would be the whole cluster."""
    function, arguments = pickle.loads(own)
    with parallel_config(backend="threading", n_jobs=1):
        return number, function(shared.unpack(), *arguments)
