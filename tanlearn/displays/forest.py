"""Plots of a forest: importances of features, and dependences between features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import FloatArray
from tanlearn.files.description import feature_names

__all__ = ["ForestImportanceDisplay", "plot_dependences", "plot_importances"]

_BLUE = "#0072b2"


class ForestImportanceDisplay:
    """Plot of feature importances: increase in the out-of-fold log loss, in nats per row, if a feature is left out.

    Parameters
    ----------
    importances : ndarray of shape (n_features,)
        Importances in nats.
    feature_names : sequence of str
        Names of the features.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If the numbers of names and importances differ.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import BayesForestClassifier
    >>> from tanlearn.displays import ForestImportanceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = BayesForestClassifier(n_estimators=4, random_state=0).fit(X, y)
    >>> len(ForestImportanceDisplay.from_estimator(forest).ax_.patches)
    4
    """

    ax_: Any
    figure_: Any

    def __init__(self, importances: FloatArray, feature_names: Sequence[str]) -> None:
        if len(importances) != len(feature_names):
            raise ValueError(
                f"feature_names must contain {len(importances)} names, one per feature, got {len(feature_names)}."
            )
        self.importances, self.feature_names = np.asarray(importances, float), list(feature_names)

    @classmethod
    def from_estimator(cls, estimator: Any, *, most: int = 20, ax: Any = None) -> ForestImportanceDisplay:
        """Plot the importances of a forest.

        Parameters
        ----------
        estimator : BayesForestClassifier
            Fitted forest.
        most : int, default=20
            Maximum number of features to show.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        ForestImportanceDisplay

        Raises
        ------
        TypeError
            If the classifier has no importances.
        ImportError
            If Matplotlib is not installed.
        """
        if not hasattr(estimator, "feature_importances_"):
            raise TypeError(
                f"{type(estimator).__name__} has no feature_importances_. Pass a fitted BayesForestClassifier, or "
                f"forest_ of a BayesEnsembleClassifier."
            )
        return cls(estimator.feature_importances_, feature_names(estimator)).plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = 20) -> ForestImportanceDisplay:
        """Plot the importances as bars, with the largest at the top.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        most : int, default=20
            Maximum number of features to show.

        Returns
        -------
        ForestImportanceDisplay
            The display itself.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        self.ax_ = plot_importances(self.importances, self.feature_names, ax, most=most)
        self.figure_ = self.ax_.figure
        return self


def plot_importances(importances: FloatArray, names: Sequence[str], ax: Any = None, *, most: int = 20) -> Any:
    """Draw the ``most`` largest feature importances (n_features,), in nats, as bars, from top to bottom."""
    ax = axes_or_new(ax)
    shown = np.argsort(-importances, kind="stable")[:most]
    ax.barh(np.arange(len(shown)), importances[shown], color=_BLUE)
    ax.set_yticks(np.arange(len(shown)), [names[i] for i in shown])
    ax.invert_yaxis()
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set_xlabel("increase in the log loss without the feature [nats per row]")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_dependences(strengths: FloatArray, names: Sequence[str], ax: Any = None, *, most: int = 20) -> Any:
    """Draw a heat map of dependences between features, with one row per parent and one column per child.

    ``strengths`` (n_features, n_features) are in nats. Only the ``most`` features with the strongest dependences are
    shown, in the order of the columns. The diagonal is left out, and negative strengths are white.
    """
    ax = axes_or_new(ax)
    own = np.eye(len(strengths), dtype=bool)
    between = np.where(own, 0.0, strengths)
    shown = np.sort(np.argsort(-(between.sum(axis=0) + between.sum(axis=1)), kind="stable")[:most])
    part = np.ix_(shown, shown)
    image = ax.imshow(np.ma.masked_array(between[part], own[part]), cmap="Blues", vmin=0.0)
    ax.set_facecolor("#eeeeee")  # color of masked entries
    labels = [names[i] for i in shown]
    ax.set_xticks(np.arange(len(shown)), labels, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(len(shown)), labels)
    ax.set(xlabel="child", ylabel="parent")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, label="contribution of the child given the parent [nats per row]")
    return ax
