"""Memory limits of CPTs, counts and fits: arrays that are too large raise an error before they are allocated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["VARIABLE", "Need", "TableMemoryError", "check_fit", "check_memory", "fixed_limit", "format_size"]

_GIB = 2**30
VARIABLE = "TANLEARN_MAX_TABLE_GIB"
#: Upper limit on any machine. Filling arrays of 8 GiB takes a minute.
_MOST = 8 * _GIB
#: Number of entries per row above which arrays stay mostly empty. For such arrays, the limit is divided by four.
_CELLS_A_ROW = 100
#: Limit that is equal on all machines, because it affects the model, for example the number of networks of a forest.
#: The data set usps, with 11,000 rows and 256 columns, needs 3.3 GiB.
_FIXED = 4 * _GIB
#: Files with the memory limit of a container in bytes, or "max" if there is no limit.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class TableMemoryError(MemoryError, ValueError):
    """Error for CPTs or counts above the memory limit. It is both a MemoryError and a ValueError."""


def check_memory(n_cells: int, n_bytes: int, cells_a_row: float, what: str, remedy: str) -> None:
    """Raise TableMemoryError for arrays that need more than half of the machine's memory, or more than 8 GiB.

    For arrays with more than 100 entries per row, the limit is a quarter of that. The environment variable
    ``TANLEARN_MAX_TABLE_GIB`` replaces both limits. The message begins with ``what``, a singular noun, and ends with
    ``remedy``.
    """
    is_sparse = cells_a_row > _CELLS_A_ROW
    limit = _given_limit()
    if limit is None:
        limit = _default_limit() / (4 if is_sparse else 1)
    if n_bytes > limit:
        kind = f"arrays with {cells_a_row:,.0f} entries per row" if is_sparse else "arrays"
        raise TableMemoryError(
            f"{what} has {n_cells:,} entries, which need {format_size(n_bytes)}, but {kind} may take at most "
            f"{format_size(limit)}. {remedy}; or set the environment variable {VARIABLE} to allow more."
        )


class Need(NamedTuple):
    """Memory that one kind of array needs during a fit."""

    what: str  # name of the arrays, in the plural
    n_bytes: float


def check_fit(learner: str, needs: Sequence[Need], shape: tuple[int, int, int]) -> None:
    """Raise TableMemoryError for a fit that needs more than half of the memory of this process, or more than 8 GiB.

    The environment variable replaces the limit. ``learner`` is the subject of the message, and ``shape`` contains the
    numbers of rows, columns and classes.
    """
    total, limit = sum(need.n_bytes for need in needs), _given_limit()
    limit = _default_limit() if limit is None else limit
    if total > limit:
        n_rows, n_columns, n_classes = shape
        largest = max(needs, key=lambda need: need.n_bytes)
        raise TableMemoryError(
            f"{learner} would need about {format_size(total)} for {n_rows:,} rows, {n_columns:,} columns and "
            f"{n_classes:,} classes, of which {largest.what} take {format_size(largest.n_bytes)}, but a fit may take "
            f"at most {format_size(limit)}. Drop or merge rare classes and rare values, leave out columns, fit a "
            f"sample of the rows, or use NaiveBayesClassifier; or set the environment variable {VARIABLE} to allow "
            "more."
        )


def fixed_limit(cells_a_row: float = 0.0) -> float:
    """Return the limit that is equal on all machines: 4 GiB, or the value of the environment variable.

    If the CPTs of a network without augmenting parents have more than 100 entries per row, the limit of 4 GiB is
    divided by four. The limit also bounds the time: fitting a forest of 4 GiB to 300 rows of 5,000 columns takes two
    minutes.
    """
    limit = _given_limit()
    if limit is None:
        limit = _FIXED / (4 if cells_a_row > _CELLS_A_ROW else 1)
    return limit


def _given_limit() -> float | None:
    """Return the limit from the environment variable, in bytes, or None if it is not set."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return None
    try:
        limit = float(given) * _GIB
    except ValueError:
        limit = 0.0
    if not limit > 0:
        raise ValueError(f"the environment variable {VARIABLE} must be a positive number of GiB, got {given!r}.")
    return limit


def _default_limit() -> float:
    """Return 8 GiB, or half of the memory that this process may use if that is known and smaller."""
    sizes = _restrictions()
    try:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not available on all systems
        pages, page = 0, 0
    if pages > 0:
        sizes.append(pages * page)
    return min([_MOST, *(size / 2 for size in sizes)])


def _restrictions() -> list[float]:
    """Return the memory limits of this process and of its container, in bytes."""
    found: list[float] = []
    try:
        import resource  # not available on Windows

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            found.append(soft)
    except (ImportError, OSError, ValueError):
        pass
    for name in _CONTAINER_LIMITS:
        try:
            found.append(float(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no container, or "max"
            continue
    return [size for size in found if size > 0]


def format_size(n_bytes: float) -> str:
    """Format a number of bytes in GiB or MiB."""
    return f"{n_bytes / _GIB:,.1f} GiB" if n_bytes >= _GIB else f"{n_bytes / 2**20:,.1f} MiB"
