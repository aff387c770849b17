"""One step of Adam on one table, against the equations in double precision."""

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import sweep
from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, load, store

STEP, BETA1, BETA2, EPSILON = (np.float32(value) for value in (0.01, 0.9, 0.999, 1e-7))


def naive_adam(theta, gradient, m, v):
    """One step in double precision."""
    m, v = float(BETA1) * m + (1 - float(BETA1)) * gradient, float(BETA2) * v + (1 - float(BETA2)) * gradient**2
    return theta - float(STEP) * m / (np.sqrt(v) + float(EPSILON)), m, v


def random_table(n_values, width):
    rng = np.random.default_rng(n_values * width)
    theta = naive.normalize(rng.normal(size=(n_values, width)))
    m = 0.1 * rng.normal(size=(n_values, width))
    return rng, theta, m, m**2 + 0.1 * rng.random((n_values, width))


def single(array):
    """The table in single precision, and slack behind it that must stay as it is."""
    return np.concatenate([array.ravel(), np.full(2 * LANES, 0.5)]).astype(np.float32)


def cells(array, like):
    assert (array[like.size :] == 0.5).all()
    return array[: like.size].reshape(like.shape)


SHAPES = pytest.mark.parametrize(("n_values", "width"), [(1, 4), (2, 16), (5, 3), (3, 21), (40, 1), (7, 15), (16, 2)])


@SHAPES
@pytest.mark.parametrize("n_undrawn", [0, 3])
def test_drawn_sweep_is_pull_back_adam_and_normalisation(n_values, width, n_undrawn):
    """Steps that were not taken let the moments decay first."""
    rng, theta, m, v = random_table(n_values, width)
    d_theta = rng.normal(size=theta.shape)
    direction, second, table = single(m / (np.sqrt(v) + float(EPSILON))), single(v), single(theta)
    shares = np.full(theta.size + sweep.SWEEP_SCRATCH, np.nan, np.float32)
    sweep.sweep_drawn(
        single(d_theta), direction, second, table, width, n_values, n_undrawn, STEP, BETA1, BETA2, EPSILON, shares
    )
    gradient = d_theta - np.exp(theta) * d_theta.sum(axis=0)
    moved, m, v = naive_adam(theta, gradient, m * float(BETA1) ** n_undrawn, v * float(BETA2) ** n_undrawn)
    np.testing.assert_allclose(cells(direction, theta), m / (np.sqrt(v) + float(EPSILON)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(cells(second, theta), v, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(cells(table, theta), naive.normalize(moved), atol=2e-6)


@SHAPES
def test_undrawn_sweeps_are_steps_without_a_gradient(n_values, width):
    """One way along the direction stands for three steps of Adam."""
    _, theta, m, v = random_table(n_values, width)
    direction, table = single(m / (np.sqrt(v) + float(EPSILON))), single(theta)
    ratio = float(BETA1) / np.sqrt(float(BETA2))
    way = np.float32(float(STEP) * (ratio + ratio**2 + ratio**3))
    shares = np.full(theta.size + sweep.SWEEP_SCRATCH, np.nan, np.float32)
    sweep.sweep_undrawn(direction, table, width, n_values, way, shares)
    moved = theta
    for _ in range(3):
        moved, m, v = naive_adam(moved, 0.0, m, v)
    np.testing.assert_allclose(cells(table, theta), naive.normalize(moved), atol=2e-6)


@kernel
def repeat(columns, width, repeated):
    sweep.repeat_columns(load(columns, 0), width, repeated)


@kernel
def sums(table, width, n_values, out):
    store(out, 0, sweep.sum_columns(table, width, n_values))


@pytest.mark.parametrize("width", range(1, LANES))
def test_columns_are_repeated_and_summed(width):
    """A register may begin in any column, and lanes beyond the columns are undefined."""
    columns, repeated = np.arange(LANES, dtype=np.float32), np.full(3 * LANES, np.nan, np.float32)
    repeat(columns, width, repeated)
    used = np.arange(width - 1 + LANES)
    np.testing.assert_array_equal(repeated[used], used % width)
    table, out = np.arange(3 * width + LANES, dtype=np.float32), np.empty(LANES, np.float32)
    sums(table, width, 3, out)
    np.testing.assert_array_equal(out[:width], table[: 3 * width].reshape(3, width).sum(axis=0))


@pytest.mark.parametrize(("n_values", "width"), [(1, 1), (33, 1), (9, 2), (5, 3), (7, 6), (11, 8), (4, 13), (3, 15)])
def test_narrow_cpts_get_the_bits_of_wide_ones(n_values, width):
    """Columns are independent, so the columns of a CPT do not change if they are repeated to 16 or more columns."""
    rng, theta, m, v = random_table(n_values, width)
    d_theta, arrays = rng.normal(size=theta.shape), (m / (np.sqrt(v) + float(EPSILON)), v, theta)
    found = []
    for n_copies in (1, 16):
        wide, more = n_copies * width, [np.tile(one, (1, n_copies)) for one in (d_theta, *arrays)]
        gradient, direction, second, table = map(single, more)
        shares = np.full(more[0].size + sweep.SWEEP_SCRATCH, np.nan, np.float32)
        sizes = wide, n_values
        sweep.sweep_drawn(gradient, direction, second, table, *sizes, 2, STEP, BETA1, BETA2, EPSILON, shares)
        drawn = [cells(own, more[0])[:, :width].copy() for own in (direction, second, table)]
        sweep.sweep_undrawn(direction, table, *sizes, np.float32(0.02), shares)
        found.append([*drawn, cells(table, more[0])[:, :width]])
    for narrow, wide in zip(*found, strict=True):
        np.testing.assert_array_equal(narrow, wide)


def test_tiny_moments_are_flushed():
    theta = single(naive.normalize(np.zeros((2, 4))))
    direction, v = np.full(8 + LANES, 1e-25, np.float32), np.full(8 + LANES, 1.1755e-38, np.float32)
    shares = np.zeros(8 + sweep.SWEEP_SCRATCH, np.float32)
    zeros = np.zeros(8 + LANES, np.float32)
    sweep.sweep_drawn(zeros, direction, v, theta, 4, 2, 0, STEP, BETA1, BETA2, EPSILON, shares)
    assert not direction[:8].any()
    assert not v[:8].any()
