"""Extended Baum-Welch."""

import numpy as np
import pytest
from oracles import parameters as naive_parameters

from tanlearn import (
    LBFGS,
    ConditionalNLL,
    EncodedData,
    ExtendedBaumWelch,
    Margin,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
)
from tanlearn.parameters.extended_baum_welch import minimize_ebw
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.objectives import Objective

RNG = np.random.default_rng(0)
CHAIN = Structure([-1, 0, 1])


def random_data(n=60, weight=None):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, n)
    X = np.stack([(y + rng.integers(0, 2, n)) % 3, rng.integers(0, 2, n) * (y > 0), rng.integers(0, 4, n)], axis=1)
    return EncodedData.from_codes(X, y, n_states=[3, 2, 4], sample_weight=weight)


@pytest.mark.parametrize("parents", [[-1, -1, -1], [-1, 0, 1], [[-1, -1], [0, -1], [0, 1]]])
def test_one_step_is_the_update_of_the_papers(parents):
    structure, data = Structure(parents), random_data(weight=np.random.default_rng(2).integers(1, 4, 60))
    start = MaximumLikelihood(alpha=1).fit(structure, data, RNG)
    tables = ExtendedBaumWelch(max_iter=1).fit(structure, data, RNG)
    prior, expected = naive_parameters.baum_welch_step(
        data.codes.T,
        data.y,
        data.weights,
        np.exp(start.log_prior),
        [start.probabilities(i) for i in range(3)],
        structure.parents,
        multiple=2,  # the first tried, and large enough here
    )
    np.testing.assert_allclose(np.exp(tables.log_prior), prior, rtol=1e-10)
    for i in range(3):
        np.testing.assert_allclose(tables.probabilities(i), expected[i], rtol=1e-10)


@pytest.mark.parametrize("loss", [ConditionalNLL(), Margin(scale=0.3)], ids=lambda loss: type(loss).__name__)
def test_no_iteration_raises_the_loss_and_distributions_stay_normalised(loss):
    data, path = random_data(), []
    learner = ExtendedBaumWelch(loss=loss, max_iter=50)
    start = learner.start(CHAIN, data, RNG)
    tables = learner.improve(start, data, path.append)
    objective = Objective(start.layout, data, loss)
    values = [objective(step.cells)[0] for step in [start, *path]]
    assert len(path) == 50
    assert np.diff(values).max() <= 1e-15
    assert values[-1] < values[0]
    np.testing.assert_array_equal(tables.cells, path[-1].cells)
    for i in range(3):
        np.testing.assert_allclose(tables.probabilities(i).sum(axis=0), 1, rtol=1e-12)


def test_the_conditional_likelihood_comes_near_that_of_lbfgs():
    data, structure = random_data(n=200), Structure([-1, -1, -1])
    values = []
    for learner in (ExtendedBaumWelch(max_iter=1000), LBFGS(loss=ConditionalNLL(), max_iter=1000)):
        tables = learner.fit(structure, data, RNG)
        values.append(Objective(tables.layout, data, ConditionalNLL())(tables.cells)[0])
    start = MaximumLikelihood().fit(structure, data, RNG)
    gain = Objective(start.layout, data, ConditionalNLL())(start.cells)[0] - values[1]
    assert values[0] - values[1] < 0.02 * gain


def test_weight_two_is_the_row_twice():
    weight = np.random.default_rng(3).integers(1, 4, 60)
    weighted = ExtendedBaumWelch(max_iter=5).fit(CHAIN, random_data(weight=weight), RNG)
    repeated = ExtendedBaumWelch(max_iter=5).fit(CHAIN, random_data().take(np.repeat(np.arange(60), weight)), RNG)
    np.testing.assert_allclose(weighted.cells, repeated.cells, rtol=1e-9)


def test_reasons_to_end():
    data = random_data()
    start = MaximumLikelihood().fit(CHAIN, data, RNG)
    objective = Objective(start.layout, data, ConditionalNLL())

    def sum_of_losses(x):
        value, gradient = objective(x)
        return 60 * value, 60 * gradient

    ended = minimize_ebw(sum_of_losses, start.cells, max_iter=3, layout=start.layout)
    assert (ended.n_iter, ended.converged, ended.message) == (3, False, "Reached max_iter.")
    ended = minimize_ebw(sum_of_losses, start.cells, callback=lambda x: True, layout=start.layout)
    assert (ended.n_iter, ended.converged, ended.message) == (1, False, "Stopped by the callback.")
    assert [iteration.loss for iteration in ended.history] == [sum_of_losses(x)[0] for x in (start.cells, ended.x)]
    ended = minimize_ebw(sum_of_losses, start.cells, tol=60.0, layout=start.layout)
    assert (ended.n_iter, ended.converged) == (0, True)
    np.testing.assert_array_equal(ended.x, start.cells)

    def uphill(x):
        value, gradient = sum_of_losses(x)
        return value, -gradient

    ended = minimize_ebw(uphill, start.cells, layout=start.layout)
    assert (ended.n_iter, ended.converged) == (0, False)
    assert "No multiple" in ended.message


LAYOUT = TableLayout.of_parents(Structure([-1]).parents, np.array([2]), 2)
EVEN = np.full(6, np.log(0.5))  # a class prior, and a feature given each class
PAIRS = np.array([[0, 1], [2, 4], [3, 5]])  # cells of a distribution


def steep(x, slope):
    """Return the gradient, by log-probabilities, of a function that rises by the first of two probabilities."""
    d_theta = np.zeros(6)
    d_theta[PAIRS] = [slope, -slope]
    p = np.exp(x)
    d_theta[PAIRS] -= (p * d_theta)[PAIRS].sum(axis=1, keepdims=True)
    return p * d_theta


def test_multiples_start_at_half_the_last_one_and_double_until_the_loss_does_not_rise():
    """The function rises for all steps of a multiple below 16."""
    tried, accepted = [], [EVEN]

    def fun(x):
        g = -steep(accepted[-1], 50.0) * np.exp(-accepted[-1])
        step = np.exp(x[0] - accepted[-1][0]) - 1
        if step:
            tried.append(round(g[0] / (1 - g[0]) / step, 6))
        return -len(accepted) if not step or tried[-1] >= 16 else 1e9, steep(x, 50.0)

    found = minimize_ebw(fun, EVEN, layout=LAYOUT, max_iter=3, callback=accepted.append)
    assert found.n_iter == 3
    assert tried == [2, 4, 8, 16, 8, 16, 8, 16]


def test_no_iteration_more_than_halves_a_probability():
    path = [EVEN]

    def falling(x):
        return -len(path), steep(x, 1e6)

    found = minimize_ebw(falling, EVEN, layout=LAYOUT, max_iter=3, callback=path.append)
    assert (found.n_iter, found.fun) == (3, -3.0)
    falls = np.diff(np.exp(path), axis=0) / np.exp(path[:-1])
    assert falls.min(axis=1) == pytest.approx([-0.5] * 3, abs=1e-4)


def test_reasons_to_end_at_their_limits():
    gradient = np.tile([-0.5, 0.5], 3)

    def level(x):
        return 1.0, gradient

    ended = minimize_ebw(level, EVEN, layout=LAYOUT, max_iter=2, tol=0.4)  # an equal loss is no rise
    assert (ended.n_iter, ended.message) == (2, "Reached max_iter.")
    ended = minimize_ebw(level, EVEN, layout=LAYOUT, tol=0.5)  # no entry is larger than tol
    assert (ended.n_iter, ended.converged) == (0, True)
    assert ended.message == "No entry of the gradient is larger than tol."
    for least, n_iter, message in (
        (-700.0, 0, "A probability is next to zero."),
        (-699.0, 1, "Reached max_iter."),
    ):
        start = np.append([np.log1p(-np.exp(least)), least], EVEN[2:])
        ended = minimize_ebw(lambda x: (1.0, np.append([0.0, 0.0], gradient[2:])), start, layout=LAYOUT, max_iter=1)
        assert (ended.n_iter, ended.converged, ended.message) == (n_iter, False, message)


def test_inside_an_estimator():
    X = [["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]] * 5
    model = NaiveBayesClassifier(parameters=ExtendedBaumWelch()).fit(X, [0, 0, 1, 1] * 5)
    assert model.score(X, [0, 0, 1, 1] * 5) == 1
