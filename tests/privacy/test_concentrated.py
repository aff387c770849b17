"""Budgets that add rho: less noise for several releases, exact sums, and the same refusals as of other budgets."""

import re
from fractions import Fraction

import numpy as np
import pytest

from tanlearn import BayesNetClassifier, ConcentratedBudget, PrivacyBudget, Structure, TableCounts, TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.privacy.accounting import largest_rho

ENCODER = TableEncoder().declare([["Graz", "Linz", "Wien"], [False, True]])
CLASSES = ["no", "yes"]
ROWS = [["Graz", True], ["Wien", False], ["Linz", True]] * 20


def counted():
    """Return counts of pairs: 4 change by one row."""
    return TableCounts.of_encoder(ENCODER, CLASSES).update(ROWS, ["no", "yes", "yes"] * 20)


def test_parts_add_up_and_the_rest_is_the_default():
    budget = ConcentratedBudget(1, 1e-6)
    rho = largest_rho(1.0, 1e-6)
    for part in (0.1, 0.1, 0.1):
        budget.release(counted(), part=part)
    assert budget.spent_rho == pytest.approx(0.3 * rho, rel=1e-12)
    last = budget.release(counted()).noise[0]
    assert budget.spent_rho == budget.rho == rho
    assert budget.spent_epsilon == 1.0
    expected = [np.sqrt(4 / (2 * part * rho)) for part in (0.1, 0.1, 0.1, 0.7)]
    np.testing.assert_allclose([one.standard_deviation for one in budget.releases], expected, rtol=1e-3)
    assert {one.mechanism for one in budget.releases} == {"discrete Gaussian"}
    assert 0.7 < last.epsilon < 1  # of this release alone
    assert last.delta == 1e-6
    assert repr(budget) == "ConcentratedBudget(epsilon=1, delta=1e-06, rho=0.0244, spent_rho=0.0244)"
    with pytest.raises(ValueError, match=r"the privacy budget \(epsilon 1\) is spent, so .*\. Use the counts"):
        budget.release(counted())


def test_two_releases_have_less_noise_than_with_losses_added_up():
    columns = {f"x{i}": ["a", "b"] for i in range(12)}
    counts = TableCounts.of_encoder(TableEncoder().declare(columns), CLASSES)  # 79 change by one row
    added, concentrated = PrivacyBudget(1, 1e-6), ConcentratedBudget(1, 1e-6)
    for _ in range(2):
        added.release(counts, epsilon=0.5)
        concentrated.release(counts, part=0.5)
    for before, now in zip(added.releases, concentrated.releases, strict=True):
        assert now.standard_deviation**2 < 0.55 * before.standard_deviation**2


def test_what_exceeds_a_budget_spends_nothing():
    budget = ConcentratedBudget(1, 1e-6)
    assert budget.spent_epsilon == 0.0
    budget.spend(0.02)
    assert 0.8 < budget.spent_epsilon < 1
    with pytest.raises(ValueError, match=r"rho must be at most .*, 0\.00436 of 0\.0244 \(part=0\.179\), got 0\.0122"):
        budget.release(counted(), part=0.5)
    with pytest.raises(ValueError, match=r"rho must be at most the remaining budget, .* got 0\.01"):
        budget.spend(0.01)
    with pytest.raises(ValueError, match="already have noise"):
        budget.release(PrivacyBudget(1).release(counted()))
    with pytest.raises(ValueError, match="were not declared"):
        budget.release(TableCounts.of_encoder(TableEncoder().fit(ROWS, CLASSES * 30), CLASSES))
    with pytest.raises(TypeError, match="random_state must be None or an integer"):
        budget.release(counted(), random_state=0.5)
    assert (budget.spent_rho, budget.releases) == (0.02, [])


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        (0, ValueError, "part must be finite and positive, got 0."),
        (np.nan, ValueError, "part must be finite and positive, got nan."),
        ("1", TypeError, "part must be a number, got '1'."),
        (Fraction(3, 2), ValueError, "must be at most the remaining budget"),
    ],
)
def test_parts_out_of_range_are_refused(part, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ConcentratedBudget(1, 1e-6).release(counted(), part=part)


def test_losses_out_of_range_are_refused():
    with pytest.raises(
        ValueError, match=r"delta must be above 0, got 0\. Pass 1e-6, for example, or use PrivacyBudget"
    ):
        ConcentratedBudget(1, 0)
    with pytest.raises(ValueError, match="epsilon must be at least 1e-12"):
        ConcentratedBudget(0, 1e-6)


@pytest.mark.filterwarnings("ignore:random_state repeats:UserWarning")
def test_a_tree_of_two_releases_predicts():
    budget = ConcentratedBudget(10**6, 1e-6)
    first = budget.release(counted(), part=0.3, random_state=0)
    structure = BayesNetClassifier(structure=ChowLiu()).from_counts(first).structure_
    second = budget.release(counted(), structure=structure, random_state=1)
    assert isinstance(second.counts, FamilyCounts)
    model = BayesNetClassifier(structure=structure).from_counts(second)
    expected = BayesNetClassifier(structure=structure).from_counts(counted())
    np.testing.assert_array_equal(model.predict_proba(ROWS), expected.predict_proba(ROWS))
    again = ConcentratedBudget(1, 1e-6).release(counted(), structure=Structure.naive_bayes(2), random_state=3)
    assert again == ConcentratedBudget(1, 1e-6).release(counted(), structure=Structure.naive_bayes(2), random_state=3)
