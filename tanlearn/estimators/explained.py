"""Explanations of predictions as labeled frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.files.description import feature_names
from tanlearn.models.calibration import Calibration
from tanlearn.models.queries import log_odds
from tanlearn.sources.validation import class_code

__all__ = ["compared", "explanation_frame"]

#: Label of the contribution of the class prior, the last one of each row.
CLASSES = "(classes)"


def explanation_frame(model: Any, X: Any, against: Any, parents: list[list[int]] | None = None) -> Any:
    """Return the contributions of ``explain`` as a frame, one line per row and feature and one for the class prior.

    ``parents`` are the features (-1 for none) that each feature depends on, for a column of their names.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError('explain_frame needs pandas. Install it with: pip install "tanlearn[frames]"') from error
    contributions = model.explain(X, against=against)
    n_samples, n_lines, n_classes = contributions.shape
    names = feature_names(model)
    frame = {
        "row": np.repeat(X.index if isinstance(X, pandas.DataFrame) else np.arange(n_samples), n_lines),
        "feature": [*names, CLASSES] * n_samples,
    }
    if parents is not None:
        given = [", ".join(names[j] for j in row if j >= 0) for row in parents]
        frame["parents"] = [*given, ""] * n_samples
    columns = dict(zip(model.classes_.tolist(), contributions.reshape(-1, n_classes).T, strict=True))
    return pandas.concat([pandas.DataFrame(frame), pandas.DataFrame(columns)], axis=1)


def compared(
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
