"""Normalization of delimited text files before pandas parses them.

Blank lines are ignored. Spaces around fields are ignored, too, in column names, in missing values and when types of
columns are determined. A row with more or fewer fields than the header, and bytes that are not valid in the encoding,
raise an error with the line number.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import re
import zlib
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tanlearn.sources.file_formats import opener
from tanlearn.sources.string_formats import contains_strings

__all__ = [
    "DAMAGE_ERRORS",
    "MISSING",
    "CheckedRows",
    "Layout",
    "damage",
    "find_separator",
    "open_text",
    "undecodable",
    "without_prefix",
]

#: Exceptions raised for corrupt files, besides ValueError and OSError (gzip and bzip2).
DAMAGE_ERRORS = (csv.Error, EOFError, zlib.error, lzma.LZMAError)
#: Prefix of digits with leading zeros, so that pandas reads them as strings. No other field begins with it, because
#: ``str.strip`` removes it as a space.
_CODE_PREFIX = "\x1f"


# Characters of lines that are checked at once: a block with one row that must be rewritten is read row by row.
_BLOCK_SIZE = 2**16
_LEADING_ZERO = re.compile(r"\n0\d")
_ASCII_SPACES = frozenset(" \t\v\f\x1c\x1d\x1e\x1f")  # removed by str.strip, except ends of lines
_SPACE = re.compile(r"[^\S\r\n]")
#: Fields that pandas reads as a missing value, according to its documentation.
MISSING = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
#: First line that spreadsheet programs use to declare the separator.
_NAMED_SEPARATOR = re.compile(r'"?sep=([^\r\n"])"?\s*', re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """Layout of a text file: skipped lines, comments and header."""

    skip_rows: int = 0  # number of lines to skip before the header
    comment: str | None = None  # prefix of lines to skip
    # Whether the first row contains the column names; otherwise they are column_1, column_2 and so on
    has_header: bool = True

    def is_skipped(self, number: int, line: str) -> bool:
        """Return whether a line is skipped; ``number`` counts from 1."""
        if number <= self.skip_rows or (number == 1 and _NAMED_SEPARATOR.fullmatch(line)):
            return True
        return bool(self.comment) and line.lstrip().startswith(str(self.comment))


class CheckedRows(io.TextIOBase):
    """Text file object for pandas that checks and normalizes rows.

    It contains the rows after the header, each with as many fields as the header, and without spaces around fields.
    """

    def __init__(
        self,
        file: Any,
        separator: str,
        missing: Collection[str] = (),
        layout: Layout | None = None,
        required: int | None = None,
    ) -> None:
        self.marked: set[int] = set()
        self.dropped: list[int] = []
        # _missing are the fields that the user declares missing.
        self._separator, self._missing = separator, missing
        self._layout = Layout() if layout is None else layout
        # Rows without a value in the column number _required are left out and listed in dropped.
        self._required, self._missing_fields = required, MISSING.union(missing)
        self._file, self._ahead = file, deque[str]()  # lines of a block that are read one by one
        self._line = self._first = self._n_rows = 0
        self._may_hold_codes = re.compile(rf"{re.escape(separator)}0\d").search
        self._lines: list[str] = []
        reader = csv.reader(self._keep(), delimiter=separator, skipinitialspace=True)
        self._records = self._check(reader)
        first = next(self._records, ("", []))
        self.header = [field.strip() for field in first[1]]
        if not self._layout.has_header and first[1]:
            self.header = [f"column_{j}" for j in range(1, len(first[1]) + 1)]
            self._records = chain([first], self._records)
        # Whether blocks of lines may be checked at once, which takes a third of the time of row by row.
        self._has_blocks = (
            len(self.header) > 1 and self._layout.has_header and not self._layout.comment and separator != " "
        )

    def _keep(self) -> Iterator[str]:
        """Yield the lines, and remember the lines of the current row."""
        while line := self._ahead.popleft() if self._ahead else self._file.readline():
            self._line = number = self._line + 1
            # Only between two rows: a comment prefix inside quotes is data.
            if not self._lines and self._layout.is_skipped(number, line):
                continue
            if not self._lines:
                self._first = number
            if "\0" in line:
                raise ValueError(
                    f"line {number} contains a NUL character, which suggests another encoding, such as utf-16."
                )
            self._lines.append(line)
            yield line

    def _check(self, reader: Any) -> Iterator[tuple[str, list[str]]]:
        """Yield the text and the fields of every row."""
        n_fields, n_blank = 0, 0
        try:
            for record in reader:
                text = "".join(self._lines)
                self._lines.clear()
                if len(record) > 1 or not text.isspace():
                    n_fields = n_fields or len(record)
                    if len(record) != n_fields:
                        raise _ragged(len(record), n_fields, self._first, self._line)
                    while n_blank:
                        n_blank -= 1
                        yield '""\n', [""]
                    yield text, record
                elif n_fields == 1:  # a missing value, unless the file ends here
                    n_blank += 1
        except csv.Error as error:
            raise ValueError(f"line {self._first}: {error}. Is a quote left open there?") from error

    def readable(self) -> bool:
        """Return True, which pandas requires."""
        return True

    def read(self, size: int | None = -1) -> str:
        """Return whole rows with at least ``size`` characters; all remaining rows if ``size`` is None or negative."""
        rows, n_characters = [], 0
        while size is None or size < 0 or n_characters < size:
            block = self._plain_block()
            if block is not None:
                rows.append(block)
                n_characters += len(block)
                continue
            text, record = next(self._records, ("", None))
            if record is None:
                break
            # Most rows are passed on unchanged: rewriting all of them takes three times as long.
            fields = list(map(str.strip, record))
            self._n_rows += 1
            if self._required is not None and fields[self._required] in self._missing_fields:
                self.dropped.append(self._n_rows - 1)
                continue
            is_new = fields != record
            if is_new or text[0] == "0" or " 0" in text or '"0' in text or self._may_hold_codes(text):
                is_new |= self._mark_codes(fields)
            if is_new:
                text = self._written(fields)
            rows.append(text)
            n_characters += len(text)
        return "".join(rows)

    def _plain_block(self) -> str | None:
        """Return the next lines if all of them are unchanged rows, or None if a line must be read separately."""
        if not self._has_blocks or self._ahead:
            return None
        lines = self._file.readlines(_BLOCK_SIZE)
        text = "".join(lines)
        if not lines or not self._is_plain(text, lines):
            self._ahead.extend(lines)
            return None
        self._line += len(lines)
        self._n_rows += len(lines)
        return text

    def _is_plain(self, text: str, lines: list[str]) -> bool:
        """Return whether lines are rows without quotes, outer spaces, leading zeros and missing required values."""
        separator, required = self._separator, self._required
        if '"' in text or "\0" in text or text.count("\r") != text.count("\r\n"):
            return False
        if {line.count(separator) for line in lines} != {len(self.header) - 1} or _has_outer_space(text, separator):
            return False
        if self._may_hold_codes(text) or _LEADING_ZERO.search(text) or _LEADING_ZERO.match("\n" + text[:2]):
            return False
        if required is None:
            return True
        if required == len(self.header) - 1:
            values = {line.rsplit(separator, 1)[1] for line in lines}
        else:
            values = {line.split(separator, required + 1)[required] for line in lines}
        return self._missing_fields.isdisjoint(value.rstrip("\r\n") for value in values)

    def _mark_codes(self, fields: list[str]) -> bool:
        """Prefix digits with leading zeros, in place, and return whether there are any."""
        is_any = False
        for j, field in enumerate(fields):
            if field.startswith("0") and field[1:].isdecimal() and field not in self._missing:
                fields[j] = _CODE_PREFIX + field
                self.marked.add(j)
                is_any = True
        return is_any

    def _written(self, fields: list[str]) -> str:
        """Return a row as delimited text."""
        text = io.StringIO()
        csv.writer(text, delimiter=self._separator, lineterminator="\n").writerow(fields)
        return text.getvalue()


def _has_outer_space(text: str, separator: str) -> bool:
    """Return whether a field begins or ends with white space, in complete lines without quotes."""
    spaces = _ASCII_SPACES if text.isascii() else set(_SPACE.findall(text))
    for space in spaces:
        if space != separator and space in text:
            ends = space + separator, separator + space, f"\n{space}", f"{space}\n", f"{space}\r"
            if text[0] == space or text[-1] == space or any(end in text for end in ends):
                return True
    return False


def without_prefix(series: Any) -> Any:
    """Remove the prefix of digits with leading zeros from a string column."""
    return series.str.removeprefix(_CODE_PREFIX) if contains_strings(series) else series


def _ragged(n_found: int, n_fields: int, first: int, last: int) -> ValueError:
    """Return the error for a row that is longer or shorter than the header."""
    if first == last:
        position, hint = f"line {first}", ""
    else:
        position, hint = f"lines {first} to {last}", ", or a quote left open in it"
    return ValueError(
        f"{position}: the row has {n_found} field(s), but the header has {n_fields}. Correct the row{hint}. If lines "
        f"before the header or comments are not part of the table, skip them: --skip-rows N, --comment CHARACTER."
        if n_fields == 1
        else f"{position}: the row has {n_found} field(s), but the header has {n_fields}. Correct the row{hint}."
    )


def find_separator(file: Any, layout: Layout | None = None) -> str:
    """Detect the separator of the header and rewind the file; a first line such as ``sep=;`` declares it."""
    layout = Layout() if layout is None else layout
    header = ""
    for number, line in enumerate(file, start=1):
        named = _NAMED_SEPARATOR.fullmatch(line) if number == 1 else None
        if named:
            file.seek(0)
            return named[1]
        if not line.isspace() and not layout.is_skipped(number, line):
            header = line
            break
    file.seek(0)
    return next((separator for separator in ",;\t" if separator in header), ",")


def open_text(path: Path, encoding: str) -> Any:
    """Open a text file, decompressing it by its extension."""
    return opener(path)(path, "rt", encoding=encoding, newline="")


def damage(error: Exception) -> str:
    """Return the reason in an error for a corrupt file; errors of decompressors do not contain a remedy."""
    if isinstance(error, EOFError | zlib.error | lzma.LZMAError | gzip.BadGzipFile):
        return f"its compressed content is damaged ({str(error).removesuffix('.')}). Copy or compress the file again."
    return str(error)


def undecodable(path: Path, name: str, encoding: str, error: UnicodeDecodeError) -> ValueError:
    """Return the error for bytes that are invalid in the encoding, with the line number, which decoders omit."""
    number, failed = 0, False
    try:
        with opener(path)(path, "rb") as file:
            while not failed and (line := file.readline()):
                number += 1
                try:
                    line.decode(encoding)
                except UnicodeDecodeError as found:
                    error, failed = found, True
    except (OSError, *DAMAGE_ERRORS) as other:
        return ValueError(f"{name} cannot be read: {damage(other)}")
    return ValueError(
        f"{name} cannot be read: line {number} is not valid {encoding.removesuffix('-sig')} text (byte "
        f"{error.object[error.start]:#x}). Name its encoding, such as cp1252 or utf-16, or save it as UTF-8."
    )
