"""Prediction sets contain the true class as often as asked, and reliable rows are as rarely wrong as asked."""

import numpy as np
import pandas as pd
import pytest
from oracles import conformal as oracle
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC

from tanlearn import BayesForestClassifier, ConformalClassifier, NaiveBayesClassifier

RNG = np.random.default_rng(0)


def table(n, n_classes=4, seed=0, n_columns=5):
    """Return categorical rows whose classes overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = np.where(rng.random((n, n_columns)) < 0.45, y[:, np.newaxis], rng.integers(n_classes, size=(n, n_columns)))
    return X.astype(str), np.array(list("dbca"))[y]


@pytest.mark.parametrize("allow_empty", [False, True])
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.97])
def test_sets_equal_those_of_loops(allow_empty, per_class, coverage):
    X, y = table(160)
    model = ConformalClassifier(NaiveBayesClassifier(), per_class=per_class, random_state=1).fit(X[:100], y[:100])
    probabilities = model.predict_proba(X[100:]).tolist(), model.held_out_proba_.tolist()
    options = {"per_class": per_class, "allow_empty": allow_empty}
    wanted = oracle.sets(*probabilities, model.held_out_y_.tolist(), coverage, **options)
    found = model.predict_set(X[100:], coverage, allow_empty=allow_empty)
    assert [np.flatnonzero(row).tolist() for row in found] == wanted
    assert found.dtype == bool


@pytest.mark.parametrize("max_error", [0.01, 0.1, 0.2, 0.35])
def test_reliable_rows_equal_those_of_loops(max_error):
    X, y = table(200, seed=3)
    model = ConformalClassifier(NaiveBayesClassifier(), random_state=1).fit(X[:140], y[:140])
    least = oracle.least_confidence(model.held_out_proba_.tolist(), model.held_out_y_.tolist(), max_error)
    assert (
        model.is_reliable(X[140:], max_error).tolist() == (model.predict_proba(X[140:]).max(axis=1) >= least).tolist()
    )


def test_coverage_is_as_asked():
    """The fraction of 4,000 rows that are covered; its standard error is below 0.008, that of the threshold 0.011."""
    rng = np.random.default_rng(4)
    y = rng.integers(4, size=6_000)
    X = rng.normal(size=(6_000, 2)) + 2.5 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[y]
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X[:2_000], y[:2_000])
    rows = np.arange(4_000), y[2_000:]
    for coverage in (0.7, 0.9, 0.95):
        assert abs(model.predict_set(X[2_000:], coverage, allow_empty=True)[rows].mean() - coverage) < 0.03
        assert model.predict_set(X[2_000:], coverage)[rows].mean() > coverage - 0.03
    is_reliable = model.is_reliable(X[2_000:], 0.1)
    wrong = model.predict(X[2_000:]) != y[2_000:]
    assert wrong.mean() > 0.13
    assert is_reliable.mean() > 0.1
    assert wrong[is_reliable].mean() < 0.13


def test_thresholds_per_class_cover_a_rare_class():
    rng = np.random.default_rng(2)
    y = (rng.random(6_000) < 0.06).astype(int)
    X = rng.normal(size=(6_000, 2)) + 1.2 * y[:, np.newaxis]
    common = {"estimator": LogisticRegression(), "random_state": 0}
    covered = []
    for per_class in (False, True):
        model = ConformalClassifier(per_class=per_class, **common).fit(X[:3_000], y[:3_000])
        sets = model.predict_set(X[3_000:], 0.9)
        covered.append(sets[:, 1][y[3_000:] == 1].mean())
    assert covered[0] < 0.6
    assert 0.82 < covered[1] < 0.97


def test_held_out_rows_are_predicted_by_models_without_them():
    X, y = table(60)
    model = ConformalClassifier(NaiveBayesClassifier(), cv=60, random_state=0).fit(X, y)
    for i in (0, 17, 59):
        rest = np.arange(60) != i
        expected = NaiveBayesClassifier().fit(X[rest], y[rest]).predict_proba(X[i : i + 1])[0]
        np.testing.assert_allclose(model.held_out_proba_[i], expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(X), NaiveBayesClassifier().fit(X, y).predict_proba(X))


def test_a_frozen_classifier_is_calibrated_on_other_rows():
    X, y = table(300)
    fitted = NaiveBayesClassifier().fit(X[:150], y[:150])
    model = ConformalClassifier(FrozenEstimator(fitted)).fit(X[150:], y[150:])
    np.testing.assert_array_equal(model.held_out_proba_, fitted.predict_proba(X[150:]))
    assert model.predict(X).tolist() == fitted.predict(X).tolist()


def test_other_rows_of_a_frozen_classifier_need_not_have_all_its_classes():
    X, y = table(300)
    fitted = NaiveBayesClassifier().fit(X[:150], y[:150])
    is_few = (y != "c") & (np.arange(300) >= 150)
    model = ConformalClassifier(FrozenEstimator(fitted)).fit(X[is_few], y[is_few])
    assert model.classes_.tolist() == list("abcd")
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(model.held_out_proba_, fitted.predict_proba(X[is_few]))
    with pytest.raises(
        ValueError, match=r"y must contain classes of the fitted classifier, \['a', 'b', 'c', 'd'\], got \['x'\]"
    ):
        ConformalClassifier(FrozenEstimator(fitted)).fit(X, np.full(300, "x"))


def test_semi_supervised_classifiers_of_other_libraries_know_rows_without_a_class():
    X, y = table(200)
    X = OneHotEncoder(sparse_output=False).fit_transform(X)
    known = np.where(np.arange(200) < 60, np.unique(y, return_inverse=True)[1], -1)
    semi = SelfTrainingClassifier(LogisticRegression())
    model = ConformalClassifier(semi, cv=3, random_state=0).fit(X, known)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.held_out_y_.tolist() == known[:60].tolist()
    assert model.predict_set(X, 0.9).shape == (200, 4)


def test_weights_count_as_rows_and_rows_of_weight_zero_are_absent():
    X, y = table(120)
    weights = np.where(np.arange(120) < 20, 0.0, 1.0)
    model = ConformalClassifier(NaiveBayesClassifier(), random_state=0)
    light = clone(model).fit(X, y, sample_weight=weights)
    absent = clone(model).fit(X[20:], y[20:])
    np.testing.assert_allclose(light.held_out_proba_, absent.held_out_proba_)
    assert light.thresholds(0.9).tolist() == pytest.approx(absent.thresholds(0.9).tolist())
    doubled = clone(model).fit(X[20:], y[20:], sample_weight=np.full(100, 2.0))
    own = doubled.held_out_proba_[np.arange(100), doubled.held_out_y_]
    assert doubled.thresholds(0.9)[0] == oracle.threshold(np.repeat(own, 2).tolist(), 0.9)


def test_few_rows_give_all_classes():
    X, y = table(12)
    model = ConformalClassifier(NaiveBayesClassifier(), cv=3, random_state=0).fit(X, y)
    assert model.thresholds(0.95).tolist() == [0, 0, 0, 0]
    assert model.predict_set(X, 0.95).all()
    assert not model.is_reliable(X, 0.01).any()


def test_frames_missing_values_strings_and_threads():
    X, y = table(150)
    frame = pd.DataFrame(X, columns=list("abcde")).mask(RNG.random(X.shape) < 0.1)
    model = ConformalClassifier(BayesForestClassifier(n_estimators=4, random_state=0), cv=3, random_state=0)
    one, two = clone(model).fit(frame, y), clone(model).set_params(n_jobs=2).fit(frame, y)
    np.testing.assert_array_equal(one.held_out_proba_, two.held_out_proba_)
    assert one.feature_names_in_.tolist() == list("abcde")
    assert one.predict_set(frame).shape == (150, 4)
    assert one.classes_.tolist() == list("abcd")


def test_a_class_without_rows_in_a_fold_has_probability_zero():
    X, y = table(40)
    y = np.append(y[:39], "e")
    model = ConformalClassifier(NaiveBayesClassifier(), cv=4, random_state=0).fit(X, y)
    assert model.held_out_proba_[39, 4] == 0.0
    assert np.isfinite(model.held_out_proba_).all()


def test_wrong_arguments_are_refused():
    X, y = table(40)
    model = ConformalClassifier(NaiveBayesClassifier(), cv=4).fit(X, y)
    with pytest.raises(ValueError, match=r"coverage must be a number above 0 and below 1, got 90"):
        model.predict_set(X, 90)
    with pytest.raises(ValueError, match="max_error must be a number above 0 and below 1, got 0"):
        model.is_reliable(X, 0)
    with pytest.raises(ValueError, match=r"cv=50 needs at least 50 rows with positive weight, got 40\. Use"):
        ConformalClassifier(NaiveBayesClassifier(), cv=50).fit(X, y)
    with pytest.raises(ValueError, match="The 'estimator' parameter of ConformalClassifier"):
        ConformalClassifier(SVC()).fit(X, y)
    with pytest.raises(ValueError, match="X has 40 rows, but y has 39 labels"):
        model.fit(X, y[1:])
