"""Warnings about number formats in which the structure has no gradient at the start of the training."""

import numpy as np
import pytest

from tanlearn import CandidateSets, ConditionalNLL, EncodedData, FixedPoint, GradientTraining, Structure, TANClassifier
from tanlearn.training.few_bits import train_in_bits
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import train

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.integers(0, 2, 80), RNG.integers(0, 9, 80), RNG.integers(0, 3, 80)])
DATA = EncodedData.from_codes(X, (X[:, 0] + X[:, 2] > 1).astype(int))
#: The second feature has nine values: log(1 / 9) = -2.2 is rounded to -4. The third has one candidate.
SETS = CandidateSets.from_lists([[1], [2], []])
RUN = {"n_epochs": 2, "batch_size": 20}


def outcome_of(fixed_point, candidates=SETS, **settings):
    settings = TrainingSettings(**{**RUN, "fixed_point": fixed_point, **settings})
    return train(DATA, candidates, ConditionalNLL(), settings, np.random.default_rng(0))


def test_a_format_that_rounds_initial_parameters_to_zero_is_warned_about():
    rounded = r"bits=\(4, -2\) rounds all initial log-probabilities of 1 of 3 features to 0"
    remedy = r"the first is feature 0.*below -2\. Use more fraction bits, or bits=2"
    with pytest.warns(UserWarning, match=f"{rounded}.*{remedy}"):
        outcome = outcome_of(FixedPoint(4, -2))
    assert (outcome.parameters[1] == 0).all()


@pytest.mark.parametrize("fixed_point", [None, FixedPoint(2, 6)])
def test_finer_formats_are_trained_without_a_warning(fixed_point):
    assert (outcome_of(fixed_point).parameters[1][:4] != 0).all()


def test_initial_frequencies_below_the_middle_of_a_step_are_not_rounded_to_zero():
    rare = EncodedData.from_codes((np.arange(80)[:, np.newaxis] + [0, 1]) % 20 == 0, np.arange(80) % 2)
    settings = TrainingSettings(**RUN, fixed_point=FixedPoint(4, -2), init="maximum-likelihood")
    train(rare, CandidateSets.from_lists([[1], []]), ConditionalNLL(), settings, RNG)


def test_a_given_structure_and_given_parameters_need_no_gradient_of_the_structure():
    outcome_of(FixedPoint(4, -2), CandidateSets.of_structure(Structure([-1, -1, 0])))
    start = train(DATA, SETS, ConditionalNLL(), TrainingSettings(**RUN), RNG).parameters
    settings = TrainingSettings(**RUN, fixed_point=FixedPoint(4, -2))
    cells = np.full_like(start[0], -3.0)
    train(DATA, SETS, ConditionalNLL(), settings, RNG, start=(cells, start[1]))


def test_formats_that_are_compared_are_not_warned_about():
    outcome = train_in_bits(2, DATA, SETS, ConditionalNLL(), TrainingSettings(**RUN), np.random.default_rng(0))
    assert outcome.tables.fixed_point.n_bits == 2


def test_the_classifier_names_the_column():
    training = GradientTraining(init="uniform")
    classifier = TANClassifier(bits=(4, -2), n_epochs=1, loss=ConditionalNLL(), training=training, random_state=0)
    with pytest.warns(
        UserWarning, match=r"bits=\(4, -2\) rounds all initial log-probabilities of \d of 3 features.*X column"
    ):
        classifier.fit(X, DATA.y)
