"""A table for learners of partitions, and the learners."""

import numpy as np
import pandas as pd

from tanlearn import HierarchicalSmoothing, MaximumLikelihood, Structure, dask
from tanlearn.baselines import ChowLiu, KDependence

MODELS = {
    "naive Bayes": dask.NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.1), class_prior=[0.3, 0.7]),
    "given": dask.BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1], [2, -1]])),
    "Chow-Liu": dask.BayesNetClassifier(structure=ChowLiu()),
    "KDB-2": dask.BayesNetClassifier(structure=KDependence(k=2)),
    "KDB-3 HS": dask.BayesNetClassifier(structure=KDependence(k=3), parameters=HierarchicalSmoothing(sparse=True)),
    "AODE": dask.AODEClassifier(),
    "forest": dask.BayesForestClassifier(n_estimators=3, weights=None, random_state=0),
}


def table(n=300, seed=0):
    """Return numbers and categories with gaps, with a class and a weight of every row."""
    rng = np.random.default_rng(seed)
    number, town = rng.normal(size=n).round(2), rng.choice(["Graz", "Linz", "Wien"], n)
    sold = np.where((number > 0.2) ^ (town == "Wien") ^ (rng.random(n) < 0.1), "yes", "no")
    frame = pd.DataFrame({"number": number, "town": town, "rooms": rng.integers(1, 6, n), "area": rng.random(n) * 9})
    frame["area"] += 3 * (sold == "yes")
    frame.loc[rng.random(n) < 0.1, ["town", "number"]] = None
    return frame.assign(sold=sold, times=rng.integers(0, 3, n))


FEATURES = ["number", "town", "rooms", "area"]


def assert_same_model(found, frame, weights="times"):
    """Hold a fitted classifier against that of all rows in this process, to the last bit."""
    weights = None if weights is None else frame[weights]
    local = found.to_local()
    whole = type(local)(**found.get_params(deep=False)).fit(frame[FEATURES], frame["sold"], weights)
    np.testing.assert_array_equal(local.classes_, whole.classes_)
    np.testing.assert_array_equal(local.feature_names_in_, whole.feature_names_in_)
    np.testing.assert_array_equal(local.predict_proba(frame[FEATURES]), whole.predict_proba(frame[FEATURES]))
    assert local.n_parameters_ == whole.n_parameters_


def losses(model):
    """Return the loss of each iteration of a model's learner of parameters."""
    return [iteration.loss for iteration in model.parameters_.history_]
