"""Estimators in notebooks, and explanations as frames."""

import builtins

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    GradientTraining,
    JointNLL,
    NaiveBayesClassifier,
    Structure,
    TANClassifier,
)

X = pd.DataFrame({"to<wn": ["Graz", "Linz", "Graz", "Wels"] * 5, "size": [1.0, 2.0, 3.0, 4.0] * 5}, index=range(10, 30))
y = np.array(["no & never", "yes"] * 10)


def test_a_fitted_network_shows_what_it_has_learnt():
    model = BayesNetClassifier(structure=Structure([-1, 0]))
    assert "Fitted model" not in model._repr_html_()
    html = model.fit(X, y)._repr_html_()
    learnt = html.partition("<details><summary>Fitted model")[2]
    assert "no &amp; never, yes" in learnt
    assert "<b>" not in learnt
    assert "to&lt;wn" in learnt
    assert learnt.count("<line") == 1
    assert f"<td>{model.tables_.n_parameters}</td>" in learnt
    assert model._repr_mimebundle_()["text/html"].endswith(html[-200:])


def test_training_and_loss_of_a_gradient_classifier_are_told():
    model = TANClassifier(
        loss=JointNLL(), n_epochs=2, training=GradientTraining(validation_fraction=0.3), random_state=0
    ).fit(X, y)
    html = model._repr_html_()
    assert f"2 epochs, loss {model.history_[-1].loss:.4g}, validation error" in html
    assert "JointNLL()" in html


def test_many_classes_and_forests_and_pipelines_fit():
    model = NaiveBayesClassifier().fit(np.arange(30).reshape(-1, 1) % 15, np.arange(30) % 15)
    assert "8, 9 and 5 more" in model._repr_html_()
    forest = BayesForestClassifier(n_estimators=2, random_state=0).fit(X, y)
    assert "Fitted model" in forest._repr_html_()
    assert "NaiveBayesClassifier" in make_pipeline(NaiveBayesClassifier())._repr_html_()


def test_display_as_text_shows_no_html():
    model = NaiveBayesClassifier().fit(X, y)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


@pytest.mark.parametrize("against", [None, "yes"])
@pytest.mark.parametrize("learner", [BayesNetClassifier(structure=Structure([-1, 0])), NaiveBayesClassifier()])
def test_frames_hold_the_shares_with_names(learner, against):
    model = learner.fit(X, y)
    frame, shares = model.explain_frame(X[3:6], against=against), model.explain(X[3:6], against=against)
    assert frame["row"].tolist() == [13] * 3 + [14] * 3 + [15] * 3
    assert frame["feature"].tolist() == ["to<wn", "size", "(classes)"] * 3
    np.testing.assert_array_equal(frame[["no & never", "yes"]].to_numpy().reshape(shares.shape), shares)
    parent = "to<wn" if model.structure_.n_edges else ""
    assert frame["parents"].tolist() == ["", parent, ""] * 3


def test_frames_of_forests_and_arrays():
    forest = BayesForestClassifier(n_estimators=2, random_state=0).fit(X.to_numpy(), y)
    frame = forest.explain_frame(X.to_numpy()[:2])
    assert list(frame) == ["row", "feature", "no & never", "yes"]
    assert frame["row"].tolist() == [0, 0, 0, 1, 1, 1]


def test_without_pandas_the_remedy_is_told(monkeypatch):
    model, real = NaiveBayesClassifier().fit(X, y), builtins.__import__

    def refuse(name, *rest):
        if name.startswith("pandas"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"tanlearn\[frames\]"):
        model.explain_frame([["Graz", 1.0]])
