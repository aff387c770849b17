"""Parameters of noise for a privacy loss: bounds are valid by enumeration, and not much larger than necessary."""

import math
from fractions import Fraction

import pytest
from oracles import discrete_noise

from tanlearn.privacy.accounting import (
    gaussian_variance,
    laplace_deviation,
    largest_rho,
    least_epsilon,
    log_delta,
    variance_of_rho,
)


@pytest.mark.parametrize(("epsilon", "delta", "n_tables"), [(0.5, 1e-4, 1), (1, 1e-6, 1), (4, 1e-3, 1), (3, 0.01, 2)])
def test_gaussian_noise_keeps_delta(epsilon, delta, n_tables):
    variance = gaussian_variance(n_tables, Fraction(epsilon), Fraction(delta))
    exact = discrete_noise.delta(
        discrete_noise.gaussian(float(variance), 8 * math.isqrt(int(variance)) + 8), n_tables, epsilon
    )
    assert exact <= delta
    smaller = discrete_noise.gaussian(0.6 * float(variance), 8 * math.isqrt(int(variance)) + 8)
    assert discrete_noise.delta(smaller, n_tables, epsilon) > delta  # 40 % less variance would be too little


@pytest.mark.parametrize("n_tables", [1, 2])
def test_laplace_noise_keeps_epsilon(n_tables):
    known = discrete_noise.laplace(n_tables / 0.8, 80)
    assert discrete_noise.delta(known, n_tables, 0.8) < 1e-9  # at the ends of the enumeration
    assert discrete_noise.delta(known, n_tables, 0.7) > 0.01


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(15, 2)])
def test_deviations_of_laplace_noise(scale):
    variance = discrete_noise.variance(discrete_noise.laplace(float(scale), 400))
    assert laplace_deviation(scale) == pytest.approx(math.sqrt(variance), rel=1e-9)
    assert laplace_deviation(Fraction(1, 10**6)) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-3, 1e-9), (0.1, 1e-6), (1, 1e-6), (10, 1e-3), (50, 0.5), (1e-3, 0.99)]
)
def test_rho_is_at_its_limit_and_at_least_that_of_the_simple_bound(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert log_delta(rho, epsilon) <= math.log(delta) < log_delta(1.0001 * rho, epsilon)
    assert rho >= (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


def test_variances_grow_with_the_number_of_counts_that_a_row_changes():
    one, ten = (gaussian_variance(k, Fraction(1), Fraction(1, 10**6)) for k in (1, 10))
    assert 0 <= 10 * one - ten <= Fraction(10, 1024)


@pytest.mark.parametrize("parts", [(Fraction(1, 2), Fraction(1, 2)), (Fraction(3, 10), Fraction(7, 10))])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-3), (3, 1e-2)])
def test_parts_of_rho_keep_delta_together(parts, epsilon, delta):
    rho = Fraction(largest_rho(epsilon, delta))
    variances = [variance_of_rho(1, part * rho) for part in parts]
    noise = [discrete_noise.gaussian(float(own), 8 * math.isqrt(int(own)) + 8) for own in variances]
    assert discrete_noise.delta_of_releases(noise, 1, epsilon) <= delta
    less = [discrete_noise.gaussian(0.6 * float(own), 8 * math.isqrt(int(own)) + 8) for own in variances]
    assert discrete_noise.delta_of_releases(less, 1, epsilon) > delta  # 40 % less variance would be too little


@pytest.mark.parametrize(("rho", "delta"), [(1e-6, 1e-9), (0.02, 1e-6), (0.5, 0.01), (30, 1e-6), (0.1, 0.9)])
def test_epsilon_of_rho_is_at_its_limit_and_inverts_rho(rho, delta):
    epsilon = least_epsilon(rho, delta)
    assert log_delta(rho, epsilon) <= math.log(delta)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke 2016
    if epsilon > 1e-6:
        assert log_delta(rho, 0.9999 * epsilon) > math.log(delta)
        assert largest_rho(epsilon, delta) == pytest.approx(rho, rel=1e-6)
