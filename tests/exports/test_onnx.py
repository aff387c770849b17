"""ONNX models predict what Python predicts, in onnxruntime."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from oracles import exported
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.odd_tables import odd_table, rows_of

import tanlearn
from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    Calibration,
    NaiveBayesClassifier,
    TableEncoder,
    TermNetClassifier,
    to_onnx,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.models.calibration import EvidenceCalibration

X, y = odd_table(300, 0, missing=0.1)
X_NEW, _ = odd_table(60, 1, missing=0.4)
X_NEW.loc[:9, "select"] = "unseen"
CATEGORIES = TableEncoder(handle_missing="category")


@pytest.fixture
def onnx():
    """Skip without the package onnx, from the extra `onnx`."""
    return pytest.importorskip("onnx", reason="exports to ONNX need the extra `onnx`")


@pytest.fixture
def in_runtime(onnx):
    """Return a function that returns the outputs of the exported model for a frame."""
    runtime = pytest.importorskip("onnxruntime", reason="ONNX models run in the package onnxruntime")

    def run(model, X):
        session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
        rows = rows_of(X)
        inputs = {}
        for i, one in enumerate(session.get_inputs()):
            column = [row[i] for row in rows]
            if one.type == "tensor(string)":
                values = np.array([value or "" for value in column], object)
            else:
                values = np.array([np.nan if value is None else value for value in column], np.float64)
            inputs[one.name] = values[:, np.newaxis]
        return session.run(["output_label", "output_probability", "output_log_joint"], inputs)

    return run


def check(in_runtime, model, X):
    """Compare all results of all rows with Python; return the log joint."""
    labels, p, joint = in_runtime(model, X)
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(p, model.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(joint, model.predict_joint_log_proba(X), rtol=0, atol=1e-12)
    return joint


MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "categories of missing values": NaiveBayesClassifier(encoder=CATEGORIES),
    "tree": BayesNetClassifier(structure=ChowLiu()),
    "tree with categories of missing values": BayesNetClassifier(structure=ChowLiu(), encoder=CATEGORIES),
    "naive Bayes of few bits": NaiveBayesClassifier(),
    "tree of few bits": BayesNetClassifier(structure=ChowLiu()),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_an_enumeration_of_missing_values(name, in_runtime):
    model = clone(MODELS[name]).fit(X, y)
    if "few bits" in name:
        model = model.with_bits((4, 3))
    joint = check(in_runtime, model, X_NEW)
    expected = [exported.log_joint(model.describe(), row) for row in rows_of(X_NEW)]
    np.testing.assert_allclose(joint, expected, rtol=0, atol=1e-12)


def test_sums_of_terms_in_a_tree_agree_with_python(in_runtime):
    check(in_runtime, TermNetClassifier(max_parents=1, random_state=0).fit(X, y), X_NEW)


@pytest.mark.parametrize(
    "calibration",
    [Calibration(2.5), Calibration(1.5, 0.7, 3.0), EvidenceCalibration(2.0, prior_shift=(0.5, -0.5, 0.0))],
    ids=["temperature", "power", "evidence"],
)
def test_probabilities_are_calibrated(calibration, in_runtime):
    model = NaiveBayesClassifier().fit(X, y)
    model.calibration_ = calibration
    check(in_runtime, model, X_NEW)


def test_a_class_of_probability_zero(in_runtime):
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    check(in_runtime, model.with_class_prior([0.0, 0.5, 0.5]), X_NEW)


@pytest.mark.parametrize("labels", [[False, True], [1, 7], ["a", "b"]], ids=["bool", "int", "str"])
def test_labels_keep_their_type(labels, in_runtime):
    frame = pd.DataFrame({"x": [0.1, 0.2, 9.8, 9.9], "constant": [0.5, 0.5, 0.5, 0.5]})
    model = NaiveBayesClassifier(encoder=TableEncoder(discrete_features=False)).fit(frame, np.repeat(labels, 2))
    assert in_runtime(model, frame)[0].tolist() == [labels[0], labels[0], labels[1], labels[1]]


def test_cut_points_are_compared_exactly(in_runtime):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    model = NaiveBayesClassifier().fit(pd.DataFrame({"x": x}), x > 0.3)
    (cuts,) = model.encoder_.discretizer_.cut_points_
    values = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)])
    check(in_runtime, model, pd.DataFrame({"x": values}))


def test_models_that_cannot_be_exported(onnx):
    with pytest.raises(NotFittedError):
        to_onnx(NaiveBayesClassifier())
    with pytest.raises(TypeError, match="AODEClassifier combines several"):
        to_onnx(AODEClassifier().fit(X, y))
    with pytest.raises(ValueError, match="depends on several other columns, and only trees"):
        to_onnx(BayesNetClassifier(structure=KDependence(k=2)).fit(X, y))
    structure = tanlearn.Structure([[1], [0], [-1], [-1], [-1]], allow_cycles=True)
    with pytest.raises(ValueError, match="the structure has a cycle"):
        to_onnx(BayesNetClassifier(structure=structure).fit(X, y))
    with pytest.raises(ValueError, match="cannot raise an error for an unseen category"):
        to_onnx(NaiveBayesClassifier(encoder=TableEncoder(handle_unknown="error")).fit(X, y))
    zeros = NaiveBayesClassifier(parameters=tanlearn.MaximumLikelihood(alpha=0.0))
    with pytest.raises(ValueError, match="CPTs contain probabilities of 0"):
        to_onnx(zeros.fit(pd.DataFrame({"a": ["u", "v", "u", "v"]}), [0, 1, 0, 1]))
    for name, values, message in [
        ("output_label", ["u", "v"], "a column cannot be called 'output_label'"),
        ("a", ["", "v"], "column 'a' has the empty string as a category"),
    ]:
        with pytest.raises(ValueError, match=message):
            to_onnx(NaiveBayesClassifier().fit(pd.DataFrame({name: values}), [0, 1]))


@pytest.mark.parametrize(
    ("model", "content"),
    [
        (BoostedTermsClassifier(max_terms=5), "BoostedTermsClassifier consists of boosted terms"),
        (
            BayesEnsembleClassifier(
                forest=BayesForestClassifier(n_estimators=2), boosting=BoostedTermsClassifier(max_terms=5)
            ),
            "BayesEnsembleClassifier combines several models",
        ),
    ],
    ids=["boosted terms", "ensemble"],
)
def test_models_without_a_single_network_are_refused(model, content, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", ModuleType("onnx"))  # the model is refused before the package is used
    with pytest.raises(TypeError, match=rf"{content}\. .* exported with to_javascript and to_sql\."):
        to_onnx(clone(model).set_params(random_state=0).fit(X, y))


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r'to_onnx needs the package onnx. Install it with: pip install "tanlearn\[onnx\]"'
    ):
        to_onnx(NaiveBayesClassifier().fit(X, y))
