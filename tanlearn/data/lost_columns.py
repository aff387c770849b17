"""Columns that lose more than they should when they are discretised: all that they say, or differences of integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tanlearn._warnings import warn
from tanlearn.data.discretize import MDLPDiscretizer
from tanlearn.data.table import Column

__all__ = ["LARGEST_SHARE", "warn_of_lost_columns", "warn_of_rounded_columns"]

#: A column has something to lose if no value takes more than this share of it.
LARGEST_SHARE = 0.9
_N_NAMED = 10
#: Up to here, every integer is a floating number.
_LARGEST_EXACT = 2**53


def warn_of_lost_columns(lost: list[str], discretizer: Any, n_samples: int, total: float) -> None:
    """Warn, once, of columns that are constant to every learner from here on, though their values differ."""
    if not lost:
        return
    shown = _told(lost)
    is_by_class = isinstance(discretizer, MDLPDiscretizer)
    light = ""
    if is_by_class and round(total) < n_samples:
        light = f" The weights count rows, and make no more than {total:.3g} here: multiply them by a common factor."
    name = type(discretizer).__name__
    reason, remedy = f"{name} made one interval of each", "cut it more finely, or bin it beforehand, otherwise"
    if is_by_class:
        reason = f"{name} found no cut that tells the classes apart by such a column alone"
        remedy = "bin it beforehand if it tells classes apart only together with others"
    # The same words for every fold of a table, so that Python shows them once.
    warn(
        f"discretisation left one value of {len(lost):,} column(s), from which nothing can be learnt any more: "
        f"{shown}. {reason}. Drop it if it is noise; cast it to str, or name it in discrete_features of "
        f"TableEncoder, if it is a code; {remedy}.{light}",
        UserWarning,
    )


def warn_of_rounded_columns(columns: Iterable[Column]) -> None:
    """Warn, once, of integers that are cut as floating numbers and beyond what these tell apart."""
    rounded = []
    for column in columns:
        if column.values.dtype.kind in "iu" and column.values.dtype.itemsize == 8:
            values = column.values if column.missing is None else column.values[~column.missing]
            if not -_LARGEST_EXACT <= values.min(initial=0) <= values.max(initial=0) <= _LARGEST_EXACT:
                rounded.append(column.place)
    if rounded:
        warn(
            f"integers beyond 2^53 are cut as floating numbers, which do not tell neighbours apart: {_told(rounded)}. "
            f"Subtract the smallest from times and counters; cast identifiers to str, or leave them out.",
            UserWarning,
        )


def _told(places: list[str]) -> str:
    """Return what to call some columns, the first ones by name."""
    return ", ".join(places[:_N_NAMED]) + (f", and {len(places) - _N_NAMED:,} more" if len(places) > _N_NAMED else "")
