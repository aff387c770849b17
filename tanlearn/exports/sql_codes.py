"""SQL expressions for the code of a raw value, with the same comparisons as in the encoder.

If ``predict`` raises an error for a value, its code is NULL, so that all results of the row are NULL. This holds for
infinite numbers, text in a column of numbers, and unseen categories with ``handle_unknown="error"``.
"""

from __future__ import annotations

from tanlearn.exports.dialects import Dialect
from tanlearn.exports.raw_columns import MISSING, RawColumn

__all__ = ["code_of", "raw_value"]

#: Maximum number of cut points of one CASE. More cut points are searched by bisection.
_MOST_BRANCHES = 8


def raw_value(column: RawColumn, name: str, dialect: Dialect) -> str:
    """Return the value of a column of the table, ``name``, in the type of its cut points."""
    return f"CAST({name} AS {dialect.double})" if dialect.is_typed and column.cut_points is not None else name


def code_of(column: RawColumn, value: str, dialect: Dialect) -> str:
    """Return the code of a raw value. It is MISSING for missing values, unless they are a category."""
    if column.cut_points is not None:
        code = _interval(column.cut_points, value, dialect)
        return (
            f"CASE WHEN {value} IS NULL{dialect.is_nan(value)} THEN {column.missing} "
            f"WHEN {_is_refused(value, dialect)} THEN NULL ELSE {code} END"
        )
    known = column.categories or []
    is_text = any(isinstance(one, str) for one in known)
    is_nan = dialect.is_nan(value) if known and not is_text and not isinstance(known[0], bool) else ""
    branches = "".join(f" WHEN {value} = {dialect.literal(one)} THEN {code}" for code, one in enumerate(known))
    unseen = "NULL" if column.refuses_unseen else str(MISSING)
    return f"CASE WHEN {value} IS NULL{is_nan} THEN {column.missing}{branches} ELSE {unseen} END"


def _is_refused(value: str, dialect: Dialect) -> str:
    """Return the condition that a value is not a finite number."""
    if dialect.is_typed:
        infinity = f"CAST('Infinity' AS {dialect.double})"
        return f"{value} = {infinity} OR {value} = -{infinity}"
    return f"typeof({value}) NOT IN ('integer', 'real') OR {value} IN (9e999, -9e999)"


def _interval(cut_points: list[float], value: str, dialect: Dialect, first: int = 0) -> str:
    """Return the number of cut points below a value, plus ``first``."""
    if len(cut_points) > _MOST_BRANCHES:
        middle = len(cut_points) // 2
        low = _interval(cut_points[:middle], value, dialect, first)
        high = _interval(cut_points[middle + 1 :], value, dialect, first + middle + 1)
        return f"CASE WHEN {value} <= {dialect.exact(cut_points[middle])} THEN {low} ELSE {high} END"
    if not cut_points:
        return str(first)
    branches = "".join(f" WHEN {value} <= {dialect.exact(cut)} THEN {first + k}" for k, cut in enumerate(cut_points))
    return f"CASE{branches} ELSE {first + len(cut_points)} END"
