"""Reliability diagram: accuracy of predictions as a function of their confidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import AnyArray, FloatArray
from tanlearn.models.log_joint import log_posterior
from tanlearn.sources.validation import encode_labels

__all__ = ["ReliabilityDisplay"]

_AFTER, _BEFORE = "#0072b2", "#999999"


class ReliabilityDisplay:
    """Reliability diagram: accuracy for each bin of confidence, with and without calibration.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples,)
        Probability of the predicted class.
    is_right : ndarray of shape (n_samples,), bool
        Whether the predicted class is correct.
    before : ndarray of shape (n_samples,), optional
        Probability of the predicted class without calibration.
    n_bins : int, default=10
        Number of bins of equal width between 0 and 1.

    Attributes
    ----------
    error_, error_before_ : float
        Expected calibration error with calibration, and without calibration (nan if ``before`` is None). It is the
        absolute difference between mean confidence and accuracy in each bin, averaged over the bins, weighted by their
        numbers of rows.
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If lengths differ, there are no rows, a probability is not between 0 and 1, or ``n_bins`` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.displays import ReliabilityDisplay
    >>> display = ReliabilityDisplay(np.array([0.9, 0.9, 0.6, 0.6]), np.array([True, True, True, False]))
    >>> round(display.error_, 3)  # a half of 0.1, and of 0.1
    0.1
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, confidence: FloatArray, is_right: AnyArray, *, before: FloatArray | None = None, n_bins: int = 10
    ) -> None:
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, got {n_bins}.")
        for numbers in (confidence, before):
            if numbers is None:
                continue
            if np.shape(numbers) != np.shape(is_right) or not np.size(numbers):
                raise ValueError(
                    f"confidence, before and is_right must have the same length, at least 1, got shapes "
                    f"{np.shape(numbers)} and {np.shape(is_right)}."
                )
            if not (np.min(numbers) >= 0 and np.max(numbers) <= 1):
                raise ValueError(f"probabilities must be from 0 to 1, got {np.min(numbers)} to {np.max(numbers)}.")
        self.confidence = np.asarray(confidence, float)
        self.is_right = np.asarray(is_right, bool)
        self.before = None if before is None else np.asarray(before, float)
        self.n_bins = n_bins
        self.error_ = self._error(self.confidence)
        self.error_before_ = np.nan if self.before is None else self._error(self.before)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None) -> ReliabilityDisplay:
        """Plot the reliability of a classifier on test rows.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier.
        X : array-like or frame of shape (n_samples, n_features)
            Test rows.
        y : array-like of shape (n_samples,)
            Classes of the rows.
        n_bins : int, default=10
            Number of bins of equal width between 0 and 1.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError
            If there are no rows, the lengths of X and y differ, or y contains an unknown class.
        ImportError
            If Matplotlib is not installed.
        """
        p = estimator.predict_proba(X)
        is_right = p.argmax(axis=1) == encode_labels(y, len(p), estimator.classes_)
        before = None
        if hasattr(estimator, "calibration_") and hasattr(estimator, "predict_joint_log_proba"):
            scores = estimator.predict_joint_log_proba(X)
            # For rows of probability zero, the class probabilities are predicted, with and without calibration.
            before = np.where(np.isneginf(scores).all(axis=1), p.max(axis=1), np.exp(log_posterior(scores).max(axis=1)))
        return cls(p.max(axis=1).clip(0, 1), is_right, before=before, n_bins=n_bins).plot(ax)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Plot the curves, and a histogram of the confidences below the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        ReliabilityDisplay
            The display itself.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        is_new = ax is None
        ax = axes_or_new(ax)
        if is_new:
            ax.figure.set_size_inches(5.5, 6.3)
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=(0, (4, 3)), label="perfect calibration")
        ways = [(self.confidence, _AFTER, "as predicted", self.error_)]
        if self.before is not None and not np.array_equal(self.before, self.confidence):
            ways = [(self.before, _BEFORE, "without calibration", self.error_before_), *ways]
        for numbers, colour, label, error in ways:
            rows, confidence_sums, right = self._bins(numbers)
            there = rows > 0
            ax.plot(
                confidence_sums[there] / rows[there],
                right[there] / rows[there],
                color=colour,
                marker="o",
                markersize=4,
                label=f"{label}: expected calibration error {error:.3f}",
            )
        rows = self._bins(self.confidence)[0]
        ax.bar(
            (np.arange(self.n_bins) + 0.5) / self.n_bins,
            0.25 * rows / rows.max(),
            width=0.9 / self.n_bins,
            color=_AFTER,
            alpha=0.2,
            label=f"rows ({int(rows.sum()):,})",
        )
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="confidence", ylabel="accuracy", aspect="equal")
        ax.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _bins(self, confidence: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the number of rows, the sum of confidences and the number of correct predictions per bin."""
        bin_of = np.minimum((confidence * self.n_bins).astype(int), self.n_bins - 1)
        ones, right = np.ones(len(bin_of)), self.is_right.astype(float)
        of_rows: list[FloatArray] = [ones, confidence, right]
        rows, confidence_sums, hits = (np.bincount(bin_of, weights, self.n_bins).astype(float) for weights in of_rows)
        return rows, confidence_sums, hits

    def _error(self, confidence: FloatArray) -> float:
        """Return the expected calibration error."""
        rows, confidence_sums, right = self._bins(confidence)
        return float(np.abs(confidence_sums - right).sum() / rows.sum())
