"""Warning about string columns that look like numbers, dates, identifiers or free text, at most one per fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tanlearn._warnings import warn
from tanlearn.data.column_looks import MAX_NUMERIC_CATEGORIES, NUMBER_KINDS, StringLook, look_at_strings
from tanlearn.data.table import Column, Table

if TYPE_CHECKING:
    from tanlearn.data.column_summaries import ColumnSummary

__all__ = [
    "ColumnKindWarning",
    "is_suspect",
    "kind_in_words",
    "looks_of_table",
    "remedy",
    "warn_of_string_columns",
    "warn_of_string_summaries",
]

_N_NAMED = 10
_MARKS = {",": "commas", ".": "points", "'": "apostrophes", " ": "spaces"}


class ColumnKindWarning(UserWarning):
    """Warning that a string column is used as categorical but looks like numbers, dates, identifiers or free text.

    Examples
    --------
    >>> import warnings
    >>> import tanlearn
    >>> prices = [[f"${i},500"] for i in range(1, 100)]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", tanlearn.ColumnKindWarning)
    ...     tanlearn.NaiveBayesClassifier().fit(prices, [0, 1, 1] * 33)
    Traceback (most recent call last):
    ...
    tanlearn.data.column_notes.ColumnKindWarning: 1 column(s) of strings are used as categories, but look like ...
    """


def looks_of_table(columns: Iterable[Column]) -> list[tuple[str, StringLook]]:
    """Return name and detected content of the string columns that do not look categorical.

    Columns with declared categories are skipped.
    """
    found = []
    for column in columns:
        if column.categories is None or column.is_declared:  # strings always have categories
            continue
        counts = np.bincount(column.values[column.values >= 0], minlength=len(column.categories))
        values, counts = column.categories[counts > 0], counts[counts > 0]
        if len(values) and isinstance(values[0], str):
            look = look_at_strings(values.tolist(), counts)
            if is_suspect(look):
                found.append((column.place, look))
    return found


def is_suspect(look: StringLook) -> bool:
    """Return whether the detected content of a string column deserves a warning.

    Numbers with at most ten distinct values do not, because integers with so few values are categorical too. Strings of
    integers do not, because casting codes to strings declares them categorical, unless at least half of the rows have a
    unique value. Other plain numbers do if at most a twentieth of the distinct values (or two) are not numbers.
    """
    if look.kind in ("constant", "categories", "codes"):
        return False
    if look.kind in NUMBER_KINDS and look.n_matching <= MAX_NUMERIC_CATEGORIES:
        return False
    if look.kind == "number" and not look.is_mostly_unique:
        n_others = look.n_values - look.n_matching
        has_fractions = any(not example.lstrip("+-").isdecimal() for example in look.examples)
        return n_others <= max(2, look.n_values // 20) and (n_others > 0 or has_fractions)
    return True


def warn_of_string_columns(columns: Table, option: Any) -> None:
    """Warn once about string columns that are used as categorical but do not look categorical.

    Only ``option="auto"`` (``discrete_features`` of the encoder) warns; any other value declares the kinds of the
    columns.
    """
    if not isinstance(option, str):
        return
    _warn(looks_of_table(columns))


def warn_of_string_summaries(columns: Iterable[ColumnSummary], option: Any) -> None:
    """Warn as :func:`warn_of_string_columns` does, given summaries of the columns."""
    if not isinstance(option, str):
        return
    found = []
    for column in columns:
        if column.kind == "strings" and column.names is not None:
            look = look_at_strings(column.names.tolist(), np.bincount(column.counts.values, column.counts.weights))
            if is_suspect(look):
                found.append((column.place, look))
    _warn(found)


def _warn(found: list[tuple[str, StringLook]]) -> None:
    """Warn about columns; the first ten are named, each with a remedy."""
    if not found:
        return
    told = " ".join(_python_note(place, look) for place, look in found[:_N_NAMED])
    more = f" There are {len(found) - _N_NAMED:,} more." if len(found) > _N_NAMED else ""
    warn(
        f"{len(found):,} column(s) of strings are used as categories, but look like something else. {told}{more} If a "
        f"column is categorical, name it in discrete_features of TableEncoder, or declare it as a pandas category.",
        ColumnKindWarning,
    )


def kind_in_words(look: StringLook) -> str:
    """Describe the detected content of a column in words, with one or two example values."""
    signs = ", ".join(map(repr, look.signs))
    kinds = {
        "number": "numbers as strings",
        "thousands": f"numbers with {_MARKS.get(look.mark, '')} between thousands",
        "decimal comma": "numbers with decimal commas",
        "minus sign": "numbers with the minus sign U+2212",
        "accounting": "numbers with negative numbers in parentheses",
        "percent": "percentages",
        "currency": f"amounts with a currency ({signs})",
        "unit": f"numbers with a unit ({signs})",
        "quoted": "values quoted for Excel",
        "time": "times of day",
        "date": f"dates ({look.order})",
    }
    words = kinds.get(look.kind, look.kind)
    if look.kind == "thousands" and look.is_ambiguous:
        words = "numbers whose commas are thousands separators or decimal marks"
    shown = " and ".join(map(repr, look.examples))
    if look.kind in ("identifiers", "free text"):
        return f"{words}: {look.n_matching:,} rows hold a unique value, such as {shown}"
    if look.is_whole:
        return f"{words}, such as {shown}"
    others = " and ".join(map(repr, look.others))
    n_others = look.n_values - look.n_matching
    return f"{words}, such as {shown}, but {n_others:,} of {look.n_values:,} values are not ({others})"


def _python_note(place: str, look: StringLook) -> str:
    """Describe a column in one sentence, with the remedy in Python."""
    name = place.removeprefix("X column ")
    column = f"df[{name}]" if not name.isdecimal() else f"pd.Series(X[:, {name}])"
    return f"{place} looks like {kind_in_words(look)}: {remedy(column, look)}."


def remedy(column: str, look: StringLook) -> str:
    """Return Python code that converts a column, followed by a few words; ``column`` is a Python expression."""
    coerce = "" if look.is_whole else ', errors="coerce"'
    if look.kind == "free text":
        return "leave it out, or extract features from it"
    if look.kind == "identifiers":
        return "leave it out if it names the row, and convert it to numbers if it is a quantity"
    if look.kind == "time":
        if look.signs:  # pandas does not read "p.m."
            column += r""".str.replace(r"(?<=[AaPp])\.|(?<=[Mm])\.", "", regex=True)"""
        return f'pd.to_datetime({column}, format="mixed"{coerce}).dt.hour reads the hour'
    if look.kind == "date":
        days = {"month first": ", dayfirst=False", "day first": ", dayfirst=True"}.get(look.order, "")
        if look.order == "ambiguous":
            days = ", dayfirst=True"
        moments = f'pd.to_datetime({column}{days}, format="mixed", utc=True{coerce})'
        reader = f'({moments} - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)'
        if look.order == "ambiguous":
            return f"{reader} reads them with the day first, dayfirst=False with the month first"
        return f"{reader} reads them"
    if look.has_several_units:
        return "convert them to one unit first"
    text = column
    if look.kind == "quoted":
        text += """.str.strip().str.strip('="')"""
        if look.is_text:
            return f"{text} removes the quotes"
    if look.has_minus:
        text += r'.str.replace("\u2212", "-")'
    for sign in look.signs if look.kind in ("accounting", "percent", "currency", "unit") else ():
        text += '.str.replace("(", "-").str.replace(")", "")' if sign == "()" else f".str.replace({sign!r}, '')"
    if look.has_spaces:
        text += r'.str.replace("[ \u00a0\u202f\u2009]", "", regex=True)'
    if look.mark == "'":
        text += r""".str.replace("['\u2019]", "", regex=True)"""
    elif look.mark not in ("", " "):
        text += f'.str.replace("{look.mark}", "")'
    if look.decimal == ",":
        text += '.str.replace(",", ".")'
    reader = f"pd.to_numeric({text}{coerce}) reads them"
    if look.is_ambiguous:
        other = text.replace('.str.replace(",", "")', '.str.replace(",", ".")')
        reader += f" with commas between thousands, pd.to_numeric({other}{coerce}) with decimal commas"
    return reader
