"""Scales of scores against an oracle, and which one suits rows against a search without gradients."""

import numpy as np
import pytest
from oracles import calibration as oracle
from scipy.optimize import minimize

from tanlearn import Calibration
from tanlearn.parameters.calibration import BOUNDS, calibrate

INF = np.inf


@pytest.mark.parametrize("scale", [(1.0, 1.0), (3.0, 1.0), (0.5, 0.6), (40.0, 1.7)])
def test_probabilities_are_those_of_the_definition(scale):
    scores = np.random.default_rng(0).normal(-50, 9, (30, 4))
    scores[3] = -700.0
    scores[4, :2] = scores[4].max() + 1
    scores[5, 1] = -INF
    found = Calibration(*scale).log_posterior(scores)
    expected = [oracle.probabilities(row, *scale) for row in scores.tolist()]
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-12)
    np.testing.assert_array_equal(found.argmax(axis=1), scores.argmax(axis=1))
    np.testing.assert_array_equal(Calibration(*scale).log_posterior(np.full((1, 4), -INF)), np.log([[0.25] * 4]))


@pytest.mark.parametrize("scale", [(1.0, 1.0), (3.0, 1.0), (0.5, 0.6), (40.0, 1.7)])
def test_scores_become_the_probabilities_that_were_asked_for(scale):
    p = np.vstack([np.random.default_rng(1).dirichlet(np.ones(4), 20), [0.5, 0.0, 0.5, 0.0], [0.25] * 4])
    with np.errstate(divide="ignore"):
        scores = Calibration(*scale).scores(np.log(p))
    np.testing.assert_allclose(np.exp(Calibration(*scale).log_posterior(scores)), p, rtol=1e-9)
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1)


def drawn_rows(n, temperature, power, seed=2):
    """Return distances of rows whose classes have the probabilities of a scale, and these classes."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 8, (n, 3))
    y = np.array([rng.choice(3, p=oracle.probabilities(row, temperature, power)) for row in scores.tolist()])
    return scores.max(axis=1, keepdims=True) - scores, y


@pytest.mark.parametrize(("power", "smoothing"), [(0.6, 0.0), (1.5, 0.0), (0.6, 0.3)])
def test_no_other_scale_suits_the_rows_better(power, smoothing, monkeypatch):
    monkeypatch.setattr("tanlearn.parameters.calibration.CLEARLY", -INF)
    distances, y = drawn_rows(500, 4.0, power)
    weights = np.random.default_rng(3).integers(1, 4, 500)
    rows = (-distances).tolist()

    def log_loss(x):
        return oracle.log_loss(rows, y, weights, *np.exp(np.clip(x, *BOUNDS.T)), smoothing)

    alone = minimize(lambda x: log_loss([x[0], 0.0]), [1.0], method="Nelder-Mead")
    best = minimize(log_loss, [1.0, 0.0], method="Nelder-Mead")
    found = calibrate(distances, y, weights, np.exp(alone.x[0]), smoothing)
    assert log_loss(np.log(found)) == pytest.approx(best.fun, rel=1e-5)
    assert best.fun < alone.fun


def test_a_power_that_is_there_is_found():
    distances, y = drawn_rows(4000, 4.0, 0.6)
    found = calibrate(distances, y, np.ones(4000), 4.0)
    assert found == pytest.approx((4.0, 0.6), rel=0.15)


def test_a_power_that_is_not_there_stays_one():
    """Without a threshold it would never be 1."""
    for seed in range(10):
        distances, y = drawn_rows(200, 4.0, 1.0, seed)
        assert calibrate(distances, y, np.ones(200), 4.0) == Calibration(4.0)


def test_weights_are_repeated_rows_and_scales_are_bounded():
    distances, y = drawn_rows(300, 4.0, 0.6)
    weights = np.random.default_rng(4).integers(0, 4, 300)
    again = calibrate(np.repeat(distances, weights, axis=0), np.repeat(y, weights), np.ones(weights.sum()), 4.0)
    weighted = calibrate(distances, y, weights, 4.0)
    assert weighted.power < 1
    # A row of weight 3 says as much as three rows, but is less of a proof, of which only the threshold is.
    assert weighted == pytest.approx(again, rel=1e-4)
    two = np.array([[0.0, 1.0], [0.0, 2.0]] * 50)
    certain = calibrate(two, np.zeros(100, np.intp), np.ones(100), 1.0)  # always right: nothing is too certain
    assert np.isfinite(certain).all()
    assert 0.5 <= certain.power <= 2
    assert 1e-3 <= certain.temperature <= 1e3
