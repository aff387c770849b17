"""Scales of scores against an oracle, and which one suits rows against a search without gradients."""

import json
from dataclasses import asdict, astuple

import numpy as np
import pytest
from oracles import calibration as oracle
from scipy.optimize import minimize
from scipy.special import log_softmax

from tanlearn import LBFGS, Calibration, ConditionalNLL, EncodedData, MaximumLikelihood, Structure
from tanlearn.models.calibration import EvidenceCalibration, decision_tables
from tanlearn.models.log_joint import log_joint
from tanlearn.parameters import held_out_calibration
from tanlearn.parameters.held_out_calibration import calibrate, temper_evidence
from tanlearn.parameters.held_out_selection import choose

INF = np.inf


@pytest.mark.parametrize("scale", [(1.0, 1.0), (3.0, 1.0), (0.5, 0.6, 4.0), (40.0, 1.7, 0.3)])
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


def test_beyond_the_pivot_a_power_below_one_makes_less_sure():
    scores = np.array([[0.0, -2.0], [0.0, -4.0], [0.0, -8.0]])
    alone, bent = (np.exp(Calibration(3.0, power, 4.0).log_posterior(scores))[:, 0] for power in (1, 0.5))
    assert bent[0] > alone[0]
    assert bent[1] == pytest.approx(alone[1])
    assert bent[2] < alone[2]


@pytest.mark.parametrize("value", [0.0, -1, INF, np.nan, "2", None, True])
@pytest.mark.parametrize("name", ["temperature", "power", "pivot"])
def test_a_scale_is_made_of_positive_numbers(name, value):
    with pytest.raises(ValueError, match=f"the {name} of a calibration must be a positive number, got"):
        Calibration(**{name: value})
    assert astuple(Calibration(**{name: np.float32(2)})).count(2.0) == 1


def test_the_evidence_alone_is_divided():
    """log p(c | x) = (s_c - log pi_c) / T + log pi_c, up to the row's constant."""
    rng = np.random.default_rng(1)
    scores, log_pi = rng.normal(-20, 9, (30, 3)), np.log([0.7, 0.25, 0.05])
    scores[0, 1] = -INF
    for temperature in (0.5, 1.0, 6.0):
        found = EvidenceCalibration.of_frequencies(temperature, log_pi)
        expected = (scores - log_pi) / temperature + log_pi
        np.testing.assert_allclose(found.log_posterior(scores), log_softmax(expected, axis=1), rtol=1e-12)
        np.testing.assert_array_equal(found.shifted(scores).argmax(axis=1), expected.argmax(axis=1))
        alone = found.unshifted()
        assert alone == Calibration(temperature)
        np.testing.assert_allclose(
            alone.log_posterior(found.shifted(scores)), found.log_posterior(scores), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("made", [Calibration(3.0, 0.6, 2.0), EvidenceCalibration(2.0, prior_shift=(0.5, -1.0))])
def test_a_calibration_survives_its_state(made):
    again = Calibration.of_state(json.loads(json.dumps(asdict(made))))
    assert (type(again), again) == (type(made), made)
    assert made.unshifted() == Calibration(made.temperature, made.power, made.pivot)


def test_numbers_of_a_calibration_are_pythons():
    made = EvidenceCalibration(np.float32(2), np.int64(1), 1, prior_shift=np.array([1, 2], np.float32))
    assert [type(value) for value in (*astuple(made)[:3], *made.prior_shift)] == [float] * 5
    assert made.prior_shift == (1.0, 2.0)
    for others in ({"power": 0.5}, {"pivot": 2.0}):
        with pytest.raises(ValueError, match="needs power and pivot 1"):
            EvidenceCalibration(2.0, **others, prior_shift=(0.0, 0.0))
    with pytest.raises(ValueError, match="the temperature of a calibration must be a positive number"):
        EvidenceCalibration(-2.0, prior_shift=(0.0, 0.0))


def test_decision_tables_have_the_shift_in_their_prior():
    rng = np.random.default_rng(2)
    data = EncodedData.from_codes(rng.integers(0, 3, (60, 2)), np.arange(60) % 4 // 3)
    structure = Structure([-1, 0])
    tables = MaximumLikelihood().fit(structure, data, rng)
    assert decision_tables(tables, Calibration(3.0, 0.5, 2.0)) is tables
    evidence = EvidenceCalibration.of_frequencies(5.0, tables.log_prior)
    shifted = decision_tables(tables, evidence)
    np.testing.assert_allclose(shifted.log_prior, log_softmax(5.0 * tables.log_prior), rtol=1e-12)
    scores, expected = (log_joint(own, structure, data.codes) for own in (shifted, tables))
    expected = evidence.shifted(expected)
    np.testing.assert_allclose(scores - scores[:, :1], expected - expected[:, :1], atol=1e-12)
    np.testing.assert_array_equal(tables.log_prior, MaximumLikelihood().fit(structure, data, rng).log_prior)


def drawn_rows(n, temperature, power, seed=2):
    """Return distances of rows whose classes have the probabilities of a scale, and these classes."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 8, (n, 3))
    y = np.array([rng.choice(3, p=oracle.probabilities(row, temperature, power, 8.0)) for row in scores.tolist()])
    return scores.max(axis=1, keepdims=True) - scores, y


@pytest.mark.parametrize("power", [0.6, 1.5])
def test_no_other_scale_suits_the_rows_better(power, monkeypatch):
    monkeypatch.setattr("tanlearn.parameters.held_out_calibration.NATS", -INF)
    monkeypatch.setattr("tanlearn.parameters.held_out_calibration.STANDARD_ERRORS", -INF)
    distances, y = drawn_rows(300, 4.0, power)
    weights = np.random.default_rng(3).integers(1, 4, 300)
    rows = (-distances).tolist()

    def loss(x):
        return sum(oracle.log_loss(rows, y, weights, np.exp(x[0]), np.exp(x[1]), 8.0))

    alone = minimize(lambda x: loss([x[0], 0.0]), [1.0], method="Nelder-Mead")
    best = minimize(loss, [1.0, 0.0], method="Nelder-Mead")
    found = calibrate(distances, y, weights, 30.0)
    assert found.temperature == pytest.approx(np.exp(alone.x[0]), rel=1e-3)
    assert sum(oracle.log_loss(rows, y, weights, *astuple(found))) == pytest.approx(best.fun, rel=1e-5)
    assert best.fun < alone.fun - 1


@pytest.mark.parametrize("power", [0.6, 1.7])
def test_a_power_that_is_there_is_found(power):
    distances, y = drawn_rows(4000, 4.0, power)
    found = calibrate(distances, y, np.ones(4000), 1.0)
    assert found.power == pytest.approx(power, rel=0.1)
    expected = [oracle.probabilities(row, 4.0, power, 8.0) for row in (-distances).tolist()]
    np.testing.assert_allclose(np.exp(found.log_posterior(-distances)), expected, atol=0.04)


@pytest.mark.parametrize("temperature", [1.0, 4.0, 10.0])
def test_a_power_that_is_not_there_stays_one(temperature):
    """Wherever the search for a temperature begins. (Without thresholds the power would never be 1.)"""
    for seed in range(5):
        distances, y = drawn_rows(400, temperature, 1.0, seed)
        found = calibrate(distances, y, np.ones(400), 1.0)
        assert found.power == 1
        assert 0.5 < found.temperature / temperature < 2


def losses_of(found, distances, y):
    return -found.log_posterior(-distances)[np.arange(len(y)), y]


def test_a_power_is_fitted_only_where_its_gain_is_clear(monkeypatch):
    """Clear: at least 4 nats, two standard errors of the weighted gains, and a power 5 % away from 1."""
    outcomes = set()
    for seed in range(60):
        distances, y = drawn_rows(60, 4.0, (0.5, 0.75, 1.0, 1.5)[seed % 4], seed)
        weights = np.random.default_rng(seed).integers(1, 4, 60)
        found = calibrate(distances, y, weights, 1.0)
        with monkeypatch.context() as patch:
            patch.setattr(held_out_calibration, "NATS", INF)
            alone = calibrate(distances, y, weights, 1.0)
            patch.setattr(held_out_calibration, "NATS", -INF)
            patch.setattr(held_out_calibration, "STANDARD_ERRORS", -INF)
            patch.setattr(held_out_calibration, "CHANGE", 0.0)
            both = calibrate(distances, y, weights, 1.0)
        gains = losses_of(alone, distances, y) - losses_of(both, distances, y)
        gain, standard_error = (weights * gains).sum(), np.sqrt((weights * gains**2).sum())
        reasons = (
            gain > 4,
            gain > 2 * standard_error,
            gain > 3 * standard_error,
            abs(np.log(both.power)) >= np.log(1.05),
        )
        outcomes.add(reasons[:3])
        assert found == (both if reasons[0] and reasons[1] and reasons[3] else alone)
    assert {(True, True, False), (False, True, False), (True, True, True), (False, False, False)} <= outcomes


@pytest.mark.parametrize(("power", "bound"), [(0.2, 0.5), (5.0, 2.0)])
def test_a_power_is_at_least_a_half_and_at_most_two(power, bound):
    distances, y = drawn_rows(2000, 4.0, power)
    assert calibrate(distances, y, np.ones(2000), 1.0).power == pytest.approx(bound)


def test_scores_without_information_have_the_largest_temperature():
    distances = np.stack([np.zeros(100), np.full(100, 50.0)], axis=1)
    y, weights = np.arange(100) % 2, np.ones(100)
    found = calibrate(distances, y, weights, 1.0)
    assert found.temperature == pytest.approx(1000)
    alone = temper_evidence(distances, y, weights, np.log(np.full((100, 2), 0.5)), found)
    assert alone.temperature == pytest.approx(1000, rel=1e-4)


@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_rows_that_are_all_right_ask_for_no_power(n):
    distances = np.stack([np.zeros(n), np.random.default_rng(0).uniform(3, 50, n)], axis=1)
    found = calibrate(distances, np.zeros(n, np.intp), np.ones(n), 1.0)
    assert found.power == 1
    assert 0.5 < found.temperature < 5


def test_two_rows_are_one_of_weight_two():
    for n in (60, 150, 300, 600):
        distances, y = drawn_rows(n, 4.0, 0.6)
        weights = np.random.default_rng(4).integers(1, 5, n)
        again = calibrate(np.repeat(distances, weights, axis=0), np.repeat(y, weights), np.ones(weights.sum()), 4.0)
        weighted = calibrate(distances, y, weights, 4.0)
        assert astuple(weighted) == pytest.approx(astuple(again), rel=1e-3)


def test_rows_that_choose_also_calibrate():
    """Pairs of copied features, whom naive Bayes believes twice: weighted rows, in two parts."""
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 3000)
    hints = (y[:, np.newaxis] ^ (rng.random((3000, 3)) < 0.2)).astype(int)
    X = np.where(rng.random((3000, 1)) < 0.5, np.repeat(hints[:, :1], 9, axis=1), np.repeat(hints, 3, axis=1))
    data = EncodedData.from_codes(X, y, sample_weight=rng.integers(0, 3, 3000))
    present = np.flatnonzero(data.weights)
    parts = [(data.take(present[k::2]), data.take(present[1 - k :: 2])) for k in (0, 1)]
    structure = Structure.naive_bayes(9)
    choice = choose([LBFGS(loss=ConditionalNLL())], structure, parts, iterations=[0])
    scores, rows, weights = [], [], []
    for train, held_out in parts:
        tables = MaximumLikelihood().fit(structure, train, rng)
        scores += tables.layout.log_joint(held_out.codes, tables.cells).tolist()
        rows += held_out.y.tolist()
        weights += held_out.weights.tolist()

    def loss(x):
        return sum(oracle.log_loss(scores, rows, weights, np.exp(x[0]), np.exp(x[1]).clip(0.5, 2)))

    best = minimize(loss, [1.0, 0.0], method="Nelder-Mead")
    assert choice.calibration.power != 1
    own = sum(oracle.log_loss(scores, rows, weights, *astuple(choice.calibration)))
    assert own == pytest.approx(best.fun, rel=1e-5)
