"""Columns of strings read as numbers and dates, in the notation that the user states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tanlearn.data.column_looks import date_order, is_number_date, plain_number
from tanlearn.data.text_files import holds_texts

__all__ = ["DATE_ORDERS", "read_written"]

#: What a stated order of dates may be.
DATE_ORDERS = ("day-first", "month-first", "year-first")


def read_written(series: Any, thousands: str, decimal: str, symbols: Sequence[str], dates: str) -> Any:
    """Return a column as numbers, or as dates in the ISO 8601 format, if all its values are such; else unchanged.

    Parameters
    ----------
    series : pandas Series
        A column of any kind.
    thousands : {"", ",", ".", "'", " "}
        What stands between groups of three digits. " " includes no-break and narrow spaces.
    decimal : {".", ","}
        What stands before the fraction.
    symbols : sequence of str
        Signs and units around numbers; "()" for negative numbers in parentheses.
    dates : {"", "day-first", "month-first", "year-first"}
        The order of dates of numbers. Names of months are read with every order.

    Returns
    -------
    pandas Series

    Examples
    --------
    >>> import pandas as pd
    >>> from tanlearn.data.written_values import read_written
    >>> read_written(pd.Series(["$1,250.50", None, "($5)"]), ",", ".", ["$", "()"], "").tolist()
    [1250.5, nan, -5.0]
    >>> read_written(pd.Series(["16/07/2024", "05/01/2024"]), "", ".", [], "day-first").tolist()
    ['2024-07-16T00:00:00', '2024-01-05T00:00:00']
    >>> read_written(pd.Series(["1,250", "much"]), ",", ".", [], "").tolist()
    ['1,250', 'much']
    """
    if not (thousands or symbols or dates) or not holds_texts(series):
        return series
    values = series.dropna().unique().tolist()
    if thousands or symbols:
        numbers = {}
        for value in values:
            number = _number(value, thousands, decimal, symbols)
            if number is None:
                break
            numbers[value] = number
        else:
            return series.map(numbers).astype(float)
    if dates and all(date_order(value, dates.replace("-", " ")) for value in values):
        import pandas as pd

        texts = pd.Series([value.strip() for value in values], dtype=object)
        is_numeric = texts.map(is_number_date).astype(bool)
        moments = pd.Series(pd.NaT, index=texts.index, dtype="datetime64[ns, UTC]")
        # pandas swaps day and month of 2024/05/01 with dayfirst=True: only dates without a leading year may have it.
        for chosen, day_first in ((is_numeric, dates == "day-first"), (~is_numeric, False)):
            moments[chosen] = pd.to_datetime(
                texts[chosen], dayfirst=day_first, format="mixed", errors="coerce", utc=True
            )
        if not moments.isna().any():  # the 30th of February
            iso = moments.dt.tz_localize(None).map(lambda moment: moment.isoformat())
            return series.map(dict(zip(values, iso, strict=True)))
    return series


def _number(text: str, thousands: str, decimal: str, symbols: Sequence[str]) -> float | None:
    """Return the number that a text is, without signs around it, or None."""
    text, minus = text.strip().replace("\u2212", "-"), ""
    for symbol in symbols:
        if symbol == "()":
            inside = re.fullmatch(r"(\D{0,3})\((.+)\)(\D{0,3})", text)
            if inside and not minus:
                text, minus = inside[1] + inside[2] + inside[3], "-"
    for symbol in symbols:
        sign = text[:1] if text[:1] in ("+", "-") else ""
        rest = text.removeprefix(sign).strip()
        text = sign + rest.removeprefix(symbol).removesuffix(symbol).strip()
    if minus and text[:1] in ("+", "-"):
        return None
    return plain_number(minus + text, thousands, decimal)
