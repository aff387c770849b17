"""Learners of users that are plain classes, fitted to batches and counts: the models of all rows."""

import numpy as np
import pandas as pd
import pytest

from tanlearn import BayesNetClassifier, MaximumLikelihood, Structure
from tanlearn.baselines import ChowLiu
from tanlearn.structures.table_layout import TableLayout


class PlainFrequencies:
    """Smoothed frequencies, without a base class."""

    needs = "families"
    counts_classes = True

    def fit(self, structure, data, rng):
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        return self.from_counts(layout, layout.count(data.codes, data.y, data.weights))

    def from_counts(self, layout, counts):
        return MaximumLikelihood(alpha=0.5).from_counts(layout, counts)


class PlainGradient(PlainFrequencies):
    """The same frequencies as a learner of gradients, without `calibration_`."""

    needs = "gradients"

    def from_objective(self, structure, layout, cells, rows):
        return self.from_counts(layout, cells)


class PlainTree:
    """The Chow-Liu tree, without a base class."""

    needs = "pairs"

    def learn(self, data, rng):
        return ChowLiu().learn(data, rng)

    def from_counts(self, pairs, rng):
        return ChowLiu().from_counts(pairs, rng)


def table():
    """Return two columns that depend on the class, and the classes."""
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 60)
    town = np.where((y == "yes") ^ (rng.random(60) < 0.3), "Graz", "Linz")
    return pd.DataFrame({"town": town, "rooms": rng.choice(["one", "two", "three"], 60)}), y


STRUCTURES = pytest.mark.parametrize("structure", [None, Structure([-1, 0]), PlainTree()], ids=["none", "given", "own"])


@STRUCTURES
def test_plain_learners_fit_batches(structure):
    X, y = table()
    model = BayesNetClassifier(structure=structure, parameters=PlainFrequencies())
    whole = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.fit_batches([(X[:20], y[:20]), (X[20:], y[20:])]).predict_proba(X), whole)


@STRUCTURES
def test_plain_learners_fit_counts(structure):
    X, y = table()
    model = BayesNetClassifier(structure=structure, parameters=PlainFrequencies())
    whole = model.fit(X, y).predict_proba(X)
    model = BayesNetClassifier(structure=structure, parameters=PlainFrequencies())
    model.partial_fit(X[:20], y[:20], classes=["no", "yes"]).partial_fit(X[20:], y[20:])
    np.testing.assert_array_equal(model.predict_proba(X), whole)
    other = BayesNetClassifier(structure=structure, parameters=PlainFrequencies())
    other.from_counts(model.counts_, encoder=model.encoder_, classes=model.classes_)
    np.testing.assert_array_equal(other.predict_proba(X), whole)


def test_plain_learners_of_gradients_need_no_calibration():
    dd = pytest.importorskip("dask.dataframe")
    from tanlearn.dask import BayesNetClassifier as OnPartitions

    X, y = table()
    rows = dd.from_pandas(X.assign(sold=y), npartitions=2)
    found = OnPartitions(parameters=PlainGradient()).fit(rows, "sold").to_local()
    whole = BayesNetClassifier(parameters=PlainGradient()).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), whole.predict_proba(X))
