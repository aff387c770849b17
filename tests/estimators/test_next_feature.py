"""Features to observe next, by name: against the public probabilities, on all kinds of networks and columns."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tanlearn
from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    Calibration,
    HierarchicalSmoothing,
    ImpossibleRowsWarning,
    KTreeClassifier,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableEncoder,
    TANClassifier,
    TermNetClassifier,
)
from tanlearn.baselines import ChowLiu, KDependence

COSTS = {"size": 3.0, "job": 0.5}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["Graz", "Linz", "Wels"], 400)})
    X["size"] = rng.normal(size=400) + (X["town"] == "Graz")
    X["age"] = rng.choice(["young", "old"], 400)
    X["job"] = np.where(rng.random(400) < 0.8, X["age"].map({"young": "pupil", "old": "cook"}), "none")
    y = np.where((X["size"] > 0.5) ^ (X["job"] == "none") ^ (rng.random(400) < 0.1), "yes", "no")
    return X, y


MODELS = {
    "naive": lambda: NaiveBayesClassifier(),
    "tree": lambda: BayesNetClassifier(structure=ChowLiu()),
    "gradient": lambda: TANClassifier(random_state=0),
    "2-dependence": lambda: BayesNetClassifier(structure=KDependence(k=2)),
    "back-off": lambda: BayesNetClassifier(structure=KDependence(k=2), parameters=HierarchicalSmoothing()),
    "k-tree": lambda: KTreeClassifier(random_state=0),
    "terms": lambda: TermNetClassifier(),
    "terms of pairs": lambda: TermNetClassifier(max_parents=2),
    "few bits": lambda: NaiveBayesClassifier(),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request, table):
    fitted = MODELS[request.param]().fit(*table)
    return fitted.with_bits((3, 2)) if request.param == "few bits" else fitted


@pytest.fixture(scope="module")
def tree(table):
    return MODELS["tree"]().fit(*table)


@pytest.fixture(scope="module")
def rows(table):
    X = table[0].iloc[:12].copy()
    hidden = np.random.default_rng(1).random(X.shape) < 0.6
    hidden[0], hidden[1] = True, False
    return X.mask(hidden)


def values_of(model, name):
    """Return raw values of a column, one per category or interval."""
    i = model.feature_names_in_.tolist().index(name)
    encoder = model.encoder_
    if encoder.categories_[i] is not None:
        return encoder.categories_[i].tolist()
    cut_points = encoder.discretizer_.cut_points_[sum(known is None for known in encoder.categories_[:i])]
    return [*cut_points.tolist(), 1e3] if len(cut_points) else [0.0]


def entropy(p):
    """Return entropies in bits."""
    return -(p * np.log2(p)).sum(axis=-1)


def posterior(model, row):
    """Return the class probabilities of the network, before calibration."""
    p = np.exp(model.predict_joint_log_proba(row)[0])
    return p / p.sum()


def gain_by_public_methods(model, row, name, prior, worth):
    """Return the gain of a column by inserting each of its values in a row."""
    before = np.exp(model.predict_joint_log_proba(row)[0])
    after = 0.0
    for value in values_of(model, name):
        filled = row.copy()
        filled[name] = value
        q = prior * np.exp(model.predict_joint_log_proba(filled)[0]) / before
        after += q.sum() * worth(q / q.sum())
    return after - worth(prior)


@pytest.mark.parametrize("gain", ["information", "accuracy"])
def test_gains_are_those_of_inserting_every_value(model, rows, gain):
    found = model.feature_gains(rows, costs=COSTS, gain=gain)
    assert found.shape == rows.shape
    np.testing.assert_array_equal(np.isnan(found), rows.notna())
    for k in range(len(rows)):
        for i, name in enumerate(rows.columns):
            if np.isnan(found[k, i]):
                continue
            row = rows.iloc[[k]]
            prior = posterior(model, row) if gain == "information" else model.predict_proba(row)[0]
            worth = (lambda p: -entropy(p)) if gain == "information" else max
            wanted = gain_by_public_methods(model, row, name, prior, worth) / COSTS.get(name, 1.0)
            assert found[k, i] == pytest.approx(wanted, abs=1e-9)


def test_the_next_feature_is_the_one_of_the_largest_gain(model, rows):
    for options in ({}, {"costs": COSTS}, {"gain": [[1, 0], [-1, 2]]}, {"depth": 2}):
        gains = model.feature_gains(rows, **options)
        for own, name in zip(gains, model.next_feature(rows, **options), strict=True):
            if np.isnan(own).all():
                assert name is None
            else:
                assert own[rows.columns.get_loc(name)] == pytest.approx(np.nanmax(own), rel=1e-8)
    assert model.next_feature(rows)[1] is None
    assert isinstance(model.next_feature(rows)[0], str)


def test_results_do_not_depend_on_other_rows_and_kinds_of_tables(tree, rows):
    wanted = tree.next_feature(rows).tolist()
    assert [tree.next_feature(rows.iloc[[k]])[0] for k in range(len(rows))] == wanted
    assert tree.next_feature(pl.from_pandas(rows)).tolist() == wanted
    assert len({*wanted}) > 2


def test_columns_without_names_are_numbered(table):
    X, y = table
    bare = BayesNetClassifier(structure=ChowLiu()).fit(X.to_numpy(), y)
    nothing = np.full((1, 4), None)
    assert bare.next_feature(nothing).tolist() == [1]
    assert bare.next_feature(nothing, costs={1: 1000.0}).tolist() != [1]
    assert bare.next_feature(nothing, unanswered=[1]).tolist() != [1]
    assert bare.next_feature(nothing, costs={"x1": 1000.0}).tolist() != [1]


def test_a_row_without_values_needs_no_types(tree):
    nothing = pd.DataFrame([{}], columns=tree.feature_names_in_)
    assert tree.next_feature(nothing).tolist() == ["size"]
    assert tree.next_feature(nothing.astype(float)).tolist() == ["size"]


def test_unanswered_features_are_not_returned_again(tree, rows):
    nothing = rows.iloc[[0]]
    assert tree.next_feature(nothing, unanswered=["size"]).tolist() != ["size"]
    found = tree.feature_gains(rows, unanswered=["size", 0])
    assert np.isnan(found[:, :2]).all()
    mask = np.zeros(rows.shape, bool)
    mask[0, 1] = True
    np.testing.assert_array_equal(np.isnan(tree.feature_gains(rows, unanswered=mask)), rows.notna() | mask)
    assert tree.next_feature(nothing, unanswered=["town", "size", "age", "job"]).tolist() == [None]


def test_unseen_categories_are_observed_but_no_evidence(tree, rows):
    unseen = rows.iloc[[0]].assign(town="Paris")
    found = tree.feature_gains(unseen)
    assert np.isnan(found[0, 0])
    np.testing.assert_array_equal(found[0, 1:], tree.feature_gains(rows.iloc[[0]])[0, 1:])


def test_missing_values_of_columns_with_a_category_for_them_are_not_observed_yet(table):
    X, y = table
    X = X.assign(town=X["town"].mask((y == "yes") & (X["town"] == "Graz")))
    model = NaiveBayesClassifier(encoder=TableEncoder(handle_missing="category")).fit(X, y)
    assert model.encoder_.has_missing_category_.tolist() == [True, False, False, False]
    nothing = pd.DataFrame([{}], columns=X.columns)
    own = model.tables_.probabilities(0) * np.exp(model.tables_.log_prior)  # with the category of missing values
    wanted = entropy(own.sum(axis=0)) - (own.sum(axis=1) * entropy(own / own.sum(axis=1, keepdims=True))).sum()
    assert model.feature_gains(nothing)[0, 0] == pytest.approx(wanted, abs=1e-12)
    without = model.feature_gains(nothing, unanswered=["town"])[0]
    assert np.isnan(without[0])
    prior = own[-1] / own[-1].sum()  # no answer is the category
    p = prior * model.tables_.probabilities(2)
    wanted = entropy(prior) - (p.sum(axis=1) * entropy(p / p.sum(axis=1, keepdims=True))).sum()
    assert without[2] == pytest.approx(wanted, abs=1e-12)


def test_calibration_changes_the_gain_of_decisions_only(table, rows):
    model = MODELS["naive"]().fit(*table)
    row, utility = rows.iloc[[0]], [[1.0, -0.2], [-0.5, 1.0]]
    before = model.feature_gains(row), model.feature_gains(row, gain=utility)
    model.calibration_ = Calibration(temperature=3.0)
    np.testing.assert_array_equal(model.feature_gains(row), before[0])
    prior = model.predict_proba(row)[0]
    wanted = gain_by_public_methods(model, row, "size", prior, lambda p: (p @ np.array(utility)).max())
    found = model.feature_gains(row, gain=utility)[0, 1]
    assert found == pytest.approx(wanted, abs=1e-12)
    assert abs(found - before[1][0, 1]) > 1e-3


def test_ties_go_to_information_and_then_to_the_first_column():
    X = pd.DataFrame({"a": list("xxyyxxyy"), "b": list("xxyyxxyy"), "c": list("xyxyxyxy"), "d": list("xxxxxxxy")})
    y = [0, 0, 1, 1, 0, 0, 1, 0]
    model = NaiveBayesClassifier().fit(X, y)
    nothing = X.iloc[:1].mask(X.iloc[:1].notna())
    assert model.next_feature(nothing).tolist() == ["a"]
    assert model.next_feature(nothing[["a", "b", "c", "d"]], unanswered=["a"]).tolist() == ["b"]
    flat = [[1, 1], [1, 1]]  # no decision is better than another
    assert model.feature_gains(nothing, gain=flat).tolist() == [[0.0] * 4]
    assert model.next_feature(nothing, gain=flat).tolist() == ["a"]
    information = model.feature_gains(nothing)[0]
    assert model.next_feature(nothing, gain=flat, unanswered=["a", "b"]).tolist() == ["cd"[information[2:].argmax()]]
    assert model.next_feature(nothing, gain=flat, unanswered=["a", "b"], costs={"c": 1e6, "d": 1}).tolist() == ["d"]


def test_accuracy_is_the_expected_probability_of_the_predicted_class(tree, rows):
    row = rows.iloc[[0]]
    found = tree.feature_gains(row, gain="accuracy")[0]
    for i, name in enumerate(rows.columns):
        after = 0.0
        for value in values_of(tree, name):
            filled = row.copy()
            filled[name] = value
            after += np.exp(tree.predict_joint_log_proba(filled)[0]).max()
        assert found[i] == pytest.approx(after - tree.predict_proba(row)[0].max(), abs=1e-12)
    np.testing.assert_array_equal(found, tree.feature_gains(row, gain=np.eye(2))[0])


def test_rows_of_probability_zero_count_as_rows_without_values():
    X = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"], "c": ["k", "l", "k", "k"]})
    model = NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0)).fit(X, [0, 0, 1, 1])
    row = pd.DataFrame({"a": ["x"], "b": ["v"], "c": [None]})
    with pytest.warns(ImpossibleRowsWarning, match="1 of 1 rows"):
        found = model.feature_gains(row)
    assert np.isnan(found[0, :2]).all()
    nothing = row.mask(row.notna())
    assert found[0, 2] == model.feature_gains(nothing)[0, 2] > 0


def test_models_from_files_have_the_same_gains(tree, rows, tmp_path):
    tree.save(tmp_path / "a.tan")
    np.testing.assert_array_equal(tanlearn.load(tmp_path / "a.tan").feature_gains(rows), tree.feature_gains(rows))


def test_structures_with_a_cycle_have_no_gains(table):
    X, y = table
    model = BayesNetClassifier(structure=Structure([1, 0, -1, -1], allow_cycles=True)).fit(X, y)
    with pytest.raises(ValueError, match=r"row 0 lacks feature 0 .* in a structure with a cycle"):
        model.next_feature(X.iloc[:1].mask(X.iloc[:1].notna()))


def test_forests_are_not_a_single_network():
    assert not hasattr(BayesForestClassifier(), "next_feature")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gain": "bits"}, ValueError, 'gain must be "information", "accuracy" or an array of utilities, got \'bits\''),
        ({"gain": [[1, 2]]}, ValueError, r"one row for each of the 2 classes .* got shape \(1, 2\)"),
        ({"gain": [["a", "b"], ["c", "d"]]}, ValueError, "must contain numbers"),
        ({"gain": [[1.0, np.nan], [0.0, 1.0]]}, ValueError, "utilities must be finite, got nan"),
        (
            {"costs": {"ag": 2}},
            ValueError,
            "costs contains 'ag', which is not the name or number of a feature. Did you mean 'age'",
        ),
        ({"costs": {4: 2}}, ValueError, "costs contains 4, which is not the name or number of a feature. The"),
        ({"costs": {"age": 0}}, ValueError, "costs must be positive finite numbers, got 0 for 'age'. To leave"),
        ({"costs": [1, 2]}, ValueError, "costs must contain 4 numbers, one per feature, got 2"),
        ({"costs": [1, 1, 1, np.inf]}, ValueError, "got inf for 'job'"),
        ({"depth": 0}, ValueError, "depth must be an integer of at least 1, got 0"),
        ({"depth": True}, ValueError, "depth must be an integer"),
        ({"unanswered": "age"}, TypeError, "unanswered must be a mask or a list of features, got 'age'"),
        ({"unanswered": ["agee"]}, ValueError, "unanswered contains 'agee'.* Did you mean 'age'"),
        ({"unanswered": [[True]]}, ValueError, r"the shape of X, \(12, 4\), got \(1, 1\)"),
    ],
)
def test_invalid_arguments_are_refused(tree, rows, options, error, message):
    with pytest.raises(error, match=message):
        tree.next_feature(rows, **options)


def test_unfitted_classifiers_and_other_columns_are_refused(tree, rows):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().next_feature(rows)
    with pytest.raises(ValueError, match="town"), warnings.catch_warnings():
        tree.next_feature(rows.rename(columns={"town": "city"}))
