"""Boosted terms rounded to a few bits: steps and integers by definition, and bounds of the log odds."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import rounded_terms as oracle
from support.boosted_terms import as_plain, random_codes, random_terms

from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.rounded_terms import round_terms


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("bits", [2, 5, 8, 16])
def test_scores_are_sums_of_integers(n_classes, bits):
    model = random_terms(n_classes, seed=bits)
    rounded = round_terms(model, bits)
    codes, rows = random_codes(60, missing=0.0)
    plain, prior = as_plain(model), model.log_prior.tolist()
    assert rounded.step == oracle.smallest_step(plain, bits)
    expected = [oracle.integer_scores(plain, row, prior, bits) for row in rows]
    np.testing.assert_array_equal(rounded.terms.log_joint(codes) / rounded.step, expected)


@pytest.mark.parametrize("bits", [2, 4, 8, 12])
def test_log_odds_change_by_half_a_step_per_term_and_prior_at_most(bits):
    model = random_terms(3, seed=bits)
    codes, _ = random_codes(300, missing=0.0)
    rounded = round_terms(model, bits)
    found, expected = (own.log_joint(codes) for own in (rounded.terms, model))
    error = np.abs(found - found[:, :1] - (expected - expected[:, :1])).max()
    assert 0 < error <= (len(model.features) + 1) * rounded.step / 2


def test_terms_rounded_again_stay_the_same():
    codes, _ = random_codes(50)
    once = round_terms(random_terms(3), 6).terms
    np.testing.assert_array_equal(round_terms(once, 6).terms.log_joint(codes), once.log_joint(codes))


def test_contributions_of_a_rounded_model_keep_the_frequencies_in_training():
    model = random_terms(3)
    rounded = round_terms(model, 8).terms
    np.testing.assert_array_equal(rounded.log_frequency, rounded.log_prior)
    other = model.with_log_prior(np.log([0.2, 0.3, 0.5]))
    np.testing.assert_array_equal(round_terms(other, 8).terms.log_frequency, model.log_frequency)


def test_a_model_without_terms_keeps_its_prior():
    model = BoostedTerms.of_terms([], np.array([2, 3]), np.log([0.5, 0.25, 0.25]))
    rounded = round_terms(model, 8)
    assert rounded.step == 2.0**-20
    np.testing.assert_allclose(rounded.terms.log_prior, np.log([1.0, 0.5, 0.5]), atol=rounded.step / 2)


@pytest.mark.parametrize("bits", [1, 17, 8.0, True, (3, 1), None])
def test_bits_are_an_integer_from_2_to_16(bits):
    with pytest.raises(ValueError, match=r"bits must be an integer from 2 to 16, got"):
        round_terms(random_terms(), bits)


def test_a_class_of_probability_zero_is_refused():
    model = replace(random_terms(), log_prior=np.array([0.0, -np.inf, 0.0]))
    with pytest.raises(ValueError, match=r"class 1 \(numbered from 0 to 2\) has probability 0"):
        round_terms(model, 8)
