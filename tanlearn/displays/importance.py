"""What a forest would miss without a feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.files.description import feature_names
from tanlearn.forest.plots import plot_importances

__all__ = ["ForestImportanceDisplay"]


class ForestImportanceDisplay:
    """What leaving a feature out costs left-out rows, in nats a row.

    Parameters
    ----------
    importances : ndarray of shape (n_features,)
        In nats.
    feature_names : sequence of str
        Of the features.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn last.
    figure_ : matplotlib.figure.Figure
        Its figure.

    Raises
    ------
    ValueError
        If there are not as many names as importances.

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
            raise ValueError(f"feature_names must be {len(importances)}, one a feature; got {len(feature_names)}.")
        self.importances, self.feature_names = np.asarray(importances, float), list(feature_names)

    @classmethod
    def from_estimator(cls, estimator: Any, *, most: int = 20, ax: Any = None) -> ForestImportanceDisplay:
        """Draw the importances of a forest.

        Parameters
        ----------
        estimator : BayesForestClassifier
            Fitted.
        most : int, default=20
            Features that are shown at most.
        ax : matplotlib.axes.Axes, optional
            Where to; by default in a new figure.

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
                f"{type(estimator).__name__} has no feature_importances_; a fitted BayesForestClassifier has them."
            )
        return cls(estimator.feature_importances_, feature_names(estimator)).plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = 20) -> ForestImportanceDisplay:
        """Draw the bars, the dearest on top.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to; by default in a new figure.
        most : int, default=20
            Features that are shown at most.

        Returns
        -------
        ForestImportanceDisplay
            This one.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        self.ax_ = plot_importances(self.importances, self.feature_names, ax, most=most)
        self.figure_ = self.ax_.figure
        return self
