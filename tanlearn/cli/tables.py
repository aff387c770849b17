"""Tables as the user names them: files, the standard input, or data sets with a name; and what to mind about them."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

from tanlearn._typing import AnyArray
from tanlearn.cli.messages import nearest, note
from tanlearn.data.category_index import LARGEST_EXACT
from tanlearn.data.column_kinds import MAX_NUMERIC_CATEGORIES
from tanlearn.data.column_looks import NUMBER_KINDS, StringLook, look_at_strings
from tanlearn.data.column_notes import is_suspect, kind_in_words
from tanlearn.data.datasets import Dataset, load_dataset
from tanlearn.data.table_files import FORMATS, TableFile, dates_as_days, open_table
from tanlearn.data.text_files import Layout, holds_texts
from tanlearn.data.written_values import DATE_ORDERS

__all__ = [
    "CommentOption",
    "DatesOption",
    "Decimal",
    "DecimalOption",
    "DropOption",
    "EncodingOption",
    "FormatOption",
    "HeaderOption",
    "JobsOption",
    "MissingOption",
    "Reading",
    "SeparatorOption",
    "SkipOption",
    "SymbolOption",
    "ThousandsOption",
    "check_classes",
    "check_jobs",
    "check_separator",
    "dataset_of",
    "feature_columns",
    "is_table",
    "labelled",
    "listed",
    "named_columns",
    "note_dates",
    "note_missing",
    "note_numbers_as_texts",
    "note_suspects",
    "quoted",
    "read_dataset",
    "reading_advice",
]

TableFormat = StrEnum("TableFormat", {name.upper(): name for name in FORMATS})  # type: ignore[misc]


class Decimal(StrEnum):
    """What ``--decimal`` may be."""

    POINT = "."
    COMMA = ","


DateOrder = StrEnum("DateOrder", {name.upper().replace("-", "_"): name for name in DATE_ORDERS})  # type: ignore[misc]


def check_jobs(jobs: int) -> int:
    """Refuse no threads at all.

    Parameters
    ----------
    jobs : int
        What the user asks for.

    Returns
    -------
    int
        The same.

    Raises
    ------
    BadParameter
        If it is 0.
    """
    if jobs == 0:
        raise typer.BadParameter("it must be a number of threads from 1, or -1 for all.")
    return jobs


def check_separator(separator: str | None) -> str | None:
    """Return a separator as the one character that it stands for.

    Parameters
    ----------
    separator : str or None
        What the user has typed.

    Returns
    -------
    str or None

    Raises
    ------
    BadParameter
        If it is no single character, a quote or a line end.
    """
    found = {"tab": "\t", "\\t": "\t"}.get(separator or "", separator)
    if found is not None and (len(found) != 1 or found in '"\r\n'):
        raise typer.BadParameter("it must be one character that stands between fields, or tab.")
    return found


_READING = "Reading tables"
FormatOption: TypeAlias = Annotated[
    TableFormat | None,
    typer.Option(
        "--format", help="Of the table; by default, what its ending or content says.", rich_help_panel=_READING
    ),
]
EncodingOption: TypeAlias = Annotated[
    str, typer.Option("--encoding", help="Of text, as cp1252.", rich_help_panel=_READING)
]
MissingOption: TypeAlias = Annotated[
    list[str],
    typer.Option("--missing", help="Text that means a missing value, as '?'; repeatable.", rich_help_panel=_READING),
]
DecimalOption: TypeAlias = Annotated[
    Decimal, typer.Option("--decimal", help="Of text, what stands before fractions.", rich_help_panel=_READING)
]
SeparatorOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--separator",
        help="Of text, the character between fields, as '|', or tab; by default, the separator of the header.",
        callback=check_separator,
        rich_help_panel=_READING,
    ),
]
CommentOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--comment", help="Skip lines of text that begin with this, as '#'.", rich_help_panel=_READING),
]
SkipOption: TypeAlias = Annotated[
    int, typer.Option("--skip-rows", min=0, help="Lines of text before the header.", rich_help_panel=_READING)
]
HeaderOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The first row of text has no names of columns; they are column_1, column_2 and so on.",
        rich_help_panel=_READING,
    ),
]
ThousandsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--thousands", help="Of text, what stands between thousands: , . ' or a space.", rich_help_panel=_READING
    ),
]
SymbolOption: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--symbol",
        help="Sign or unit around numbers, as '$', '%' or kg; '()' for negative numbers in parentheses; repeatable.",
        rich_help_panel=_READING,
    ),
]
DatesOption: TypeAlias = Annotated[
    DateOrder | None,
    typer.Option("--dates", help="Of text, the order of dates like 16/07/2024.", rich_help_panel=_READING),
]
JobsOption: TypeAlias = Annotated[int, typer.Option(help="Threads; -1 for all.", callback=check_jobs)]
DropOption: TypeAlias = Annotated[
    list[str], typer.Option("--drop", help="Columns to leave out, comma-separated or repeated.")
]
#: Fewer rows tell nothing of what a column is.
_FEWEST_ROWS = 30
_MOST_CLASSES = 50
#: More values than this are not listed as options for missing values.
_MOST_MARKERS = 3


@dataclass(frozen=True)
class Reading:
    """How tables are to be read.

    Parameters
    ----------
    format : TableFormat or None
        What they hold.
    encoding : str
        Of text.
    missing : sequence of str
        What else means that a value is missing.
    decimal : {".", ","}
        What stands before fractions.
    separator : str, optional
        Of text, what stands between fields.
    comment : str, optional
        Lines of text that begin with this are skipped.
    skip_rows : int
        Lines of text before the header.
    no_header : bool
        Whether the first row of text has no column names.
    thousands : str
        What stands between thousands; "" for nothing.
    symbols : sequence of str
        Signs and units around numbers.
    dates : DateOrder or None
        The order of dates that are not in the ISO 8601 format.
    """

    format: Any
    encoding: str
    missing: Sequence[str]
    decimal: str
    separator: str | None = None
    comment: str | None = None
    skip_rows: int = 0
    no_header: bool = False
    thousands: str = ""
    symbols: Sequence[str] = ()
    dates: Any = None

    @contextmanager
    def open(self, source: str) -> Iterator[TableFile]:
        """Yield a table by its path; what comes through a pipe, as ``-`` does, is kept in a file for the time being.

        Parameters
        ----------
        source : str
            A path or ``-``.

        Yields
        ------
        TableFile
        """
        options: dict[str, Any] = {
            "format": self.format,
            "encoding": self.encoding,
            "missing": self.missing,
            "decimal": str(self.decimal),
            "separator": self.separator,
            "layout": Layout(self.skip_rows, self.comment, not self.no_header),
            "thousands": self.thousands,
            "symbols": self.symbols,
            "dates": "" if self.dates is None else str(self.dates),
        }
        if source != "-" and not Path(source).is_fifo():
            yield open_table(source, **options)
            return
        if source == "-" and sys.stdin is None:
            raise ValueError("the standard input is closed. Pipe a table into it, or name a file.")
        with tempfile.TemporaryDirectory(prefix="tanlearn-") as folder:
            path = Path(folder, "table")
            with path.open("wb") as file, ExitStack() as closed:
                pipe = typer.get_binary_stream("stdin") if source == "-" else closed.enter_context(open(source, "rb"))
                shutil.copyfileobj(pipe, file)
            yield open_table(path, name="the standard input" if source == "-" else source, **options)


def is_table(source: str) -> bool:
    """Return whether a source is a table in a file, and no data set with a name or an archive of arrays.

    Parameters
    ----------
    source : str
        What the user has typed.

    Returns
    -------
    bool
    """
    return source != "digits" and not source.startswith("openml:") and Path(source).suffix.lower() != ".npz"


def read_dataset(source: str, target: str | None, drop: Sequence[str], reading: Reading) -> Dataset:
    """Read a table with its classes into memory, and say what is to be minded.

    Parameters
    ----------
    source : str
        A path, ``-``, or a data set with a name.
    target : str or None
        The column with the classes.
    drop : sequence of str
        Columns to leave out; commas separate them, too.
    reading : Reading
        How.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If a column is not there, or the table cannot be read.
    """
    if not is_table(source):
        if drop:
            raise ValueError(f"--drop names columns of a table, but {source} is none. Leave it out.")
        return load_dataset(source, target=target)
    with reading.open(source) as table:
        return dataset_of(table, target, drop)


def dataset_of(table: TableFile, target: str | None, drop: Sequence[str]) -> Dataset:
    """Read a table with its classes into memory, and say what is to be minded.

    Parameters
    ----------
    table : TableFile
        The table.
    target : str or None
        The column with the classes.
    drop : sequence of str
        Columns to leave out; commas separate them, too.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If a column is not there, or the table cannot be read.
    """
    columns = feature_columns(table, target, drop)
    dropped: list[int] = []
    rows = table.read([*columns, str(target)], target=str(target), dropped=dropped)
    frame, y, n_missing = labelled(rows, str(target), table.name)
    n_missing += len(dropped)
    check_classes(np.unique(y).tolist(), n_missing, len(y), str(target), table.name)
    X, dates = dates_as_days(frame)
    note_dates(dates)
    for name in columns:
        note_numbers_as_texts(X[name])
    note_suspects(X, y, str(target))
    return Dataset(Path(table.name).stem, X, y, columns)


def feature_columns(table: TableFile, target: str | None, drop: Sequence[str]) -> list[str]:
    """Return the columns to learn from: all but the target and those to leave out.

    Parameters
    ----------
    table : TableFile
        The table.
    target : str or None
        The column with the classes.
    drop : sequence of str
        Columns to leave out; commas separate them, too.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If a column is not there, or none is left.
    """
    if target is None:
        raise ValueError(
            f"{table.name}: --target must name the column with the classes. The columns are: {listed(table.columns)}."
            f"{_hint(table)}"
        )
    names = named_columns([target, *drop], table)
    left = [name for name in table.columns if name not in names]
    if not left or names.count(target) > 1:
        raise ValueError(f"{table.name}: there must be a target and a column beside it. Drop fewer columns.")
    return left


def named_columns(texts: Sequence[str], table: TableFile) -> list[str]:
    """Return the columns that options name.

    Parameters
    ----------
    texts : sequence of str
        Names of columns, or several with commas between them.
    table : TableFile
        The table.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If one is not there.
    """
    names = [name for text in texts for name in ([text] if text in table.columns else map(str.strip, text.split(",")))]
    for name in names:
        if name not in table.columns:
            raise ValueError(
                f"{table.name}: there is no column {name!r}.{nearest(name, table.columns)} The columns are: "
                f"{listed(table.columns)}.{_hint(table)}"
            )
    return names


def _hint(table: TableFile) -> str:
    """Return what to do if the first row is no header, as far as it shows."""
    is_text = table.format in ("csv", "tsv") and table.layout.has_header
    if is_text and any(re.fullmatch(r"[-+]?\d+(?:[.,]\d+)?", name) for name in table.columns):
        return " If the first row has no names: --no-header calls the columns column_1, column_2 and so on."
    if is_text and len(table.columns) == 1:
        return " If that is no header: --separator, --skip-rows and --comment describe the layout of the table."
    return ""


def labelled(frame: Any, target: str, name: str) -> tuple[Any, AnyArray, int]:
    """Take rows without a class away.

    Parameters
    ----------
    frame : DataFrame
        A table with its target.
    target : str
        The column with the classes.
    name : str
        What messages call the table.

    Returns
    -------
    frame : DataFrame
        The features of the other rows.
    y : ndarray of shape (n_samples,)
        Their classes.
    n_missing : int
        How many rows have none.

    Raises
    ------
    ValueError
        If classes are fractions, infinite or bytes.
    """
    missing = frame[target].isna()
    n_missing = int(missing.sum())
    if n_missing:
        frame = frame[~missing]
    dtype = frame[target].dtype
    y = frame[target].to_numpy(getattr(dtype, "numpy_dtype", None) if dtype.kind in "biuf" else None)
    if y.dtype.kind == "f":
        wrong = y[~np.isfinite(y) | (y != np.floor(y))]
        if len(wrong):
            raise ValueError(
                f"{name}: the target {target!r} holds {wrong[0]}, but classes are texts, integers or truths. Round it, "
                f"or cut it into a few ranges."
            )
        if (np.abs(y) < LARGEST_EXACT).all():  # integers, had there been no gaps
            y = y.astype(np.int64)
    elif y.dtype.kind == "O" and any(isinstance(label, bytes) for label in y):
        raise ValueError(f"{name}: the target {target!r} holds bytes. Decode them to texts.")
    return frame.drop(columns=target), y, n_missing


def check_classes(classes: Sequence[Any], n_missing: int, n_samples: int, target: str, name: str) -> None:
    """Refuse a target of one class, and say how many rows have none.

    Parameters
    ----------
    classes : sequence
        Those that there are.
    n_missing : int
        Rows without.
    n_samples : int
        Rows with.
    target : str
        The column with the classes.
    name : str
        What messages call the table.

    Raises
    ------
    ValueError
        If there are not two classes.
    """
    if len(classes) < 2:
        found = f"one value only, {classes[0]!r}" if len(classes) else "no value"
        raise ValueError(
            f"{name}: the target {target!r} has {found}, in {n_missing + n_samples:,} rows. There must be two classes."
        )
    note_missing(n_missing, n_samples, target)


def note_missing(n_missing: int, n_samples: int, target: str) -> None:
    """Say how many rows have no class.

    Parameters
    ----------
    n_missing : int
        Rows without.
    n_samples : int
        Rows with.
    target : str
        The column with the classes.
    """
    if n_missing:
        note(f"{n_missing:,} of {n_missing + n_samples:,} rows have no {target!r} and are left out.")


def note_dates(names: Sequence[str]) -> None:
    """Say which columns were taken for dates.

    Parameters
    ----------
    names : sequence of str
        The columns.
    """
    if names:
        note(f"dates count as days since 1970: {listed(names)}.")


def note_numbers_as_texts(column: Any) -> None:
    """Say why a column of numbers is one of texts.

    Parameters
    ----------
    column : Series
        A column of any kind.
    """
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
        note(f"{column.name!r} holds digits with leading zeros, or numbers stored as texts: it counts as text.")
    elif with_points.notna().sum() > len(texts) - len(others) and with_points.notna().mean() > 0.5:
        note(f"{column.name!r} counts as text, for commas as in {others[0]!r}. --decimal , reads them as fractions.")
    elif len(others) < len(texts) / 2:
        is_few = len(texts) - len(others) <= MAX_NUMERIC_CATEGORIES
        if is_few and any(character.isdigit() for text in others for character in text):
            return  # names of categories, as in 2, 3, 4, 5more
        examples = listed(list(map(repr, others)), 3, are_quoted=True)
        note(f"{column.name!r} counts as text: beside numbers it holds {examples}. {_missing_advice(others)}")


def _look_at(texts: Any) -> StringLook:
    """Return the kind of values in a column of strings, of which none is missing."""
    number = texts.value_counts(sort=False)
    return look_at_strings(list(number.index), number.to_numpy())


def reading_advice(look: StringLook) -> str:
    """Return the options that read numbers or dates of a notation, or an empty string for other kinds.

    Parameters
    ----------
    look : StringLook
        What a column seems to hold.

    Returns
    -------
    str
    """
    if look.has_several_units:
        return "Convert them to one unit first."
    if look.kind == "time":
        return "Write them as hours, as 8.5, to use them as numbers."
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
    """Return the options that declare values missing, if there are few."""
    if len(others) > _MOST_MARKERS:
        return f"Correct these {len(others):,} distinct values, or declare each of them missing with --missing."
    options = " ".join(f"--missing {text!r}" for text in others)
    return f"{options} would make {'that a missing value' if len(others) == 1 else 'them missing values'}."


def note_suspects(X: Any, y: AnyArray, target: str) -> None:
    """Say which columns look like names of rows, and whether the target looks like a quantity.

    Parameters
    ----------
    X : DataFrame
        The features.
    y : ndarray of shape (n_samples,)
        The classes.
    target : str
        Their column.
    """
    n_samples = len(y)
    if n_samples < _FEWEST_ROWS:
        return
    n_classes = len(set(y.tolist()))
    if n_classes > _MOST_CLASSES and n_classes > n_samples / 10:
        note(f"{target!r} has {n_classes:,} different values in {n_samples:,} rows. Is it a quantity, and no class?")
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
            note(f"{name!r} differs from row to row, as a number or name of the row does: leave it out with --drop.")


def listed(names: Sequence[str], most: int = 30, *, are_quoted: bool = False) -> str:
    """Return some names, and how many more there are.

    Parameters
    ----------
    names : sequence of str
        The names.
    most : int
        How many are told.
    are_quoted : bool, default=False
        Whether they stand in quotes already, where they need any.

    Returns
    -------
    str
    """
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name if are_quoted else quoted(name) for name in names[:most]) + rest


def quoted(name: str) -> str:
    """Return a name as it stands in a list: in quotes if it holds a comma, and would look like two.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str
    """
    return repr(name) if "," in name else name
