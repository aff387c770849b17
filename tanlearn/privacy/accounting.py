"""Variance and standard deviation of the noise that a privacy loss (epsilon, delta) requires."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["gaussian_variance", "laplace_deviation", "largest_rho", "least_epsilon", "log_delta", "variance_of_rho"]

#: Variances are rounded up to a multiple of 1 / 1,024, so that the samplers compute with small integers.
_STEPS = 1024
#: Relative amount by which rho is decreased. It is much larger than the rounding errors in the computation of rho.
_MARGIN = 1e-9


def log_delta(rho: float, epsilon: float) -> float:
    """Return the log of a delta such that rho-zCDP implies (epsilon, delta)-differential privacy.

    Corollary 13 of Canonne, Kamath and Steinke 2020: every alpha > 1 gives the valid bound exp((alpha - 1) (alpha rho -
    epsilon)) / (alpha - 1) (1 - 1 / alpha)^alpha. The function uses an alpha that is nearly optimal.
    """
    low, high = 1.0, 2.0 + (epsilon + 1) / (2 * rho)
    for _ in range(200):
        alpha = (low + high) / 2
        if not low < alpha < high:
            break
        if (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha) < 0:  # sign of the derivative
            low = alpha
        else:
            high = alpha
    alpha = high
    return (alpha - 1) * (alpha * rho - epsilon) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)


def largest_rho(epsilon: float, delta: float) -> float:
    """Return nearly the largest rho such that rho-zCDP implies (epsilon, delta)-differential privacy."""
    wanted = math.log(delta)
    low, high = 0.0, epsilon + 1
    while log_delta(high, epsilon) <= wanted:
        high *= 2
    for _ in range(200):
        rho = (low + high) / 2
        if not low < rho < high:
            break
        if log_delta(rho, epsilon) <= wanted:
            low = rho
        else:
            high = rho
    return low * (1 - _MARGIN)


def least_epsilon(rho: float, delta: float) -> float:
    """Return nearly the smallest epsilon such that rho-zCDP implies (epsilon, delta)-differential privacy."""
    wanted = math.log(delta)
    low, high = 0.0, rho + 2 * math.sqrt(-rho * wanted)  # the simple bound of Bun and Steinke 2016, proposition 1.3
    for _ in range(200):
        epsilon = (low + high) / 2
        if not low < epsilon < high:
            break
        if log_delta(rho, epsilon) <= wanted:
            high = epsilon
        else:
            low = epsilon
    return high * (1 + _MARGIN)


def variance_of_rho(n_tables: int, rho: Fraction) -> Fraction:
    """Return the variance of discrete Gaussian noise for rho-zCDP.

    One row changes one count by 1 in each of ``n_tables`` tables, so the squared L2 sensitivity is ``n_tables``. The
    noise is (n_tables / (2 variance))-zCDP (theorem 14 of Canonne, Kamath and Steinke 2020).
    """
    return Fraction(math.ceil(n_tables / (2 * rho) * _STEPS), _STEPS)


def gaussian_variance(n_tables: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the variance of discrete Gaussian noise for (epsilon, delta)-differential privacy."""
    return variance_of_rho(n_tables, Fraction(largest_rho(float(epsilon), float(delta))))


def laplace_deviation(scale: Fraction) -> float:
    """Return the standard deviation of discrete Laplace noise."""
    q = 1 / float(scale)
    return 1 / (math.sqrt(2) * math.sinh(q / 2)) if q < 1000 else 0.0
