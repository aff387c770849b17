"""Rows without classes, for commands that model the joint distribution of all columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import typer

from tanlearn.cli.column_notes import note_dates, note_number_strings
from tanlearn.cli.models import ModelColumns
from tanlearn.cli.reading import Reading, check_exists
from tanlearn.cli.tables import named_columns
from tanlearn.sources.file_source import read_features
from tanlearn.sources.table_files import TableFile

__all__ = ["TrainOption", "check_train", "fit_rows"]

TrainOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--train", metavar="TRAIN", help="Table that the model is fitted to; by default, the rows of TABLE themselves."
    ),
]


def fit_rows(
    estimator: Any,
    table: TableFile,
    train: str | None,
    drop: Sequence[str],
    used: Sequence[str],
    reading: Reading,
) -> tuple[Any, list[str]]:
    """Fit an estimator without classes. Return the rows of a table, and the names of the columns that contain dates.

    The estimator is fitted to the rows of the file ``train`` or, without such a file, to the rows of the table.
    ``drop`` names columns that are left out, and ``used`` names other columns of the table for which no note is
    printed.
    """
    if train is None:
        X, dates = _features(table, drop)
        estimator.fit(X)
        return X, dates
    with reading.open(train) as other:
        of_other = [name for name in drop if name in other.columns or name not in table.columns]
        of_training, dates = _features(other, of_other)
        estimator.fit(of_training)
    columns = ModelColumns(train, list(of_training.columns), estimator.encoder_)
    dropped = named_columns([name for name in drop if name in table.columns], table)
    names = columns.columns_of(table, [*used, *dropped])
    rows = table.read(names, string_columns=columns.string_columns if table.is_text else [])
    return columns.prepare(rows, table.name), dates


def check_train(train: str | None, table: str) -> None:
    """Raise an error if the table of training rows does not exist, or if both tables are standard input."""
    if train is not None:
        if train == table == "-":
            raise ValueError("only one of TABLE and --train can be standard input. Name a file for the other.")
        check_exists(train)


def _features(table: TableFile, drop: Sequence[str]) -> tuple[Any, list[str]]:
    """Read the columns that are not dropped, and print notes about them. Also return the names of date columns."""
    dropped = named_columns(drop, table)
    names = [name for name in table.columns if name not in dropped]
    if not names:
        raise ValueError(f"{table.name}: at least one column is needed, but all are dropped. Drop fewer columns.")
    X, dates = read_features(table, names)
    note_dates(dates)
    for name in names:
        note_number_strings(X[name])
    return X, dates
