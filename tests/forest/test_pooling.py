"""Weights of pooled log posteriors, compared with loops and a search over a grid."""

import numpy as np
import pytest
from oracles import pooling as oracle
from scipy.special import log_softmax

from tanlearn.forest.pooling import RIDGE, _probabilities_of_being_best, fit_pool_weights, pooled


def draw(signals, n=80, n_classes=3, seed=0):
    """Return log posteriors of models with more or less information on the classes, the classes, and row weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    scores = [signal * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes)) for signal in signals]
    return log_softmax(np.array(scores), axis=2), y, rng.choice([0.5, 1.0, 3.0], n)


def test_pools_are_normalized_sums():
    log_p, _, _ = draw((1.0, 0.5, 0.2))
    weights = np.array([0.7, 0.6, 0.3])
    np.testing.assert_allclose(pooled(log_p[:2], weights[:2]), oracle.pool(log_p[:2], weights[:2]))
    np.testing.assert_allclose(pooled(log_p, weights), oracle.pool(log_p, weights))


PAIRS = [(1.0, 1.0), (2.0, 1.0), (0.3, 1.5), (1.5, -1.0), (0.0, 0.0)]
TRIPLES = [(1.0, 1.0, 1.0), (2.0, 1.0, 1.8), (0.3, 1.5, 1.4), (1.5, -1.0, 0.0)]


@pytest.mark.parametrize("signals", PAIRS + TRIPLES)
def test_the_start_is_the_probability_of_being_best(signals):
    log_p, y, sample_weight = draw(signals)
    found = _probabilities_of_being_best(log_p[:, np.arange(80), y], sample_weight)
    np.testing.assert_allclose(found, oracle.start(log_p, y, sample_weight), atol=1e-12)
    assert found.sum() == pytest.approx(1.0)


def test_the_start_of_models_of_clear_order_is_the_best_one():
    own_log_p = np.array([[-5.0, -5.001], [-0.1, -0.1], [-90.0, -90.0]])
    assert _probabilities_of_being_best(own_log_p, np.ones(2)).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("signals", PAIRS + TRIPLES)
def test_weights_have_the_least_penalized_loss(signals):
    log_p, y, sample_weight = draw(signals)
    found = fit_pool_weights(log_p, y, sample_weight)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, oracle.best_weights(log_p, y, sample_weight, RIDGE), atol=0.011)
    least = oracle.objective(log_p, y, sample_weight, found, RIDGE)
    for move in np.random.default_rng(0).normal(0, 0.02, (20, len(signals))):
        other = np.maximum(found + move, 0)
        assert oracle.objective(log_p, y, sample_weight, other, RIDGE) >= least - 1e-4


def test_a_useless_model_gets_hardly_any_weight():
    log_p, y, sample_weight = draw((2.0, -1.0), n=600)
    found = fit_pool_weights(log_p, y, sample_weight)
    assert found[1] == 0.0
    assert found[0] > 0.8


def test_useless_models_get_hardly_any_weight_beside_two_good_ones():
    log_p, y, sample_weight = draw((1.5, -1.0, 1.5), n=600)
    found = fit_pool_weights(log_p, y, sample_weight)
    assert found[1] == 0.0
    assert (found[[0, 2]] > 0.4).all()


def test_the_order_of_the_models_does_not_matter():
    log_p, y, sample_weight = draw((2.0, 1.0, 1.8))
    found = fit_pool_weights(log_p, y, sample_weight)
    for order in ([1, 2, 0], [2, 1, 0]):
        np.testing.assert_allclose(fit_pool_weights(log_p[order], y, sample_weight), found[order], atol=1e-4)


def test_a_single_model_keeps_its_place():
    log_p, y, sample_weight = draw((1.0,))
    found = fit_pool_weights(log_p, y, sample_weight)
    assert found.shape == (1,)
    assert found[0] == pytest.approx(oracle.best_weights(log_p, y, sample_weight, RIDGE)[0], abs=0.011)


@pytest.mark.parametrize("signals", [(1.0, 1.0), (1.0, 1.0, 1.0)])
def test_few_rows_leave_the_weights_where_they_start(signals):
    log_p, y, _ = draw(signals, n=4)
    found = fit_pool_weights(log_p, y, np.ones(4))
    np.testing.assert_allclose(found, oracle.start(log_p, y, np.ones(4)), atol=0.1)


@pytest.mark.parametrize("n_models", [2, 3])
def test_equal_models_share_the_weight(n_models):
    log_p, y, sample_weight = draw((1.0,) * n_models)
    log_p[1:] = log_p[0]
    found = fit_pool_weights(log_p, y, sample_weight)
    np.testing.assert_allclose(found, found[0], rtol=1e-6)
    assert 0.4 < found.sum() < 2.0


def test_a_weight_of_two_equals_two_rows():
    log_p, y, _ = draw((1.0, 0.7, 0.8))
    weight = np.arange(80) % 3
    rows = np.repeat(np.arange(80), weight)
    once = fit_pool_weights(log_p, y, weight)
    np.testing.assert_allclose(once, fit_pool_weights(log_p[:, rows], y[rows], np.ones(len(rows))), atol=1e-4)


@pytest.mark.parametrize("n_models", [2, 3])
def test_rounding_does_not_decide_between_equal_models(n_models):
    log_p, y, sample_weight = draw((1.0,) * n_models)
    log_p[1:] = log_p[0] - 1e-13
    found = fit_pool_weights(log_p, y, sample_weight)
    np.testing.assert_allclose(found, found[0], rtol=1e-4)


@pytest.mark.parametrize("n_models", [2, 3])
def test_models_that_all_mislead_keep_a_weight(n_models):
    log_p, y, sample_weight = draw((-3.0,) * n_models, n=400)
    assert fit_pool_weights(log_p, y, sample_weight).any()
