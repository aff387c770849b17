"""TermNetClassifier: what it predicts does not depend on threads, on the order of columns or on their scale."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tanlearn import TableEncoder, TermNetClassifier, load, save


def mixed(n_samples, seed=0):
    """Return a frame of numbers and categories with missing values, and three classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "height": rng.normal(size=n_samples),
            "width": rng.normal(size=n_samples),
            "town": rng.choice(["Graz", "Linz", "Wien"], n_samples),
            "age": rng.integers(0, 90, n_samples).astype(float),
        }
    )
    y = (X.height * X.width > 0).astype(int) + (X.town == "Wien")
    X.loc[rng.random(n_samples) < 0.1, "age"] = np.nan
    X.loc[rng.random(n_samples) < 0.1, "town"] = None
    return X, y.to_numpy()


def test_threads_change_nothing():
    X, y = mixed(100)
    one, two = (TermNetClassifier(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.ridges_ == two.ridges_
    np.testing.assert_array_equal(one.structure_.parents, two.structure_.parents)


@pytest.mark.parametrize("max_parents", [1, 3])
def test_the_order_of_columns_changes_nothing_but_rounding(max_parents):
    """Copies of columns have equal gains, so their names decide which of them get an edge."""
    X, y = mixed(110)
    X["copy"], X["another"] = X.height, X.width
    names = list(X)
    expected = TermNetClassifier(max_parents=max_parents).fit(X, y)
    edges = {(names[i], names[j]) for i, row in enumerate(expected.structure_.parents) for j in row if j >= 0}
    assert edges
    order = names[3:] + names[2::-1]
    found = TermNetClassifier(max_parents=max_parents).fit(X[order], y)
    assert edges == {(order[i], order[j]) for i, row in enumerate(found.structure_.parents) for j in row if j >= 0}
    assert found.ridges_ == expected.ridges_
    np.testing.assert_allclose(found.predict_proba(X[order]), expected.predict_proba(X), atol=0.01)


def test_monotone_transformations_change_nothing():
    X, y = mixed(100)
    transformed = X.assign(height=np.exp(X.height), width=X.width**3 - 5, age=np.sqrt(X.age))
    one, two = TermNetClassifier().fit(X, y), TermNetClassifier().fit(transformed, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(transformed))


@pytest.mark.parametrize("seed", [0, 3])
def test_exclusive_or_of_two_columns_is_learned(seed):
    """Neither of them helps alone, and four others do not help at all. Accuracies of seeds 0 to 5 are 0.97 to 0.99."""
    X = np.random.default_rng(seed).normal(size=(2000, 6))
    y = X[:, 1] * X[:, 4] > 0
    model = TermNetClassifier().fit(X[:1500], y[:1500])
    assert model.score(X[1500:], y[1500:]) > 0.95
    parent = model.structure_.parent
    assert parent[1] == 4 or parent[4] == 1
    assert model.cv_results_["param_n_parents"].tolist() == [0, 1]
    assert model.cv_results_["mean_test_score"][0] < 0.6
    assert model.cv_results_["mean_test_score"][1] > 0.93
    assert model.cv_results_["mean_log_loss"][1] < 0.5 * model.cv_results_["mean_log_loss"][0]


@pytest.mark.parametrize("max_parents", [0, 1, 3])
def test_missing_values_are_marginalized_in_the_rows_that_are_predicted(max_parents):
    """The posterior of a row is the mean of those of its completions, weighted by the joint probability."""
    X, y = mixed(100)
    model = TermNetClassifier(max_parents=max_parents).fit(X, y)
    row = X.dropna().iloc[[0]]
    hidden = row.assign(town=None)
    joint = [model.predict_joint_log_proba(row.assign(town=town))[0] for town in ("Graz", "Linz", "Wien")]
    expected = np.logaddexp.reduce(joint, axis=0)
    expected = np.exp(expected - np.logaddexp.reduce(expected))
    np.testing.assert_allclose(model.predict_proba(hidden)[0], expected, rtol=1e-9)


def test_models_of_one_parent_are_distributions_of_rows():
    X, y = mixed(100)
    model = TermNetClassifier().fit(X, y)
    assert model.tables_.is_normalized
    sampled, labels = model.sample(20, random_state=0)
    assert len(sampled) == len(labels) == 20
    completed, classes = model.complete(X)
    assert not completed.isna().any().any()
    assert set(classes) <= {0, 1, 2}
    pd.testing.assert_frame_equal(completed[X.notna().all(axis=1)], X.dropna(), check_dtype=False)


def test_several_parents_cannot_sample():
    model = TermNetClassifier(max_parents=2)  # a fitted tree can; see test_term_net_usage.py
    assert not hasattr(model, "sample")
    with pytest.raises(AttributeError) as error:
        model.sample(3)
    assert "Fit it with max_parents=1" in str(error.value.__cause__)


@pytest.mark.parametrize("max_parents", [1, 3])
def test_files_and_pickles_give_the_same_predictions(max_parents, tmp_path):
    X, y = mixed(100)
    model = TermNetClassifier(max_parents=max_parents).fit(X, y)
    save(model, tmp_path / "model.tanlearn")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.tanlearn")):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.structure_.parents, model.structure_.parents)
        assert again.n_parameters_ == model.n_parameters_


def test_many_categories_need_little_memory():
    """A CPT of two columns with 3,000 categories would have 18 million entries."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "one": pd.Categorical.from_codes(rng.integers(0, 3000, 200), np.arange(3000).astype(str)),
            "two": pd.Categorical.from_codes(rng.integers(0, 3000, 200), np.arange(3000).astype(str)),
            "three": rng.normal(size=200),
        }
    )
    y = (X.three > 0).to_numpy()
    model = TermNetClassifier(max_parents=2).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.n_parameters_ < 50_000
    assert np.isfinite(model.predict_proba(X.assign(one=None))).all()


@pytest.mark.parametrize("n_samples", [2, 3, 5])
def test_few_rows_and_one_column(n_samples):
    X = np.arange(n_samples, dtype=float)[:, np.newaxis]
    y = np.arange(n_samples) % 2
    model = TermNetClassifier().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert set(model.predict(X)) <= set(y)


def test_columns_without_information_are_accepted():
    X, y = mixed(60)
    X = X.assign(constant=1.0, empty=np.nan, text="same")
    model = TermNetClassifier(max_parents=2).fit(X, y)
    assert model.score(X, y) > 0.5
    assert (model.structure_.parents[4:] == -1).all()
    assert model.structure_.parents.max() < 4


def test_the_frequencies_of_the_classes_as_prior_change_nothing():
    """The intercept is trained. It moves by the change, and is not replaced."""
    X, y = mixed(100)
    plain = TermNetClassifier().fit(X, y)
    frequencies = (np.bincount(y) + 1) / (len(y) + 3)  # with a row more of each class
    assert np.abs(plain.tables_.log_prior - np.log(frequencies)).max() > 0.1
    model = TermNetClassifier(class_prior=frequencies).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-9)


def test_class_weights_equal_sample_weights():
    """Of categories only: intervals, and columns with a category for missing values, do not depend on class weights."""
    X, y = mixed(100)
    X = X[["town"]].assign(size=np.where(X.height > 0, "large", "small"))
    model = TermNetClassifier(encoder=TableEncoder(handle_missing="category"))
    one = clone(model).set_params(class_weight={0: 3, 1: 1, 2: 2}).fit(X, y)
    two = clone(model).fit(X, y, sample_weight=np.array([3, 1, 2])[y])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-9)
    assert np.abs(one.predict_proba(X) - clone(model).fit(X, y).predict_proba(X)).max() > 0.02


@pytest.mark.parametrize("max_parents", [-1, 6, 1.5, None])
def test_other_numbers_of_parents_are_refused(max_parents):
    with pytest.raises(ValueError, match="max_parents"):
        TermNetClassifier(max_parents=max_parents).fit([[0.0], [1.0]], [0, 1])
