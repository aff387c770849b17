"""Exponential and logarithm of lanes against NumPy in double precision."""

import numpy as np
import pytest

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, load, padded, store
from tanlearn.kernels.vector import exp_lanes, log_lanes


@kernel
def exponentials(x, out):
    for first in range(0, x.shape[0], LANES):
        store(out, first, exp_lanes(load(x, first)))


@kernel
def logarithms(x, out):
    for first in range(0, x.shape[0], LANES):
        store(out, first, log_lanes(load(x, first)))


def apply(function, values):
    x = np.ones(padded(len(values)), np.float32)
    x[: len(values)] = values
    out = np.empty_like(x)
    function(x, out)
    return out[: len(values)]


def test_exponential_within_two_units_in_the_last_place():
    x = np.linspace(-85.9, 87.9, 1501).astype(np.float32)
    np.testing.assert_allclose(apply(exponentials, x), np.exp(x.astype(float)), rtol=1.5e-7)


def test_exponential_is_next_to_nothing_far_below_and_one_at_zero():
    one, *low = apply(exponentials, [0, -86.01, -1e4, -np.inf]).tolist()
    assert one == 1
    assert all(0 < value < 5e-38 for value in low)


def test_logarithm_over_all_normal_exponents():
    x = np.exp(np.linspace(-86, 86, 1501)).astype(np.float32)
    np.testing.assert_allclose(apply(logarithms, x), np.log(x.astype(float)), rtol=2e-7, atol=2e-7)


def test_logarithm_at_the_edges_of_its_range_reduction():
    x = np.array([0.5, 0.70710677, 0.70710683, 1.0, 1.4142135, 2.0], np.float32)
    out = apply(logarithms, x)
    assert out == pytest.approx(np.log(x.astype(float)), abs=1e-7)
    assert out[3] == 0
