"""Plot of a training: loss, structure entropy and validation error for each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tanlearn._plots import axes_or_new
from tanlearn.training.history import EpochReport

__all__ = ["TrainingDisplay"]

_BLUE, _ORANGE, _GREEN = "#0072b2", "#d55e00", "#009e73"


class TrainingDisplay:
    """Plot of training loss, structure entropy and validation error against the epoch.

    Parameters
    ----------
    history : sequence of EpochReport
        Reports of the epochs, usually the attribute ``history_`` of a classifier.

    Attributes
    ----------
    axes_ : list of matplotlib.axes.Axes
        Axes of the last plot, for the loss, the entropy, and the validation error if there is one.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If ``history`` is empty.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import GradientTraining, JointNLL, TANClassifier
    >>> from tanlearn.displays import TrainingDisplay
    >>> training = GradientTraining(validation_fraction=0.2)
    >>> model = TANClassifier(loss=JointNLL(), n_epochs=5, training=training, random_state=0)
    >>> display = TrainingDisplay.from_estimator(model.fit(*load_iris(return_X_y=True)))
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['training loss', 'structure entropy [nats]', 'validation error [%]']
    """

    axes_: list[Any]
    figure_: Any

    def __init__(self, history: Sequence[EpochReport]) -> None:
        if not history:
            raise ValueError(
                "history must contain at least one epoch, got none. Pass history_ of a gradient classifier, which is "
                "trained in epochs."
            )
        self.history = list(history)

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Sequence[Any] | None = None) -> TrainingDisplay:
        """Plot the training of a classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with ``history_``: :class:`~tanlearn.TANClassifier` or :class:`~tanlearn.KTreeClassifier`.
        axes : sequence of matplotlib.axes.Axes, optional
            Two or three axes to plot on. By default, a new figure is created.

        Returns
        -------
        TrainingDisplay

        Raises
        ------
        TypeError
            If the classifier has no ``history_``.
        ValueError
            If there are fewer axes than curves.
        ImportError
            If Matplotlib is not installed.
        """
        reports = estimator.learning_history().get("training") if hasattr(estimator, "learning_history") else None
        if not reports:
            raise TypeError(f"{type(estimator).__name__} has no history_ of epochs. Pass a fitted gradient classifier.")
        return cls(reports).plot(axes)

    def plot(self, axes: Sequence[Any] | None = None) -> TrainingDisplay:
        """Plot the curves.

        Parameters
        ----------
        axes : sequence of matplotlib.axes.Axes, optional
            Axes to plot on, one per curve. By default, a new figure is created.

        Returns
        -------
        TrainingDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are fewer axes than curves.
        ImportError
            If Matplotlib is not installed.
        """
        epochs = [report.epoch for report in self.history]
        curves = [
            ("training loss", [report.loss for report in self.history], _BLUE),
            ("structure entropy [nats]", [report.structure_entropy for report in self.history], _GREEN),
        ]
        errors = [100 * report.validation_error for report in self.history if report.validation_error is not None]
        if len(errors) == len(epochs):
            curves.append(("validation error [%]", errors, _ORANGE))
        if axes is None:
            first = axes_or_new(None)
            figure = first.figure
            first.remove()
            figure.set_size_inches(7, 1.9 * len(curves))
            axes = list(figure.subplots(len(curves), 1, sharex=True))
        axes = list(axes)
        if len(axes) < len(curves):
            raise ValueError(f"axes must contain {len(curves)} axes, one per curve, got {len(axes)}.")
        for ax, (label, numbers, colour) in zip(axes, curves, strict=False):
            ax.plot(epochs, numbers, color=colour)
            ax.set_ylabel(label)
            ax.grid(alpha=0.3)
            ax.spines[["top", "right"]].set_visible(False)
        if len(curves) == 3:
            best = min(range(len(errors)), key=errors.__getitem__)
            axes[2].plot(epochs[best], errors[best], marker="o", color=_ORANGE)
            axes[2].annotate(
                f"minimum: {errors[best]:.2f} %", (epochs[best], errors[best]), (6, 6), textcoords="offset points"
            )
        axes[len(curves) - 1].set_xlabel("epoch")
        self.axes_, self.figure_ = axes[: len(curves)], axes[0].figure
        return self
