"""The convex relaxation: its optimum, and re-normalisation without a change of the posteriors."""

import sys

import numpy as np
import pytest
from oracles import parameters as naive_parameters
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_digits

from tanlearn import (
    BayesNetClassifier,
    ConjugateGradient,
    ConvexRelaxation,
    EncodedData,
    Margin,
    NaiveBayesClassifier,
    Structure,
    Tables,
)
from tanlearn._memory import TableMemoryError
from tanlearn.models.log_joint import log_posterior
from tanlearn.parameters.convex_relaxation import renormalize
from tanlearn.structures.table_layout import TableLayout

RNG = np.random.default_rng(0)
STRUCTURES = {
    "naive Bayes": [-1, -1, -1, -1],
    "chain upwards": [1, 2, 3, -1],
    "fork": [-1, 0, 0, 2],
    "two parents": [[-1, -1], [0, -1], [0, 1], [2, 1]],
    "three parents": [[-1] * 3, [0, -1, -1], [1, 0, -1], [0, 2, 1]],
    "two parents, numbered backwards": [[2, 3], [3, -1], [1, 3], [-1, -1]],
}


def noisy_data(n=40, weight=None):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    X = np.stack([np.where(rng.random(n) < 0.7, y, 1 - y), rng.integers(0, 2, n)], axis=1)
    return EncodedData.from_codes(X, y, n_states=[2, 2], n_classes=2, sample_weight=weight)


def random_tables(parents):
    rng = np.random.default_rng(2)
    n_states = np.array([2, 3, 4, 2])
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, n_states, 3)
    codes = np.stack([rng.integers(0, k, 200) for k in n_states]).astype(np.uint8)
    return structure, Tables(layout, rng.normal(scale=3, size=layout.n_cells)), codes


@pytest.mark.parametrize("name", STRUCTURES)
def test_posteriors_are_those_before_renormalisation(name):
    structure, tables, codes = random_tables(STRUCTURES[name])
    before = tables.cells.copy()
    normalised = renormalize(structure, tables)
    posteriors = [log_posterior(tables.layout.log_joint(codes, cells)) for cells in (before, normalised.cells)]
    np.testing.assert_allclose(posteriors[0], posteriors[1], atol=1e-12)
    np.testing.assert_array_equal(tables.cells, before)
    assert logsumexp(normalised.log_prior) == pytest.approx(0, abs=1e-12)
    for i in range(4):
        np.testing.assert_allclose(normalised.probabilities(i).sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (Structure([[-1, -1], [-1, -1], [0, 1]]), "one of the parents 0 and 1 of feature 2 must have all the others"),
        (Structure([1, 0, -1], allow_cycles=True), "with a cycle"),
    ],
)
def test_structures_that_cannot_be_renormalised_are_refused(structure, message):
    data = EncodedData.from_codes([[0, 1, 0], [1, 0, 1]], [0, 1])
    with pytest.raises(ValueError, match=message):
        ConvexRelaxation().fit(structure, data, RNG)


def scipy_optimum(data, parents, slack, epsilon):
    """Eq. 9 by sequential quadratic programming, with the slack of every row in the variables."""
    delta, sample = naive_parameters.margin_rows(data.codes.T, data.y, parents, data.n_states, data.n_classes)
    sums = naive_parameters.distribution_rows(parents, data.n_states, data.n_classes)
    n_cells, n = delta.shape[1], data.n_samples
    pick = np.eye(n)[sample]
    low = -np.inf if epsilon is None else np.log(epsilon)

    def objective(v):
        gamma, eps = v[n_cells], v[n_cells + 1 :]
        return 0.5 / gamma**2 + slack * data.weights @ eps

    def d_objective(v):
        return np.concatenate([np.zeros(n_cells), [-(v[n_cells] ** -3.0)], slack * data.weights])

    margins = np.hstack([delta, -np.ones((len(delta), 1)), pick])
    constraints = [
        {"type": "ineq", "fun": lambda v: margins @ v, "jac": lambda v: margins},
        {
            "type": "ineq",
            "fun": lambda v: 1 - sums @ np.exp(v[:n_cells]),
            "jac": lambda v: np.hstack([-sums * np.exp(v[:n_cells]), np.zeros((len(sums), 1 + n))]),
        },
    ]
    start = np.concatenate([np.full(n_cells, -2.0), [1.0], np.full(n, 1.0)])
    bounds = [(low, None)] * n_cells + [(1e-3, None)] + [(0, None)] * n
    result = minimize(
        objective,
        start,
        jac=d_objective,
        method="SLSQP",
        bounds=bounds,
        constraints=constraints,
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success, result.message
    return result.fun, result.x[n_cells]


@pytest.mark.parametrize("parents", [[-1, -1], [-1, 0]], ids=["naive Bayes", "tree"])
@pytest.mark.parametrize("epsilon", [None, 0.2], ids=["eq. 9", "bounded"])
def test_the_optimum_is_that_of_another_solver(parents, epsilon):
    pytest.importorskip("cvxpy")
    data, structure = noisy_data(n=24, weight=np.random.default_rng(4).integers(1, 3, 24)), Structure(parents)
    learner = ConvexRelaxation(slack=0.01, epsilon=epsilon)
    learner.fit(structure, data, RNG)
    value, gamma = scipy_optimum(data, structure.parents, 0.01, epsilon)
    assert learner.objective_ == pytest.approx(value, rel=1e-4)
    assert learner.margin_ == pytest.approx(gamma, rel=1e-3)
    assert learner.n_iter_ > 0
    assert learner.converged_


def test_tables_that_are_too_large_are_refused():
    data = EncodedData.from_codes([[0, 0, 0], [1, 1, 1]], [0, 1], n_states=[60_000] * 3)
    with pytest.raises(TableMemoryError):
        ConvexRelaxation().fit(Structure([[-1, -1], [0, -1], [0, 1]]), data, RNG)


def test_an_inaccurate_optimum_is_no_convergence(monkeypatch):
    cvxpy = pytest.importorskip("cvxpy")
    monkeypatch.setattr(cvxpy.Problem, "status", cvxpy.OPTIMAL_INACCURATE)
    learner = ConvexRelaxation()
    learner.fit(Structure([-1, -1]), noisy_data(), RNG)
    assert not learner.converged_


def test_the_lower_bound_binds_in_that_comparison():
    pytest.importorskip("cvxpy")
    values = []
    for epsilon in (None, 0.2):
        learner = ConvexRelaxation(slack=0.01, epsilon=epsilon)
        learner.fit(Structure([-1, -1]), noisy_data(n=24), RNG)
        values.append(learner.objective_)
    assert values[1] > 1.01 * values[0]


def test_without_a_lower_bound_slack_only_scales():
    pytest.importorskip("cvxpy")
    reached = []
    for slack in (1e-3, 1e-2):
        learner = ConvexRelaxation(slack=slack, epsilon=None)
        learner.fit(Structure([-1, -1]), noisy_data(), RNG)
        reached.append((learner.objective_, learner.margin_))
    (value, gamma), (value_10, gamma_10) = reached
    assert value_10 / value == pytest.approx(10 ** (2 / 3), rel=1e-3)
    assert gamma_10 / gamma == pytest.approx(10 ** (-1 / 3), rel=1e-3)


def test_weight_two_is_the_row_twice_and_weight_zero_none():
    pytest.importorskip("cvxpy")
    weight = np.random.default_rng(3).integers(0, 3, 40)
    values = []
    for data in (noisy_data(weight=weight), noisy_data().take(np.repeat(np.arange(40), weight))):
        learner = ConvexRelaxation(epsilon=0.01)
        learner.fit(Structure([-1, 0]), data, RNG)
        values.append(learner.objective_)
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.filterwarnings("ignore:discretization left")
@pytest.mark.parametrize("parent", [[-1] * 8, [-1, 0, 1, 2, 3, 4, 5, 6]], ids=["naive Bayes", "chain"])
def test_accuracy_is_like_that_of_conjugate_gradient_on_digits(parent):
    pytest.importorskip("cvxpy")
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 4][:, [20, 21, 26, 28, 36, 42, 43, 44]], y[y < 4]
    rates = {}
    for learner in (ConvexRelaxation(), ConjugateGradient(loss=Margin(scale=0.1), max_iter=30)):
        model = BayesNetClassifier(structure=Structure(parent), parameters=learner).fit(X[:150], y[:150])
        for i in range(8):
            np.testing.assert_allclose(model.tables_.probabilities(i).sum(axis=0), 1, rtol=1e-9)
        rates[type(learner).__name__] = model.score(X[150:], y[150:])
    assert rates["ConvexRelaxation"] > rates["ConjugateGradient"] - 0.03


def test_separable_classes_have_an_optimum_with_a_lower_bound():
    pytest.importorskip("cvxpy")
    X, y = [["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]], [0, 0, 1, 1]
    model = NaiveBayesClassifier(parameters=ConvexRelaxation(slack=1, epsilon=0.01)).fit(X, y)
    assert model.score(X, y) == 1
    # At best one feature has probabilities log 0.99 and log 0.01, and the other and the prior none.
    assert model.parameters_.margin_ == pytest.approx(np.log(0.99 / 0.01), rel=1e-3)


def test_without_cvxpy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r'pip install "tanlearn\[convex\]"'):
        ConvexRelaxation().fit(Structure([-1, -1]), noisy_data(), RNG)


def test_a_failing_solver_is_reported():
    pytest.importorskip("cvxpy")
    with pytest.raises(RuntimeError, match=r"not solved: .*NOPE.* is not installed.*use another solver"):
        ConvexRelaxation(solver="NOPE").fit(Structure([-1, -1]), noisy_data(), RNG)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (ConvexRelaxation(slack=0), "'slack' parameter of ConvexRelaxation"),
        (ConvexRelaxation(epsilon=0.5), "epsilon must be below one over the number of values, got 0.5 and .* 2 values"),
    ],
)
def test_bad_parameters_are_named(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(Structure([-1, -1]), noisy_data(), RNG)


def test_missing_values_are_refused():
    data = EncodedData.from_codes([[0, -1], [1, 1]], [0, 1])
    with pytest.raises(ValueError, match=r"complete rows only.*feature 1 in row 0"):
        ConvexRelaxation().fit(Structure([-1, -1]), data, RNG)


@pytest.mark.parametrize("size", [1e-14, 1e-6, 0.01])
def test_light_weights_count_in_proportion(size):
    pytest.importorskip("cvxpy")
    one, light = (noisy_data(weight=np.full(40, float(weight))) for weight in (1, size))
    found, expected = (ConvexRelaxation().fit(Structure([-1, 0]), data, RNG).cells for data in (light, one))
    np.testing.assert_allclose(found, expected, atol=1e-6)
