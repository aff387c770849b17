"""Modules in JavaScript predict what Python predicts, in Node.js."""

import json
import shutil
import subprocess
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
    to_javascript,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.models.calibration import EvidenceCalibration

X, y = odd_table(300, 0, missing=0.1)
X_NEW, _ = odd_table(60, 1, missing=0.4)
X_NEW.loc[:9, "select"] = "unseen"

_PROGRAM = """
import fs from "fs";
import * as model from "./model.mjs";
const attempt = (f) => { try { return f(); } catch (error) { return `${error.name}: ${error.message}`; } };
const finite = (p) => (p === -Infinity ? "-inf" : p);
const results = JSON.parse(fs.readFileSync("rows.json")).map((row) => [
  attempt(() => model.predict(row)),
  attempt(() => model.predictProba(row)),
  attempt(() => model.predictLogProba(row).map(finite)),
  model.predictJointLogProba && attempt(() => model.predictJointLogProba(row).map(finite)),
]);
console.log(JSON.stringify({ results, classes: model.classes, columns: model.columns }));
"""


@pytest.fixture
def in_node(tmp_path):
    """Return a function that returns the results of the module of a model for rows."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("modules in JavaScript run in Node.js, and there is no program node")

    def run(model, rows):
        (tmp_path / "model.mjs").write_text(to_javascript(model), encoding="utf-8")
        (tmp_path / "program.mjs").write_text(_PROGRAM, encoding="utf-8")
        (tmp_path / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
        done = subprocess.run([node, "program.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def named_rows(X):
    """Return the rows of a frame as dictionaries."""
    return [dict(zip(X.columns, row, strict=True)) for row in rows_of(X)]


def check(in_node, model, X):
    """Compare all results of all rows with Python; return the log joint, None for combined models."""
    found = in_node(model, named_rows(X))
    assert found["classes"] == model.classes_.tolist()
    assert found["columns"] == X.columns.tolist()
    predictions, p, log_p, joint = zip(*found["results"], strict=True)
    expected = model.predict_log_proba(X)
    assert list(predictions) == model.predict(X).tolist()
    np.testing.assert_allclose(p, np.exp(expected), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.array(log_p, float), expected, rtol=0, atol=1e-12)
    if joint[0] is None:
        return None
    joint = np.array(joint, float)
    np.testing.assert_allclose(joint, model.predict_joint_log_proba(X), rtol=0, atol=1e-12)
    return joint


SINGLE = {
    "naive Bayes": NaiveBayesClassifier(),
    "categories of missing values": NaiveBayesClassifier(encoder=TableEncoder(handle_missing="category")),
    "tree": BayesNetClassifier(structure=ChowLiu()),
    "two parents": BayesNetClassifier(structure=KDependence(k=2)),
    "naive Bayes of few bits": NaiveBayesClassifier(),
    "two parents of few bits": BayesNetClassifier(structure=KDependence(k=2)),
}


@pytest.mark.parametrize("name", SINGLE)
def test_modules_agree_with_an_enumeration_of_missing_values(name, in_node):
    model = clone(SINGLE[name]).fit(X, y)
    if "few bits" in name:
        model = model.with_bits((4, 3))
    joint = check(in_node, model, X_NEW)
    expected = [exported.log_joint(model.describe(), row) for row in rows_of(X_NEW)]
    np.testing.assert_allclose(joint, expected, rtol=0, atol=1e-12)


COMBINED = {
    "sums of terms": TermNetClassifier(random_state=0),
    "forest": BayesForestClassifier(n_estimators=4, random_state=0),
    "forest of averages": BayesForestClassifier(n_estimators=4, weights=None, random_state=0),
    "forest with a prior": BayesForestClassifier(n_estimators=4, class_prior=[0.2, 0.3, 0.5], random_state=0),
    "boosted terms": BoostedTermsClassifier(random_state=0),
    "boosted terms and categories of missing values": BoostedTermsClassifier(
        encoder=TableEncoder(handle_missing="category"), random_state=0
    ),
    "boosted terms with a prior": BoostedTermsClassifier(class_prior=[0.0, 0.3, 0.7], random_state=0),
    "ensemble": BayesEnsembleClassifier(random_state=0),
}


@pytest.mark.parametrize("name", COMBINED)
def test_modules_agree_with_python(name, in_node):
    check(in_node, clone(COMBINED[name]).fit(X, y), X_NEW)


def test_models_of_weight_zero_are_left_out_of_an_ensemble(in_node):
    model = BayesEnsembleClassifier(forest=BayesForestClassifier(n_estimators=3), random_state=0).fit(X, y)
    names = ("forest: ", "network: ", "boosting: ")
    for weights in ([0.7, 0.4, 0.3], [1.0, 0.0, 0.0], [0.0, 1.2, 0.0], [0.0, 0.0, 0.8]):
        model.model_ = replace(model.model_, weights=np.array(weights))
        check(in_node, model, X_NEW)
        module = to_javascript(model)
        assert [f"{name}{{" in module for name in names] == [weight > 0 for weight in weights]


def test_cells_without_rows_and_repeated_features_of_terms(in_node):
    model = BoostedTermsClassifier(max_terms=10, random_state=0).fit(X, y)
    model.model_ = random_terms(model.encoder_.n_states_, 3, n_splits=[0, 1, 2, 3, 3, 4, 5, 8])
    check(in_node, model, X_NEW)
    model.model_ = random_terms(model.encoder_.n_states_, 3, n_splits=[])
    check(in_node, model, X_NEW[:5])


@pytest.mark.parametrize(
    "calibration",
    [Calibration(2.5), Calibration(1.5, 0.7, 3.0), EvidenceCalibration(2.0, prior_shift=(0.5, -0.5, 0.0))],
    ids=["temperature", "power", "evidence"],
)
def test_probabilities_are_calibrated(calibration, in_node):
    model = NaiveBayesClassifier().fit(X, y)
    model.calibration_ = calibration
    check(in_node, model, X_NEW)


def test_zeros_and_impossible_rows(in_node):
    rows = pd.DataFrame({"a": ["u", "v", "u", "v", "u", "w"], "b": ["p", "q", "p", "q", "p", "p"]})
    learner = tanlearn.MaximumLikelihood(alpha=0.0)
    model = BayesNetClassifier(structure=tanlearn.Structure([[-1], [0]]), parameters=learner).fit(
        rows, [0, 0, 1, 1, 1, 1]
    )
    new = pd.DataFrame({"a": ["u", "v", "w", None, None, "w"], "b": ["p", "p", "q", "p", "q", None]})
    with pytest.warns(tanlearn.ImpossibleRowsWarning):
        joint = check(in_node, model, new)
    assert np.isneginf(joint).all(axis=1).tolist() == [False, True, True, False, False, False]


def test_invalid_rows_are_errors(in_node):
    encoder = TableEncoder(handle_unknown="error")
    model = NaiveBayesClassifier(encoder=encoder).fit(
        pd.DataFrame({"x": [0.1, 0.2, 9.8, 9.9], "s": ["u", "v", "u", "v"], "n": [1, 2, 1, 2]}), [0, 0, 1, 1]
    )
    rows = [
        {"x": 9.0, "s": "u"},
        {"x": "9", "s": "u", "n": 1},
        {"x": [], "s": "u", "n": 1},
        {"x": 9.0, "s": "w", "n": 1},
        {"x": 9.0, "s": 1, "n": 1},
        {"x": 9.0, "s": "u", "n": "1"},
        "x",
        {"x": 9.0, "s": "u", "n": True},
    ]
    found = [one[0] for one in in_node(model, rows)["results"]]
    assert found == [
        'TypeError: the row has no column "n". Pass null for a missing value.',
        'TypeError: column "x" must be a number, got "9".',
        'TypeError: column "x" has a value that is neither a string nor a number.',
        'RangeError: column "s" has an unseen category: "w".',
        'TypeError: column "s" must be a string, got 1.',
        'TypeError: column "n" must be a number, got "1".',
        'TypeError: the row has no column "x". Pass null for a missing value.',
        1,
    ]


def test_a_cycle_refuses_missing_values(in_node):
    structure = tanlearn.Structure([[1], [0], [-1], [-1], [-1]], allow_cycles=True)
    model = BayesNetClassifier(structure=structure).fit(X, y)
    check(in_node, model, X.dropna()[:40])
    found = in_node(model, [{**named_rows(X)[0], "select": None}])["results"][0][0]
    assert found.startswith("RangeError: a value is missing or unseen, and the network has a cycle")


def test_rows_without_names_are_arrays(in_node):
    model = NaiveBayesClassifier().fit([["sun", 29.0], ["rain", 11.0]] * 3, [True, False] * 3)
    found = in_node(model, [["sun", 28.0], [None, 3.5]])
    assert found["columns"] is None
    assert [one[0] for one in found["results"]] == [True, False]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            {"x": [2**60, 3, 2**60, 3]},
            r"integers above 2\*\*53 exactly, but column 'x' has the category 1152921504606846976",
        ),
        ({"__proto__": ["a", "b", "a", "b"]}, "a column cannot be called '__proto__'"),
        ({"x": ["a\0", "b", "a\0", "b"]}, r"column 'x' has the category 'a\\x00'"),
    ],
)
def test_names_and_categories_that_cannot_be_exported(column, message):
    model = NaiveBayesClassifier().fit(pd.DataFrame(column), [0, 0, 1, 1])
    with pytest.raises(ValueError, match=message):
        to_javascript(model)


def test_other_classifiers_and_large_modules_are_refused():
    with pytest.raises(NotFittedError):
        to_javascript(NaiveBayesClassifier())
    with pytest.raises(TypeError, match="AODEClassifier cannot be exported to JavaScript"):
        to_javascript(AODEClassifier().fit(X, y))
    with pytest.raises(ValueError, match=r"the module needs [\d,]+ bytes, more than max_bytes=1,000"):
        to_javascript(NaiveBayesClassifier().fit(X, y), max_bytes=1000)
