"""A temperature of the evidence: the class frequencies are what is left of a model that knows nothing."""

import json
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
    load,
    read_bif,
    write_bif,
)
from tanlearn.baselines import ChowLiu
from tanlearn.models.calibration import EvidenceCalibration
from tanlearn.parameters.held_out_calibration import calibrate, temper_evidence


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


def test_the_margins_of_a_replacement():
    """At least 4 nats and two standard errors, or 1 nat and one where joint scores are no better than frequencies."""
    outcomes, rng, rows = set(), np.random.default_rng(0), np.arange(60)
    for _ in range(150):
        log_pi = np.log(rng.dirichlet(rng.choice([2.0, 50.0], (1, 1)).repeat(3)))
        scores, y = scores_of(60, rng.choice([0.0, 0.4, 1.0]), 1.0, log_pi, rng.integers(1000))
        scores += rng.choice([0.0, 0.5]) * rng.normal(size=scores.shape)
        weights, joint = rng.integers(1, 4, 60), Calibration(rng.choice([0.5, 1.0, 1.5, 3.0, 10.0]))
        distances = scores.max(axis=1, keepdims=True) - scores
        found = temper_evidence(distances, y, weights, np.tile(log_pi, (60, 1)), joint)
        by_joint = -joint.log_posterior(scores)[rows, y]
        gains = by_joint + log_softmax((scores - log_pi) / found.temperature + log_pi, axis=1)[rows, y]
        gain, standard_error = (weights * gains).sum(), np.sqrt((weights * gains**2).sum())
        assert found.gain == pytest.approx(gain / weights.sum(), abs=1e-12)
        assert found.is_no_evidence == ((weights * (by_joint + log_pi[y])).sum() >= 0)
        nats, errors = (1, 1) if found.is_no_evidence else (4, 2)
        reasons = bool(gain > nats), bool(gain > errors * standard_error)
        outcomes.add((found.is_no_evidence, *reasons))
        assert found.is_better == all(reasons)
    assert len(outcomes) == 8  # the test meets gains on both sides of each margin


@pytest.mark.parametrize("n", [50, 100, 1000])
@pytest.mark.parametrize("least", [0.01, 0.5, 3.0])
def test_rows_that_are_all_classified_correctly_do_not_ask_for_certainty(n, least):
    """Of equally frequent classes, the two temperatures are the same."""
    y = np.arange(n) % 2
    distances = np.where(y[:, np.newaxis] == [0, 1], 0.0, np.random.default_rng(0).uniform(least, 50, (n, 1)))
    found, joint = found_for(-distances, y, np.log([0.5, 0.5]))
    assert not found.is_better
    assert joint.temperature > 0.5
    assert found.temperature == pytest.approx(joint.temperature, rel=1e-4)


def test_scores_that_hardly_differ_have_a_small_temperature():
    alike = np.log(np.full(3, 1 / 3))
    scores, y = scores_of(3000, 1.0, 0.0015, alike)
    assert found_for(scores, y, alike)[0].temperature == pytest.approx(0.0015, rel=0.15)


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


def unequal(n, seed=0):
    """Return rows of 40 columns, one of them informative, and a class of 15 %."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.15).astype(int)
    X = rng.integers(0, 4, (n, 40))
    X[:, 0] = np.where(rng.random(n) < 0.5, y, X[:, 0])
    return X.astype(str), y


@pytest.fixture(scope="module")
def tempered():
    """Return a classifier whose evidence alone is divided, and new rows."""
    X, y = unequal(300)
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    frequencies = np.bincount(y) / len(y)
    model.calibration_ = EvidenceCalibration.of_frequencies(
        6.0, np.log(frequencies)
    )  # whether folds would choose it or not
    return model, *unequal(500, seed=1)


def test_the_network_keeps_the_frequencies_of_the_classes(tempered):
    model, X, _ = tempered
    assert np.exp(model.tables_.log_prior)[1] == pytest.approx(0.15, abs=0.05)
    assert model.describe()["class_probabilities"][1] == pytest.approx(0.15, abs=0.05)
    assert (model.sample(2000, random_state=0)[1] == 1).mean() == pytest.approx(0.15, abs=0.05)
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(model.calibration_.log_posterior(joint), model.predict_log_proba(X))


def test_every_form_of_the_model_predicts_the_same_classes(tempered, tmp_path):
    model, X, _ = tempered
    classes = model.predict(X)
    np.testing.assert_array_equal(classes, model.predict_proba(X).argmax(axis=1))
    assert (classes != model.predict_joint_log_proba(X).argmax(axis=1)).any()  # the shift changes some
    one_by_one = model.row_predictor()
    assert [one_by_one.predict(tuple(row)) for row in X[:100].tolist()] == classes[:100].tolist()
    model.save(tmp_path / "m.tan")
    again = load(tmp_path / "m.tan")
    assert again.calibration_ == model.calibration_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert json.loads(json.dumps(model.describe()))["calibration"]["prior_shift"] == [*model.calibration_.prior_shift]
    write_bif(model, tmp_path / "m.bif")
    read = read_bif(tmp_path / "m.bif")
    np.testing.assert_allclose(read.predict_proba(X), model.predict_proba(X), rtol=1e-6)
    rounded = model.with_bits((8, 8))
    assert type(rounded.calibration_) is Calibration
    np.testing.assert_allclose(rounded.predict_proba(X), model.predict_proba(X), atol=0.02)
    assert (rounded.predict(X) == classes).mean() > 0.98


def test_contributions_to_log_odds_add_up_to_the_probabilities(tempered):
    model, X, _ = tempered
    log_p = model.predict_log_proba(X)
    odds = model.explain(X, against=0).sum(axis=1)
    np.testing.assert_allclose(odds, log_p - log_p[:, [0]], atol=1e-9)
    np.testing.assert_allclose(model.explain(X).sum(axis=1), model.predict_joint_log_proba(X), atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_tables_of_few_bits_keep_the_temperature_of_the_joint_scores(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (150, 30)).astype(str), (rng.random(150) < 0.1).astype(int)
    learner = HybridCV(learners=[StochasticGradient(bits=8, n_epochs=5)], max_iter=20)
    model = NaiveBayesClassifier(parameters=learner).fit(X, y)
    assert type(model.calibration_) is Calibration


@pytest.mark.parametrize("shift", [(np.nan, 0.0), (np.inf, 0.0), ("a", 0.0), (True, 0.0)])
def test_a_shift_of_no_finite_numbers_is_refused(shift):
    with pytest.raises(ValueError, match="prior_shift of a calibration must contain finite numbers"):
        EvidenceCalibration(2.0, prior_shift=shift)


def test_a_prior_of_ones_own_replaces_what_the_temperature_needs():
    model = NaiveBayesClassifier(parameters=LBFGS(loss=ConditionalNLL()), class_prior=[0.5, 0.5]).fit(NOISE, RARE)
    nothing = model.predict_proba(np.full((1, 12), None))
    np.testing.assert_allclose(nothing, 0.5, atol=0.02)
