"""Plot of held-out errors against the number or the cost of observed features."""

from __future__ import annotations

from typing import Any

from tanlearn._plots import axes_or_new

__all__ = ["AcquisitionCurveDisplay"]

_STYLES: dict[str, dict[str, Any]] = {
    "adaptive": {"label": "best next feature of each row", "color": "#0072b2", "marker": "o"},
    "fixed": {"label": "best fixed order", "color": "#d55e00", "marker": "s", "linestyle": (0, (5, 2))},
    "random": {"label": "random order", "color": "#777777", "marker": "^", "linestyle": (0, (1, 1.2))},
}


class AcquisitionCurveDisplay:
    """Plot of held-out errors against the number of observed features, or against their mean cost.

    Parameters
    ----------
    curve : AcquisitionCurve
        Result of ``acquisition_curve`` of a classifier.

    Attributes
    ----------
    lines_ : dict of str to matplotlib.lines.Line2D
        Lines of the last plot: the curves with the keys "adaptive", "fixed" and "random", and the horizontal line for
        all features with the key "all".
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.displays import AcquisitionCurveDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NaiveBayesClassifier().fit(X[::2], y[::2])
    >>> display = AcquisitionCurveDisplay.from_estimator(model, X[1::2], y[1::2], n_random=0)
    >>> sorted(display.lines_)
    ['adaptive', 'all', 'fixed']
    """

    lines_: dict[str, Any]
    ax_: Any
    figure_: Any

    def __init__(self, curve: Any) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        x: str = "features",
        measure: str = "error",
        ax: Any = None,
        **options: Any,
    ) -> AcquisitionCurveDisplay:
        """Plot the curves of a classifier on held-out rows.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with ``acquisition_curve``.
        X : array-like or frame of shape (n_samples, n_features)
            Held-out rows.
        y : array-like of shape (n_samples,)
            Classes of the rows.
        x : {"features", "cost"}, default="features"
            Horizontal axis: number of observed features, or their mean cost.
        measure : {"error", "log_loss"}, default="error"
            Measure on the vertical axis.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        **options : dict
            Additional arguments of ``acquisition_curve``, such as ``costs`` and ``n_features``.

        Returns
        -------
        AcquisitionCurveDisplay

        Raises
        ------
        TypeError
            If the classifier has no ``acquisition_curve``, because it does not have a single network.
        ValueError
            If an argument is invalid.
        ImportError
            If Matplotlib is not installed.
        """
        if not hasattr(estimator, "acquisition_curve"):
            raise TypeError(
                f"{type(estimator).__name__} has no acquisition_curve, which needs a classifier with a single "
                f"network. Fit, for example, a TANClassifier."
            )
        return cls(estimator.acquisition_curve(X, y, **options)).plot(ax, x=x, measure=measure)

    def plot(self, ax: Any = None, *, x: str = "features", measure: str = "error") -> AcquisitionCurveDisplay:
        """Plot one curve per order, and a horizontal line for all features.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        x : {"features", "cost"}, default="features"
            Horizontal axis: number of observed features, or their mean cost.
        measure : {"error", "log_loss"}, default="error"
            Measure on the vertical axis.

        Returns
        -------
        AcquisitionCurveDisplay
            The display itself.

        Raises
        ------
        ValueError
            If ``x`` or ``measure`` is invalid.
        ImportError
            If Matplotlib is not installed.
        """
        for name, value, allowed in (("x", x, ("features", "cost")), ("measure", measure, ("error", "log_loss"))):
            if value not in allowed:
                raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}.")
        ax = axes_or_new(ax)
        is_error = measure == "error"
        values = self.curve.errors if is_error else self.curve.log_losses
        of_all = 100 * self.curve.error_of_all if is_error else self.curve.log_loss_of_all
        self.lines_ = {}
        for order, numbers in reversed(values.items()):  # the adaptive curve on top
            positions = self.curve.costs[order] if x == "cost" else range(len(numbers))
            heights = 100 * numbers if is_error else numbers
            (self.lines_[order],) = ax.plot(positions, heights, markersize=4, **_STYLES[order])
        label = f"all features: {of_all:.1f} %" if is_error else f"all features: {of_all:.2f}"
        self.lines_["all"] = ax.axhline(of_all, color="black", linewidth=0.8, label=label)
        ax.set_xlabel("observed features" if x == "features" else "mean cost of the observed features")
        ax.set_ylabel("held-out error [%]" if is_error else "held-out log loss [nats]")
        ax.set_ylim(bottom=0)
        if x == "features":
            ax.xaxis.get_major_locator().set_params(integer=True)
        handles = [self.lines_[order] for order in (*values, "all")]
        ax.legend(handles=handles, frameon=False)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
