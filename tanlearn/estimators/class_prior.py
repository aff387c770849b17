"""Replacement of the class prior in fitted classifiers.

A fitted classifier predicts class probabilities for the class frequencies of the training rows. If only the frequencies
change, but not the distribution of the features in each class, the log odds of two classes change by the same amount as
their log prior odds:

    log p'(a | x) / p'(b | x)  =  log p(a | x) / p(b | x)  +  log (pi'_a / pi_a) - log (pi'_b / pi_b)

A counted class prior consists of the class frequencies pi, and is replaced. A class prior that was trained together
with the other parameters is an intercept. The change is added to the intercept, so that its difference from the log
frequencies stays the same. On the data set car, with the training frequencies as ``class_prior``, the held-out error of
TAN is 29 % if the intercept is replaced, and 1.8 % if the change is added to it.

Saerens, Latinne, Decaestecker: Adjusting the outputs of a classifier to new a priori probabilities. Neural Computation
14, 2002.
"""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.encoding.stored_values import check_array
from tanlearn.encoding.weights import log_frequencies, read_prior
from tanlearn.models.calibration import Calibration
from tanlearn.models.log_joint import log_posterior

__all__ = ["keep_offset", "moved_prior", "read_offset", "state_of_offset", "with_class_prior"]

_Classifier = TypeVar("_Classifier")


def keep_offset(classifier: Any, class_totals: AnyArray) -> None:
    """Store the difference (n_classes,) between a trained class prior and the log frequencies of the classes.

    ``class_totals`` are the total weights of the training rows of each class. The prior is divided by the temperature,
    as in calibrated predictions.
    """
    calibration: Calibration = classifier.calibration_
    prior = calibration.shifted(classifier.model_.tables.log_prior[np.newaxis])[0] / calibration.temperature
    classifier._prior_offset = prior - log_frequencies(class_totals)


def moved_prior(classifier: Any, log_prior: FloatArray) -> FloatArray:
    """Return the class prior (n_classes,) that the tables need for the given log class probabilities.

    A counted prior is replaced, so that exactly the given probabilities are predicted for a row without features. The
    calibration divides all scores by its temperature, so the tables contain the prior to the power of the temperature.
    """
    offset = getattr(classifier, "_prior_offset", None)
    if offset is None and classifier.calibration_.temperature == 1:
        return log_prior
    total = log_prior if offset is None else log_prior + offset
    return log_posterior(total[np.newaxis] * classifier.calibration_.temperature)[0]


def state_of_offset(classifier: Any) -> dict[str, Any]:
    """Return the entries that describe a trained class prior in a model file, or no entries for a counted prior."""
    offset = getattr(classifier, "_prior_offset", None)
    return {} if offset is None else {"prior_offset": offset}


def read_offset(offset: Any, n_classes: int) -> FloatArray | None:
    """Return ``prior_offset`` of a file, or None if it is absent. Raise ValueError for invalid values."""
    if offset is not None and np.isneginf(check_array("prior_offset", offset, np.float64, (n_classes,))).any():
        raise ValueError("prior_offset must be finite.")
    found: FloatArray | None = offset
    return found


def with_class_prior(self: _Classifier, class_prior: Any) -> _Classifier:
    """Return a copy of the fitted classifier with another class prior.

    Use this method if the classes are more or less frequent in new rows than in the training rows.

    Parameters
    ----------
    class_prior : array-like of shape (n_classes,)
        Probabilities of the classes, in the order of ``classes_``.

    Returns
    -------
    object
        A new classifier that predicts with this prior. The odds of two classes are multiplied by the ratio of their
        odds in ``class_prior`` to their odds in the training rows. Only the temperature of ``calibration_`` is kept.
        The class prior in ``tables_``, which ``sample`` and ``describe`` use, is the given prior to the power of the
        temperature, normalized. If the class prior was trained together with the other parameters, its ratio to the
        class frequencies is also kept.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    ValueError
        If ``class_prior`` does not contain one probability per class, or if a probability is too small for CPTs with
        few bits.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> model = NaiveBayesClassifier().fit([["cough"], ["cough"], ["none"]], ["cold", "cold", "well"])
    >>> model.with_class_prior([0.01, 0.99]).predict([["cough"]]).tolist()  # few people have a cold in summer
    ['well']
    """
    check_is_fitted(self)
    twin: Any = copy(self)
    twin.class_prior = class_prior
    twin._set_log_prior(read_prior(class_prior, len(twin.classes_)))
    return twin
