"""Comparison of the columns of new data with those of ``fit``."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from tanlearn.data.other_frames import frame_of

__all__ = ["check_names"]


def check_names(estimator: Any, X: Any) -> None:
    """Raise ValueError, with a remedy, if columns are missing, added or in another order than in ``fit``."""
    try:
        validate_data(estimator, frame_of(X), reset=False, skip_check_array=True)
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip()}\n{_remedy(estimator, X)}") from error


def _remedy(estimator: Any, X: Any) -> str:
    """Return the call that selects the columns of ``fit`` from a frame, or advice for data without column names."""
    names = getattr(estimator, "feature_names_in_", None)
    given = [name for name in getattr(frame_of(X), "columns", ()) if isinstance(name, str)]
    if names is None or not given:
        return (
            f"Pass the {estimator.n_features_in_} columns of fit in their order, without the class and without others; "
            f"use NaN or None for a missing value."
        )
    missing = [name for name in names.tolist() if name not in given]
    is_pandas = hasattr(X, "reindex")
    if missing and not is_pandas and type(X).__module__.partition(".")[0] != "polars" and hasattr(X, "to_pandas"):
        return (
            "If a column was renamed, rename it. Columns that are not available can be missing in every row: "
            "X.to_pandas().reindex(columns=model.feature_names_in_)."
        )
    if missing and not is_pandas:
        return (
            "If a column was renamed, rename it. Columns that are not available can be missing in every row: add them "
            "with nulls, as with X.with_columns(polars.lit(None).alias(name)), then select the columns of fit, "
            "X.select(list(model.feature_names_in_))."
        )
    if missing:
        return (
            "If a column was renamed, rename it. Columns that are not available can be missing in every row: "
            "X.reindex(columns=model.feature_names_in_)."
        )
    call = "X[list(model.feature_names_in_)]" if is_pandas else "X.select(list(model.feature_names_in_))"
    return f"Select the columns by name: {call}."
