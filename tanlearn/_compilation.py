"""Notes about the compilation of kernels in a first run, and about kernels that cannot be stored."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from tanlearn._warnings import warn

__all__ = ["on_first_compilation", "watch_compilation", "write_compilation_note"]

#: Seconds of compilation after which a note is written. Compiling one or two kernels takes less time.
_SHORT = 1.0

#: Compilation of the kernels of the five default learners of ``tanlearn compare`` took 40 s of processor time.
_NOTE = (
    "tanlearn: compiling kernels, once per installation, which takes up to a minute. Later runs load them from a cache."
)


class _FirstCompilation(event.Listener):
    """Listener that calls a function when the first kernel is compiled, not when kernels are loaded from the cache."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._lock = threading.Lock()
        self._call: Callable[[], Any] | None = call

    def on_start(self, event: Any) -> None:
        """Call the function once."""
        with self._lock:
            call, self._call = self._call, None
        if call is not None:
            call()

    def on_end(self, event: Any) -> None:
        """Ignore the end of a compilation."""


class _Watch(event.Listener):
    """Listener that writes a note to a terminal if compilation takes long, and warns if results cannot be stored."""

    def __init__(self) -> None:
        self._depth, self._begin, self._seconds = 0, 0.0, 0.0
        self._before: Any = None  # the kernel that was compiled last
        self._has_warned = False

    def on_start(self, event: Any) -> None:
        """Store the time. Numba compiles in one thread at a time."""
        if not self._depth:
            self._begin = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Write a note if compilation takes long, or a warning if its results cannot be stored."""
        self._depth -= 1
        elapsed = time.perf_counter() - self._begin
        if not self._depth:
            self._seconds += elapsed
        if self._seconds + (elapsed if self._depth else 0.0) > _SHORT and sys.stderr.isatty():
            _note_once()
        if self._depth or self._has_warned:
            return
        kernels = self._before, event.data["dispatcher"]  # a kernel is stored only after this event
        self._before = kernels[1]
        failure = next(filter(None, (getattr(kernel, "cache_failure", None) for kernel in kernels)), None)
        if failure is not None:
            self._has_warned = True
            warn(
                f"compiled kernels cannot be stored, so every process compiles them again: {failure}. Set the "
                f"environment variable NUMBA_CACHE_DIR to a writable folder with free space."
            )


@functools.cache
def watch_compilation() -> None:
    """Watch all compilations of this process from now on."""
    event.register("numba:compile", _Watch())


@functools.cache
def _note_once() -> None:
    """Write the note, unless it has already been written."""
    if not _written:
        write_compilation_note()


@contextmanager
def on_first_compilation(call: Callable[[], Any]) -> Iterator[None]:
    """Within this context, call a function as soon as Numba compiles a first kernel."""
    with event.install_listener("numba:compile", _FirstCompilation(call)):
        yield


_written: list[bool] = []  # one entry after the note was written


def write_compilation_note() -> None:
    """Write a line to stderr that kernels are being compiled."""
    _written.append(True)
    sys.stderr.write(f"{_NOTE}\n")
    sys.stderr.flush()
