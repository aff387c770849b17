"""Weights of pooled log posteriors, compared with loops and a search over a grid."""

import numpy as np
import pytest
from oracles import pooling as oracle
from scipy.special import log_softmax

from tanlearn.forest.pooling import RIDGE, fit_pool_weights, pooled


def draw(signals, n=80, n_classes=3, seed=0):
    """Return log posteriors of two models that say more or less of the classes, the classes, and weights of rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    scores = [signal * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes)) for signal in signals]
    return log_softmax(np.array(scores), axis=2), y, rng.choice([0.5, 1.0, 3.0], n)


def test_pools_are_normalized_sums():
    log_p, _, _ = draw((1.0, 0.5))
    weights = np.array([0.7, 0.6])
    np.testing.assert_allclose(pooled(log_p, weights), oracle.pool(log_p, weights))


@pytest.mark.parametrize("signals", [(1.0, 1.0), (2.0, 1.0), (0.3, 1.5), (1.5, -1.0), (0.0, 0.0)])
def test_weights_have_the_least_penalized_loss(signals):
    log_p, y, sample_weight = draw(signals)
    found = fit_pool_weights(log_p, y, sample_weight)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, oracle.best_weights(log_p, y, sample_weight, RIDGE), atol=0.011)
    least = oracle.objective(log_p, y, sample_weight, found, RIDGE)
    for move in np.random.default_rng(0).normal(0, 0.02, (20, 2)):
        other = np.maximum(found + move, 0)
        assert oracle.objective(log_p, y, sample_weight, other, RIDGE) >= least - 1e-4


def test_a_useless_model_gets_hardly_any_weight():
    log_p, y, sample_weight = draw((2.0, -1.0), n=600)
    found = fit_pool_weights(log_p, y, sample_weight)
    assert found[1] == 0.0
    assert found[0] > 0.8


def test_few_rows_leave_the_weights_where_they_start():
    log_p, y, _ = draw((1.0, 1.0), n=4)
    found = fit_pool_weights(log_p, y, np.ones(4))
    np.testing.assert_allclose(found, oracle.start(log_p, y, np.ones(4)), atol=0.1)


def test_equal_models_share_the_weight():
    log_p, y, sample_weight = draw((1.0, 1.0))
    log_p[1] = log_p[0]
    first, second = fit_pool_weights(log_p, y, sample_weight)
    assert first == pytest.approx(second)
    assert 0.2 < first < 1.0


def test_a_weight_of_two_equals_two_rows():
    log_p, y, _ = draw((1.0, 0.7))
    weight = np.arange(80) % 3
    rows = np.repeat(np.arange(80), weight)
    once = fit_pool_weights(log_p, y, weight)
    np.testing.assert_allclose(once, fit_pool_weights(log_p[:, rows], y[rows], np.ones(len(rows))), atol=1e-4)


def test_rounding_does_not_decide_between_equal_models():
    log_p, y, sample_weight = draw((1.0, 1.0))
    log_p[1] = log_p[0] - 1e-13
    first, second = fit_pool_weights(log_p, y, sample_weight)
    assert first == pytest.approx(second, rel=1e-4)


def test_models_that_both_mislead_keep_a_weight():
    log_p, y, sample_weight = draw((-3.0, -3.0), n=400)
    assert fit_pool_weights(log_p, y, sample_weight).any()
