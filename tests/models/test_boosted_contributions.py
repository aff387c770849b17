"""Contributions to the scores of boosted terms, compared with all orders in which values can become known."""

import numpy as np
import pytest
from oracles import boosting as oracle
from support.boosted_terms import N_STATES, SPLITS, as_plain, random_codes, random_terms

from tanlearn.models.boosted_contributions import explain_terms, term_contributions
from tanlearn.models.boosted_terms import BoostedTerms, Term


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_contributions_are_shapley_values(n_classes, dtype):
    model = random_terms(n_classes, seed=1)
    codes, rows = random_codes(6, dtype=dtype, missing=0.25, seed=1)
    found = explain_terms(model, codes)
    assert found.shape == (6, 6, n_classes)
    expected = [oracle.row_contributions(as_plain(model), row, model.log_prior.tolist()) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_contributions_add_up_to_scores(missing):
    model = random_terms()
    codes, _ = random_codes(200, missing=missing)
    found = explain_terms(model, codes)
    np.testing.assert_allclose(found.sum(axis=1), model.log_joint(codes), rtol=1e-12, atol=1e-12)
    with_prior = explain_terms(model.with_log_prior(np.array([-np.inf, -1.0, -0.5])), codes)
    np.testing.assert_array_equal(with_prior, found)  # the prior is the class frequencies of training


def test_missing_values_and_features_without_terms_contribute_nothing():
    model = random_terms(splits=[own for own in SPLITS if 2 not in own])
    codes, _ = random_codes(200)
    found = explain_terms(model, codes)
    is_missing = (codes == 255).T
    assert (found[:, :-1][is_missing] == 0).all()
    assert (found[:, 2] == 0).all()
    of_others = found[:, [0, 1, 3, 4]][~is_missing[:, [0, 1, 3, 4]]]
    assert (of_others != 0).any(axis=1).mean() > 0.9


def test_the_last_entry_is_the_score_of_a_row_without_values():
    model = random_terms()
    codes, _ = random_codes(20)
    expected = model.log_joint(np.full((5, 1), 255, np.uint8))
    np.testing.assert_allclose(explain_terms(model, codes)[:, -1], np.tile(expected, (20, 1)), rtol=1e-12)


def test_a_feature_in_two_splits_is_one_player():
    """The term is a function of feature 1 alone, so the feature gets all of its value beyond the mean."""
    sides = [np.array([0, 0, 1], np.uint8), np.array([0, 1, 1], np.uint8)]
    weights = np.array([1.0, 0.0, 2.0, 3.0])  # sides (0, 0), (1, 0), (0, 1) and (1, 1)
    values = np.array([[6.0, 0.0], [9.0, 9.0], [0.0, 6.0], [2.0, 2.0]])
    term = Term(np.array([1, 1]), sides, weights, values)
    players, found, mean = term_contributions(term, 3)
    assert players == [1]
    np.testing.assert_allclose(mean, [2.0, 3.0])
    np.testing.assert_allclose(found, [values - mean])
    model = BoostedTerms.of_terms([term], np.array([2, 3]), np.zeros(2))
    contributions = explain_terms(model, np.array([[0, 1, 0], [0, 1, 2]], np.uint8))
    np.testing.assert_allclose(contributions[:, 0], 0)
    np.testing.assert_allclose(contributions[:, 1], [[4.0, -3.0], [-2.0, 3.0], [0.0, -1.0]])


def test_models_without_terms_have_the_prior_alone():
    model = random_terms(splits=[])
    found = explain_terms(model, random_codes(2)[0])
    assert not found[:, :-1].any()
    np.testing.assert_array_equal(found[:, -1], np.tile(model.log_prior, (2, 1)))


def test_rows_are_explained_one_by_one_as_together():
    model = random_terms()
    codes, _ = random_codes(30)
    together = explain_terms(model, codes)
    for r in range(30):
        np.testing.assert_array_equal(explain_terms(model, codes[:, r : r + 1])[0], together[r])
    assert explain_terms(model, codes[:, :0]).shape == (0, len(N_STATES) + 1, 3)
