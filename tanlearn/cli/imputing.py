"""``tanlearn impute``: copy a table and impute its missing values."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from tanlearn.cli.joint_models import TrainOption, check_train, fit_rows
from tanlearn.cli.messages import listed, note, plain_errors
from tanlearn.cli.outputs import TableOutputOption, output_format, write_table
from tanlearn.cli.reading import Reading, check_exists, with_reading_options
from tanlearn.cli.tables import JobsOption
from tanlearn.sources.file_formats import OUTPUTS

__all__ = ["impute"]


#: Formats of dates in text. The first one is ISO 8601.
_DATE_FORMATS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%m/%d/%Y", "%m-%d-%Y"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y"),
)
#: Maximum number of dates that are compared with each format.
_MOST_DATES = 1000


class Strategy(StrEnum):
    """Values of ``--strategy``."""

    MEAN = "mean"
    MODE = "mode"
    JOINT = "joint"
    DRAW = "draw"


@with_reading_options
def impute(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help=f"Table to complete: {', '.join(OUTPUTS)}, or - for a pipe.")
    ],
    train: TrainOption = None,
    output: TableOutputOption = "-",
    strategy: Annotated[
        Strategy,
        typer.Option(
            help="mean: the expected value of a number; mode: its most probable interval; joint: the most probable "
            "completion of the row; draw: a random completion of the row."
        ),
    ] = Strategy.MEAN,
    drop: Annotated[
        list[str],
        typer.Option("--drop", help="Columns to copy unchanged, such as an id; comma-separated or repeated."),
    ] = [],  # noqa: B006 - Typer makes a new list
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the model and of draws.")] = 0,
    jobs: JobsOption = -1,
    *,
    reading: Reading,
) -> None:
    """Impute missing values from the other values of each row. No classes are needed.

    Observed values are copied unchanged. A missing value is imputed from its distribution given all observed values of
    its row, in a network of all columns. Do not impute for classifiers of this library: they accept missing values.
    """
    with plain_errors():
        check_exists(table)
        check_train(train, table)
        format_name = output_format(output, table, *([] if train is None else [train]))
        from tanlearn import TANImputer

        imputer = TANImputer(strategy=str(strategy), random_state=seed, n_jobs=jobs)
        with reading.open(table) as file:
            X, dates = fit_rows(imputer, file, train, drop, [], reading)
            copied = list(file.columns) if file.is_text else []
            copy = file.read(string_columns=copied)
            filled = imputer.transform(X)
            decimal = str(reading.decimal) if file.is_text else None
            for name in X.columns:
                if X[name].isna().any():
                    copy = copy.assign(**{name: _completed(copy[name], X[name], filled[name], name in dates, decimal)})
            write_table([copy], output, format_name, has_index=file.has_index, copied=copied)
        is_missing = X.isna()
        n_left = copy[list(X.columns)].isna()
        if n_left.any(axis=None):
            empty = n_left.columns[n_left.any()].tolist()
            note(f"columns without any value in training stay missing: {listed(empty)}.")
        n_imputed = int(is_missing.sum().sum() - n_left.sum().sum())
        n_rows = int((is_missing & ~n_left.to_numpy()).any(axis=1).sum())
        place = "" if output == "-" else f": {output}"
        values = "1 value was" if n_imputed == 1 else f"{n_imputed:,} values were"
        note(f"{values} imputed, in {n_rows:,} of {len(copy):,} rows{place}.")


def _completed(copy: Any, values: Any, filled: Any, is_date: bool, decimal: str | None) -> Any:
    """Return a copied column with imputed values. ``decimal`` is the decimal mark of numbers in text, or None.

    ``values`` and ``filled`` are the column before and after the imputation, with dates as numbers of days.
    """
    import pandas as pd

    missing = values.isna().to_numpy()
    if is_date:
        days = filled[missing].astype(float).round()
        if copy.dtype.kind == "m":
            return copy.where(~missing, pd.to_timedelta(filled.astype(float).round(), unit="D"))
        moments = pd.to_datetime(days, unit="D")
        if copy.dtype.kind == "M":
            zone = getattr(copy.dtype, "tz", None)
            result = copy.copy()
            result[missing] = moments if zone is None else moments.dt.tz_localize("UTC").dt.tz_convert(zone)
            return result
        if decimal is None:
            found = moments.dt.date.tolist()
        else:
            found = moments.dt.strftime(_date_format(copy[~missing], values[~missing])).tolist()
    elif decimal is None:
        return filled
    else:
        texts = dict(zip(values[~missing].tolist(), copy[~missing].tolist(), strict=True))
        found = [texts.get(value, _as_text(value, decimal)) for value in filled[missing].tolist()]
    result = copy.astype(object)
    result[missing] = pd.Series(found, index=result.index[missing], dtype=object)
    return result


def _date_format(strings: Any, days: Any) -> str:
    """Return the date format of most strings, or ISO 8601 if no format matches half of them.

    ``days`` are the dates of the strings, as days since 1970. Times of day are not imputed.
    """
    import pandas as pd

    if not len(strings):
        return _DATE_FORMATS[0]
    some = strings.head(_MOST_DATES).astype(str).str.strip()
    moments = pd.to_datetime(days.head(_MOST_DATES).astype(float), unit="D")
    shares = {one: (moments.dt.strftime(one).to_numpy() == some.to_numpy()).mean() for one in _DATE_FORMATS}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= 0.5 else _DATE_FORMATS[0]


def _as_text(value: Any, decimal: str) -> str | None:
    """Format a value as text, with at most nine digits for a number. A missing value is None."""
    if value is None or value != value:
        return None
    if isinstance(value, str | bool):
        return str(value)
    return f"{float(value):.9g}".replace(".", decimal)
