"""Discrete Laplace and Gaussian distributions by enumeration, and the exact loss of a release."""

import itertools
import math


def laplace(scale, bound):
    """Return the probability of each integer from -bound to bound; the rest is negligible."""
    return _normalized({x: math.exp(-abs(x) / scale) for x in range(-bound, bound + 1)})


def gaussian(variance, bound):
    """Return the probability of each integer from -bound to bound; the rest is negligible."""
    return _normalized({x: math.exp(-(x**2) / (2 * variance)) for x in range(-bound, bound + 1)})


def variance(probabilities):
    """Return the variance of a symmetric distribution."""
    return sum(x**2 * p for x, p in probabilities.items())


def delta(probabilities, n_changes, epsilon):
    """Return the smallest delta for an epsilon, if one row changes some counts by 1 each.

    It is the sum of P(results) - exp(epsilon) P(results - changes) over all results where this is positive.
    """
    found = 0.0
    for results in itertools.product(probabilities, repeat=n_changes):
        with_row = math.prod(probabilities[x] for x in results)
        without = math.prod(probabilities.get(x - 1, 0.0) for x in results)
        found += max(0.0, with_row - math.exp(epsilon) * without)
    return found


def delta_of_releases(releases, n_changes, epsilon):
    """Return the smallest delta for an epsilon and several releases, in each of which a row changes counts by 1.

    Counts of a release have noise of the same distribution. Results are all their noisy counts together.
    """
    counts = [probabilities for probabilities in releases for _ in range(n_changes)]
    found = 0.0
    for results in itertools.product(*counts):
        with_row = math.prod(own[x] for own, x in zip(counts, results, strict=True))
        without = math.prod(own.get(x - 1, 0.0) for own, x in zip(counts, results, strict=True))
        found += max(0.0, with_row - math.exp(epsilon) * without)
    return found


def _normalized(weights):
    """Return weights divided by their sum."""
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}
