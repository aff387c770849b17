"""Notes about the columns of a table: rows without a class, and columns with unexpected content."""

from collections.abc import Sequence
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn.cli.messages import listed, note
from tanlearn.encoding.column_warnings import describe_format, is_suspect
from tanlearn.sources.string_formats import (
    MAX_NUMERIC_CATEGORIES,
    NUMBER_KINDS,
    StringFormat,
    contains_strings,
    detect_format,
)

__all__ = ["note_dates", "note_missing", "note_number_strings", "note_suspects", "reading_advice"]

#: Minimum number of rows for notes about distinct values. In fewer rows, all values may differ by chance.
_FEWEST_ROWS = 30
_MOST_CLASSES = 50
#: Maximum number of values that are suggested for ``--missing``.
_MOST_MARKERS = 3


def note_missing(n_missing: int, n_samples: int, target: str) -> None:
    """Print the number of rows without a class."""
    if n_missing:
        note(
            f"{n_missing:,} of {n_missing + n_samples:,} rows {'has' if n_missing == 1 else 'have'} no {target!r} and "
            f"{'is' if n_missing == 1 else 'are'} left out."
        )


def note_dates(names: Sequence[str]) -> None:
    """Print the names of the columns that are read as dates."""
    if names:
        note(f"dates are converted to days since 1970: {listed(names)}.")


def note_number_strings(column: Any) -> None:
    """Print the reason for which a column of number-like strings is read as text."""
    import pandas as pd

    if not contains_strings(column):
        return
    found = _detect(column.dropna())
    is_plain = found.kind in ("number", "decimal comma")
    if found.kind in NUMBER_KINDS and found.kind != "number" and not is_suspect(found):
        return
    advice = "" if is_plain else reading_advice(found)
    if advice:
        note(f"{column.name!r} is read as text: it looks like {describe_format(found)}. {advice}")
        return
    strings = pd.Series(column.dropna().unique(), dtype=object)
    others = strings[pd.to_numeric(strings, errors="coerce").isna()].tolist()
    with_points = pd.to_numeric(strings.str.replace(",", ".", regex=False), errors="coerce")
    if not others:
        note(
            f"{column.name!r} is read as text, because it contains digits with leading zeros, or numbers stored as "
            f"text."
        )
    elif with_points.notna().sum() > len(strings) - len(others) and with_points.notna().mean() > 0.5:
        note(
            f"{column.name!r} is read as text, because it contains commas, as in {others[0]!r}. To read numbers, "
            f"use --decimal ,."
        )
    elif len(others) < len(strings) / 2:
        is_few = len(strings) - len(others) <= MAX_NUMERIC_CATEGORIES
        if is_few and any(character.isdigit() for text in others for character in text):
            return  # the values are names of categories, such as 2, 3, 4, 5more
        examples = listed(list(map(repr, others)), 3, are_quoted=True)
        note(f"{column.name!r} is read as text: besides numbers, it contains {examples}. {_missing_advice(others)}")


def _detect(strings: Any) -> StringFormat:
    """Detect the notation of a column of strings from its values that are not missing."""
    number = strings.value_counts(sort=False)
    return detect_format(list(number.index), number.to_numpy())


def reading_advice(found: StringFormat) -> str:
    """Return the options for reading numbers or dates in a notation, or an empty string for other kinds."""
    if found.has_several_units:
        return "Convert them to one unit first."
    if found.kind == "time":
        return "Write them as hours, such as 8.5, to use them as numbers."
    if found.kind == "quoted":
        return 'Save the table without ="..." to use them as they are.'
    options = []
    if found.kind == "date":
        order = {"month name": "day-first", "ambiguous": "day-first"}.get(found.order, found.order.replace(" ", "-"))
        options.append(f"--dates {order}")
        if found.order == "ambiguous":
            options[0] += " or --dates month-first"
    elif found.kind in NUMBER_KINDS:
        if found.thousands == "," and found.is_ambiguous:
            options.append("--thousands , (1,500 is 1500) or --decimal , (1,500 is 1.5)")
        elif found.thousands:
            options.append(
                f"--thousands {found.thousands!r}" if found.thousands in " '" else f"--thousands {found.thousands}"
            )
        if found.decimal == ",":
            options.append("--decimal ,")
        options += [f"--symbol {sign!r}" for sign in found.signs]
    if not options:
        return ""
    advice = f"{' '.join(options)} reads them."
    n_others = found.n_values - found.n_matching
    if n_others > len(found.others):
        return (
            f"{advice} {n_others:,} of {found.n_values:,} values do not match: correct them, or declare them missing."
        )
    return advice if found.all_match else f"{advice} {_missing_advice(found.others)}"


def _missing_advice(others: Sequence[str]) -> str:
    """Return the ``--missing`` options for at most three values, otherwise advice to correct or declare each."""
    if len(others) > _MOST_MARKERS:
        return f"Correct these {len(others):,} distinct values, or declare each of them missing with --missing."
    options = " ".join(f"--missing {text!r}" for text in others)
    return f"{options} reads {'this value' if len(others) == 1 else 'these values'} as missing."


def note_suspects(X: Any, y: AnyArray, target: str) -> None:
    """Print notes about columns that look like row identifiers or free text, and a target that may be a quantity."""
    n_samples = len(y)
    if n_samples < _FEWEST_ROWS:
        return
    n_classes = len(set(y.tolist()))
    if n_classes > _MOST_CLASSES and n_classes > n_samples / 10:
        note(
            f"{target!r} has {n_classes:,} different values in {n_samples:,} rows, so it may be a quantity, not a "
            f"class."
        )
    for name in X.columns:
        values = X[name]
        if values.dtype.kind in "iu":
            is_suspect = bool((values.diff().iloc[1:] == 1).all())
        else:
            is_suspect = False
            if contains_strings(values):
                found = _detect(values)
                is_suspect = found.kind == "identifiers"
                if found.kind == "free text":
                    note(f"{name!r} looks like {describe_format(found)}. Use --drop to leave it out.")
        if is_suspect:
            note(f"{name!r} looks like an identifier of rows. If so, use --drop to leave it out.")
