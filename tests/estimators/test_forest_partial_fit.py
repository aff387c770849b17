"""Forests chunk by chunk: contexts of the first, counts of all."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from support.forests import mixed_table

from tanlearn import BayesForestClassifier, load


def small(**parameters):
    """Return a forest that is soon grown."""
    return BayesForestClassifier(**{"n_estimators": 4, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def table():
    """Return numbers, categories and gaps, and a class of them."""
    return mixed_table()


def streamed(X, y, *ends, **parameters):
    """Return a forest of chunks that end there."""
    model = small(weights=None, **parameters)
    for first, last in zip((0, *ends), (*ends, len(y)), strict=True):
        model.partial_fit(X[first:last], y[first:last], ["no", "yes"])
    return model


def test_one_chunk_makes_the_forest_of_fit(table):
    X, y = table
    one, whole = streamed(X, y), small(weights=None).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), whole.predict_proba(X))
    np.testing.assert_array_equal(one.feature_importances_, whole.feature_importances_)
    assert one.n_parameters_ == whole.n_parameters_
    assert one.structures_ == whole.structures_


def test_what_comes_after_the_first_chunk_adds_up_in_any_partition(table):
    X, y = table
    one, many = streamed(X, y, 120), streamed(X, y, 120, 121, 170, 171)
    assert one.counts_ == many.counts_
    np.testing.assert_array_equal(one.predict_proba(X), many.predict_proba(X))
    twin = streamed(X[:120], y[:120])
    other = clone(twin).set_params(n_jobs=2).partial_fit(X[:120], y[:120], ["no", "yes"])
    other.counts_ = other.counts_.empty()
    other.partial_fit(X[120:], y[120:])  # counted elsewhere
    twin.counts_.merge(other.counts_)
    assert twin.counts_ == one.counts_


def test_whole_weights_are_as_good_as_repeated_rows(table):
    X, y = table
    times = np.arange(len(y)) % 3
    first = streamed(X[:120], y[:120])
    rows = np.repeat(np.arange(120, len(y)), times[120:])
    repeated = clone(first).partial_fit(X[:120], y[:120], ["no", "yes"]).partial_fit(X.iloc[rows], y[rows])
    first.partial_fit(X[120:], y[120:], sample_weight=times[120:])
    assert first.counts_ == repeated.counts_


def test_more_rows_make_better_forests():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (4000, 4)).astype(float)
    y = (X[:, 0] + X[:, 1] > 5).astype(int) ^ (rng.random(4000) < 0.1)
    model = small(weights=None).partial_fit(X[:400], y[:400], [0, 1])
    losses = [-model.predict_log_proba(X[3000:])[np.arange(1000), y[3000:]].mean()]
    model.partial_fit(X[400:3000], y[400:3000])
    losses.append(-model.predict_log_proba(X[3000:])[np.arange(1000), y[3000:]].mean())
    least = -0.9 * np.log(0.9) - 0.1 * np.log(0.1)  # of who knows the rule
    assert losses[1] - least < 0.9 * (losses[0] - least)


def test_weights_need_all_rows(table):
    X, y = table
    assert not hasattr(small(), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        small(weights="shared").partial_fit(X, y, ["no", "yes"])
    told = str(caught.value.__cause__)
    assert re.search(r"weights='shared' need all rows at once.* Use weights=None\.", told)


def test_a_stream_of_another_kind_is_not_gone_on_with(table):
    X, y = table
    model = streamed(X[:120], y[:120])
    counts = model.counts_
    with pytest.raises(ValueError, match=r"n_estimators is 5, but earlier batches were counted with another number"):
        model.set_params(n_estimators=5).partial_fit(X[120:], y[120:])
    with pytest.raises(ValueError, match=r"smoothing=1e-200 is too small: with up to"):
        model.set_params(n_estimators=4, smoothing=1e-200).partial_fit(X[120:], y[120:])
    assert model.counts_ is counts
    model.set_params(smoothing=30.0).partial_fit(X[120:], y[120:])
    assert np.ptp(model.predict_proba(X)) < np.ptp(streamed(X, y, 120).predict_proba(X))


def test_a_chunk_that_breaks_a_rule_changes_nothing(table):
    X, y = table
    model = streamed(X[:120], y[:120])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="maybe"):
        model.partial_fit(X[120:], np.where(y[120:] == "no", "maybe", "yes"))
    assert model.counts_ == streamed(X[:120], y[:120]).counts_
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_categories_and_classes_that_come_later(table):
    X, y = table
    X = X.assign(town=pd.Categorical(X["town"], ["Graz", "Linz", "Wien", "Bregenz"]))
    model = small(weights=None).partial_fit(X[:120], y[:120], ["maybe", "no", "yes"])
    assert model.predict_proba(X)[:, 0].mean() < 0.05
    new = X[120:].assign(town=pd.Categorical(["Bregenz"] * 120, X["town"].cat.categories), age=0.5)
    model.partial_fit(new, ["maybe"] * 120)
    assert (model.predict(new) == "maybe").mean() > 0.9


def test_priors_files_and_explanations(table, tmp_path):
    X, y = table
    model = streamed(X, y, 120, class_prior=[0.9, 0.1])
    assert model.predict_proba(X).mean(axis=0)[0] > streamed(X, y, 120).predict_proba(X).mean(axis=0)[0]
    model.save(tmp_path / "forest.tan")
    loaded = load(tmp_path / "forest.tan")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    plain = streamed(X, y, 120)
    np.testing.assert_allclose(plain.explain(X[:5]).sum(axis=1), plain.predict_log_proba(X[:5]))
    with pytest.raises(ValueError, match="read from a file without counts"):
        loaded.partial_fit(X, y, ["no", "yes"])
