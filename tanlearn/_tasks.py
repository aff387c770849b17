"""Independent tasks of some size, done wherever joblib is told to: in threads of this process, in others, on a cluster.

What a task needs comes in two parts: one that many share and that may be large, such as the rows, and its own. Where
another process does the work, the shared part is packed once. joblib's Dask backend then sends it to the cluster once,
as it does with large arguments; loky, which pickles what is not an array for every task, finds arrays of bytes, and
writes those above its ``max_nbytes`` to a file that all workers map.
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

__all__ = ["are_at_home", "as_completed", "in_order"]

Result = TypeVar("Result")

#: Bytes that addresses of the largest numbers in use are multiples of.
_ALIGNMENT = 8


def are_at_home() -> bool:
    """Return whether tasks are done in this process."""
    backend, _ = get_active_backend(prefer="threads")
    return bool(getattr(backend, "supports_sharedmem", False))


def as_completed(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, tuple[Any, ...]]], n_jobs: int | None = None
) -> Generator[tuple[int, Result]]:
    """Call a function with every task, and yield the results as they come."""
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
        dumped = [(packed[id(shared)], _dumped((function, own))) for shared, own in todo]
        results = _results([delayed(_unpacked)(number, *task) for number, task in enumerate(dumped)], n_jobs)
    with one_blas_thread():
        try:
            for result in results:  # noqa: UP028 (`yield from` would be the first to close them)
                yield result
        finally:
            with warnings.catch_warnings():  # joblib's, that results have come which nobody waits for any more
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def in_order(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, tuple[Any, ...]]], n_jobs: int | None = None
) -> list[Result]:
    """Call a function with every task."""
    return [result for _, result in sorted(as_completed(function, tasks, n_jobs), key=lambda found: found[0])]


def _results(calls: list[Any], n_jobs: int | None) -> Generator[Any]:
    """Yield results as they come, or at the end from a backend that cannot tell before (multiprocessing's, Ray's).

    Calls go to workers when these are free, so what is waiting is nowhere but here. Arrays that are mapped from files
    can be written to, each process seeing its own changes: kernels are compiled for such arrays, and compile anew, for
    seconds, for those that cannot.
    """
    backend, _ = get_active_backend(prefer="threads")
    return_as = "generator_unordered" if getattr(backend, "supports_return_generator", False) else "list"
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as, pre_dispatch="n_jobs", mmap_mode="c")
    yield from parallel(calls)


class _Packed:
    """An object as arrays of bytes; those of its own arrays are no copies."""

    def __init__(self, content: Any) -> None:
        self.buffers: list[AnyArray] = []
        frame = _dumped(content, protocol=5, buffer_callback=lambda own: self.buffers.append(np.asarray(own.raw())))
        self.frame = np.frombuffer(frame, np.uint8)

    def __sizeof__(self) -> int:  # what joblib asks before it sends something to a Dask cluster once for all tasks
        return sum(buffer.nbytes for buffer in [self.frame, *self.buffers]) + 2**10

    def unpack(self) -> Any:
        """Return the object.

        Dask places arrays anywhere, and kernels would be compiled anew for those whose numbers are astride of words.
        """
        buffers = [own if own.ctypes.data % _ALIGNMENT == 0 else own.copy() for own in self.buffers]
        return pickle.loads(self.frame.data, buffers=buffers)


def _dumped(content: Any, **options: Any) -> bytes:
    """Return a pickle; joblib would wait forever for a task that cannot be sent to Dask."""
    try:
        import cloudpickle  # joblib 1.6 asks for it, as does Dask
    except ImportError:
        from joblib.externals import cloudpickle
    try:
        dumped: bytes = cloudpickle.dumps(content, **options)
    except Exception as error:  # whatever objects raise
        raise TypeError(
            f"joblib is told to work in other processes, and this cannot be sent there: {error}. Leave out callbacks "
            f"and losses that hold locks, files or connections, or take joblib.parallel_config(backend='threading')."
        ) from error
    return dumped


def _numbered(number: int, function: Callable[..., Result], *arguments: Any) -> tuple[int, Result]:
    """Do a task in this process."""
    return number, function(*arguments)


def _unpacked(number: int, shared: _Packed, own: bytes) -> tuple[int, Any]:
    """Do a task in another process, where nobody asks joblib for workers again, Dask for all of the cluster's."""
    function, arguments = pickle.loads(own)
    with parallel_config(backend="threading", n_jobs=1):
        return number, function(shared.unpack(), *arguments)
