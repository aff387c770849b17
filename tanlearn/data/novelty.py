"""Values of rows that training did not contain: unseen categories, and numbers outside the training range."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.data.table import Column, Table

if TYPE_CHECKING:
    from tanlearn.data.table_encoder import TableEncoder

__all__ = ["Novelty", "find_novelty"]

#: The standard deviation of a uniform distribution is its range divided by this.
_RANGE_PER_DEVIATION = np.sqrt(12.0)


class Novelty(NamedTuple):
    """Values of some rows that training did not contain.

    Parameters
    ----------
    is_unseen : ndarray of shape (n_features, n_samples), bool
        Where a value is present, but was not among the training values.
    distance : ndarray of shape (n_samples,)
        Distance of numbers from the training range, in standard deviations of a uniform distribution over this range,
        summed over the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.data.novelty import Novelty
    >>> Novelty(np.zeros((2, 3), bool), np.zeros(3)).distance.tolist()
    [0.0, 0.0, 0.0]
    """

    is_unseen: AnyArray
    distance: FloatArray


def find_novelty(encoder: TableEncoder, columns: Table, codes: Codes) -> Novelty:
    """Return the values of a table that an encoder has not seen.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted. Without ``value_ranges_``, as in networks read from other programs, no number is out of range.
    columns : Table
        The columns of ``fit``.
    codes : ndarray of shape (n_features, n_samples)
        Their codes.

    Returns
    -------
    Novelty

    Examples
    --------
    >>> from tanlearn import TableEncoder
    >>> from tanlearn.data.columns import read_columns
    >>> from tanlearn.data.novelty import find_novelty
    >>> encoder = TableEncoder().fit([["a"], ["b"]], [0, 1])
    >>> columns = read_columns([["b"], ["c"], [None]])
    >>> find_novelty(encoder, columns, encoder.encode_columns(columns)).is_unseen.tolist()
    [[False, True, False]]
    """
    is_unseen = codes == missing_code(codes.dtype)
    distance = np.zeros(codes.shape[1])
    ranges = getattr(encoder, "value_ranges_", None) or [None] * len(columns)
    for i, bounds in enumerate(ranges):
        if is_unseen[i].any():
            is_unseen[i] &= ~_is_missing(columns[i])
        if bounds is not None and not encoder.is_discrete_[i]:
            low, high = (float(bound) for bound in bounds)
            values = np.asarray(columns[i].numbers(were_numbers=True), np.float64)
            with np.errstate(over="ignore"):  # infinitely far is far enough
                beyond = np.fmax(np.fmax(low - values, values - high), 0.0)  # NaN, a missing value, is not beyond
                deviation = high / _RANGE_PER_DEVIATION - low / _RANGE_PER_DEVIATION
                if deviation > 0:
                    distance += beyond / deviation
                else:  # a constant column, or one without any value: another number is like an unseen category
                    is_unseen[i] |= (beyond > 0) | (np.isnan(low) & ~np.isnan(values))
    return Novelty(is_unseen, distance)


def _is_missing(column: Column) -> AnyArray:
    """Return where a column has no value."""
    if column.categories is not None:
        return column.values < 0
    return np.zeros(len(column.values), np.bool_) if column.missing is None else column.missing
