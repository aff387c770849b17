"""AnDE against direct counting, the enumeration of missing features, and its errors on real data."""

import itertools
import math

import numpy as np
import pytest
from oracles import ande as naive
from sklearn.datasets import load_iris
from support.published_folds import DATA, folds

import tanlearn
from tanlearn import EncodedData, MaximumLikelihood, NaiveBayesClassifier, TableEncoder
from tanlearn._memory import TableMemoryError
from tanlearn.baselines import AnDEClassifier, AODEClassifier, n_dependence
from tanlearn.baselines.n_dependence import NDependenceEnsemble
from tanlearn.baselines.row_counts import RowCounts

N_STATES, N_CLASSES = [2, 3, 4, 2], 3
CODES = {"encoder": TableEncoder(discrete_features=True)}


def random_rows(seed=0, n=60, missing=0.0):
    """Rows with the class in the last column; -1 is missing."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    X[rng.random(X.shape) < missing] = -1
    return np.column_stack([X, rng.integers(0, N_CLASSES, n)])


def encoded(XY, weight=None):
    return EncodedData.from_codes(XY[:, :-1], XY[:, -1], n_states=N_STATES, n_classes=N_CLASSES, sample_weight=weight)


def ensemble(XY, weight=None, n=2, allowed=range(4), **options):
    data = encoded(XY, weight)
    settings = {"m": 0.5, "min_count": 1, "subsumption": False, **options}
    return NDependenceEnsemble(RowCounts(N_STATES, N_CLASSES).update(data), n, np.array(allowed, np.intp), **settings)


def joint(model, X, **options):
    return np.exp(model.log_joint(encoded(np.column_stack([X, np.zeros(len(X), int)])).codes, **options))


def with_gaps(XY):
    """Return features with nan in place of -1, and classes."""
    return np.where(XY[:, :-1] == -1, np.nan, XY[:, :-1]), XY[:, -1]


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "m", "min_count"), [(2, 1, 1), (2, 0.01, 0), (3, 0.5, 1), (3, 1, 4.5), (2, 1, 1000)])
def test_joint_equals_direct_counting(missing, weighted, n, m, min_count):
    XY, samples = random_rows(0, missing=missing), random_rows(1, n=15, missing=missing)[:, :-1]
    weight = np.random.default_rng(2).uniform(0, 2, len(XY)) if weighted else np.ones(len(XY), int)
    model = ensemble(XY, weight, n, m=m, min_count=min_count)
    expected = [naive.ande(XY, weight, N_STATES, N_CLASSES, n, m, min_count, sample) for sample in samples]
    np.testing.assert_allclose(joint(model, samples), expected, rtol=3e-6)


@pytest.mark.parametrize("allowed", [[0, 2, 3], [1, 3], [2]])
def test_only_some_features_are_super_parents(allowed):
    XY, samples = random_rows(2, missing=0.1), random_rows(3, n=15, missing=0.1)[:, :-1]
    ones = np.ones(len(XY), int)
    expected = [naive.ande(XY, ones, N_STATES, N_CLASSES, 2, 0.5, 1, sample, allowed) for sample in samples]
    np.testing.assert_allclose(joint(ensemble(XY, allowed=allowed), samples), expected, rtol=3e-6)


@pytest.mark.parametrize("n", [2, 3])
def test_missing_features_are_summed_out_of_every_estimator(n):
    XY, ones = random_rows(3, missing=0.1), np.ones(60, int)
    model = ensemble(XY, n=n, min_count=0)
    for sample in ([0, -1, 3, 1], [-1, 2, -1, 0], [1, 1, 1, -1]):
        known = [i for i, v in enumerate(sample) if v != -1]
        completions = list(itertools.product(*([v] if v != -1 else range(N_STATES[i]) for i, v in enumerate(sample))))
        sets = list(itertools.combinations(known, min(n, len(known))))
        expected = [
            np.mean(
                [
                    sum(naive.n_dependence(XY, ones, N_STATES, N_CLASSES, 0.5, s, x, c) for x in completions)
                    for s in sets
                ]
            )
            for c in range(N_CLASSES)
        ]
        np.testing.assert_allclose(joint(model, np.array([sample]))[0], expected, rtol=3e-6)


@pytest.mark.parametrize("n", [2, 3])
def test_joint_of_all_estimators_sums_to_one(n):
    every_row = np.array(list(itertools.product(*map(range, N_STATES))))
    assert joint(ensemble(random_rows(4, missing=0.1), n=n, min_count=0), every_row).sum() == pytest.approx(1, rel=1e-5)


def test_naive_bayes_answers_where_nothing_was_seen_often_enough():
    X, y = with_gaps(random_rows(5))
    with pytest.warns(
        UserWarning,
        match=r"total weight min_count=1000, so there are no super-parents and the model is naive Bayes\. Scale",
    ):
        rare = AnDEClassifier(m=1e-9, min_count=1000, **CODES).fit(X, y)
    bayes = NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=1e-12), **CODES).fit(X, y)
    np.testing.assert_allclose(rare.predict_joint_log_proba(X), bayes.predict_joint_log_proba(X), rtol=1e-5)
    nothing = np.full((1, 4), np.nan)
    usual = AnDEClassifier(**CODES).fit(X, y)
    np.testing.assert_allclose(usual.predict_proba(nothing)[0], (np.bincount(y) + 1 / 3) / 61, rtol=1e-6)


def test_values_that_another_implies_are_left_out():
    """Column 1 says whether column 2 is above 1, and column 3 copies column 0: three of twelve pairs are no news."""
    XY = random_rows(6, n=900)
    XY[:, 1], XY[:, 3] = XY[:, 2] > 1, XY[:, 0]
    samples, ones = random_rows(7, n=25, missing=0.1)[:, :-1], np.ones(900, int)
    reduced = np.array([naive.without_implied(XY, ones, sample, 100) for sample in samples])
    assert (reduced != samples).any(axis=0).tolist() == [False, True, False, True]
    expected = [naive.ande(XY, ones, N_STATES, N_CLASSES, 2, 0.5, 1, sample) for sample in reduced]
    np.testing.assert_allclose(joint(ensemble(XY, subsumption=True), samples), expected, rtol=3e-6)
    assert abs(joint(ensemble(XY), samples) - expected).max() > 1e-3


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_another_prior_is_that_of_every_estimator(missing):
    XY, samples = random_rows(8, missing=missing), random_rows(9, n=10, missing=missing)[:, :-1]
    prior, ones = [0.7, 0.3, 0.0], np.ones(60, int)
    log_prior = np.array([np.log(0.7), np.log(0.3), -np.inf])
    expected = [naive.ande(XY, ones, N_STATES, N_CLASSES, 2, 0.5, 1, x, prior=prior) for x in samples]
    np.testing.assert_allclose(joint(ensemble(XY).with_log_prior(log_prior), samples), expected, rtol=3e-6)


def test_weight_zero_is_an_absent_row_and_weight_two_the_row_twice_in_any_order():
    X, y = with_gaps(random_rows(6, n=100, missing=0.1))
    weight = np.random.default_rng(0).integers(0, 3, 100)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(100), weight))
    weighted = AnDEClassifier(**CODES).fit(X, y, sample_weight=weight)
    plain = AnDEClassifier(**CODES).fit(X[rows], y[rows])
    for one, other in (("codes", "codes"), ("y", "y"), ("weights", "weights")):
        np.testing.assert_array_equal(getattr(weighted.ensemble_.counts, one), getattr(plain.ensemble_.counts, other))
    np.testing.assert_array_equal(weighted.predict_log_proba(X), plain.predict_log_proba(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_blocks_and_other_rows_change_nothing(weighted, monkeypatch):
    X = random_rows(7, n=300, missing=0.1)[:, :-1]
    weight = np.random.default_rng(2).random(80) if weighted else None
    model = ensemble(random_rows(8, n=80), weight, n=3)
    whole = joint(model, X)
    np.testing.assert_array_equal(joint(model, X, n_jobs=2), whole)
    np.testing.assert_array_equal(joint(model, X[100:110]), whole[100:110])
    np.testing.assert_array_equal(joint(model, X[::-1])[::-1], whole)
    monkeypatch.setattr(n_dependence, "_SUMS", 60)
    np.testing.assert_array_equal(joint(model, X), whole)
    assert model.log_joint(np.empty((4, 0), np.uint8)).shape == (0, N_CLASSES)


def test_a_thousand_features_stay_finite():
    """Their joint, about exp(-700), is no normal float32 and nearly no float64."""
    X = np.random.default_rng(9).integers(0, 2, (30, 1000))
    p = AnDEClassifier(max_super_parents=5).fit(X, np.arange(30) % 2).predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


def test_what_says_most_about_the_class_is_super_parent():
    X = np.random.default_rng(10).integers(0, 2, (300, 6))
    y = X[:, 4] + X[:, 1]
    assert AnDEClassifier(max_super_parents=2).fit(X, y).ensemble_.super_parents.tolist() == [1, 4]
    assert AnDEClassifier(max_super_parents=7).fit(X, y).ensemble_.super_parents.tolist() == list(range(6))
    wide = np.random.default_rng(0).integers(0, 2, (20, 300))
    for n, number in ((2, 256), (3, 64)):
        assert len(AnDEClassifier(n=n).fit(wide, wide[:, 7]).ensemble_.super_parents) == number


def test_sets_of_features_are_learnt_that_fewer_super_parents_cannot():
    X = np.random.default_rng(10).integers(0, 2, (800, 5))
    y = X[:, 0] ^ X[:, 1] ^ X[:, 3]
    assert AODEClassifier().fit(X, y).score(X, y) < 0.8
    assert AnDEClassifier().fit(X, y).score(X, y) == 1
    y ^= X[:, 4]
    assert AnDEClassifier().fit(X, y).score(X, y) < 0.8
    assert AnDEClassifier(n=3).fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("max_super_parents", ["auto", 3, 1])
@pytest.mark.parametrize("n", [2, 3])
def test_free_parameters_are_those_of_the_tables_of_all_estimators(n, max_super_parents):
    model = AnDEClassifier(n=n, max_super_parents=max_super_parents).fit_encoded(encoded(random_rows(11)))
    inside = model.ensemble_.super_parents.tolist()
    expected = 0
    for s in itertools.combinations(inside, min(n, len(inside))):
        cells = N_CLASSES * math.prod(N_STATES[i] for i in s)
        expected += cells - 1 + cells * sum(N_STATES[j] - 1 for j in range(4) if j not in s)
    assert model.n_parameters_ == expected
    assert model.size_bits_ == 8 * len(model.ensemble_.counts.y) * (4 + 8 + 8)
    n_rows, n_sets = len(model.ensemble_.counts.y), math.comb(len(inside), min(n, len(inside)))
    assert model.n_operations_ == n_sets * ((5 - min(n, len(inside))) * N_CLASSES + 4 * n_rows)


def test_fewer_features_than_super_parents():
    X, y = np.array([[0], [1], [1], [1]]), [0, 1, 1, 0]
    p = np.exp(AnDEClassifier(n=3, m=4, **CODES).fit(X, y).predict_joint_log_proba(X[:2]))
    np.testing.assert_allclose(p, np.array([[2, 1], [2, 3]]) / 8, rtol=1e-6)


def test_counts_of_rows_know_real_weights_and_zero():
    data = encoded(random_rows(12, n=20), np.arange(20) / 2)
    counts = RowCounts(N_STATES, N_CLASSES).update(encoded(random_rows(12, n=20))).update(data)
    found = {(*row, c): w for row, c, w in zip(counts.codes.T.tolist(), counts.y, counts.weights, strict=True)}
    expected = {}
    for k, row in enumerate(random_rows(12, n=20).tolist()):
        expected[tuple(row)] = expected.get(tuple(row), 0) + 1 + k / 2
    assert found == expected


@pytest.mark.parametrize("prior", [None, [0.2, 0.3, 0.5]])
def test_files_keep_the_rows(prior, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = AnDEClassifier(n=3, class_prior=prior).fit(X, y, np.arange(150) % 3)
    model.save(tmp_path / "model.tan")
    again = tanlearn.load(tmp_path / "model.tan")
    np.testing.assert_array_equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert again.size_bits_ == model.size_bits_
    model.set_params(n=2, m=5, min_count=9, subsumption=True, max_super_parents=2).save(tmp_path / "model.tan")
    again = tanlearn.load(tmp_path / "model.tan")  # what was learnt, with parameters for a later fit
    np.testing.assert_array_equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"codes": np.full((4, 3), 9, np.uint8)}, "below the number of values"),
        ({"codes": np.zeros((4, 2), np.uint8)}, "codes must have"),
        ({"y": np.array([0, 1, 3], np.int32)}, "y must contain class numbers"),
        ({"y": np.array([0, 1, -1], np.int32)}, "y must contain class numbers"),
        ({"weights": np.array([1, 0, 1])}, "weights must be positive"),
        ({"weights": np.array([1e308, 1e308, 1.0])}, "finite sum"),
        ({"super_parents": np.array([0, 4], np.int32)}, "increasing order"),
        ({"super_parents": np.array([-1, 2], np.int32)}, "increasing order"),
        ({"super_parents": np.array([1, 1], np.int32)}, "increasing order"),
        ({"super_parents": np.empty(0, np.int32)}, "one or more"),
        *(
            ({"settings": np.array(settings)}, "in settings, n must be 2 or 3")
            for settings in ([1.0, 1, 1, 0], [2.0, 0, 1, 0], [2.0, 1, -1, 0], [3.0, 1, 1, 2])
        ),
        ({"settings": np.ones(3)}, "settings must have"),
        ({"prior": np.array([0.5, 0.5])}, "prior must have"),
        ({"prior": np.array([-0.5, 1, 0.5])}, "prior must not be negative"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_damaged_states_are_refused(wrong, message):
    model = AnDEClassifier(**CODES).fit([[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1]], [0, 1, 2])
    with pytest.raises(ValueError, match=message), np.errstate(over="ignore"):
        model._set_state({**model._get_state(), **wrong})


def test_values_that_leave_no_room_for_their_counts_are_refused(monkeypatch):
    X, y = np.arange(3000).reshape(-1, 1).repeat(3, axis=1).astype(str), np.arange(3000) % 10
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", "1e-3")
    message = (
        r"the array of counts of 3 features \(X column 0 has 3,000 values\) given their super-parents, for each of "
        r"2 threads, has 90,010"
    )
    with pytest.raises(TableMemoryError, match=message) as error:
        AnDEClassifier(n_jobs=2).fit(X, y)
    assert "Lower n_jobs, or merge, discretize or leave out columns" in str(error.value)


@pytest.mark.parametrize(
    "parameters",
    [{"n": 1}, {"n": 4}, {"m": 0}, {"min_count": -1}, {"max_super_parents": 0}, {"device": "cuda"}],
    ids=str,
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of AnDEClassifier must be"):
        AnDEClassifier(**parameters).fit([[0], [1]], [0, 1])


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")
@pytest.mark.parametrize(("name", "n", "error", "loss"), [("letter", 2, 6.458, 0.2084), ("letter", 3, 5.782, 0.1916)])
def test_errors_on_the_discretised_sets(name, n, error, loss):
    """Measured with the defaults. AODE errs 9.85 %."""
    ((train, test),) = folds(name)
    scores = AnDEClassifier(n=n).fit_encoded(train).ensemble_.log_joint(test.codes)
    log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    assert 100 * (scores.argmax(axis=1) != test.y).mean() == pytest.approx(error, abs=0.001)
    assert -log_p[np.arange(len(test.y)), test.y].mean() == pytest.approx(loss, abs=0.0001)
