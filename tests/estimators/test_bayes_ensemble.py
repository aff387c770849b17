"""The ensemble of a forest and a network: raw tables, its parts, class probabilities, weights, files."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from support.forests import mixed_table

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    EncodedData,
    MDLPDiscretizer,
    TableEncoder,
    TermNetClassifier,
    load,
)


def small(**parameters):
    """Return an ensemble that is soon fitted."""
    return BayesEnsembleClassifier(forest=BayesForestClassifier(n_estimators=4), random_state=0, **parameters)


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
    parts = [part.predict_log_proba(X) for part in (fitted.forest_, fitted.network_)]
    expected = log_softmax(np.tensordot(fitted.weights_, parts, 1), axis=1)
    np.testing.assert_allclose(fitted.predict_log_proba(X), expected, atol=1e-9)
    assert (fitted.weights_ >= 0).all()


def test_it_is_better_than_either_part_if_each_has_information_of_its_own():
    """The class depends on a sum of numbers, which suits the network, and on a parity, which suits the forest."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc"))
    for name in "pqr":
        X[name] = rng.choice(["no", "yes"], 1500)
    parity = (X[["p", "q", "r"]] == "yes").sum(axis=1) % 2
    y = X[list("abc")].sum(axis=1) + 2 * parity + rng.logistic(size=1500) > 1
    model = small().fit(X[:1000], y[:1000])

    def loss(part):
        return -part.predict_log_proba(X[1000:])[np.arange(500), y[1000:].astype(int)].mean()

    assert loss(model) < min(loss(model.forest_), loss(model.network_))
    assert (model.weights_ > 0.2).all()


def test_the_forest_is_used_alone_if_the_features_are_noise():
    rng = np.random.default_rng(0)
    model = small().fit(rng.normal(size=(200, 4)), rng.integers(0, 2, 200))
    assert model.weights_.tolist() == [1.0, 0.0]


def test_the_parts_predict_raw_rows_alone(table, fitted):
    X, y = table
    assert fitted.network_.score(X, y) > 0.8
    assert fitted.network_.feature_names_in_.tolist() == ["size", "town", "age"]
    assert fitted.forest_.feature_importances_.shape == (3,)
    assert fitted.encoder_.n_states_.tolist() == [240, 3, 240]
    assert fitted.network_.encoder_.n_states_.tolist() == [32, 3, 32]


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
    for one, two in ((model, again), (model.forest_, again.forest_), (model.network_, again.network_)):
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    told, expected = again.describe(), model.describe()
    assert told["network"].pop("training")["n_iter"] is None  # files do not store it
    assert expected["network"].pop("training")["n_iter"] == model.network_.n_iter_
    assert told == expected
    np.testing.assert_array_equal(again.network_.standard_errors_[0], model.network_.standard_errors_[0])
    assert again.network_.sample(3, random_state=0)[0].tolist() == model.network_.sample(3, random_state=0)[0].tolist()


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
    own = BayesEnsembleClassifier(forest=BayesForestClassifier(n_estimators=4, random_state=0), random_state=1)
    np.testing.assert_array_equal(own.fit(X, y).predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(
    "parts",
    [
        {"forest": BayesForestClassifier(class_prior=[0.5, 0.5])},
        {"network": TermNetClassifier(class_weight="balanced")},
        {"network": TermNetClassifier(encoder=TableEncoder())},
        {"forest": BayesForestClassifier(warm_start=True)},
    ],
    ids=["class_prior", "class_weight", "encoder", "warm_start"],
)
def test_parameters_of_the_whole_are_refused_in_parts(table, parts):
    with pytest.raises(ValueError, match=r"a part of an ensemble must not have. Remove it from (forest|network)"):
        BayesEnsembleClassifier(**parts).fit(*table)


def test_invalid_parts_are_refused_before_the_fit(table):
    with pytest.raises(ValueError, match="max_parents"):
        BayesEnsembleClassifier(network=TermNetClassifier(max_parents=9)).fit(*table)
    with pytest.raises(ValueError, match="'forest' parameter"):
        BayesEnsembleClassifier(forest=TermNetClassifier()).fit(*table)


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
        return np.array([0.5, 0.5])

    monkeypatch.setattr("tanlearn.estimators.bayes_ensemble.fit_pool_weights", fit_pool_weights)
    return seen


@pytest.mark.filterwarnings("ignore:sample_weight adds up to")
def test_weights_are_fitted_to_rows_that_neither_part_was_trained_on(monkeypatch, table):
    X, y = table
    seen = spy_on_weights(monkeypatch)
    model = small().fit(X, y, sample_weight=np.linspace(1e-6, 2e-6, 240))
    ((log_p, codes, sample_weight),) = seen
    assert log_p.shape == (2, 240, 2)
    own = np.arange(240), codes
    # Sorted by weight, the rows are those of the table again: weights are divided by their mean.
    order = np.argsort(sample_weight)
    np.testing.assert_allclose(sample_weight[order], np.linspace(1e-6, 2e-6, 240) / 1.5e-6)
    np.testing.assert_array_equal(model.classes_[codes[order]], y)
    for part, held_out in zip((model.forest_, model.network_), log_p, strict=True):
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
    model = BayesEnsembleClassifier().set_params(forest__n_estimators=3, network__max_parents=0)
    assert (model.forest.n_estimators, model.network.max_parents) == (3, 0)
    with pytest.raises(ValueError, match="Invalid parameter 'trees'"):
        BayesEnsembleClassifier().set_params(forest__trees=3)


def test_tiny_tables_are_learnt():
    model = small().fit([["a", 1.5], ["b", 2.5], ["a", 3.5]], ["x", "y", "x"])
    np.testing.assert_allclose(model.predict_proba([["a", 1.5], ["c", np.nan]]).sum(axis=1), 1)


def test_the_description_names_both_parts(fitted):
    found = fitted.describe()
    assert found["forest"]["format"] == "tanlearn forest description"
    assert found["network"]["format"] == "tanlearn description"
    assert list(found["weights"].values()) == fitted.weights_.tolist()
    assert found["n_parameters"] == fitted.n_parameters_


def test_the_joint_distribution_is_that_of_the_network_only(table, fitted):
    with pytest.raises(AttributeError) as error:
        fitted.predict_joint_log_proba(table[0])
    assert "network_.predict_joint_log_proba" in str(error.value.__cause__)
    assert np.isfinite(fitted.network_.predict_joint_log_proba(table[0])).all()
