"""Weights are at a minimum, pulled to where they start as hard as left-out rows like it best."""

import numpy as np
import pytest
from oracles import weighing as oracle
from scipy.special import log_softmax

from tanlearn.forest import ridge as module
from tanlearn.forest.ridge import Problem, fit_weights


def draw(seed, n=200, truth=(2.0, 0.0, -1.0), n_classes=3):
    """Return rows whose classes are drawn from weights, and have weights themselves."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(len(truth), n, n_classes)).astype(np.float32)
    base = rng.normal(size=(n, n_classes))
    y = (np.tensordot(truth, scores, 1) + base + rng.gumbel(size=base.shape)).argmax(axis=1)
    return Problem.from_scores(scores, base, y, rng.random(n) + 0.5)


def divide(problem, n_folds):
    """Return rows outside and inside of every fold."""
    fold = np.arange(len(problem.y)) % n_folds
    return [(problem.take(fold != f), problem.take(fold == f)) for f in range(n_folds)]


def plain(problem):
    """Return a problem as the oracle takes it."""
    differences = problem.differences.astype(float).transpose(0, 2, 1)
    scores = np.concatenate([differences, np.zeros((*differences.shape[:2], 1))], axis=2)
    return scores, problem.base.T, problem.y, problem.sample_weight


def test_log_probabilities_are_those_of_the_softmax():
    problem = draw(0)
    weights = np.array([0.3, -2.0, 1.0])
    found = problem.log_p(weights)
    np.testing.assert_allclose(
        found, log_softmax(problem.base.T + np.tensordot(weights, plain(problem)[0], 1), axis=1), atol=1e-6
    )
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1)
    some = problem.take(np.array([5, 3]))
    np.testing.assert_array_equal(some.log_p(weights), found[[5, 3]])
    assert some.sample_weight.tolist() == problem.sample_weight[[5, 3]].tolist()


def test_log_probabilities_of_large_scores_are_finite():
    scores = np.array([[[1000.0, 0.0]], [[0.0, -1000.0]]], np.float32)  # two scores, of one row and two classes
    problem = Problem.from_scores(scores, np.array([[3000.0, 3000.0]]), np.array([0]), np.ones(1))
    np.testing.assert_allclose(problem.log_p(np.array([1.0, 0.0])), [[0.0, -1000.0]])
    np.testing.assert_allclose(problem.log_p(np.array([-1.0, -1.0])), [[-2000.0, 0.0]])


def test_the_minimum_is_lower_than_what_is_around_it():
    problem, start, ridge = draw(1), np.ones(3), 0.05
    found = problem.minimize(start, start, ridge, 100)

    def objective(weights):
        own = -problem.log_p(weights)[np.arange(200), problem.y]
        return np.average(own, weights=problem.sample_weight) + ridge / 2 * ((weights - start) ** 2).sum()

    for step in 0.1 * np.eye(3):
        assert objective(found) < min(objective(found + step), objective(found - step))
    stiff = problem.minimize(np.zeros(3), start, 1e6, 100)
    np.testing.assert_allclose(stiff, start, atol=1e-4)


def test_a_row_of_weight_two_is_two_rows():
    problem = draw(2)
    twice = np.random.default_rng(0).random(200) < 0.3
    doubled = Problem(problem.differences, problem.base, problem.y, 1.0 + twice)
    rows = np.repeat(np.arange(200), 1 + twice)
    repeated = Problem(problem.differences, problem.base, problem.y, np.ones(200)).take(rows)
    start = np.zeros(3)
    found = [own.minimize(start, start, 0.01, 100) for own in (doubled, repeated)]
    np.testing.assert_allclose(*found, atol=0.01)
    assert np.abs(found[0] - problem.minimize(start, start, 0.01, 100)).max() > 0.02


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("truth", [(2.0, 0.0, -1.0), (1.0, 1.1, 0.9)])
def test_the_ridge_is_the_oracle_s_choice(monkeypatch, seed, truth):
    monkeypatch.setattr(module, "_TOLERANCE", 1e-13)
    problem, rng = draw(seed, 90, truth), np.random.default_rng(seed)
    parts, start = divide(problem, 3), np.ones(3)
    starts, ridges = list(1 + 0.2 * rng.normal(size=(3, 3))), [1.0, 0.1, 0.01, 1e-3, 1e-4]
    found = fit_weights(problem, parts, start, starts, ridges)
    of_parts = [tuple(map(plain, part)) for part in parts]
    weights, fitted, log_p, ridge, losses = oracle.choose(plain(problem), of_parts, start, starts, ridges)
    assert oracle.closeness(losses) > 1e-5  # more than rounding
    assert found.ridge == ridge
    np.testing.assert_allclose(found.weights, weights, atol=1e-3)
    np.testing.assert_allclose(found.of_parts, fitted, atol=1e-3)
    for own, expected in zip(found.log_p, log_p, strict=True):
        np.testing.assert_allclose(own, expected, atol=5e-3)
    assert found.start_loss == pytest.approx(losses[0], abs=1e-5)
    assert found.log_loss == pytest.approx(min(losses), abs=1e-5)


def test_weaker_ridges_are_not_tried_once_one_is_worse(monkeypatch):
    problem, tried = draw(0, truth=(2.0,)), []

    def minimize(self, first, start, ridge, max_iter, lowest):
        tried.append(ridge)
        return np.array([{1.0: 1.0, 0.1: 0.999, 0.01: -3.0, 1e-3: 2.0}[ridge]])  # the last would be the best

    monkeypatch.setattr(Problem, "minimize", minimize)
    found = fit_weights(problem, divide(problem, 2), np.zeros(1), [np.zeros(1)] * 2, [1.0, 0.1, 0.01, 1e-3])
    assert found.ridge == 1.0
    assert tried == [1.0, 1.0, 0.1, 0.1, 0.01, 0.01, 1.0]


def test_weights_stay_where_left_out_rows_like_them_best():
    problem = draw(3, 40, [1.0] * 8)
    start = np.ones(8)
    found = fit_weights(problem, divide(problem, 2), start, [start, start], [1e-4, 1e-5])
    assert found.ridge == np.inf
    assert found.log_loss == found.start_loss
    assert [own.tolist() for own in (found.weights, *found.of_parts)] == [[1.0] * 8] * 3
    alone = fit_weights(problem, divide(problem, 2), start, [start, start], [1e-5])
    assert alone.ridge == np.inf  # a single ridge must lower the log loss, too
    assert alone.weights.tolist() == [1.0] * 8


def test_left_out_losses_are_of_weights_that_have_not_seen_the_rows():
    problem = draw(4, 90)
    parts, starts = divide(problem, 3), list(np.eye(3))
    found = fit_weights(problem, parts, np.ones(3), starts, [0.1])
    assert found.ridge == 0.1
    for (inside, outside), start, own, log_p in zip(parts, starts, found.of_parts, found.log_p, strict=True):
        np.testing.assert_array_equal(own, inside.minimize(start, start, 0.1, 60))
        np.testing.assert_array_equal(log_p, outside.log_p(own))
