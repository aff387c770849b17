"""Warnings about information lost in discretization: constant columns and rounded integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tanlearn._warnings import warn
from tanlearn.data.discretize import MDLPDiscretizer
from tanlearn.data.table import Column

__all__ = ["LARGEST_SHARE", "warn_of_lost_columns", "warn_of_rounded_columns"]

#: Columns in which one value has at least this fraction of the rows are not reported.
LARGEST_SHARE = 0.9
_N_NAMED = 10
#: Up to this value, 64-bit floats represent every integer exactly.
_LARGEST_EXACT = 2**53


def warn_of_lost_columns(lost: list[str], discretizer: Any, n_samples: int, total: float) -> None:
    """Warn once about columns with different values that discretization reduced to one interval.

    ``lost`` are their names in messages, and ``total`` is the weight of all rows.
    """
    if not lost:
        return
    shown = _told(lost)
    is_by_class = isinstance(discretizer, MDLPDiscretizer)
    light = ""
    if is_by_class and round(total) < n_samples:
        light = f" Weights count as rows, and their sum is only {total:.3g}: multiply them by a common factor."
    name = type(discretizer).__name__
    reason, remedy = f"{name} found one interval for each", "use more intervals, or bin it beforehand, otherwise"
    if is_by_class:
        reason = f"{name} found no cut point that separates the classes by such a column alone"
        remedy = "bin it beforehand if it separates classes only together with other columns"
    # Identical text for every fold, so that Python shows the warning once.
    warn(
        f"discretization left a single interval in {len(lost):,} column(s), which are now constant: "
        f"{shown}. {reason}. Drop it if it is noise; cast it to str, or name it in discrete_features of "
        f"TableEncoder, if it is a code; {remedy}.{light}",
        UserWarning,
    )


def warn_of_rounded_columns(columns: Iterable[Column]) -> None:
    """Warn once about 64-bit integer columns that lose precision when they are discretized as floats."""
    rounded = []
    for column in columns:
        if column.values.dtype.kind in "iu" and column.values.dtype.itemsize == 8:
            values = column.values if column.missing is None else column.values[~column.missing]
            if not -_LARGEST_EXACT <= values.min(initial=0) <= values.max(initial=0) <= _LARGEST_EXACT:
                rounded.append(column.place)
    if rounded:
        warn(
            f"integers beyond 2^53 are discretized as floating numbers, so adjacent ones may become equal: "
            f"{_told(rounded)}. Subtract the smallest from times and counters; cast identifiers to str, or leave them "
            f"out.",
            UserWarning,
        )


def _told(places: list[str]) -> str:
    """Return a list of column names for messages, the first ten by name."""
    return ", ".join(places[:_N_NAMED]) + (f", and {len(places) - _N_NAMED:,} more" if len(places) > _N_NAMED else "")
