"""Conversion of string columns to numbers and dates in the notation that the user declares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tanlearn.data.column_looks import date_order, is_number_date, plain_number
from tanlearn.data.text_files import holds_texts

__all__ = ["DATE_ORDERS", "read_written"]

#: Valid orders of dates.
DATE_ORDERS = ("day-first", "month-first", "year-first")


def read_written(
    series: Any, thousands: str, decimal: str, symbols: Sequence[str], dates: str, *, units: set[str] | None = None
) -> Any:
    """Convert a string column to floats or ISO 8601 dates if all its values match the notation; else return it as is.

    ``thousands`` is the separator of thousands (" " includes no-break and narrow spaces), ``symbols`` are signs and
    units around numbers ("()" for negative numbers in parentheses), and ``dates`` is the order of numeric dates.
    ``units`` contains the symbols shared by all values of earlier batches of the column, and is updated in place. A
    column with different units or currencies stays unchanged, because its numbers are not comparable.
    """
    if not (thousands or symbols or dates) or not holds_texts(series):
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
    if dates and all(date_order(value, dates.replace("-", " ")) for value in values):
        import pandas as pd

        texts = pd.Series([value.strip() for value in values], dtype=object)
        is_numeric = texts.map(is_number_date).astype(bool)
        moments = pd.Series(pd.NaT, index=texts.index, dtype="datetime64[ns, UTC]")
        # With dayfirst=True, pandas swaps day and month of 2024/05/01: it is only set for dates without a leading year.
        for chosen, day_first in ((is_numeric, dates == "day-first"), (~is_numeric, False)):
            moments[chosen] = pd.to_datetime(
                texts[chosen], dayfirst=day_first, format="mixed", errors="coerce", utc=True
            )
        if not moments.isna().any():  # NaT for invalid dates such as 30 February
            iso = moments.dt.tz_localize(None).map(lambda moment: moment.isoformat())
            return series.map(dict(zip(values, iso, strict=True)))
    return series


def _number(text: str, thousands: str, decimal: str, symbols: Sequence[str]) -> tuple[float | None, set[str]]:
    """Parse a number after removing the symbols around it; return the number or None, and these symbols."""
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
    return plain_number(minus + text, thousands, decimal), found
