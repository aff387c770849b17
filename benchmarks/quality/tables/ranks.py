"""Ranks of learners over sets, and which learners cannot be told apart (Benavoli, Corani, Mangili 2016)."""

from itertools import combinations

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, t, wilcoxon

#: Of all tests.
LEVEL = 0.05
#: Digits in which figures of sets are equal, whatever the order in which folds were added.
DIGITS = 9


def mean_ranks(table):
    """Return the mean rank of every column, 1 the lowest; equal figures share their ranks."""
    return rankdata(table.round(DIGITS), axis=1).mean(axis=0)


def friedman(table):
    """Return the probability that columns differ as much by chance."""
    return float(friedmanchisquare(*table.round(DIGITS).T).pvalue)


def differences(a, b):
    """Return differences of figures; where both have failed there is none."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(a.round(DIGITS) - b.round(DIGITS), nan=0.0, posinf=np.inf, neginf=-np.inf)


def apart(table):
    """Return which pairs of columns Wilcoxon's signed-rank test tells apart, with Holm's correction."""
    n = table.shape[1]
    pairs, found = list(combinations(range(n), 2)), np.zeros((n, n), bool)
    gaps = [differences(table[:, i], table[:, j]) for i, j in pairs]
    p = np.array([wilcoxon(gap).pvalue if gap.any() else 1.0 for gap in gaps])
    for n_before, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > LEVEL / (len(pairs) - n_before):
            break
        i, j = pairs[place]
        found[i, j] = found[j, i] = True
    return found


def cliques(ranks, is_apart):
    """Return the longest runs of neighbours in rank of which no two are apart, as numbers of columns."""
    order, found, reached = np.argsort(ranks, kind="stable"), [], 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not is_apart[order[end], order[start:end]].any():
            end += 1
        if end - start > 1 and end > reached:
            found.append([int(column) for column in order[start:end]])
            reached = end
    return found


def is_clear(gaps, shares):
    """Return whether figures of folds differ by more than chance.

    The corrected resampled t-test (Nadeau, Bengio 2003): folds share training rows, ``shares`` are test rows a training
    row.
    """
    n, spread = len(gaps), gaps.std(ddof=1) if len(gaps) > 1 else np.nan
    if not spread > 0:
        return bool(n > 1 and gaps.any())
    statistic = abs(gaps.mean()) / np.sqrt((1 / n + np.mean(shares)) * spread**2)
    return bool(2 * t.sf(statistic, n - 1) < LEVEL)
