"""Labels for features and values in plots."""

from __future__ import annotations

import itertools
from typing import Any

from tanlearn.files.description import feature_names
from tanlearn.files.encoders import encoder_columns

__all__ = ["feature_number", "value_names"]


def value_names(encoder: Any, i: int) -> list[str]:
    """Return labels for the values of a column: its categories or intervals and, if it is a category, "missing"."""
    column = encoder_columns(encoder)[i]
    return [*_names(column), *(["missing"] if "has_missing_category" in column else [])]


def _names(column: dict[str, Any]) -> list[str]:
    """Return labels for the categories or intervals of a column."""
    if "categories" in column:
        return [str(value) for value in column["categories"].tolist()] or ["any"]
    cuts = [f"{cut:.4g}" for cut in column["cut_points"].tolist()]
    if not cuts:
        return ["any"]
    return [f"up to {cuts[0]}", *(f"{a} to {b}" for a, b in itertools.pairwise(cuts)), f"above {cuts[-1]}"]


def feature_number(estimator: Any, feature: Any) -> int:
    """Return the column number of a feature that is given by number or name."""
    names = feature_names(estimator)
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if not isinstance(feature, str) and 0 <= feature < len(names):
        return int(feature)
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"feature must be from 0 to {len(names) - 1} or a column name ({shown}), got {feature!r}.")
