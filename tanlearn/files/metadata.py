"""Metadata of a model file: the date, the size of the training data, versions, and values that the user adds."""

from __future__ import annotations

import platform
import re
from datetime import UTC, datetime
from typing import Any

import numba
import numpy as np
import sklearn

from tanlearn._version import __version__
from tanlearn.encoding.stored_values import fields

__all__ = ["check_metadata", "new_metadata"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")


def new_metadata(model: Any, user: Any) -> dict[str, Any]:
    """Return the metadata of a fitted classifier as of now. ``user`` is a dictionary of additional values."""
    if type(user) is not dict or not all(type(key) is str for key in user):
        raise TypeError(
            f"metadata must be a dict with strings as keys, got {user!r}. Pass, for example, {{'author': ...}}."
        )
    return {
        "saved": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "rows": _number_of_rows(model),
        "columns": int(model.n_features_in_),
        "versions": {
            "tanlearn": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "user": user,
    }


def check_metadata(metadata: Any) -> dict[str, Any]:
    """Return the metadata of a file. Raise ValueError if a value has the wrong type."""
    saved, rows, columns, versions, user = fields(metadata, "saved", "rows", "columns", "versions", "user")
    if type(saved) is not str or not _DATE.fullmatch(saved):
        raise ValueError(f"the date in the metadata must have a form like 2026-01-31T23:59:59Z, got {saved!r}.")
    if not all(type(n) is int and n >= 0 for n in (columns, 0 if rows is None else rows)):
        raise ValueError(
            f"the numbers of rows and columns in the metadata must be nonnegative integers, got {rows!r} and "
            f"{columns!r}."
        )
    if type(versions) is not dict or not all(type(own) is str for pair in versions.items() for own in pair):
        raise ValueError(f"the versions of the metadata must be a dictionary of strings, got {versions!r}.")
    if type(user) is not dict:
        raise ValueError(f"'user' in the metadata must be a dictionary, got {user!r}.")
    found: dict[str, Any] = metadata
    return found


def _number_of_rows(model: Any) -> int | None:
    """Return the number of training rows with a class and a positive weight, or None if it is unknown."""
    n_rows: int | None = getattr(model, "_n_rows", None)
    counts = getattr(getattr(model, "counts_", None), "class_counts", None)
    if n_rows is None and isinstance(counts, np.ndarray) and counts.dtype.kind in "iu":
        return int(counts.sum())
    return n_rows
