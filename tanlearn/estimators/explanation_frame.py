"""Explanations of predictions as data frames with labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn.files.description import feature_names

__all__ = ["explanation_frame"]

#: Label of the contribution of the class prior, which is the last line of each row.
CLASSES = "(classes)"


def explanation_frame(model: Any, X: Any, against: Any, parents: list[list[int]] | None = None) -> Any:
    """Return the contributions of ``explain`` as a frame, with one line for each row and feature or class prior.

    ``parents`` contains the parents of each feature (-1 for none). If it is given, the frame has a column with their
    names.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError('explain_frame needs pandas. Install it with: pip install "tanlearn[frames]"') from error
    contributions = model.explain(X, against=against)
    n_samples, n_lines, n_classes = contributions.shape
    names = feature_names(model)
    frame = {
        "row": np.repeat(X.index if isinstance(X, pandas.DataFrame) else np.arange(n_samples), n_lines),
        "feature": [*names, CLASSES] * n_samples,
    }
    if parents is not None:
        given = [", ".join(names[j] for j in row if j >= 0) for row in parents]
        frame["parents"] = [*given, ""] * n_samples
    columns = dict(zip(model.classes_.tolist(), contributions.reshape(-1, n_classes).T, strict=True))
    return pandas.concat([pandas.DataFrame(frame), pandas.DataFrame(columns)], axis=1)
