"""Bayes forests in C: compiled with all warnings for errors, run under sanitizers, and equal to Python on every row."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from support.compilers import CPP, HOST, TARGETS, compile_c
from support.forests import mixed_table

from tanlearn import BayesForestClassifier
from tanlearn.forest.rounded_forest import round_forest

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-pedantic"]
SANITIZERS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
compiled = pytest.mark.skipif(HOST is None, reason="there is no C compiler")
X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def run(folder, name):
    """Compile and run a test program, which must succeed; return the classes that it expects."""
    subprocess.run([HOST, "-std=c99", *STRICT, *SANITIZERS, f"{name}_test.c", "-o", name], cwd=folder, check=True)
    done = subprocess.run([f"./{name}"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = Path(folder, f"{name}_test.c").read_text()
    return [int(n) for n in re.findall(r"-?\d+", re.search(r"_test_class\[.*?= {(.*?)};", text, re.DOTALL)[1])]


@pytest.fixture(scope="module")
def iris():
    """Return a small forest."""
    return BayesForestClassifier(n_estimators=3, random_state=0).fit(X_IRIS[::2], Y_IRIS[::2])


@compiled
@pytest.mark.parametrize("bits", [2, 4, 8, 11, 16])
def test_every_row_agrees_with_python(iris, bits, tmp_path):
    iris.export_c(tmp_path / "m.h", bits=bits, number_type="float", test_rows=X_IRIS)
    X = X_IRIS.astype(np.float32).astype(np.float64)
    assert run(tmp_path, "m") == iris.with_bits(bits).predict(X).tolist()
    assert f"Bayes forest of 3 networks with {bits}-bit integers" in (tmp_path / "m.h").read_text()


@compiled
def test_categories_and_unseen_values_are_encoded_as_in_python(tmp_path):
    X, y = mixed_table()
    present = X["town"].notna().to_numpy()
    rows = X.copy()
    rows.loc[0, "town"] = "unseen"
    rows.loc[1, "age"] = np.nan
    model = BayesForestClassifier(n_estimators=4, random_state=0).fit(X[present], y[present])
    model.export_c(tmp_path / "m.h", test_rows=rows)
    found = np.array(run(tmp_path, "m"))
    is_complete = rows.notna().all(axis=1).to_numpy() & (np.arange(len(rows)) > 0)
    assert (found[~is_complete] == -1).all()
    np.testing.assert_array_equal(model.classes_[found[is_complete]], model.with_bits(8).predict(rows[is_complete]))


@compiled
def test_contexts_without_some_classes_agree(tmp_path):
    X, y = load_digits(return_X_y=True)
    X = X[:, 20:44:3]
    model = BayesForestClassifier(n_estimators=2, random_state=0).fit(X[:500], y[:500])
    assert any(np.diff(network.tables.trie.class_start).min() < 10 for network in model.model_.members)
    seen = np.all([np.isin(X[:, i], X[:500, i]) for i in range(X.shape[1])], axis=0)
    model.export_c(tmp_path / "m.h", number_type="int16", test_rows=X[seen][::3])
    assert run(tmp_path, "m") == model.with_bits(8).predict(X[seen][::3]).tolist()


@pytest.mark.parametrize("bits", [2, 6, 10, 16])
def test_gains_are_rounded_to_the_finest_step_that_fits(iris, bits):
    forest, (rounded, step) = iris.model_, round_forest(iris.model_, bits)
    numbers = np.concatenate(
        [own for network in rounded.members for own in (network.tables.gain, network.tables.unseen)]
    )
    np.testing.assert_array_equal(numbers / step, np.rint(numbers / step))
    most = 2 ** (bits - 1) - 1
    assert most / 2 - 1 <= np.abs(numbers / step).max() <= most
    assert np.log2(step) == round(np.log2(step))
    assert (rounded.weights == 1).all()
    roots = [network.tables.root[0] for network in forest.members]  # of the first family, on the first level
    for k, network in enumerate(forest.members):
        trie = network.tables.trie
        first = trie.entry_start[trie.value_start[roots[k]]]
        expected = np.rint(forest.weights[k, 0, 0] * network.tables.gain[first : first + 3].astype(float) / step)
        np.testing.assert_array_equal(rounded.members[k].tables.gain[first : first + 3] / step, expected)


@pytest.mark.parametrize("bits", [4, 8, 12])
def test_scores_change_by_half_a_step_per_context_and_prior_at_most(iris, bits):
    rounded, step = round_forest(iris.model_, bits)
    codes = iris.encoder_.encode(X_IRIS)
    p, expected = rounded.noiseless_proba(codes), iris.model_.noiseless_proba(codes)
    odds, wanted = (np.log(own) - np.log(own[:, :1]) for own in (p, expected))
    n_contexts = sum(network.tables.parents.size + len(network.tables.root) for network in rounded.members)
    error = np.abs(odds - wanted).max()
    assert 0 < error <= (n_contexts + 1) * step


@pytest.mark.skipif(CPP is None, reason="there is no C++ compiler")
def test_the_header_is_cpp_without_warnings(iris, tmp_path):
    iris.export_c(tmp_path / "m.h", number_type="int32")
    (tmp_path / "m.cpp").write_text(
        '#include "m.h"\nint16_t f(const m_value *row);\nint16_t f(const m_value *row) { return m_predict(row); }\n'
    )
    subprocess.run([*CPP, "-std=c++17", *STRICT, "-c", "m.cpp", "-o", "m.o"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("target", ["host", "gcc-m0plus", "avr-atmega1284p"])
def test_microcontrollers_compile_it_without_warnings(iris, target, tmp_path):
    if TARGETS[target] is None:
        pytest.skip("there is no such compiler")
    iris.export_c(tmp_path / "m.h", number_type="int16")
    head = "int16_t f(const m_value *row)"
    (tmp_path / "m.c").write_text(f'#include "m.h"\n{head};\n{head} {{ return m_predict(row); }}\n')
    compile_c(TARGETS[target], tmp_path, "-std=c99", *STRICT, "-Os", "-c", "m.c", "-o", "m.o")


def test_what_c_cannot_represent_is_refused(iris, tmp_path):
    with pytest.raises(NotFittedError):
        BayesForestClassifier().export_c(tmp_path / "m.h")
    average = BayesForestClassifier(n_estimators=2, weights=None, random_state=0).fit(X_IRIS, Y_IRIS)
    with pytest.raises(ValueError, match=r"the forest averages probabilities, .* weights='auto'"):
        average.export_c(tmp_path / "m.h")
    with pytest.raises(ValueError, match="Export the forest without class_prior"):
        iris.with_class_prior([0.5, 0.25, 0.25]).export_c(tmp_path / "m.h")
    with pytest.raises(ValueError, match="bits must be an integer from 2 to 16, got 1"):
        iris.with_bits(1)
    assert list(tmp_path.iterdir()) == []
