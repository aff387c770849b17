"""Ensembles of a forest, a network and boosted terms: sums of their log posteriors, and of their contributions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from support.forests import learn, make

from tanlearn.forest.ensemble import Ensemble, merged_values
from tanlearn.forest.interpretation import explain
from tanlearn.models.boosted_contributions import explain_terms
from tanlearn.models.explanation import explain as explain_network
from tanlearn.terms.boosting import Booster, BoostingSettings
from tanlearn.terms.learning import learn_terms


@pytest.fixture(scope="module", params=[(0.7, 0.5, 0.3), (1.2, 0.0, 0.0), (0.0, 0.9, 0.4), (0.3, 0.0, 1.1)])
def ensemble(request):
    """Return an ensemble whose network merges 12 values to 3 or 4, and rows with missing values."""
    data = make(150, gaps=0.1)
    groups = [np.arange(12) // (3 if i % 2 else 4) for i in range(5)]
    discretization = merged_values(groups)
    coarse = replace(data, codes=discretization.encode(data.codes), n_states=discretization.n_states)
    network = learn_terms(coarse, 1).network
    booster = Booster(data, BoostingSettings(3, 0.3, 1.0), np.random.default_rng(0))
    booster.grow(10)
    models = learn(data), network, booster.model()
    return Ensemble(*models, discretization, np.array(request.param), np.zeros(3)), data, groups


def test_values_are_merged_one_by_one(ensemble):
    model, data, groups = ensemble
    coarse = model.discretization.encode(data.codes)
    for i, r in np.ndindex(data.codes.shape):
        code = data.codes[i, r]
        assert coarse[i, r] == (255 if code == 255 else groups[i][code])
    assert model.discretization.n_states.tolist() == [3, 4, 3, 4, 3]
    for own, expected in zip(model.coarse_values(), groups, strict=True):
        np.testing.assert_array_equal(own, expected)


def test_log_posteriors_are_added_with_weights(ensemble):
    model, data, _ = ensemble
    of_forest = model.forest.log_joint(data.codes)
    of_network = log_softmax(model.network.log_joint(model.discretization.encode(data.codes)), axis=1)
    of_boosting = log_softmax(model.boosting.log_joint(data.codes), axis=1)
    w_forest, w_network, w_boosting = model.weights
    expected = log_softmax(w_forest * of_forest + w_network * of_network + w_boosting * of_boosting, axis=1)
    np.testing.assert_allclose(model.log_joint(data.codes), expected)
    np.testing.assert_array_equal(model.log_joint(data.codes, n_jobs=2), model.log_joint(data.codes))
    parts = model.forest, model.network, model.boosting
    assert model.n_parameters == sum(part.n_parameters for part in parts) + 3


def test_scores_of_single_rows_are_those_of_tables(ensemble):
    model, data, _ = ensemble
    score = model.row_scorer()
    for r, expected in enumerate(model.log_joint(data.codes[:, :30])):
        np.testing.assert_array_equal(score(data.codes[:, r].astype(np.intp)), expected)


def test_parts_without_weight_are_not_evaluated(ensemble, monkeypatch):
    model, data, _ = ensemble
    expected = model.log_joint(data.codes)
    for part, weight in zip((model.forest, model.network, model.boosting), model.weights, strict=True):
        if not weight:
            monkeypatch.setattr(type(part), "log_joint", None)
    np.testing.assert_array_equal(model.log_joint(data.codes), expected)


def test_contributions_add_up_and_are_those_of_the_parts(ensemble):
    model, data, _ = ensemble
    found = model.explain(data.codes)
    np.testing.assert_allclose(found.sum(axis=1), model.log_joint(data.codes))
    np.testing.assert_allclose(softmax(found[:, -1], axis=1), np.exp(found[:, -1]))  # probabilities without features
    of_forest = explain(model.forest, data.codes)
    of_network = explain_network(model.network.tables, model.network.structure, model.discretization.encode(data.codes))
    of_boosting = explain_terms(model.boosting, data.codes)
    expected = sum(w * part for w, part in zip(model.weights, (of_forest, of_network, of_boosting), strict=True))
    differences = found - found[:, :, :1]
    np.testing.assert_allclose(differences, expected - expected[:, :, :1], atol=1e-9)


def test_class_probabilities_shift_the_result(ensemble):
    model, data, _ = ensemble
    prior = np.log([0.2, 0.5, 0.3])
    moved = model.with_log_prior(prior).log_joint(data.codes)
    shift = prior - model.forest.log_frequency
    np.testing.assert_allclose(moved - model.log_joint(data.codes), np.tile(shift, (150, 1)))


def test_states_restore_the_same_predictions(ensemble):
    model, data, _ = ensemble
    again = Ensemble.from_state(model.to_state(), data.n_states, 3)
    np.testing.assert_array_equal(again.log_joint(data.codes), model.log_joint(data.codes))


def without_boosting(state, weights):
    """Return a state as files of ensembles without boosted terms have it."""
    return {name: value for name, value in state.items() if not name.startswith("boosting_")} | {"weights": weights}


def test_states_without_boosted_terms_restore_the_other_parts(ensemble):
    model, data, _ = ensemble
    weights = np.array([0.8, 0.6])
    again = Ensemble.from_state(without_boosting(model.to_state(), weights), data.n_states, 3)
    expected = replace(model, weights=np.append(weights, 0.0))
    np.testing.assert_array_equal(again.weights, expected.weights)
    np.testing.assert_array_equal(again.log_joint(data.codes), expected.log_joint(data.codes))
    np.testing.assert_array_equal(again.explain(data.codes), expected.explain(data.codes))
    moved = np.log([0.2, 0.5, 0.3])
    np.testing.assert_array_equal(
        again.with_log_prior(moved).log_joint(data.codes), expected.with_log_prior(moved).log_joint(data.codes)
    )
    assert len(again.boosting.features) == 0
    np.testing.assert_array_equal(again.boosting.log_frequency, model.forest.log_frequency)
    once_more = Ensemble.from_state(again.to_state(), data.n_states, 3)  # written in the new format
    np.testing.assert_array_equal(once_more.log_joint(data.codes), expected.log_joint(data.codes))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"weights must have type float64 and shape \(2,\)"),
        (np.array([0.5, -0.1]), "weights must be nonnegative"),
        (np.zeros(2), "at least one must be positive"),
        ([1.0, 1.0], "weights must have type float64"),
    ],
)
def test_invalid_states_without_boosted_terms_are_refused(ensemble, weights, message):
    model, data, _ = ensemble
    with pytest.raises(ValueError, match=message):
        Ensemble.from_state(without_boosting(model.to_state(), weights), data.n_states, 3)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("weights", np.array([0.5, -0.1, 0.2]), "weights must be nonnegative"),
        ("weights", np.array([0.5, np.nan, 0.2]), "weights contains nan"),
        ("weights", np.array([0.5, 0.1, np.inf]), "weights contains nan or inf"),
        ("weights", np.zeros(3), "at least one must be positive"),
        ("weights", np.ones(2), r"weights must have type float64 and shape \(3,\)"),
        ("weights", np.ones(4), "weights"),
        ("boosting_sides", np.zeros(0, np.uint8), "sides must have type uint8"),
        ("boosting_other", np.zeros(3), "expected an object with the keys features"),
        ("shift", np.full(3, -np.inf), "at least one possible class"),
        ("merged", np.arange(65, dtype=np.uint16)[::-1], "merged must"),
    ],
)
def test_invalid_states_are_refused(ensemble, name, value, message):
    model, data, _ = ensemble
    with pytest.raises(ValueError, match=message):
        Ensemble.from_state({**model.to_state(), name: value}, data.n_states, 3)
