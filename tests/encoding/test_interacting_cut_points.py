"""Cut points of features that separate classes only together with another feature."""

import numpy as np
import pandas as pd
import pytest
from oracles import interacting_cut_points as oracle
from sklearn.utils.estimator_checks import parametrize_with_checks

from tanlearn import BayesNetClassifier, MDLPDiscretizer, NaiveBayesClassifier, TableEncoder, TANClassifier
from tanlearn.baselines import ChowLiu
from tanlearn.encoding.cut_points import OtherFeatures
from tanlearn.estimators.estimator_input import encode_training
from tanlearn.sources.columns import read_columns


@parametrize_with_checks([MDLPDiscretizer(interactions=True)])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def table(seed, n=120):
    """Numbers of which two decide the class only together, or one with a category; with noise and missing values."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-6, 7, (n, 4)).astype(float)
    category = rng.choice(["a", "b", "c"], n).astype(object)
    y = ((X[:, 0] > 0) ^ (X[:, 1] > -1) if seed % 2 else (X[:, 2] > 1) ^ (category == "a")).astype(int)
    y = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)
    X[rng.random(X.shape) < 0.05] = np.nan
    category[rng.random(n) < 0.05] = None
    return X, category, y


def fitted(X, category, y, weight=None, **options):
    known = sorted({value for value in category if value is not None})
    codes = np.array([[known.index(value) if value is not None else 255 for value in category]], np.uint8)
    discretizer = MDLPDiscretizer(interactions=True, **options)
    others = OtherFeatures(codes, np.array([len(known)]))
    return discretizer.fit_columns(read_columns(X), list(range(X.shape[1])), y, weight, lambda: others)


@pytest.mark.parametrize("kind", ["rows", "integers", "real weights"])
@pytest.mark.parametrize("seed", range(8))
def test_cut_points_are_those_of_the_oracle(seed, kind):
    X, category, y = table(seed)
    rng = np.random.default_rng(seed)
    weight = {"rows": np.ones(len(y)), "integers": rng.integers(1, 4, len(y)), "real weights": rng.random(len(y)) + 0.5}
    own = weight[kind].astype(float)
    found = fitted(X, category, y, None if kind == "rows" else own).cut_points_
    expected = oracle.with_interacting_cut_points(X.T.tolist(), [category.tolist()], y.tolist(), own.tolist())
    assert [cuts.tolist() for cuts in found] == [[(low + high) / 2 for low, high in cuts] for cuts in expected]


def test_the_tables_of_the_oracle_have_cut_points_with_numbers_and_with_categories():
    found = np.array([fitted(*table(seed)).n_states_ > 1 for seed in range(8)])
    plain = np.array([MDLPDiscretizer().fit(table(seed)[0], table(seed)[2]).n_states_ > 1 for seed in range(8)])
    assert (found & ~plain)[1::2, :2].all(axis=1).sum() >= 2
    assert (found & ~plain)[::2, 2].sum() >= 2


def test_a_weight_of_two_equals_two_rows():
    X, category, y = table(0)
    twice = np.repeat(np.arange(len(y)), 1 + np.arange(len(y)) % 2)
    weighted = fitted(X, category, y, 1 + np.arange(len(y)) % 2)
    repeated = fitted(X[twice], category[twice], y[twice])
    for one, other in zip(weighted.cut_points_, repeated.cut_points_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_weight_of_zero_equals_no_row_and_threads_change_nothing():
    X, category, y = table(1)
    rest = np.arange(len(y)) % 3 > 0
    weighted, fewer = fitted(X, category, y, rest.astype(int), n_jobs=2), fitted(X[rest], category[rest], y[rest])
    for one, other in zip(weighted.cut_points_, fewer.cut_points_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_with_many_values_are_cut_near_the_threshold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 4))
    cuts = MDLPDiscretizer(interactions=True).fit(X, (X[:, 0] > 1) ^ (X[:, 1] > 0)).cut_points_
    assert [len(own) for own in cuts[2:]] == [0, 0]
    assert np.abs(cuts[0] - 1).min() < 0.1
    assert np.abs(cuts[1]).min() < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_noise_gets_no_cut_points_from_noise(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 20))
    y = rng.integers(0, 3, 300)
    plain, more = (MDLPDiscretizer(interactions=option).fit(X, y) for option in (False, True))
    assert plain.n_states_.tolist() == more.n_states_.tolist()


def test_features_with_cut_points_of_their_own_keep_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.3 * X[:, 1] * X[:, 2] > 0).astype(int)
    plain, more = (MDLPDiscretizer(interactions=option).fit(X, y).cut_points_ for option in (False, True))
    np.testing.assert_array_equal(plain[0], more[0])


def test_tables_with_too_many_pairs_are_not_searched():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)).round(1)
    y = X[:, 0] * X[:, 1] > 0
    few, many = (np.hstack([X, np.ones((100, k))]) for k in (100, 130))
    assert MDLPDiscretizer(interactions=True).fit(few, y).n_states_[:2].tolist() == [2, 2]
    assert MDLPDiscretizer(interactions=True).fit(many, y).n_states_.max() == 1


@pytest.mark.parametrize("handle_missing", ["marginalize", "category"])
def test_encoders_and_their_folds_search_with_categories(handle_missing):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 300), "job": rng.choice(["clerk", "nurse", None], 300)})
    y = (frame["age"] > 40) ^ (frame["job"] == "nurse")
    encoder = TableEncoder(discretizer=MDLPDiscretizer(interactions=True), handle_missing=handle_missing)
    assert encoder.fit(frame, y).discretizer_.cut_points_[0].tolist() == [40.5]
    model = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(frame, y)
    assert model.score(frame, y) > 0.98
    rest, held_out = encode_training(model, frame, y)[0].split(np.arange(300) < 100)
    assert rest.n_states[0] == held_out.n_states[0] == 2


@pytest.mark.parametrize("learner", [TANClassifier(random_state=0), BayesNetClassifier(structure=ChowLiu())])
def test_trees_learn_the_sign_of_a_product_by_default(learner):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] * X[:, 1] > 0
    with pytest.warns(UserWarning, match="by such a column alone or with one other column"):
        learner.fit(X[:300], y[:300])
    assert learner.score(X[300:], y[300:]) > 0.9


def test_naive_bayes_leaves_constant_features_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    with pytest.warns(UserWarning, match="single interval"):
        model = NaiveBayesClassifier().fit(X, X[:, 0] * X[:, 1] > 0)
    assert model.encoder_.n_states_.tolist() == [1, 1]


def test_large_tables_are_searched_on_some_of_their_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 2))
    y = X[:, 0] * X[:, 1] > 0
    few = MDLPDiscretizer(interactions=True).fit(X, y).cut_points_
    monkeypatch.setattr("tanlearn.encoding.interacting_cut_points._MOST_WORK", 2_000)
    fewer = MDLPDiscretizer(interactions=True).fit(X, y).cut_points_
    assert all(np.abs(own).min() < 0.2 for own in (*few, *fewer))
    assert not np.array_equal(few[0], fewer[0])


def test_cut_points_found_with_a_category_are_not_replaced_by_those_with_a_worse_partner():
    """The first number decides with the category, at .8; the second only with the first, a little."""
    rng = np.random.default_rng(0)
    X, category = rng.normal(size=(4_000, 2)), rng.choice(["a", "b"], 4_000).astype(object)
    y = (X[:, 0] > 0.8) ^ (category == "a")
    y = np.where(rng.random(4_000) < 0.2, X[:, 0] * X[:, 1] > 0, y).astype(int)
    cuts = fitted(X, category, y).cut_points_
    assert np.abs(cuts[0] - 0.8).min() < 0.1


@pytest.mark.filterwarnings("ignore:discretization left a single interval")
def test_subclasses_without_the_parameter_and_with_their_own_fit_are_used():
    class Own(MDLPDiscretizer):
        def __init__(self, n_jobs=None):
            self.n_jobs = n_jobs

    class Fixed(MDLPDiscretizer):
        def fit(self, X, y, sample_weight=None):
            return self.restore([np.array([0.5])])

    X, y = np.linspace(0, 1, 40)[:, None], np.arange(40) % 2
    assert TableEncoder(discretizer=Own()).fit(X, y).n_states_.tolist() == [1]
    assert TableEncoder(discretizer=Fixed(interactions=True)).fit(X, y).discretizer_.cut_points_[0].tolist() == [0.5]


def test_the_warning_says_whether_other_columns_were_searched():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 140)), np.arange(100) % 2
    with pytest.warns(UserWarning, match="separates the classes by such a column alone. Drop") as caught:
        BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    assert len(caught) == 1
