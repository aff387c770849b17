"""ONNX models predict what Python predicts, in onnxruntime."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracles import exported
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.odd_tables import odd_table, rows_of
from support.random_terms import random_terms

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
        return session.run(None, inputs)

    return run


def check(in_runtime, model, X):
    """Compare all results of all rows with Python; return the log joint, None for combined models."""
    labels, p, *joint = in_runtime(model, X)
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(p, model.predict_proba(X), rtol=0, atol=1e-12)
    assert len(joint) == hasattr(model, "predict_joint_log_proba")
    if not joint:
        return None
    (joint,) = joint
    np.testing.assert_allclose(joint, model.predict_joint_log_proba(X), rtol=0, atol=1e-12)
    return joint


MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "categories of missing values": NaiveBayesClassifier(encoder=CATEGORIES),
    "tree": BayesNetClassifier(structure=ChowLiu()),
    "tree with categories of missing values": BayesNetClassifier(structure=ChowLiu(), encoder=CATEGORIES),
    "naive Bayes of few bits": NaiveBayesClassifier(),
    "tree of few bits": BayesNetClassifier(structure=ChowLiu()),
    "two parents": BayesNetClassifier(structure=KDependence(k=2)),
    "four parents": BayesNetClassifier(structure=KDependence(k=4)),
    "two parents of few bits": BayesNetClassifier(structure=KDependence(k=2)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_an_enumeration_of_missing_values(name, in_runtime):
    model = clone(MODELS[name]).fit(X, y)
    if "few bits" in name:
        model = model.with_bits((4, 3))
    joint = check(in_runtime, model, X_NEW)
    expected = [exported.log_joint(model.describe(), row) for row in rows_of(X_NEW)]
    np.testing.assert_allclose(joint, expected, rtol=0, atol=1e-12)


OTHERS = {
    "sums of terms in a tree": TermNetClassifier(max_parents=1, random_state=0),
    "sums of terms": TermNetClassifier(random_state=0),
    "back-off": BayesNetClassifier(structure=KDependence(k=2), parameters=tanlearn.HierarchicalSmoothing()),
    "forest": BayesForestClassifier(n_estimators=4, random_state=0),
    "forest of averages": BayesForestClassifier(n_estimators=4, weights=None, random_state=0),
    "forest with a prior": BayesForestClassifier(n_estimators=4, class_prior=[0.2, 0.3, 0.5], random_state=0),
    "boosted terms": BoostedTermsClassifier(random_state=0),
    "boosted terms and categories of missing values": BoostedTermsClassifier(encoder=CATEGORIES, random_state=0),
    "boosted terms with a prior": BoostedTermsClassifier(class_prior=[0.0, 0.3, 0.7], random_state=0),
    "ensemble": BayesEnsembleClassifier(random_state=0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_agree_with_python(name, in_runtime):
    model = clone(OTHERS[name]).fit(X, y)
    check(in_runtime, model, X_NEW)
    check(in_runtime, model, X_NEW.dropna())  # no row with a missing value


def test_models_of_weight_zero_are_left_out_of_an_ensemble(in_runtime):
    model = BayesEnsembleClassifier(forest=BayesForestClassifier(n_estimators=3), random_state=0).fit(X, y)
    sizes = []
    for weights in ([0.7, 0.4, 0.3], [1.0, 0.0, 0.0], [0.0, 1.2, 0.0], [0.0, 0.0, 0.8]):
        model.model_ = replace(model.model_, weights=np.array(weights))
        check(in_runtime, model, X_NEW)
        sizes.append(len(to_onnx(model).SerializeToString()))
    assert sizes[0] > max(sizes[1:])


def test_cells_without_rows_and_repeated_features_of_terms(in_runtime):
    model = BoostedTermsClassifier(max_terms=10, random_state=0).fit(X, y)
    for n_splits in ([0, 1, 2, 3, 3, 4, 5, 8], [2] * 130, [0], []):
        model.model_ = random_terms(model.encoder_.n_states_, 3, n_splits=n_splits)
        check(in_runtime, model, X_NEW)


def test_many_classes_in_sparse_contexts_of_a_forest(in_runtime):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 6, (400, 5)), columns=list("abcde"))
    classes = (frame["a"] + frame["b"] * (frame["c"] > 2)).to_numpy()
    model = BayesForestClassifier(n_estimators=3, random_state=0).fit(frame, classes)
    trie = model.model_.members[0].tables.trie
    assert np.diff(trie.class_start).min() < len(model.classes_)  # contexts without some classes
    assert np.diff(trie.value_start).min() < 6  # and without some values
    check(in_runtime, model, pd.DataFrame(rng.integers(0, 7, (50, 5)), columns=list("abcde")))


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
    with pytest.raises(TypeError, match="AODEClassifier cannot be exported to ONNX"):
        to_onnx(AODEClassifier().fit(X, y))
    structure = tanlearn.Structure([[1], [0], [-1], [-1], [-1]], allow_cycles=True)
    with pytest.raises(ValueError, match="networks with a cycle cannot be exported"):
        to_onnx(BayesNetClassifier(structure=structure).fit(X, y))
    with pytest.raises(ValueError, match="cannot raise an error for an unseen category"):
        to_onnx(NaiveBayesClassifier(encoder=TableEncoder(handle_unknown="error")).fit(X, y))
    zeros = NaiveBayesClassifier(parameters=tanlearn.MaximumLikelihood(alpha=0.0))
    with pytest.raises(ValueError, match="probabilities of 0 in CPTs cannot be exported"):
        to_onnx(zeros.fit(pd.DataFrame({"a": ["u", "v", "u", "v"]}), [0, 1, 0, 1]))
    for name, values, message in [
        ("output_label", ["u", "v"], "a column cannot be called 'output_label'"),
        ("a", ["", "v"], "the empty string .* is a category of column 'a'"),
    ]:
        with pytest.raises(ValueError, match=message):
            to_onnx(NaiveBayesClassifier().fit(pd.DataFrame({name: values}), [0, 1]))


@pytest.mark.parametrize(
    "model",
    [
        BayesForestClassifier(n_estimators=2),
        BoostedTermsClassifier(max_terms=5),
        BayesNetClassifier(structure=KDependence(k=2)),
    ],
    ids=["forest", "boosted terms", "two parents"],
)
def test_large_models_are_refused_with_their_size(model, onnx):
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=r"need at least [\d,]+ bytes, more than max_bytes=100\. Pass a larger"):
        to_onnx(model, max_bytes=100)
    with pytest.raises(ValueError, match=r"max_bytes must be from 1 to 2,000,000,000, .* got 3,000,000,000"):
        to_onnx(model, max_bytes=3_000_000_000)


def test_columns_that_depend_on_too_many_others_are_refused(onnx):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(list("abcdefghijklmnop"), (300, 7)), columns=list("uvwxyzt"))
    parents = [[-1] * 2, [0, -1], [0, 1], [0, 1], [2, 3], [3, 4], [4, 5]]
    model = BayesNetClassifier(structure=tanlearn.Structure(parents)).fit(frame, rng.integers(0, 3, 300))
    to_onnx(model)
    grid = [[-1] * 3, [0, -1, -1], [0, 1, -1], [0, 1, 2], [0, 1, 2], [2, 3, 4], [3, 4, 5]]
    several = BayesNetClassifier(structure=tanlearn.Structure(grid)).fit(frame, rng.integers(0, 3, 300))
    with pytest.raises(
        ValueError, match=r"would take 25,165,824, because .*: 'u', 'v', 'w', 'x', 'y'\. Fit with fewer"
    ):
        to_onnx(several)


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r'to_onnx needs the package onnx. Install it with: pip install "tanlearn\[onnx\]"'
    ):
        to_onnx(NaiveBayesClassifier().fit(X, y))
