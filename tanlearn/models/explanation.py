"""Contributions of features to the prediction of a network, as log probabilities or log odds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.models.calibration import Calibration
from tanlearn.models.log_joint import log_joint
from tanlearn.models.marginalization_limits import most_operations, warn_of_approximations
from tanlearn.models.tables import Tables
from tanlearn.sources.validation import class_code
from tanlearn.structures.structures import Structure

__all__ = ["against_class", "explain", "log_odds"]

#: Features with a missing parent that are explained per block: 13 MB of codes with 784 features.
_PREFIXES = 2**14


def explain(tables: Tables, structure: Structure, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Split the log joint of each row into the contributions of its features, for each class.

    Observed features are added in the order of ``structure.order``, parents before children. The contribution of a
    feature is the log probability of its value, given the class and the observed features before it::

        contribution_i = log p(x_1, ..., x_i | c) - log p(x_1, ..., x_i-1 | c)

    If all parents are observed, the contribution is the CPT entry. The order therefore has no effect in complete rows.
    Missing features contribute 0. The sum over the features and the log prior is the log joint. If earlier features are
    impossible in a class, the sum is -inf, and a feature with a missing parent contributes 0.

    Rows with missing values raise ValueError as in `tanlearn.models.log_joint.log_joint`, and also if the CPTs are not
    normalized (rounded to a few bits, or of a k-tree). In networks that back off, contributions of rows over the limit
    of operations are approximate, and an InexactMarginalizationWarning names these rows.

    Shapes: codes: (n_features, n_samples); result: (n_samples, n_features + 1, n_classes), the log prior last.
    """
    layout, missing = tables.layout, missing_code(codes.dtype)
    n_features, n_samples = codes.shape
    contributions = np.zeros((n_samples, n_features + 1, layout.n_classes))
    contributions[:, -1] = tables.log_prior
    lacks_parent = np.zeros((n_samples, n_features), np.bool_)
    is_hidden = codes == missing
    backs_off = ~tables.is_exact(structure, codes)
    if backs_off.any():
        for i in range(n_features):
            contributions[backs_off, i] = tables.of_rows(i, codes[:, backs_off])
        warn_of_approximations(np.flatnonzero(backs_off).tolist(), most_operations())
    for i in range(n_features):
        family = [i, *layout.parents[i][layout.parents[i] >= 0].tolist()]
        known = ~is_hidden[family].any(axis=0) & ~backs_off
        contributions[known, i] = tables.of_rows(i, codes)[known]
        lacks_parent[:, i] = ~known & ~is_hidden[i] & ~backs_off
    if not tables.is_normalized and is_hidden.any():
        raise ValueError(
            f"row {np.flatnonzero(is_hidden.any(axis=0))[0]} lacks a feature, but CPTs that are not normalized "
            f"(rounded CPTs, k-trees, and sums of terms with several parents) can explain only complete rows. "
            f"Contributions of observed features would include contributions of missing features. Impute the row, "
            f"or explain another network."
        )
    if not lacks_parent.any():
        return contributions
    if not backs_off.any():  # raises for rows that cannot be marginalized exactly, with their row numbers
        log_joint(tables, structure, codes, is_exact=True, n_jobs=n_jobs)
    rank = np.argsort(structure.order)
    samples, features = np.nonzero(lacks_parent)
    for start in range(0, len(samples), _PREFIXES):
        rows, last = samples[start : start + _PREFIXES], features[start : start + _PREFIXES]
        seen = np.ascontiguousarray(codes[:, rows])
        seen[rank[:, np.newaxis] > rank[last]] = missing
        after = log_joint(tables, structure, seen, is_exact=True, n_jobs=n_jobs)
        seen[last, np.arange(len(last))] = missing
        before = log_joint(tables, structure, seen, is_exact=True, n_jobs=n_jobs)
        contributions[rows, last] = np.subtract(after, before, out=np.zeros_like(after), where=before > -np.inf)
    return contributions


def against_class(
    contributions: FloatArray, against: Any, classes: AnyArray, calibration: Calibration | None = None
) -> FloatArray:
    """Convert contributions to log-probabilities into contributions to calibrated log odds against a class.

    Returns ``contributions`` unchanged if ``against`` is None.

    Shapes: contributions and result: (n_samples, n_features + 1, n_classes).
    """
    if against is None:
        return contributions
    other = class_code(against, classes, "against")
    if calibration is not None:  # its shift is added to the class prior
        contributions = contributions.copy()
        contributions[:, -1] = calibration.shifted(contributions[:, -1])
    odds = np.stack([log_odds(contributions, c, other) for c in range(len(classes))], axis=-1)
    if calibration is None or calibration == Calibration():
        return odds
    if calibration.power == 1:
        return odds / calibration.temperature
    log_p = calibration.log_posterior(contributions.sum(axis=1))
    with np.errstate(invalid="ignore"):  # -inf minus -inf, if different features exclude both classes
        total = odds.sum(axis=1)
    # The ratio is numerical noise for nearly equal scores, and undefined for impossible classes.
    is_sound = np.isfinite(total) & (np.abs(total) > 1e-9 * np.abs(odds).sum(axis=1))
    wanted = np.subtract(log_p, log_p[:, [other]], out=np.zeros_like(total), where=is_sound)
    factor = np.full_like(total, 1 / calibration.temperature)
    return odds * np.divide(wanted, total, out=factor, where=is_sound)[:, np.newaxis]


def log_odds(contributions: FloatArray, y: int, against: int) -> FloatArray:
    """Compute the contribution of each feature to the log odds of class ``y`` against another class.

    The contributions sum to log p(y | x) - log p(against | x). A value that is impossible in one of the classes
    contributes inf or -inf. A value that is impossible in both classes contributes 0.

    Shapes: contributions: (n_samples, n_features + 1, n_classes), by `explain`; result: (n_samples, n_features + 1).
    """
    one, other = contributions[..., y], contributions[..., against]
    return np.subtract(one, other, out=np.zeros_like(one), where=(one > -np.inf) | (other > -np.inf))
