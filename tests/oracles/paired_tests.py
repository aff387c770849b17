"""Tests of differences, from the formulas of the papers, with sums and integrals written out."""

import math

import numpy as np


def student_tail(t, df):
    """Return the probability that Student's t exceeds a positive value, by Simpson's rule over atan(x/sqrt(df))."""
    # With x = sqrt(df) tan(a), the density of the angle is proportional to cos(a)^(df - 1).
    a = np.linspace(0.0, math.pi / 2, 200_001)
    density = np.cos(a) ** (df - 1)
    weights = np.where(np.arange(len(a)) % 2, 4.0, 2.0)
    weights[[0, -1]] = 1.0
    whole = (weights * density).sum()
    beyond = a >= math.atan(t / math.sqrt(df))
    return 0.5 * (weights * density)[beyond].sum() / whole


def corrected_t_test(differences, n_train, n_test):
    """Return the p-value of Nadeau and Bengio's corrected resampled t-test."""
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    t = mean / math.sqrt((1 / n + n_test / n_train) * variance)
    return 2 * student_tail(abs(t), n - 1)


def holm(p_values):
    """Return p-values after Holm's correction: each is the largest of all that are not larger, times the rest."""
    n = len(p_values)
    order = sorted(range(n), key=lambda i: p_values[i])
    found = [0.0] * n
    for position, i in enumerate(order):
        found[i] = min(1.0, max(p_values[order[k]] * (n - k) for k in range(position + 1)))
    return found


def ranks(values):
    """Return the rank of each value, 1 for the smallest; ties have the mean of their ranks."""
    return [1 + sum(v < own for v in values) + (sum(v == own for v in values) - 1) / 2 for own in values]


def signed_rank_sums(differences):
    """Return the sums of the ranks of positive and of negative differences; those of zeros are divided evenly."""
    own = ranks([abs(d) for d in differences])
    positive = sum(r for r, d in zip(own, differences, strict=True) if d > 0)
    negative = sum(r for r, d in zip(own, differences, strict=True) if d < 0)
    zero = sum(r for r, d in zip(own, differences, strict=True) if d == 0)
    return positive + zero / 2, negative + zero / 2


def exact_signed_ranks_p(differences):
    """Return the two-sided p-value of the signed ranks, over all signs; there are no zeros and no ties."""
    n = len(differences)
    least = min(signed_rank_sums(differences))
    sums = [sum(i + 1 for i in range(n) if signs >> i & 1) for signs in range(2**n)]
    return min(1.0, 2 * sum(s <= least for s in sums) / 2**n)


def friedman(values):
    """Return Friedman's chi-squared without ties, and the statistic of Iman and Davenport; one row per data set."""
    n, k = len(values), len(values[0])
    mean = np.mean([ranks(row) for row in values], axis=0)
    chi2 = 12 * n / (k * (k + 1)) * ((mean**2).sum() - k * (k + 1) ** 2 / 4)
    return chi2, (n - 1) * chi2 / (n * (k - 1) - chi2)


def equivalence(differences, rope, rng, n_samples=4000):
    """Return the posterior probabilities of a negative, small and positive difference by sampling weights of pairs."""
    z = [0.0, *differences]
    wins = [0, 0, 0]
    for _ in range(n_samples):
        w = rng.dirichlet([0.5, *[1.0] * len(differences)])
        parts = [0.0, 0.0, 0.0]
        for i in range(len(z)):
            for j in range(len(z)):
                total = z[i] + z[j]
                parts[0 if total < -2 * rope else 2 if total > 2 * rope else 1] += w[i] * w[j]
        wins[int(np.argmax(parts))] += 1
    return [count / n_samples for count in wins]
