"""Summaries of tables in files, with the names of their columns."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.data.summaries import TableSummary
from tanlearn.files.archive import fields, pack, read_archive
from tanlearn.files.regular_files import SUMMARY, write_file

__all__ = ["load_summary", "save_summary"]


def save_summary(summary: TableSummary, names: list[str], path: str | os.PathLike[str]) -> None:
    """Write a summary to a file: whole, or not at all, and without pickle."""
    content = np.frombuffer(summary.to_bytes(), np.uint8)
    write_file(path, pack({"names": names, "summary": "0.npy"}, {"0.npy": content}, SUMMARY), SUMMARY)


def load_summary(path: str | os.PathLike[str]) -> tuple[TableSummary, list[str]]:
    """Read a summary that :func:`save_summary` wrote; nothing in the file is executed."""
    return read_archive(path, _restore, SUMMARY)


def _restore(description: Any, arrays: dict[str, AnyArray]) -> tuple[TableSummary, list[str]]:
    """Return what a file holds."""
    names, member = fields(description, "names", "summary")
    if list(arrays) != [member] or arrays[member].dtype != np.uint8 or arrays[member].ndim != 1:
        raise ValueError("there must be one member, of bytes.")
    summary = TableSummary.from_bytes(arrays[member].tobytes())
    if type(names) is not list or not set(map(type, names)) <= {str} or len(names) != len(summary.places):
        raise ValueError(f"names must be those of {len(summary.places)} columns.")
    return summary, names
