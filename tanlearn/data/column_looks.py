"""What a column of strings seems to hold: numbers that were not read as numbers, dates, identifiers, free text.

One function, :func:`look_at_strings`, decides for Python's warnings and for the notes of the command line. A column has
the first kind of the list :data:`KINDS` that all its values fit; then, the first kind that most of them fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = [
    "FEWEST_ROWS",
    "KINDS",
    "NUMBER_KINDS",
    "StringLook",
    "date_order",
    "is_number_date",
    "look_at_strings",
    "notation_of_strings",
    "plain_number",
]

#: Kinds in the order in which they are tried, besides "constant", "identifiers", "free text" and "categories".
KINDS = (
    "number", "thousands", "decimal comma", "minus sign", "accounting", "percent", "currency", "unit", "quoted",
    "time", "date", "codes",
)  # fmt: skip
#: Kinds of numbers.
NUMBER_KINDS = ("number", "thousands", "decimal comma", "minus sign", "accounting", "percent", "currency", "unit")
#: Fewer rows do not show that values do not repeat.
FEWEST_ROWS = 30
# Half of the rows hold a value of no other row: nothing can be learned from these, and new rows will be like them.
_LONELY = 0.5
#: More distinct values are not looked at one by one.
_MOST_VALUES = 5_000
#: Words of a value that make it a text, and no name.
_WORDS = 3
_NO_UNITS = ("()", "\u2212")
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
    rf"(?P<number>[^A-Za-zµ°%{_SPACES}]+(?:[{_SPACES}]\d{{3}})*(?:[.,]\d+)?)[{_SPACES}]?(?P<unit>[A-Za-zµ°Ω][A-Za-z°²³/µ0-9]{{0,5}})"
)
_PARENTHESES = re.compile(r"([^\d()]{0,5})\(([^()]+)\)([^\d()]{0,5})")
_BEFORE = re.compile(rf"([+\-]?)\s*({_CURRENCY})\s*([+\-]?)(?=[\d.,])")
_BEHIND = re.compile(rf"(?<=\d)\s*({_CURRENCY})$")
#: More units than this are letters of codes, as in 1A and 2B.
_MOST_UNITS = 3
_ORDINALS = {"st", "nd", "rd", "th"}
_TIME = re.compile(r"(?P<h>\d{1,2}):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?")
#: Halves of the day that pandas does not read.
_HALF = re.compile(r"[ap](?:\.m\.?|m\.)$", re.IGNORECASE)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"(?:[T ,]+\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[AaPp][Mm]|Z|[+-]\d\d:?\d\d)?)?"
_NUMBER_DATE = re.compile(rf"(\d{{1,2}})([/.\-])(\d{{1,2}})\2(?:\d{{4}}|\d\d){_CLOCK}")
_YEAR_DATE = re.compile(rf"\d{{4}}([/.\-])(0?[1-9]|1[0-2])\1(0?[1-9]|[12]\d|3[01]){_CLOCK}")
_NAME_DATE = re.compile(
    rf"(?:\d{{1,2}}[ .\-/]*{_MONTH}[ ,.\-/]*(?:\d{{4}}|\d\d)|{_MONTH} ?\d{{1,2}},? \d{{4}}){_CLOCK}", re.IGNORECASE
)
# A month without a day is its first day. Years are limited, as 1234-05 is more often a code.
_YEAR_MONTH = re.compile(r"(?:1[6-9]|20)\d\d[/\-](?:0[1-9]|1[0-2])")
_NAME_MONTH = re.compile(rf"{_MONTH}[ \-/]?(?:1[6-9]|20)\d\d", re.IGNORECASE)


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
        Signs or units around the numbers that fit; "()" for parentheses. For times, "a.m." if one is written with
        periods.
    has_minus, has_spaces : bool
        Whether values that fit contain the minus sign U+2212, or spaces.
    is_mostly_unique : bool
        Whether there are at least 30 rows, and at least half of them hold a value that occurs in no other row.
    is_text : bool
        Whether the values in quotes are strings, such as digits with leading zeros, and not all numbers.
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
    has_minus: bool = False
    has_spaces: bool = False
    is_mostly_unique: bool = False
    is_text: bool = False

    @property
    def has_several_units(self) -> bool:
        """Whether values have different units or currencies, so that their numbers cannot be compared."""
        return self.kind in NUMBER_KINDS and len([sign for sign in self.signs if sign not in _NO_UNITS]) > 1

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
        there are at least 30 rows, and at least half of them hold a value that occurs in no other row (digits with
        leading zeros included); free text has a median of three words or more. Of more than 5,000 distinct values,
        5,000 are compared with numbers and dates.

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
    n_values, found = len(texts), notation_of_strings(texts)
    n_rows, lonely = int(np.sum(counts)), int(np.sum(np.asarray(counts) == 1))
    is_mostly_unique = n_rows >= FEWEST_ROWS and lonely >= _LONELY * n_rows
    if found is not None and not (found.kind == "codes" and is_mostly_unique):
        return replace(found, is_mostly_unique=is_mostly_unique)
    if is_mostly_unique:
        words = sorted(len(text.split()) for text in texts)
        kind = "free text" if words[len(words) // 2] >= _WORDS else "identifiers"
        return StringLook(kind, tuple(texts[:2]), lonely, n_values, is_mostly_unique=True)
    return StringLook("categories", tuple(texts[:2]), n_values, n_values)


def notation_of_strings(values: Sequence[str]) -> StringLook | None:
    """Return the kind of numbers or dates that most of the values fit, even of a single value.

    Parameters
    ----------
    values : sequence of str
        Distinct values.

    Returns
    -------
    StringLook or None
        None if at most half of the values fit each kind.

    Examples
    --------
    >>> from tanlearn.data.column_looks import notation_of_strings
    >>> notation_of_strings(["$5"]).kind, notation_of_strings(["red"])
    ('currency', None)
    """
    some = list(values[:: 1 + (len(values) - 1) // _MOST_VALUES])
    best: StringLook | None = None
    for look in _candidates(some, [text.strip() for text in some]):
        if look.n_matching > (best.n_matching if best else 0):
            best = look
    return best if best is not None and 2 * best.n_matching > best.n_values else None


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
    if _has_year_first(text) or _has_month_name(text):
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
    plain = [text.replace("\u2212", "-") for text in stripped]
    cleaners: list[tuple[str, Callable[[str], tuple[str, tuple[str, ...]]]]] = [
        ("number", lambda text: (text, ())),
        ("minus sign", lambda text: (text, ())),
        ("accounting", _without_parentheses),
        ("percent", _without_percent),
        ("currency", _without_currency),
        ("unit", _without_unit),
        ("quoted", lambda text: (text[2:-1], ('="',)) if text.startswith('="') and text.endswith('"') else (text, ())),
    ]
    pairs: Sequence[tuple[str, tuple[str, ...]]]
    for kind, clean in cleaners:
        if kind == "minus sign":
            pairs = [(text, ("\u2212",) if "\u2212" in own else ()) for text, own in zip(plain, stripped, strict=True)]
        else:
            pairs = [clean(text) for text in (stripped if kind == "number" else plain)]
        signs = {sign for _, own in pairs for sign in own}
        if (kind != "number" and not signs) or (kind == "accounting" and "()" not in signs):
            continue
        if kind == "unit" and (len(signs) > _MOST_UNITS or 2 * sum(bool(own) for _, own in pairs) <= len(texts)):
            continue
        found += _as_numbers(kind, texts, pairs)
        if kind == "quoted":
            found.append(_look("quoted", texts, [bool(own) for _, own in pairs], pairs, is_text=True))
    pairs = [(text, ("a.m.",) if _HALF.search(text) else ()) for text in stripped]
    found.append(_look("time", texts, list(map(_is_time, stripped)), pairs))
    found += _as_dates(texts, stripped)
    return found


def _as_numbers(kind: str, texts: list[str], pairs: Sequence[tuple[str, tuple[str, ...]]]) -> list[StringLook]:
    """Return the looks of numbers in every notation, given texts without signs and these signs."""
    found, cleaned = [], [text for text, _ in pairs]
    for mark, decimal in _NOTATIONS:
        fits = [plain_number(text, mark, decimal) is not None for text in cleaned]
        if kind == "number":
            fits = [fit and "\u2212" not in text for fit, text in zip(fits, texts, strict=True)]
        ambiguous = False
        if mark == ",":
            both = [text for text, fit in zip(cleaned, fits, strict=True) if fit and "," in text]
            ambiguous = bool(both) and all(_COMMA.fullmatch(text) for text in both)
        name = kind
        if kind == "number" and mark:
            name = "thousands"
        elif kind == "number" and decimal == ",":
            name = "decimal comma"
        found.append(_look(name, texts, fits, pairs, mark=mark, decimal=decimal, is_ambiguous=ambiguous))
    return found


def _as_codes(texts: list[str], stripped: list[str]) -> StringLook:
    """Return the look of digits with leading zeros, which are names and no numbers."""
    is_digits = [text.isdecimal() for text in stripped]
    has_zeros = any(text[0] == "0" and len(text) > 1 for text, own in zip(stripped, is_digits, strict=True) if own)
    return _look("codes", texts, is_digits if has_zeros else [False] * len(texts))


def _as_dates(texts: list[str], stripped: list[str]) -> list[StringLook]:
    """Return the looks of dates in every order."""
    found = [
        _look("date", texts, list(map(_has_year_first, stripped)), order="year first"),
        _look("date", texts, list(map(_has_month_name, stripped)), order="month name"),
    ]
    parts = [_NUMBER_DATE.fullmatch(text) for text in stripped]
    pairs = [None if part is None else (int(part[1]), int(part[3])) for part in parts]
    day = [pair is not None and 1 <= pair[0] <= 31 and 1 <= pair[1] <= 12 for pair in pairs]
    month = [pair is not None and 1 <= pair[0] <= 12 and 1 <= pair[1] <= 31 for pair in pairs]
    order = "ambiguous" if day == month else "day first" if sum(day) > sum(month) else "month first"
    found.append(_look("date", texts, day if sum(day) >= sum(month) else month, order=order))
    return found


def _has_year_first(text: str) -> bool:
    """Return whether a text is a date or a month of numbers that begins with the year."""
    return bool(_YEAR_DATE.fullmatch(text) or _YEAR_MONTH.fullmatch(text))


def _has_month_name(text: str) -> bool:
    """Return whether a text is a date or a month with the name of the month."""
    return bool(_NAME_DATE.fullmatch(text) or _NAME_MONTH.fullmatch(text))


def _look(
    kind: str,
    texts: list[str],
    fits: list[bool],
    pairs: Sequence[tuple[str, tuple[str, ...]]] | None = None,
    **rest: Any,
) -> StringLook:
    """Return a look with examples."""
    matching = [text for text, fit in zip(texts, fits, strict=True) if fit]
    others = [text for text, fit in zip(texts, fits, strict=True) if not fit]
    if pairs is not None:
        signs = dict.fromkeys(sign for (_, own), fit in zip(pairs, fits, strict=True) if fit for sign in own)
        rest["signs"] = tuple(signs)
        rest["has_minus"] = any("\u2212" in text for text in matching)
        rest["has_spaces"] = any(space in text.strip() for text in matching for space in _SPACES)
    # The values that show the notation come first.
    matching.sort(key=lambda text: text.lstrip("+-").isdecimal())
    return StringLook(kind, tuple(matching[:2]), len(matching), len(texts), tuple(others[:2]), **rest)


def _is_time(text: str) -> bool:
    """Return whether a text is a time of day."""
    found = _TIME.fullmatch(text)
    return found is not None and int(found["h"]) <= (12 if found["half"] else 23)


def _without_parentheses(text: str) -> tuple[str, tuple[str, ...]]:
    """Return an amount without its currency or percent sign, negative if it was in parentheses."""
    found = _PARENTHESES.fullmatch(text)
    inner = text if found is None else found[1] + found[2].strip() + found[3]
    inner, currency = _without_currency(inner)
    inner, percent = _without_percent(inner)
    signs = currency + percent
    if found is None:
        return inner, signs
    # A second sign stays, and makes this no number.
    return f"-{inner}", (*signs, "()")


def _without_percent(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a number without the sign for percent or per mille."""
    return (text[:-1].strip(), (text[-1],)) if text[-1:] in ("%", "‰") else (text, ())


def _without_currency(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a number without its currency, in front of it or behind."""
    found = _BEFORE.match(text)
    if found:
        return found[1] + found[3] + text[found.end() :], (found[2],)
    found = _BEHIND.search(text)
    return (text[: found.start()], (found[1],)) if found else (text, ())


def _without_unit(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a number without the unit behind it."""
    found = _UNIT.fullmatch(text)
    if found is None or found["unit"].lower() in _ORDINALS or not found["number"][-1:].isdigit():
        return text, ()
    return found["number"], (found["unit"],)
