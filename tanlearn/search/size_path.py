"""Size paths: gradient TAN for a sequence of size penalties, with warm starts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._tasks import in_order
from tanlearn.estimators.gradient_classifier import N_EPOCHS
from tanlearn.estimators.gradient_tan import TANClassifier

__all__ = ["size_path"]


def size_path(
    estimator: TANClassifier,
    X: Any,
    y: Any,
    size_weights: Sequence[float],
    *,
    n_epochs: int | None = None,
    random_states: Sequence[int] = (0,),
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> list[TANClassifier]:
    """Fit one classifier for each combination of size penalty ([RE] eq. 17) and seed.

    Each training starts from the parameters that resulted from the previous training.

    Parameters
    ----------
    estimator : TANClassifier
        Classifier with the settings of the first training of each path. It is not modified.
    X : array-like or frame of shape (n_samples, n_features)
        Raw values.
    y : array-like of shape (n_samples,)
        Classes.
    size_weights : sequence of float
        Penalties in the order of the path, in nats per parameter and row, relative to the mean loss per row (see
        :class:`~tanlearn.TANClassifier`). As the penalty increases, the edges that reduce the loss least per additional
        CPT entry are removed first.
    n_epochs : int, optional
        Number of epochs of each training except the first. The default is a quarter of the estimator's epochs.
    random_states : sequence of int, default=(0,)
        Seeds, one per path.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    n_jobs : int, optional
        Number of threads, each for one path, or of workers of the backend set by :func:`joblib.parallel_config`. The
        models do not depend on it.

    Returns
    -------
    list of TANClassifier
        Fitted classifiers, path by path. The classifiers differ in ``size_weight``, ``random_state`` and
        ``size_bits_``.

    Raises
    ------
    ValueError
        If there is no penalty or no seed, a seed is not an int, the estimator has a checkpoint, or the data are
        invalid.
    TypeError
        If the backend uses processes and the estimator cannot be serialized.

    References
    ----------
    [RE] Roth, Schindler, Fröning, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural
    networks. ICPR 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tanlearn import TANClassifier, size_path
    >>> models = size_path(TANClassifier(n_epochs=20), *load_digits(return_X_y=True), [0, 0.1, 1])
    >>> large, medium, small = [model.size_bits_ for model in models]
    >>> large > medium > small
    True
    """
    weights, seeds = list(size_weights), list(random_states)
    if not weights or not seeds:
        raise ValueError("size_weights and random_states must each contain at least one number.")
    if not all(isinstance(seed, (int, np.integer)) for seed in seeds):
        raise ValueError(f"random_states must contain one integer per path, got {seeds!r}.")
    if estimator.get_params()["training__checkpoint"] is not None:
        raise ValueError(
            "a checkpoint can store only one training, but a path consists of several. Set checkpoint=None in the "
            "estimator."
        )
    later = max(1, (estimator.n_epochs or N_EPOCHS) // 4) if n_epochs is None else n_epochs
    rows = X, y, sample_weight
    paths = in_order(_follow, [(rows, (estimator, weights, later, seed)) for seed in seeds], n_jobs)
    return [model for path in paths for model in path]


def _follow(
    rows: tuple[Any, Any, Any], estimator: TANClassifier, size_weights: list[float], later: int, seed: int
) -> list[TANClassifier]:
    """Train the classifiers of one path, all except the first for ``later`` epochs."""
    model = clone(estimator).set_params(warm_start=True, random_state=seed)
    found = []
    for weight in size_weights:
        model.set_params(size_weight=weight).fit(*rows)
        model.set_params(n_epochs=later)
        found.append(copy(model).set_params(warm_start=False))
        del found[-1]._start
    return found
