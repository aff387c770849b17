"""One step of Adam against plain Python."""

import math

import numpy as np
import pytest
from oracles import losses as naive_losses

from tanlearn.kernels.adam import SMALLEST_MOMENT, adam_step

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_equal_oracle(dtype):
    rng = np.random.default_rng(0)
    start = rng.normal(size=7).astype(dtype)
    gradients = (rng.normal(size=(5, 7)) * np.logspace(-6, 3, 7)).astype(dtype)
    x, m, v = start.copy(), np.zeros(7, dtype), np.zeros(7, dtype)
    for t, gradient in enumerate(gradients, start=1):
        step_size = 0.01 * math.sqrt(1 - BETA2**t) / (1 - BETA1**t)
        adam_step(x, gradient, step_size, BETA1, BETA2, EPSILON, m, v)
    expected_x, expected_m, expected_v = naive_losses.adam(start, gradients, 0.01, BETA1, BETA2, EPSILON)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(x, expected_x, rtol=0, atol=16 * eps)
    # A moment is an average whose terms the compiler may regroup, as g + beta (m - g): its error is counted in
    # units of the largest term.
    largest = np.abs(gradients).max(axis=0)
    np.testing.assert_array_less(np.abs(m - expected_m), 2 * eps * largest)
    np.testing.assert_array_less(np.abs(v - expected_v), 2 * eps * largest**2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_become_zero_before_they_are_denormal(dtype):
    moments = np.array([0.5, 2.0, -0.5, -2.0]) * SMALLEST_MOMENT
    x, m, v = np.ones(4, dtype), moments.astype(dtype), np.abs(moments).astype(dtype)
    adam_step(x, np.zeros(4, dtype), 0.1, BETA1, BETA2, EPSILON, m, v)
    np.testing.assert_allclose(m / SMALLEST_MOMENT, [0.0, 1.8, 0.0, -1.8], rtol=1e-6)
    np.testing.assert_allclose(v / SMALLEST_MOMENT, [0.0, 1.998, 0.0, 1.998], rtol=1e-6)
    np.testing.assert_array_equal(x, np.ones(4))


def test_nan_gradient_is_not_swallowed():
    x, m, v = np.ones(2), np.zeros(2), np.zeros(2)
    adam_step(x, np.array([np.nan, 1.0]), 0.1, BETA1, BETA2, EPSILON, m, v)
    assert np.isnan([x[0], m[0], v[0]]).all()
    assert np.isfinite([x[1], m[1], v[1]]).all()
