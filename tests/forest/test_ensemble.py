"""Ensembles of a forest and a network: sums of their log posteriors, and of their contributions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from support.forests import learn, make

from tanlearn.forest.ensemble import Ensemble, merged_values
from tanlearn.forest.interpretation import explain
from tanlearn.models.explanation import explain as explain_network
from tanlearn.terms.learning import learn_terms


@pytest.fixture(scope="module", params=[(0.7, 0.5), (1.2, 0.0), (0.0, 0.9)])
def ensemble(request):
    """Return an ensemble whose network merges 12 values to 3 or 4, and rows with missing values."""
    data = make(150, gaps=0.1)
    groups = [np.arange(12) // (3 if i % 2 else 4) for i in range(5)]
    discretization = merged_values(groups)
    coarse = replace(data, codes=discretization.encode(data.codes), n_states=discretization.n_states)
    network = learn_terms(coarse, 1).network
    return Ensemble(learn(data), network, discretization, np.array(request.param), np.zeros(3)), data, groups


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
    w_forest, w_network = model.weights
    expected = log_softmax(w_forest * of_forest + w_network * of_network, axis=1)
    np.testing.assert_allclose(model.log_joint(data.codes), expected)
    np.testing.assert_array_equal(model.log_joint(data.codes, n_jobs=2), model.log_joint(data.codes))
    assert model.n_parameters == model.forest.n_parameters + model.network.n_parameters + 2


def test_contributions_add_up_and_are_those_of_the_parts(ensemble):
    model, data, _ = ensemble
    found = model.explain(data.codes)
    np.testing.assert_allclose(found.sum(axis=1), model.log_joint(data.codes))
    np.testing.assert_allclose(softmax(found[:, -1], axis=1), np.exp(found[:, -1]))  # probabilities without features
    of_forest = explain(model.forest, data.codes)
    of_network = explain_network(model.network.tables, model.network.structure, model.discretization.encode(data.codes))
    expected = model.weights[0] * of_forest + model.weights[1] * of_network
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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("weights", np.array([0.5, -0.1]), "weights must be nonnegative"),
        ("weights", np.array([0.5, np.nan]), "weights contains nan"),
        ("weights", np.zeros(2), "not all 0"),
        ("weights", np.ones(3), "weights"),
        ("shift", np.full(3, -np.inf), "at least one possible class"),
        ("merged", np.arange(65, dtype=np.uint16)[::-1], "merged must"),
    ],
)
def test_invalid_states_are_refused(ensemble, name, value, message):
    model, data, _ = ensemble
    with pytest.raises(ValueError, match=message):
        Ensemble.from_state({**model.to_state(), name: value}, data.n_states, 3)
