"""Classifiers with unlabeled rows: limits that equal the plain fit, the gain from clusters, and errors."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import tanlearn
from tanlearn import (
    BayesNetClassifier,
    Calibration,
    ConformalClassifier,
    ExpectationMaximization,
    HierarchicalDirichlet,
    MaximumLikelihood,
    NaiveBayesClassifier,
    QuantileDiscretizer,
    SemiSupervisedClassifier,
    Structure,
    TableEncoder,
    TANClassifier,
)
from tanlearn.baselines import ChowLiu
from tanlearn.encoding.splits import draw_folds
from tanlearn.parameters.unlabeled_rows import fit_unlabeled

NETWORKS = [NaiveBayesClassifier(), BayesNetClassifier(structure=ChowLiu())]
every_network = pytest.mark.parametrize("network", NETWORKS, ids=["naive Bayes", "tree"])


def frame(n=200, n_labeled=20, seed=0):
    """Return rows of three clusters, with missing values, their classes, and the labels of some rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = pd.DataFrame(
        {
            "size": y + 0.6 * rng.normal(size=n),
            "color": np.where(rng.random(n) < 0.6, y, rng.integers(3, size=n)).astype(str),
            "shape": np.where(rng.random(n) < 0.6, y, rng.integers(3, size=n)).astype(str),
            "weight": -y + 0.6 * rng.normal(size=n),
        }
    )
    X = X.mask(rng.random(X.shape) < 0.1)
    return X, y, np.where(np.arange(n) < n_labeled, y, -1)


def probabilities(model, X=None):
    return model.predict_proba(frame()[0] if X is None else X)


@every_network
@pytest.mark.parametrize("weights", [None, np.arange(200) % 3])
def test_weight_zero_and_no_unlabeled_rows_equal_the_plain_fit(network, weights):
    X, y, known = frame()
    labeled = known >= 0
    own = None if weights is None else weights[labeled]
    plain = probabilities(clone(network).fit(X[labeled], y[labeled], own))
    model = SemiSupervisedClassifier(network, unlabeled_weight=0).fit(X, known, weights)
    np.testing.assert_array_equal(probabilities(model), plain)
    assert (model.n_iter_, model.converged_, model.history_) == (0, True, [])
    assert model.n_unlabeled_ == 180 if weights is None else (weights[~labeled] > 0).sum()
    every = SemiSupervisedClassifier(network).fit(X[labeled], y[labeled], own)
    np.testing.assert_array_equal(probabilities(every), plain)
    assert every.n_unlabeled_ == 0


@every_network
def test_the_network_is_the_fit_of_encoded_rows(network):
    X, _, known = frame()
    model = SemiSupervisedClassifier(network, unlabeled_weight=0.3, max_iter=4).fit(X, known)
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=5)).fit(X, np.arange(200) % 2)
    np.testing.assert_array_equal(model.estimator_.encoder_.encode(X), encoder.encode(X))
    codes, labeled = encoder.encode(X), known >= 0
    rows = [
        tanlearn.EncodedData(
            np.ascontiguousarray(codes[:, mask]), encoder.n_states_, np.maximum(known[mask], 0), 3, weights
        )
        for mask, weights in ((labeled, None), (~labeled, np.full(180, 0.3)))
    ]
    found = fit_unlabeled(model.estimator_.structure_, *rows, MaximumLikelihood(), max_iter=4, tol=1e-5)
    np.testing.assert_array_equal(model.estimator_.tables_.cells, found.tables.cells)
    assert model.history_ == found.history
    assert model.estimator_.calibration_ == found.calibration
    assert (model.n_iter_, len(model.history_)) == (4, 5)


@every_network
def test_harmful_rows_only_determine_intervals(network):
    """Six features form two clusters of rows that are no classes, and one feature predicts the class."""
    rng = np.random.default_rng(0)
    y, cluster = rng.integers(2, size=(2, 800))
    y[:40], cluster[:40] = np.arange(40) % 2, np.arange(40) // 2 % 2
    copies = np.where(rng.random((6, 800)) < 0.97, cluster, 1 - cluster)
    X = np.column_stack([copies.T, np.where(rng.random(800) < 0.9, y, 1 - y)])
    known = np.where(np.arange(600) < 40, y[:600], -1)
    model = SemiSupervisedClassifier(network, max_iter=50).fit(X[:600], known)
    assert (model.unlabeled_weight_, model.n_unlabeled_) == (0, 560)
    assert model.score(X[600:], y[600:]) > 0.85
    forced = SemiSupervisedClassifier(network, unlabeled_weight=1, max_iter=50).fit(X[:600], known)
    assert forced.unlabeled_weight_ == 1
    assert forced.score(X[600:], y[600:]) < 0.6
    plain = clone(network).fit(X[:40], y[:40])
    np.testing.assert_allclose(model.estimator_.tables_.cells, plain.tables_.cells)
    assert model.estimator_.calibration_ != Calibration()


@every_network
def test_the_score_never_decreases_until_it_converges(network):
    X, _, known = frame()
    model = SemiSupervisedClassifier(network, unlabeled_weight=1, max_iter=200, tol=1e-7).fit(X, known)
    assert model.converged_
    assert 5 < model.n_iter_ < 200
    assert np.diff([iteration.score for iteration in model.history_]).min() >= 0


def test_unlabeled_rows_of_clusters_lower_error_and_log_loss():
    """One label of each handwritten digit: the fraction of right predictions grows from 0.47 to 0.70."""
    X, X_test, y, y_test = train_test_split(
        *load_digits(return_X_y=True), stratify=load_digits().target, random_state=0
    )
    first = [np.flatnonzero(y == c)[0] for c in range(10)]
    known = np.full(len(y), -1)
    known[first] = range(10)
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=5))
    plain = NaiveBayesClassifier(encoder=encoder).fit(X[first], known[first])
    model = SemiSupervisedClassifier(NaiveBayesClassifier()).fit(X, known)
    assert plain.score(X_test, y_test) < 0.55
    assert model.score(X_test, y_test) > 0.62
    assert log_loss(y_test, model.predict_proba(X_test)) < 1.2
    certain = SemiSupervisedClassifier(NaiveBayesClassifier(), calibrate=False).fit(X, known)
    assert certain.estimator_.calibration_ == Calibration()
    np.testing.assert_array_equal(certain.predict(X), model.predict(X))
    assert log_loss(y_test, certain.predict_proba(X_test)) > 2


@every_network
def test_marks_of_all_kinds_are_equal(network):
    X, _, known = frame()
    expected = SemiSupervisedClassifier(network).fit(X, known)
    names = np.array(["a", "b", "c"], object)[known]
    for y in (
        np.where(known < 0, np.nan, known),
        pd.Series(known).mask(known < 0).astype("Int64"),
        [None if label < 0 else label for label in known.tolist()],
    ):
        model = SemiSupervisedClassifier(network).fit(X, y)
        assert model.classes_.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(probabilities(model), probabilities(expected))
    for mark in (None, -1, np.nan):
        y = np.where(known < 0, np.array(mark, object), names)
        model = SemiSupervisedClassifier(network).fit(X, y)
        assert model.classes_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(probabilities(model), probabilities(expected))
        assert set(model.predict(X).tolist()) == {"a", "b", "c"}


@every_network
def test_a_binary_target_of_minus_one_and_one_has_no_unlabeled_rows(network):
    X, y, _ = frame()
    signs = np.where(y > 0, 1, -1)
    model = SemiSupervisedClassifier(network).fit(X, signs)
    assert model.classes_.tolist() == [-1, 1]
    assert model.n_unlabeled_ == 0
    np.testing.assert_array_equal(probabilities(model), probabilities(clone(network).fit(X, signs)))


@every_network
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("parameters", [None, ExpectationMaximization(alpha=0.5), MaximumLikelihood(alpha=0)])
def test_learners_of_parameters_and_missing_values(network, missing, parameters):
    X, y, known = frame(seed=3)
    X = X.mask(np.random.default_rng(1).random(X.shape) < missing)
    model = SemiSupervisedClassifier(clone(network).set_params(parameters=parameters), max_iter=20).fit(X, known)
    assert np.diff([iteration.score for iteration in model.history_]).min() >= -1e-9
    assert np.isfinite(probabilities(model)).all()
    assert model.score(X, y) > 0.6


def test_categories_of_unlabeled_rows_are_known():
    X = np.array([["a"], ["b"], ["a"], ["b"], ["c"], ["c"]])
    model = SemiSupervisedClassifier(NaiveBayesClassifier()).fit(X, [0, 1, 0, 1, -1, -1])
    assert model.estimator_.encoder_.categories_[0].tolist() == ["a", "b", "c"]


def test_rows_of_weight_zero_are_absent_and_weights_count_rows():
    X, _, known = frame(80)
    weights = np.arange(80) % 3
    weighted = SemiSupervisedClassifier(NaiveBayesClassifier(), tol=0).fit(X, known, weights)
    rows = np.repeat(np.arange(80), weights)
    repeated = SemiSupervisedClassifier(NaiveBayesClassifier(), tol=0).fit(X.iloc[rows], known[rows])
    np.testing.assert_allclose(
        weighted.estimator_.tables_.cells, repeated.estimator_.tables_.cells, rtol=1e-9, atol=1e-12
    )
    assert weighted.n_unlabeled_ == (weights[known < 0] > 0).sum()


def test_class_probabilities_of_the_user_stay():
    X, _, known = frame()
    network = NaiveBayesClassifier(class_prior=[0.8, 0.1, 0.1])
    model = SemiSupervisedClassifier(network, max_iter=30).fit(X, known)
    nothing = pd.DataFrame({name: [None] for name in X}).astype(X.dtypes.to_dict())
    np.testing.assert_allclose(model.predict_proba(nothing), [[0.8, 0.1, 0.1]], rtol=1e-9)
    assert np.diff([iteration.score for iteration in model.history_]).min() >= 0


def test_threads_change_nothing_and_frames_of_polars_are_read():
    X, _, known = frame(3_000)
    one, two = (SemiSupervisedClassifier(NaiveBayesClassifier(n_jobs=n)).fit(X, known) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    other = SemiSupervisedClassifier(NaiveBayesClassifier()).fit(pl.from_pandas(X), pl.Series(known))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(pl.from_pandas(X)))
    assert one.feature_names_in_.tolist() == ["size", "color", "shape", "weight"]
    assert one.n_features_in_ == 4


def test_copies_pickles_and_files_predict_the_same(tmp_path):
    X, _, known = frame()
    model = SemiSupervisedClassifier(BayesNetClassifier(structure=ChowLiu())).fit(X, known)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(probabilities(again), probabilities(model))
    tanlearn.save(model.estimator_, tmp_path / "model.tan")
    np.testing.assert_array_equal(probabilities(tanlearn.load(tmp_path / "model.tan")), probabilities(model))
    assert not hasattr(clone(model), "classes_")
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_conformal_sets_are_calibrated_on_labeled_rows():
    X, y, _ = frame(600)
    model = SemiSupervisedClassifier(NaiveBayesClassifier()).fit(X[:400], np.where(np.arange(400) < 30, y[:400], -1))
    sets = ConformalClassifier(FrozenEstimator(model)).fit(X[400:500], y[400:500]).predict_set(X[500:], 0.8)
    assert sets[np.arange(100), y[500:]].mean() > 0.7


@pytest.mark.parametrize("mark", [-1, np.nan, None])
def test_conformal_folds_contain_all_unlabeled_rows(mark):
    X, y, known = frame(120, n_labeled=30)
    labels = np.array(["a", "b", "c"])[y].astype(object) if mark is None else y.astype(float if mark != -1 else int)
    labels[known < 0] = mark
    weights = np.where(np.arange(120) % 7 == 0, 0.0, 1.0)
    semi = SemiSupervisedClassifier(NaiveBayesClassifier())
    model = ConformalClassifier(semi, cv=3, random_state=0).fit(X, labels, weights)
    assert (
        model.classes_.tolist()
        == model.estimator_.classes_.tolist()
        == (["a", "b", "c"] if mark is None else [0, 1, 2])
    )
    rows = [i for i in range(30) if weights[i]]  # the rows whose coverage counts
    assert model.held_out_y_.tolist() == y[rows].tolist()
    fold = {i: tuple(p) for i, p in zip(rows, model.held_out_proba_, strict=True)}
    own = np.random.default_rng(np.random.RandomState(0).randint(2**31))
    of_rows = draw_folds(y[rows], 3, own)
    for k in range(3):
        held_out = [i for i, f in zip(rows, of_rows, strict=True) if f == k]
        train = [i for i in range(120) if i not in held_out]
        expected = clone(semi).fit(X.iloc[train], labels[train], weights[train]).predict_proba(X.iloc[held_out])
        np.testing.assert_array_equal([fold[i] for i in held_out], expected)


def test_conformal_sets_of_partly_labeled_rows_have_the_coverage_of_labeled_rows():
    X, y, _ = frame(900)
    known = np.where(np.arange(900) < 300, y, -1)
    model = ConformalClassifier(SemiSupervisedClassifier(NaiveBayesClassifier()), random_state=0)
    model.fit(X[:600], known[:600])
    sets = model.predict_set(X[600:], 0.8)
    assert sets.shape == (300, 3)
    assert 0.73 < sets[np.arange(300), y[600:]].mean() < 0.95


def test_conformal_labels_of_minus_one_and_one_are_classes():
    X, y, _ = frame(100)
    labels = np.where(y == 0, -1.0, 1.0)
    labels[50:] = np.nan
    model = ConformalClassifier(SemiSupervisedClassifier(NaiveBayesClassifier()), cv=2).fit(X, labels)
    assert model.classes_.tolist() == [-1, 1]
    assert len(model.held_out_y_) == 50


def test_conformal_sets_from_too_few_labels_are_refused():
    X, _, known = frame(100, n_labeled=8)
    model = ConformalClassifier(SemiSupervisedClassifier(NaiveBayesClassifier()))
    with pytest.raises(ValueError, match=r"cv=10 needs at least 10 rows with positive weight and a class, got 8"):
        clone(model).fit(X, known)
    single = np.full(100, -1)
    single[:9] = [0, 0, 0, 0, 0, 0, 0, 0, 1]
    with pytest.raises(
        ValueError, match=r"each fold must leave labeled rows of at least two classes.*use missing labels \(NaN, None"
    ):
        clone(model).set_params(cv=9).fit(X[["color", "shape"]], single)


def test_what_cannot_be_learned_is_refused():
    X, _, known = frame()
    network = NaiveBayesClassifier()
    with pytest.raises(
        ValueError,
        match=r"all 200 row\(s\) with non-zero weight have a missing label \(NaN, None\) or -1.*Label at least one",
    ):
        SemiSupervisedClassifier(network).fit(X, np.full(200, np.nan))
    with pytest.raises(ValueError, match=r"one class only, 1.0, in all 20 row\(s\)"):
        SemiSupervisedClassifier(network).fit(X, np.where(known < 0, np.nan, 1))
    with pytest.raises(ValueError, match=r"parameters=HierarchicalDirichlet.*Use MaximumLikelihood\(\)"):
        SemiSupervisedClassifier(NaiveBayesClassifier(parameters=HierarchicalDirichlet())).fit(X, known)
    with pytest.raises(ValueError, match="The 'estimator' parameter of SemiSupervisedClassifier must be an instance"):
        SemiSupervisedClassifier(TANClassifier()).fit(X, known)
    with pytest.raises(ValueError, match=r"because 180 row\(s\) have no class to weigh, got 'balanced'"):
        SemiSupervisedClassifier(NaiveBayesClassifier(class_weight="balanced")).fit(X, known)
    for encoder in (TableEncoder(discretizer=tanlearn.MDLPDiscretizer()), TableEncoder(handle_missing="auto")):
        with pytest.raises(ValueError, match=r"depends on classes, but 180 row\(s\) have none\. Pass TableEncoder"):
            SemiSupervisedClassifier(NaiveBayesClassifier(encoder=encoder)).fit(X, known)
    cycle = BayesNetClassifier(structure=Structure([1, 0, -1, -1], allow_cycles=True))
    with pytest.raises(ValueError, match="cycle"):
        SemiSupervisedClassifier(cycle).fit(X, known)
    with pytest.raises(ValueError, match="X has 200, y has 199"):
        SemiSupervisedClassifier(network).fit(X, known[1:])


def test_mistakes_in_data_raise_the_warnings_of_classifiers():
    X, _, known = frame()
    with pytest.warns(UserWarning, match="order"):
        SemiSupervisedClassifier(NaiveBayesClassifier()).fit(X, pd.Series(known, index=X.index[::-1]))
    with pytest.warns(UserWarning, match=r"sample_weight adds up to 20,000"):
        SemiSupervisedClassifier(NaiveBayesClassifier()).fit(X, known, np.full(200, 100.0))


def test_a_failed_fit_leaves_no_fitted_classifier():
    X, _, known = frame()
    model = SemiSupervisedClassifier(NaiveBayesClassifier()).fit(X, known)
    with pytest.raises(ValueError, match="Label at least one"):
        model.fit(X, np.full(200, np.nan))
    assert not hasattr(model, "estimator_")
