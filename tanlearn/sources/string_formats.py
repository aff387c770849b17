"""Detection of the content of string columns: unparsed numbers, dates, identifiers or free text.

:func:`detect_format` makes the decision for Python warnings and for the notes of the command line. A column has the
first kind in :data:`KINDS` that all its values match; otherwise, the first kind that most of its values match.
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
    "MAX_NUMERIC_CATEGORIES",
    "NUMBER_KINDS",
    "StringFormat",
    "contains_strings",
    "detect_format",
    "detect_number_or_date",
    "has_date_order",
    "is_numeric_date",
    "parse_number",
]

#: Kinds in the order in which they are tried. "constant", "identifiers", "free text" and "categories" come afterwards.
KINDS = (
    "number", "thousands", "decimal comma", "minus sign", "accounting", "percent", "currency", "unit", "quoted",
    "time", "date", "codes",
)  # fmt: skip
#: Kinds that can be converted to numbers.
NUMBER_KINDS = ("number", "thousands", "decimal comma", "minus sign", "accounting", "percent", "currency", "unit")
# Integers with more distinct values than this are usually a quantity (a pixel, an age, an amount) and not a code. Mean
# error of Chow-Liu TAN with limits of 0, 10 and 64: 12.99, 12.59 and 15.76 % over 18 data sets not used to choose the
# limit; 17.70, 16.32 and 18.31 % over the 20 used (benchmarks/quality/whole_numbers.md).
MAX_NUMERIC_CATEGORIES = 10
#: Fewest rows for the decision that values rarely repeat.
FEWEST_ROWS = 30
# Smallest fraction of rows with a unique value for a column to count as mostly unique. Unique values carry no
# information about the class, and new rows will mostly contain unseen values.
_SMALLEST_SHARE = 0.5
#: Largest number of distinct values that are examined; more are subsampled.
_MOST_VALUES = 5_000
#: Fewest words, as the median over the values, for free text.
_FEWEST_WORDS = 3
_NO_UNITS = ("()", "\u2212")
_SPACES = " \u00a0\u202f\u2009"
_CURRENCY_SIGNS = r"$€£¥₹₽₩₺฿₫₪₴₦¢"
_CURRENCY_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|US$|R$|kr|zł|Kč|Fr"
_CURRENCY = "|".join(map(re.escape, [*_CURRENCY_CODES.split("|"), *_CURRENCY_SIGNS]))
_PLAIN_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)?,\d+|0|[1-9]\d*)")
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
_CURRENCY_BEFORE = re.compile(rf"([+\-]?)\s*({_CURRENCY})\s*([+\-]?)(?=[\d.,])")
_CURRENCY_AFTER = re.compile(rf"(?<=\d)\s*({_CURRENCY})$")
#: Largest number of different units; more suffixes indicate codes, as in 1A and 2B.
_MOST_UNITS = 3
_ORDINALS = {"st", "nd", "rd", "th"}
_TIME = re.compile(r"(?P<h>\d{1,2}):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?")
#: Markers of morning and afternoon that pandas does not parse.
_PERIODS_IN_HALF = re.compile(r"[ap](?:\.m\.?|m\.)$", re.IGNORECASE)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"(?:[T ,]+\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[AaPp][Mm]|Z|[+-]\d\d:?\d\d)?)?"
_NUMBER_DATE = re.compile(rf"(\d{{1,2}})([/.\-])(\d{{1,2}})\2(?:\d{{4}}|\d\d){_CLOCK}")
_YEAR_DATE = re.compile(rf"\d{{4}}([/.\-])(0?[1-9]|1[0-2])\1(0?[1-9]|[12]\d|3[01]){_CLOCK}")
_NAME_DATE = re.compile(
    rf"(?:\d{{1,2}}[ .\-/]*{_MONTH}[ ,.\-/]*(?:\d{{4}}|\d\d)|{_MONTH} ?\d{{1,2}},? \d{{4}}){_CLOCK}", re.IGNORECASE
)
# A month without a day is read as its first day. Years are limited, because 1234-05 is more often a code.
_YEAR_MONTH = re.compile(r"(?:1[6-9]|20)\d\d[/\-](?:0[1-9]|1[0-2])")
_NAME_MONTH = re.compile(rf"{_MONTH}[ \-/]?(?:1[6-9]|20)\d\d", re.IGNORECASE)


@dataclass(frozen=True)
class StringFormat:
    """Detected content of a string column."""

    kind: str  # one of KINDS, or "constant", "identifiers", "free text", "categories"
    examples: tuple[str, ...]  # up to two matching values
    n_matching: int  # number of matching distinct values
    n_values: int  # number of distinct values
    others: tuple[str, ...] = ()  # up to two values that do not match
    thousands: str = ""  # thousands separator: "", ",", ".", "'" or " "
    decimal: str = "."  # decimal mark
    order: str = ""  # dates: "day first", "month first", "year first", "month name" or "ambiguous"
    is_ambiguous: bool = False  # whether commas may be thousands separators or decimal marks
    # Symbols or units around matching numbers; "()" for parentheses; "a.m." for times with periods.
    signs: tuple[str, ...] = ()
    has_minus: bool = False  # whether matching values contain the minus sign U+2212
    has_spaces: bool = False  # whether matching values contain spaces
    # Whether there are at least 30 rows, and at least half of them contain a value that occurs in no other row
    is_mostly_unique: bool = False
    is_string: bool = False  # whether quoted values are strings, such as digits with leading zeros, and not all numbers

    @property
    def has_several_units(self) -> bool:
        """True if values have different units or currencies, so that their numbers are not comparable."""
        return self.kind in NUMBER_KINDS and len([sign for sign in self.signs if sign not in _NO_UNITS]) > 1

    @property
    def all_match(self) -> bool:
        """True if all values match the detected kind."""
        return self.n_matching == self.n_values


def contains_strings(series: Any) -> bool:
    """Return whether a column contains strings, and otherwise only missing values."""
    from pandas.api.types import infer_dtype

    return series.dtype.kind in "OU" and infer_dtype(series, skipna=True) == "string"


def detect_format(values: Sequence[str], counts: Any = None) -> StringFormat:
    """Detect the content of a string column from its values.

    ``values`` are the distinct values that are not missing, with their row counts in ``counts`` (n_values,), or all
    values if ``counts`` is None. The result is a kind of numbers or dates if more than half of the distinct values
    match it. "identifiers" or "free text" need at least 30 rows of which at least half have a unique value, including
    digits with leading zeros; free text has a median of at least three words. At most 5,000 distinct values are
    examined.
    """
    if counts is None:
        number = Counter(map(str, values))
        values, counts = list(number), list(number.values())
    strings = [str(value) for value in values]
    if len(strings) < 2:
        return StringFormat("constant", tuple(strings), len(strings), len(strings))
    n_values, found = len(strings), detect_number_or_date(strings)
    n_rows, n_unique = int(np.sum(counts)), int(np.sum(np.asarray(counts) == 1))
    is_mostly_unique = n_rows >= FEWEST_ROWS and n_unique >= _SMALLEST_SHARE * n_rows
    if found is not None and not (found.kind == "codes" and is_mostly_unique):
        return replace(found, is_mostly_unique=is_mostly_unique)
    if is_mostly_unique:
        words = sorted(len(text.split()) for text in strings)
        kind = "free text" if words[len(words) // 2] >= _FEWEST_WORDS else "identifiers"
        return StringFormat(kind, tuple(strings[:2]), n_unique, n_values, is_mostly_unique=True)
    return StringFormat("categories", tuple(strings[:2]), n_values, n_values)


def detect_number_or_date(values: Sequence[str]) -> StringFormat | None:
    """Return the kind of numbers or dates that more than half of the values match, or None; a single value suffices."""
    some = list(values[:: 1 + (len(values) - 1) // _MOST_VALUES])
    best: StringFormat | None = None
    for match in _candidates(some, [text.strip() for text in some]):
        if match.n_matching > (best.n_matching if best else 0):
            best = match
    return best if best is not None and 2 * best.n_matching > best.n_values else None


def parse_number(text: str, thousands: str, decimal: str) -> float | None:
    """Parse a number with the given thousands separator and decimal mark. Return None for anything else.

    Digits are grouped in threes; with commas, Indian groups (1,23,456) are also accepted. U+2212 is read as a minus
    sign. A string with leading zeros, such as 007, is not a number. The separator ``" "`` includes no-break and narrow
    spaces.
    """
    text = text.strip().replace("\u2212", "-")
    if (
        _PLAIN_NUMBER.fullmatch(text)
        and not (thousands == "." and "." in text)
        and not (decimal == "," and "." in text)
    ):
        return float(text)
    if not thousands:
        return float(text.replace(",", ".")) if decimal == "," and _DECIMAL_COMMA.fullmatch(text) else None
    pattern = _SPACED_COMMA if (thousands, decimal) == (" ", ",") else _GROUPED[thousands]
    if thousands == "'" and decimal == ",":
        text, pattern = text.replace(",", "."), _GROUPED["'"]
    if not pattern.fullmatch(text):
        return None
    for sign in _SPACES if thousands == " " else "'\u2019" if thousands == "'" else thousands:
        text = text.replace(sign, "")
    return float(text.replace(",", "."))


def has_date_order(text: str, order: str) -> bool:
    """Return whether a string is a date in an order such as "day first"; dates with month names match every order."""
    text = text.strip()
    if _has_year_first(text) or _has_month_name(text):
        return True
    found = _NUMBER_DATE.fullmatch(text)
    if found is None or order == "year first":
        return False
    day, month = (int(found[1]), int(found[3])) if order == "day first" else (int(found[3]), int(found[1]))
    return 1 <= day <= 31 and 1 <= month <= 12


def is_numeric_date(text: str) -> bool:
    """Return whether a string without surrounding spaces is a numeric date that ends with the year."""
    return _NUMBER_DATE.fullmatch(text) is not None


#: Pairs of a thousands separator and a decimal mark, in order of preference.
_NOTATIONS = (("", "."), (",", "."), ("", ","), (" ", "."), (" ", ","), ("'", "."), (".", ","))


def _candidates(strings: list[str], stripped: list[str]) -> list[StringFormat]:
    """Return the matches of all kinds of numbers and dates, simpler kinds first."""
    found = [_as_codes(strings, stripped)]
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
        if kind == "unit" and (len(signs) > _MOST_UNITS or 2 * sum(bool(own) for _, own in pairs) <= len(strings)):
            continue
        found += _as_numbers(kind, strings, pairs)
        if kind == "quoted":
            found.append(_match("quoted", strings, [bool(own) for _, own in pairs], pairs, is_string=True))
    pairs = [(text, ("a.m.",) if _PERIODS_IN_HALF.search(text) else ()) for text in stripped]
    found.append(_match("time", strings, list(map(_is_time, stripped)), pairs))
    found += _as_dates(strings, stripped)
    return found


def _as_numbers(kind: str, strings: list[str], pairs: Sequence[tuple[str, tuple[str, ...]]]) -> list[StringFormat]:
    """Return one match per number notation; ``pairs`` are the values without symbols, and these symbols."""
    found, cleaned = [], [text for text, _ in pairs]
    for thousands, decimal in _NOTATIONS:
        fits = [parse_number(text, thousands, decimal) is not None for text in cleaned]
        if kind == "number":
            fits = [fit and "\u2212" not in text for fit, text in zip(fits, strings, strict=True)]
        ambiguous = False
        if thousands == ",":
            both = [text for text, fit in zip(cleaned, fits, strict=True) if fit and "," in text]
            ambiguous = bool(both) and all(_DECIMAL_COMMA.fullmatch(text) for text in both)
        name = kind
        if kind == "number" and thousands:
            name = "thousands"
        elif kind == "number" and decimal == ",":
            name = "decimal comma"
        found.append(_match(name, strings, fits, pairs, thousands=thousands, decimal=decimal, is_ambiguous=ambiguous))
    return found


def _as_codes(strings: list[str], stripped: list[str]) -> StringFormat:
    """Return the match of digits with leading zeros, which are codes and not numbers."""
    is_digits = [text.isdecimal() for text in stripped]
    has_zeros = any(text[0] == "0" and len(text) > 1 for text, own in zip(stripped, is_digits, strict=True) if own)
    return _match("codes", strings, is_digits if has_zeros else [False] * len(strings))


def _as_dates(strings: list[str], stripped: list[str]) -> list[StringFormat]:
    """Return one match per date order."""
    found = [
        _match("date", strings, list(map(_has_year_first, stripped)), order="year first"),
        _match("date", strings, list(map(_has_month_name, stripped)), order="month name"),
    ]
    parts = [_NUMBER_DATE.fullmatch(text) for text in stripped]
    pairs = [None if part is None else (int(part[1]), int(part[3])) for part in parts]
    day = [pair is not None and 1 <= pair[0] <= 31 and 1 <= pair[1] <= 12 for pair in pairs]
    month = [pair is not None and 1 <= pair[0] <= 12 and 1 <= pair[1] <= 31 for pair in pairs]
    order = "ambiguous" if day == month else "day first" if sum(day) > sum(month) else "month first"
    found.append(_match("date", strings, day if sum(day) >= sum(month) else month, order=order))
    return found


def _has_year_first(text: str) -> bool:
    """Return whether a string is a numeric date or month that begins with the year."""
    return bool(_YEAR_DATE.fullmatch(text) or _YEAR_MONTH.fullmatch(text))


def _has_month_name(text: str) -> bool:
    """Return whether a string is a date or month that contains the name of the month."""
    return bool(_NAME_DATE.fullmatch(text) or _NAME_MONTH.fullmatch(text))


def _match(
    kind: str,
    strings: list[str],
    fits: list[bool],
    pairs: Sequence[tuple[str, tuple[str, ...]]] | None = None,
    **rest: Any,
) -> StringFormat:
    """Return the match of one kind with its counts and examples."""
    matching = [text for text, fit in zip(strings, fits, strict=True) if fit]
    others = [text for text, fit in zip(strings, fits, strict=True) if not fit]
    if pairs is not None:
        signs = dict.fromkeys(sign for (_, own), fit in zip(pairs, fits, strict=True) if fit for sign in own)
        rest["signs"] = tuple(signs)
        rest["has_minus"] = any("\u2212" in text for text in matching)
        rest["has_spaces"] = any(space in text.strip() for text in matching for space in _SPACES)
    # Values that show the notation come first among the examples.
    matching.sort(key=lambda text: text.lstrip("+-").isdecimal())
    return StringFormat(kind, tuple(matching[:2]), len(matching), len(strings), tuple(others[:2]), **rest)


def _is_time(text: str) -> bool:
    """Return whether a string is a time of day."""
    found = _TIME.fullmatch(text)
    return found is not None and int(found["h"]) <= (12 if found["half"] else 23)


def _without_parentheses(text: str) -> tuple[str, tuple[str, ...]]:
    """Return an amount without currency and percent sign, negated if it was in parentheses, and the removed symbols."""
    found = _PARENTHESES.fullmatch(text)
    inner = text if found is None else found[1] + found[2].strip() + found[3]
    inner, currency = _without_currency(inner)
    inner, percent = _without_percent(inner)
    signs = currency + percent
    if found is None:
        return inner, signs
    # A second sign is kept, so that the result is not a valid number.
    return f"-{inner}", (*signs, "()")


def _without_percent(text: str) -> tuple[str, tuple[str, ...]]:
    """Split off the sign for percent or per mille."""
    return (text[:-1].strip(), (text[-1],)) if text[-1:] in ("%", "‰") else (text, ())


def _without_currency(text: str) -> tuple[str, tuple[str, ...]]:
    """Split off the currency before or after a number."""
    found = _CURRENCY_BEFORE.match(text)
    if found:
        return found[1] + found[3] + text[found.end() :], (found[2],)
    found = _CURRENCY_AFTER.search(text)
    return (text[: found.start()], (found[1],)) if found else (text, ())


def _without_unit(text: str) -> tuple[str, tuple[str, ...]]:
    """Split off the unit after a number."""
    found = _UNIT.fullmatch(text)
    if found is None or found["unit"].lower() in _ORDINALS or not found["number"][-1:].isdigit():
        return text, ()
    return found["number"], (found["unit"],)
