"""Measures of one cell."""

import numpy as np
import pytest
from oracles import measures as oracle
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning

from tanlearn import BayesNetClassifier
from tanlearn.baselines import GreedySearch
from tanlearn.comparison import cells as cells_module
from tanlearn.comparison import compare
from tanlearn.sources.datasets import Dataset

ROWS = np.arange(12)
CLASSES = np.array(["a", "b", "c"])
#: Class 'c' is not among the training rows, and classes 'a' and 'b' are tied in some rows.
Y = CLASSES[[0, 1, 0, 1, 0, 1, 0, 1, 1, 2, 0, 0]]
P = np.array([[0.5, 0.5], [0.2, 0.8], [0.0, 1.0], [0.7, 0.3], [0.5, 0.5], [0.9, 0.1]])


class Fixed(ClassifierMixin, BaseEstimator):
    """Classifier of fixed probabilities for the test rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        return P[X[:, 0].astype(int) - 6]


class Unknown(Fixed):
    """Classifier that predicts NaN for one test row."""

    def predict_proba(self, X):
        return np.where(X[:, :1] == 8, np.nan, super().predict_proba(X))


@pytest.fixture
def table():
    """Return a data set with its own split."""
    return Dataset("fixed", ROWS[:, np.newaxis], Y, ["row"], folds=[(ROWS[:6], ROWS[6:])])


def test_measures_agree_with_oracles(table):
    (cell,) = compare(table, Fixed()).cells
    p = [[*row, 0.0] for row in P.tolist()]
    y = [list("abc").index(c) for c in Y[6:]]
    assert cell.failure is None
    assert cell.error == pytest.approx(100 * sum(c != "ab"[row.argmax()] for row, c in zip(P, Y[6:], strict=True)) / 6)
    assert cell.log_loss == pytest.approx(oracle.log_loss(p, y))
    assert cell.brier == pytest.approx(oracle.brier(p, y))
    assert cell.auc == pytest.approx(oracle.auc(p, y))
    assert (cell.n_parameters, cell.n_edges, cell.n_evaluations, cell.n_iterations, cell.score) == (None,) * 5
    assert (cell.n_train, cell.n_test) == (6, 6)


def test_one_class_of_test_rows_has_no_auc(table):
    split = Dataset("fixed", table.X, table.y, ["row"], folds=[(ROWS[:6], ROWS[10:])])
    (cell,) = compare(split, Fixed()).cells
    assert (cell.auc, cell.failure) == (None, None)


def test_probabilities_that_are_no_numbers_are_a_failure(table):
    with pytest.warns(
        FitFailedWarning, match=r"fold 1: probabilities must be numbers, but those of test row 2 contain NaN\. The"
    ):
        (cell,) = compare(table, Unknown()).cells
    assert cell.failure == "probabilities must be numbers, but those of test row 2 contain NaN."
    assert (cell.error, cell.fit_seconds) == (None, None)


def test_long_predictions_are_not_repeated(table, monkeypatch):
    times = iter(np.arange(0.0, 100.0, 2.0))
    monkeypatch.setattr(cells_module.time, "perf_counter", lambda: next(times))
    (cell,) = compare(table, Fixed()).cells
    assert (cell.fit_seconds, cell.predict_seconds) == (2.0, 2.0)
    assert next(times) == 8.0  # of one fit and one prediction


def test_the_fastest_prediction_counts(table, monkeypatch):
    times = iter([0.0, 0.5, 1.0, 1.5, 2.0, 2.25, 3.0, 3.75])
    monkeypatch.setattr(cells_module.time, "perf_counter", lambda: next(times))
    (cell,) = compare(table, Fixed()).cells
    assert (cell.fit_seconds, cell.predict_seconds) == (0.5, 0.25)


def test_sizes_and_effort_of_searches_and_trainings():
    learners = {
        "search": BayesNetClassifier(structure=GreedySearch()),
        "conjugate": "TAN-CMI CG-CL",
        "gradient": "TAN Subset HYB",
        "bayes": "NB ML",
    }
    found = {cell.learner: cell for cell in compare("iris", learners, n_folds=1, n_epochs=3).cells}
    assert all(cell.n_parameters > 0 for cell in found.values())
    search = found["search"]
    assert 0 < search.n_edges <= 3
    assert 0.5 < search.score <= 1.0
    assert (found["bayes"].n_edges, found["bayes"].n_iterations, found["bayes"].score) == (0, None, None)
    assert (found["gradient"].n_iterations, found["gradient"].n_evaluations) == (3, 3)
    assert search.n_evaluations >= 4 * 3
    assert found["conjugate"].n_iterations > 0
    assert found["conjugate"].n_edges == 3


def test_a_search_that_changes_nothing_has_scored_structures_too():
    """Both features are constant, so that no edge improves the score."""
    y = np.arange(60) % 2
    (cell,) = compare((np.zeros((60, 2)), y), {"search": BayesNetClassifier(structure=GreedySearch())}, n_folds=1).cells
    assert (cell.n_edges, cell.n_evaluations) == (0, 2)
