"""The ensemble of a forest, a network and boosted terms: raw tables, its parts, class probabilities, weights, files."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from support.forests import mixed_table

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BoostedTermsClassifier,
    EncodedData,
    MDLPDiscretizer,
    TableEncoder,
    TermNetClassifier,
    load,
)


def small(**parameters):
    """Return an ensemble that is soon fitted."""
    of_parts = {name: parameters.pop(name) for name in list(parameters) if "__" in name}
    parts = {"forest": BayesForestClassifier(n_estimators=4), "boosting": BoostedTermsClassifier(max_terms=50)}
    return BayesEnsembleClassifier(**{"random_state": 0, **parts, **parameters}).set_params(**of_parts)


def parts_of(model):
    """Return the fitted parts in the order of their weights."""
    return model.forest_, model.network_, model.boosting_


@pytest.fixture(scope="module")
def table():
    """Return numbers, categories and gaps, and a class of them."""
    return mixed_table()


@pytest.fixture(scope="module")
def fitted(table):
    """Return an ensemble fitted to the table."""
    return small().fit(*table)


def test_predictions_are_the_weighted_log_probabilities_of_the_parts(table, fitted):
    X, _ = table
    parts = [part.predict_log_proba(X) for part in (fitted.forest_, fitted.network_, fitted.boosting_)]
    expected = log_softmax(np.tensordot(fitted.weights_, parts, 1), axis=1)
    np.testing.assert_allclose(fitted.predict_log_proba(X), expected, atol=1e-9)
    assert fitted.weights_.shape == (3,)
    assert (fitted.weights_ >= 0).all()
    assert fitted.n_parameters_ == sum(part.n_parameters_ for part in parts_of(fitted)) + 3


def test_it_is_better_than_each_part_if_they_have_information_of_their_own():
    """The class depends on a sum of numbers, which suits the network, and on a parity, which suits the others."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc"))
    for name in "pqr":
        X[name] = rng.choice(["no", "yes"], 1500)
    parity = (X[["p", "q", "r"]] == "yes").sum(axis=1) % 2
    y = X[list("abc")].sum(axis=1) + 2 * parity + rng.logistic(size=1500) > 1
    model = small().fit(X[:1000], y[:1000])

    def loss(part):
        return -part.predict_log_proba(X[1000:])[np.arange(500), y[1000:].astype(int)].mean()

    assert loss(model) < min(map(loss, parts_of(model)))
    assert model.weights_[1] > 0.2
    assert model.weights_[[0, 2]].sum() > 0.2


def test_the_forest_is_used_alone_if_the_features_are_noise():
    rng = np.random.default_rng(0)
    model = small().fit(rng.normal(size=(200, 4)), rng.integers(0, 2, 200))
    assert model.weights_.tolist() == [1.0, 0.0, 0.0]
    assert model.boosting_.n_terms_ == 0


def test_rules_of_several_features_are_predicted_by_boosted_terms():
    """The class is a rule with thresholds of three numbers, which a network of pairs cannot represent."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0) ^ (X[:, 2] > 0)
    model = small(boosting__max_terms=150).fit(X[:600], y[:600])
    assert model.weights_[2] > max(model.weights_[:2])
    assert model.score(X[600:], y[600:]) > 0.85


def test_the_parts_predict_raw_rows_alone(table, fitted):
    X, y = table
    assert fitted.network_.score(X, y) > 0.8
    assert fitted.network_.feature_names_in_.tolist() == ["size", "town", "age"]
    assert fitted.forest_.feature_importances_.shape == (3,)
    assert fitted.encoder_.n_states_.tolist() == [240, 3, 240]
    assert fitted.network_.encoder_.n_states_.tolist() == [32, 3, 32]
    assert fitted.boosting_.score(X, y) > 0.8
    assert fitted.boosting_.encoder_ is fitted.encoder_
    assert fitted.boosting_.explain(X).shape == (240, 4, 2)
    assert fitted.boosting_.describe()["n_terms"] == fitted.boosting_.n_terms_


def test_coarse_intervals_have_equal_weight_and_the_mean_of_their_values(table, fitted):
    X, _ = table
    encoder = fitted.network_.encoder_
    codes = encoder.encode(X)
    values = X["size"].to_numpy()
    counts = np.bincount(codes[0], minlength=32)
    assert counts.min() >= 7
    assert counts.max() <= 8
    means = [values[codes[0] == k].mean() for k in range(32)]
    np.testing.assert_allclose(encoder.typical_values_[0], means)
    assert encoder.typical_values_[1] is None


def test_contributions_add_up_to_predictions(table, fitted):
    X, _ = table
    found = fitted.explain(X)
    assert found.shape == (240, 4, 2)
    np.testing.assert_allclose(found.sum(axis=1), fitted.predict_log_proba(X))
    odds = fitted.explain(X, against="no")
    np.testing.assert_allclose(odds.sum(axis=1)[:, 1], np.diff(fitted.predict_log_proba(X), axis=1)[:, 0])
    frame = fitted.explain_frame(X[:2])
    assert frame.columns.tolist() == ["row", "feature", "no", "yes"]


def test_files_hold_all_of_it(table, tmp_path):
    X, y = table
    model = small(class_prior=[0.3, 0.7]).fit(X, y)
    model.save(tmp_path / "ensemble.tan")
    again = load(tmp_path / "ensemble.tan")
    assert repr(again) == repr(model)
    for one, two in zip((model, *parts_of(model)), (again, *parts_of(again)), strict=True):
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    told, expected = again.describe(), model.describe()
    assert told["network"].pop("training")["n_iter"] is None  # files do not store it
    assert expected["network"].pop("training")["n_iter"] == model.network_.n_iter_
    assert told == expected
    np.testing.assert_array_equal(again.network_.standard_errors_[0], model.network_.standard_errors_[0])
    assert again.network_.sample(3, random_state=0)[0].tolist() == model.network_.sample(3, random_state=0)[0].tolist()


def test_files_without_boosted_terms_can_be_read(table, tmp_path, monkeypatch):
    """Files of version 0.2 have two weights, and no arrays of boosted terms."""
    X, y = table
    model = small().fit(X, y)
    state = {name: value for name, value in model._get_state().items() if not name.startswith("boosting_")}
    weights = np.array([0.8, 0.5])
    monkeypatch.setattr(model, "_get_state", lambda: state | {"weights": weights})
    model.save(tmp_path / "ensemble.tan")
    again = load(tmp_path / "ensemble.tan")
    assert again.weights_.tolist() == [0.8, 0.5, 0.0]
    expected = np.tensordot(weights, [part.predict_log_proba(X) for part in parts_of(model)[:2]], 1)
    np.testing.assert_allclose(again.predict_log_proba(X), log_softmax(expected, axis=1), atol=1e-9)
    np.testing.assert_allclose(again.explain(X).sum(axis=1), again.predict_log_proba(X), atol=1e-9)
    assert again.boosting_.n_terms_ == 0
    assert again.describe()["weights"] == {"forest": 0.8, "network": 0.5, "boosting": 0.0}
    frequencies = (np.array([(y == "no").sum(), (y == "yes").sum()]) + 1) / 242
    np.testing.assert_allclose(again.boosting_.predict_proba(X), np.tile(frequencies, (240, 1)))
    again.save(tmp_path / "new.tan")
    np.testing.assert_array_equal(load(tmp_path / "new.tan").predict_proba(X), again.predict_proba(X))


def test_boosted_terms_of_merged_intervals_predict_from_the_codes_of_the_ensemble(table, monkeypatch):
    X, y = table
    seen = []
    original = BoostedTermsClassifier._fit_boosting

    def spy(self, data, rng, needed):
        outcome = original(self, data, rng, needed)
        seen.append((data, outcome.model))
        return outcome

    monkeypatch.setattr(BoostedTermsClassifier, "_fit_boosting", spy)
    model = small().fit(X, y)
    ((data, of_intervals),) = seen
    assert (data.n_states <= model.encoder_.n_states_).all()
    assert data.n_states[0] < model.encoder_.n_states_[0]
    found = model.boosting_.model_.log_joint(model.encoder_.encode(X))
    np.testing.assert_array_equal(found, of_intervals.log_joint(data.codes))


@pytest.mark.parametrize(
    "columns", [["town"], ["size"], ["size", "town", "age"]], ids=["categories", "numbers", "mixed"]
)
def test_files_of_all_kinds_of_columns_can_be_read(table, tmp_path, columns):
    X, y = table
    model = small().fit(X[columns], y)
    model.save(tmp_path / "ensemble.tan")
    np.testing.assert_array_equal(
        load(tmp_path / "ensemble.tan").predict_proba(X[columns]), model.predict_proba(X[columns])
    )


@pytest.mark.filterwarnings("ignore:discretization left")  # of a column that says nothing by itself
def test_other_cut_points_are_merged_too(table):
    X, y = table
    model = small(encoder=TableEncoder(discretizer=MDLPDiscretizer())).fit(X, y)
    assert (model.network_.encoder_.n_states_ == model.encoder_.n_states_).all()  # few intervals stay as they are
    assert type(model.network_.encoder_.discretizer_) is MDLPDiscretizer


def test_missing_and_unseen_values_are_predicted_from(table, fitted):
    asked = pd.DataFrame({"size": [np.nan, 1.0, np.nan], "town": ["Rom", None, None], "age": [0.5, np.nan, np.nan]})
    p = fitted.predict_proba(asked)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.explain(asked).sum(axis=1), np.log(p))


def test_a_category_of_missing_values_stays_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    X[(y == 1) & (rng.random(400) < 0.5), 0] = np.nan  # missing values say the class
    model = small().fit(X, y)
    assert model.encoder_.has_missing_category_.tolist() == [True, False]
    assert model.network_.encoder_.n_states_.tolist() == [33, 32]
    assert model.predict_proba([[np.nan, 0.0]])[0, 1] > 0.9
    codes = model.network_.encoder_.encode([[np.nan, 0.0]])
    assert codes[0, 0] == 32


def test_class_probabilities_move_the_odds(table, fitted):
    X, y = table
    odds = np.diff(fitted.predict_log_proba(X), axis=1)
    moved = np.diff(fitted.with_class_prior([0.9, 0.1]).predict_log_proba(X), axis=1)
    np.testing.assert_allclose(moved - odds, (moved - odds)[0, 0])
    assert (moved < odds).all()
    same = small(class_prior=[0.9, 0.1]).fit(X, y)
    np.testing.assert_allclose(np.diff(same.predict_log_proba(X), axis=1), moved)
    np.testing.assert_array_equal(same.forest_.predict_proba(X), fitted.forest_.predict_proba(X))


def test_rows_of_weight_zero_are_absent(table):
    X, y = table
    weight = (np.arange(240) % 4 > 0).astype(float)
    first = small().fit(X, y, sample_weight=weight).predict_proba(X)
    second = small().fit(X[weight > 0], y[weight > 0]).predict_proba(X)
    np.testing.assert_array_equal(first, second)


def test_the_same_seed_gives_the_same_model_with_any_number_of_threads(table, fitted):
    X, y = table
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(small(n_jobs=n_jobs).fit(X, y).predict_proba(X), fitted.predict_proba(X))
    own = small(forest=BayesForestClassifier(n_estimators=4, random_state=0))
    np.testing.assert_array_equal(own.fit(X, y).forest_.predict_proba(X), fitted.forest_.predict_proba(X))
    parts = {
        "forest": BayesForestClassifier(n_estimators=4, random_state=0),
        "boosting": BoostedTermsClassifier(max_terms=50, random_state=0),
    }
    first, second = (small(**{**parts, "random_state": seed}).fit(X, y).predict_proba(X) for seed in (1, 2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "parts",
    [
        {"forest": BayesForestClassifier(class_prior=[0.5, 0.5])},
        {"network": TermNetClassifier(class_weight="balanced")},
        {"network": TermNetClassifier(encoder=TableEncoder())},
        {"forest": BayesForestClassifier(warm_start=True)},
        {"boosting": BoostedTermsClassifier(class_prior=[0.5, 0.5])},
        {"boosting": BoostedTermsClassifier(class_weight="balanced")},
    ],
    ids=["class_prior", "class_weight", "encoder", "warm_start", "boosting_prior", "boosting_weight"],
)
def test_parameters_of_the_whole_are_refused_in_parts(table, parts):
    with pytest.raises(
        ValueError, match=r"if it is part of an ensemble, got .*. Remove it from (forest|network|boosting)"
    ):
        BayesEnsembleClassifier(**parts).fit(*table)


def test_invalid_parts_are_refused_before_the_fit(table):
    with pytest.raises(ValueError, match="max_parents"):
        BayesEnsembleClassifier(network=TermNetClassifier(max_parents=9)).fit(*table)
    with pytest.raises(ValueError, match="'forest' parameter"):
        BayesEnsembleClassifier(forest=TermNetClassifier()).fit(*table)
    with pytest.raises(ValueError, match="'boosting' parameter"):
        BayesEnsembleClassifier(boosting=TermNetClassifier()).fit(*table)
    with pytest.raises(ValueError, match="max_splits"):
        BayesEnsembleClassifier(boosting=BoostedTermsClassifier(max_splits=9)).fit(*table)


def test_codes_are_learnt_without_an_encoder():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (200, 4))
    data = EncodedData.from_codes(codes, (codes[:, 0] + codes[:, 1]) % 3)
    model = small().fit_encoded(data)
    assert model.weights_.sum() > 0.5
    assert (model.model_.log_joint(data.codes).argmax(axis=1) == data.y).mean() > 0.9


def test_ordered_codes_are_merged_as_raw_numbers_are():
    rng = np.random.default_rng(0)
    X = rng.permutation(np.tile(np.arange(240.0), (2, 1)), axis=1).T
    y = (X.sum(axis=1) + rng.normal(0, 60, 240) > 240).astype(int)
    raw = small().fit(X, y)
    coded = small().fit_encoded(EncodedData.from_codes(X.astype(int), y, is_ordered=True))
    np.testing.assert_array_equal(
        coded.model_.log_joint(raw.encoder_.encode(X)), raw.model_.log_joint(raw.encoder_.encode(X))
    )


def spy_on_weights(monkeypatch):
    """Record the arguments with which weights are fitted."""
    seen = []

    def fit_pool_weights(log_p, y, sample_weight):
        seen.append((log_p, y, sample_weight))
        return np.array([0.5, 0.5, 0.5])

    monkeypatch.setattr("tanlearn.estimators.bayes_ensemble.fit_pool_weights", fit_pool_weights)
    return seen


@pytest.mark.filterwarnings("ignore:sample_weight adds up to")
def test_weights_are_fitted_to_rows_that_no_part_was_trained_on(monkeypatch, table):
    X, y = table
    seen = spy_on_weights(monkeypatch)
    model = small().fit(X, y, sample_weight=np.linspace(1e-6, 2e-6, 240))
    ((log_p, codes, sample_weight),) = seen
    assert log_p.shape == (3, 240, 2)
    own = np.arange(240), codes
    # Sorted by weight, the rows are those of the table again: weights are divided by their mean.
    order = np.argsort(sample_weight)
    np.testing.assert_allclose(sample_weight[order], np.linspace(1e-6, 2e-6, 240) / 1.5e-6)
    np.testing.assert_array_equal(model.classes_[codes[order]], y)
    for part, held_out in zip(parts_of(model), log_p, strict=True):
        in_training = part.predict_log_proba(X)[order.argsort()]
        assert np.corrcoef(in_training[:, 0], held_out[:, 0])[0, 1] > 0.7  # of the same rows
        assert held_out[own].mean() < in_training[own].mean()  # and less certain


def test_codes_of_rows_of_weight_zero_are_absent(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (300, 3))
    y = np.where(rng.random(300) < 0.8, codes[:, 0] % 2, rng.integers(0, 2, 300))
    weight = np.arange(300) % 3
    seen = spy_on_weights(monkeypatch)
    for rows in (np.arange(300), np.flatnonzero(weight)):
        small().fit_encoded(EncodedData.from_codes(codes[rows], y[rows], sample_weight=weight[rows], n_states=[3] * 3))
    for one, two in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, two)


def test_parameters_of_default_parts_can_be_set():
    model = BayesEnsembleClassifier().set_params(forest__n_estimators=3, network__max_parents=0, boosting__max_terms=7)
    assert (model.forest.n_estimators, model.network.max_parents, model.boosting.max_terms) == (3, 0, 7)
    with pytest.raises(ValueError, match="Invalid parameter 'trees'"):
        BayesEnsembleClassifier().set_params(forest__trees=3)


def test_tiny_tables_are_learnt():
    model = small().fit([["a", 1.5], ["b", 2.5], ["a", 3.5]], ["x", "y", "x"])
    np.testing.assert_allclose(model.predict_proba([["a", 1.5], ["c", np.nan]]).sum(axis=1), 1)


def test_the_description_names_all_parts(fitted):
    found = fitted.describe()
    assert found["forest"]["format"] == "tanlearn forest description"
    assert found["network"]["format"] == "tanlearn description"
    assert found["boosting"] == fitted.boosting_.describe()
    assert found["boosting"]["format"] == "tanlearn boosted terms description"
    assert found["weights"] == dict(zip(["forest", "network", "boosting"], fitted.weights_.tolist(), strict=True))
    assert fitted._summary()["boosting"] == f"{fitted.boosting_.n_terms_} terms"
    assert found["n_parameters"] == fitted.n_parameters_


def test_the_joint_distribution_is_that_of_the_network_only(table, fitted):
    with pytest.raises(AttributeError) as error:
        fitted.predict_joint_log_proba(table[0])
    assert "network_.predict_joint_log_proba" in str(error.value.__cause__)
    assert np.isfinite(fitted.network_.predict_joint_log_proba(table[0])).all()


def test_means_of_the_largest_numbers_are_finite(tmp_path):
    x = np.random.default_rng(0).uniform(-1, 1, (400, 2)) * 1.7e308
    model = small().fit(x, x[:, 0] > 0)
    typical = model.network_.encoder_.typical_values_
    assert np.isfinite(np.concatenate(typical)).all()
    assert typical[0][-1] == pytest.approx(1.65e308, rel=0.02)
    model.save(tmp_path / "large.tan")
    np.testing.assert_array_equal(load(tmp_path / "large.tan").predict_proba(x), model.predict_proba(x))


def test_the_network_moves_its_prior_as_before_a_file(table, fitted, tmp_path):
    x, _ = table
    fitted.save(tmp_path / "model.tan")
    prior = np.arange(1, len(fitted.classes_) + 1) / np.arange(1, len(fitted.classes_) + 1).sum()
    networks = [model.network_ for model in (fitted, load(tmp_path / "model.tan"))]
    np.testing.assert_array_equal(*(network.with_class_prior(prior).predict_proba(x) for network in networks))
