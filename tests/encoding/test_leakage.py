"""Mistakes in training data that raise no error: the class among the columns, row numbers, rows in another order."""

import numpy as np
import pandas as pd
import pytest

from tanlearn import BayesForestClassifier, ColumnKindWarning, NaiveBayesClassifier

N = 60


def data(seed=0):
    """Return a frame of two columns, and classes that depend on the first."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"town": rng.choice(["Graz", "Linz", "Wels"], N), "size": rng.integers(0, 5, N)})
    return X, np.where((X["town"] == "Graz") ^ (rng.random(N) < 0.1), "yes", "no")


@pytest.mark.parametrize("kind", ["strings", "integers", "booleans", "declared"])
def test_a_column_that_equals_the_class_is_named(kind):
    X, y = data()
    labels = {
        "strings": y,
        "integers": (y == "yes").astype(int),
        "booleans": y == "yes",
        "declared": pd.Categorical(y, categories=["yes", "no"]),
    }[kind]
    with pytest.warns(UserWarning, match=r"y equals a column in every row: X column 'buys'\. Leave it out of X"):
        NaiveBayesClassifier().fit(X.assign(buys=labels), np.asarray(labels))


def test_columns_that_differ_from_the_class_in_a_row_are_not_named():
    X, y = data()
    labels = y.copy()
    labels[-1] = "no" if y[-1] == "yes" else "yes"
    NaiveBayesClassifier().fit(X.assign(buys=labels), y)
    NaiveBayesClassifier().fit(X.assign(buys=pd.Series(y).where(np.arange(N) < N - 1)), y)  # one missing value
    NaiveBayesClassifier().fit(X.assign(buys=pd.Series(y).map({"yes": "Y", "no": "N"})), y)  # another notation
    NaiveBayesClassifier().fit(X.assign(buys=y)[:40], y[:40])  # few rows


@pytest.mark.parametrize("first", [0, 1, 100])
def test_row_numbers_are_named(first):
    X, y = data()
    ids = first + np.random.default_rng(1).permutation(2 * N)[:N]  # as after a split
    with pytest.warns(ColumnKindWarning, match=r"looks like row numbers, .*: X column 'Unnamed: 0'\. Leave it out"):
        BayesForestClassifier(n_estimators=2, random_state=0).fit(X.assign(**{"Unnamed: 0": ids}), y)


def test_other_integers_are_no_row_numbers():
    X, y = data()
    rng = np.random.default_rng(2)
    for ids in (rng.integers(0, 2 * N, N), 1000 * np.arange(N), np.arange(N) / 2):
        BayesForestClassifier(n_estimators=2, random_state=0).fit(X.assign(ids=ids), y)


def test_rows_of_y_in_another_order_are_reported():
    X, y = data()
    X.index = [f"r{i}" for i in range(N)]
    labels = pd.Series(y, index=X.index)
    with pytest.warns(UserWarning, match=r"another order: row 0 is 'r0' in X and 'r59' in y\. .* pass y\.loc"):
        NaiveBayesClassifier().fit(X, labels[::-1])
    NaiveBayesClassifier().fit(X[::-1], labels[::-1])
    NaiveBayesClassifier().fit(X, labels.reset_index(drop=True))  # other labels: rows are matched by position


def test_numbers_outside_of_the_training_range_are_reported():
    X, y = data()
    X["length"] = np.where(y == "yes", 3.0, 1.0) + np.random.default_rng(3).random(N)
    model = NaiveBayesClassifier().fit(X, y)
    with pytest.warns(UserWarning, match=r"no number in 1 column.* 'length' \(holds .*, fit had 1\.0\d+ to 3\.\d+\)"):
        model.predict(X.assign(length=100 * X["length"]))  # centimeters in place of meters
    shifted = 100 * X["length"].to_numpy()
    shifted[-1] = 2
    model.predict(X.assign(length=shifted))  # one number is in the range
    model.predict(X[:9].assign(length=100.0))  # few rows
    assert (model.score_samples(X.assign(length=100.0)) < model.score_samples(X)).all()  # improbable, without a warning
    model.predict(X.assign(length=np.nan))
