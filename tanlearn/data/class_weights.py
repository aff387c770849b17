"""Class weights and class priors given by the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.data.validation import LARGEST_TOTAL
from tanlearn.kernels.mathematics import log_all

__all__ = ["log_frequencies", "own_weights", "read_prior", "weigh_classes"]


def weigh_classes(option: Any, y: IntArray, classes: AnyArray, weights: AnyArray | None) -> AnyArray | None:
    """Return row weights multiplied by class weights, shape (n_samples,).

    ``option`` is None, ``"balanced"`` or a dict from class to weight, 1 for classes not named. ``"balanced"`` gives all
    classes the same total and keeps the total of all rows. The result is integer if all weights are.
    """
    if option is None:
        return weights
    if isinstance(option, str):  # "balanced", the only string that parameter validation accepts
        of_class = np.bincount(y, weights, len(classes))
        if of_class.min() * LARGEST_TOTAL < of_class.sum():
            label = classes.tolist()[of_class.argmin()]
            raise ValueError(
                f"class_weight='balanced' cannot balance class {label!r}, whose weight is {of_class.min():.3g} of "
                f"{of_class.sum():.3g} in all rows. Drop its rows, or give them more weight."
            )
        return (1 if weights is None else weights) * (of_class.sum() / len(classes) / of_class)[y]
    known = classes.tolist()
    for label, weight in option.items():
        if label not in known:
            alike = [repr(one) for one in known if str(one) == str(label)]
            remedy = f"Write {alike[0]}, which is another type" if alike else "Leave it out, or correct it"
            raise ValueError(
                f"class_weight must give positive weights to classes, got one for {label!r}, which is not in y; "
                f"the classes are {', '.join(map(repr, known))}. {remedy}."
            )
        if not isinstance(weight, (int, float, np.number)) or not 0 < weight < np.inf:
            raise ValueError(
                f"class_weight must give positive weights to classes, got {weight!r} for {label!r}; the classes are "
                f"{', '.join(map(repr, known))}. To leave a class out, drop its rows."
            )
    factors = [option.get(label, 1) for label in known]
    own = np.ones(len(y), np.int64) if weights is None else weights
    with np.errstate(over="ignore"):  # an infinite total raises below
        total = float((own * np.array(factors, np.float64)[y]).sum())
    exact = own.dtype.kind == "i" and all(isinstance(factor, (int, np.integer)) for factor in factors)
    if not total < np.iinfo(np.int64).max if exact else not 1 / LARGEST_TOTAL <= total <= LARGEST_TOTAL:
        raise ValueError(
            f"class_weight makes the weights add up to {total:.3g}, which is too {'much' if total > 1 else 'little'}. "
            f"Multiply them by a common factor."
        )
    return own * np.array(factors, np.int64 if exact else np.float64)[y]


def log_frequencies(class_counts: AnyArray) -> FloatArray:
    """Return log class frequencies with add-one smoothing, shape (n_classes,)."""
    counts = class_counts + 1.0
    log_p: FloatArray = np.log(counts / counts.sum())
    return log_p


def own_weights(base_weights: AnyArray | None, weights: AnyArray | None) -> AnyArray | None:
    """Return the row weights before multiplication by class weights, or None if class weights changed nothing."""
    if weights is None or weights is base_weights:
        return None
    return np.ones(len(weights), np.int64) if base_weights is None else base_weights


def read_prior(class_prior: Any, n_classes: int) -> FloatArray:
    """Validate class probabilities and return their logarithms, shape (n_classes,); a probability may be 0."""
    try:
        prior = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError):  # strings, or lists of different lengths
        prior = np.empty(0)
    if prior.shape != (n_classes,) or not (prior >= 0).all() or not np.isclose(prior.sum(), 1):
        raise ValueError(
            f"class_prior must hold {n_classes} probabilities that sum to one, in the sorted order of the classes, got "
            f"{class_prior}."
        )
    log_prior = np.empty(n_classes)
    log_all(prior / prior.sum(), log_prior)
    return log_prior
