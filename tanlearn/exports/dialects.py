"""SQL dialects: names, constants and functions that differ between SQLite, DuckDB and PostgreSQL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["DIALECTS", "Dialect"]

#: Maximum number of arguments of a function: 127 in older versions of SQLite.
_MOST_ARGUMENTS = 100
#: Maximum number of addends without parentheses, because parsers limit the depth of an expression (SQLite to 1,000).
_MOST_TERMS = 100
#: Number of bits per factor of powers of two, which SQLite reads exactly.
_BITS = 30


@dataclass(frozen=True)
class Dialect:
    """One SQL dialect."""

    name: str
    title: str  # name in messages
    most_columns: int | None  # most columns of a query
    most_bytes_of_name: int | None  # longer names are shortened
    # Default of the largest statement. DuckDB 2.0 plans a forest of 0.7 MB in 16 s and an ensemble of 2.7 MB in 105 s,
    # SQLite 3.40 in 0.3 s and 1.3 s (one core of a busy machine, with 150 and 300 rows).
    most_bytes: int
    largest: str  # function for the largest argument
    # Suffix that prevents an optimizer from merging a query into the next one, which would repeat its expressions.
    fence: str
    is_typed: bool  # whether columns have types; SQLite stores any value in any column
    double: str  # type of numbers

    def quote(self, name: str) -> str:
        """Return an identifier."""
        if self.most_bytes_of_name is not None and len(name.encode()) > self.most_bytes_of_name:
            raise ValueError(
                f"{self.title} allows names of at most {self.most_bytes_of_name} bytes, but {name!r} has "
                f"{len(name.encode())}. Pass a shorter name (for columns of the table, with columns=[...])."
            )
        if "\0" in name or not name:
            raise ValueError(
                f"a name in SQL must not be empty or contain null characters, got {name!r}. Pass another name (for "
                "columns of the table, with columns=[...])."
            )
        return '"' + name.replace('"', '""') + '"'

    def literal(self, value: Any) -> str:
        """Return a label or category: a string, a boolean or a number."""
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, bool):
            return str(value).upper() if self.is_typed else str(int(value))
        return str(value) if isinstance(value, int) else self.exact(value)

    def number(self, value: float) -> str:
        """Return a double-precision constant, whose last digit SQLite may read differently."""
        if math.isinf(value):
            return f"CAST('-Infinity' AS {self.double})" if self.is_typed else "-9e999"
        if self.name == "postgresql":  # decimal constants would be of type numeric
            return f"'{value!r}'::float8"
        text = repr(float(value))
        return text if "e" in text else f"{text}e0"

    def exact(self, value: float) -> str:
        """Return a double-precision constant with exactly this value, for comparisons.

        SQLite reads only 15 digits reliably. More digits are written as an integer times a power of two.
        """
        if self.is_typed or float(f"{value:.15g}") == value:
            return self.number(value)
        mantissa, exponent = math.frexp(value)
        exponent -= 53
        text = str(int(mantissa * 2**53))
        operator, left = ("*", exponent) if exponent > 0 else ("/", -exponent)
        while left:
            text += f" {operator} {2 ** min(left, _BITS)}.0"
            left -= min(left, _BITS)
        return f"({text})"

    def maximum(self, values: Sequence[str]) -> str:
        """Return the largest of several expressions."""
        parts = list(values)
        while len(parts) > 1:
            groups = [parts[k : k + _MOST_ARGUMENTS] for k in range(0, len(parts), _MOST_ARGUMENTS)]
            parts = [f"{self.largest}({', '.join(group)})" if len(group) > 1 else group[0] for group in groups]
        return parts[0]

    def total(self, values: Sequence[str]) -> str:
        """Return the sum of several expressions."""
        parts = list(values)
        while len(parts) > _MOST_TERMS:
            groups = [parts[k : k + _MOST_TERMS] for k in range(0, len(parts), _MOST_TERMS)]
            parts = [f"({' + '.join(group)})" for group in groups]
        return " + ".join(parts)

    def product(self, flag: str, constant: str) -> str:
        """Return a constant if a column is 1, and 0 if it is 0.

        SQLite uses ``iif`` instead of products, because the time of SQLite 3.40 is quadratic in the number of constant
        factors. Boosted terms of 2.8 MB take 3 s with ``iif`` and 31 s with products.
        """
        return f"{flag} * {constant}" if self.is_typed else f"iif({flag}, {constant}, 0)"

    def exponential(self, value: str) -> str:
        """Return the exponential of an expression. PostgreSQL would raise an error for results that are too small."""
        return f"exp({self.maximum([value, self.number(-700.0)])})"

    def is_nan(self, value: str) -> str:
        """Return the condition that a number is NaN, preceded by OR; empty for SQLite, which stores NaN as NULL."""
        return f" OR CAST({value} AS {self.double}) = CAST('NaN' AS {self.double})" if self.is_typed else ""


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("sqlite", "SQLite", 2000, None, 5_000_000, "max", " LIMIT -1 OFFSET 0", False, "REAL"),
        Dialect("duckdb", "DuckDB", None, None, 1_000_000, "greatest", "", True, "DOUBLE"),
        Dialect("postgresql", "PostgreSQL", 1600, 63, 5_000_000, "greatest", " OFFSET 0", True, "double precision"),
    )
}
