"""The benchmark of embedded classifiers: what it compiles makes the errors of the classifiers that it was made of."""

import shutil

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from benchmarks.embedded import __main__ as command
from benchmarks.embedded import classifiers, ensembles
from benchmarks.embedded.programs import PRELUDE
from tanlearn import BayesNetClassifier, TableEncoder
from tanlearn.baselines import ChowLiu

needed = [tool for tool in ("cc", "size") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(needed), reason=f"there is no {' and no '.join(needed)}")


def test_programs_make_the_errors_of_python(tmp_path):
    X, y = load_digits(return_X_y=True)
    encoder = TableEncoder(discrete_features=False)  # in C, what no row has shown is an error
    floats = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X[:1200], y[:1200])
    integers = floats.with_bits((2, 1))
    codes = np.ascontiguousarray(floats.encoder_.encode(X[1200:]).T)
    found = {floats: classifiers.floats("floats", floats, codes)}
    found[integers] = classifiers.integers("small", integers, codes, tmp_path)
    sources = {model: PRELUDE + classifier.source for model, classifier in found.items()}
    for model, source in sources.items():
        error, nanoseconds = command.timing(source, codes, y[1200:], "-Os", tmp_path, repeats=1)
        assert error == pytest.approx(100 * np.mean(model.predict(X[1200:]) != y[1200:]))
        assert nanoseconds > 0
    code, tables = (int(n.replace(",", "")) for n in command.sizes(["cc"], sources[integers], tmp_path))
    assert tables >= integers.tables_.packed.nbytes
    assert 0 < code < 1000
    assert command.sizes(["cc"], "int predict(", tmp_path) == ["-", "-"]


def test_regression_by_hand_predicts_as_scikit_learn_from_a_float_a_weight(tmp_path):
    X, y = load_digits(return_X_y=True)
    X = X[:, 2:62:4]  # with all pixels the regression takes seconds
    encoder = TableEncoder(discrete_features=False).fit(X[:1200], y[:1200])
    codes, codes_test = (encoder.encode(part).T for part in (X[:1200], X[1200:]))
    n_states = codes.max(axis=0).astype(int) + 1
    ones = OneHotEncoder(categories=[np.arange(n) for n in n_states], sparse_output=False)
    regression = LogisticRegression(max_iter=1000).fit(ones.fit_transform(codes), y[:1200])
    weights = np.vstack([regression.intercept_, regression.coef_.T]).astype(np.float32)
    source = PRELUDE + classifiers.linear("regression", weights, np.ascontiguousarray(codes_test), n_states).source
    # What it is asked for is what scikit-learn predicts; single precision could turn a tie, of which there is none.
    different, _ = command.timing(
        source, codes_test, regression.predict(ones.transform(codes_test)), "-Os", tmp_path, 1
    )
    assert different == 0
    errors, _ = command.timing(source, codes_test, y[1200:], "-Os", tmp_path, 1)
    assert errors > 0
    code, tables = (int(n.replace(",", "")) for n in command.sizes(["cc"], source, tmp_path))
    n_bytes = 4 * 10 * (n_states.sum() + 1)
    assert n_bytes <= tables <= n_bytes + 2 * 64 + 64  # and offsets of two bytes, and what aligns them
    assert 0 < code < 1000


def test_boosted_terms_and_forests_agree_with_python_and_state_their_bytes(tmp_path):
    X, y = load_iris(return_X_y=True)
    found = list(ensembles.rows(X, y, tmp_path, None, n_estimators=1, terms=((3, 8), (3, 4))))
    assert [title.split(",")[0] for title, *_ in found] == ["naive Bayes", *["boosted terms"] * 2, "Bayes forest"]
    n_bytes = [line[3] for line in found]
    assert n_bytes[0] < n_bytes[3]
    assert n_bytes[2] < n_bytes[1] < n_bytes[3]
    assert all(0 <= number <= 100 for line in found for number in line[1:3])
    assert [line[4] for line in found] == [None] * 4
