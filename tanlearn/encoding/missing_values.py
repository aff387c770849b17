"""Selection of the columns with a category for missing values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray, IntArray
from tanlearn.sources.table import Table

__all__ = ["depend_on_class", "with_missing_category"]


def with_missing_category(
    handle_missing: str | None, columns: Table, y: IntArray, sample_weight: AnyArray | None
) -> NDArray[np.bool_]:
    """Return a mask of the columns that get a category for missing values. Shape: (n_features,).

    ``handle_missing`` is the parameter of :class:`~tanlearn.TableEncoder`. Shapes: y, sample_weight: (n_samples,).
    """
    found = np.zeros(len(columns), np.bool_)
    if handle_missing not in ("category", "auto"):
        return found
    weights = np.ones(len(y)) if sample_weight is None else sample_weight.astype(np.float64)
    scale, totals = max(1.0, len(y) / weights.sum()), np.bincount(y, weights)
    for i, column in enumerate(columns):
        missing = column.missing
        if missing is not None and not missing.all():
            own = np.bincount(y[missing], weights[missing], len(totals))
            found[i] = handle_missing == "category" or depend_on_class(scale * own, scale * totals)
    return found


def depend_on_class(missing: AnyArray, totals: AnyArray) -> bool:
    """Return whether one rate of missing values per class is more probable than one rate for all classes.

    The rates have the prior Beta(1/2, 1/2), and the two models are compared by their marginal likelihoods (a Bayes
    factor above 1). If values are missing at random, the factor is rarely above 1, and the more rows there are, the
    less often.

    Shapes: missing, totals: (n_classes,), numbers of rows without a value, and of all rows.
    """
    from scipy.special import betaln

    def log_likelihood(m: AnyArray, n: AnyArray) -> float:
        # Rounding errors must not make the remaining weight negative.
        return float((betaln(m + 0.5, np.maximum(n - m, 0.0) + 0.5) - betaln(0.5, 0.5)).sum())

    return log_likelihood(missing, totals) > log_likelihood(missing.sum(), totals.sum())
