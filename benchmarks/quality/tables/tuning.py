"""Peers that choose their settings by log loss on three folds of the training part."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.svm import SVC

from ..runs import take, true_class

N_INNER = 3
#: Probabilities below count as this one.
LEAST = 1e-15
#: Settings of boosting: largest number of trees per class, and trees without a lower log loss before it stops.
MOST_TREES, PATIENCE = 500, 20


def log_loss(p, classes, y):
    """Return the mean log loss; a class without training rows has probability 0."""
    return -float(np.log(true_class(p, classes, y, 0.0).clip(LEAST)).mean())


def score(model, X, y):
    """Return the score that a search for settings maximizes."""
    return -log_loss(model.predict_proba(X), model.classes_, y)


def inner_folds(X, y, seed):
    """Return the folds on which settings are chosen."""
    return StratifiedKFold(N_INNER, shuffle=True, random_state=seed).split(X, y)


class Chosen(ClassifierMixin, BaseEstimator):
    """Classifier that predicts with ``best_estimator_``, the model of the chosen settings."""

    def predict_proba(self, X):
        return self.best_estimator_.predict_proba(X)


class Tuned(Chosen):
    """A model with settings of a grid chosen on folds, optionally with a cheaper variant of the model."""

    def __init__(self, model, grid, cheaper=None, random_state=0):
        self.model, self.grid, self.cheaper, self.random_state = model, grid, cheaper, random_state

    def fit(self, X, y):
        folds = StratifiedKFold(N_INNER, shuffle=True, random_state=self.random_state)
        candidate = clone(self.model).set_params(**self.cheaper or {})
        search = GridSearchCV(candidate, self.grid, scoring=score, cv=folds, refit=False, error_score="raise").fit(X, y)
        self.best_params_, self.classes_ = search.best_params_, np.unique(y)
        self.best_estimator_ = clone(self.model).set_params(**self.best_params_).fit(X, y)
        return self


class EarlyStopped(Chosen):
    """Boosting with the settings and the mean number of trees of the lowest log loss on folds.

    ``fit_until(model, X, y, X_held_out, y_held_out)`` returns the best number of trees, and its log loss;
    ``trees`` is the parameter that sets it.
    """

    def __init__(self, model, grid, fit_until, trees, random_state=0):
        self.model, self.grid, self.fit_until, self.trees, self.random_state = (
            *(model, grid, fit_until, trees),
            random_state,
        )

    def fit(self, X, y):
        folds, found = list(inner_folds(X, y, self.random_state)), []
        for setting in ParameterGrid(self.grid):
            model = clone(self.model).set_params(**setting, **{self.trees: MOST_TREES})
            stops = [self._stop(clone(model), X, y, *fold) for fold in folds]
            n_trees, loss = np.mean(stops, axis=0)
            found.append((loss, {**setting, self.trees: max(1, round(n_trees))}))
        self.best_params_, self.classes_ = min(found, key=lambda one: one[0])[1], np.unique(y)
        self.best_estimator_ = clone(self.model).set_params(**self.best_params_).fit(X, y)
        return self

    def _stop(self, model, X, y, train, held_out):
        """Return the early stop on held-out rows of classes that have training rows."""
        classes, codes = np.unique(y[train], return_inverse=True)
        held_out = held_out[np.isin(y[held_out], classes)]
        y_held_out = np.searchsorted(classes, y[held_out])
        return self.fit_until(model, take(X, train), codes, take(X, held_out), y_held_out)


class CalibratedSVC(Chosen):
    """A support vector machine, with probabilities by a logistic regression on scores of left-out folds.

    The settings of the grid with the lowest log loss of these probabilities are chosen.
    """

    def __init__(self, grid, random_state=0):
        self.grid, self.random_state = grid, random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        folds, found = list(inner_folds(X, y, self.random_state)), []
        for setting in ParameterGrid(self.grid):
            scores = np.zeros((len(y), self._n_scores))
            for train, left_out in folds:
                scores[left_out] = self._scores(SVC(**setting).fit(X[train], y[train]), X[left_out])
            calibration = LogisticRegression(max_iter=1000).fit(scores, y)
            found.append((log_loss(calibration.predict_proba(scores), self.classes_, y), setting, calibration))
        _, self.best_params_, self.calibration_ = min(found, key=lambda one: one[0])
        self.best_estimator_ = SVC(**self.best_params_).fit(X, y)
        return self

    @property
    def _n_scores(self):
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _scores(self, model, X):
        """Return one score per class, or one for two classes; a class without training rows has the lowest."""
        found = model.decision_function(X)
        if found.ndim == 1:
            found = np.stack([-found, found], axis=1)
        scores = np.repeat(found.min(axis=1, keepdims=True) - 1, len(self.classes_), axis=1)
        scores[:, np.searchsorted(self.classes_, model.classes_)] = found
        return scores[:, -self._n_scores :]

    def predict_proba(self, X):
        return self.calibration_.predict_proba(self._scores(self.best_estimator_, X))
