"""Methods of single-network classifiers that select the next feature to observe in partly observed rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray

if TYPE_CHECKING:
    from tanlearn.estimators.acquisition import AcquisitionCurve

__all__ = ["acquisition_curve", "feature_gains", "next_feature"]


def next_feature(
    self: Any, X: Any, *, gain: Any = "information", costs: Any = None, depth: int = 1, unanswered: Any = None
) -> AnyArray:
    """Return the feature to observe next in each partly observed row.

    The returned feature has the largest expected gain per cost (see :meth:`feature_gains`).

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Raw values. NaN and None are values that have not been observed yet.
    gain : {"information", "accuracy"} or array-like of shape (n_classes, n_decisions), default="information"
        Measure of the gain of an observation, see :meth:`feature_gains`.
    costs : dict or array-like of shape (n_features,), optional
        Positive cost of observing each feature. The keys of a dict are names or column numbers, and all other
        features have the cost 1.
    depth : int, default=1
        Number of observations to plan ahead, see :meth:`feature_gains`.
    unanswered : array-like of bool of shape (n_samples, n_features), or list of features, optional
        Features that cannot be observed, for example because there was no answer. They are not returned. A list of
        names or column numbers applies to all rows.

    Returns
    -------
    ndarray of shape (n_samples,), object
        Name of the feature, or its column number if columns have no names, or None if all features of the row are
        observed or unanswered. Ties are broken by the information gain, then by the order of the columns.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    ValueError
        If a parameter is invalid, or exact gains would take too many operations.

    Examples
    --------
    >>> import pandas as pd
    >>> from tanlearn import NaiveBayesClassifier
    >>> X = pd.DataFrame({"fever": ["yes", "yes", "no", "no"], "cough": ["yes", "no", "yes", "no"]})
    >>> model = NaiveBayesClassifier().fit(X, ["flu", "flu", "cold", "cold"])
    >>> rows = pd.DataFrame({"fever": [None, "yes", "no"], "cough": [None, None, "yes"]})
    >>> model.next_feature(rows).tolist()
    ['fever', 'cough', None]
    """
    from tanlearn.estimators.partial_rows import PartialRows, best_features, read_costs, read_gain

    rows = PartialRows.read(self, X, unanswered)
    best = best_features(self, rows, read_gain(self, gain), read_costs(self, costs), depth)
    names = getattr(self, "feature_names_in_", range(self.n_features_in_))
    labels = np.empty(len(names) + 1, object)
    labels[:-1] = list(names)
    return labels[best]


def feature_gains(
    self: Any, X: Any, *, gain: Any = "information", costs: Any = None, depth: int = 1, unanswered: Any = None
) -> FloatArray:
    """Return the expected gain per cost of observing each feature of partly observed rows.

    Expectations are exact. They are taken over the distribution of each feature in the network, given the observed
    features.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Raw values. NaN and None are values that have not been observed yet, even in columns with a category for
        missing values. Unseen categories count as observed, but contain no evidence.
    gain : {"information", "accuracy"} or array-like of shape (n_classes, n_decisions), default="information"
        "information" is the decrease in the entropy of the class, in bits. "accuracy" is the increase in the
        probability of the predicted class. An array contains the utility of each decision for each class. The gain is
        then the increase in the expected utility of the best decision.
    costs : dict or array-like of shape (n_features,), optional
        Positive cost of observing each feature. The keys of a dict are names or column numbers, and all other
        features have the cost 1.
    depth : int, default=1
        Number of observations to plan ahead. If it is above 1, the result is the gain per cost of the best plan that
        begins with the feature. Later features of a plan depend on the values of earlier features. A single feature
        often does not change the decision. Its gain in accuracy or utility is then 0, unless later observations are
        also planned.
    unanswered : array-like of bool of shape (n_samples, n_features), or list of features, optional
        Features that cannot be observed, for example because there was no answer. In columns with a category for
        missing values, unanswered features are assigned this category.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Nonnegative gains per cost. They are NaN for observed and unanswered features.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    ValueError
        If a parameter is invalid, the structure has a cycle, the plans for a row need more than 20,000 partly
        observed rows, or a row needs more operations than ``TANLEARN_MAX_ROW_OPERATIONS``.

    Notes
    -----
    If x are the observed features and v the values of a feature, the information gain is the mutual information::

        I = sum_v sum_y P(y, v | x) log2 (P(y, v | x) / (P(y | x) P(v | x)))

    The probabilities are computed by the network, before calibration. For accuracy and utility, P(y | x) is the
    calibrated probability of ``predict_proba``, and P(y, v | x) = P(y | x) P(v | y, x).

    Examples
    --------
    >>> import pandas as pd
    >>> from tanlearn import NaiveBayesClassifier
    >>> X = pd.DataFrame({"fever": ["yes", "yes", "no", "no"], "cough": ["yes", "no", "yes", "no"]})
    >>> model = NaiveBayesClassifier().fit(X, ["flu", "flu", "cold", "cold"])
    >>> model.feature_gains(pd.DataFrame({"fever": [None], "cough": [None]})).round(2).tolist()  # bits
    [[0.19, 0.0]]
    """
    from tanlearn.estimators.partial_rows import PartialRows, gains_of, read_costs, read_gain

    rows = PartialRows.read(self, X, unanswered)
    return gains_of(self, rows, read_gain(self, gain), read_costs(self, costs), depth)


def acquisition_curve(
    self: Any,
    X: Any,
    y: Any,
    *,
    gain: Any = "information",
    costs: Any = None,
    depth: int = 1,
    n_features: int | None = None,
    n_random: int = 10,
    random_state: Any = 0,
) -> AcquisitionCurve:
    """Return held-out errors for each number of observed features, if the best next feature of each row is observed.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Held-out rows. Their values are hidden at first, and then observed one after another. Observing a missing value
        yields no information.
    y : array-like of shape (n_samples,)
        Classes of the rows.
    gain : {"information", "accuracy"} or array-like of shape (n_classes, n_decisions), default="information"
        Measure of the gain of an observation, see :meth:`feature_gains`.
    costs : dict or array-like of shape (n_features,), optional
        Positive cost of observing each feature. The keys of a dict are names or column numbers, and all other
        features have the cost 1.
    depth : int, default=1
        Number of observations that the adaptive order plans ahead, see :meth:`feature_gains`.
    n_features : int, optional
        Number of features to observe. By default, all features are observed.
    n_random : int, default=10
        Number of random orders per row, over which errors are averaged. If 0, there is no "random" curve.
    random_state : int, RandomState, Generator or None, default=0
        Seed for the random orders.

    Returns
    -------
    AcquisitionCurve
        Errors, log losses and costs of three orders: "adaptive", the result of :meth:`next_feature` for each row;
        "fixed", one order for all rows; and "random". The fixed order begins with the feature that has the largest gain
        per cost. Each subsequent feature has the largest mean gain per cost over the rows of X, given the values that
        have been observed so far in each row.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    ValueError
        If a parameter is invalid, or exact gains would take too many operations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NaiveBayesClassifier().fit(X[::2], y[::2])
    >>> model.acquisition_curve(X[1::2], y[1::2]).fixed_order[:2]
    ['petal width (cm)', 'petal length (cm)']
    """
    from tanlearn.estimators.acquisition import acquisition_curve as measure_acquisition

    options: dict[str, Any] = {"gain": gain, "costs": costs, "depth": depth, "n_features": n_features}
    return measure_acquisition(self, X, y, **options, n_random=n_random, random_state=random_state)
