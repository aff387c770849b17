"""Storage of table summaries in files, with the names of the columns."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.encoding.stored_values import fields
from tanlearn.encoding.summaries import TableSummary
from tanlearn.files.archive import pack, read_archive
from tanlearn.files.regular_files import SUMMARY, write_file

__all__ = ["load_summary", "save_summary"]


def save_summary(summary: TableSummary, names: list[str], path: str | os.PathLike[str]) -> None:
    """Write a summary of batches to a file, atomically and without pickle. An existing file is replaced.

    Raises TypeError if a column has declared categories that are not strings, bytes or numbers. After an OSError, an
    existing file is unchanged.
    """
    content = np.frombuffer(summary.to_bytes(), np.uint8)
    write_file(path, pack({"names": names, "summary": "0.npy"}, {"0.npy": content}, SUMMARY), SUMMARY)


def load_summary(path: str | os.PathLike[str]) -> tuple[TableSummary, list[str]]:
    """Read a summary and its column names from a file written by :func:`save_summary`, without executing any code.

    Raises ValueError if the file is not a summary, is damaged or altered, or was written by a newer version.
    """
    return read_archive(path, _restore, SUMMARY)


def _restore(description: Any, arrays: dict[str, AnyArray]) -> tuple[TableSummary, list[str]]:
    """Return the summary and the column names from the content of a file."""
    names, member = fields(description, "names", "summary")
    if list(arrays) != [member] or arrays[member].dtype != np.uint8 or arrays[member].ndim != 1:
        raise ValueError("the file must contain a single array of bytes.")
    summary = TableSummary.from_bytes(arrays[member].tobytes())
    if type(names) is not list or not set(map(type, names)) <= {str} or len(names) != len(summary.labels):
        raise ValueError(f"names must be a list of {len(summary.labels)} column names.")
    return summary, names
