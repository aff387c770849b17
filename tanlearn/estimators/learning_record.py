"""Methods of classifiers that return the history of learning, and held-out errors along this history."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.utils.validation import check_is_fitted

__all__ = ["learning_errors", "learning_history"]


def learning_history(self: Any) -> dict[str, list[Any]]:
    """Return the history of each stage of learning. The result is empty for models from files.

    Returns
    -------
    dict of str to list
        History of each stage: "structure" for the structure search, "parameters" for the parameter learner, and
        "training" for joint training of both. Each entry has the attributes ``step``, ``score`` (which is maximized),
        ``n_evaluations`` (number of evaluated structures up to this entry, or number of evaluations of the objective on
        all training rows) and ``seconds`` (time since the start of the stage, without the compilation of kernels).
    """
    return {stage: history for stage, history in self._histories().items() if history}


def learning_errors(
    self: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, n_points: int = 20
) -> dict[str, list[tuple[Any, float]]]:
    """Return held-out errors at several steps of learning.

    The classifier is fitted again. If its structure was searched, the parameters are fitted for each of the best
    structures along the search. A gradient training is repeated once, and the error is measured after each epoch.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Rows that were used in ``fit``.
    y : array-like of shape (n_samples,)
        Classes of these rows.
    X_test : array-like or frame of shape (n_test, n_features)
        Held-out rows.
    y_test : array-like of shape (n_test,)
        Classes of the held-out rows.
    n_points : int, default=20
        Maximum number of structures along a search, at least 2. The first and the last structure are always included.

    Returns
    -------
    dict of str to list of (entry, error)
        For the stages "structure" and "training" of :meth:`learning_history`, the entries of the history, each with the
        error (from 0 to 1) at this point. The dict is empty for classifiers without these stages.

        For a search, the error is measured for the best structure so far, with parameters fitted by the parameter
        learner of the classifier. For a training, it is measured for the most probable structure with its trained
        parameters, before calibration and refits. The repeated training gives the same result if ``random_state`` is an
        int.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    ValueError
        If ``n_points`` is less than 2, or the rows are invalid for the classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import BayesNetClassifier
    >>> from tanlearn.baselines import GreedySearch
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesNetClassifier(structure=GreedySearch(score="margin")).fit(X[::2], y[::2])
    >>> errors = model.learning_errors(X[::2], y[::2], X[1::2], y[1::2])
    >>> [(change.step, round(error, 3)) for change, error in errors["structure"]]
    [(1, 0.027), (2, 0.027), (3, 0.027)]
    """
    check_is_fitted(self)
    if n_points < 2:
        raise ValueError(f"n_points must be at least 2, for the first and the last structure, got {n_points}.")
    with warnings.catch_warnings(action="ignore"):  # fit has already issued these warnings
        errors = self._learning_errors((X, y), (X_test, y_test), n_points)
    return {stage: of_stage for stage, of_stage in errors.items() if of_stage}
