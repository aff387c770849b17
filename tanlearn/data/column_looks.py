"""What a column of strings seems to hold: numbers that were not read as numbers, dates, identifiers, free text.

One function, :func:`look_at_strings`, decides for Python's warnings and for the notes of the command line. A column has
the first kind of the list :data:`KINDS` that all its values fit; then, the first kind that most of them fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FEWEST_ROWS", "KINDS", "StringLook", "date_order", "is_number_date", "look_at_strings", "plain_number"]

#: Kinds in the order in which they are tried, besides "constant", "identifiers", "free text" and "categories".
KINDS = (
    "number", "thousands", "decimal comma", "minus sign", "accounting", "percent", "currency", "unit", "quoted",
    "time", "date", "codes",
)  # fmt: skip
#: Fewer rows do not show that values do not repeat.
FEWEST_ROWS = 30
# Half of the rows hold a value of no other row: nothing can be learned from these, and new rows will be like them.
_LONELY = 0.5
#: More distinct values are not looked at one by one.
_MOST_VALUES = 5_000
#: Words of a value that make it a text, and no name.
_WORDS = 3
_SPACES = " \u00a0\u202f\u2009"
_SIGNS = r"$€£¥₹₽₩₺฿₫₪₴₦¢"
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|US$|R$|kr|zł|Kč|Fr"
_CURRENCY = "|".join(map(re.escape, [*_CODES.split("|"), *_SIGNS]))
_PLAIN = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)?,\d+|0|[1-9]\d*)")
_GROUPED = {
    mark: re.compile(rf"[+-]?(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+{indian}|0|[1-9]\d*)(?:{re.escape(fraction)}\d+)?")
    for mark, group, indian, fraction in (
        (",", ",", r"|[1-9]\d?(?:,\d\d)+,\d{3}", "."),
        (".", r"\.", "", ","),
        ("'", "['\u2019]", "", "."),
        (" ", f"[{_SPACES}]", "", "."),
    )
}
_SPACED_COMMA = re.compile(rf"[+-]?(?:[1-9]\d{{0,2}}(?:[{_SPACES}]\d{{3}})+|0|[1-9]\d*)(?:,\d+)?")
_UNIT = re.compile(
    rf"(?P<number>[^A-Za-zµ°%{_SPACES}]+(?:[{_SPACES}]\d{{3}})*)[{_SPACES}]?(?P<unit>[A-Za-zµ°Ω][A-Za-z°²³/µ0-9]{{0,5}})"
)
_ORDINALS = {"st", "nd", "rd", "th"}
_TIME = re.compile(r"(?P<h>\d{1,2}):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"(?:[T ,]+\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[AaPp][Mm]|Z|[+-]\d\d:?\d\d)?)?"
_NUMBER_DATE = re.compile(rf"(\d{{1,2}})([/.\-])(\d{{1,2}})\2(?:\d{{4}}|\d\d){_CLOCK}")
_YEAR_DATE = re.compile(rf"\d{{4}}([/.\-])(0?[1-9]|1[0-2])\1(0?[1-9]|[12]\d|3[01]){_CLOCK}")
_NAME_DATE = re.compile(
    rf"(?:\d{{1,2}}[ .\-/]*{_MONTH}[ ,.\-/]*(?:\d{{4}}|\d\d)|{_MONTH} ?\d{{1,2}},? \d{{4}}){_CLOCK}", re.IGNORECASE
)


@dataclass(frozen=True)
class StringLook:
    """What a column of strings seems to hold.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`, or "constant", "identifiers", "free text", "categories".
    examples : tuple of str
        Up to two of the values that fit.
    n_matching, n_values : int
        How many of the distinct values fit, and how many there are.
    others : tuple of str
        Up to two of the values that do not fit.
    mark : str
        Of numbers, the thousands separator: "", ",", ".", "'" or " ".
    decimal : str
        Of numbers, the decimal mark.
    order : str
        Of dates, "day first", "month first", "year first", "month name", or "ambiguous".
    is_ambiguous : bool
        Whether commas may be thousands separators as well as decimal marks.
    signs : tuple of str
        Signs or units around the numbers.
    """

    kind: str
    examples: tuple[str, ...]
    n_matching: int
    n_values: int
    others: tuple[str, ...] = ()
    mark: str = ""
    decimal: str = "."
    order: str = ""
    is_ambiguous: bool = False
    signs: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all values fit."""
        return self.n_matching == self.n_values


def look_at_strings(values: Sequence[str], counts: Any = None) -> StringLook:
    """Return what a column of strings seems to hold.

    Parameters
    ----------
    values : sequence of str
        The distinct values that are not missing, or all of them if ``counts`` is None.
    counts : ndarray of shape (n_values,), optional
        In how many rows each value occurs.

    Returns
    -------
    StringLook
        A kind of numbers or dates if more than half of the distinct values fit it. "identifiers" or "free text" if
        there are at least 30 rows, and at least half of them hold a value that occurs in no other row; free text has a
        median of three words or more. Of more than 5,000 distinct values, 5,000 are compared with numbers and dates.

    Examples
    --------
    >>> from tanlearn.data.column_looks import look_at_strings
    >>> look = look_at_strings(["1,250.50", "900", "12,000"])
    >>> look.kind, look.mark, look.is_ambiguous
    ('thousands', ',', False)
    >>> look_at_strings(["05/07/2024", "16/07/2024"]).order
    'day first'
    >>> look_at_strings(["red", "blue"]).kind
    'categories'
    """
    if counts is None:
        number = Counter(map(str, values))
        values, counts = list(number), list(number.values())
    texts = [str(value) for value in values]
    if len(texts) < 2:
        return StringLook("constant", tuple(texts), len(texts), len(texts))
    n_values, some = len(texts), texts[:: 1 + (len(texts) - 1) // _MOST_VALUES]
    stripped = [text.strip() for text in some]
    best: StringLook | None = None
    for look in _candidates(some, stripped):
        if look.n_matching > (best.n_matching if best else 0):
            best = look
    if best is not None and (best.is_whole or 2 * best.n_matching > best.n_values):
        return best
    n_rows, lonely = int(np.sum(counts)), int(np.sum(np.asarray(counts) == 1))
    if n_rows >= FEWEST_ROWS and lonely >= _LONELY * n_rows:
        words = sorted(len(text.split()) for text in texts)
        kind = "free text" if words[len(words) // 2] >= _WORDS else "identifiers"
        return StringLook(kind, tuple(texts[:2]), lonely, n_values)
    return StringLook("categories", tuple(texts[:2]), n_values, n_values)


def plain_number(text: str, mark: str, decimal: str) -> float | None:
    r"""Return the number that a text is, with its thousands separator and decimal mark, or None.

    Parameters
    ----------
    text : str
        A text. Groups of thousands have three digits; U+2212 is a minus sign. Digits with leading zeros are no number.
    mark : str
        The thousands separator: "" for none, ",", ".", "'" or " " (which includes no-break and narrow spaces).
    decimal : {".", ","}
        The decimal mark.

    Returns
    -------
    float or None

    Examples
    --------
    >>> from tanlearn.data.column_looks import plain_number
    >>> plain_number("1,250.50", ",", "."), plain_number("12,50", ",", "."), plain_number("\u22125", "", ".")
    (1250.5, None, -5.0)
    """
    text = text.strip().replace("\u2212", "-")
    if _PLAIN.fullmatch(text) and not (mark == "." and "." in text) and not (decimal == "," and "." in text):
        return float(text)
    if not mark:
        return float(text.replace(",", ".")) if decimal == "," and _COMMA.fullmatch(text) else None
    pattern = _SPACED_COMMA if (mark, decimal) == (" ", ",") else _GROUPED[mark]
    if mark == "'" and decimal == ",":
        text, pattern = text.replace(",", "."), _GROUPED["'"]
    if not pattern.fullmatch(text):
        return None
    for sign in _SPACES if mark == " " else "'\u2019" if mark == "'" else mark:
        text = text.replace(sign, "")
    return float(text.replace(",", "."))


def date_order(text: str, order: str) -> bool:
    """Return whether a text is a date that can be read in an order.

    Parameters
    ----------
    text : str
        A text.
    order : {"day first", "month first", "year first"}
        The order of numbers. Names of months fit every order.

    Returns
    -------
    bool

    Examples
    --------
    >>> from tanlearn.data.column_looks import date_order
    >>> date_order("16/07/2024", "day first"), date_order("16/07/2024", "month first")
    (True, False)
    """
    text = text.strip()
    if _NAME_DATE.fullmatch(text) or _YEAR_DATE.fullmatch(text):
        return True
    found = _NUMBER_DATE.fullmatch(text)
    if found is None or order == "year first":
        return False
    day, month = (int(found[1]), int(found[3])) if order == "day first" else (int(found[3]), int(found[1]))
    return 1 <= day <= 31 and 1 <= month <= 12


def is_number_date(text: str) -> bool:
    """Return whether a text is a date of numbers that ends with the year.

    Parameters
    ----------
    text : str
        A text without spaces around it.

    Returns
    -------
    bool

    Examples
    --------
    >>> from tanlearn.data.column_looks import is_number_date
    >>> is_number_date("05/01/2024"), is_number_date("2024/05/01")
    (True, False)
    """
    return _NUMBER_DATE.fullmatch(text) is not None


#: Pairs of a thousands separator and a decimal mark, in the order in which they are preferred.
_NOTATIONS = (("", "."), (",", "."), ("", ","), (" ", "."), (" ", ","), ("'", "."), (".", ","))


def _candidates(texts: list[str], stripped: list[str]) -> list[StringLook]:
    """Return the looks that some values fit, those of simpler kinds first."""
    found = [_as_codes(texts, stripped)]
    cleaners: list[tuple[str, Callable[[str], tuple[str | None, str]]]] = [
        ("number", lambda text: (text, "")),
        ("minus sign", lambda text: (text.replace("\u2212", "-"), "\u2212" if "\u2212" in text else "")),
        ("accounting", _without_parentheses),
        ("percent", lambda text: (text[:-1].strip(), text[-1]) if text[-1:] in ("%", "‰") else (text, "")),
        ("currency", _without_currency),
        ("unit", _without_unit),
        ("quoted", lambda text: (text[2:-1], '="') if text.startswith('="') and text.endswith('"') else (text, "")),
    ]
    for kind, clean in cleaners:
        pairs = [clean(text) for text in stripped]
        signs = tuple(dict.fromkeys(sign for _, sign in pairs if sign))
        if kind != "number" and not signs:
            continue
        if kind == "unit" and (len(signs) > 3 or len(signs) >= len(texts)):
            continue
        found += _as_numbers(kind, texts, [None if text is None else text for text, _ in pairs], signs)
        if kind == "quoted":
            found.append(_look("quoted", texts, [bool(sign) for _, sign in pairs], signs=signs))
    found.append(_look("time", texts, list(map(_is_time, stripped))))
    found += _as_dates(texts, stripped)
    return found


def _as_numbers(kind: str, texts: list[str], cleaned: list[str | None], signs: tuple[str, ...]) -> list[StringLook]:
    """Return the looks of numbers in every notation."""
    found = []
    for mark, decimal in _NOTATIONS:
        fits = [text is not None and plain_number(text, mark, decimal) is not None for text in cleaned]
        if kind == "number" and any("\u2212" in text for text in texts):
            fits = [fit and "\u2212" not in text for fit, text in zip(fits, texts, strict=True)]
        ambiguous = False
        if mark == ",":
            both = [text for text, fit in zip(cleaned, fits, strict=True) if fit and text is not None and "," in text]
            ambiguous = bool(both) and all(_COMMA.fullmatch(text) for text in both)
        name = kind
        if kind == "number" and mark:
            name = "thousands"
        elif kind == "number" and decimal == ",":
            name = "decimal comma"
        found.append(_look(name, texts, fits, mark=mark, decimal=decimal, is_ambiguous=ambiguous, signs=signs))
    return found


def _as_codes(texts: list[str], stripped: list[str]) -> StringLook:
    """Return the look of digits with leading zeros, which are names and no numbers."""
    is_digits = [text.isdecimal() for text in stripped]
    has_zeros = any(text[0] == "0" and len(text) > 1 for text, own in zip(stripped, is_digits, strict=True) if own)
    return _look("codes", texts, is_digits if has_zeros else [False] * len(texts))


def _as_dates(texts: list[str], stripped: list[str]) -> list[StringLook]:
    """Return the looks of dates in every order."""
    found = [
        _look("date", texts, [bool(_YEAR_DATE.fullmatch(text)) for text in stripped], order="year first"),
        _look("date", texts, [bool(_NAME_DATE.fullmatch(text)) for text in stripped], order="month name"),
    ]
    parts = [_NUMBER_DATE.fullmatch(text) for text in stripped]
    pairs = [None if part is None else (int(part[1]), int(part[3])) for part in parts]
    day = [pair is not None and 1 <= pair[0] <= 31 and 1 <= pair[1] <= 12 for pair in pairs]
    month = [pair is not None and 1 <= pair[0] <= 12 and 1 <= pair[1] <= 31 for pair in pairs]
    order = "ambiguous" if day == month else "day first" if sum(day) > sum(month) else "month first"
    found.append(_look("date", texts, day if sum(day) >= sum(month) else month, order=order))
    return found


def _look(kind: str, texts: list[str], fits: list[bool], **rest: Any) -> StringLook:
    """Return a look with examples."""
    matching = [text for text, fit in zip(texts, fits, strict=True) if fit]
    others = [text for text, fit in zip(texts, fits, strict=True) if not fit]
    # The values that show the notation come first.
    matching.sort(key=lambda text: text.lstrip("+-").isdecimal())
    return StringLook(kind, tuple(matching[:2]), len(matching), len(texts), tuple(others[:2]), **rest)


def _is_time(text: str) -> bool:
    """Return whether a text is a time of day."""
    found = _TIME.fullmatch(text)
    return found is not None and int(found["h"]) <= (12 if found["half"] else 23)


def _without_parentheses(text: str) -> tuple[str | None, str]:
    """Return a number in parentheses as a negative one."""
    sign = next((sign for sign in _SIGNS if text.startswith(sign)), "")
    inner = text.removeprefix(sign)
    if inner.startswith("(") and inner.endswith(")") and inner[1:2].isdigit():
        return f"-{inner[1:-1]}", "()"
    return text, ""


def _without_currency(text: str) -> tuple[str | None, str]:
    """Return a number without its currency, in front of it or behind."""
    found = re.match(rf"([+\-\u2212]?)\s*({_CURRENCY})\s*([+\-]?)(?=[\d.,])", text)
    if found:
        return found[1] + found[3] + text[found.end() :], found[2]
    found = re.search(rf"(?<=\d)\s*({_CURRENCY})$", text)
    return (text[: found.start()], found[1]) if found else (text, "")


def _without_unit(text: str) -> tuple[str | None, str]:
    """Return a number without the unit behind it."""
    found = _UNIT.fullmatch(text)
    if found is None or found["unit"].lower() in _ORDINALS or not found["number"][-1:].isdigit():
        return text, ""
    return found["number"], found["unit"]
