"""Notes about the columns of a table: rows without a class, and columns of unexpected content."""

from collections.abc import Sequence
from typing import Any

from tanlearn._typing import AnyArray
from tanlearn.cli.messages import listed, note
from tanlearn.data.column_looks import MAX_NUMERIC_CATEGORIES, NUMBER_KINDS, StringLook, look_at_strings
from tanlearn.data.column_notes import is_suspect, kind_in_words
from tanlearn.data.text_files import holds_texts

__all__ = ["note_dates", "note_missing", "note_numbers_as_texts", "note_suspects", "reading_advice"]

#: Minimum number of rows for notes about distinct values: in fewer rows, all may differ by chance.
_FEWEST_ROWS = 30
_MOST_CLASSES = 50
#: Maximum number of values to suggest for ``--missing``.
_MOST_MARKERS = 3


def note_missing(n_missing: int, n_samples: int, target: str) -> None:
    """Print the number of rows without a class."""
    if n_missing:
        note(
            f"{n_missing:,} of {n_missing + n_samples:,} rows {'has' if n_missing == 1 else 'have'} no {target!r} and "
            f"{'is' if n_missing == 1 else 'are'} left out."
        )


def note_dates(names: Sequence[str]) -> None:
    """Print the columns that are read as dates."""
    if names:
        note(f"dates count as days since 1970: {listed(names)}.")


def note_numbers_as_texts(column: Any) -> None:
    """Print the reason why a column with numbers counts as text."""
    import pandas as pd

    if not holds_texts(column):
        return
    look = _look_at(column.dropna())
    is_plain = look.kind in ("number", "decimal comma")
    if look.kind in NUMBER_KINDS and look.kind != "number" and not is_suspect(look):
        return
    advice = "" if is_plain else reading_advice(look)
    if advice:
        note(f"{column.name!r} counts as text: it looks like {kind_in_words(look)}. {advice}")
        return
    texts = pd.Series(column.dropna().unique(), dtype=object)
    others = texts[pd.to_numeric(texts, errors="coerce").isna()].tolist()
    with_points = pd.to_numeric(texts.str.replace(",", ".", regex=False), errors="coerce")
    if not others:
        note(f"{column.name!r} holds digits with leading zeros, or numbers stored as text: it counts as text.")
    elif with_points.notna().sum() > len(texts) - len(others) and with_points.notna().mean() > 0.5:
        note(f"{column.name!r} counts as text for its commas, as in {others[0]!r}. --decimal , reads them as numbers.")
    elif len(others) < len(texts) / 2:
        is_few = len(texts) - len(others) <= MAX_NUMERIC_CATEGORIES
        if is_few and any(character.isdigit() for text in others for character in text):
            return  # names of categories, such as 2, 3, 4, 5more
        examples = listed(list(map(repr, others)), 3, are_quoted=True)
        note(f"{column.name!r} counts as text: besides numbers it holds {examples}. {_missing_advice(others)}")


def _look_at(texts: Any) -> StringLook:
    """Return the detected notation of a column of strings without missing values."""
    number = texts.value_counts(sort=False)
    return look_at_strings(list(number.index), number.to_numpy())


def reading_advice(look: StringLook) -> str:
    """Return the options that read numbers or dates of a notation, or an empty string for other kinds."""
    if look.has_several_units:
        return "Convert them to one unit first."
    if look.kind == "time":
        return "Write them as hours, such as 8.5, to use them as numbers."
    if look.kind == "quoted":
        return 'Save the table without ="..." to use them as they are.'
    options = []
    if look.kind == "date":
        order = {"month name": "day-first", "ambiguous": "day-first"}.get(look.order, look.order.replace(" ", "-"))
        options.append(f"--dates {order}")
        if look.order == "ambiguous":
            options[0] += " or --dates month-first"
    elif look.kind in NUMBER_KINDS:
        if look.mark == "," and look.is_ambiguous:
            options.append("--thousands , (1,500 is 1500) or --decimal , (1,500 is 1.5)")
        elif look.mark:
            options.append(f"--thousands {look.mark!r}" if look.mark in " '" else f"--thousands {look.mark}")
        if look.decimal == ",":
            options.append("--decimal ,")
        options += [f"--symbol {sign!r}" for sign in look.signs]
    if not options:
        return ""
    advice = f"{' '.join(options)} reads them."
    n_others = look.n_values - look.n_matching
    if n_others > len(look.others):
        return f"{advice} {n_others:,} of {look.n_values:,} values do not fit: correct them, or declare them missing."
    return advice if look.is_whole else f"{advice} {_missing_advice(look.others)}"


def _missing_advice(others: Sequence[str]) -> str:
    """Return the options that declare some values missing, if these are few."""
    if len(others) > _MOST_MARKERS:
        return f"Correct these {len(others):,} distinct values, or declare each of them missing with --missing."
    options = " ".join(f"--missing {text!r}" for text in others)
    return f"{options} would make {'that a missing value' if len(others) == 1 else 'them missing values'}."


def note_suspects(X: Any, y: AnyArray, target: str) -> None:
    """Print columns that look like row identifiers or free text, and whether the target looks like a quantity."""
    n_samples = len(y)
    if n_samples < _FEWEST_ROWS:
        return
    n_classes = len(set(y.tolist()))
    if n_classes > _MOST_CLASSES and n_classes > n_samples / 10:
        note(f"{target!r} has {n_classes:,} different values in {n_samples:,} rows. Is it a quantity, not a class?")
    for name in X.columns:
        values = X[name]
        if values.dtype.kind in "iu":
            is_suspect = bool((values.diff().iloc[1:] == 1).all())
        else:
            is_suspect = False
            if holds_texts(values):
                look = _look_at(values)
                is_suspect = look.kind == "identifiers"
                if look.kind == "free text":
                    note(f"{name!r} looks like {kind_in_words(look)}. --drop leaves it out.")
        if is_suspect:
            note(f"{name!r} differs from row to row. If it numbers or names the rows, leave it out with --drop.")
