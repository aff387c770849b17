"""Weights of any size: trainings by gradient follow their proportions, and what no number can hold is refused."""

import numpy as np
import pytest
from sklearn.base import clone

from tanlearn import (
    LBFGS,
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    EncodedData,
    ExpectationMaximization,
    ExtendedBaumWelch,
    Hybrid,
    NaiveBayesClassifier,
    StochasticGradient,
    TANClassifier,
)
from tanlearn.baselines import AnDEClassifier, AODEClassifier, ChowLiu, KDependence

# Weights of any size are the subject here; what points them out is tested in test_weights.py.
pytestmark = pytest.mark.filterwarnings("ignore:sample_weight adds up:UserWarning")

RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, (200, 5))
Y = (X[:, 0] + X[:, 1]) % 2
X[:, 3] = np.where(RNG.random(200) < 0.3, 0, Y)
WEIGHTS = RNG.integers(1, 4, 200).astype(float)

BATCH = [
    BayesNetClassifier(parameters=ConjugateGradient(loss=ConditionalNLL(), max_iter=20)),
    BayesNetClassifier(structure=ChowLiu(root=0), parameters=ConjugateGradient(max_iter=5)),
    BayesNetClassifier(parameters=LBFGS(loss=ConditionalNLL(), max_iter=20)),
    BayesNetClassifier(structure=ChowLiu(), parameters=ExtendedBaumWelch(max_iter=5)),
]
STOCHASTIC = [
    TANClassifier(loss=Hybrid(), n_epochs=3, calibrate=False, random_state=0),
    BayesNetClassifier(parameters=StochasticGradient(n_epochs=3), random_state=0),
]
COUNTING = [
    NaiveBayesClassifier(),
    BayesNetClassifier(structure=KDependence(k=2)),
    BayesNetClassifier(parameters=ExpectationMaximization()),
    AODEClassifier(),
    AnDEClassifier(),
]
IDS = {"ids": lambda model: repr(model)[:70]}


def cells(model, weights, X=X):
    return clone(model).fit(X, Y, weights).tables_.cells


@pytest.mark.parametrize("exponent", [-300, -20, -2])
@pytest.mark.parametrize("model", BATCH, **IDS)
def test_batch_learners_take_light_weights_in_proportion(model, exponent):
    np.testing.assert_array_equal(cells(model, np.full(200, 2.0**exponent)), cells(model, None))
    np.testing.assert_array_equal(cells(model, WEIGHTS * 2.0**exponent), cells(model, WEIGHTS / 4))


@pytest.mark.parametrize("model", BATCH, **IDS)
def test_batch_learners_count_rows_in_weights_that_are_heavier(model):
    twice = clone(model).fit(np.repeat(X, WEIGHTS.astype(int), axis=0), np.repeat(Y, WEIGHTS.astype(int)))
    np.testing.assert_allclose(cells(model, WEIGHTS), twice.tables_.cells, rtol=1e-6)


@pytest.mark.parametrize("exponent", [-300, -2, 3, 300])
@pytest.mark.parametrize("model", STOCHASTIC, **IDS)
def test_stochastic_learners_take_all_weights_in_proportion(model, exponent):
    np.testing.assert_array_equal(cells(model, np.full(200, 2.0**exponent)), cells(model, None))
    np.testing.assert_array_equal(cells(model, WEIGHTS * 2.0**exponent), cells(model, WEIGHTS))


@pytest.mark.parametrize("model", [BATCH[0], BATCH[2]], **IDS)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("size", [1e-95, 1 / 200, 1e20, 1e90])
def test_what_is_trained_is_trained_with_weights_of_any_size(model, missing, size):
    table = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X) if missing else X
    uniform = clone(model).fit(table, Y).score(table, Y)
    assert clone(model).fit(table, Y, np.full(200, size)).score(table, Y) == pytest.approx(uniform, abs=0.02)
    assert uniform > 0.75


def test_counts_keep_their_meaning():
    data = EncodedData.from_codes([[0], [1]], [0, 1], sample_weight=[2e-3, 1e-3])
    tables = NaiveBayesClassifier().fit_encoded(data).tables_
    np.testing.assert_allclose(tables.probabilities(0)[0], [1.002 / 2.002, 1 / 2.001])


HEAVY = {
    "huge": WEIGHTS * 1e300,
    "tiny": WEIGHTS * 1e-300,
    "both": np.where(np.arange(200) % 2, 1e300, 1e-300),
    "denormal": WEIGHTS * 5e-324,
    "infinite together": np.full(200, 1e307),
}


@pytest.mark.parametrize("weights", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize("model", [BATCH[0], *STOCHASTIC, *COUNTING], **IDS)
def test_weights_that_no_sum_can_hold_are_refused(model, weights):
    with pytest.raises(ValueError, match=r"sample_weight adds up to .* at least 1e-100 and at most 1e\+100.*factor"):
        clone(model).fit(X, Y, weights)


@pytest.mark.parametrize("option", [{0: 1e300}, {0: 1e-300, 1: 1e-300}, {0: 5e-324, 1: 1e300}])
@pytest.mark.parametrize("model", [BATCH[0], STOCHASTIC[0], COUNTING[0]], **IDS)
def test_class_weights_that_no_sum_can_hold_are_refused(model, option):
    with pytest.raises(ValueError, match=r"class_weight makes the weights add up to .* too (much|little).*factor"):
        clone(model).set_params(class_weight=option).fit(X, Y)


def test_classes_that_weigh_next_to_nothing_cannot_be_balanced():
    model = NaiveBayesClassifier(class_weight="balanced")
    with pytest.raises(ValueError, match=r"balance class 1: .* is only 4\.94e-324, out of 1 for all rows\. Drop"):
        model.fit([[0], [1]], [0, 1], [1.0, 5e-324])


def test_rows_that_weigh_nothing_beside_others_are_as_good_as_absent():
    weights = np.where(np.arange(200) % 2, 1.0, 1e-90)
    # Without a temperature, whose folds would be of other rows.
    batch = [clone(model).set_params(parameters__calibrate=False) for model in BATCH[:2]]
    for model in (*batch, *COUNTING[:2]):
        light, absent = (clone(model).fit(X, Y, w).predict_proba(X) for w in (weights, np.round(weights)))
        np.testing.assert_allclose(light, absent, atol=0.05)
