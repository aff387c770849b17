"""Normalisation and its pull-back."""

import naive
import numpy as np
import pytest

from tanlearn.kernels import mathematics

N_VALUES = np.array([3, 2, 1, 4])
WIDTH = np.array([1, 3, 6, 2])
ALL = np.arange(4)
OFFSET = np.append(0, np.cumsum(N_VALUES * WIDTH))


def normalize(rho):
    theta = np.empty_like(rho)
    mathematics.normalize(rho, N_VALUES, OFFSET, np.empty(6, rho.dtype), theta)
    return theta


@pytest.mark.parametrize("shift", [0.0, 1000.0, -30000.0])
def test_normalize_equals_oracle(shift):
    rho = np.random.default_rng(0).normal(size=OFFSET[-1]) + shift
    theta = normalize(rho)
    for k, width, first, last in zip(N_VALUES, WIDTH, OFFSET[:-1], OFFSET[1:], strict=True):
        expected = naive.normalize(rho[first:last].reshape(k, width)).ravel()
        np.testing.assert_allclose(theta[first:last], expected, rtol=1e-9, atol=1e-14)


def test_float32_stays_float32_and_close():
    rho = np.random.default_rng(1).normal(size=OFFSET[-1])
    single = normalize(rho.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, normalize(rho), atol=8 * np.finfo(np.float32).eps)


def test_pull_back_equals_finite_differences():
    rng = np.random.default_rng(2)
    rho, direction, G = rng.normal(size=(3, OFFSET[-1]))
    d_rho = np.empty_like(rho)
    mathematics.normalize_adjoint(normalize(rho), G, ALL, N_VALUES, OFFSET, np.empty(6), d_rho)
    step = 1e-6
    slope = np.vdot(G, normalize(rho + step * direction) - normalize(rho - step * direction)) / (2 * step)
    assert np.vdot(d_rho, direction) == pytest.approx(slope, rel=1e-8)


def test_pull_back_may_write_onto_its_input():
    rng = np.random.default_rng(3)
    theta, G = normalize(rng.normal(size=OFFSET[-1])), rng.normal(size=OFFSET[-1])
    separate = np.empty_like(theta)
    mathematics.normalize_adjoint(theta, G, ALL, N_VALUES, OFFSET, np.empty(6), separate)
    mathematics.normalize_adjoint(theta, G, ALL, N_VALUES, OFFSET, np.empty(6), G)
    np.testing.assert_array_equal(G, separate)


def test_pull_back_leaves_other_groups_alone():
    rng = np.random.default_rng(4)
    theta, G = normalize(rng.normal(size=OFFSET[-1])), rng.normal(size=OFFSET[-1])
    everything, part = np.empty_like(theta), np.full_like(theta, 7.0)
    mathematics.normalize_adjoint(theta, G, ALL, N_VALUES, OFFSET, np.empty(6), everything)
    mathematics.normalize_adjoint(theta, G, np.array([0, 2]), N_VALUES, OFFSET, np.empty(6), part)
    for g in range(4):
        expected = everything if g in (0, 2) else np.full_like(theta, 7.0)
        np.testing.assert_array_equal(part[OFFSET[g] : OFFSET[g + 1]], expected[OFFSET[g] : OFFSET[g + 1]])


def test_logarithm_of_normal_numbers():
    rng = np.random.default_rng(0)
    for x in [1.0, 2.2250738585072014e-308, 1.7976931348623157e308, *np.exp(rng.uniform(-700, 700, 200))]:
        assert abs(mathematics.log_normal(x) - np.log(x)) <= 4e-16 * max(1.0, abs(np.log(x)))
