"""Tables that are too large are refused before memory is asked for, and not after minutes of filling them."""

from __future__ import annotations

import os

__all__ = ["TableMemoryError", "check_memory"]

_GIB = 2**30
_VARIABLE = "TANLEARN_MAX_TABLE_GIB"
#: What tables may take at most, whatever the machine has: at 8 GiB, filling them takes a minute.
_MOST = 8 * _GIB
#: Tables with more cells than this for every row stay all but empty, and may take a quarter of that.
_CELLS_A_ROW = 100


class TableMemoryError(MemoryError, ValueError):
    """Tables would need more memory than they may have: what would be a MemoryError later is bad input now."""


def check_memory(n_cells: int, n_bytes: int, cells_a_row: float, what: str, remedy: str) -> None:
    """Refuse tables that would take more than half of the machine's memory, or more than 8 GiB.

    Tables that rows cannot fill may take a quarter of that. The environment variable ``TANLEARN_MAX_TABLE_GIB`` sets
    another limit for both.
    """
    is_sparse = cells_a_row > _CELLS_A_ROW
    limit = _given_limit()
    if limit is None:
        limit = _default_limit() / (4 if is_sparse else 1)
    if n_bytes > limit:
        kind = f"tables with {cells_a_row:,.0f} cells for every row" if is_sparse else "tables"
        raise TableMemoryError(
            f"{what} has {n_cells:,} cells, which need {_size(n_bytes)}, but {kind} may take {_size(limit)}. "
            f"{remedy}; or set the environment variable {_VARIABLE} to allow more."
        )


def _given_limit() -> float | None:
    """Return what the user allows, in bytes."""
    given = os.environ.get(_VARIABLE)
    if given is None:
        return None
    try:
        limit = float(given) * _GIB
    except ValueError:
        limit = 0.0
    if not limit > 0:
        raise ValueError(f"the environment variable {_VARIABLE} must be a positive number of GiB, got {given!r}.")
    return limit


def _default_limit() -> float:
    """Return 8 GiB, or half of the machine's memory where that is known and less."""
    try:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return _MOST
    return min(_MOST, pages * page / 2) if pages > 0 else _MOST


def _size(n_bytes: float) -> str:
    """Return a number of bytes for people."""
    return f"{n_bytes / _GIB:,.1f} GiB" if n_bytes >= _GIB else f"{n_bytes / 2**20:,.1f} MiB"
