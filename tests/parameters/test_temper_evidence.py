"""A temperature of the evidence: the class frequencies are what is left of a model that knows nothing."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from tanlearn import (
    LBFGS,
    BayesNetClassifier,
    Calibration,
    ConditionalNLL,
    CrossTuned,
    HybridCV,
    KTreeClassifier,
    NaiveBayesClassifier,
    StochasticGradient,
    TANClassifier,
)
from tanlearn.baselines import ChowLiu
from tanlearn.parameters.calibration import calibrate, temper_evidence


def scores_of(n, truth, wrong, log_pi, seed=0):
    """Return rows whose evidence is ``wrong`` times too sure, and classes drawn from what it truly says."""
    rng = np.random.default_rng(seed)
    evidence = truth * rng.normal(size=(n, len(log_pi)))
    p = np.exp(log_softmax(evidence + log_pi, axis=1))
    y = (rng.random(n)[:, np.newaxis] > p.cumsum(axis=1)).sum(axis=1).clip(0, len(log_pi) - 1)
    return wrong * evidence + log_pi, y


LOG_PI = np.log([0.9, 0.07, 0.03])


def found_for(scores, y, log_pi=LOG_PI):
    distances, ones = scores.max(axis=1, keepdims=True) - scores, np.ones(len(y))
    joint = calibrate(distances, y, ones, 1.0)
    return temper_evidence(distances, y, ones, np.tile(log_pi, (len(y), 1)), joint), joint


def mean_loss(scores, y):
    return -log_softmax(scores, axis=1)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("wrong", [0.5, 4.0, 20.0])
def test_the_temperature_is_the_one_that_suits_the_evidence(wrong):
    scores, y = scores_of(3000, 1.0, wrong, LOG_PI)
    found, joint = found_for(scores, y)

    def loss(log_t):
        return mean_loss((scores - LOG_PI) / np.exp(log_t) + LOG_PI, y)

    best = minimize_scalar(loss, bounds=(-3, 5), method="bounded")
    assert loss(np.log(found.temperature)) == pytest.approx(best.fun, rel=1e-6)
    assert found.temperature == pytest.approx(wrong, rel=0.15)
    by_joint = -joint.log_posterior(scores)[np.arange(len(y)), y].mean()
    assert found.gain == pytest.approx(by_joint - best.fun, rel=1e-4)


def test_it_replaces_the_other_calibration_only_where_it_is_clearly_better():
    assert found_for(*scores_of(3000, 1.0, 20.0, LOG_PI))[0].is_better
    assert not found_for(*scores_of(3000, 1.0, 1.0, LOG_PI))[0].is_better
    alike = np.log(np.full(3, 1 / 3))
    assert not found_for(*scores_of(3000, 1.0, 20.0, alike), alike)[0].is_better  # the two are one


def test_scores_that_say_nothing_leave_the_frequencies():
    scores, y = scores_of(500, 0.0, 1.0, LOG_PI)
    scores = LOG_PI + 5 * np.random.default_rng(1).normal(size=scores.shape)
    found, _ = found_for(scores, y)
    assert found.is_no_evidence
    assert found.is_better
    assert found.temperature > 20
    assert mean_loss((scores - LOG_PI) / found.temperature + LOG_PI, y) <= mean_loss(np.tile(LOG_PI, (500, 1)), y)


RNG = np.random.default_rng(0)
NOISE, RARE = RNG.integers(0, 4, (80, 12)).astype(str), (RNG.random(80) < 0.2).astype(int)
NEW, NEW_RARE = RNG.integers(0, 4, (2000, 12)).astype(str), (RNG.random(2000) < 0.2).astype(int)
LEARNERS = {
    "HybridCV": NaiveBayesClassifier(parameters=HybridCV()),
    "LBFGS": NaiveBayesClassifier(parameters=LBFGS(loss=ConditionalNLL())),
    "StochasticGradient": BayesNetClassifier(
        structure=ChowLiu(), parameters=StochasticGradient(n_epochs=20), random_state=0
    ),
    "CrossTuned": NaiveBayesClassifier(parameters=CrossTuned(param_grid={}, cv=3)),
    "TAN": TANClassifier(n_epochs=50, random_state=0),
    "order-free, a loss": TANClassifier(candidates="order-free", loss=ConditionalNLL(), n_epochs=50, random_state=0),
    "k-tree": KTreeClassifier(n_epochs=20, random_state=0),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_what_learns_nothing_becomes_class_frequencies(name):
    """Columns of noise and a rare class; without this, log losses were 1.1 to 3 times those of frequencies."""
    model = LEARNERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(NOISE, RARE)
    rate = (RARE.sum() + 1) / (len(RARE) + 2)
    frequencies = -np.where(NEW_RARE, np.log(rate), np.log(1 - rate)).mean()
    p = model.predict_proba(NEW)
    assert -np.log(p[np.arange(2000), NEW_RARE]).mean() < 1.1 * frequencies
    np.testing.assert_array_equal(model.predict(NEW), p.argmax(axis=1))
    assert model.calibration_ != Calibration()


def test_a_prior_of_ones_own_replaces_what_the_temperature_needs():
    model = NaiveBayesClassifier(parameters=LBFGS(loss=ConditionalNLL()), class_prior=[0.5, 0.5]).fit(NOISE, RARE)
    nothing = model.predict_proba(np.full((1, 12), None))
    np.testing.assert_allclose(nothing, 0.5, atol=0.02)
