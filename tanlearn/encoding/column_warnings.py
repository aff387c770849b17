"""Warnings about columns. Each kind of warning is issued at most once per fit.

String columns may look like numbers, dates, identifiers or free text. Discretization may leave a column constant, or
round its integers. Categories and missing values may be new in later rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, missing_code
from tanlearn._warnings import warn
from tanlearn.sources.string_formats import MAX_NUMERIC_CATEGORIES, NUMBER_KINDS, StringFormat, detect_format
from tanlearn.sources.table import Column, Table, shorten

if TYPE_CHECKING:
    from tanlearn.encoding.column_summaries import ColumnSummary

__all__ = [
    "LARGEST_SHARE",
    "ColumnKindWarning",
    "describe_format",
    "is_suspect",
    "remedy",
    "suspect_formats",
    "warn_of_constant_columns",
    "warn_of_fitted_columns",
    "warn_of_new_categories",
    "warn_of_new_missing_values",
    "warn_of_numbers_outside",
    "warn_of_rounded_columns",
    "warn_of_string_summaries",
    "warn_of_unseen",
]

#: Fraction of the rows with the same value from which a column is not reported as constant.
LARGEST_SHARE = 0.9
#: Largest integer up to which 64-bit floats represent every integer exactly.
_LARGEST_EXACT = 2**53
_N_NAMED = 10
# Minimum number of values for a warning about a column with only unseen values. If half of the values of a column are
# unseen, ten successive unseen values occur by chance in one of 1,000 data sets. A single row, as in production, is not
# sufficient evidence.
_FEWEST_UNSEEN = 10
_SEPARATORS = {",": "commas", ".": "points", "'": "apostrophes", " ": "spaces"}


class ColumnKindWarning(UserWarning):
    """Warning that a column may be used as the wrong kind.

    It is issued for string columns that are used as categorical but look like numbers, dates, identifiers or free text,
    and for integer columns that look like row numbers.

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
    tanlearn.encoding.column_warnings.ColumnKindWarning: 1 column(s) of strings are used as categories, but look ...
    """


def suspect_formats(columns: Iterable[Column]) -> list[tuple[str, StringFormat]]:
    """Return the name and the detected content of each string column that does not look categorical.

    Columns with declared categories are not included.
    """
    found = []
    for column in columns:
        if column.categories is None or column.is_declared:  # strings always have categories
            continue
        counts = np.bincount(column.values[column.values >= 0], minlength=len(column.categories))
        values, counts = column.categories[counts > 0], counts[counts > 0]
        if len(values) and isinstance(values[0], str):
            detected = detect_format(values.tolist(), counts)
            if is_suspect(detected):
                found.append((column.label, detected))
    return found


def is_suspect(detected: StringFormat) -> bool:
    """Return whether the detected content of a string column deserves a warning.

    Numbers with at most ten distinct values need no warning, because integers with so few values are also categorical.
    Strings of integers need no warning, because codes are often cast to strings to declare them as categorical, unless
    at least half of the rows have a unique value. Other plain numbers need a warning if at most a twentieth of the
    distinct values (or two) are not numbers.
    """
    if detected.kind in ("constant", "categories", "codes"):
        return False
    if detected.kind in NUMBER_KINDS and detected.n_matching <= MAX_NUMERIC_CATEGORIES:
        return False
    if detected.kind == "number" and not detected.is_mostly_unique:
        n_others = detected.n_values - detected.n_matching
        has_fractions = any(not example.lstrip("+-").isdecimal() for example in detected.examples)
        return n_others <= max(2, detected.n_values // 20) and (n_others > 0 or has_fractions)
    return True


def warn_of_fitted_columns(encoder: Any, columns: Table, sample_weight: AnyArray | None) -> None:
    """Warn about the columns to which an encoder was fitted, with at most one warning of each kind."""
    if isinstance(encoder.discrete_features, str):  # "auto"; any other value declares the kinds of the columns
        _warn(suspect_formats(columns))
    warn_of_rounded_columns(columns[i] for i in np.flatnonzero(~encoder.is_discrete_))
    one_interval = np.flatnonzero(~encoder.is_discrete_ & (encoder.n_states_ == 1))
    total = columns.n_samples if sample_weight is None else float(sample_weight.sum())
    warn_of_constant_columns(_constant_columns(columns, one_interval), encoder.discretizer_, columns.n_samples, total)


def warn_of_string_summaries(columns: Iterable[ColumnSummary], option: Any) -> None:
    """Warn about string columns as :func:`warn_of_fitted_columns` does, given summaries of the columns."""
    if not isinstance(option, str):
        return
    found = []
    for column in columns:
        if column.kind == "strings" and column.names is not None:
            counts = column.n_rows  # files of earlier versions contain only weights, not numbers of rows
            if counts is None:
                counts = np.bincount(column.counts.values, column.counts.weights)
            detected = detect_format(column.names.tolist(), counts)
            if is_suspect(detected):
                found.append((column.label, detected))
    _warn(found)


def _warn(found: list[tuple[str, StringFormat]]) -> None:
    """Warn about columns. The message contains the names of the first ten columns, each with a remedy."""
    if not found:
        return
    notes = " ".join(_python_note(label, detected) for label, detected in found[:_N_NAMED])
    more = f" There are {len(found) - _N_NAMED:,} more." if len(found) > _N_NAMED else ""
    warn(
        f"{len(found):,} column(s) of strings are used as categories, but look like something else. {notes}{more} If a "
        f"column is categorical, name it in discrete_features of TableEncoder, or declare it as a pandas category.",
        ColumnKindWarning,
    )


def describe_format(detected: StringFormat) -> str:
    """Describe the detected content of a column in words, with one or two example values."""
    signs = ", ".join(map(repr, detected.signs))
    kinds = {
        "number": "numbers as strings",
        "thousands": f"numbers with {_SEPARATORS.get(detected.thousands, '')} between thousands",
        "decimal comma": "numbers with decimal commas",
        "minus sign": "numbers with the minus sign U+2212",
        "accounting": "numbers with negative numbers in parentheses",
        "percent": "percentages",
        "currency": f"amounts with a currency ({signs})",
        "unit": f"numbers with a unit ({signs})",
        "quoted": "values quoted for Excel",
        "time": "times of day",
        "date": f"dates ({detected.order})",
    }
    words = kinds.get(detected.kind, detected.kind)
    if detected.kind == "thousands" and detected.is_ambiguous:
        words = "numbers whose commas are thousands separators or decimal marks"
    shown = " and ".join(map(repr, detected.examples))
    if detected.kind in ("identifiers", "free text"):
        return f"{words}: {detected.n_matching:,} rows hold a unique value, such as {shown}"
    if detected.all_match:
        return f"{words}, such as {shown}"
    others = " and ".join(map(repr, detected.others))
    n_others = detected.n_values - detected.n_matching
    return f"{words}, such as {shown}, but {n_others:,} of {detected.n_values:,} values are not ({others})"


def _python_note(label: str, detected: StringFormat) -> str:
    """Return one sentence that describes a column, with code that converts it or the advice to leave it out."""
    name = label.removeprefix("X column ")
    column = f"df[{name}]" if not name.isdecimal() else f"pd.Series(X[:, {name}])"
    return f"{label} looks like {describe_format(detected)}: {remedy(column, detected)}."


def remedy(column: str, detected: StringFormat) -> str:
    """Return Python code that converts a column and its effect, or advice in words if no such code is known.

    ``column`` is a Python expression of the column.
    """
    coerce = "" if detected.all_match else ', errors="coerce"'
    if detected.kind == "free text":
        return "leave it out, or extract features from it"
    if detected.kind == "identifiers":
        return "leave it out if it names the row, and convert it to numbers if it is a quantity"
    if detected.kind == "time":
        if detected.signs:  # pandas cannot read "p.m."
            column += r""".str.replace(r"(?<=[AaPp])\.|(?<=[Mm])\.", "", regex=True)"""
        return f'pd.to_datetime({column}, format="mixed"{coerce}).dt.hour reads the hour'
    if detected.kind == "date":
        days = {"month first": ", dayfirst=False", "day first": ", dayfirst=True"}.get(detected.order, "")
        if detected.order == "ambiguous":
            days = ", dayfirst=True"
        moments = f'pd.to_datetime({column}{days}, format="mixed", utc=True{coerce})'
        reader = f'({moments} - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)'
        if detected.order == "ambiguous":
            return f"{reader} reads them with the day first, dayfirst=False with the month first"
        return f"{reader} reads them"
    if detected.has_several_units:
        return "convert them to one unit first"
    text = column
    if detected.kind == "quoted":
        text += """.str.strip().str.strip('="')"""
        if detected.is_string:
            return f"{text} removes the quotes"
    if detected.has_minus:
        text += r'.str.replace("\u2212", "-")'
    for sign in detected.signs if detected.kind in ("accounting", "percent", "currency", "unit") else ():
        text += '.str.replace("(", "-").str.replace(")", "")' if sign == "()" else f".str.replace({sign!r}, '')"
    if detected.has_spaces:
        text += r'.str.replace("[ \u00a0\u202f\u2009]", "", regex=True)'
    if detected.thousands == "'":
        text += r""".str.replace("['\u2019]", "", regex=True)"""
    elif detected.thousands not in ("", " "):
        text += f'.str.replace("{detected.thousands}", "")'
    if detected.decimal == ",":
        text += '.str.replace(",", ".")'
    reader = f"pd.to_numeric({text}{coerce}) reads them"
    if detected.is_ambiguous:
        other = text.replace('.str.replace(",", "")', '.str.replace(",", ".")')
        reader += f" with commas between thousands, pd.to_numeric({other}{coerce}) with decimal commas"
    return reader


def warn_of_constant_columns(constant: list[str], discretizer: Any, n_samples: int, total: float) -> None:
    """Warn once about columns that contain different values, but were discretized to a single interval.

    ``constant`` contains their names in messages, and ``total`` is the weight of all rows.
    """
    if not constant:
        return
    shown = _named(constant)
    is_by_class = getattr(discretizer, "uses_classes", False)
    light = ""
    if is_by_class and round(total) < n_samples:
        light = f" Weights count as rows, and their sum is only {total:.3g}: multiply them by a common factor."
    name = type(discretizer).__name__
    reason, advice = f"{name} found one interval for each", "use more intervals, or bin it beforehand, otherwise"
    if is_by_class:
        reason = f"{name} found no cut point that separates the classes by such a column alone"
        advice = "bin it beforehand if it separates classes only together with other columns"
        if getattr(discretizer, "_has_searched", False):
            reason += " or with one other column"
            advice = "bin it beforehand if it separates classes only together with several other columns"
    # The text is identical for every fold, so that Python shows the warning only once.
    warn(
        f"discretization left a single interval in {len(constant):,} column(s), which are now constant: "
        f"{shown}. {reason}. Drop such a column if it is noise; cast it to str, or name it in discrete_features of "
        f"TableEncoder, if it is a code; {advice}.{light}",
        UserWarning,
    )


def _constant_columns(columns: Table, one_interval: IntArray) -> list[str]:
    """Return the labels of the columns, given by number, that have a single interval although their values differ."""
    constant = []
    for i in one_interval:
        column = columns[i]
        values = column.present_values
        # A value with such a fraction of the rows is the median, which can be found in a tenth of the time of sorting.
        middle = np.partition(values, len(values) // 2)[len(values) // 2] if len(values) else 0
        if np.count_nonzero(values == middle) < LARGEST_SHARE * len(values):
            constant.append(column.label)
    return constant


def warn_of_rounded_columns(columns: Iterable[Column]) -> None:
    """Warn once about 64-bit integer columns that lose precision when they are discretized as floats."""
    rounded = []
    for column in columns:
        if column.values.dtype.kind in "iu" and column.values.dtype.itemsize == 8:
            values = column.present_values
            if not -_LARGEST_EXACT <= values.min(initial=0) <= values.max(initial=0) <= _LARGEST_EXACT:
                rounded.append(column.label)
    if rounded:
        warn(
            f"integers beyond 2^53 are discretized as floating numbers, so adjacent ones may become equal: "
            f"{_named(rounded)}. Subtract the smallest from times and counters; cast identifiers to str, or leave them "
            f"out.",
            UserWarning,
        )


def warn_of_unseen(columns: Sequence[Column], categories: Sequence[AnyArray | None], codes: Codes) -> None:
    """Warn once about columns with at least ten values of which none was seen in ``fit``.

    ``codes`` has shape (n_features, n_samples). Columns that had no value in ``fit`` are skipped.
    """
    unseen = missing_code(codes.dtype)
    found: list[str] = []
    if codes.shape[1] < _FEWEST_UNSEEN:
        return
    for number, (known, row) in enumerate(zip(categories, codes, strict=True)):
        if known is None or row[0] != unseen or not len(known) or not (row == unseen).all():
            continue
        column = columns[number]
        present = np.flatnonzero(column.present)
        if len(present) >= _FEWEST_UNSEEN:
            had = shorten(np.asarray(known[0]).item())
            found.append(f"{column.label} (holds {shorten(column.value(present[0]))}, fit had {had})")
    if found:
        warn(
            f"no value in {len(found):,} column(s) was seen in fit, so all of them count as missing: "
            f"{_named(found)}. Write the values as in fit, or fit again with these rows.",
            UserWarning,
        )


def warn_of_numbers_outside(columns: Table, ranges: Sequence[tuple[float, float] | None]) -> None:
    """Warn once about columns with at least ten numbers of which none is in the range of ``fit``.

    Such columns often have another unit or scale than in ``fit``. Columns without a range in ``fit`` are skipped.
    """
    if columns.n_samples < _FEWEST_UNSEEN:
        return
    found = []
    for number, bounds in enumerate(ranges):
        values = None if bounds is None else columns.values_of(number)
        if bounds is None or values is None or bounds[0] <= values[0] <= bounds[1]:
            continue
        present = columns[number].present_values
        is_outside = (present < bounds[0]) | (present > bounds[1])
        if len(present) >= _FEWEST_UNSEEN and is_outside.all():
            low, high = (shorten(value) for value in bounds)
            found.append(f"{columns[number].label} (holds {shorten(present[0].item())}, fit had {low} to {high})")
    if found:
        warn(
            f"no number in {len(found):,} column(s) is in the range of fit, so all of them are treated as the smallest "
            f"or largest value of fit: {_named(found)}. Use the unit and the scale of fit, or fit again with these "
            "rows.",
            UserWarning,
        )


def warn_of_new_categories(columns: Sequence[Column], categories: Sequence[AnyArray | None], codes: Codes) -> None:
    """Warn once about training rows with categories that the fitted encoder does not have.

    ``codes`` has shape (n_features, n_samples). Columns reported by :func:`warn_of_unseen` are skipped.
    """
    is_unseen, found = codes == missing_code(codes.dtype), []
    for number in np.flatnonzero(is_unseen.any(axis=1)).tolist():
        known, column = categories[number], columns[number]
        if known is None:
            continue
        present = column.present
        n_unseen = int((is_unseen[number] & present).sum())
        is_named = len(known) and n_unseen == present.sum() >= _FEWEST_UNSEEN  # reported by warn_of_unseen
        if n_unseen and not is_named:
            found.append(column.label)
    if found:
        # The text does not contain values, so that it is identical for every batch, and Python shows the warning once.
        warn(
            f"{len(found):,} column(s) contain categories that were not seen when the encoder was fitted, which count "
            f"as missing: {_named(found)}. Start with more rows (a larger first batch), or declare "
            f"the categories (pandas category, polars Enum). check_rows(X) counts such rows.",
            UserWarning,
        )


def warn_of_new_missing_values(encoder: Any, columns: Sequence[Column]) -> None:
    """Warn once about columns of training rows with missing values for which the encoder has no category.

    The encoder was fitted to earlier rows. Columns that had no value in these rows are skipped.
    """
    if encoder.handle_missing != "category":
        return
    found = []
    for column, known, bounds, has_category in zip(
        columns, encoder.categories_, encoder.value_ranges_, encoder.has_missing_category_, strict=True
    ):
        had_values = len(known) > 0 if known is not None else bounds is None or bounds[0] == bounds[0]
        if not has_category and had_values and column.missing is not None:
            found.append(column.label)
    if found:
        warn(
            f"{len(found):,} column(s) contain missing values, but had none when the encoder was fitted. They have no "
            f"category for missing values, so these are marginalized: {_named(found)}. Start with more rows (a "
            f"larger first batch), or set handle_missing='marginalize' in TableEncoder.",
            UserWarning,
        )


def _named(names: list[str]) -> str:
    """Return the first ten column names for messages, and the number of remaining columns."""
    return ", ".join(names[:_N_NAMED]) + (f", and {len(names) - _N_NAMED:,} more" if len(names) > _N_NAMED else "")
