"""Formats of table files, by extension or by content."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "ARRAYS",
    "FORMATS",
    "OUTPUTS",
    "SPREADSHEETS",
    "compression_error",
    "format_of",
    "joined_by_or",
    "named_format",
    "opener",
]


class FileFormat(NamedTuple):
    """Format of a table file."""

    endings: tuple[str, ...]  # extensions of the file name; files are written with the first
    separator: str | None = None  # usual separator of fields of delimited text; None for other files


#: Formats of tables by name.
FORMATS = {
    "csv": FileFormat((".csv", ".txt"), ","),
    "tsv": FileFormat((".tsv", ".tab"), "\t"),
    "parquet": FileFormat((".parquet", ".pq")),
    "feather": FileFormat((".feather", ".arrow")),
}
#: Formats by the extension of written files.
OUTPUTS = {known.endings[0]: name for name, known in FORMATS.items()}
#: Archive of NumPy arrays.
ARRAYS = ".npz"
#: Files that cannot be read.
SPREADSHEETS = (".xls", ".xlsx", ".ods")
#: Modules that open compressed text, by the last extension of the file.
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
#: First bytes of compressed files, by their usual extension.
_FIRST_BYTES = {
    ".gz": rb"\x1f\x8b",
    ".bz2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",
    ".xz": rb"\xfd7zXZ\0",
    ".zip": rb"PK\x03\x04",
    ".zst": rb"\x28\xb5\x2f\xfd",
}


def named_format(path: Path) -> str | None:
    """Return the format of a file by its extension (before .gz, .bz2 or .xz), or None if it is unknown."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return next((name for name, known in FORMATS.items() if endings and endings[-1] in known.endings), None)


def format_of(path: Path) -> str:
    """Detect the format of a file by its extension or its first bytes."""
    named = named_format(path)
    if named is not None:
        return named
    with path.open("rb") as file:
        start = file.read(6)
    return "parquet" if start[:4] == b"PAR1" else "feather" if start in (b"ARROW1", b"FEA1") else "csv"


def opener(path: Path) -> Any:
    """Return the function that opens a text file, decompressing it by its extension."""
    module = _COMPRESSIONS.get(path.suffix.lower())
    return open if module is None else importlib.import_module(module).open


def compression_error(path: Path) -> str | None:
    """Return why a text file cannot be decompressed by its extension, with the remedy, or None if it can."""
    ending = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(10)
    found = next((known for known, first in _FIRST_BYTES.items() if re.match(first, start)), None)
    if ending in _COMPRESSIONS and found != ending:
        return f"its name ends in {ending}, but its content is in another format. Rename it."
    if found in _COMPRESSIONS and found != ending:
        return f"it is compressed. Decompress it, or add {found} to its name."
    if found is not None and found not in _COMPRESSIONS:
        return f"it is compressed as {found}, which is not supported. Extract the table from it."
    return None


def joined_by_or(words: Sequence[str]) -> str:
    """Return words separated by commas, with "or" before the last."""
    return f"{', '.join(words[:-1])} or {words[-1]}"
