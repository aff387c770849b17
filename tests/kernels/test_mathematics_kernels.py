"""Normalisation and its pull-back."""

import math

import numpy as np
import pytest
from oracles import networks as naive

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


NORMAL = [1.0, 2.2250738585072014e-308, 1.7976931348623157e308]
NORMAL += np.exp(np.random.default_rng(0).uniform(-700, 700, 200)).tolist()
NEAR_ONE = [0.5, 0.70710678, 0.70710679, 1 - 1e-9, 1 + 1e-9, 1.4142136, 3.0, 7340.0]


def test_logarithm_of_normal_numbers():
    for x in NORMAL + NEAR_ONE:
        assert abs(mathematics.log_normal(x) - np.log(x)) <= 4e-16 * max(1.0, abs(np.log(x)))


def test_logarithms_of_all_numbers_from_zero():
    x = np.array([0.0, 5e-324, 1e-310, *NORMAL, *NEAR_ONE])
    out = np.empty_like(x)
    mathematics.log_all(x, out)
    assert out[0] == -np.inf
    expected = [math.log(value) for value in x[1:]]
    np.testing.assert_allclose(out[1:], expected, rtol=4e-16, atol=4e-16)


def test_exponentials_of_numbers_up_to_zero():
    x = np.array([0.0, -1e-300, -1e-9, -0.34, -0.35, -1.0, -707.9, *np.random.default_rng(0).uniform(-707, 0, 200)])
    out = np.empty_like(x)
    mathematics.exp_all(x, out)
    np.testing.assert_allclose(out, [math.exp(value) for value in x], rtol=4e-16)
    assert out[0] == 1.0
    assert [mathematics.exp(value) for value in (-708.5, -1e5, -np.inf)] == [0.0, 0.0, 0.0]
    assert np.isnan(mathematics.exp(np.nan))


@pytest.mark.parametrize("name", ["log_normal", "exp"])
def test_every_operation_is_rounded_as_python_rounds_it(name):
    """Nothing is fused and nothing reordered, so a CPU with fused instructions finds what one without them finds."""
    compiled = getattr(mathematics, name)
    plain = getattr(compiled, "py_func", compiled)
    values = [*NORMAL, *NEAR_ONE] if name == "log_normal" else (-np.geomspace(1e-9, 700, 500)).tolist()
    assert [compiled(x) for x in values] == [float(plain(np.float64(x))) for x in values]


@pytest.mark.parametrize("total", [1e-300, 0.3, 1.0, 7340.0, 1e9, 1e300])
def test_units_leave_room_for_every_sum_and_are_fine(total):
    scale = mathematics.unit_scale(total)
    assert math.frexp(scale)[0] == 0.5  # a power of two
    for n_parts in (1, 3, 10**6):
        size = abs(n_parts * (total / n_parts) * math.log(total / n_parts)) * scale
        assert size < 2**62
    assert mathematics.xlogx(total, scale) / scale == pytest.approx(total * math.log(total), rel=1e-15, abs=1 / scale)
    assert scale >= min(2.0**1000, 2**49 / (total * (abs(math.log(total)) + 1)))


@pytest.mark.parametrize(
    ("x", "value"), [(2.0, 2 * math.log(2)), (3, 3 * math.log(3)), (1.0, 0), (0.0, 0), (-1e-17, 0)]
)
def test_xlogx_is_zero_at_zero_and_below(x, value):
    assert mathematics.xlogx(x, 2.0**50) == pytest.approx(value * 2**50, abs=1)


def test_nats_are_a_mean_that_is_not_negative():
    assert mathematics.nats(np.int64(3 * 2**50), 2.0**50, 2.0) == 1.5
    assert mathematics.nats(np.int64(-1), 2.0**50, 2.0) == 0.0
    assert mathematics.nats(np.int64(0), 1.0, 0.0) == 0.0


def test_xlogx_comes_from_the_table_or_is_computed():
    units = np.empty(9, np.int64)
    mathematics.tabulate_xlogx(2.0**40, units)
    for x in (0, 1.0, 5, 8.0, 9.0, 12, -1e-17, -3):
        expected = mathematics.xlogx(x, 2.0**40)
        assert mathematics.tabulated_xlogx(x, 2.0**40, units) == expected
        assert mathematics.tabulated_xlogx(x, 2.0**40, units[:0]) == expected
        assert expected / 2**40 == pytest.approx(x * math.log(x) if x > 0 else 0.0)
