"""Optimisers on functions whose minimum is known."""

import pickle

import numpy as np
import pytest
from oracles import losses as naive_losses
from scipy.optimize import minimize as scipy_minimize
from threadpoolctl import threadpool_info, threadpool_limits

from tanlearn._threads import in_threads
from tanlearn.training.optimizers import Adam, minimize_cg, minimize_lbfgs

CURVATURE = np.array([1.0, 10.0, 100.0])
CENTRE = np.array([1.0, -2.0, 3.0])


def quadratic(x):
    return float(CURVATURE @ (x - CENTRE) ** 2) / 2, CURVATURE * (x - CENTRE)


def rosenbrock(x):
    a, b = x
    return float((1 - a) ** 2 + 100 * (b - a**2) ** 2), np.array(
        [-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)]
    )


@pytest.fixture(params=[minimize_cg, minimize_lbfgs])
def minimize(request):
    return request.param


# ---------------------------------------------------------------------------------------------- minimisers


@pytest.mark.parametrize(
    ("fun", "x0", "minimum"), [(quadratic, [0, 0, 0], CENTRE), (rosenbrock, [-1.2, 1.0], [1.0, 1.0])]
)
def test_known_minimum_is_found(minimize, fun, x0, minimum):
    outcome = minimize(fun, x0, max_iter=200, tol=1e-8)
    np.testing.assert_allclose(outcome.x, minimum, atol=1e-6)
    assert outcome.fun == pytest.approx(0, abs=1e-12)
    assert outcome.converged
    assert outcome.grad_norm <= 1e-8
    assert outcome.grad_norm == np.abs(fun(outcome.x)[1]).max()
    assert 1 <= outcome.n_iter < 200
    assert len(outcome.history) == 1 + outcome.n_iter
    assert outcome.history[-1].loss == outcome.fun
    assert outcome.message


def test_start_at_the_minimum_converges_at_once(minimize):
    outcome = minimize(quadratic, CENTRE)
    assert (outcome.fun, outcome.grad_norm, outcome.n_iter, outcome.converged) == (0, 0, 0, True)
    assert [iteration.loss for iteration in outcome.history] == [0]


def blas_threads():
    """Return the numbers of threads that the libraries of BLAS of this process would use."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_has_one_thread_while_anybody_minimises(minimize, n_jobs):
    seen = []

    def watched(x):
        seen.append(blas_threads())
        return quadratic(x)

    with threadpool_limits(3, "blas"):
        before = blas_threads()
        in_threads(lambda _: minimize(watched, np.zeros(3)), range(4), n_jobs)
        assert len(seen) > 4
        assert set().union(*seen) == {1}
        assert blas_threads() == before != {1}
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda _: minimize(lambda x: 1 / 0, np.zeros(3)), range(4), n_jobs)
        assert blas_threads() == before


@pytest.mark.parametrize("max_iter", [1, 3])
def test_max_iter_ends_the_search_and_is_not_convergence(minimize, max_iter):
    outcome = minimize(rosenbrock, [-1.2, 1.0], max_iter=max_iter)
    assert outcome.n_iter == max_iter
    assert not outcome.converged
    assert "iterations" in outcome.message.lower()
    assert outcome.fun < rosenbrock([-1.2, 1.0])[0]


@pytest.mark.parametrize("max_iter", [4, 200])
def test_the_history_costs_no_evaluation(minimize, max_iter):
    calls = []

    def counted(x):
        calls.append(None)
        return rosenbrock(x)

    outcome = minimize(counted, [-1.2, 1.0], max_iter=max_iter)
    method, options = ("CG", {}) if minimize is minimize_cg else ("L-BFGS-B", {"ftol": 0.0})
    options |= {"maxiter": max_iter, "gtol": 1e-5}
    assert len(calls) == scipy_minimize(rosenbrock, [-1.2, 1.0], method=method, jac=True, options=options).nfev
    assert outcome.history[0].n_evaluations == 1
    assert outcome.history[-1].n_evaluations == len(calls)


def test_callback_sees_every_iterate_and_can_end_the_search(minimize):
    seen = []

    def third_time(x):
        seen.append(x.copy())
        return len(seen) == 3

    outcome = minimize(rosenbrock, [-1.2, 1.0], callback=third_time)
    assert outcome.n_iter == len(seen) == 3
    np.testing.assert_array_equal(outcome.x, seen[-1])
    assert outcome.fun == rosenbrock(seen[-1])[0]
    assert [iteration.loss for iteration in outcome.history] == [rosenbrock(x)[0] for x in ([-1.2, 1.0], *seen)]
    assert not outcome.converged
    assert outcome.message == "Stopped by the callback."


def test_search_ended_by_the_callback_has_not_converged(minimize):
    # The gradient is 300 at the start and below 250 after one step, where tol would end the search as well.
    outcome = minimize(quadratic, np.zeros(3), tol=250, callback=lambda x: True)
    assert outcome.n_iter == 1
    assert outcome.grad_norm <= 250
    assert not outcome.converged


def test_callback_that_never_stops_changes_nothing(minimize):
    free, watched = (minimize(rosenbrock, [-1.2, 1.0], callback=c) for c in (None, lambda x: False))
    np.testing.assert_array_equal(free.x, watched.x)
    assert free[1:] == watched[1:]


def test_small_gains_do_not_end_the_search_before_tol(minimize):
    # A large constant hides the progress: SciPy's default for L-BFGS would stop at a gradient of about 1e-3.
    outcome = minimize(lambda x: (quadratic(x)[0] + 1e4, quadratic(x)[1]), np.zeros(3), tol=1e-6)
    assert outcome.grad_norm < 1e-4


def test_gradient_array_may_be_reused(minimize):
    buffer = np.empty(2)

    def in_place(x):
        value, buffer[:] = rosenbrock(x)
        return value, buffer

    expected, found = (minimize(fun, [-1.2, 1.0]) for fun in (rosenbrock, in_place))
    np.testing.assert_array_equal(found.x, expected.x)


def test_start_is_left_alone_and_may_be_float32(minimize):
    x0 = np.array([-1.2, 1.0], np.float32)
    outcome = minimize(rosenbrock, x0, max_iter=5)
    assert outcome.x.dtype == np.float64
    np.testing.assert_array_equal(x0, np.array([-1.2, 1.0], np.float32))


@pytest.mark.parametrize(
    ("value", "gradient", "found"),
    [
        (np.inf, [0.0, 0.0], "loss is inf, and 0 of 2"),
        (np.nan, [0.0, 0.0], "loss is nan, and 0 of 2"),
        (1.0, [np.nan, 0.0], "loss is 1.0, and 1 of 2"),
    ],
)
def test_start_must_be_finite(minimize, value, gradient, found):
    with pytest.raises(ValueError, match=found):
        minimize(lambda x: (value, np.array(gradient)), np.zeros(2))


@pytest.mark.parametrize(
    ("x0", "options", "message"),
    [
        (np.zeros((2, 2)), {}, r"x0 must be a vector, got shape \(2, 2\)"),
        (np.zeros(2), {"max_iter": 0}, "max_iter must be at least 1 .* got 0"),
        (np.zeros(2), {"tol": -1.0}, "tol at least 0, got 100 and -1.0"),
        (np.zeros(2), {"tol": np.nan}, "tol at least 0, got 100 and nan"),
    ],
)
def test_illegal_arguments_of_minimisers_are_refused(minimize, x0, options, message):
    with pytest.raises(ValueError, match=message):
        minimize(rosenbrock, x0, **options)


# ---------------------------------------------------------------------------------------------------- Adam


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_follows_the_naive_loop(dtype):
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=5).astype(dtype), rng.normal(size=(20, 5)).astype(dtype)
    x = start.copy()
    adam = Adam(x, learning_rate=0.01, beta1=0.8, beta2=0.99, epsilon=1e-3)
    for gradient in gradients:
        adam.step(x, gradient)
    expected, m, v = naive_losses.adam(start, gradients, 0.01, 0.8, 0.99, 1e-3)
    eps = np.finfo(dtype).eps
    assert adam.t == 20
    assert x.dtype == adam.m.dtype == adam.v.dtype == dtype
    np.testing.assert_allclose(x, expected, atol=16 * eps)
    np.testing.assert_allclose(adam.m, m, atol=16 * eps)
    np.testing.assert_allclose(adam.v, v, atol=16 * eps)


def test_first_step_has_the_length_of_the_learning_rate():
    # m = 0.1 g and v = 0.001 g^2, so the step is 3e-3 g / (|g| + 1e-7 / sqrt(0.001)) by hand.
    x = np.zeros(3)
    Adam(x).step(x, np.array([2.0, -0.5, 1e-6]))
    np.testing.assert_allclose(x, [-3e-3, 3e-3, -7.2076e-4], rtol=1e-4)


def test_learning_rate_of_a_step_overrides_the_default():
    x, y = np.zeros(2), np.zeros(2)
    Adam(x, learning_rate=0.5).step(x, np.ones(2), 0.125)
    Adam(y, learning_rate=0.125).step(y, np.ones(2))
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_reaches_the_minimum_of_a_quadratic(dtype):
    x = np.zeros(3, dtype)
    adam = Adam(x)
    for rate in np.geomspace(0.1, 1e-4, 1000):
        adam.step(x, quadratic(x)[1].astype(dtype), rate)
    np.testing.assert_allclose(x, CENTRE, atol=1e-4)


def test_pickled_adam_goes_on_where_it_was():
    x = np.array([1.0, -2.0])
    adam = Adam(x, learning_rate=0.1)
    for _ in range(3):
        adam.step(x, 2 * x)
    again, y = pickle.loads(pickle.dumps((adam, x)))
    for _ in range(3):
        adam.step(x, 2 * x)
        again.step(y, 2 * y)
    assert again.t == adam.t == 6
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("parameter", "value", "rule"),
    [
        ("learning_rate", -1, "at least 0"),
        ("learning_rate", np.nan, "at least 0"),
        ("beta1", 1.0, "from 0 to below 1"),
        ("beta2", -0.1, "from 0 to below 1"),
        ("epsilon", 0, "above 0"),
    ],
)
def test_illegal_adam_parameters_are_named(parameter, value, rule):
    with pytest.raises(ValueError, match=f"{parameter} must be {rule}.*, got {value}"):
        Adam(np.zeros(2), **{parameter: value})


@pytest.mark.parametrize("x", [np.zeros((2, 2)), np.zeros(2, int)])
def test_adam_wants_a_vector_of_floats(x):
    with pytest.raises(ValueError, match="x must be a float32 or float64 vector, got shape"):
        Adam(x)


@pytest.mark.parametrize(
    ("x", "gradient", "name"),
    [
        (np.zeros(2), np.zeros(3), "gradient"),
        (np.zeros(2), np.zeros(2, np.float32), "gradient"),
        (np.zeros(3), np.zeros(2), "x"),
    ],
)
def test_arrays_unlike_the_moments_are_refused(x, gradient, name):
    adam = Adam(np.zeros(2))
    with pytest.raises(ValueError, match=rf"{name} must have shape \(2,\) and type float64 like the moments"):
        adam.step(x, gradient)
    assert adam.t == 0
