"""Warnings that point at the line of the user, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn"]

# Packages whose frames may lie between the line of the user and a warning: the library, and what calls it back.
_INNER = frozenset(("tanlearn", "sklearn", "joblib", "dask", "distributed", "contextlib", "threading", "concurrent"))


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that is attributed to the first caller outside of the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inner(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inner(module: dict[str, object]) -> bool:
    """Return whether the globals of a frame are those of a module of the library or of a package that calls it."""
    return str(module.get("__name__", "")).partition(".")[0] in _INNER
