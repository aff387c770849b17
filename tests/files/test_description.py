"""The JSON description and the graph of a fitted network."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from support.saved_models import FRAME, fitted

from tanlearn import FixedPoint, GradientTraining, NaiveBayesClassifier, TANClassifier, round_tables
from tanlearn.models.bayes_net import BayesNet

NETWORKS = ["nb", "chow-liu", "two-parents", "tan", "cyclic"]


def joint_of_description(description, row):
    """Return the probabilities of the classes and a row, from nothing but the description."""
    numbers = {}
    for feature, value in zip(description["features"], row, strict=True):
        if feature["kind"] == "categorical":
            numbers[feature["name"]] = feature["categories"].index(value)
        else:
            numbers[feature["name"]] = sum(cut < value for cut in feature["cut_points"])
    joint = []
    for c, probability in enumerate(description["class_probabilities"]):
        for feature in description["features"]:
            table = feature["probabilities"]
            for name in (feature["name"], *feature["parents"]):
                table = table[numbers[name]]
            probability *= table[c]
        joint.append(probability)
    return joint


@pytest.mark.parametrize("name", NETWORKS)
def test_description_tells_all_that_predicts(name):
    model = fitted(name)
    description = json.loads(json.dumps(model.describe(), allow_nan=False))
    assert (description["format"], description["version"]) == ("tanlearn description", 1)
    assert description["learner"]["class"] == type(model).__name__
    assert description["classes"] == ["high", "low", "middle"]
    assert description["n_parameters"] == model.n_parameters_
    assert (description["normalized"], description["bits"]) == (True, None)
    assert [feature["name"] for feature in description["features"]] == model.feature_names_in_.tolist()
    rows = FRAME[model.feature_names_in_].drop(columns="key", errors="ignore").head(10)
    rows["key"] = [{"kind": "bytes", "hex": key.hex()} for key in FRAME["key"].head(10)]
    expected = np.exp(model.predict_joint_log_proba(FRAME[model.feature_names_in_].head(10)))
    found = [joint_of_description(description, row) for row in rows[model.feature_names_in_].itertuples(index=False)]
    assert np.array(found) == pytest.approx(expected, rel=1e-12)


def test_description_names_what_is_no_default():
    model = TANClassifier(n_epochs=1, training=GradientTraining(batch_size=2), random_state=0).fit(
        [[0, 0.5], [1, None], [0, None]], [1, 0, 0]
    )
    description = model.describe()
    assert description["learner"]["parameters"] == {
        "n_epochs": "1",
        "training": "GradientTraining(batch_size=2)",
        "random_state": "0",
    }
    assert [feature["name"] for feature in description["features"]] == ["x0", "x1"]
    with pytest.raises(NotFittedError):
        TANClassifier().describe()


def test_description_says_of_rounded_tables_that_they_are_not_normalized():
    model = NaiveBayesClassifier().fit([["a"], ["b"], ["b"]], [0, 1, 1])
    model.model_ = BayesNet(model.structure_, round_tables(model.tables_, FixedPoint(2, -1)))
    description = json.loads(json.dumps(model.describe()))
    assert (description["normalized"], description["bits"]) == (False, {"integer": 2, "fraction": -1})
    assert description["class_probabilities"] == np.exp(model.tables_.log_prior).tolist() == [1.0, 1.0]


def test_graph_has_the_names_of_the_columns():
    graph = fitted("chow-liu").to_networkx(class_name="income class")
    assert list(graph.nodes) == ["income class", *fitted("chow-liu").feature_names_in_]
    assert graph.number_of_edges() == 6 + fitted("chow-liu").structure_.n_edges
    with pytest.raises(ValueError, match=r"class_name must be .* differs from all feature names, got 'town'"):
        fitted("chow-liu").to_networkx(class_name="town")
    assert list(NaiveBayesClassifier().fit([[1], [2]], [0, 1]).to_networkx().edges) == [("class", "x0")]
    assert not hasattr(fitted("aode"), "to_networkx")
