"""L-BFGS without bounds: directions, step lengths, and the minima of known functions."""

import itertools

import numpy as np
import pytest
from oracles import quasi_newton as oracle
from scipy.optimize import rosen, rosen_der

from tanlearn.training import lbfgs as module
from tanlearn.training.lbfgs import FLATTER, SUFFICIENT, minimize_without_bounds
from tanlearn.training.optimizers import minimize_lbfgs

CURVATURE = np.array([1.0, 10.0, 100.0])
CENTER = np.array([1.0, -2.0, 3.0])


def quadratic(x):
    return float(CURVATURE @ (x - CENTER) ** 2) / 2, CURVATURE * (x - CENTER)


def rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


def softplus(x):
    """A convex function whose slope is nearly constant far from the minimum."""
    return float(np.logaddexp(0, x).sum() - 0.01 * x.sum()), 1 / (1 + np.exp(-x)) - 0.01


CASES = pytest.mark.parametrize(
    ("fun", "x0", "minimum"),
    [
        (quadratic, np.zeros(3), CENTER),
        (rosenbrock, np.array([-1.2, 1.0]), np.ones(2)),
        (rosenbrock, np.full(30, 0.5), np.ones(30)),
        (softplus, np.array([40.0, -3.0]), np.full(2, np.log(0.01 / 0.99))),
    ],
)


@CASES
def test_known_minimum_is_found(fun, x0, minimum):
    before = x0.copy()
    found = minimize_without_bounds(fun, x0, max_iter=300, tol=1e-9)
    np.testing.assert_array_equal(x0, before)
    np.testing.assert_allclose(found.x, minimum, atol=1e-6)
    assert found.converged
    assert found.fun == fun(found.x)[0] == found.history[-1].loss
    assert found.grad_norm == np.abs(fun(found.x)[1]).max() <= 1e-9
    assert found.n_iter == len(found.history) - 1
    other = minimize_lbfgs(fun, x0, max_iter=300, tol=1e-9)
    assert found.history[-1].n_evaluations <= 2 * other.history[-1].n_evaluations


@CASES
def test_every_step_fulfills_the_conditions_of_wolfe(fun, x0, minimum):
    points = [x0, *(minimize_without_bounds(fun, x0, max_iter=n, tol=0.0).x for n in range(1, 12))]
    for x, after in itertools.pairwise(points):
        if (x == after).all():
            break
        (value, gradient), (value_after, gradient_after) = fun(x), fun(after)
        slope = gradient @ (after - x)
        rounding = 1e-12 * (1 + abs(value))
        assert slope < 0
        assert value_after <= value + SUFFICIENT * slope + rounding
        assert abs(gradient_after @ (after - x)) <= -FLATTER * slope + rounding


@pytest.mark.parametrize("n_steps", [0, 1, 4, 15])
def test_directions_are_those_of_the_full_inverse_curvature(n_steps):
    rng = np.random.default_rng(n_steps)
    steps = rng.normal(size=(n_steps, 6))
    root = rng.normal(size=(6, 6))
    changes = steps @ (root @ root.T + np.eye(6))
    own = module._Steps()
    for step, change in zip(steps, changes, strict=True):
        own.add(step, change)
    gradient = rng.normal(size=6)
    expected = oracle.direction(gradient, steps[-10:], changes[-10:])
    np.testing.assert_allclose(own.direction(gradient), expected, rtol=1e-8)


def test_steps_along_which_the_function_is_not_convex_are_left_out():
    own = module._Steps()
    own.add(np.ones(2), -np.ones(2))
    own.add(np.ones(2), np.zeros(2))
    assert not own.pairs


def test_start_at_the_minimum_ends_at_once():
    found = minimize_without_bounds(quadratic, CENTER)
    assert (found.fun, found.grad_norm, found.n_iter, found.converged) == (0, 0, 0, True)


def test_gradients_whose_squares_vanish_do_not_end_in_an_error():
    found = minimize_without_bounds(lambda x: (1e-200 * x.sum(), np.full_like(x, 1e-200)), np.ones(2), tol=0.0)
    assert np.isfinite(found.x).all()
    assert not found.converged


def test_search_ends_after_the_largest_number_of_iterations_or_at_a_small_decrease():
    found = minimize_without_bounds(rosenbrock, np.array([-1.2, 1.0]), max_iter=3, tol=0.0)
    assert (found.n_iter, found.converged) == (3, False)
    found = minimize_without_bounds(rosenbrock, np.array([-1.2, 1.0]), max_iter=300, tol=0.0, least_decrease=0.1)
    losses = [one.loss for one in found.history]
    decreases = -np.diff(losses) / np.maximum(np.abs(losses[:-1]), 1.0)
    assert decreases[-1] <= 0.1 < decreases[:-1].min()


def test_callback_sees_each_point_and_stops_the_search():
    points = []
    found = minimize_without_bounds(rosenbrock, np.zeros(2), callback=lambda x: points.append(x) or len(points) == 4)
    assert (found.n_iter, found.converged, found.message) == (4, False, "Stopped by the callback.")
    expected = [minimize_without_bounds(rosenbrock, np.zeros(2), max_iter=n).x for n in range(1, 5)]
    np.testing.assert_array_equal(points, expected)
    np.testing.assert_array_equal(found.x, points[-1])


def test_infinite_values_shorten_the_step():
    def barrier(x):
        """Return x - log(x) for positive x, infinite elsewhere."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (float((x - np.log(x)).sum()), 1 - 1 / x) if (x > 0).all() else (np.inf, np.full(len(x), np.nan))

    found = minimize_without_bounds(barrier, np.array([0.01, 5.0]), tol=1e-8)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)


def test_search_ends_if_no_step_lowers_the_value():
    found = minimize_without_bounds(lambda x: (float(x @ x), -2 * x), np.ones(2))  # the gradient has the wrong sign
    assert not found.converged
    assert found.n_iter == 0
    assert found.message == "No step lowers the value."


@pytest.mark.parametrize(("value", "slope"), [(np.nan, 0.0), (0.0, np.inf)])
def test_start_must_be_finite(value, slope):
    with pytest.raises(ValueError, match="must be finite at the initial parameters"):
        minimize_without_bounds(lambda x: (value, np.full(2, slope)), np.zeros(2))
