"""Maximum number of operations for marginalizing the missing values of one row.

In a forest, exact marginalization is always fast. With two or more parents per feature, its cost can grow exponentially
with the number of missing features that depend on each other. The cost of a row is estimated before any work is done:
the combinations of values in all eliminations, times classes, times slices (``elimination_plans.py``). If the cheapest
plan of a row exceeds the limit, an error is raised. If the caller accepts approximate scores, the row is approximated
and named in an InexactMarginalizationWarning instead. Rows within the limit are always exact.

The limit is 1e9 operations by default. Users set the limit with the environment variable TANLEARN_MAX_ROW_OPERATIONS.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tanlearn._warnings import warn

__all__ = ["RAISE_LIMIT", "InexactMarginalizationWarning", "most_operations", "name_others", "warn_of_approximations"]

_VARIABLE = "TANLEARN_MAX_ROW_OPERATIONS"
#: Default limit: about half a minute on one core of 2024, at 30 ns per operation.
_MOST = 1e9
#: Largest limit, because slices are numbered by 64-bit integers.
_UNLIMITED = 2.0**62
#: Remedy that messages end with.
RAISE_LIMIT = f"set a larger limit in the environment variable {_VARIABLE}"
#: Maximum number of rows named in a message.
_N_SHOWN = 10


class InexactMarginalizationWarning(UserWarning):
    """Warning for rows with missing values that could not be marginalized exactly within the limit of operations.

    The message names the rows; their scores are approximate. ``warnings.simplefilter("error",
    InexactMarginalizationWarning)`` turns the warning into an error. The environment variable
    ``TANLEARN_MAX_ROW_OPERATIONS`` sets the limit.

    Examples
    --------
    >>> import warnings
    >>> from tanlearn import InexactMarginalizationWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", InexactMarginalizationWarning)
    ...     # probabilities of model.predict_proba(X) are exact here, or there is an error
    """


def most_operations() -> float:
    """Return the limit of operations per row, from the environment variable or by default.

    A value that is not a number of at least 0 raises ValueError.
    """
    given = os.environ.get(_VARIABLE)
    if given is None:
        return _MOST
    try:
        limit = float(given)
    except ValueError:
        limit = -1.0
    if not limit >= 0:
        raise ValueError(f"the environment variable {_VARIABLE} must be a number of at least 0, or inf, got {given!r}.")
    return min(limit, _UNLIMITED)


def name_others(rows: Sequence[int]) -> str:
    """Return a sentence that names all rows except the first, for a message about the first."""
    return f" The same holds for {_name_rows(rows[1:])}." if len(rows) > 1 else ""


def warn_of_approximations(rows: Sequence[int], limit: float) -> None:
    """Warn that missing values are marginalized only approximately in the given rows."""
    warn(
        f"the scores of {_name_rows(rows)} are approximate, because the missing features depend on each other "
        f"through two or more parents, and marginalizing them exactly would take more than {limit:,.0f} operations "
        f"per row. Impute some of the missing values, or {RAISE_LIMIT}. To get an error instead of approximate "
        f"scores, turn this warning, tanlearn.InexactMarginalizationWarning, into an error.",
        InexactMarginalizationWarning,
    )


def _name_rows(rows: Sequence[int]) -> str:
    """Format row numbers for a message."""
    shown = ", ".join(f"{row}" for row in rows[:_N_SHOWN])
    more = f" and {len(rows) - _N_SHOWN:,} more" if len(rows) > _N_SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"
