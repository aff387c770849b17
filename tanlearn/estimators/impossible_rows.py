"""Prediction of class probabilities, with a warning, for rows with probability zero in every class.

CPTs contain zeros if they were read from a file with zeros, or if frequencies were not smoothed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn._warnings import warn

__all__ = ["ImpossibleRowsWarning", "is_impossible", "named_rows", "replace_impossible"]

_N_NAMED = 5


class ImpossibleRowsWarning(UserWarning):
    """Warning for rows that have probability zero in every class.

    Parameters
    ----------
    rows : ndarray of shape (n_impossible,)
        Positions of these rows, counted from 0.
    n_samples : int
        Total number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import ImpossibleRowsWarning
    >>> str(ImpossibleRowsWarning(np.array([2]), 10))[:65]
    '1 of 10 rows has probability zero in every class (row 2). For the'
    """

    def __init__(self, rows: IntArray, n_samples: int) -> None:
        self.rows = rows
        have = "has" if len(rows) == 1 else "have"
        super().__init__(
            f"{len(rows):,} of {n_samples:,} rows {have} probability zero in every class "
            f"({named_rows(rows.tolist())}). For these rows, the class probabilities without any feature are "
            f"predicted, and predict_joint_log_proba returns -inf. Correct the values, set them to missing, or use "
            f"smoothing (alpha > 0), which avoids zeros."
        )


def named_rows(rows: list[int]) -> str:
    """Return row numbers as text, such as "rows 1, 4, 7". After five rows, only the number of further rows is given."""
    more = f" and {len(rows) - _N_NAMED:,} more" if len(rows) > _N_NAMED else ""
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:_N_NAMED]))}{more}"


def is_impossible(scores: FloatArray) -> IntArray:
    """Return a mask of the rows whose scores are -inf in every class.

    Shapes: scores: (n_samples, n_classes); result: (n_samples,).
    """
    return np.isneginf(scores.max(axis=1))


def replace_impossible(scores: FloatArray, prior_scores: Callable[[], FloatArray]) -> FloatArray:
    """Replace the scores of rows with -inf in every class by the prior scores, with a warning.

    Shapes: scores and result: (n_samples, n_classes).
    """
    rows = is_impossible(scores)
    if not rows.any():
        return scores
    warn(ImpossibleRowsWarning(np.flatnonzero(rows), len(rows)))
    return np.where(rows[:, np.newaxis], prior_scores(), scores)
