"""Ranks of learners over data sets, with the tests of Friedman and Nemenyi.

[D] Demsar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray

__all__ = ["critical_difference", "friedman_test", "nemenyi_test", "ranks_of", "require_posthocs", "with_ties"]


def with_ties(values: FloatArray) -> FloatArray:
    """Round values to ten decimals, because means of the same numbers in another order may differ in the last bit."""
    return values.round(10)


def ranks_of(values: FloatArray) -> FloatArray:
    """Return the ranks (n_datasets, n_learners) of learners on each data set. Rank 1 is the smallest value."""
    from scipy.stats import rankdata

    found: FloatArray = rankdata(with_ties(values), axis=1)
    return found


def friedman_test(values: FloatArray) -> tuple[float, float]:
    """Return Friedman's chi-squared, and the p-value of its correction by Iman and Davenport ([D], section 3.2.2).

    Both are NaN for two learners, or if all learners are equal on each data set. The p-value is at least k! to the
    power of 1 - n, which is the probability that random orders of k learners agree on all n data sets. Without this
    lower bound, the p-value would be 0 for full agreement, even on two data sets.
    """
    from scipy.stats import f, friedmanchisquare

    n, k = values.shape
    values = with_ties(values)
    if k < 3 or np.ptp(values, axis=1).max() == 0.0:
        return float("nan"), float("nan")
    chi2 = float(friedmanchisquare(*values.T).statistic)
    rest = n * (k - 1) - chi2
    statistic = (n - 1) * chi2 / rest if rest > 0 else float("inf")
    return chi2, max(float(f.sf(statistic, k - 1, (k - 1) * (n - 1))), math.exp((1 - n) * math.lgamma(k + 1)))


def critical_difference(n_datasets: int, n_learners: int, alpha: float) -> float:
    """Return the smallest difference of mean ranks that is significant in Nemenyi's test ([D], section 3.2.2)."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1.0 - alpha, n_learners, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(n_learners * (n_learners + 1) / (6.0 * n_datasets)))


def nemenyi_test(values: FloatArray) -> FloatArray:
    """Return the p-values (n_learners, n_learners) of Nemenyi's test for all pairs. It needs scikit-posthocs."""
    found: FloatArray = np.asarray(
        require_posthocs("Nemenyi's test").posthoc_nemenyi_friedman(with_ties(values)), float
    )
    return found


def require_posthocs(what: str) -> Any:
    """Return scikit-posthocs, or raise ImportError with the command that installs it."""
    try:
        import scikit_posthocs
    except ImportError as error:
        raise ImportError(f'{what} needs scikit-posthocs. Install it with: pip install "tanlearn[compare]"') from error
    return scikit_posthocs
