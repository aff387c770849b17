"""Options for the layout of tables in text files, declared once for all commands that read tables."""

import functools
import inspect
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from tanlearn.cli.messages import nearest, note
from tanlearn.sources.file_formats import FORMATS
from tanlearn.sources.notation import DATE_ORDERS, Notation
from tanlearn.sources.table_files import TableFile, open_table
from tanlearn.sources.text_files import Layout

__all__ = ["Reading", "check_exists", "with_reading_options"]

TableFormat = StrEnum("TableFormat", {name.upper(): name for name in FORMATS})  # type: ignore[misc]
DateOrder = StrEnum("DateOrder", {name.upper().replace("-", "_"): name for name in DATE_ORDERS})  # type: ignore[misc]


def check_exists(path: str, names: Sequence[str] = ()) -> None:
    """Raise an error if a file does not exist, before the packages that read it are imported.

    The message suggests the most similar name of a file in the same folder, or of a data set in ``names``.
    """
    if path != "-" and not Path(path).exists():
        folder = Path(path).parent
        files = [file.name for file in folder.iterdir()] if folder.is_dir() and os.access(folder, os.R_OK) else []
        raise FileNotFoundError(f"there is no file {path}.{nearest(Path(path).name, [*sorted(files), *names])}")


class Decimal(StrEnum):
    """Values of ``--decimal``."""

    POINT = "."
    COMMA = ","


def _as_separator(separator: str | None) -> str | None:
    """Return the separator character. The word "tab" represents the tab character."""
    found = {"tab": "\t", "\\t": "\t"}.get(separator or "", separator)
    if found is not None and (len(found) != 1 or found in '"\r\n'):
        raise typer.BadParameter("it must be one character, or tab.")
    return found


def _option(name: str, help: str, **more: Any) -> Any:
    """Return the declaration of an option of this group."""
    return typer.Option(name, help=help, rich_help_panel="Reading tables", **more)


@dataclass(frozen=True)
class Reading:
    """Options for reading tables. Each field is an option of all commands that read tables."""

    format: Annotated[
        TableFormat | None, _option("--format", "Format of the table; by default, from its extension or content.")
    ] = None
    encoding: Annotated[str, _option("--encoding", "Encoding of text files, such as cp1252.")] = "utf-8-sig"
    missing: Annotated[list[str], _option("--missing", "Text of a missing value, such as '?'; repeatable.")] = field(
        default_factory=list
    )
    decimal: Annotated[Decimal, _option("--decimal", "Decimal mark of numbers in text.")] = Decimal.POINT
    separator: Annotated[
        str | None,
        _option(
            "--separator",
            "Separator of fields in text files, such as '|', or tab; by default, from the header.",
            callback=_as_separator,
        ),
    ] = None
    comment: Annotated[str | None, _option("--comment", "Skip lines that begin with this text, such as '#'.")] = None
    skip_rows: Annotated[int, _option("--skip-rows", "Number of lines before the header of text files.", min=0)] = 0
    no_header: Annotated[
        bool,
        _option("--no-header", "Read text files without a header row. Columns are named column_1, column_2 and so on."),
    ] = False
    thousands: Annotated[str, _option("--thousands", "Thousands separator of numbers in text: , . ' or a space.")] = ""
    symbol: Annotated[
        list[str],
        _option(
            "--symbol",
            "Sign or unit of numbers, such as '$', '%' or kg; '()' for negative numbers in parentheses; repeatable.",
        ),
    ] = field(default_factory=list)
    dates: Annotated[
        DateOrder | None, _option("--dates", "Order of day, month and year in text, such as 16/07/2024.")
    ] = None

    @contextmanager
    def open(self, source: str) -> Iterator[TableFile]:
        """Open a table by its path. Input from a pipe, such as ``-``, is first copied to a temporary file."""
        options: dict[str, Any] = {
            "format": self.format,
            "encoding": self.encoding,
            "separator": self.separator,
            "layout": Layout(self.skip_rows, self.comment, not self.no_header),
            **self.notation._asdict(),
        }
        if source != "-" and not Path(source).is_fifo():
            yield open_table(source, **options)
            return
        if source == "-" and sys.stdin is None:
            raise ValueError("standard input is closed. Pipe data into it, or name a file.")
        with tempfile.TemporaryDirectory(prefix="tanlearn-") as folder:
            path = Path(folder, "table")
            with path.open("wb") as file, ExitStack() as closed:
                pipe = typer.get_binary_stream("stdin") if source == "-" else closed.enter_context(open(source, "rb"))
                shutil.copyfileobj(pipe, file)
            yield open_table(path, name="standard input" if source == "-" else source, **options)

    @property
    def notation(self) -> Notation:
        """Notation of values that the options set."""
        dates = "" if self.dates is None else str(self.dates)
        return Notation(str(self.decimal), self.thousands, tuple(self.symbol), dates, tuple(self.missing))

    def as_fitted(self, notation: Notation | None) -> "Reading":
        """Return the options with the notation of the training table, unless the user has set a notation."""
        if notation is None or self.notation != Notation():
            return self
        note(f"read with the options of fit: {_in_words(notation)}.")
        return replace(
            self,
            decimal=Decimal(notation.decimal),
            thousands=notation.thousands,
            symbol=list(notation.symbols),
            dates=DateOrder(notation.dates) if notation.dates else None,
            missing=list(notation.missing),
        )


def _in_words(notation: Notation) -> str:
    """Return the command-line options of a notation."""
    usual = Notation()
    words = [
        f"--{name} {shlex.quote(value)}"
        for name, value in (("decimal", notation.decimal), ("thousands", notation.thousands), ("dates", notation.dates))
        if value != getattr(usual, name)
    ]
    words += [f"--symbol {shlex.quote(sign)}" for sign in notation.symbols]
    return " ".join([*words, *(f"--missing {shlex.quote(text)}" for text in notation.missing)])


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``reading`` of a command with the options of :class:`Reading`."""
    types = get_type_hints(Reading, include_extras=True)
    options = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=[] if one.default_factory is list else one.default,
            annotation=types[one.name],
        )
        for one in fields(Reading)
    ]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        reading = Reading(**{option.name: given.pop(option.name) for option in options})
        command(reading=reading, **given)

    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "reading"
    ]
    wrapper.__signature__ = inspect.Signature([*own, *options], return_annotation=None)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *options]}
    return wrapper
