"""What values of columns are called in pictures."""

from __future__ import annotations

import itertools
from typing import Any

from tanlearn.files.description import feature_names
from tanlearn.files.encoders import encoder_columns

__all__ = ["feature_number", "value_names"]


def value_names(encoder: Any, i: int) -> list[str]:
    """Return what the values of a column are called.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    i : int
        Number of the column.

    Returns
    -------
    list of str
        Categories, or intervals, in the order of their codes.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.displays.names import value_names
    >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 31.5]]
    >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach"])
    >>> value_names(model.encoder_, 0), value_names(model.encoder_, 1)
    (['rain', 'sun'], ['up to 21.5', 'above 21.5'])
    """
    column = encoder_columns(encoder)[i]
    if "categories" in column:
        return [str(value) for value in column["categories"].tolist()] or ["any"]
    cuts = [f"{cut:.4g}" for cut in column["cut_points"].tolist()]
    if not cuts:
        return ["any"]
    return [f"up to {cuts[0]}", *(f"{a} to {b}" for a, b in itertools.pairwise(cuts)), f"above {cuts[-1]}"]


def feature_number(estimator: Any, feature: Any) -> int:
    """Return which column is meant by a number or a name.

    Parameters
    ----------
    estimator : classifier
        Fitted.
    feature : int or str
        Number from 0, or name.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If there is no such column.
    """
    names = feature_names(estimator)
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if not isinstance(feature, str) and 0 <= feature < len(names):
        return int(feature)
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"feature must be one of 0 to {len(names) - 1} or a name of a column ({shown}); got {feature!r}.")
