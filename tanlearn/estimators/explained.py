"""Explanations of predictions as labeled frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.validation import class_code
from tanlearn.files.description import feature_names
from tanlearn.network.calibration import Calibration
from tanlearn.network.queries import log_odds

__all__ = ["ExplanationMixin", "compared"]

#: Label of the contribution of the class prior, the last one of each row.
CLASSES = "(classes)"


class ExplanationMixin:
    """``explain_frame`` for classifiers with ``explain``."""

    classes_: AnyArray

    def explain_frame(self, X: Any, *, against: Any = None) -> Any:
        """Return the contributions of ``explain`` as a frame with names.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Return log odds against this class instead of log-probabilities; they add up to the log odds of
            ``predict_proba``.

        Returns
        -------
        pandas.DataFrame
            One line per row and feature, and one line ``"(classes)"`` per row for the class prior. The columns are
            ``row`` (index of a pandas frame, or row number), ``feature``, ``parents`` (comma-separated names, only for
            classifiers with a single structure), and each class.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0]]
        >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home"])
        >>> model.explain_frame([["sun", 29.0]], against="home").drop(columns="parents").round(2)
           row    feature  beach  home
        0    0         x0   0.98   0.0
        1    0         x1   0.00   0.0
        2    0  (classes)  -0.41   0.0
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError('explain_frame needs pandas. Install it with: pip install "tanlearn[frames]"') from error
        shares = self.explain(X, against=against)  # type: ignore[attr-defined]
        n_samples, n_lines, n_classes = shares.shape
        names = feature_names(self)
        frame = {
            "row": np.repeat(X.index if isinstance(X, pandas.DataFrame) else np.arange(n_samples), n_lines),
            "feature": [*names, CLASSES] * n_samples,
        }
        if hasattr(self, "structure_"):
            parents = [", ".join(names[j] for j in row if j >= 0) for row in self.structure_.parents.tolist()]
            frame["parents"] = [*parents, ""] * n_samples
        columns = dict(zip(self.classes_.tolist(), shares.reshape(-1, n_classes).T, strict=True))
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
