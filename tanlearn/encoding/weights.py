"""Sample weights, class weights and class priors.

Weights that do not count rows are detected by the effective sample size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn._warnings import warn
from tanlearn.kernels.mathematics import log_all
from tanlearn.sources.validation import LARGEST_TOTAL, read_weights

__all__ = [
    "WeightSums",
    "effective_size",
    "log_frequencies",
    "own_weights",
    "read_prior",
    "scale_weights",
    "warn_of_weights",
    "weigh_classes",
    "weights_of_values",
]

#: Ratio of total weight to effective sample size above which a warning is issued. The ratio is 2 for counts of
#: bootstrap samples, and slightly larger for counts of repeated rows. For 40 draws of Poisson(1), it was at most 2.4.
LARGEST_INTEGER_RATIO, LARGEST_FRACTIONAL_RATIO = 8.0, 2.0


class WeightSums:
    """Sums over the weights of rows, accumulated over batches."""

    def __init__(self) -> None:
        # Number of rows of positive weight, sum of weights, sum of squared weights, and whether all weights are
        # integers
        self.n_rows, self.total, self.squares, self.are_integers = 0, 0.0, 0.0, True

    def update(self, weights: AnyArray | None, n_rows: int) -> WeightSums:
        """Add the weights of rows in place. None means a weight of 1 for each of ``n_rows`` rows."""
        own = np.ones(n_rows) if weights is None else weights[weights > 0].astype(np.float64)
        self.n_rows += len(own)
        self.total += float(own.sum())
        self.squares += float(np.square(own).sum())
        self.are_integers = self.are_integers and bool((own == np.floor(own)).all())
        return self

    @property
    def effective_size(self) -> float:
        """Effective sample size of the weights, sum(w)^2 / sum(w^2)."""
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    @property
    def overstatement(self) -> float:
        """Total weight divided by the effective sample size."""
        return self.total / self.effective_size if self.squares > 0 else 1.0


def effective_size(weights: AnyArray) -> float:
    """Return the effective sample size of weights, sum(w)^2 / sum(w^2), at least 1."""
    return WeightSums().update(weights, len(weights)).effective_size


def scale_weights(sample_weight: Any) -> FloatArray:
    """Rescale weights that are not counts, so that their sum equals the effective sample size.

    A weight of 2 equals repeating the row. Survey weights, inverse probabilities and other importance weights are not
    counts. Their scale is arbitrary, so if they are used as counts, they overstate or understate the evidence in the
    rows. The effective sample size is Kish's ``sum(w)^2 / sum(w^2)``, the number of equally weighted rows that estimate
    a mean with the same precision.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,)
        Finite, nonnegative weights, which must not all be zero.

    Returns
    -------
    ndarray of shape (n_samples,)
        Weights for ``fit``, which are proportional to the given weights and have the sum ``sum(w)^2 / sum(w^2)``.

    Raises
    ------
    ValueError
        If there is not one number per row, if a weight is negative or not finite, or if all weights are zero.

    References
    ----------
    Kish: Survey sampling. Wiley, 1965.

    Examples
    --------
    >>> from tanlearn import scale_weights
    >>> scale_weights([1000, 1000, 3000, 3000]).round(2).tolist()
    [0.4, 0.4, 1.2, 1.2]
    """
    weights = None if np.ndim(sample_weight) == 0 else read_weights(sample_weight, len(sample_weight))
    if weights is None:
        raise ValueError(f"sample_weight must hold one number per row, got {sample_weight!r}. Pass a list or an array.")
    own = weights / weights.max()
    scaled: FloatArray = own * (own.sum() / np.square(own).sum())
    return scaled


def warn_of_weights(sums: WeightSums, weights: AnyArray | None = None, y: IntArray | None = None) -> None:
    """Warn once per fit if weights do not look like counts of rows.

    The criterion for integers is a sum above 8 times the effective sample size. For other numbers, it is a sum above 2
    times or below half of the effective sample size. ``weights`` and ``y`` (class codes) are optional, and are used to
    detect weights that depend only on the class.
    """
    most = LARGEST_INTEGER_RATIO if sums.are_integers else LARGEST_FRACTIONAL_RATIO
    if not sums.n_rows or 1 / most <= sums.overstatement <= most:
        return
    remedy = "If they are not counts, pass tanlearn.scale_weights(sample_weight)"
    if weights is not None and y is not None and _depend_on_class(weights, y):
        remedy = "Weights that depend only on the class belong in class_weight, which does not change cut points"
    counts = " If they are counts, ignore this warning." if sums.are_integers and sums.overstatement > 1 else ""
    warn(
        f"sample_weight adds up to {sums.total:,.6g} for {sums.n_rows:,} rows, whose effective sample size, "
        f"sum(w)^2 / sum(w^2), is {sums.effective_size:,.4g}. A weight of 2 equals repeating the row, so these weights "
        f"{'overstate' if sums.overstatement > 1 else 'understate'} the evidence, on which cut points, smoothing and "
        f"probabilities depend. {remedy}.{counts}",
        UserWarning,
    )


def _depend_on_class(weights: AnyArray, y: IntArray) -> bool:
    """Return whether all rows of a class have the same weight, but different classes have different weights."""
    present = weights > 0
    weights, y = weights[present], y[present]
    of_class = np.full(int(y.max()) + 1, np.nan)
    of_class[y] = weights
    return bool((of_class[y] == weights).all() and len(np.unique(of_class[~np.isnan(of_class)])) > 1)


def weigh_classes(option: Any, y: IntArray, classes: AnyArray, weights: AnyArray | None) -> AnyArray | None:
    """Return row weights multiplied by class weights. Shape: (n_samples,).

    ``option`` is None, ``"balanced"`` or a dict from class to weight; other classes have weight 1. ``"balanced"`` gives
    all classes the same total and keeps the total of all rows. The result is integer if all weights are.
    """
    if option is None:
        return weights
    if isinstance(option, str):  # "balanced", the only string that parameter validation accepts
        of_class = np.bincount(y, weights, len(classes))
        if of_class.min() * LARGEST_TOTAL < of_class.sum():
            label = classes.tolist()[of_class.argmin()]
            raise ValueError(
                f"class_weight='balanced' cannot balance class {label!r}: the total weight of its rows is only "
                f"{of_class.min():.3g}, out of {of_class.sum():.3g} for all rows. Drop its rows, or give them more "
                f"weight."
            )
        return (1 if weights is None else weights) * (of_class.sum() / len(classes) / of_class)[y]
    known = classes.tolist()
    for label, weight in option.items():
        if label not in known:
            alike = [repr(one) for one in known if str(one) == str(label)]
            remedy = f"Write {alike[0]}, which is another type" if alike else "Leave it out, or correct it"
            raise ValueError(
                f"class_weight must give positive weights to classes of y. It contains {label!r}, which is not in y. "
                f"The classes are {', '.join(map(repr, known))}. {remedy}."
            )
        if not isinstance(weight, (int, float, np.number)) or not 0 < weight < np.inf:
            raise ValueError(
                f"class_weight must give positive weights to classes, got {weight!r} for {label!r}; the classes are "
                f"{', '.join(map(repr, known))}. To leave a class out, drop its rows."
            )
    factors = [option.get(label, 1) for label in known]
    own = np.ones(len(y), np.int64) if weights is None else weights
    with np.errstate(over="ignore"):  # an infinite total raises an error below
        total = float((own * np.array(factors, np.float64)[y]).sum())
    exact = own.dtype.kind == "i" and all(isinstance(factor, (int, np.integer)) for factor in factors)
    if not total < np.iinfo(np.int64).max if exact else not 1 / LARGEST_TOTAL <= total <= LARGEST_TOTAL:
        raise ValueError(
            f"class_weight makes the weights add up to {total:.3g}, which is too {'much' if total > 1 else 'little'}. "
            f"Multiply them by a common factor."
        )
    return own * np.array(factors, np.int64 if exact else np.float64)[y]


def log_frequencies(class_counts: AnyArray) -> FloatArray:
    """Return log class frequencies (n_classes,) with add-one smoothing."""
    counts = class_counts + 1.0
    log_p: FloatArray = np.log(counts / counts.sum())
    return log_p


def own_weights(base_weights: AnyArray | None, weights: AnyArray | None) -> AnyArray | None:
    """Return the row weights before multiplication by class weights, or None if these changed nothing."""
    if weights is None or weights is base_weights:
        return None
    return np.ones(len(weights), np.int64) if base_weights is None else base_weights


def read_prior(class_prior: Any, n_classes: int) -> FloatArray:
    """Validate class probabilities, and return their logarithms (n_classes,). A probability may be 0."""
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


def weights_of_values(codes: Codes, n_states: IntArray, weights: AnyArray) -> list[FloatArray]:
    """Return, for each feature, the weight (n_states,) of the rows with each value. Missing values do not count.

    Shapes: codes: (n_features, n_samples); n_states: (n_features,); weights: (n_samples,).
    """
    return [
        np.bincount(own[seen], weights[seen], n).astype(np.float64)
        for own, n in zip(codes, n_states.tolist(), strict=True)
        for seen in [own < n]
    ]
