"""Common mistakes of new users: each error states the value, its position and the remedy."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import tanlearn
from tanlearn import BoostedTermsClassifier, NaiveBayesClassifier, TANClassifier

N = 12
X = pd.DataFrame({"age": np.arange(N) + 0.5, "town": ["Graz", "Linz", "Wels"] * 4})
Y = np.array(["no"] * 6 + ["yes"] * 6)
AGES = X["age"].astype(object)
DAYS = [datetime.date(2024, 1, day) for day in range(1, N + 1)]
MODEL = NaiveBayesClassifier().fit(X, Y)

#: X, y, and the error of ``fit``.
TRAINING = {
    "name of the class column": (
        X.assign(buys=Y),
        "buys",
        ValueError,
        "y should be a 1d array with one class per row, got 'buys'. If this is a column of a frame, pass "
        "X=frame.drop(columns='buys') and y=frame['buys'].",
    ),
    "regression": (
        X,
        np.append(Y == "yes", 0.25)[1:].astype(float),
        ValueError,
        "y holds 0.25 in row 11. Discretize y, for example with pandas.qcut(y, 2, labels=['low', 'high']), or use a "
        "library for regression.",
    ),
    "strings among numbers": (
        X.assign(age=AGES.where(X.index != 5, "unknown")),
        Y,
        TypeError,
        "X column 'age' holds float (0.5 in row 0) and str ('unknown' in row 5), which cannot be compared: the "
        "argument must be all strings or all numbers in every column. Cast the column to str if it is categorical. If "
        "it is continuous, replace the strings by numbers or missing values, for example with "
        "pandas.to_numeric(column, errors='coerce').",
    ),
    "Python dates": (
        X.assign(day=DAYS),
        Y,
        TypeError,
        "X column 'day' holds dates or durations (date, such as datetime.date(2024, 1, 1) in row 0), which are neither "
        "categories nor numbers. Replace the column by numbers such as",
    ),
    "periods": (
        X.assign(month=pd.period_range("2024-01", periods=N, freq="M")),
        Y,
        TypeError,
        "X column 'month' holds dates or durations (Period, such as Period('2024-01', 'M') in row 0)",
    ),
    "lists": (
        X.assign(tags=[["new", "red"]] * N),
        Y,
        TypeError,
        "Make one column of each element, or leave the column out.",
    ),
    "other objects": (
        X.assign(box=[object] * N),
        Y,
        TypeError,
        "Cast the column to str if it is categorical, or to float if it is continuous.",
    ),
}


@pytest.mark.parametrize(("frame", "y", "error", "message"), TRAINING.values(), ids=TRAINING)
def test_mistakes_in_training_data(frame, y, error, message):
    with pytest.raises(error, match=re.escape(message)):
        NaiveBayesClassifier().fit(frame, y)


def test_the_row_of_a_real_class_counts_all_rows():
    weights = np.append(0.0, np.ones(N - 1))
    with pytest.raises(ValueError, match=r"y holds 0\.25 in row 11\."):
        NaiveBayesClassifier().fit(X, np.append(Y == "yes", 0.25)[1:].astype(float), weights)


def test_strings_in_a_numeric_column_of_new_rows():
    ages = AGES.astype(str).where(X.index > 0)
    with pytest.raises(TypeError, match=r"X column 'age' holds str, such as '1\.5' in row 1, but held numbers"):
        MODEL.predict(X.assign(age=ages))


@pytest.mark.parametrize(("rows", "shape"), [(X[:1], "DataFrame of shape (1, 2)"), (np.array([[1, 2]]), "(1, 2)")])
def test_a_row_predictor_names_the_shape_of_several_rows(rows, shape):
    with pytest.raises(TypeError, match=re.escape(f"{shape}. Pass one row, such as X.iloc[0] or X[0]")):
        MODEL.row_predictor().predict(rows)


def test_a_loss_by_name():
    with pytest.raises(TypeError, match=r"loss must be an object, got the string 'margin'\. Pass a loss of tanlearn"):
        TANClassifier(loss="margin").fit(X, Y)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("NaiveBayes", "Did you mean 'NaiveBayesClassifier'?"),
        ("TanClassifier", "Did you mean 'TANClassifier'?"),
        ("ChowLiu", "Import it from tanlearn.baselines: from tanlearn.baselines import ChowLiu"),
    ],
)
def test_misspelled_names_of_the_package(name, hint):
    with pytest.raises(AttributeError, match=re.escape(f"module 'tanlearn' has no attribute {name!r}. {hint}")):
        getattr(tanlearn, name)


def test_other_names_have_no_hint():
    with pytest.raises(AttributeError, match=r"has no attribute 'zzz'$"):
        tanlearn.zzz  # noqa: B018 - the attribute is looked up
    assert not hasattr(tanlearn, "_zzz")


@pytest.mark.parametrize("model", [NaiveBayesClassifier(), BoostedTermsClassifier(max_terms=2)], ids=["nb", "boosted"])
@pytest.mark.parametrize(("n_classes", "n_warnings"), [(15, 1), (12, 0)])
def test_many_classes_are_warned_of_once_and_not_by_folds(model, n_classes, n_warnings):
    """Half of all rows may have a class of their own, but more than half of those of a fold."""
    y = np.arange(24) % n_classes
    X = np.column_stack([y, y % 7]) + np.random.default_rng(0).normal(size=(24, 2)) / 10
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(model).fit(X, y)
    assert sum("unique classes" in str(warning.message) for warning in caught) == n_warnings
