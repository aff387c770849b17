"""Which labels mark rows without a class, and the warning of learners that treat -1 as a class."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tanlearn import (
    BayesForestClassifier,
    BoostedTermsClassifier,
    ConformalClassifier,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    TableEncoder,
    TANClassifier,
    UnlabeledRowsWarning,
)
from tanlearn.sources.validation import read_partial_labels

#: Labels, and the rows without a class.
MARKED = {
    "-1 beside two classes": ([0, 1, -1, 1], [2]),
    "array": (np.array([0, -1, 1, -1]), [1, 3]),
    "small integers": (np.array([2, -1, 5], np.int8), [1]),
    "floats": (np.array([0.0, -1.0, 1.0]), [1]),
    "floats with NaN": (np.array([0.0, np.nan, 1.0, -1.0]), [1, 3]),
    "list with None": ([0, None, 1], [1]),
    "None beside strings": (["a", None, "b"], [1]),
    "the integer -1 beside strings": (np.array(["a", -1, "b", np.int64(-1)], object), [1, 3]),
    "the string -1": (["a", "-1", "b"], []),
    "strings of integers": (["-1", "0", "1"], []),
    "-1 beside one class": ([-1, 1, 1, -1], []),
    "-1 beside one class and None": ([-1, 1, None], [2]),
    "other negative classes": ([-2, -1, 0, 1], []),
    "fractions": ([-1.0, 0.5, 1.0], []),
    "booleans": ([True, False], []),
    "Int64": (pd.Series([0, None, 1, -1], dtype="Int64"), [1, 3]),
    "categories": (pd.Series(["a", None, "b"], dtype="category"), [1]),
    "numeric categories": (pd.Series([0, 1, -1], dtype="category"), [2]),
    "pandas strings": (pd.Series(["a", None, "b"], dtype="string"), [1]),
    "polars": (pl.Series([0, None, 1, -1]), [1, 3]),
    "polars strings": (pl.Series(["a", None, "b"]), [1]),
}


@pytest.mark.parametrize("case", MARKED)
def test_rows_without_a_class(case):
    y, expected = MARKED[case]
    labels, is_unlabeled = read_partial_labels(y, len(y))
    assert np.flatnonzero(is_unlabeled).tolist() == expected
    rest = [i for i in range(len(y)) if i not in expected]
    assert labels[rest].tolist() == [list(y)[i] for i in rest]


def test_labels_of_weight_zero_do_not_count():
    """Without its ignored rows, the second target has -1 and a single class, so -1 is a class."""
    ignored = np.array([False, False, False, True])
    assert read_partial_labels([0, 1, -1, -1], 4, ignored)[1].tolist() == [False, False, True, False]
    assert read_partial_labels([1, -1, 1, 0], 4, ignored)[1].tolist() == [False] * 4


def test_labels_that_are_no_classes_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        read_partial_labels([0, 1, np.inf], 3)
    with pytest.raises(ValueError, match="X has 3, y has 2"):
        read_partial_labels([0, 1], 3)


X = np.array([["a"], ["b"], ["a"], ["b"], ["a"], ["b"]] * 4)
Y = np.array([0, 1, 0, 1, -1, -1] * 4)
LEARNERS = {
    "NaiveBayesClassifier": NaiveBayesClassifier().fit,
    "fit_batches": lambda X, y: NaiveBayesClassifier().fit_batches([(X, y)]),
    "BayesForestClassifier": BayesForestClassifier(n_estimators=2, random_state=0).fit,
    "BoostedTermsClassifier": BoostedTermsClassifier(max_terms=1, random_state=0).fit,
    "TANClassifier": TANClassifier(n_epochs=1, random_state=0).fit,
    "TableEncoder": TableEncoder().fit,
    "MDLPDiscretizer": lambda X, y: MDLPDiscretizer().fit((X == "a").astype(float), y),
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_that_cannot_use_unlabeled_rows_warn(learner):
    message = (
        r"y holds -1 in 8 row\(s\), and the classes 0, 1 in other rows\. -1 counts as a class here, .*Drop these "
        r"rows, or fit SemiSupervisedClassifier\(\.\.\.\).*cast y to str"
    )
    with pytest.warns(UnlabeledRowsWarning, match=message) as caught:
        LEARNERS[learner](X, Y)
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("y", [np.where(Y == 0, -1, 1), Y.astype(str), Y - 1, 2 * Y, np.where(Y < 0, 2, Y)])
def test_other_labels_raise_no_warning(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnlabeledRowsWarning)
        model = NaiveBayesClassifier().fit(X, y)
    assert model.classes_.tolist() == sorted(set(y.tolist()))


def test_classes_named_by_the_user_raise_no_warning():
    model = NaiveBayesClassifier().partial_fit(X, Y, classes=[-1, 0, 1])
    assert model.classes_.tolist() == [-1, 0, 1]


def test_conformal_classifiers_of_other_libraries_warn():
    from sklearn.dummy import DummyClassifier

    with pytest.warns(UnlabeledRowsWarning, match=r"8 row\(s\)"):
        ConformalClassifier(DummyClassifier(), cv=2).fit(X, Y)


def test_the_warning_names_few_classes_and_can_be_pickled():
    warning = UnlabeledRowsWarning(3, list(range(9)))
    assert "and the classes 0, 1, 2, 3, 4 and 4 more in other rows." in str(warning)
    assert str(pickle.loads(pickle.dumps(warning))) == str(warning)
