"""Boosted terms in C: compiled with all warnings for errors, run under sanitizers, and equal to Python on every row."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from support.compilers import HOST
from support.integer_models import random_boosted_terms

from tanlearn import BoostedTermsClassifier, TableEncoder
from tanlearn.models.rounded_terms import round_terms

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-pedantic"]
SANITIZERS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
compiled = pytest.mark.skipif(HOST is None, reason="there is no C compiler")


def run(folder, name):
    """Compile and run a test program, which must succeed."""
    subprocess.run([HOST, *STRICT, *SANITIZERS, f"{name}_test.c", "-o", name], cwd=folder, check=True)
    done = subprocess.run([f"./{name}"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def classes_of(folder, name):
    """Return the classes that a test program expects."""
    text = Path(folder, f"{name}_test.c").read_text()
    return [int(n) for n in re.findall(r"-?\d+", re.search(r"_test_class\[.*?= {(.*?)};", text, re.DOTALL)[1])]


@compiled
@pytest.mark.parametrize("bits", [2, 5, 8, 13, 16])
@pytest.mark.parametrize(("n_classes", "packed"), [(2, True), (2, False), (5, True), (5, False)])
def test_random_terms_agree_with_python_on_random_codes(tmp_path, bits, n_classes, packed):
    n_states = [4, 2, 300, 3, 16]
    model = random_boosted_terms(bits, n_states, n_classes)
    X = np.stack([np.random.default_rng(bits).integers(0, k, 80) for k in n_states], axis=1)
    model.export_c(tmp_path / "m.h", bits=bits, packed=packed, test_rows=X)
    assert run(tmp_path, "m") == "80 rows of m agree\n"
    found = model.classes_[classes_of(tmp_path, "m")]
    np.testing.assert_array_equal(found, model.with_bits(bits).predict(X))


@compiled
def test_raw_values_of_all_kinds_are_encoded_as_in_python(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=400), "town": rng.choice(["Graz", "Linz", "Wien"], 400)})
    X["rooms"] = rng.choice([1, 2, 30], 400)
    X["noise"] = rng.random(400)
    y = np.where((X["size"] > 0.5) ^ (X["town"] == "Graz") | (X["rooms"] == 30), "yes", "no")
    model = BoostedTermsClassifier(max_terms=20, random_state=0).fit(X, y)
    rows = X.copy()
    rows.loc[0, "town"] = "unseen"
    rows.loc[1, "town"] = None
    rows.loc[2, "size"] = np.nan
    model.export_c(tmp_path / "m.h", test_rows=rows)
    assert run(tmp_path, "m") == "400 rows of m agree\n"
    found = classes_of(tmp_path, "m")
    assert found[:3] == [-1] * 3
    np.testing.assert_array_equal(model.classes_[found[3:]], model.with_bits(8).predict(rows[3:]))


@compiled
def test_cut_points_without_a_split_are_left_out(tmp_path):
    X, y = load_digits(return_X_y=True)
    encoder = TableEncoder(discrete_features=False)
    model = BoostedTermsClassifier(max_terms=8, encoder=encoder, random_state=0).fit(X[:600], y[:600])
    model.export_c(tmp_path / "digits.h", number_type="int16", test_rows=X[600:])
    assert run(tmp_path, "digits") == f"{len(X) - 600} rows of digits agree\n"
    np.testing.assert_array_equal(classes_of(tmp_path, "digits"), model.with_bits(8).predict(X[600:]))
    header = (tmp_path / "digits.h").read_text()
    kept = int(re.search(r"digits_cuts\[(\d+)\]", header)[1])
    n_splits = sum(len(term.features) for term in model.model_.terms())
    assert kept <= n_splits < sum(map(len, model.encoder_.discretizer_.cut_points_))
    arrays = re.findall(r"static const u?int(\d+)_t \w+\[(\d+)\] DIGITS_ATTRIBUTE", header)
    n_bytes = sum(int(bits) // 8 * int(length) for bits, length in arrays)
    assert f"Constants take {n_bytes:,} bytes. Arrays of a prediction take {64 + 10 * 2} bytes" in header


@compiled
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_without_terms_returns_the_most_frequent_class(tmp_path, n_classes):
    model = random_boosted_terms(0, [2, 3, 2, 2, 2], n_classes, splits=())
    X = np.zeros((2, 5), int)
    model.export_c(tmp_path / "m.h", test_rows=X)
    run(tmp_path, "m")
    np.testing.assert_array_equal(model.classes_[classes_of(tmp_path, "m")], model.predict(X))


@compiled
def test_another_class_prior_changes_classes_as_in_python(tmp_path):
    model = random_boosted_terms(3, [4, 2, 9, 3, 16], 3).with_class_prior([0.01, 0.98, 0.01])
    X = np.stack([np.random.default_rng(0).integers(0, k, 60) for k in [4, 2, 9, 3, 16]], axis=1)
    model.export_c(tmp_path / "m.h", bits=6, test_rows=X)
    run(tmp_path, "m")
    np.testing.assert_array_equal(model.classes_[classes_of(tmp_path, "m")], model.with_bits(6).predict(X))


def test_rounded_classifiers_explain_and_predict_close_probabilities():
    model = random_boosted_terms(1, [4, 2, 9, 3, 16], 3)
    X = np.stack([np.random.default_rng(0).integers(0, k, 60) for k in [4, 2, 9, 3, 16]], axis=1)
    small = model.with_bits(8)
    bound = (model.n_terms_ + 1) * round_terms(model.model_, 8).step / 2
    odds, expected = (own.predict_log_proba(X) for own in (small, model))
    assert np.abs(odds - odds[:, :1] - expected + expected[:, :1]).max() <= bound
    np.testing.assert_allclose(small.explain(X).sum(axis=1), small.predict_log_proba(X), atol=1e-12)


def test_what_c_cannot_represent_is_refused(tmp_path):
    X = [[1.0], [2.0], [np.nan], [4.0]] * 10
    y = [0, 0, 1, 1] * 10
    with pytest.raises(NotFittedError):
        BoostedTermsClassifier().export_c(tmp_path / "m.h")
    model = BoostedTermsClassifier(max_terms=3, encoder=TableEncoder(handle_missing="category"), random_state=0)
    with pytest.raises(ValueError, match="category for missing values, but column 'x0' has one"):
        model.fit(X, y).export_c(tmp_path / "m.h")
    model = BoostedTermsClassifier(max_terms=3, random_state=0).fit([[1.0], [2.0]] * 10, [0, 1] * 10)
    with pytest.raises(ValueError, match="bits must be an integer from 2 to 16, got 32"):
        model.export_c(tmp_path / "m.h", bits=32)
    with pytest.raises(ValueError, match=r"class 0 \(numbered from 0 to 1\) has probability 0"):
        model.with_class_prior([0.0, 1.0]).export_c(tmp_path / "m.h")
    assert list(tmp_path.iterdir()) == []
