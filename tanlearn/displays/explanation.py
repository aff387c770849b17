"""Waterfall plot of a prediction: contributions of the features to the log odds of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import FloatArray
from tanlearn.files.description import feature_names
from tanlearn.sources.validation import class_code

__all__ = ["ExplanationDisplay"]

_FOR, _AGAINST, _SUM = "#0072b2", "#d55e00", "#333333"
_PRIOR = "class frequencies"


class ExplanationDisplay:
    """Waterfall plot of one prediction: contributions of the features to the log odds of two classes.

    Parameters
    ----------
    shares : ndarray of shape (n_features + 1,)
        Contributions of the features to the log odds. The last entry is the contribution of the class frequencies.
    labels : sequence of n_features str
        Labels of the features, which contain the values.
    target, against : object
        The two classes whose log odds are shown: ``target`` against ``against``.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.
    bars_ : list of (str, float)
        Labels and lengths of the bars in the last plot, from top to bottom. The lengths add up to ``shares.sum()``.

    Raises
    ------
    ValueError
        If the number of labels is not the number of features, or a contribution is infinite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.displays import ExplanationDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NaiveBayesClassifier().fit(X, y)
    >>> display = ExplanationDisplay.from_estimator(model, X[70:71])
    >>> log_p = model.predict_log_proba(X[70:71])[0]
    >>> bool(abs(sum(length for _, length in display.bars_) - (log_p[2] - log_p[1])) < 1e-9)
    True
    """

    ax_: Any
    figure_: Any
    bars_: list[tuple[str, float]]

    def __init__(self, shares: FloatArray, labels: Sequence[str], *, target: Any, against: Any) -> None:
        if len(shares) != len(labels) + 1:
            raise ValueError(f"labels must have {len(shares) - 1} elements, one fewer than shares, got {len(labels)}.")
        if not np.isfinite(shares).all():
            raise ValueError(
                f"shares must be finite, got {shares[~np.isfinite(shares)][0]}, because a class of probability 0 "
                f"has no log odds. Compare with another class, or smooth the CPTs."
            )
        self.shares = np.asarray(shares, float)
        self.labels = list(labels)
        self.target = target
        self.against = against

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, target: Any = None, against: Any = None, most: int = 10, ax: Any = None
    ) -> ExplanationDisplay:
        """Plot the explanation of the prediction for a row.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with ``explain``.
        X : array-like or frame of shape (1, n_features)
            One row.
        target : class, optional
            Class to explain. The default is the predicted class.
        against : class, optional
            Class with which ``target`` is compared. The default is the most probable other class.
        most : int, default=10
            Maximum number of features with a separate bar. All other features are combined in one bar.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        ExplanationDisplay
            Display whose bars are the contributions of ``explain`` to the log odds of ``target`` against the other
            class. The contributions add up to the difference between the log-probabilities of the two classes in
            ``predict_log_proba``.

        Raises
        ------
        ValueError
            If X does not have exactly one row, a class is unknown, or the two classes are equal.
        TypeError
            If the classifier has no ``explain``.
        ImportError
            If Matplotlib is not installed.
        """
        if not hasattr(estimator, "explain"):
            raise TypeError(
                f"{type(estimator).__name__} has no explain, because its predictions are not sums over "
                f"features. Pass a classifier with the method explain."
            )
        log_p = estimator.predict_log_proba(X)
        if len(log_p) != 1:
            raise ValueError(f"X must have one row, got {len(log_p)}. Pass X[i : i + 1].")
        classes, ranked = estimator.classes_.tolist(), np.argsort(-log_p[0], kind="stable").tolist()
        one = ranked[0] if target is None else class_code(target, estimator.classes_, "target")
        other = next(c for c in ranked if c != one)
        if against is not None:
            other = class_code(against, estimator.classes_, "against")
        if one == other:
            raise ValueError(
                f"target and against must be different classes, but both are {classes[one]!r}. Pass a "
                f"different class for against, or leave it out."
            )
        shares = estimator.explain(X, against=estimator.classes_[other])[0, :, one]
        names, values = feature_names(estimator), _values(X)
        labels = [f"{name} = {_format_value(value)}" for name, value in zip(names, values, strict=True)]
        return cls(shares, labels, target=classes[one], against=classes[other]).plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = 10) -> ExplanationDisplay:
        """Plot the waterfall.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        most : int, default=10
            Maximum number of features with a separate bar. All other features are combined in one bar.

        Returns
        -------
        ExplanationDisplay
            The display itself.

        Raises
        ------
        ValueError
            If ``most`` is not positive.
        ImportError
            If Matplotlib is not installed.
        """
        if most < 1:
            raise ValueError(f"most must be at least 1, got {most}. Pass a positive number, for example most=20.")
        is_new = ax is None
        ax = axes_or_new(ax)
        own, prior = self.shares[:-1], float(self.shares[-1])
        ranked = np.argsort(-np.abs(own), kind="stable")
        shown, rest = ranked[:most], ranked[most:]
        self.bars_ = [(_PRIOR, prior), *((self.labels[i], float(own[i])) for i in shown)]
        if rest.size:
            self.bars_.append((f"{rest.size} other features", float(own[rest].sum())))
        if is_new:
            ax.figure.set_size_inches(8, 1.4 + 0.34 * len(self.bars_))
        at, span = 0.0, float(np.abs(np.cumsum([length for _, length in self.bars_])).max()) or 1.0
        for y, (_, length) in enumerate(self.bars_):
            ax.barh(y, length, left=at, color=_FOR if length >= 0 else _AGAINST, height=0.65)
            end = at + length
            side = 1 if length >= 0 else -1
            ax.text(
                *(end + side * 0.012 * span, y, f"{length:+.2f}"),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize="small",
            )
            ax.plot([end, end], [y, y + 1], color="#999999", linewidth=0.8, zorder=0)
            at = end
        last = len(self.bars_)
        ax.barh(last, at, color=_SUM, height=0.65)
        side = 1 if at >= 0 else -1
        ax.text(
            *(at + side * 0.012 * span, last, f"{at:+.2f}"),
            ha="left" if side > 0 else "right",
            va="center",
            fontsize="small",
            fontweight="bold",
        )
        ax.set_yticks(range(last + 1), [*(label for label, _ in self.bars_), "log odds"])
        ax.invert_yaxis()
        ax.axvline(0, color="black", linewidth=0.8)
        ends = np.cumsum([0.0, *(length for _, length in self.bars_)])
        ax.set_xlim(ends.min() - 0.12 * span, ends.max() + 0.12 * span)
        odds = np.exp(min(abs(at), 700.0))
        winner = self.target if at >= 0 else self.against
        ax.set_title(f"{self.target} rather than {self.against}: {odds:,.3g} to 1 for {winner}", fontsize="medium")
        ax.set_xlabel(f"log odds [nats]: right for {self.target}, left for {self.against}")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _values(X: Any) -> list[Any]:
    """Return the values in the first row."""
    if hasattr(X, "iloc"):
        return list(X.iloc[0])
    if hasattr(X, "row"):  # polars
        return list(X.row(0))
    return list(X[0])


def _format_value(value: Any) -> str:
    """Format a value for a label."""
    if value is None or value != value:  # nan
        return "missing"
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
