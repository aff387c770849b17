"""Plot of a Pareto front: held-out errors against model sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import FloatArray, IntArray

__all__ = ["ParetoDisplay"]


class ParetoDisplay:
    """Plot of the held-out errors of classifiers against the sizes of their CPTs.

    Parameters
    ----------
    sizes : ndarray of shape (n_classifiers,)
        Sizes of the CPTs in bits.
    errors : ndarray of shape (n_classifiers,)
        Held-out errors from 0 to 1, or nan for failed trainings.
    front : ndarray of shape (n_front,), int
        Positions of the classifiers on the Pareto front, in order of increasing size.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If the number of errors differs from the number of sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.displays import ParetoDisplay
    >>> display = ParetoDisplay(np.array([1e3, 2e3, 4e3]), np.array([0.3, 0.35, 0.1]), np.array([0, 2])).plot()
    >>> display.ax_.get_xlabel()
    'size of the tables [bits]'
    """

    ax_: Any
    figure_: Any

    def __init__(self, sizes: FloatArray, errors: FloatArray, front: IntArray) -> None:
        if np.shape(sizes) != np.shape(errors):
            raise ValueError(f"sizes and errors must have equal shapes, got {np.shape(sizes)} and {np.shape(errors)}.")
        self.sizes, self.errors, self.front = sizes, errors, front

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ParetoDisplay:
        """Plot the result of a search.

        Parameters
        ----------
        estimator : ParetoFront
            Result of :func:`~tanlearn.pareto_search`.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        ParetoDisplay

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        results = estimator.cv_results
        return cls(results["mean_size_bits"], 1 - results["mean_test_score"], estimator.front).plot(ax)

    def plot(self, ax: Any = None) -> ParetoDisplay:
        """Plot all classifiers and the front.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        ParetoDisplay
            The display itself.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        points = np.column_stack([self.sizes, 100 * self.errors])
        ax.scatter(*points.T, s=16, color="#999999", label="all")
        ax.plot(*points[self.front].T, color="#0072b2", marker="o", label="Pareto front")
        ax.set(xscale="log", xlabel="size of the tables [bits]", ylabel="held-out error [%]")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
