"""Warnings that refer to the user's line of code, wherever in the library they are issued."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["subject_of_warnings", "warn"]

# Packages whose frames may lie between the user's line and the warning: the library, and packages that call it.
_INNER = frozenset(("tanlearn", "sklearn", "joblib", "dask", "distributed", "contextlib", "threading", "concurrent"))

#: Prefix of all warnings, such as the name of a data set.
_SUBJECT: ContextVar[str] = ContextVar("subject", default="")


@contextmanager
def subject_of_warnings(subject: str) -> Iterator[None]:
    """Prefix all warnings of this thread with a string."""
    token = _SUBJECT.set(subject)
    try:
        yield
    finally:
        _SUBJECT.reset(token)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that refers to the first caller outside of the library.

    In a thread that the library started, no frame belongs to the user. The warning then refers to the outermost frame.
    """
    if isinstance(message, str):
        message = f"{_SUBJECT.get()}{message}"
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inner(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inner(module: dict[str, object]) -> bool:
    """Return whether a frame's globals belong to the library or to a package that calls it."""
    return str(module.get("__name__", "")).partition(".")[0] in _INNER
