"""Notice of the compilation of kernels in a first run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

__all__ = ["on_first_compilation", "write_compilation_note"]

#: The five default learners of ``tanlearn compare`` took 75 to 80 s on two cores.
_NOTE = (
    "tanlearn: compiling kernels, which takes up to two minutes in the first run. Later runs load them from a cache."
)


class _FirstCompilation(event.Listener):
    """Call a function when the first kernel is compiled; kernels that are loaded from the cache do not count."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._lock = threading.Lock()
        self._call: Callable[[], Any] | None = call

    def on_start(self, event: Any) -> None:
        """Call the function, once."""
        with self._lock:
            call, self._call = self._call, None
        if call is not None:
            call()

    def on_end(self, event: Any) -> None:
        """Ignore the end of a compilation."""


@contextmanager
def on_first_compilation(call: Callable[[], Any]) -> Iterator[None]:
    """Call a function once, if Numba compiles a kernel within the context."""
    with event.install_listener("numba:compile", _FirstCompilation(call)):
        yield


def write_compilation_note() -> None:
    """Write one line about the compilation to the standard error."""
    sys.stderr.write(f"{_NOTE}\n")
    sys.stderr.flush()
