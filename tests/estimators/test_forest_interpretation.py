"""What forests say of themselves: explanations, importances, dependences, outlines and pictures."""

import builtins
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel

from tanlearn import BayesForestClassifier, EncodedData, load
from tanlearn.estimators.estimator_input import encode_rows
from tanlearn.forest.interpretation import dependences, losses_without

NAMES = ["size", "town", "age", "noise"]
IMPORTANCES = np.array([0.3, 0.2, 0.0, -0.01])


@pytest.fixture(scope="module")
def table():
    """Return numbers, categories and gaps, and a class of size and town together."""
    rng = np.random.default_rng(0)
    n = 240
    X = pd.DataFrame({"size": rng.normal(size=n), "town": rng.choice(["Graz", "Linz"], n), "age": rng.random(n)})
    X["noise"] = rng.choice(list("abc"), n)
    y = np.where((X["size"] > 0) ^ (X["town"] == "Graz"), "yes", "no")
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    return X, y


@pytest.fixture(scope="module", params=["auto", None])
def model(table, request):
    """Return a forest with known importances."""
    X, y = table
    model = BayesForestClassifier(n_estimators=6, weights=request.param, random_state=0).fit(X[:160], y[:160])
    model.model_ = replace(model.forest_, importances=IMPORTANCES)
    return model


def test_explanations_add_up_to_what_is_predicted(model, table):
    X = table[0][160:].copy()
    X.iloc[::3, 0], X.iloc[::5, 1] = np.nan, "Wels"
    shares = model.explain(X)
    assert shares.shape == (80, 5, 2)
    np.testing.assert_allclose(log_softmax(shares.sum(axis=1), axis=1), model.predict_log_proba(X), atol=1e-10)
    np.testing.assert_allclose(shares.sum(axis=1), model.predict_log_proba(X), atol=1e-10)
    assert not shares[::3, 0].any()  # no gap in training
    assert not shares[::5, 1].any()
    odds = model.explain(X, against="no")
    np.testing.assert_allclose(odds.sum(axis=1)[:, 1], np.diff(model.predict_log_proba(X))[:, 0], atol=1e-10)
    assert not odds[..., 0].any()
    with pytest.raises(ValueError, match="maybe"):
        model.explain(X, against="maybe")


def test_a_prior_is_the_share_of_the_prior(model, table):
    X = table[0][160:]
    other = model.with_class_prior([0.2, 0.8])
    before, after = model.explain(X, against="no"), other.explain(X, against="no")
    np.testing.assert_array_equal(before[:, :-1], after[:, :-1])
    np.testing.assert_allclose(after.sum(axis=1)[:, 1], np.diff(other.predict_log_proba(X))[:, 0], atol=1e-10)
    sure = model.with_class_prior([0.0, 1.0]).explain(X)
    assert np.isneginf(sure[:, -1, 0]).all()
    assert np.isfinite(sure[:, :-1]).all()


def test_dependences_name_the_features_that_matter_together(model, table):
    X = table[0][160:]
    found = model.dependences(X)
    assert {parent for parent, _, _ in found[:1]} <= {"size", "town"}
    assert {child for _, child, _ in found[:1]} <= {"size", "town"}
    strengths = [strength for _, _, strength in found]
    assert strengths == sorted(strengths, reverse=True)
    matrix = dependences(model.forest_, encode_rows(model, X))
    pairs = {
        (NAMES[j], NAMES[i])
        for structure in model.structures_
        for i, own in enumerate(structure.parents.reshape(4, -1).tolist())
        for j in own
        if j >= 0
    }
    assert {pair[:2] for pair in found} == pairs
    assert len(found) == len(pairs)
    np.testing.assert_allclose(sum(strengths) + np.trace(matrix), matrix.sum())


def test_leaving_out_what_matters_costs_most(model, table):
    X, y = table
    codes, classes = encode_rows(model, X[160:]), np.searchsorted(model.classes_, y[160:])
    losses = losses_without(model.forest_, codes, classes).mean(axis=1)
    np.testing.assert_allclose(losses[0], -model.predict_log_proba(X[160:])[np.arange(80), classes].mean())
    cost = losses[1:] - losses[0]
    assert cost[:2].min() > 0.1 > cost[2:].max()


def test_importances_select_features(model):
    np.testing.assert_array_equal(model.feature_importances_, IMPORTANCES)
    selector = SelectFromModel(model, prefit=True, threshold="mean")
    assert selector.get_support().tolist() == [True, True, False, False]


def test_importances_that_are_not_known_are_no_attribute(table):
    X, y = table
    model = BayesForestClassifier(n_estimators=2, random_state=0)
    assert not hasattr(model, "feature_importances_")
    model.fit(X, y)
    model.model_ = replace(model.forest_, importances=None)
    with pytest.raises(AttributeError, match="Fit it again"):
        _ = model.feature_importances_
    assert model.describe()["features"][0]["importance"] is None


def test_files_keep_what_can_be_read(model, table, tmp_path):
    model.save(tmp_path / "forest.tan")
    again = load(tmp_path / "forest.tan")
    np.testing.assert_array_equal(again.feature_importances_, IMPORTANCES)
    np.testing.assert_array_equal(again.explain(table[0]), model.explain(table[0]))
    assert again.describe() == model.describe()


def test_outlines_are_short_and_of_json(model):
    told = json.loads(json.dumps(model.describe()))
    assert (told["format"], told["version"], told["n_members"]) == ("tanlearn forest description", 1, 6)
    assert told["learner"]["class"] == "BayesForestClassifier"
    assert told["learner"]["parameters"]["n_estimators"] == "6"
    assert told["classes"] == ["no", "yes"]
    np.testing.assert_allclose(sum(told["class_probabilities"]), 1)
    assert told["n_levels"] == len(told["level_weights"]) == model.forest_.weights.shape[2]
    assert told["combined"] == ("averaged" if model.weights is None else "added")
    assert told["n_contexts"] > 6 * 4
    assert told["n_parameters"] == model.n_parameters_
    assert 0 < told["doubt"] == model.forest_.label_noise
    features = told["features"]
    weights = [feature["weight"] for feature in features]
    assert weights == sorted(weights, reverse=True)
    assert {f["name"]: f["importance"] for f in features} == dict(zip(NAMES, IMPORTANCES.tolist(), strict=True))
    assert {f["name"]: f["kind"][:3] for f in features} == {"size": "con", "town": "cat", "age": "con", "noise": "cat"}
    np.testing.assert_allclose(np.mean(weights), np.mean(told["level_weights"]))
    prior = model.with_class_prior([0.3, 0.7]).describe()["class_probabilities"]
    np.testing.assert_allclose(prior, [0.3, 0.7])


def test_weights_are_those_of_one_network(model):
    told = model.describe()
    total = model.forest_.weights.sum(axis=0)
    if model.weights is None:
        assert set(told["level_weights"]) <= {0.0, 1.0}
        assert told["level_weights"][0] == 1.0
    else:
        np.testing.assert_allclose(told["level_weights"], total.mean(axis=0))


def test_pictures_show_the_strongest(model, table):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = model.plot_importances(figure.add_subplot(1, 2, 1), most=3)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["size", "town", "age"]
    assert [bar.get_width() for bar in axes.patches] == IMPORTANCES[:3].tolist()
    assert axes.yaxis_inverted()
    X = table[0][160:]
    axes = model.plot_dependences(X, figure.add_subplot(1, 2, 2), most=2)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["size", "town"]
    (image,) = axes.images
    matrix = dependences(model.forest_, encode_rows(model, X))
    np.testing.assert_array_equal(image.get_array().filled(0.0), (matrix * (1 - np.eye(4)))[:2, :2])
    assert axes.get_xlabel() == "child"
    figure.canvas.draw()


def test_pictures_say_what_to_install(model, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "tanlearn\[plot\]"'):
        model.plot_importances()


@pytest.mark.parametrize("ask", ["explain", "dependences", "plot_importances", "plot_dependences", "describe"])
def test_what_is_not_fitted_cannot_be_read(ask):
    arguments = () if ask in ("describe", "plot_importances") else ([[1.0]],)
    with pytest.raises(NotFittedError):
        getattr(BayesForestClassifier(), ask)(*arguments)
    of_codes = BayesForestClassifier(n_estimators=1, random_state=0).fit_encoded(
        EncodedData.from_codes([[0], [1]], [0, 1])
    )
    with pytest.raises(NotFittedError):
        getattr(of_codes, ask)(*arguments)
