"""Plot of the feature importances of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.files.description import feature_names
from tanlearn.forest.plots import plot_importances

__all__ = ["ForestImportanceDisplay"]


class ForestImportanceDisplay:
    """Plot of feature importances: increase of the out-of-fold log loss without a feature, in nats per row.

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
            raise ValueError(f"feature_names must be {len(importances)}, one per feature; got {len(feature_names)}.")
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
            Axes to plot on; by default those of a new figure.

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
                f"{type(estimator).__name__} has no feature_importances_. Pass a fitted BayesForestClassifier."
            )
        return cls(estimator.feature_importances_, feature_names(estimator)).plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = 20) -> ForestImportanceDisplay:
        """Plot the importances as bars, the largest on top.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on; by default those of a new figure.
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
