"""Messages about the progress of a fit: printed with ``verbose``, and shown by the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

__all__ = ["Report", "listening", "part_of_fit", "reporter", "silent"]


class Report(Protocol):
    """Function that is called with messages about the progress."""

    def __call__(self, message: str, least: int = 1) -> object:
        """Pass on a message that is printed with a ``verbose`` of at least ``least``."""


class _Surroundings(NamedTuple):
    """Settings of the fit that contains a fit, or of the command that starts it."""

    prefix: str = ""
    verbose: int = 0
    listener: Callable[[str], object] | None = None  # gets all messages, printed or not


_ALONE = _Surroundings()
_surroundings: ContextVar[_Surroundings] = ContextVar("surroundings", default=_ALONE)


def silent(message: str, least: int = 1) -> None:
    """Ignore a message."""


def reporter(verbose: int) -> Report:
    """Return a function that prints messages up to a level, and passes all of them to the listener."""
    prefix, outer_verbose, listener = _surroundings.get()

    def report(message: str, least: int = 1) -> None:
        if max(verbose, outer_verbose) >= least:
            print(f"{prefix}{message}", flush=True)  # noqa: T201
        if listener is not None:
            listener(f"{prefix}{message}")

    return report


@contextmanager
def part_of_fit(name: str, verbose: int) -> Iterator[None]:
    """Prefix the messages of a fit within this context with the name of a part, and print them up to a level."""
    prefix, outer_verbose, listener = _surroundings.get()
    with _within(_Surroundings(f"{prefix}{name}: ", max(verbose, outer_verbose), listener)):
        yield


@contextmanager
def listening(listener: Callable[[str], object]) -> Iterator[None]:
    """Call a function with each message of a fit within this context."""
    with _within(_surroundings.get()._replace(listener=listener)):
        yield


@contextmanager
def _within(surroundings: _Surroundings) -> Iterator[None]:
    """Set the surroundings within this context."""
    token = _surroundings.set(surroundings)
    try:
        yield
    finally:
        _surroundings.reset(token)
