"""The forest as people meet it: raw tables, gaps, priors, weights, files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from tanlearn import BayesForestClassifier, EncodedData, MDLPDiscretizer, QuantileDiscretizer, TableEncoder, load


def small(**parameters):
    """Return a forest that is soon grown."""
    return BayesForestClassifier(**{"n_estimators": 4, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def table():
    """Return numbers, categories and gaps, and a class of them."""
    rng = np.random.default_rng(0)
    n = 240
    X = pd.DataFrame(
        {"size": rng.normal(size=n), "town": rng.choice(["Graz", "Linz", "Wien"], n), "age": rng.random(n)}
    )
    y = np.where((X["size"] > 0) ^ (X["town"] == "Graz"), "yes", "no")
    X.loc[rng.random(n) < 0.1, "town"] = None
    return X, y


@pytest.mark.parametrize("weights", ["auto", "shared", None])
def test_it_learns_what_no_feature_says_alone(table, weights):
    X, y = table
    model = small(weights=weights, n_estimators=8).fit(X[:160], y[:160])
    assert model.score(X[160:], y[160:]) > 0.8
    assert np.abs(model.predict_proba(X).sum(axis=1) - 1).max() < 1e-9
    assert len(model.structures_) == 8
    assert all(structure.is_acyclic for structure in model.structures_)
    assert model.n_parameters_ > 100


@pytest.mark.filterwarnings("ignore:discretisation left")  # of a column that says nothing by itself
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
    expected = (1 - model.forest_.doubt) * frequency / frequency.sum() + model.forest_.doubt / 2
    np.testing.assert_allclose(p[2], expected)


def test_rows_of_weight_zero_are_absent(table):
    X, y = table
    weight = (np.arange(240) % 4 > 0).astype(float)
    first = small().fit(X, y, sample_weight=weight).predict_proba(X)
    second = small().fit(X[weight > 0], y[weight > 0]).predict_proba(X)
    np.testing.assert_array_equal(first, second)


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
    assert "doubt" in told
    small(weights=None, verbose=1).fit(X, y)
    assert "log loss by number of parents" in capsys.readouterr().out
    small().fit(X, y)
    assert capsys.readouterr().out == ""


def test_it_is_no_density():
    X, y = load_iris(return_X_y=True)
    model = small().fit(X, y)
    assert not hasattr(model, "score_samples")
    with pytest.raises(AttributeError, match="score_samples"):
        model.score_samples(X)
    with pytest.raises(TypeError, match="more than one network"):
        model.row_predictor()


@pytest.mark.parametrize("n_cuts", [(5,), (5, 3), (0, 3), (1.5, 3)])
def test_cuts_are_two_numbers_in_order(n_cuts):
    with pytest.raises(ValueError, match="n_cuts must be two numbers from 1"):
        small(n_cuts=n_cuts).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("parameters", [{"device": "cuda"}, {"weights": "all"}, {"smoothing": 0}, {"n_folds": 1}])
def test_wrong_parameters_are_refused(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        small(**parameters).fit([[1.0], [2.0]], [0, 1])


def test_two_rows_are_enough():
    model = clone(small()).fit([[1.0], [2.0]], ["a", "b"])
    assert model.predict_proba([[1.0]]).shape == (1, 2)
