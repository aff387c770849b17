"""Kernels that run as plain Python on a few rows, which takes less time than compiling them.

The first fit of naive Bayes on iris calls nine kernels, each with at most 1,224 numbers per call. Compiling them takes
3 s; running them as plain Python takes 0.1 s. Only kernels with integers and float64 numbers are marked as
interpretable. Python and compiled code round these operations equally, so results are equal bit for bit, whether a
kernel is compiled or not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from tanlearn.kernels._read_only import argument_types

__all__ = ["compile_always", "interpretable", "interpretation_is_allowed"]

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])

#: Largest number of elements of all arguments for which a call is interpreted. It then takes tens of milliseconds.
MOST_ELEMENTS = 4_000
#: Processor seconds for which a kernel may be interpreted in a process. After that, a compilation of 0.1 to 1 s pays
#: off. Wall-clock time is not used, because on a busy machine a first fit of naive Bayes on iris then compiled 12
#: functions.
MOST_SECONDS = 0.1
_WIDE = {np.dtype(kind) for kind in (np.bool_, np.int64, np.uint64, np.float64)}
_NARROW = {np.dtype(kind) for kind in ("i1", "i2", "i4", "u1", "u2", "u4")}


_forced = 0  # number of open contexts in which nothing is interpreted
_lock = threading.Lock()


@contextmanager
def compile_always() -> Iterator[None]:
    """Compile kernels at their first call, even for a few rows, in all threads; for warm-ups, which are not timed."""
    global _forced
    with _lock:
        _forced += 1
    try:
        yield
    finally:
        with _lock:
            _forced -= 1


def interpretation_is_allowed() -> bool:
    """Return whether plain Python and NumPy may replace kernels on a few rows."""
    return not _forced


class _Interpreter:
    """Plain Python version of a kernel, and the time that remains for it."""

    def __init__(self, compiled: Any) -> None:
        self._function = _plain(compiled)
        self._remaining = MOST_SECONDS

    def accepts(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether a call is short, and its types have the same arithmetic in Python and in compiled code."""
        arrays = [value for value in arguments if isinstance(value, np.ndarray)]
        return (
            interpretation_is_allowed()
            and self._remaining > 0
            and sum(array.size for array in arrays) <= MOST_ELEMENTS
            and all(array.dtype in _WIDE or array.dtype in _NARROW for array in arrays)
        )

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel; narrow integers are passed as int64, because NumPy's scalars of these types overflow."""
        begin = time.thread_time()
        wide = [_widened(value) for value in arguments]
        with np.errstate(all="ignore"):
            result = self._function(*wide)
        for value, own in zip(arguments, wide, strict=True):
            if own is not value and value.flags.writeable:
                value[...] = own
        self._remaining -= time.thread_time() - begin
        return result


def interpretable(compiled: _Kernel) -> _Kernel:
    """Interpret the first short calls of a kernel that is neither compiled nor in the cache.

    All arguments must be numbers or arrays that do not overlap.
    """
    compile_for_args = getattr(compiled, "_compile_for_args", None)  # called for types that are not compiled yet
    if compile_for_args is None:  # Numba is disabled
        return compiled
    interpreters: list[_Interpreter] = []
    uncached: set[Any] = set()

    def choose(*arguments: Any, **keywords: Any) -> Any:
        if not interpreters:
            interpreters.append(_Interpreter(compiled))
        if keywords or not interpreters[0].accepts(arguments) or _is_compiled(compiled, arguments, uncached):
            return compile_for_args(*arguments, **keywords)
        return interpreters[0]

    compiled._compile_for_args = choose  # type: ignore[attr-defined]
    return compiled


def _widened(value: Any) -> Any:
    """Return an argument, with integers of fewer than 64 bits converted."""
    return value.astype(np.int64) if isinstance(value, np.ndarray) and value.dtype in _NARROW else value


def _plain(compiled: Any) -> FunctionType:
    """Return the Python function of a kernel, which calls the Python functions of other kernels."""
    function = compiled.py_func
    namespace = dict(function.__globals__)
    for name in function.__code__.co_names:
        if hasattr(namespace.get(name), "py_func"):
            namespace[name] = _plain(namespace[name])
    return FunctionType(function.__code__, namespace, function.__name__)


def _is_compiled(compiled: Any, arguments: tuple[Any, ...], uncached: set[Any]) -> bool:
    """Return whether the code for some arguments is compiled, in this process or in the cache on disk."""
    kinds = argument_types(compiled, arguments)
    if kinds in compiled.overloads:
        return True
    cache: Any = getattr(compiled, "_cache", None)
    files = getattr(cache, "_cache_file", None)
    if files is None:
        return False
    if kinds not in uncached:
        if cache._index_key(kinds, compiled.targetctx.codegen()) in files._load_index():
            return True
        uncached.add(kinds)
    return False
