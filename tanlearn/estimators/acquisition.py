"""Errors as a function of the number of observed features, which are selected per row, for all rows, or at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray, missing_code
from tanlearn.estimators.estimator_input import encode_rows, generator
from tanlearn.estimators.partial_rows import (
    PartialRows,
    best_features,
    class_probabilities,
    gains_of,
    read_costs,
    read_gain,
)
from tanlearn.files.description import feature_names
from tanlearn.sources.validation import encode_labels

__all__ = ["AcquisitionCurve", "acquisition_curve"]

#: Function that selects the next feature of each row (n_samples,), given the rows and their number of observed
#: features.
Policy = Callable[[PartialRows, int], IntArray]


@dataclass(frozen=True, eq=False)
class AcquisitionCurve:
    """Held-out errors for each number of observed features, returned by ``acquisition_curve`` of classifiers.

    The keys of ``errors``, ``log_losses`` and ``costs`` are "adaptive" (the best next feature of each row), "fixed"
    (one order for all rows) and, if there are random orders, "random". The first entry of each array belongs to rows
    without observed features.

    Parameters
    ----------
    errors : dict of str to ndarray of shape (n_features + 1,)
        Error rate, from 0 to 1, after 0, 1, 2, ... observed features.
    log_losses : dict of str to ndarray of shape (n_features + 1,)
        Mean log loss, in nats, after 0, 1, 2, ... observed features.
    costs : dict of str to ndarray of shape (n_features + 1,)
        Mean cost of the observed features.
    error_of_all, log_loss_of_all : float
        Error and log loss with all features.
    features : ndarray of shape (n_samples, n_features), object
        Names of the features, in the order in which they are observed in each row with "adaptive".
    fixed_order : list of str
        Names of the features, in the order in which they are observed in all rows with "fixed".
    probabilities : ndarray of shape (n_features + 1, n_samples, n_classes)
        Class probabilities that are predicted from the features observed with "adaptive".
    y : ndarray of shape (n_samples,)
        Codes of the true classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NaiveBayesClassifier().fit(X[::2], y[::2])
    >>> curve = model.acquisition_curve(X[1::2], y[1::2])
    >>> curve.errors["adaptive"].round(2).tolist()
    [0.67, 0.05, 0.03, 0.04, 0.04]
    """

    errors: dict[str, FloatArray]
    log_losses: dict[str, FloatArray]
    costs: dict[str, FloatArray]
    error_of_all: float
    log_loss_of_all: float
    features: AnyArray
    fixed_order: list[str]
    probabilities: FloatArray
    y: IntArray

    def stop(self, confidence: float = 0.95) -> dict[str, float]:
        """Return the results of stopping in each row as soon as a class is probable enough.

        Parameters
        ----------
        confidence : float, default=0.95
            Observation stops at the first number of features with which the predicted class has at least this
            probability.

        Returns
        -------
        dict
            ``error`` is the error rate, ``n_features`` is the mean number of observed features, and ``sure`` is the
            fraction of rows that reach the confidence. In all other rows, all features of the curve are observed.

        Raises
        ------
        ValueError
            If ``confidence`` is not between 0 and 1.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import NaiveBayesClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = NaiveBayesClassifier().fit(X[::2], y[::2])
        >>> {key: round(value, 2) for key, value in model.acquisition_curve(X[1::2], y[1::2]).stop(0.9).items()}
        {'error': 0.04, 'n_features': 1.85, 'sure': 0.91}
        """
        if not 0 < confidence <= 1:
            raise ValueError(
                f"confidence must be a probability above 0 and at most 1, got {confidence!r}. Pass, for example, 0.95."
            )
        is_sure = self.probabilities.max(axis=2) >= confidence
        last = np.where(is_sure.any(axis=0), is_sure.argmax(axis=0), len(is_sure) - 1)
        predicted = self.probabilities[last, np.arange(len(last))].argmax(axis=1)
        error, n_features = float((predicted != self.y).mean()), float(last.mean())
        return {"error": error, "n_features": n_features, "sure": float(is_sure.any(axis=0).mean())}

    def to_frame(self) -> Any:
        """Return the curves as a data frame.

        Returns
        -------
        pandas.DataFrame
            One line per order and number of features, with the columns ``order``, ``n_features``, ``cost``, ``error``
            and ``log_loss``.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import NaiveBayesClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = NaiveBayesClassifier().fit(X[::2], y[::2])
        >>> model.acquisition_curve(X[1::2], y[1::2]).to_frame().columns.tolist()
        ['order', 'n_features', 'cost', 'error', 'log_loss']
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError('to_frame needs pandas. Install it with: pip install "tanlearn[frames]"') from error
        parts = [
            pandas.DataFrame(
                {
                    "order": order,
                    "n_features": np.arange(len(errors)),
                    "cost": self.costs[order],
                    "error": errors,
                    "log_loss": self.log_losses[order],
                }
            )
            for order, errors in self.errors.items()
        ]
        return pandas.concat(parts, ignore_index=True)


def acquisition_curve(
    classifier: Any,
    X: Any,
    y: Any,
    *,
    gain: Any,
    costs: Any,
    depth: int,
    n_features: int | None,
    n_random: int,
    random_state: Any,
) -> AcquisitionCurve:
    """Return the errors of a fitted classifier on the rows of X, for each number of observed features."""
    codes = encode_rows(classifier, X)
    d, n = codes.shape
    labels = encode_labels(y, n, classifier.classes_)
    n_steps = _read_number(n_features, d, "n_features", 1, d)
    n_orders = _read_number(n_random, 0, "n_random", 0, None)
    measure, cost_of, rng = read_gain(classifier, gain), read_costs(classifier, costs), generator(random_state)

    def adaptive(rows: PartialRows, _: int) -> IntArray:
        return best_features(classifier, rows, measure, cost_of, depth)

    def fixed(rows: PartialRows, _: int) -> IntArray:
        means = gains_of(classifier, rows, measure, cost_of).mean(axis=0)  # all rows have the same candidates
        return np.full(n, np.where(rows.is_candidate[0], means, -1.0).argmax())

    def follow(policy: Policy) -> tuple[IntArray, FloatArray]:
        """Return the observed features (n, n_steps) and the class probabilities (n_steps + 1, n, n_classes)."""
        rows = PartialRows(np.full_like(codes, missing_code(codes.dtype)), np.ones((n, d), np.bool_))
        features, every = np.empty((n, n_steps), np.intp), np.arange(n)
        p = [class_probabilities(classifier, rows.codes)[0]]
        for k in range(n_steps):
            chosen = features[:, k] = policy(rows, k)
            rows.codes[chosen, every] = codes[chosen, every]
            rows.is_candidate[every, chosen] = False
            p.append(class_probabilities(classifier, rows.codes)[0])
        return features, np.stack(p)

    errors, log_losses, spent = {}, {}, {}
    results = {"adaptive": [follow(adaptive)], "fixed": [follow(fixed)]}
    if n_orders:
        orders = [rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1) for _ in range(n_orders)]
        results["random"] = [follow(lambda _, k, own=order: own[:, k]) for order in orders]  # type: ignore[misc]
    for order, found in results.items():
        measured = [_measure(p, labels) for _, p in found]
        errors[order], log_losses[order] = np.mean(measured, axis=0)
        spent[order] = np.append(0.0, np.cumsum(np.mean([cost_of[features].mean(axis=0) for features, _ in found], 0)))
    error_of_all, log_loss_of_all = _measure(class_probabilities(classifier, codes)[0][np.newaxis], labels)[
        :, 0
    ].tolist()
    names = np.array(feature_names(classifier), object)
    (features, probabilities), (of_all, _) = results["adaptive"][0], results["fixed"][0]
    own = names[features], names[of_all[0]].tolist(), probabilities, labels
    return AcquisitionCurve(errors, log_losses, spent, error_of_all, log_loss_of_all, *own)


def _measure(p: FloatArray, y: IntArray) -> FloatArray:
    """Return errors and mean log losses (2, n_steps) for class probabilities (n_steps, n, n_classes)."""
    with np.errstate(divide="ignore"):
        losses = -np.log(p[:, np.arange(len(y)), y])
    return np.stack([(p.argmax(axis=2) != y).mean(axis=1), losses.mean(axis=1)])


def _read_number(value: Any, default: int, name: str, least: int, most: int | None) -> int:
    """Return an integer parameter, or its default if it is None."""
    if value is None:
        return default
    is_integer = type(value) is not bool and isinstance(value, Integral)
    if not is_integer or int(value) < least or (most is not None and int(value) > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {limits}, got {value!r}.")
    return int(value)
