"""Vectorising exponential and logarithm against NumPy in double precision."""

import numpy as np
import pytest

from tanlearn.kernels.vector import exp32, log32


def apply(function, values):
    return np.array([function(value) for value in values], dtype=np.float32)


def test_exp32_within_three_units_in_the_last_place():
    x = np.linspace(-85.9, 87.9, 1501).astype(np.float32)
    np.testing.assert_allclose(apply(exp32, x), np.exp(x.astype(float)), rtol=3e-7)


def test_exp32_is_zero_far_below_and_one_at_zero():
    x = np.array([0, -86.01, -1e4, -np.inf], np.float32)
    assert apply(exp32, x).tolist() == [1, 0, 0, 0]


def test_log32_over_all_normal_exponents():
    x = np.exp(np.linspace(-86, 86, 1501)).astype(np.float32)
    exact = np.log(x.astype(float))
    np.testing.assert_allclose(apply(log32, x), exact, rtol=2e-7, atol=2e-7)


@pytest.mark.parametrize("value", [0.5, 0.70710677, 0.70710683, 1.0, 1.4142135, 2.0])
def test_log32_at_the_edges_of_its_range_reduction(value):
    assert log32(np.float32(value)) == pytest.approx(np.log(np.float32(value)), abs=1e-7)


def test_types_stay_single():
    assert np.asarray(exp32(np.float32(1))).dtype in (np.float32, np.float64)
    assert apply(log32, [np.float32(1)]).tolist() == [0]
