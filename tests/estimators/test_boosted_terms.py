"""The classifier of boosted terms: raw tables, explanations, class probabilities, files and descriptions."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError
from support.forests import mixed_table

from tanlearn import BoostedTermsClassifier, EncodedData, MDLPDiscretizer, TableEncoder, load
from tanlearn.terms.boosting_selection import BoostingOutcome


def small(**parameters):
    """Return a classifier that is soon fitted."""
    return BoostedTermsClassifier(**{"max_terms": 60, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def table():
    """Return numbers, categories and missing values, and a class of them."""
    return mixed_table()


@pytest.fixture(scope="module")
def fitted(table):
    """Return a classifier fitted to the table."""
    return small().fit(*table)


@pytest.fixture(scope="module")
def of_three():
    """Return rows of three classes with a missing value in some rows, and a classifier fitted to them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0)]
    X[rng.random((300, 3)) < 0.1] = np.nan
    return X, y, small().fit(X, y)


def test_rules_of_several_features_are_learnt():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=["p", "q", "r"])
    X["town"] = rng.choice(["Graz", "Linz", "Wien"], 600)
    y = (X["p"] > 0.3) ^ (X["town"] == "Graz") ^ (X["q"] > 0)
    model = small(max_terms=80).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9
    alone = small(max_terms=80, max_splits=1).fit(X[:400], y[:400])
    assert alone.score(X[400:], y[400:]) < 0.65  # sums of functions of one feature


def test_the_search_is_recorded(fitted):
    curve = fitted.cv_results_
    assert sorted(curve) == ["mean_log_loss", "param_n_terms"]
    assert curve["param_n_terms"].tolist() == [0, 10, 20, 30, 40, 50, 60]
    assert fitted.n_terms_ == curve["param_n_terms"][curve["mean_log_loss"].argmin()]
    assert fitted.n_terms_ == len(fitted.model_.features)
    assert fitted.n_parameters_ == fitted.model_.n_parameters


def test_parameters_are_given_to_the_search(monkeypatch, table):
    seen = []

    def learn(data, settings, most_terms, rng, *, n_jobs, needed, report):
        seen.append((*settings, most_terms, n_jobs, len(needed)))
        return BoostingOutcome(None, np.empty(0, np.intp), np.empty(0))

    monkeypatch.setattr("tanlearn.estimators.boosted_terms.learn_boosted_terms", learn)
    model = small(max_terms=7, max_splits=3, learning_rate=0.25, ridge=2, n_jobs=2).fit(*table)
    assert seen == [(3, 0.25, 2.0, None, 7, 2, 0)]
    assert model.cv_results_ == {}


def test_max_splits_limits_the_splits_of_terms(table):
    for most in (1, 2, 5):
        features = small(max_splits=most).fit(*table).model_.features
        assert len(features) > 0
        assert features.shape[1] == most


def test_numbers_have_up_to_64_quantile_intervals_and_cut_points_of_classes(fitted):
    n_states = fitted.encoder_.n_states_
    assert n_states[1] == 3
    assert 64 <= n_states[0] <= 70
    assert 64 <= n_states[2] <= 70


@pytest.mark.filterwarnings("ignore:discretization left")
def test_other_encoders_are_used(table):
    X, y = table
    model = small(encoder=TableEncoder(discretizer=MDLPDiscretizer(), handle_missing="marginalize")).fit(X, y)
    assert type(model.encoder_.discretizer_) is MDLPDiscretizer
    assert not model.encoder_.has_missing_category_.any()
    assert model.score(X, y) > 0.7


def test_missing_values_that_depend_on_the_class_are_a_category():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    X[(y == 1) & (rng.random(400) < 0.5), 0] = np.nan
    model = small().fit(X, y)
    assert model.encoder_.has_missing_category_.tolist() == [True, False]
    assert model.predict_proba([[np.nan, 0.0]])[0, 1] > 0.9


def test_missing_and_unseen_values_are_averaged(table, fitted):
    asked = pd.DataFrame({"size": [np.nan, 1.0, np.nan], "town": ["Rom", None, None], "age": [0.5, np.nan, np.nan]})
    p = fitted.predict_proba(asked)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    frequencies = [(table[1] == name).mean() for name in ("no", "yes")]
    np.testing.assert_allclose(p[2], frequencies, atol=0.1)
    np.testing.assert_array_equal(fitted.predict_proba(asked.assign(town=None)), p)


def test_contributions_add_up_to_predictions(table, fitted, of_three):
    for X, model in ((table[0], fitted), (of_three[0], of_three[2])):
        found = model.explain(X)
        assert found.shape == (len(X), 4, len(model.classes_))
        log_p = model.predict_log_proba(X)
        np.testing.assert_allclose(found.sum(axis=1), log_p, atol=1e-10)
        np.testing.assert_allclose(np.exp(found[:, -1]).sum(axis=1), 1)  # probabilities without features
        odds = model.explain(X, against=model.classes_[0])
        np.testing.assert_allclose(odds.sum(axis=1), log_p - log_p[:, :1], atol=1e-10)
        np.testing.assert_allclose(odds, found - found[:, :, :1], atol=1e-10)
    missing = np.isnan(of_three[0])
    odds = of_three[2].explain(of_three[0], against="b")
    np.testing.assert_array_equal(odds[:, :-1][missing], 0)


def test_contributions_add_up_with_a_class_prior_except_for_a_constant(of_three):
    X, _, model = of_three
    moved = model.with_class_prior([0.6, 0.3, 0.1])
    for against in ("a", "c"):
        odds = moved.explain(X, against=against)
        log_p = moved.predict_log_proba(X)
        column = moved.classes_.tolist().index(against)
        np.testing.assert_allclose(odds.sum(axis=1), log_p - log_p[:, [column]], atol=1e-10)
        np.testing.assert_allclose(odds[:, :-1], model.explain(X, against=against)[:, :-1], atol=1e-10)
    found = model.with_class_prior([0.0, 0.5, 0.5]).explain(X)  # an impossible class
    assert not np.isnan(found).any()
    np.testing.assert_array_equal(found[:, :-1], model.explain(X)[:, :-1])


def test_without_any_value_a_rare_class_is_as_probable_as_in_training():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = X[:, 0] + 0.3 * X[:, 1] > 1.9  # 3 % of the rows
    model = BoostedTermsClassifier(random_state=0).fit(X, y)
    without = model.predict_proba(np.full((1, 5), np.nan))[0, 1]
    assert y.mean() / 3 < without < 3 * y.mean()  # 0.0001 if cells are weighted by rows


def test_explanations_as_frames(table, fitted):
    frame = fitted.explain_frame(table[0][:2], against="no")
    assert frame.columns.tolist() == ["row", "feature", "no", "yes"]
    assert frame["feature"].tolist() == ["size", "town", "age", "(classes)"] * 2
    np.testing.assert_array_equal(frame["yes"], fitted.explain(table[0][:2], against="no")[:, :, 1].ravel())
    with pytest.raises(ValueError, match="against"):
        fitted.explain(table[0], against="maybe")


def test_class_priors_change_the_odds_by_their_ratio(table, of_three):
    X, y, model = of_three
    prior = np.array([0.6, 0.3, 0.1])
    counts = np.array([(y == name).sum() for name in "abc"]) + 1  # frequencies with one more row of each class
    ratio = np.log(prior / (counts / counts.sum()))
    change = ratio - ratio[0]
    for moved in (model.with_class_prior(prior), small(class_prior=prior).fit(X, y)):
        log_p, before = moved.predict_log_proba(X), model.predict_log_proba(X)
        odds, old = log_p - log_p[:, :1], before - before[:, :1]
        np.testing.assert_allclose(odds - old, np.tile(change, (300, 1)), atol=1e-10)
    np.testing.assert_array_equal(model.model_.log_prior, model.model_.log_frequency)  # unchanged
    impossible = model.with_class_prior([0.0, 0.5, 0.5]).predict_proba(X)
    assert (impossible[:, 0] == 0).all()
    np.testing.assert_allclose(impossible.sum(axis=1), 1)


def test_class_weights_are_sample_weights(table):
    X, y = table
    weighted = small(class_weight={"yes": 3}).fit(X, y)
    same = small().fit(X, y, sample_weight=np.where(y == "yes", 3, 1))
    assert weighted.predict_proba(X)[:, 1].mean() > small().fit(X, y).predict_proba(X)[:, 1].mean()
    np.testing.assert_allclose(weighted.model_.log_prior, same.model_.log_prior)


def test_rows_of_weight_zero_are_absent(table):
    X, y = table
    weight = (np.arange(240) % 4 > 0).astype(float)
    first = small().fit(X, y, sample_weight=weight)
    second = small().fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    np.testing.assert_array_equal(first.cv_results_["mean_log_loss"], second.cv_results_["mean_log_loss"])


def test_the_same_seed_gives_the_same_model_with_any_number_of_threads(table, fitted):
    X, y = table
    for n_jobs in (1, 2, -1):
        np.testing.assert_array_equal(small(n_jobs=n_jobs).fit(X, y).predict_proba(X), fitted.predict_proba(X))
    assert (small(random_state=1).fit(X, y).predict_proba(X) != fitted.predict_proba(X)).any()


def test_files_hold_the_model(table, tmp_path, of_three):
    for X, y in (table, of_three[:2]):
        model = small(class_prior=np.full(len(set(y)), 1 / len(set(y)))).fit(X, y)
        model.save(tmp_path / "model.tan")
        again = load(tmp_path / "model.tan")
        assert type(again) is BoostedTermsClassifier
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.explain(X), model.explain(X))
        moved = [
            one.with_class_prior(np.arange(1, len(set(y)) + 1) / np.arange(1, len(set(y)) + 1).sum())
            for one in (model, again)
        ]
        np.testing.assert_array_equal(moved[0].predict_proba(X), moved[1].predict_proba(X))
        assert again.describe() == model.describe()
        assert repr(again) == repr(model)


def test_damaged_terms_are_not_written(fitted, tmp_path, monkeypatch):
    state = fitted._get_state()
    monkeypatch.setattr(fitted, "_get_state", lambda: {**state, "sides": state["sides"] + 2})
    with pytest.raises(ValueError, match="the model cannot be saved: sides must be 0 or 1"):
        fitted.save(tmp_path / "model.tan")


def test_single_rows_are_predicted_as_tables(table, fitted, of_three):
    X, predictor = table[0], fitted.row_predictor()
    rows = [*X[:20].itertuples(index=False, name=None), (0.5, "new", None), (None, "Rom", None), (-9.0, "Graz", 9.0)]
    for row in rows:
        frame = pd.DataFrame([row], columns=X.columns)
        np.testing.assert_array_equal(predictor.predict_proba(row), fitted.predict_proba(frame)[0])
        assert predictor.predict(row) == fitted.predict(frame)[0]
    X, _, model = of_three
    predictor = model.row_predictor()
    for row in X[:40]:
        np.testing.assert_array_equal(predictor.predict_proba(tuple(row)), model.predict_proba(row[np.newaxis])[0])


def test_the_description_counts_the_terms_of_each_feature(table, fitted):
    found = fitted.describe()
    assert sorted(found) == sorted(
        ["format", "version", "tanlearn", "learner", "classes", "n_terms", "n_parameters", "features"]
    )
    assert json.loads(json.dumps(found)) == found
    assert found["format"] == "tanlearn boosted terms description"
    assert found["learner"] == {
        "class": "BoostedTermsClassifier",
        "parameters": {"max_terms": "60", "random_state": "0"},
    }
    assert found["classes"] == ["no", "yes"]
    assert (found["n_terms"], found["n_parameters"]) == (fitted.n_terms_, fitted.n_parameters_)
    names = ["size", "town", "age"]
    counts = {name: sum(i in row for row in fitted.model_.features.tolist()) for i, name in enumerate(names)}
    assert {entry["name"]: entry["n_terms"] for entry in found["features"]} == counts
    numbers = [entry["n_terms"] for entry in found["features"]]
    assert numbers == sorted(numbers, reverse=True)
    assert found["features"][0]["name"] in ("size", "town")
    assert fitted._summary() == {
        "terms": str(fitted.n_terms_),
        "most frequent features": ", ".join(entry["name"] for entry in found["features"]),
    }


def test_noise_is_predicted_by_class_frequencies():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 4 == 0
    model = small().fit(X, y)
    assert model.n_terms_ == 0
    np.testing.assert_allclose(model.predict_proba(X), np.tile([151 / 202, 51 / 202], (200, 1)))
    assert model._summary() == {"terms": "0", "most frequent features": "none"}
    assert model.describe()["features"] == [{"name": f"x{i}", "n_terms": 0} for i in range(3)]
    np.testing.assert_array_equal(model.explain(X)[:, :-1], 0)


def test_tiny_tables_are_learnt():
    model = small().fit([["a", 1.5], ["b", 2.5], ["a", 3.5]], ["x", "y", "x"])
    assert model.cv_results_ == {}
    assert model.n_terms_ == 50
    np.testing.assert_allclose(model.predict_proba([["a", 1.5], ["c", np.nan]]).sum(axis=1), 1)


def test_codes_are_learnt_without_an_encoder():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (200, 4))
    data = EncodedData.from_codes(codes, (codes[:, 0] + codes[:, 1]) % 3)
    model = small().fit_encoded(data)
    assert (model.model_.log_joint(data.codes).argmax(axis=1) == data.y).mean() > 0.9


@pytest.mark.parametrize("method", ["score_samples", "predict_joint_log_proba", "sample"])
def test_the_distribution_of_the_features_is_not_modeled(table, fitted, method):
    assert not hasattr(fitted, method)
    if method != "sample":
        with pytest.raises(AttributeError) as error:
            getattr(fitted, method)
        assert str(error.value.__cause__) == (
            "BoostedTermsClassifier models the class given the features, not the distribution of the features. Use "
            "predict_log_proba, or a TermNetClassifier."
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_terms", 0),
        ("max_terms", 1.5),
        ("max_splits", 0),
        ("max_splits", 9),
        ("learning_rate", 0),
        ("learning_rate", 1.01),
        ("ridge", 0.0),
        ("ridge", 0.0009),
        ("ridge", "1"),
        ("encoder", "auto"),
    ],
)
def test_parameters_out_of_range_are_refused(table, name, value):
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of BoostedTermsClassifier"):
        small(**{name: value}).fit(*table)


@pytest.mark.parametrize(
    "parameters", [{"max_terms": 1}, {"max_splits": 8, "max_terms": 5}, {"learning_rate": 1}, {"ridge": 1e-3}]
)
def test_parameters_at_the_limits_are_used(table, parameters):
    X, y = table
    model = small(**{"max_terms": 30, **parameters}).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.n_terms_ >= 1


def test_unfitted_classifiers_raise_errors(table):
    for function in (
        lambda model: model.n_terms_,
        lambda model: model.describe(),
        lambda model: model.explain(table[0]),
    ):
        with pytest.raises(NotFittedError):
            function(small())
