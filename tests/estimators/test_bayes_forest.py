"""The forest as people meet it: raw tables, gaps, priors, weights, files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from support.forests import mixed_table

from tanlearn import BayesForestClassifier, EncodedData, MDLPDiscretizer, QuantileDiscretizer, TableEncoder, load


def small(*, ridge="auto", n_folds=5, **parameters):
    """Return a forest that is soon grown; ridge and folds are constants of the class."""
    model = BayesForestClassifier(**{"n_estimators": 4, "random_state": 0, **parameters})
    model._ridge, model._n_folds = ridge, n_folds
    return model


@pytest.fixture(scope="module")
def table():
    """Return numbers, categories and gaps, and a class of them."""
    return mixed_table()


@pytest.mark.parametrize("weights", ["auto", "shared", None])
def test_it_learns_what_no_feature_says_alone(table, weights):
    X, y = table
    model = small(weights=weights, n_estimators=8).fit(X[:160], y[:160])
    assert model.score(X[160:], y[160:]) > 0.8
    assert np.abs(model.predict_proba(X).sum(axis=1) - 1).max() < 1e-9
    assert len(model.structures_) == 8
    assert all(structure.is_acyclic for structure in model.structures_)
    assert model.n_parameters_ > 100


@pytest.mark.filterwarnings("ignore:discretization left")  # of a column that says nothing by itself
def test_files_hold_all_of_it(table, tmp_path):
    X, y = table
    model = small(class_prior=[0.3, 0.7]).fit(X, y)
    model.save(tmp_path / "forest.tan")
    again = load(tmp_path / "forest.tan")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert type(again.encoder_.discretizer_) is QuantileDiscretizer
    assert again.get_params(deep=False)["n_estimators"] == 4
    sure = small(class_prior=[0, 1]).fit(X, y)
    sure.save(tmp_path / "sure.tan")
    assert set(load(tmp_path / "sure.tan").predict(X)) == {"yes"}
    other = small(encoder=TableEncoder(discretizer=MDLPDiscretizer())).fit(X, y)
    other.save(tmp_path / "other.tan")
    assert type(load(tmp_path / "other.tan").encoder_.discretizer_) is MDLPDiscretizer


def test_prior_moves_the_odds_and_nothing_else(table):
    X, y = table
    model = small().fit(X, y)
    shares = np.array([(y == c).mean() for c in model.classes_])
    prior = np.array([0.9, 0.1])
    odds = np.diff(model.predict_log_proba(X), axis=1)
    moved = np.diff(model.with_class_prior(prior).predict_log_proba(X), axis=1)
    expected = np.log(prior[1] / prior[0]) - np.log((shares[1] * 240 + 1) / (shares[0] * 240 + 1))
    np.testing.assert_allclose(moved - odds, expected, atol=1e-9)
    same = small(class_prior=prior).fit(X, y)
    np.testing.assert_allclose(np.diff(same.predict_log_proba(X), axis=1), moved)
    twice = model.with_class_prior([0.2, 0.8]).with_class_prior(prior)
    np.testing.assert_allclose(np.diff(twice.predict_log_proba(X), axis=1), moved)


def test_missing_and_unseen_values_are_predicted_from(table):
    X, y = table
    model = small().fit(X, y)
    asked = pd.DataFrame({"size": [np.nan, 1.0, np.nan], "town": ["Rom", None, None], "age": [0.5, np.nan, np.nan]})
    p = model.predict_proba(asked)
    assert np.isfinite(p).all()
    complete = X.dropna()
    model = small().fit(complete, y[X.index.isin(complete.index)])
    p = model.predict_proba(asked)  # no gaps in training: who knows nothing has the prior
    frequency = np.exp(model.forest_.log_prior)
    expected = (1 - model.forest_.label_noise) * frequency / frequency.sum() + model.forest_.label_noise / 2
    np.testing.assert_allclose(p[2], expected)


def test_rows_of_weight_zero_are_absent(table):
    X, y = table
    weight = (np.arange(240) % 4 > 0).astype(float)
    first = small().fit(X, y, sample_weight=weight).predict_proba(X)
    second = small().fit(X[weight > 0], y[weight > 0]).predict_proba(X)
    np.testing.assert_array_equal(first, second)


def test_networks_of_rows_of_weight_two_are_those_of_repeated_rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (150, 4))
    y = np.where(rng.random(150) < 0.8, codes[:, 0] == codes[:, 1], rng.random(150) < 0.5).astype(int)
    weight = rng.integers(1, 4, 150)
    rows = np.repeat(np.arange(150), weight)
    found = []
    for own, sample_weight in ((np.arange(150), weight), (rows, None), (np.arange(150), None)):
        data = EncodedData.from_codes(codes[own], y[own], n_states=[4] * 4, sample_weight=sample_weight)
        found.append(small(min_samples=1, max_parents=2).fit_encoded(data).forest_)  # min_samples counts rows
    weighted, repeated, _ = found
    np.testing.assert_array_equal(weighted.log_frequency, repeated.log_frequency)
    gains = []
    for forest in found:
        scores = np.zeros((4, 3, 150, 2))
        for member, out in zip(forest.members, scores, strict=True):
            slot = np.tile(np.arange(3), (4, 1))
            of_member = np.ascontiguousarray(codes.T.astype(np.uint8))
            member.add_scores(of_member, np.ones((4, 3)), slot, out)
        gains.append(scores)
    for one, two in zip(weighted.members, repeated.members, strict=True):
        np.testing.assert_array_equal(one.tables.parents, two.tables.parents)
    np.testing.assert_allclose(gains[0], gains[1], atol=1e-5)
    assert np.abs(gains[0] - gains[2]).max() > 0.1


def test_tables_of_few_distinct_rows_are_learnt():
    # Equal rows must be able to stand in different folds: without all rows of one class, those of others mislead.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (3000, 2))
    p = np.array([0.9, 0.65, 0.3, 0.05])[2 * X[:, 0] + X[:, 1]]
    y = rng.random(3000) < p
    found = small(n_estimators=8).fit(X[:400].astype(str), y[:400]).predict_proba(X[400:].astype(str))[:, 1]
    assert np.abs(found - p[400:]).max() < 0.12
    own, truth = (np.where(y[400:], q, 1 - q) for q in (found, p[400:]))
    assert np.mean(np.log(truth / own)) < 0.05


def test_codes_of_unknown_origin_are_categories():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, (300, 2))
    model = small().fit_encoded(EncodedData.from_codes(codes, codes[:, 0] % 2, n_states=[40, 40]))
    assert model.forest_.members[0].cuts.n_states.tolist() == [40, 40]


def test_codes_can_be_said_to_have_an_order():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, (300, 2))
    data = EncodedData.from_codes(codes, codes[:, 0] % 2, n_states=[40, 40], is_ordered=[True, False])
    model = small(n_cuts=(3, 3)).fit_encoded(data)
    assert [member.cuts.n_states.tolist() for member in model.forest_.members] == [[4, 40]] * 4


def test_numbers_keep_their_order_and_names_have_none():
    rng = np.random.default_rng(0)
    pixel = rng.integers(0, 9, 400)
    grade = np.array(list("abcdefghi"))[pixel]
    X = pd.DataFrame(
        {
            "pixel": pixel,
            "whole": pixel.astype(float),
            "gaps": pd.array(np.where(rng.random(400) < 0.1, None, pixel), "Int64"),
            "objects": pixel.astype(object),
            "real": pixel + rng.random(400),
            "grade": pd.Categorical(grade, list("ihgfedcba"), ordered=True),
            "level": pd.Categorical(pixel, ordered=True),
            "truth": pixel > 3,
            "word": grade,
            "digit": pixel.astype(str),
            "kind": pd.Categorical(grade),
            "code": pd.Categorical(pixel),
        }
    )
    weight = (np.arange(400) > 0).astype(float)  # columns without some rows know as much
    n_states = small(n_cuts=(1, 1)).fit(X, pixel > 4, sample_weight=weight).forest_.members[0].cuts.n_states
    assert dict(zip(X, n_states.tolist(), strict=True)) == {
        **dict.fromkeys(["pixel", "whole", "objects", "real", "grade", "level", "truth"], 2),
        "gaps": 3,
        **dict.fromkeys(["word", "digit", "kind", "code"], 9),
    }
    array = X[["pixel", "whole"]].to_numpy()
    assert small(n_cuts=(1, 1)).fit(array, pixel > 4).forest_.members[0].cuts.n_states.tolist() == [2, 2]
    named = small(n_cuts=(1, 1), encoder=TableEncoder(discrete_features=[1])).fit(array, pixel > 4)
    assert named.forest_.members[0].cuts.n_states.tolist() == [2, 9]


def test_encoders_without_a_discretizer_leave_cuts_to_members(table):
    X, y = table
    with_names = small(encoder=TableEncoder(discrete_features=["town"])).fit(X, y)
    assert type(with_names.encoder_.discretizer_) is QuantileDiscretizer
    np.testing.assert_array_equal(with_names.predict_proba(X), small().fit(X, y).predict_proba(X))


def test_order_of_few_numbers_is_made_use_of():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (1200, 6))
    y = X.sum(axis=1) > 24
    ordered = small().fit(X[:400], y[:400])
    names = small().fit(X[:400].astype(str), y[:400])
    assert ordered.score(X[400:], y[400:]) > names.score(X[400:].astype(str), y[400:]) + 0.02


def test_numbers_of_threads_change_nothing(table):
    X, y = table
    p = [small(n_jobs=n_jobs).fit(X, y).predict_proba(X) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*p)


def test_it_says_what_weights_gain(capsys):
    X, y = load_iris(return_X_y=True)
    small(verbose=1).fit(X, y)
    told = capsys.readouterr().out
    assert "weights of levels" in told
    assert "weights of families" in told
    assert "label noise" in told
    small(weights=None, verbose=1).fit(X, y)
    assert "log loss by number of parents" in capsys.readouterr().out
    small().fit(X, y)
    assert capsys.readouterr().out == ""


def test_it_is_no_density():
    X, y = load_iris(return_X_y=True)
    model = small().fit(X, y)
    for method in ("score_samples", "predict_joint_log_proba"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=method) as caught:
            getattr(model, method)(X)
        assert "Use predict_log_proba, or a network such as NaiveBayesClassifier" in str(caught.value.__cause__)


@pytest.mark.parametrize("n_cuts", [(5,), (5, 3), (0, 3), (1.5, 3), (True, 3), True, [3.0, 15.0], [[3, 15]], np.eye(2)])
def test_cuts_are_two_numbers_in_order(n_cuts):
    with pytest.raises(ValueError, match="n_cuts must be one or two positive integers"):
        small(n_cuts=n_cuts).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("n_cuts", ["3", 0, 2.5, {3, 15}])
def test_cuts_of_other_kinds_are_refused(n_cuts):
    with pytest.raises(ValueError, match="n_cuts"):
        small(n_cuts=n_cuts).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(
    ("n_cuts", "same"),
    [([3, 15], (3, 15)), (np.array([3, 15]), (3, 15)), (4, (4, 4)), ((5, 10**30), (5, 33)), (10**30, (33, 33))],
)
def test_cuts_may_be_given_otherwise(n_cuts, same, tmp_path):
    x = np.random.default_rng(0).integers(0, 34, (200, 2))
    models = [small(n_estimators=2, n_cuts=either).fit(x, x[:, 0] > x[:, 1]) for either in (n_cuts, same)]
    np.testing.assert_array_equal(*[model.predict_proba(x) for model in models])
    models[0].save(tmp_path / "forest.tan")
    np.testing.assert_array_equal(load(tmp_path / "forest.tan").n_cuts, n_cuts)


@pytest.mark.parametrize(
    "parameters",
    [
        {"device": "cuda"},
        {"weights": "all"},
        {"smoothing": 0},
        {"smoothing": "auto"},
        {"min_samples": 0},
        {"min_samples": 2**31},
        {"n_estimators": 0},
        {"max_parents": -1},
        {"max_features": 1.01},
        {"max_features": -0.01},
        {"warm_start": 2},
        {"verbose": -1},
    ],
)
def test_wrong_parameters_are_refused(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        small(**parameters).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_folds": 2, "min_samples": 1, "max_parents": 0, "max_features": 0, "ridge": 0, "n_cuts": 1, "verbose": 0},
        {"n_folds": 99, "min_samples": 2**31 - 1, "max_features": 1.0, "max_parents": 99, "n_cuts": 10**9},
    ],
)
def test_the_limits_of_parameters_are_accepted(parameters):
    X, y = np.arange(24.0).reshape(12, 2) % 7, np.arange(12) % 2
    p = small(n_estimators=1, **parameters).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_more_classes_than_contexts_can_keep_apart_are_refused():
    data = EncodedData.from_codes([[0], [1]], [0, 65_535])
    with pytest.raises(ValueError, match="at most 65,535 classes, got 65,536"):
        small().fit_encoded(data)


def parity():
    """Return binary features, and a class that takes several of them: contexts of many levels."""
    X = np.random.default_rng(0).integers(0, 2, (200, 12))
    return X, X[:, 0] ^ (X[:, 1] & X[:, 2])


@pytest.mark.parametrize("smoothing", [1e-300, 1e-60, 1e-41])
def test_smoothing_that_would_vanish_is_refused(smoothing):
    X, y = parity()
    with pytest.raises(
        ValueError, match=f"smoothing={smoothing:g} is too small: with up to 6 parents .* at least 1e-290"
    ):
        small(smoothing=smoothing, max_parents=6).fit(X, y)


@pytest.mark.parametrize("weights", ["auto", None])
@pytest.mark.parametrize(
    "parameters",
    [
        {"smoothing": 1e-35},
        {"smoothing": 1e300},
        {"class_weight": {0: 1e12, 1: 1e12}},
        {"class_weight": {0: 1e-12, 1: 1e-12}},
        {"class_weight": {0: 1e-12, 1: 1e12}},
        {"class_weight": {0: 1e12}, "max_parents": 40, "max_features": 1.0},
    ],
)
def test_extreme_weights_leave_finite_numbers(parameters, weights):
    X, y = parity()
    model = small(weights=weights, **parameters).fit(X, y)
    for member in model.forest_.members:
        assert np.isfinite(member.tables.gain).all()
        assert np.isfinite(member.tables.unseen).all()
    assert np.isfinite(model.forest_.weights).all()
    assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.filterwarnings("ignore:sample_weight adds up:UserWarning")
def test_weights_that_are_too_heavy_for_the_smoothing_are_refused():
    X, y = parity()
    with pytest.raises(ValueError, match="or divide all sample weights by the same number"):
        small(max_parents=6).fit(X, y, sample_weight=np.full(200, 1e60))


def test_two_rows_are_enough():
    model = clone(small()).fit([[1.0], [2.0]], ["a", "b"])
    assert model.predict_proba([[1.0]]).shape == (1, 2)


@pytest.mark.parametrize("weights", ["shared", None])
def test_warm_start_adds_members_to_those_of_the_same_rows(table, weights):
    X, y = table
    at_once = small(weights=weights, n_estimators=5).fit(X, y)
    model = small(weights=weights, n_estimators=3, warm_start=True).fit(X, y)
    first = model._grown.members
    assert model.set_params(n_estimators=5).fit(X, y)._grown.members[:3] == first
    np.testing.assert_array_equal(model.predict_proba(X), at_once.predict_proba(X))
    assert model.set_params(n_estimators=2).fit(X, y)._grown.members == first[:2]
    assert model.set_params(smoothing=2.0).fit(X, y)._grown.members[0] is not first[0]
    model.set_params(smoothing=1.0).fit(X, y)
    assert model._grown.members[0] is not first[0]
    first = model._grown.members
    assert model.fit(X[:200], y[:200])._grown.members[0] is not first[0]
    np.testing.assert_array_equal(
        model.predict_proba(X), small(weights=weights, n_estimators=2).fit(X[:200], y[:200]).predict_proba(X)
    )


def test_warm_start_without_a_seed_keeps_members_whatever_is_drawn_next(table):
    X, y = table
    model = small(random_state=None, n_estimators=2, warm_start=True).fit(X, y)
    first = model.forest_.members
    assert model.set_params(n_estimators=3).fit(X, y).forest_.members[:2] == first


def test_ridge_is_how_hard_weights_are_pulled(table):
    X, y = table
    stiff = small(weights="shared", ridge=1e9).fit(X, y).forest_.weights
    ratios = stiff / stiff[:1, :1]
    np.testing.assert_allclose(ratios[np.isfinite(ratios)], 1, atol=1e-6)
    loose = small(weights="shared", ridge=1e-3).fit(X, y).forest_.weights
    assert np.ptp(loose[0, :, 0]) > 0.01


@pytest.mark.parametrize(("n", "least"), [(300, 5), (24_575, 5), (24_576, 6), (40_959, 9), (40_960, 10)])
def test_combinations_of_parents_have_more_rows_where_there_are_many(n, least, monkeypatch):
    from tanlearn.estimators import bayes_forest

    asked = []

    def ask(data, is_ordered, settings, rng, **others):
        asked.append(settings.min_samples)
        raise KeyboardInterrupt

    monkeypatch.setattr(bayes_forest, "grow_forest", ask)
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 2, (n, 1)), rng.integers(0, 2, n))
    with pytest.raises(KeyboardInterrupt):
        small().fit_encoded(data)
    assert asked == [least]


def test_parameters_are_counted_by_hand_where_there_are_no_parents():
    X = np.array([[0, 0], [1, 1], [0, 2], [1, 0], [0, 1], [1, 2]] * 5)
    model = small(n_estimators=2, max_parents=0, weights=None)
    model.fit_encoded(EncodedData.from_codes(X, np.arange(30) % 3, n_states=[2, 3]))
    # Each network has (2 + 3) values and (1 + 1) other values of its two features in each of three classes.
    assert model.n_parameters_ == 2 * 3 * ((2 + 1) + (3 + 1))


@pytest.mark.parametrize(("n_folds", "expected"), [(3, 3), (99, 12)])
def test_parameters_reach_the_settings(monkeypatch, n_folds, expected):
    from tanlearn.estimators import bayes_forest

    asked = []

    def ask(data, is_ordered, settings, rng, **others):
        asked.append((settings, others))
        raise InterruptedError

    monkeypatch.setattr(bayes_forest, "grow_forest", ask)
    model = small(
        n_estimators=7, max_parents=2, max_features=0.25, n_cuts=(2, 5), smoothing=3.0, min_samples=9, weights="shared",
        ridge=0.5, n_folds=n_folds, n_jobs=2,
    )  # fmt: skip
    with pytest.raises(InterruptedError):
        model.fit(np.arange(24.0).reshape(12, 2), np.arange(12) % 2)
    ((settings, others),) = asked
    assert (settings.n_members, settings.smoothing, settings.min_samples) == (7, 3.0, 9)
    assert (settings.weights, settings.ridge, settings.n_folds) == ("shared", 0.5, expected)
    draws = settings.draws
    assert (draws.n_cuts, draws.max_parents, draws.max_features, draws.min_candidates) == ((2, 5), 2, 0.25, 0)
    assert (draws.supervised, draws.max_candidates) == (0.5, 32)
    assert others == {"n_jobs": 2, "before": None}


def test_structures_of_no_parents_have_no_edges(table):
    X, y = table
    structures = small(max_parents=0).fit(X, y).structures_
    assert [(own.n_features, own.n_edges) for own in structures] == [(3, 0)] * 4


def test_candidates_are_a_share_of_earlier_features_or_by_default_at_least_four():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 5)), rng.integers(0, 2, 60)

    def most_parents(**parameters):
        tables = small(n_estimators=1, weights="shared", **parameters).fit(X, y).forest_.members[0].tables
        return sorted((tables.parents >= 0).sum(axis=1).tolist())

    assert most_parents() == [0, 1, 2, 3, 4]
    assert most_parents(max_features=0.5) == [0, 1, 1, 2, 2]
    assert most_parents(max_features=0) == [0] * 5
    assert most_parents(max_parents=2) == [0, 1, 2, 2, 2]
    X = rng.random((60, 9))
    assert most_parents(max_features=1.0) == [0, 1, 2, 3, 4, 4, 4, 4, 4]
    assert most_parents(max_features=1.0, max_parents=7) == [0, 1, 2, 3, 4, 5, 6, 7, 7]


def test_warm_start_regrows_where_values_or_classes_are_others():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 3, (60, 3)), rng.integers(0, 2, 60)
    model = small(warm_start=True, n_estimators=2).fit_encoded(EncodedData.from_codes(codes, y))
    first = model.forest_.members[0]
    for more in ({"n_classes": 3}, {"n_states": [9, 9, 9]}, {"n_states": [300, 3, 3]}, {"is_ordered": True}):
        data = EncodedData.from_codes(codes, y, **more)
        kept = model.fit_encoded(data).forest_
        assert kept.members[0] is not first
        fresh = small(n_estimators=2).fit_encoded(data).forest_
        np.testing.assert_array_equal(kept.log_joint(data.codes), fresh.log_joint(data.codes))
        first = kept.members[0]


def test_rows_of_no_weight_are_none():
    rng = np.random.default_rng(0)
    codes, y, weight = rng.integers(0, 3, (60, 3)), rng.integers(0, 2, 60), np.repeat([1, 0], [40, 20])
    models = [
        small(n_estimators=2).fit_encoded(EncodedData.from_codes(codes, own, sample_weight=weight, n_classes=2))
        for own in (y, np.where(weight == 0, 1 - y, y))
    ]
    scores = [model.forest_.log_joint(EncodedData.from_codes(codes, y).codes) for model in models]
    np.testing.assert_array_equal(*scores)
