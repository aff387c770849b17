"""Expectation maximization over classes: each iteration against enumeration, and its objective never decreases."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import elimination as naive
from oracles import networks
from oracles import unlabeled as oracle

from tanlearn import Calibration, EncodedData, ExpectationMaximization, MaximumLikelihood, Structure
from tanlearn.parameters.held_out_calibration import calibrate
from tanlearn.parameters.unlabeled_rows import fit_unlabeled

RNG = np.random.default_rng(0)
N_STATES = [2, 3, 2]
STRUCTURES = [Structure([-1, -1, -1]), Structure([-1, 0, 1]), Structure([[-1, -1], [0, -1], [0, 1]])]
every_structure = pytest.mark.parametrize("structure", STRUCTURES)


def rows(n, missing=0.3, seed=0, weight=None):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, N_STATES, (n, 3))
    X[rng.random(X.shape) < missing] = -1
    return EncodedData.from_codes(X, rng.integers(0, 2, n), n_states=N_STATES, n_classes=2, sample_weight=weight)


def samples(data):
    """Return the rows as lists, with -1 for missing values."""
    return np.where(data.codes == 255, -1, data.codes.astype(int)).T.tolist()


def counts(structure, data):
    """Return the counts of families without missing values."""
    layout = range(3), structure.parents.tolist(), N_STATES, 2
    return networks.count_cells(samples(data), data.y, data.weights, *layout).astype(float)


def plain(structure, data, alpha=1.0):
    """Return the CPTs that are fitted to labeled rows only."""
    return MaximumLikelihood(alpha=alpha).fit(structure, data, RNG).cells


@every_structure
def test_an_iteration_of_maximum_likelihood_equals_enumeration(structure):
    labeled, unlabeled = rows(12, weight=np.arange(1, 13) % 4), rows(20, seed=1, weight=np.linspace(0.1, 2, 20))
    shape = structure.parents.tolist(), N_STATES, 2
    start = oracle.frequencies(counts(structure, labeled), 0.5, *shape)
    expected = oracle.expected_counts(samples(unlabeled), unlabeled.weights, start, *shape)
    wanted = oracle.frequencies(counts(structure, labeled) + expected, 0.5, *shape)
    learner = MaximumLikelihood(alpha=0.5)
    found = fit_unlabeled(structure, labeled, unlabeled, learner, max_iter=1, tol=0)
    np.testing.assert_allclose(found.tables.cells, wanted, rtol=1e-10)
    known = counts(structure, labeled), samples(unlabeled), unlabeled.weights, 0.5
    total = labeled.weights.sum() + unlabeled.weights.sum()
    scores = [oracle.objective(*known, cells, *shape) / total for cells in (start, wanted)]
    assert [iteration.score for iteration in found.history] == pytest.approx(scores, rel=1e-12)
    assert [iteration.step for iteration in found.history] == [0, 1]


@every_structure
def test_expectation_maximization_also_completes_labeled_rows(structure):
    labeled, unlabeled = rows(12), rows(20, seed=1)
    shape = structure.parents.tolist(), N_STATES, 2
    start = plain(structure, labeled)
    total = np.zeros(len(start))
    for sample, y in zip(samples(labeled), labeled.y, strict=True):
        own = np.array(naive.expected_counts(sample, np.eye(2)[y].tolist(), start, *shape))
        needed = oracle.is_needed(sample, structure.parents.tolist())
        offset = networks.offsets(range(3), *shape)
        for i in range(3):
            own[offset[i] : offset[i + 1]] *= needed[i]
        total += own
    total += oracle.expected_counts(samples(unlabeled), np.ones(20), start, *shape)
    found = fit_unlabeled(structure, labeled, unlabeled, ExpectationMaximization(), max_iter=1, tol=0)
    np.testing.assert_allclose(found.tables.cells, oracle.frequencies(total, 1.0, *shape), rtol=1e-10)


@every_structure
def test_without_missing_values_both_learners_are_equal(structure):
    labeled, unlabeled = rows(12, missing=0), rows(20, missing=0, seed=1)
    one, other = (
        fit_unlabeled(structure, labeled, unlabeled, learner, max_iter=5, tol=0)
        for learner in (MaximumLikelihood(), ExpectationMaximization())
    )
    np.testing.assert_array_equal(one.tables.cells, other.tables.cells)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.sampled_from(STRUCTURES),
    st.floats(0, 0.9),
    st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    st.sampled_from([MaximumLikelihood, ExpectationMaximization]),
)
def test_the_objective_never_decreases(seed, structure, missing, alpha, learner):
    labeled, unlabeled = rows(8, missing, seed), rows(30, missing, seed + 1, np.full(30, 0.3))
    found = fit_unlabeled(structure, labeled, unlabeled, learner(alpha=alpha), max_iter=30, tol=0)
    assert np.diff([iteration.score for iteration in found.history]).min(initial=0) > -1e-9
    assert not np.isnan(found.tables.cells).any()
    for i in range(3):
        np.testing.assert_allclose(found.tables.probabilities(i).sum(axis=0), 1)


def test_classes_of_unlabeled_rows_are_ignored():
    labeled, unlabeled = rows(12), rows(20, seed=1)
    one, other = (
        fit_unlabeled(STRUCTURES[1], labeled, replace(unlabeled, y=y), MaximumLikelihood(), max_iter=3, tol=0)
        for y in (unlabeled.y, 1 - unlabeled.y)
    )
    np.testing.assert_array_equal(one.tables.cells, other.tables.cells)


def test_tiny_weights_change_next_to_nothing():
    labeled, unlabeled = rows(12), rows(20, seed=1, weight=np.full(20, 1e-12))
    found = fit_unlabeled(STRUCTURES[1], labeled, unlabeled, MaximumLikelihood(), max_iter=9, tol=0)
    np.testing.assert_allclose(found.tables.cells, plain(STRUCTURES[1], labeled), atol=1e-9)


def test_it_stops_when_the_score_increases_little():
    arguments = STRUCTURES[1], rows(12), rows(20, seed=1), MaximumLikelihood()
    scores = [iteration.score for iteration in fit_unlabeled(*arguments, max_iter=6, tol=0).history]
    found = fit_unlabeled(*arguments, max_iter=6, tol=1.01 * (scores[3] - scores[2]))
    assert [iteration.score for iteration in found.history] == scores[:4]
    assert found.converged
    assert not fit_unlabeled(*arguments, max_iter=2, tol=0).converged


def test_a_given_prior_stays():
    labeled, unlabeled = rows(12), rows(20, seed=1)
    log_prior = np.log([0.9, 0.1])
    found = fit_unlabeled(
        STRUCTURES[1], labeled, unlabeled, MaximumLikelihood(), log_prior=log_prior, max_iter=20, tol=0
    )
    np.testing.assert_array_equal(found.tables.log_prior, log_prior)
    assert np.diff([iteration.score for iteration in found.history]).min() > -1e-12


def test_threads_change_nothing():
    arguments = STRUCTURES[1], rows(40), rows(3_000, seed=1), MaximumLikelihood()
    one, two = (fit_unlabeled(*arguments, max_iter=3, tol=0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.tables.cells, two.tables.cells)


@every_structure
def test_the_calibration_is_fitted_to_labeled_rows_without_their_counts(structure):
    labeled, unlabeled = rows(12), rows(20, seed=1)
    shape = structure.parents.tolist(), N_STATES, 2
    start = oracle.frequencies(counts(structure, labeled), 1.0, *shape)
    total = counts(structure, labeled) + oracle.expected_counts(samples(unlabeled), np.ones(20), start, *shape)
    scores = np.array(
        oracle.left_out(total, samples(labeled), labeled.y, lambda own: oracle.frequencies(own, 1.0, *shape), *shape)
    )
    wanted = calibrate(scores.max(axis=1, keepdims=True) - scores, labeled.y, labeled.weights, 1.0)
    arguments = structure, labeled, unlabeled, MaximumLikelihood()
    found = fit_unlabeled(*arguments, max_iter=1, tol=0)
    assert found.calibration.temperature == pytest.approx(wanted.temperature, rel=1e-6)
    assert fit_unlabeled(*arguments, calibrates=False, max_iter=1, tol=0).calibration == Calibration()


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_classes_of_probability_zero_are_calibrated(alpha):
    labeled, unlabeled = rows(12), rows(20, seed=1)
    arguments = STRUCTURES[1], labeled, unlabeled, MaximumLikelihood(alpha=alpha)
    log_prior = np.array([0.0, -np.inf])
    for prior in (None, log_prior):
        temperature = fit_unlabeled(*arguments, log_prior=prior, max_iter=2, tol=0).calibration.temperature
        assert 0 < temperature < np.inf
