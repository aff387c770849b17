"""Ranks of learners over data sets, and their significant differences (Benavoli, Corani, Mangili 2016)."""

from itertools import combinations

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, t, wilcoxon

#: Significance level of all tests.
LEVEL = 0.05
#: Digits in which results are compared, so that the order of sums does not matter.
DIGITS = 9


def mean_ranks(table):
    """Return the mean rank of every column, from 1 for the lowest; ties share their ranks."""
    return rankdata(table.round(DIGITS), axis=1).mean(axis=0)


def friedman(table):
    """Return the p-value of Friedman's test of equal columns."""
    return float(friedmanchisquare(*table.round(DIGITS).T).pvalue)


def differences(a, b):
    """Return the differences of results, 0 where both have failed."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(a.round(DIGITS) - b.round(DIGITS), nan=0.0, posinf=np.inf, neginf=-np.inf)


def apart(table):
    """Return the pairs of columns that differ by Wilcoxon's signed-rank test with Holm's correction."""
    n = table.shape[1]
    pairs, found = list(combinations(range(n), 2)), np.zeros((n, n), bool)
    values = [differences(table[:, i], table[:, j]) for i, j in pairs]
    p = np.array([wilcoxon(one).pvalue if one.any() else 1.0 for one in values])
    for n_before, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > LEVEL / (len(pairs) - n_before):
            break
        i, j = pairs[place]
        found[i, j] = found[j, i] = True
    return found


def cliques(ranks, is_apart):
    """Return the longest sequences of columns in order of rank without a significant difference."""
    order, found, reached = np.argsort(ranks, kind="stable"), [], 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not is_apart[order[end], order[start:end]].any():
            end += 1
        if end - start > 1 and end > reached:
            found.append([int(column) for column in order[start:end]])
            reached = end
    return found


def is_clear(values, shares):
    """Return whether the mean difference of folds is significant.

    The test is the corrected resampled t-test (Nadeau, Bengio 2003), because folds share training rows; ``shares`` are
    test rows per training row.
    """
    n, spread = len(values), values.std(ddof=1) if len(values) > 1 else np.nan
    if not spread > 0:
        return bool(n > 1 and values.any())
    statistic = abs(values.mean()) / np.sqrt((1 / n + np.mean(shares)) * spread**2)
    return bool(2 * t.sf(statistic, n - 1) < LEVEL)
