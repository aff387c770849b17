"""Notation of numbers, dates and missing values in a text file, and conversion of its string columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tanlearn.sources.string_formats import contains_strings, has_date_order, is_numeric_date, parse_number

__all__ = ["DATE_ORDERS", "Notation", "parse_strings"]

#: Valid orders of dates.
DATE_ORDERS = ("day-first", "month-first", "year-first")
#: Valid separators of thousands.
_SEPARATORS = (",", ".", "'", " ")


class Notation(NamedTuple):
    """Format of the values in a delimited text file."""

    decimal: str = "."  # decimal mark: "." or ","
    thousands: str = ""  # thousands separator: "", ",", ".", "'" or " "
    symbols: tuple[str, ...] = ()  # symbols and units around numbers
    dates: str = ""  # order of dates that are not in ISO 8601 format: "day-first", "month-first" or "year-first"
    missing: tuple[str, ...] = ()  # strings for a missing value, besides the empty field, NA and similar

    def check(self) -> Notation:
        """Return the notation itself. Raise ValueError if a field is invalid or a mark is ambiguous."""
        if self.decimal not in (".", ","):
            raise ValueError(f"the decimal mark must be '.' or ',', got {self.decimal!r}.")
        if self.thousands and (self.thousands not in _SEPARATORS or self.thousands == self.decimal):
            raise ValueError(
                f"the thousands separator must be one of ',', '.', \"'\" and ' ', and must differ from the decimal "
                f"mark {self.decimal!r}, got {self.thousands!r}."
            )
        if self.dates and self.dates not in DATE_ORDERS:
            raise ValueError(f"dates must be one of {', '.join(DATE_ORDERS)}, got {self.dates!r}.")
        if not all(isinstance(text, str) for text in (*self.symbols, *self.missing)):
            raise ValueError("symbols and missing values must be strings.")
        return self

    def to_state(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self._asdict().items()}

    @classmethod
    def from_state(cls, state: Any) -> Notation:
        """Return the notation stored by :meth:`to_state`, validated."""
        if type(state) is not dict or set(state) != set(cls._fields):
            raise ValueError(f"a notation must have the fields {', '.join(cls._fields)}.")
        for name in cls._fields:
            if type(state[name]) is not (list if name in ("symbols", "missing") else str):
                raise ValueError(f"{name} of a notation has a wrong type.")
        fields = dict(state, symbols=tuple(state["symbols"]), missing=tuple(state["missing"]))
        return cls(**fields).check()


def parse_strings(
    series: Any, thousands: str, decimal: str, symbols: Sequence[str], dates: str, *, units: set[str] | None = None
) -> Any:
    """Convert a string column to floats or ISO 8601 dates if all its values match the notation.

    ``thousands`` is the separator of thousands (" " includes no-break and narrow spaces), ``symbols`` are signs and
    units around numbers ("()" for negative numbers in parentheses), and ``dates`` is the order of numeric dates.
    ``units`` contains the symbols shared by all values of earlier batches of the column, and is updated in place. A
    column with different units or currencies stays unchanged, because its numbers are not comparable.
    """
    if not (thousands or symbols or dates) or not contains_strings(series):
        return series
    values = series.dropna().unique().tolist()
    if thousands or symbols:
        numbers: dict[str, float] = {}
        common = set(units or ())
        for value in values:
            number, found = _number(value, thousands, decimal, symbols)
            if number is None or (common and found and not common & found):
                break
            numbers[value] = number
            if found:
                common = common & found or found
        else:
            if units is not None:
                units.clear()
                units.update(common)
            return series.map(numbers).astype(float)
    if dates and all(has_date_order(value, dates.replace("-", " ")) for value in values):
        import pandas as pd

        strings = pd.Series([value.strip() for value in values], dtype=object)
        is_numeric = strings.map(is_numeric_date).astype(bool)
        moments = pd.Series(pd.NaT, index=strings.index, dtype="datetime64[ns, UTC]")
        # With dayfirst=True, pandas swaps day and month of 2024/05/01: it is only set for dates without a leading year.
        for chosen, day_first in ((is_numeric, dates == "day-first"), (~is_numeric, False)):
            moments[chosen] = pd.to_datetime(
                strings[chosen], dayfirst=day_first, format="mixed", errors="coerce", utc=True
            )
        if not moments.isna().any():  # NaT for invalid dates such as 30 February
            iso = moments.dt.tz_localize(None).map(lambda moment: moment.isoformat())
            return series.map(dict(zip(values, iso, strict=True)))
    return series


def _number(text: str, thousands: str, decimal: str, symbols: Sequence[str]) -> tuple[float | None, set[str]]:
    """Strip the symbols around a number and parse it.

    Return the number, or None if it is invalid, and the symbols found.
    """
    found: set[str] = set()
    text, minus = text.strip().replace("\u2212", "-"), ""
    for symbol in symbols:
        if symbol == "()":
            inside = re.fullmatch(r"(\D{0,5})\((.+)\)(\D{0,5})", text)
            if inside and not minus:
                text, minus = inside[1] + inside[2] + inside[3], "-"
    for symbol in symbols:
        sign = text[:1] if text[:1] in ("+", "-") else ""
        rest = text.removeprefix(sign).strip()
        bare = rest.removeprefix(symbol).removesuffix(symbol).strip()
        if bare != rest and symbol not in ("()", "\u2212"):
            found.add(symbol)
        text = sign + bare
    if minus and text[:1] in ("+", "-"):
        return None, found
    return parse_number(minus + text, thousands, decimal), found
