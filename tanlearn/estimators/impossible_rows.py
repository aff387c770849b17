"""Rows of probability zero in every class: predicted from the class probabilities, with a warning.

Tables hold zeros if a network was read from a file with zeros, or frequencies were not smoothed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn._warnings import warn

__all__ = ["ImpossibleRowsWarning", "is_impossible", "named_rows", "replace_impossible"]

_N_NAMED = 5


class ImpossibleRowsWarning(UserWarning):
    """The warning that rows have probability zero in every class.

    Parameters
    ----------
    rows : ndarray of shape (n_impossible,)
        Positions of these rows, from 0.
    n_samples : int
        Number of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import ImpossibleRowsWarning
    >>> str(ImpossibleRowsWarning(np.array([2]), 10))[:65]
    '1 of 10 rows has probability zero in every class (row 2), so the '
    """

    def __init__(self, rows: IntArray, n_samples: int) -> None:
        self.rows = rows
        have = "has" if len(rows) == 1 else "have"
        super().__init__(
            f"{len(rows):,} of {n_samples:,} rows {have} probability zero in every class "
            f"({named_rows(rows.tolist())}), so the class probabilities without any feature are predicted. "
            f"predict_joint_log_proba returns -inf there. Correct the values, set them to missing, or use a network "
            f"without zeros, as smoothing (alpha > 0) makes it."
        )


def named_rows(rows: list[int]) -> str:
    """Return the first of some rows in words.

    Parameters
    ----------
    rows : list of int
        Numbers of rows.

    Returns
    -------
    str

    Examples
    --------
    >>> from tanlearn.estimators.impossible_rows import named_rows
    >>> named_rows([3]), named_rows([0, 1, 2, 3, 4, 5, 6])
    ('row 3', 'rows 0, 1, 2, 3, 4 and 2 more')
    """
    more = f" and {len(rows) - _N_NAMED:,} more" if len(rows) > _N_NAMED else ""
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:_N_NAMED]))}{more}"


def is_impossible(scores: FloatArray) -> IntArray:
    """Return which rows have probability zero in every class.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        Log joint.

    Returns
    -------
    ndarray of shape (n_samples,), bool
    """
    return np.isneginf(scores.max(axis=1))


def replace_impossible(scores: FloatArray, prior_scores: Callable[[], FloatArray]) -> FloatArray:
    """Return scores of classes of which no row has only -inf.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        Log joint.
    prior_scores : callable
        Returns the log joint of a row in which every feature is missing, of shape (n_classes,). It is called if there
        are rows of probability zero.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Warns
    -----
    ImpossibleRowsWarning
        If there are such rows, with their positions.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.estimators.impossible_rows import replace_impossible
    >>> replace_impossible(np.array([[-np.inf, -1.0]]), lambda: np.array([-0.5, -0.9]))
    array([[-inf,  -1.]])
    """
    rows = is_impossible(scores)
    if not rows.any():
        return scores
    warn(ImpossibleRowsWarning(np.flatnonzero(rows), len(rows)))
    return np.where(rows[:, np.newaxis], prior_scores(), scores)
