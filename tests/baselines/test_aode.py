"""AODE against direct counting, the enumeration of missing features, and its errors on real data."""

import itertools

import numpy as np
import pytest
from oracles import aode as naive_aode
from sklearn.exceptions import NotFittedError
from support.published_folds import DATA, folds

from tanlearn import EncodedData, MaximumLikelihood, NaiveBayesClassifier, PairCounts, TableEncoder
from tanlearn.baselines import AODEClassifier
from tanlearn.baselines.aode import OneDependenceEnsemble
from tanlearn.estimators.impossible_rows import ImpossibleRowsWarning

N_STATES, N_CLASSES = [2, 3, 4], 3
CODES = {"encoder": TableEncoder(discrete_features=True)}


def random_rows(seed=0, n=50, missing=0.0):
    """Rows with the class in the last column; -1 is missing."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    X[rng.random(X.shape) < missing] = -1
    return np.column_stack([X, rng.integers(0, N_CLASSES, n)])


def encoded(XY, weight=None):
    return EncodedData.from_codes(XY[:, :-1], XY[:, -1], n_states=N_STATES, n_classes=N_CLASSES, sample_weight=weight)


def ensemble(XY, weight=None, alpha=0.5, min_count=1):
    data = encoded(XY, weight)
    state = PairCounts(data.n_states, data.n_classes).update(data)
    return OneDependenceEnsemble.from_counts(state, alpha=alpha, min_count=min_count)


def joint(model, X, **options):
    return np.exp(model.log_joint(encoded(np.column_stack([X, np.zeros(len(X), int)])).codes, **options))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("alpha", "min_count"), [(0.1, 1), (1.0, 0), (0.0, 1), (0.0, 0), (0.5, 15.5), (0.0, 1000)])
def test_joint_equals_direct_counting(missing, weighted, alpha, min_count):
    XY, samples = random_rows(0, missing=missing), random_rows(1, n=15, missing=missing)[:, :-1]
    weight = np.random.default_rng(2).uniform(0, 2, len(XY)) if weighted else np.ones(len(XY), int)
    model = ensemble(XY, weight, alpha, min_count)
    expected = [naive_aode.aode(XY, weight, N_STATES, N_CLASSES, alpha, min_count, sample) for sample in samples]
    np.testing.assert_allclose(joint(model, samples), expected, rtol=2e-6)


def test_what_is_never_seen_beside_a_super_parent_is_uniform():
    """In class 0, the rows with x0 = 0 all miss x1."""
    XY = np.array([[0, -1, 0, 0], [0, -1, 1, 0], [1, 0, 2, 1], [1, 2, 3, 1], [1, 1, 0, 2]])
    weight, sample = np.ones(5, int), [0, 1, 0]
    model = ensemble(XY, alpha=0)
    expected = naive_aode.aode(XY, weight, N_STATES, N_CLASSES, 0, 1, sample)
    assert expected[0] > 0
    np.testing.assert_allclose(joint(model, [sample]), [expected], rtol=2e-6)


def test_missing_features_are_summed_out_of_every_estimator():
    XY = random_rows(3, missing=0.1)
    arguments = (XY, np.ones(len(XY)), N_STATES, N_CLASSES, 0.5)
    model = ensemble(XY)
    for sample in ([0, -1, 3], [-1, 2, -1], [-1, -1, 1]):
        known = [i for i, v in enumerate(sample) if v != -1]
        completions = list(itertools.product(*([v] if v != -1 else range(N_STATES[i]) for i, v in enumerate(sample))))
        expected = [
            np.mean([sum(naive_aode.one_dependence(*arguments, i, x, c) for x in completions) for i in known])
            for c in range(N_CLASSES)
        ]
        np.testing.assert_allclose(joint(model, np.array([sample]))[0], expected, rtol=2e-6)


def test_joint_of_all_estimators_sums_to_one():
    every_row = np.array(list(itertools.product(*map(range, N_STATES))))
    assert joint(ensemble(random_rows(4), min_count=0), every_row).sum() == pytest.approx(1, rel=1e-6)


def test_naive_bayes_answers_where_no_value_was_seen_often_enough():
    XY = random_rows(5, missing=0.2).astype(float)
    XY[XY == -1] = np.nan
    X, y = XY[:, :-1], XY[:, -1].astype(int)
    with pytest.warns(
        UserWarning,
        match=r"total weight min_count=1000, so there are no super-parents and the model is naive Bayes\. Scale",
    ):
        rare = AODEClassifier(alpha=2, min_count=1000, **CODES).fit(X, y)
    bayes = NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=2), **CODES).fit(X, y)
    np.testing.assert_allclose(rare.predict_joint_log_proba(X), bayes.predict_joint_log_proba(X), rtol=1e-6)
    nothing = np.full((1, 3), np.nan)
    usual = AODEClassifier(alpha=2, **CODES).fit(X, y)
    np.testing.assert_allclose(usual.predict_log_proba(nothing)[0], bayes.tables_.log_prior, rtol=1e-6)
    assert abs(usual.predict_joint_log_proba(X) - bayes.predict_joint_log_proba(X)).max() > 0.1


def test_a_value_is_a_super_parent_from_its_weight_on():
    """The value 1 has weight 3: it is left out from just above 3 on, and the value 0, of 4, is not."""
    XY = np.array([[1, 0, 0, 0], [1, 1, 1, 1], [0, 2, 2, 2], [0, 2, 3, 0]])
    model = {m: ensemble(XY, [1, 2, 2, 2], min_count=m) for m in (3, 3.1, 4)}
    np.testing.assert_array_equal(model[3].is_parent[:2], [True, True])
    np.testing.assert_array_equal(model[3.1].is_parent[:2], [True, False])
    np.testing.assert_array_equal(model[4].is_parent, [True, False, False, False, True, *[False] * 5])


def test_weight_zero_is_an_absent_row_and_weight_two_the_row_twice():
    XY = random_rows(6, missing=0.1).astype(float)
    XY[XY == -1] = np.nan
    weight = np.random.default_rng(0).integers(0, 3, len(XY))
    repeated = np.repeat(XY, weight, axis=0)
    weighted = AODEClassifier(min_count=20).fit(XY[:, :-1], XY[:, -1], sample_weight=weight)
    plain = AODEClassifier(min_count=20).fit(repeated[:, :-1], repeated[:, -1])
    np.testing.assert_array_equal(weighted.ensemble_.log_child, plain.ensemble_.log_child)
    np.testing.assert_array_equal(weighted.predict_proba(XY[:, :-1]), plain.predict_proba(XY[:, :-1]))


def test_threads_and_blocks_change_nothing():
    X = random_rows(7, n=700, missing=0.1)[:, :-1]
    model = ensemble(random_rows(8))
    whole = joint(model, X)
    np.testing.assert_array_equal(joint(model, X, n_jobs=2), whole)
    np.testing.assert_array_equal(joint(model, X[300:310]), whole[300:310])
    y = random_rows(7, n=700)[:, -1]
    one, two = (AODEClassifier(n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_thousand_features_stay_finite():
    """Their joint, about exp(-700), is no normal float32 and nearly no float64."""
    X = np.random.default_rng(9).integers(0, 2, (30, 1000))
    p = AODEClassifier().fit(X, np.arange(30) % 2).predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


def test_impossible_rows_get_the_class_probabilities_without_smoothing():
    X, y = np.array([[0, 0], [0, 0], [1, 1], [1, 1]]), np.array([0, 1, 1, 1])
    model = AODEClassifier(alpha=0, **CODES).fit(X, y)
    assert np.isneginf(model.predict_joint_log_proba([[0, 1]])).all()
    with pytest.warns(ImpossibleRowsWarning, match=r"1 of 1 rows .*\(row 0\)"):
        assert model.predict_proba([[0, 1]]) == pytest.approx(np.array([[0.25, 0.75]]))
    with pytest.warns(ImpossibleRowsWarning):
        assert model.predict([[0, 1]]).tolist() == [1]


def test_pairs_of_features_are_learnt_that_naive_bayes_cannot():
    X = np.random.default_rng(10).integers(0, 2, (300, 4))
    y = X[:, 1] ^ X[:, 3]
    assert AODEClassifier().fit(X, y).score(X, y) == 1
    assert NaiveBayesClassifier().fit(X, y).score(X, y) < 0.8


def test_free_parameters_are_those_of_all_estimators():
    data = encoded(random_rows(11))
    expected = 0
    for i, k in enumerate(N_STATES):
        expected += k * N_CLASSES - 1
        expected += sum(k * N_CLASSES * (other - 1) for j, other in enumerate(N_STATES) if j != i)
    model = AODEClassifier().fit_encoded(data)
    assert model.n_parameters_ == expected
    states, classes = data.n_states.tolist(), data.n_classes
    pairs = sum(s * other for i, s in enumerate(states) for j, other in enumerate(states) if i != j)
    assert model.size_bits_ == 32 * classes * (sum(states) + pairs)
    assert model.n_operations_ == classes * (len(states) * len(states) + len(states))


def test_single_feature_needs_no_pairs():
    X, y = np.array([[0], [1], [1], [1]]), [0, 1, 1, 0]
    p = np.exp(AODEClassifier(alpha=1, **CODES).fit(X, y).predict_joint_log_proba(X[:2]))
    np.testing.assert_allclose(p, np.array([[2, 1], [2, 3]]) / 8, rtol=1e-6)


def test_learning_from_codes_forgets_the_encoder_of_an_earlier_fit():
    XY = random_rows(12)
    model = AODEClassifier().fit(XY[:, :-1], XY[:, -1]).fit_encoded(encoded(XY))
    with pytest.raises(NotFittedError):
        model.predict(XY[:, :-1])


@pytest.mark.parametrize("parameters", [{"alpha": 0}, {"alpha": 0.5}, {"min_count": 0}, {"min_count": 0.5}], ids=str)
def test_parameters_from_zero_are_legal(parameters):
    X = np.random.default_rng(0).integers(0, 2, (100, 2))
    assert AODEClassifier(**parameters, **CODES).fit(X, X[:, 0] ^ X[:, 1]).score(X, X[:, 0] ^ X[:, 1]) == 1


@pytest.mark.parametrize("parameters", [{"alpha": -0.1}, {"alpha": "1"}, {"min_count": -1}, {"min_count": None}])
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of AODEClassifier must be a float"):
        AODEClassifier(**parameters).fit([[0], [1]], [0, 1])


def test_repr_shows_what_was_set():
    assert repr(AODEClassifier(alpha=1, min_count=30)) == "AODEClassifier(alpha=1, min_count=30)"


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")
@pytest.mark.parametrize(("name", "error"), [("letter", 9.853), ("satimage", 11.247), ("usps", 4.126)])
def test_errors_on_the_discretised_sets(name, error):
    """Measured with the defaults; alpha=1 errs 12.09, 11.51 and 4.34 %."""
    errors = []
    for train, test in folds(name):
        scores = AODEClassifier().fit_encoded(train).ensemble_.log_joint(test.codes)
        errors.append(100 * (scores.argmax(axis=1) != test.y).mean())
    assert np.mean(errors) == pytest.approx(error, abs=0.001)


@pytest.mark.filterwarnings("ignore:sample_weight adds up:UserWarning")
def test_weights_too_small_for_any_super_parent_are_news():
    X = np.random.default_rng(0).integers(0, 2, (40, 2))
    with pytest.warns(
        UserWarning,
        match=r"total weight min_count=1, so there are no super-parents and the model is naive Bayes\. Scale",
    ):
        AODEClassifier().fit(X, X[:, 0], sample_weight=np.full(40, 0.01))
