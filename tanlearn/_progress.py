"""Messages about the progress of a fit: printed with ``verbose``, and shown by the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

__all__ = ["Report", "listening", "part_of_fit", "print_line", "reporter", "silent"]


class Report(Protocol):
    """Function that is called with messages about the progress of a fit."""

    def __call__(self, message: str, least: int = 1) -> object:
        """Report a message, which is printed if ``verbose`` is at least ``least``."""


class _Surroundings(NamedTuple):
    """Settings of the enclosing fit, or of the command that starts a fit."""

    prefix: str = ""
    verbose: int = 0
    listener: Callable[[str], object] | None = None  # receives all messages, printed or not
    printer: Callable[[str], object] | None = None  # prints messages instead of ``print``


_ALONE = _Surroundings()
_surroundings: ContextVar[_Surroundings] = ContextVar("surroundings", default=_ALONE)


def silent(message: str, least: int = 1) -> None:
    """Ignore a message."""


def reporter(verbose: int) -> Report:
    """Return a function that prints messages up to level ``verbose``, and passes all messages to the listener."""
    prefix, outer_verbose, listener, printer = _surroundings.get()

    def report(message: str, least: int = 1) -> None:
        if max(verbose, outer_verbose) >= least:
            _print(f"{prefix}{message}", printer)
        if listener is not None:
            listener(f"{prefix}{message}")

    return report


def print_line(line: str) -> None:
    """Print a line that ``verbose`` requests, with the current printer."""
    _print(line, _surroundings.get().printer)


@contextmanager
def part_of_fit(name: str, verbose: int) -> Iterator[None]:
    """Within this context, prefix messages with the name of a part of the fit, and print them up to a level."""
    outer = _surroundings.get()
    inner = outer._replace(prefix=f"{outer.prefix}{name}: ", verbose=max(verbose, outer.verbose))
    with _within(inner):
        yield


@contextmanager
def listening(listener: Callable[[str], object], printer: Callable[[str], object] | None = None) -> Iterator[None]:
    """Within this context, call ``listener`` with each message of a fit.

    Messages that ``verbose`` requests are passed to ``printer``, if it is given, instead of being printed.
    """
    with _within(_surroundings.get()._replace(listener=listener, printer=printer)):
        yield


def _print(line: str, printer: Callable[[str], object] | None) -> None:
    """Print a line."""
    if printer is not None:
        printer(line)
    else:
        print(line, flush=True)  # noqa: T201


@contextmanager
def _within(surroundings: _Surroundings) -> Iterator[None]:
    """Replace the settings of the enclosing fit within this context."""
    token = _surroundings.set(surroundings)
    try:
        yield
    finally:
        _surroundings.reset(token)
