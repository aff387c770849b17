"""Input tables with classes, from files, standard input or named data sets."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

from tanlearn.cli.column_notes import note_dates, note_missing, note_number_strings, note_suspects
from tanlearn.cli.messages import listed, nearest, note
from tanlearn.cli.reading import Reading, check_exists
from tanlearn.sources.datasets import BUNDLED, Dataset, load_dataset
from tanlearn.sources.file_formats import ARRAYS
from tanlearn.sources.file_source import read_classified
from tanlearn.sources.table_files import TableFile

__all__ = [
    "DropOption",
    "JobsOption",
    "check_classes",
    "check_jobs",
    "check_source",
    "dataset_of",
    "feature_columns",
    "is_table",
    "named_columns",
    "read_dataset",
    "read_datasets",
]


def check_jobs(jobs: int) -> int:
    """Raise an error for 0 threads."""
    if jobs == 0:
        raise typer.BadParameter("it must be a positive number of threads, or -1 for all processors.")
    return jobs


JobsOption: TypeAlias = Annotated[int, typer.Option(help="Threads; -1 uses all processors.", callback=check_jobs)]
DropOption: TypeAlias = Annotated[
    list[str], typer.Option("--drop", help="Columns to leave out, comma-separated or repeated.")
]
#: Separator between a table and its column in ``--drop``.
_OF_TABLE = ":"


def is_table(source: str) -> bool:
    """Return True for a table in a file, and False for a named data set or an archive of arrays."""
    return source not in BUNDLED and not source.startswith("openml:") and not _is_archive(source)


def check_source(source: str) -> None:
    """Raise an error if a file does not exist. Other sources are names of data sets."""
    if is_table(source) or _is_archive(source):
        check_exists(source, BUNDLED)


def _is_archive(source: str) -> bool:
    """Return True for an archive of arrays."""
    return Path(source).suffix.lower() == ARRAYS


def read_dataset(source: str, target: str | None, drop: Sequence[str], reading: Reading) -> Dataset:
    """Read a table with its classes into memory, and print notes about it."""
    if not is_table(source):
        if drop:
            raise ValueError(f"--drop needs a data file, but {source} is not a file. Leave out --drop.")
        return load_dataset(source, target=target)
    with reading.open(source) as table:
        return dataset_of(table, target, drop)


def read_datasets(
    sources: Sequence[str], targets: Sequence[str], drop: Sequence[str], reading: Reading
) -> list[Dataset]:
    """Read several data sets into memory. By default, the last column contains the classes.

    ``targets`` contains one name for all tables, or one name per table. Names may be comma-separated. Each dropped
    column must be in at least one table. A column that is written as table:column is dropped only from this table.
    """
    if len(targets) not in (0, 1, len(sources)):
        raise ValueError(
            f"--target must be one column for all data sets or one per data set, got {len(targets)} for "
            f"{len(sources)} data sets."
        )
    own = list(targets) if len(targets) == len(sources) else [next(iter(targets), None)] * len(sources)
    parts = list(map(str.strip, targets[0].split(","))) if len(targets) == 1 else []
    stems = [Path(source).stem for source in sources]
    for source in sources:
        if sources.count(source) > 1:
            raise ValueError(f"each file must be given once, but {source} is given twice. Leave one of them out.")
    if len(sources) == 1 and not is_table(sources[0]):
        return [read_dataset(sources[0], own[0], drop, reading)]
    found: list[Dataset] = []
    dropped: set[str] = set()
    for number, (source, target) in enumerate(zip(sources, own, strict=True)):
        if not is_table(source):
            found.append(load_dataset(source))
            continue
        with reading.open(source) as table:
            if len(parts) == len(sources) > 1 and target not in table.columns:
                target = parts[number]
            columns = {name: _column(name, table) for name in _split(drop, table)}
            dropped.update(name for name, column in columns.items() if column in table.columns)
            names = [column for column in columns.values() if len(sources) == 1 or column in table.columns]
            if target is None:
                target = [name for name in table.columns if name not in names][-1]
                note(
                    f"{table.name}: the classes are read from the last column, {target!r}. To use another column, "
                    f"set --target."
                )
            dataset = dataset_of(table, target, names)
            is_shared = stems.count(stems[number]) > 1  # as for a/train.csv and b/train.csv
            found.append(replace(dataset, name=source) if is_shared else dataset)
    if len(sources) > 1:
        for option in drop:
            for name in {option} & dropped or map(str.strip, option.split(",")):
                if name not in dropped:
                    raise ValueError(
                        f"--drop: no file has a column {name!r}. Correct the name, or leave it out. COLUMN drops "
                        f"the column from all files, FILE:COLUMN from one file."
                    )
    return found


def _column(name: str, table: TableFile) -> str:
    """Return the column that is named in ``--drop``. A prefix with this table and a colon is removed."""
    of_table, colon, column = name.partition(_OF_TABLE)
    is_own = colon and of_table in (table.name, Path(table.name).stem)
    return column if is_own and name not in table.columns else name


def _split(options: Sequence[str], table: TableFile) -> list[str]:
    """Return the columns that are named in options. They may not exist."""
    return [name for text in options for name in ([text] if text in table.columns else map(str.strip, text.split(",")))]


def dataset_of(table: TableFile, target: str | None, drop: Sequence[str]) -> Dataset:
    """Read an open table with its classes into memory, and print notes about it."""
    columns = feature_columns(table, target, drop)
    X, y, n_missing, dates = read_classified(table, columns, str(target))
    check_classes(np.unique(y).tolist(), n_missing, len(y), str(target), table.name)
    note_dates(dates)
    for name in columns:
        note_number_strings(X[name])
    note_suspects(X, y, str(target))
    return Dataset(Path(table.name).stem, X, y, columns)


def feature_columns(table: TableFile, target: str | None, drop: Sequence[str]) -> list[str]:
    """Return the feature columns, which are all columns except the target and the dropped columns."""
    if target is None:
        raise ValueError(
            f"{table.name}: --target must name the column with the classes. The columns are: {listed(table.columns)}."
            f"{_hint(table)}"
        )
    names = named_columns([target, *drop], table)
    left = [name for name in table.columns if name not in names]
    if not left or names.count(target) > 1:
        raise ValueError(f"{table.name}: at least one column besides the target is needed. Drop fewer columns.")
    return left


def named_columns(options: Sequence[str], table: TableFile) -> list[str]:
    """Check that the columns that are named in options exist, and return them."""
    names = _split(options, table)
    for name in names:
        if name not in table.columns:
            raise ValueError(
                f"{table.name}: there is no column {name!r}.{nearest(name, table.columns)} The columns are: "
                f"{listed(table.columns)}.{_hint(table)}"
            )
    return names


def _hint(table: TableFile) -> str:
    """Return a hint about layout options if the first row does not look like a header."""
    is_text = table.is_text and table.layout.has_header
    if is_text and any(re.fullmatch(r"[-+]?\d+(?:[.,]\d+)?", name) for name in table.columns):
        return (
            " If the first row contains values, use --no-header, which names the columns column_1, column_2 and so on."
        )
    if is_text and len(table.columns) == 1:
        return " If that is not a header, describe the layout with --separator, --skip-rows and --comment."
    return ""


def check_classes(classes: Sequence[Any], n_missing: int, n_samples: int, target: str, name: str) -> None:
    """Raise an error if there are fewer than two classes, and print the number of rows without a class."""
    if len(classes) < 2:
        found = f"only one value, {classes[0]!r}," if len(classes) else "no value"
        raise ValueError(
            f"{name}: the target {target!r} must have at least two classes, but has {found} in "
            f"{n_missing + n_samples:,} rows."
        )
    note_missing(n_missing, n_samples, target)
