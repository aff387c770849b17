"""Plot of the progress of learners: scores and held-out errors against seconds, evaluations or steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import FloatArray
from tanlearn.displays.styles import learner_styles

__all__ = ["ConvergenceDisplay"]

_X_LABELS = {
    "seconds": "time [s]",
    "n_evaluations": "evaluations (structures of searches, epochs or iterations of trainings)",
    "step": "step or epoch",
}
#: Parameters of classifiers that contain the loss of each stage.
_LOSSES = {"parameters": "parameters__loss", "training": "loss"}
_GREY = "#666666"
#: Factor between the ends of the curves above which the horizontal axis is logarithmic. On a linear axis, the curve of
#: the fastest learner would then be shorter than a twentieth of the width.
_LOG_FROM = 20


class ConvergenceDisplay:
    r"""Plot of the scores and held-out errors of learners over time, evaluations or steps.

    Scores of different objectives, such as a margin and a loss, cannot share an axis. If there are several curves, each
    score is therefore scaled to 0 at the first entry of its history, and to 1 at the best entry. The curves then show
    how fast each learner reaches its own optimum. To compare the results of learners, use the errors.

    The end of an error curve may differ from its marker. The curve shows intermediate models (see
    :meth:`~tanlearn.BayesNetClassifier.learning_errors`). The marker shows the fitted classifier, for example after
    calibration and refits. A dotted line connects the curve and the marker.

    Parameters
    ----------
    histories : dict of str to sequence of entries
        Dictionary from learners to histories. Entries have the attributes ``step``, ``score``, ``n_evaluations`` and
        ``seconds``, as in :meth:`~tanlearn.BayesNetClassifier.learning_history`. A learner without a search has an
        empty history.
    errors : dict of str to sequence of (entry, float), optional
        Dictionary from learners to held-out errors (from 0 to 1) at some entries of their histories.
    final_errors : dict of str to float, optional
        Dictionary from learners to held-out errors (from 0 to 1) of the fitted classifiers. An error is drawn at the
        end of the curve, or as a horizontal line if the history of the learner is empty.
    objectives : dict of str to str, optional
        Dictionary from learners to names of their scores, which are used for the label of the axis or the legend.
    x : {"seconds", "n_evaluations", "step"}, default="seconds"
        Horizontal axis. It is logarithmic if the ends of the curves differ by more than a factor of 20.
    share_score : bool, default=False
        Draw the scores unscaled on one axis. Use it only for learners with the same objective on the same rows.

    Attributes
    ----------
    axes_ : list of matplotlib.axes.Axes
        Axes of the last plot: one for the scores if any learner has a history, and one for the held-out errors if there
        are any.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If there is nothing to draw, ``x`` is unknown, an error is not between 0 and 1, or a learner has errors but no
        history.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import BayesNetClassifier, TANClassifier
    >>> from tanlearn.baselines import GreedySearch
    >>> from tanlearn.displays import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {
    ...     "greedy": BayesNetClassifier(structure=GreedySearch(score="margin")).fit(X[::2], y[::2]),
    ...     "gradient": TANClassifier(n_epochs=5, random_state=0).fit(X[::2], y[::2]),
    ... }
    >>> display = ConvergenceDisplay.from_estimators(models, X[::2], y[::2], X[1::2], y[1::2], x="n_evaluations")
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['score,\nscaled to its range', 'held-out error [%]']
    """

    axes_: list[Any]
    figure_: Any

    def __init__(
        self,
        histories: Mapping[str, Sequence[Any]],
        *,
        errors: Mapping[str, Sequence[tuple[Any, float]]] | None = None,
        final_errors: Mapping[str, float] | None = None,
        objectives: Mapping[str, str] | None = None,
        x: str = "seconds",
        share_score: bool = False,
    ) -> None:
        if x not in _X_LABELS:
            raise ValueError(f"x must be one of {', '.join(map(repr, _X_LABELS))}, got {x!r}.")
        self.histories = {name: list(history) for name, history in histories.items()}
        self.errors = {name: list(pairs) for name, pairs in (errors or {}).items() if len(pairs)}
        self.final_errors = dict(final_errors or {})
        self.objectives = dict(objectives or {})
        self.x, self.share_score = x, share_score
        unknown = [name for name in (*self.errors, *self.final_errors) if name not in self.histories]
        empty = [name for name, history in self.histories.items() if not history]
        if unknown or any(name in empty for name in self.errors):
            name = unknown[0] if unknown else next(name for name in self.errors if name in empty)
            raise ValueError(
                f"errors must belong to learners with a history, but {name!r} has none. Remove {name!r} from errors."
            )
        invisible = [name for name in empty if name not in self.final_errors]
        if invisible or not self.histories:
            raise ValueError(
                f"each learner must have a history or a final error to draw, but {_listed(invisible)}. Leave out "
                f"learners without a search, and searches that found no improvement, or pass X, y, X_test and y_test "
                f"to draw their error as a line."
            )
        for name, error in self._all_errors():
            if not 0 <= error <= 1:
                raise ValueError(f"errors must be from 0 to 1, got {error} for {name!r}.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        X_test: Any = None,
        y_test: Any = None,
        *,
        x: str = "seconds",
        n_points: int = 20,
        axes: Sequence[Any] | None = None,
    ) -> Self:
        """Plot the learning history of one classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier.
        X : array-like or frame of shape (n_samples, n_features), optional
            Rows that were used in ``fit``. If they and the test rows are given, held-out errors along the search are
            computed.
        y : array-like of shape (n_samples,), optional
            Classes of the rows of ``X``.
        X_test : array-like or frame of shape (n_test, n_features), optional
            Held-out rows. If they are not given, the errors of a gradient classifier on its validation rows are drawn.
        y_test : array-like of shape (n_test,), optional
            Classes of the held-out rows.
        x : {"seconds", "n_evaluations", "step"}, default="seconds"
            Horizontal axis.
        n_points : int, default=20
            Maximum number of structures along a search for which the error is computed.
        axes : sequence of matplotlib.axes.Axes, optional
            Axes to plot on, one for the scores and one for the errors. By default, a new figure is created.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            As in :meth:`from_estimators`.
        ImportError
            If Matplotlib is not installed.
        """
        estimators = {type(estimator).__name__: estimator}
        return cls.from_estimators(estimators, X, y, X_test, y_test, x=x, n_points=n_points, axes=axes)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Any = None,
        y: Any = None,
        X_test: Any = None,
        y_test: Any = None,
        *,
        x: str = "seconds",
        n_points: int = 20,
        share_score: bool = False,
        axes: Sequence[Any] | None = None,
    ) -> Self:
        """Plot the learning histories of several classifiers.

        Parameters
        ----------
        estimators : dict of str to classifier
            Dictionary from names to fitted classifiers. Classifiers of other libraries have no history. If a classifier
            has several stages ("structure" and "parameters"), each stage has its own curve.
        X : array-like or frame of shape (n_samples, n_features), optional
            Rows that were used to fit all classifiers. If they and the test rows are given, held-out errors along the
            searches are computed by :meth:`~tanlearn.BayesNetClassifier.learning_errors`.
        y : array-like of shape (n_samples,), optional
            Classes of the rows of ``X``.
        X_test : array-like or frame of shape (n_test, n_features), optional
            Held-out rows. If they are not given, the errors of gradient classifiers on their own validation rows are
            drawn.
        y_test : array-like of shape (n_test,), optional
            Classes of the held-out rows.
        x : {"seconds", "n_evaluations", "step"}, default="seconds"
            Horizontal axis. Seconds, evaluations and steps are counted from the start of each stage. Seconds are
            measured during the last fit, without the compilation of kernels. The first fit of a process may still be
            slower, because it imports modules. Fit twice if hundredths of a second matter.
        n_points : int, default=20
            Maximum number of structures along a search for which the error is computed.
        share_score : bool, default=False
            Draw the scores unscaled on one axis. Use it only for learners with the same objective on the same rows.
        axes : sequence of matplotlib.axes.Axes, optional
            Axes to plot on, one for the scores and one for the errors. By default, a new figure is created.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If only some of ``X``, ``y``, ``X_test`` and ``y_test`` are given, or if a classifier has no history and
            there are no test rows to compute its error.
        ImportError
            If Matplotlib is not installed.
        """
        rows = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
        missing = [name for name, value in rows.items() if value is None]
        if 0 < len(missing) < len(rows):
            raise ValueError(
                f"errors along the search need X, y, X_test and y_test, but {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing. Pass all four, or none of them."
            )
        histories: dict[str, Sequence[Any]] = {}
        errors: dict[str, Sequence[tuple[Any, float]]] = {}
        final_errors = {}
        objectives: dict[str, str] = {}
        for name, estimator in estimators.items():
            # Classifiers of other libraries have no history.
            stages: dict[str, list[Any]] = getattr(estimator, "learning_history", dict)()
            found = _own_errors(stages)
            if stages and not missing:
                found = estimator.learning_errors(X, y, X_test, y_test, n_points=n_points)
            stages = stages or {"": []}
            labels = {stage: name if len(stages) == 1 else f"{name}, {stage}" for stage in stages}
            objectives |= {labels[stage]: name for stage, name in _objectives(estimator, stages).items()}
            histories |= {labels[stage]: history for stage, history in stages.items()}
            errors |= {labels[stage]: pairs for stage, pairs in found.items()}
            if not missing:
                final_errors[list(labels.values())[-1]] = 1.0 - float(estimator.score(X_test, y_test))
        display = cls(
            histories, errors=errors, final_errors=final_errors, objectives=objectives, x=x, share_score=share_score
        )
        return display.plot(axes)

    def plot(self, axes: Sequence[Any] | None = None) -> Self:
        """Plot the curves.

        Parameters
        ----------
        axes : sequence of matplotlib.axes.Axes, optional
            Axes to plot on, one for the scores and one for the errors. By default, a new figure is created.

        Returns
        -------
        ConvergenceDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are fewer axes than needed.
        ImportError
            If Matplotlib is not installed.
        """
        has_scores, has_errors = any(self.histories.values()), bool(self.errors or self.final_errors)
        n_axes = has_scores + has_errors
        if axes is None:
            first = axes_or_new(None)
            figure = first.figure
            first.remove()
            figure.set_size_inches(7.5, 2.4 * n_axes + 0.4)
            axes = list(figure.subplots(n_axes, 1, sharex=True, squeeze=False)[:, 0])
        axes = list(axes)
        if len(axes) < n_axes:
            raise ValueError(
                f"axes must contain {n_axes} axes, one for the scores and one for the errors, got {len(axes)}."
            )
        axes = axes[:n_axes]
        styles = learner_styles(self.histories)
        if has_scores:
            self._plot_scores(axes[0], styles)
        if has_errors:
            self._plot_errors(axes[-1], styles)
        scale = self._scale()
        for ax in axes:
            ax.set_xscale(scale)
            ax.grid(alpha=0.3)
            ax.spines[["top", "right"]].set_visible(False)
        axes[-1].set_xlabel(_X_LABELS[self.x])
        if len(self.histories) > 1:
            self._add_legend(axes[0], styles)
        else:
            axes[0].set_title(*self.histories, fontsize="medium")
        if self.final_errors and has_scores:
            self._explain_errors(axes[-1])
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return the points of the score curves as they are drawn.

        Returns
        -------
        dict of str to (ndarray, ndarray)
            For each learner, the positions on the horizontal axis and the scores. Scores are scaled if there are
            several curves and ``share_score`` is False.
        """
        is_scaled = self._is_scaled()
        found = {}
        for name, history in self.histories.items():
            if history:
                scores = np.array([entry.score for entry in history], float)
                found[name] = self._positions(history), _scaled(scores) if is_scaled else scores
        return found

    def _is_scaled(self) -> bool:
        """Return whether scores are scaled. This is the case if there are several curves with different objectives."""
        return not self.share_score and sum(map(bool, self.histories.values())) > 1

    def _positions(self, entries: Sequence[Any]) -> FloatArray:
        """Return the positions of entries on the horizontal axis."""
        return np.array([getattr(entry, self.x) for entry in entries], float)

    def _scale(self) -> str:
        """Return the scale of the horizontal axis."""
        ends = [self._positions(history[-1:])[0] for history in self.histories.values() if history]
        return "log" if ends and min(ends) > 0 and max(ends) > _LOG_FROM * min(ends) else "linear"

    def _all_errors(self) -> list[tuple[str, float]]:
        """Return all errors with the names of their learners."""
        return [(name, error) for name, pairs in self.errors.items() for _, error in pairs] + [
            *self.final_errors.items()
        ]

    def _plot_scores(self, ax: Any, styles: dict[str, dict[str, Any]]) -> None:
        """Plot the scores as steps, because a score is valid until the next entry."""
        for name, (positions, scores) in self.curves().items():
            ax.plot(positions, scores, drawstyle="steps-post", markevery=[len(scores) - 1], label=name, **styles[name])
        objectives = {self.objectives.get(name, "") for name, history in self.histories.items() if history}
        objective = f"score\n({', '.join(objectives)})" if len(objectives) == 1 and all(objectives) else "score"
        ax.set_ylabel(f"{objective},\nscaled to its range" if self._is_scaled() else objective)

    def _plot_errors(self, ax: Any, styles: dict[str, dict[str, Any]]) -> None:
        """Plot the errors, with a marker for the fitted classifier at the end of its curve."""
        for name, pairs in self.errors.items():
            positions, percent = self._positions([entry for entry, _ in pairs]), [100 * error for _, error in pairs]
            ax.plot(positions, percent, drawstyle="steps-post", **styles[name] | {"marker": ""})
        for name, error in self.final_errors.items():
            history, style = self.histories[name], styles[name] | {"linestyle": ":", "linewidth": 1.0}
            if not history:
                ax.axhline(100 * error, **styles[name] | {"marker": ""})
                continue
            (position,) = self._positions(history[-1:])
            last = self.errors[name][-1][1] if name in self.errors else error
            ax.plot([position, position], [100 * last, 100 * error], markevery=[1], markersize=7, **style)
        ax.set_ylabel("held-out error [%]" if self.final_errors else "validation error [%]")

    def _add_legend(self, ax: Any, styles: dict[str, dict[str, Any]]) -> None:
        """If there are several learners, add a legend next to the axes."""
        from matplotlib.lines import Line2D

        several = len({*self.objectives.values()}) > 1
        names = []
        for name, style in styles.items():
            label = f"{name}\n({self.objectives[name]})" if several and name in self.objectives else name
            names.append(Line2D([], [], label=label, **style | ({} if self.histories[name] else {"marker": ""})))
        options = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.02), "handlelength": 3.5}
        ax.legend(handles=names, frameon=False, fontsize="small", **options)

    def _explain_errors(self, ax: Any) -> None:
        """Add a legend for curves and markers above the axes of errors."""
        from matplotlib.lines import Line2D

        marker = Line2D([], [], color=_GREY, marker="o", linestyle=":", linewidth=1.0, label="fitted classifier")
        curve = Line2D([], [], color=_GREY, label="intermediate models")
        side, x = (
            ("left", 0.0) if len(self.histories) > 1 else ("right", 1.0)
        )  # without the names of learners, which are to the right
        options = {"loc": f"lower {side}", "bbox_to_anchor": (x, 1.0), "borderaxespad": 0.2, "ncols": 2}
        options |= {"handlelength": 1.4, "columnspacing": 1.0, "fontsize": "small", "frameon": False}
        ax.legend(handles=[curve, marker] if self.errors else [marker], **options)


def _scaled(scores: FloatArray) -> FloatArray:
    """Scale scores to 0 at the first and 1 at the best entry. Return ones if no entry is better than the first."""
    first, best = scores[0], scores.max()
    return np.ones(len(scores)) if best == first else (scores - first) / (best - first)


def _objectives(estimator: Any, stages: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of the score of each stage: the score of a search, or minus the loss of a training."""
    params = estimator.get_params() if stages else {}
    found = {stage: f"minus {_class_name(params.get(name), 'the loss')}" for stage, name in _LOSSES.items()}
    score = params.get("structure__score")
    if score is not None:
        found["structure"] = score if isinstance(score, str) else _class_name(score, "")
    return {stage: name for stage, name in found.items() if stage in stages}


def _class_name(value: Any, default: str) -> str:
    """Return the name of the class of a setting, or the default for None."""
    return default if value is None else type(value).__name__


def _own_errors(stages: Mapping[str, Sequence[Any]]) -> dict[str, list[tuple[Any, float]]]:
    """Return the validation errors in the reports of gradient trainings with validation rows."""
    pairs = [(report, report.validation_error) for report in stages.get("training", [])]
    return {"training": pairs} if pairs and pairs[0][1] is not None else {}


def _listed(names: Sequence[str]) -> str:
    """Return a phrase with the learners that cannot be drawn."""
    return f"{', '.join(map(repr, names))} has neither" if names else "there are no learners"
