"""Weights and probabilities of classes."""

from copy import copy
from dataclasses import asdict

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    GradientTraining,
    KTreeClassifier,
    NaiveBayesClassifier,
    TANClassifier,
    TANSearchCV,
    TermNetClassifier,
    load,
)
from tanlearn.baselines import AnDEClassifier, AODEClassifier, ChowLiu
from tanlearn.encoding.weights import log_frequencies, weigh_classes

RNG = np.random.default_rng(0)
Y = RNG.choice(["a", "b", "c"], 200, p=[0.6, 0.3, 0.1])
X = (np.unique(Y, return_inverse=True)[1][:, np.newaxis] + RNG.integers(0, 2, (200, 3))) % 3
MODELS = [
    NaiveBayesClassifier(),
    BayesNetClassifier(structure=ChowLiu()),
    BayesNetClassifier(parameters=ConjugateGradient(loss=ConditionalNLL(), max_iter=5)),
    AODEClassifier(),
    AnDEClassifier(),
    TANClassifier(n_epochs=3, random_state=0),
]
IDS = {"ids": lambda model: repr(model)[:60]}


@pytest.mark.parametrize("model", MODELS, **IDS)
def test_class_weight_multiplies_row_weights(model):
    factor = {"a": 1, "b": 3, "c": 2}
    weights = np.arange(200) % 3
    weighted = clone(model).set_params(class_weight={"b": 3, "c": 2}).fit(X, Y, weights)
    expected = clone(model).fit(X, Y, weights * np.array([factor[label] for label in Y]))
    np.testing.assert_array_equal(weighted.predict_log_proba(X), expected.predict_log_proba(X))


def test_balanced_classes_weigh_the_same_and_as_much_as_all_rows():
    y, weights = np.array([0, 0, 0, 1, 1, 2]), np.array([1.0, 2.0, 3.0, 1.0, 1.0, 4.0])
    total = np.bincount(y, weigh_classes("balanced", y, np.arange(3), weights))
    np.testing.assert_allclose(total, 4)
    model = NaiveBayesClassifier(class_weight="balanced").fit(X, Y)
    np.testing.assert_allclose(np.exp(model.tables_.log_prior), 1 / 3)


def test_integer_weights_stay_integers():
    assert weigh_classes({1: 2}, np.array([0, 1]), np.arange(2), None).tolist() == [1, 2]
    assert weigh_classes({1: 2}, np.array([0, 1]), np.arange(2), None).dtype.kind == "i"


def test_fractional_class_weights_multiply_integer_weights():
    y = np.array([0, 1, 1])
    assert weigh_classes({0: 1.5, 1: 0.25}, y, np.arange(2), None).tolist() == [1.5, 0.25, 0.25]
    assert weigh_classes({0: 1.5}, y, np.arange(2), np.array([2, 3, 4])).tolist() == [3.0, 3.0, 4.0]
    assert weigh_classes({0: 2}, y, np.arange(2), np.array([0.5, 3.0, 4.0])).tolist() == [1.0, 3.0, 4.0]


def test_log_frequencies_count_one_more_row_of_each_class():
    np.testing.assert_allclose(np.exp(log_frequencies(np.array([0.0, 3.0, 1.0]))), [1 / 7, 4 / 7, 2 / 7])


@pytest.mark.parametrize("option", [{"d": 1}, {"a": 0}, {"a": -1.0}, {"a": np.inf}, {"a": "2"}])
def test_wrong_class_weights_are_named(option):
    with pytest.raises(ValueError, match="class_weight must give positive weights to classes"):
        NaiveBayesClassifier(class_weight=option).fit(X, Y)


def test_what_is_no_class_is_reported_with_the_classes():
    y, classes = np.array([0, 1]), np.array([0, 1])
    with pytest.raises(ValueError, match=r"contains 5, which is not in y\. The classes are 0, 1\. Leave it out"):
        weigh_classes({5: 1, 0: 1, 1: 1}, y, classes, None)
    with pytest.raises(ValueError, match=r"contains '0', which is not in y.* 0, 1\. Write 0, which is another type\.$"):
        weigh_classes({"0": 2}, y, classes, None)


COUNTED, TRAINED = [0, 1, 3, 4], [2, 5]  # class priors of MODELS


@pytest.mark.parametrize("model", [MODELS[k] for k in COUNTED], **IDS)
def test_class_prior_replaces_a_counted_one(model):
    """Scores move by log new - log old, the same for all rows; a row without features gets the new prior."""
    prior = np.array([0.2, 0.5, 0.3])
    plain = clone(model).fit(X, Y)
    at_fit = clone(model).set_params(class_prior=prior).fit(X, Y)
    later = plain.with_class_prior(prior)
    before, after = plain.predict_joint_log_proba(X), at_fit.predict_joint_log_proba(X)
    np.testing.assert_array_equal(after, later.predict_joint_log_proba(X))
    shift = after - before
    if not isinstance(model, AODEClassifier | AnDEClassifier):  # averages of estimators with priors of their own
        np.testing.assert_allclose(shift, np.broadcast_to(np.log(prior) - plain.tables_.log_prior, shift.shape))
    np.testing.assert_array_equal(plain.predict_joint_log_proba(X), before)
    np.testing.assert_allclose(at_fit.predict_proba([[None] * 3]), [prior], rtol=1e-6)  # nothing is known


def without_power(model):
    """Return a copy whose calibration is its temperature only, which another class prior keeps."""
    twin = copy(model)
    calibration = asdict(twin.calibration_) | {"power": 1.0, "pivot": 1.0}
    twin.calibration_ = type(twin.calibration_)(**calibration)
    return twin


@pytest.mark.parametrize(
    "model",
    [*(MODELS[k] for k in TRAINED), KTreeClassifier(n_epochs=3, random_state=0), TermNetClassifier()],
    **IDS,
)
def test_class_prior_moves_trained_probabilities_by_the_change(model, tmp_path):
    """The odds of two classes change by new / old frequencies, with one pseudo-count each, whatever was trained."""
    prior = np.array([0.2, 0.5, 0.3])
    plain = clone(model).fit(X, Y)
    at_fit = clone(model).set_params(class_prior=prior).fit(X, Y)
    plain.save(tmp_path / "model.tan")
    frequency = (np.array([np.sum(label == Y) for label in "abc"]) + 1) / 203
    expected = log_softmax(without_power(plain).predict_log_proba(X) + np.log(prior / frequency), axis=1)
    once = plain.with_class_prior(prior)
    for other in (
        at_fit,
        once,
        load(tmp_path / "model.tan").with_class_prior(prior),
        once.with_class_prior([0.0, 0.5, 0.5]).with_class_prior(prior),
        plain.with_class_prior(frequency).with_class_prior(prior),
    ):
        np.testing.assert_allclose(other.predict_log_proba(X), expected, atol=1e-9)
    np.testing.assert_array_equal(plain.with_class_prior(frequency).predict(X), plain.predict(X))


def test_a_file_with_a_wrong_offset_is_refused():
    model = TANClassifier(n_epochs=2, random_state=0).fit(X, Y)
    for wrong in (np.zeros(2), np.array([0.0, -np.inf, 0.0]), np.array([0.0, np.nan, 0.0]), 3.0):
        with pytest.raises(ValueError, match="prior_offset"):
            copy(model)._set_state({**model._get_state(), "prior_offset": wrong})


def test_a_counted_class_prior_has_no_offset_after_another_fit():
    model = NaiveBayesClassifier(parameters=ConjugateGradient(max_iter=2)).fit(X, Y)
    model.set_params(parameters=None).fit(X, Y)
    np.testing.assert_allclose(model.with_class_prior([0.2, 0.5, 0.3]).predict_proba([[None] * 3]), [[0.2, 0.5, 0.3]])


def test_a_prior_of_zero_rules_a_class_out():
    for model in (NaiveBayesClassifier(), AODEClassifier(), AnDEClassifier()):
        fitted = model.fit(X, Y).with_class_prior([0.5, 0.0, 0.5])
        assert (fitted.predict_proba(X)[:, 1] == 0).all()
        assert np.isfinite(fitted.predict_proba(X)).all()


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.5, 0.6, 0.1], [-0.5, 1.0, 0.5], [np.nan, 0.5, 0.5], 0.3])
def test_wrong_priors_are_named(prior):
    with pytest.raises(ValueError, match="class_prior must hold 3 probabilities that sum to one"):
        NaiveBayesClassifier().fit(X, Y).with_class_prior(prior)


def test_a_prior_that_is_wrong_leaves_no_model():
    model = NaiveBayesClassifier(class_prior=[0.5, 0.6])
    with pytest.raises(ValueError, match="class_prior must hold 3 probabilities"):
        model.fit(X, Y)
    assert not hasattr(model, "tables_")
    for prior in (["a", "b", "c"], [[0.5], [0.2, 0.3]]):
        with pytest.raises(ValueError, match="class_prior must hold 3 probabilities"):
            NaiveBayesClassifier(class_prior=prior).fit(X, Y)


def test_a_prior_that_is_rounded_is_made_to_sum_to_one():
    fitted = NaiveBayesClassifier(class_prior=[0.2, 0.3, 0.5000004]).fit(X, Y)
    assert np.exp(fitted.tables_.log_prior).sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("option", "weights"), [({"a": 10**12}, np.full(200, 10**10)), ({"a": 1e308}, None), ({"a": 10**30}, None)]
)
def test_class_weights_that_would_overflow_are_refused(option, weights):
    with pytest.raises(ValueError, match="class_weight makes the weights add up to"):
        NaiveBayesClassifier(class_weight=option).fit(X, Y, weights)


@pytest.mark.parametrize("cv", [3, 0.3, [(np.arange(150), np.arange(150, 200))]])
def test_a_search_weighs_the_classes_it_was_given(cv):
    """As if the rows had been weighed by hand; classes are words, and numbers that are no codes."""
    for labels, key in ((Y, "b"), (np.unique(Y, return_inverse=True)[1] + 1, 2)):
        base = TANClassifier(n_epochs=3, class_weight={key: 5})
        # One setting: held-out rows have weights by hand only when they are scored, which may choose another setting.
        settings = {"param_distributions": {"training__learning_rate": [0.1]}, "n_iter": 1, "cv": cv, "random_state": 0}
        ours = TANSearchCV(base, **settings).fit(X, labels)
        alone = TANSearchCV(clone(base).set_params(class_weight=None), **settings)
        plain = clone(alone).fit(X, labels).best_estimator_.predict_proba(X)
        by_hand = alone.fit(X, labels, 1 + 4 * (labels == key))
        np.testing.assert_array_equal(ours.best_estimator_.predict_proba(X), by_hand.best_estimator_.predict_proba(X))
        assert (ours.best_estimator_.predict_proba(X) != plain).any()
    with pytest.raises(ValueError, match="class_weight cannot be searched"):
        TANSearchCV(base, {"class_weight": [None]}, n_iter=1).fit(X, Y)


NUMBERS = np.random.default_rng(1).normal(size=(400, 4))
RARE = (np.random.default_rng(2).random(400) < 0.1).astype(int)
NUMBERS += 2 * RARE[:, np.newaxis]


@pytest.mark.parametrize("option", ["balanced", {1: 20}, {0: 0.1}], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        NaiveBayesClassifier(),
        BayesNetClassifier(structure=ChowLiu()),
        TANClassifier(n_epochs=2, random_state=0),
        TANClassifier(n_epochs=2, training=GradientTraining(validation_fraction=0.2), random_state=0),
        AODEClassifier(),
    ],
    **IDS,
)
def test_class_weights_do_not_change_cut_points(model, option):
    weights = np.arange(400) % 3
    plain = clone(model).fit(NUMBERS, RARE, weights).encoder_.discretizer_.cut_points_
    weighted = (
        clone(model).set_params(class_weight=option).fit(NUMBERS, RARE, weights).encoder_.discretizer_.cut_points_
    )
    for own, other in zip(plain, weighted, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("option", [{1: 20}, {0: 0.1, 1: 3}], ids=str)
def test_every_entry_point_weighs_classes_alike(option):
    """fit, partial_fit and fit_batches: one encoder and one model."""
    model = NaiveBayesClassifier(class_weight=option)
    whole = clone(model).fit(NUMBERS, RARE)
    chunk = clone(model).partial_fit(NUMBERS, RARE, classes=[0, 1])
    batches = clone(model).fit_batches([(NUMBERS[:150], RARE[:150]), (NUMBERS[150:], RARE[150:])])
    for other in (chunk, batches):
        np.testing.assert_allclose(other.predict_log_proba(NUMBERS), whole.predict_log_proba(NUMBERS), rtol=1e-12)


def test_a_forest_draws_the_same_cut_points_with_class_weights():
    plain, weighted = (
        BayesForestClassifier(n_estimators=4, weights=None, class_weight=option, random_state=0).fit(NUMBERS, RARE)
        for option in (None, {1: 20})
    )
    for own, other in zip(plain.forest_.members, weighted.forest_.members, strict=True):
        np.testing.assert_array_equal(own.cuts.merged, other.cuts.merged)
