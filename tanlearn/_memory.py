"""Memory limits of CPTs, counts and forests: arrays that are too large raise an error before they are allocated."""

from __future__ import annotations

import os

__all__ = ["VARIABLE", "TableMemoryError", "check_memory", "format_size", "limit_of_forests"]

_GIB = 2**30
VARIABLE = "TANLEARN_MAX_TABLE_GIB"
#: Upper limit for any machine. Filling arrays of 8 GiB takes a minute.
_MOST = 8 * _GIB
#: Arrays with more entries per row than this stay mostly empty; their limit is a quarter.
_CELLS_A_ROW = 100
#: Networks of a forest, equal on all machines, because it determines their number. usps, with 11,000 rows of 256
#: columns, takes 3.3 GiB.
_MOST_OF_FORESTS = 4 * _GIB


class TableMemoryError(MemoryError, ValueError):
    """Error for CPTs or counts above the memory limit: both a MemoryError and, as invalid input, a ValueError."""


def check_memory(n_cells: int, n_bytes: int, cells_a_row: float, what: str, remedy: str) -> None:
    """Raise TableMemoryError for arrays that need more than half of the machine's memory, or more than 8 GiB.

    The limit is a quarter of that for more than 100 entries per row. The environment variable
    ``TANLEARN_MAX_TABLE_GIB`` replaces both limits. ``what`` (singular, the subject of the sentence) and ``remedy`` are
    parts of the message.
    """
    is_sparse = cells_a_row > _CELLS_A_ROW
    limit = _given_limit()
    if limit is None:
        limit = _default_limit() / (4 if is_sparse else 1)
    if n_bytes > limit:
        kind = f"arrays with {cells_a_row:,.0f} entries per row" if is_sparse else "arrays"
        raise TableMemoryError(
            f"{what} has {n_cells:,} entries, which need {format_size(n_bytes)}, but {kind} may take "
            f"{format_size(limit)}. {remedy}; or set the environment variable {VARIABLE} to allow more."
        )


def limit_of_forests() -> float:
    """Return the memory for the networks of a forest: 4 GiB, or the value of the environment variable."""
    limit = _given_limit()
    return _MOST_OF_FORESTS if limit is None else limit


def _given_limit() -> float | None:
    """Return the limit from the environment variable in bytes, or None."""
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
    """Return 8 GiB, or half of the machine's memory if that is known and smaller."""
    try:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not available on all systems
        return _MOST
    return min(_MOST, pages * page / 2) if pages > 0 else _MOST


def format_size(n_bytes: float) -> str:
    """Format a number of bytes in GiB or MiB."""
    return f"{n_bytes / _GIB:,.1f} GiB" if n_bytes >= _GIB else f"{n_bytes / 2**20:,.1f} MiB"
