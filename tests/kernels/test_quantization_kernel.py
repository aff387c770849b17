"""Rounding to fixed-point numbers, and the gradient of a size_penalty."""

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import quantization, trees
from tanlearn.kernels._lanes import LANES


@pytest.mark.parametrize("bits", [(3, 5), (1, 0), (4, -2), (0, 3), (-1, 2), (8, 8)])
@pytest.mark.parametrize("n_cells", [1, LANES, LANES + 5])
def test_cells_are_rounded_to_the_nearest_number_that_the_bits_can_hold(bits, n_cells):
    rng = np.random.default_rng(0)
    step = 2.0 ** -bits[1]
    theta = -np.concatenate([step * np.array([0.0, 0.5, 1.5, 2.5]), rng.exponential(2 ** bits[0], 3 * LANES)])
    theta = rng.permutation(theta).astype(np.float32)
    theta[:2] = 1e-9, -1e9  # a normalisation that is off by a rounding, and a value that never occurs
    rounded = np.full(len(theta) + LANES, 0.25, np.float32)
    quantization.round_cells(theta, n_cells, np.float32(step), np.float32(2 ** sum(bits) - 1), rounded)
    expected = [naive.round_to_bits(value, *bits) for value in theta[:n_cells].tolist()]
    np.testing.assert_array_equal(rounded[:n_cells], expected)
    assert (rounded[len(theta) :] == 0.25).all()


def test_price_gradient_is_that_of_the_expected_price():
    rng = np.random.default_rng(0)
    group, size_penalty = np.array([0, 3, 4, 8]), rng.uniform(1, 9, 8)
    phi, noise = rng.normal(size=8), rng.gumbel(size=8)
    perturbed, d_phi = np.empty(8), np.ones(8)
    trees.perturb(phi, noise, group, perturbed)
    trees.size_penalty_gradient(perturbed, noise, group, size_penalty, d_phi)
    for t in range(8):
        shifted = np.stack([phi, phi])
        shifted[:, t] += [1e-5, -1e-5]
        ahead, behind = (naive.expected_size_penalty(values.tolist(), group, size_penalty) for values in shifted)
        assert d_phi[t] - 1 == pytest.approx((ahead - behind) / 2e-5, abs=1e-7)
