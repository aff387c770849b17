"""Plot of the contribution of a feature to the log odds of a class, over its raw values."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._plots import axes_or_new
from tanlearn._typing import Codes, FloatArray, IntArray
from tanlearn.displays.feature_values import FeatureValues, feature_values, shortened
from tanlearn.displays.names import feature_number
from tanlearn.displays.styles import COLORS
from tanlearn.models.contributions import Contributions
from tanlearn.sources.columns import read_columns
from tanlearn.sources.frames import check_names
from tanlearn.sources.validation import class_code, row_weights

__all__ = ["ContributionDisplay", "EncodedRows", "classes_of", "encode_for_display", "odds_label", "wrapped"]

_GREY = "#666666"
#: Height of the distribution of the rows, as a fraction of the axes.
_STRIP = 0.14
#: Bands longer than this multiple of the range of the curves are truncated.
_MOST_BAND = 1.0
#: Standard errors to each side in a band. Two of them contain 95 % of a normal distribution.
_N_ERRORS = 2
_ROWS_LABEL = "rows"
_BAND_LABEL = f"± {_N_ERRORS} standard errors"
#: Maximum number of classes in a plot, because colors of more classes would repeat.
_MOST_CLASSES = len(COLORS)
#: Characters per inch of a label, and minimum number in a line; characters per inch of a legend, and width of a symbol.
_PER_INCH, _FEWEST = 12, 18
_LEGEND_PER_INCH, _SYMBOL = 15, 6


class ContributionDisplay:
    """Plot of the contribution of each value of a feature to the log odds of a class, relative to the mean.

    Create the plot with :meth:`from_estimator`. A numeric feature is plotted as a curve over its raw values, with steps
    at the cut points. A categorical feature is plotted as bars. A value with a contribution above 0 is evidence for the
    class. Contributions are in nats, the unit of the natural logarithm. A contribution of 0.7 doubles the odds. The
    distribution of the rows is drawn in gray below or next to the contributions.

    Parameters
    ----------
    contributions : array-like of shape (n_values, n_curves)
        Contributions in nats, with one curve per class.
    values : FeatureValues
        Intervals or categories of the feature.
    classes : sequence of n_curves objects
        Class of each curve.
    against : object, default="the others"
        Class with which ``classes`` are compared, or a name for several classes.
    standard_errors : array-like of shape (n_values, n_curves), optional
        Standard errors of the contributions. Bands and error bars extend two standard errors in both directions.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If the shapes of the arguments do not match, or a contribution is not finite.

    See Also
    --------
    PairContributionDisplay : Heat map of the contribution of a pair of features, beyond each feature alone.

    Notes
    -----
    The log odds of a class against all other classes are the log probability of the class minus the mean log
    probability of the other classes. The log odds of a complete row are the sum of a constant, the contributions of all
    features, and the contributions of all pairs of features that share a CPT
    (:class:`~tanlearn.displays.PairContributionDisplay`). CPTs of three or more features also have contributions of
    three or more features, which cannot be plotted.

    The CPT of a feature with a parent contains the contributions of both features and of their pair. The functional
    ANOVA [1]_ separates these contributions. For each value of either feature, the contribution of the pair then has
    mean 0 over the complete rows with this value, plus one row for smoothing. The method ``explain`` does not separate
    the contribution of the pair. If the network has no edges, the curve equals the contributions of ``explain``,
    shifted to mean 0.

    References
    ----------
    .. [1] Lengerich, Tan, Chang, Hooker, Caruana: Purifying interaction effects with the functional ANOVA. AISTATS
       2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import TermNetClassifier
    >>> from tanlearn.displays import ContributionDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TermNetClassifier(max_parents=0).fit(X, y)
    >>> display = ContributionDisplay.from_estimator(model, X, "petal length (cm)", target=2)
    >>> curve = display.contributions[:, 0]
    >>> bool(curve[0] < 0 < curve[-1])  # long petals are evidence for class 2, virginica
    True
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        contributions: Any,
        values: FeatureValues,
        *,
        classes: Sequence[Any],
        against: Any = "the others",
        standard_errors: Any = None,
    ) -> None:
        self.contributions = np.asarray(contributions, np.float64)
        self.values = values
        self.classes = list(classes)
        self.against = against
        self.standard_errors = None if standard_errors is None else np.asarray(standard_errors, np.float64)
        shape = values.n_values, len(self.classes)
        for name, numbers in (("contributions", self.contributions), ("standard_errors", self.standard_errors)):
            if numbers is not None and numbers.shape != shape:
                raise ValueError(
                    f"{name} must have shape {shape}, with one row per value of {values.feature!r} and one column per "
                    f"class, got {numbers.shape}."
                )
            if numbers is not None and not np.isfinite(numbers).all():
                value, curve = np.argwhere(~np.isfinite(numbers))[0].tolist()
                raise ValueError(f"{name} must be finite, got {numbers[value, curve]} in row {value}.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        feature: Any,
        *,
        target: Any = None,
        sample_weight: Any = None,
        most: int = 20,
        ax: Any = None,
    ) -> ContributionDisplay:
        """Plot the contribution of a feature in a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with a single network.
        X : array-like or frame of shape (n_samples, n_features)
            Rows, usually the rows of ``fit``. The plot shows their distribution, and contributions have mean 0 over
            these rows.
        feature : int or str
            Name of the feature, or its column number from 0.
        target : class, optional
            Class whose log odds are plotted. If there are two classes, the default is the second class. If there are
            more classes, the default is one curve for each class, or for the seven classes to which the feature
            contributes most.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        most : int, default=20
            Maximum number of categories to show. The most frequent categories are shown.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        ContributionDisplay
            The display. Its ``figure_`` can be saved, and ``contributions`` contains the numbers. It has standard
            errors if the classifier estimates them, as :class:`~tanlearn.TermNetClassifier` does (see
            ``standard_errors_``). Contributions are divided by the temperature of ``calibration_``. The power of
            ``calibration_`` is ignored, because it applies to the sum of all contributions.

        Raises
        ------
        ValueError
            If the feature or the class does not exist, if X does not have the columns of ``fit``, or if a probability
            is 0.
        TypeError
            If the classifier does not have a single network.
        ImportError
            If Matplotlib is not installed.
        """
        rows = encode_for_display(estimator, X, sample_weight)
        i, (targets, against) = feature_number(estimator, feature), classes_of(estimator, target)
        found = rows.contributions(estimator, targets)
        errors = estimator._contribution_errors(i)
        classes = estimator.classes_.tolist()
        display = cls(
            found.of_feature(i),
            feature_values(estimator, rows.columns, i, found.counts(i), rows.weights),
            classes=[classes[c] for c in targets],
            against=against,
            standard_errors=None if errors is None else errors[:, targets],
        )
        return display.plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = 20) -> ContributionDisplay:
        """Plot the contributions.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        most : int, default=20
            Maximum number of categories to show. The most frequent categories are shown.

        Returns
        -------
        ContributionDisplay
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
        is_new, ax = ax is None, axes_or_new(ax)
        if self.values.categories is None:
            if is_new:
                ax.figure.set_size_inches(6, 4.2)
            self._plot_curves(ax)
        else:
            self._plot_bars(ax, most, is_new=is_new)
        entries = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))  # one entry for all bands
        entries = {label: entries[label] for label in sorted(entries, key=[_BAND_LABEL, _ROWS_LABEL].count)}
        if entries:
            above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2, "columnspacing": 1.0}
            n_columns = _n_legend_columns(list(entries), ax.get_window_extent().width / ax.figure.dpi)
            ax.legend(entries.values(), entries, frameon=False, fontsize="small", ncols=n_columns, **above)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_curves(self, ax: Any) -> None:
        """Plot a step function of the numbers for each class, and a histogram of the rows below."""
        edges = self.values.edges
        low, high = self._limits(np.arange(len(self.contributions)))
        ax.axhline(0, color="black", linewidth=0.8)
        if self.values.has_missing_category:
            ax.axvline(edges[-2], color=_GREY, linewidth=0.8, linestyle=":")
        for color, name, curve, errors in self._curves():
            label = shortened([str(name)])[0] if len(self.classes) > 1 else None
            ax.stairs(curve, edges, baseline=None, color=color, linewidth=1.6, label=label)
            if errors is not None:
                band = [np.append(side, side[-1]) for side in (curve - errors, curve + errors)]
                ax.fill_between(edges, *band, step="post", color=color, alpha=0.2, linewidth=0, label=_BAND_LABEL)
        ax.set_ylim(low - 1.15 * _STRIP / (1 - _STRIP) * (high - low), high)
        ax.set_xlim(self.values.shown_range)
        counts, bars = self.values.row_counts, self.values.row_edges
        if counts is not None and bars is not None and counts.any():
            heights = _STRIP * counts / counts.max()
            where = {"transform": ax.get_xaxis_transform(), "align": "edge"}
            ax.bar(bars[:-1], heights, np.diff(bars), color=_GREY, alpha=0.4, label=_ROWS_LABEL, **where)
        ax.set_xlabel(wrapped("\n".join([self.values.feature, *self._notes()]), ax, "width"))
        ax.set_ylabel(wrapped(self._odds(), ax, "height"))

    def _plot_bars(self, ax: Any, most: int, *, is_new: bool) -> None:
        """Plot a bar for each category and class, and the numbers of rows on the left."""
        counts, shown = self.values.row_counts, self.values.most_frequent(most)
        n_curves, names = len(self._classes_shown()), shortened([(self.values.categories or [])[i] for i in shown])
        height = 0.8 / n_curves
        if is_new:
            inches = max(0.36 if any("\n" in name for name in names) else 0.26, 0.12 * n_curves)
            ax.figure.set_size_inches(6, 1.4 + inches * len(shown) + 0.2 * (n_curves > 1))
        low, high = self._limits(shown)
        positions = np.arange(len(shown))
        for k, (color, name, curve, errors) in enumerate(self._curves()):
            y = positions + (k - (n_curves - 1) / 2) * height
            label = shortened([str(name)])[0] if n_curves > 1 else None
            bars = {"height": height, "color": color, "alpha": 0.75 if errors is not None else 1.0, "label": label}
            ax.barh(y, curve[shown], **bars)
            if errors is not None:
                style = {"fmt": "none", "ecolor": "black", "elinewidth": 0.9, "capsize": min(3, 12 * height / 2)}
                ax.errorbar(curve[shown], y, xerr=errors[shown], **style, label=_BAND_LABEL)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlim(low - 1.15 * _STRIP / (1 - _STRIP) * (high - low), high)
        if counts is not None and counts[shown].any():
            widths = _STRIP * counts[shown] / counts[shown].max()
            where = {"transform": ax.get_yaxis_transform()}
            ax.barh(positions, widths, 0.8, color=_GREY, alpha=0.4, label=_ROWS_LABEL, **where)
        is_long = len(shown) > 12 or max(map(len, names)) > 12
        ax.set_yticks(positions, names, fontsize="small" if is_long else None)
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        notes = self._notes(len(shown))
        ax.set_ylabel(wrapped(self.values.feature, ax, "height"))
        # If names of categories are long, there is space for a label only at the left of the axes.
        ax.set_xlabel(wrapped("\n".join([self._odds(), *notes]), ax, "width"), loc="right")

    def _classes_shown(self) -> IntArray:
        """Return the positions of the classes to which the feature contributes most, in increasing order."""
        ranges = np.ptp(self.contributions, axis=0)
        return np.sort(np.argsort(-ranges, kind="stable")[:_MOST_CLASSES])

    def _curves(self) -> list[tuple[str, Any, FloatArray, FloatArray | None]]:
        """Return color, class, curve and length of the band for each class that is shown."""
        errors = self.standard_errors
        return [
            (color, self.classes[k], self.contributions[:, k], None if errors is None else _N_ERRORS * errors[:, k])
            for color, k in zip(COLORS, self._classes_shown().tolist(), strict=False)
        ]

    def _notes(self, n_shown: int | None = None) -> list[str]:
        """Return notes about classes, rows and values that the plot does not show."""
        notes, n_classes = self.values.notes(n_shown), len(self.classes)
        if n_classes > _MOST_CLASSES:
            notes.append(f"{_MOST_CLASSES} of {n_classes} classes, those with the largest range")
        return notes

    def _limits(self, shown: IntArray) -> tuple[float, float]:
        """Return the range of the contributions of the shown values, with the visible parts of their bands."""
        part = np.ix_(shown, self._classes_shown())
        curves = self.contributions[part]
        low, high = min(0.0, float(curves.min())), max(0.0, float(curves.max()))
        if self.standard_errors is not None:
            errors, most = _N_ERRORS * self.standard_errors[part], _MOST_BAND * (high - low)
            low, high = (
                max(low - most, float((curves - errors).min())),
                min(high + most, float((curves + errors).max())),
            )
        margin = 0.05 * (high - low) or 1.0
        return low - margin, high + margin

    def _odds(self) -> str:
        """Return the label of the contributions."""
        name = self.classes[0] if len(self.classes) == 1 else "each class"
        return odds_label(name, self.against)


class EncodedRows(NamedTuple):
    """Encoded rows that a display shows."""

    columns: Any  # raw values
    codes: Codes  # (n_features, n_samples)
    weights: FloatArray  # (n_samples,)

    def contributions(self, estimator: Any, targets: Sequence[int]) -> Contributions:
        """Return the contributions to the log odds of the target classes, relative to these rows."""
        temperature = estimator.calibration_.temperature
        return Contributions(estimator.tables_, self.codes, self.weights, targets, temperature=temperature)


def encode_for_display(estimator: Any, X: Any, sample_weight: Any) -> EncodedRows:
    """Encode rows. Raise TypeError for classifiers without a single network."""
    if not hasattr(estimator, "_contribution_errors"):
        raise TypeError(
            f"the classifier must have a single network, so that its log odds are a sum over features and pairs, "
            f"got {type(estimator).__name__}. Pass a classifier with CPTs, such as TermNetClassifier, "
            f"NaiveBayesClassifier, or network_ of a BayesEnsembleClassifier."
        )
    check_is_fitted(estimator)
    columns = read_columns(X, n_jobs=estimator.n_jobs)
    check_names(estimator, X)
    codes = estimator.encoder_.encode_columns(columns)
    weights = np.ones(codes.shape[1]) if sample_weight is None else row_weights(sample_weight, codes.shape[1])
    return EncodedRows(columns, codes, np.asarray(weights, np.float64))


def odds_label(name: Any, against: Any) -> str:
    """Return the label of contributions to the log odds of a class."""
    return f"contribution to the log odds of {name} against {against} [nats]"


def classes_of(estimator: Any, target: Any) -> tuple[list[int], Any]:
    """Return the codes of the classes to plot, and the class, or name of classes, with which they are compared."""
    classes = estimator.classes_.tolist()
    targets = [1] if len(classes) == 2 else list(range(len(classes)))
    if target is not None:
        targets = [class_code(target, estimator.classes_, "target")]
    return targets, classes[1 - targets[0]] if len(classes) == 2 else "the others"


def _n_legend_columns(labels: list[str], inches: float) -> int:
    """Return the largest number of columns for which a legend is not wider than the axes."""
    for n in range(len(labels), 1, -1):
        n_rows = -(-len(labels) // n)
        columns = [labels[k : k + n_rows] for k in range(0, len(labels), n_rows)]
        if sum(_SYMBOL + max(map(len, column)) for column in columns) <= _LEGEND_PER_INCH * inches:
            return n
    return 1


def wrapped(label: str, ax: Any, side: str) -> str:
    """Wrap a label into lines that fit the width or the height of the axes."""
    inches = getattr(ax.get_window_extent(), side) / ax.figure.dpi
    most = max(_FEWEST, int(_PER_INCH * inches))
    lines = []
    for line in label.split("\n"):
        n_lines = -(-len(line) // most)
        lines.append(textwrap.fill(line, min(most, len(line) // n_lines + 6)))  # lines of about equal length
    return "\n".join(lines)
