"""Heat map of the contribution of a pair of features to the log odds of a class, with raw values on both axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.displays.contribution import classes_of, encode_for_display, odds_label, wrapped
from tanlearn.displays.feature_values import FeatureValues, feature_values, shortened
from tanlearn.displays.names import feature_number
from tanlearn.files.description import feature_names

__all__ = ["PairContributionDisplay"]

#: Maximum number of combinations of categories for which numbers are printed.
_MOST_NUMBERS = 60
#: Opacity of the white layer on combinations without rows.
_WHITE = 0.65


class PairContributionDisplay:
    """Heat map of the contribution of a pair of features to the log odds of a class, beyond each feature alone.

    Create the plot with :meth:`from_estimator`. Blue combinations of values are evidence for the class, and red
    combinations are evidence against it. ``estimator.to_networkx().edges`` lists the edges of the network.

    Parameters
    ----------
    contributions : array-like of shape (n_values, n_other_values)
        Contributions in nats, for each combination of values of the first and the second feature.
    first, second : FeatureValues
        Intervals or categories of the features on the horizontal and the vertical axis.
    target : object
        Class of the log odds.
    against : object, default="the others"
        Class with which ``target`` is compared, or a name for several classes.
    row_counts : array-like of shape (n_values, n_other_values), optional
        Number of rows with each combination. Combinations without rows are pale.

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
    ContributionDisplay : Contribution of a single feature, and the decomposition of the log odds.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import TermNetClassifier
    >>> from tanlearn.displays import PairContributionDisplay
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # neither column is informative alone; equal signs are evidence for True
    >>> display = PairContributionDisplay.from_estimator(TermNetClassifier().fit(X, y), X, (0, 1))
    >>> found = display.contributions
    >>> bool(found[0, 0] > 0), bool(found[0, -1] < 0), bool(found[-1, 0] < 0), bool(found[-1, -1] > 0)
    (True, True, True, True)
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        contributions: Any,
        first: FeatureValues,
        second: FeatureValues,
        *,
        target: Any,
        against: Any = "the others",
        row_counts: Any = None,
    ) -> None:
        self.contributions = np.asarray(contributions, np.float64)
        self.first, self.second = first, second
        self.target, self.against = target, against
        self.row_counts = None if row_counts is None else np.asarray(row_counts, np.float64)
        shape = first.n_values, second.n_values
        for name, numbers in (("contributions", self.contributions), ("row_counts", self.row_counts)):
            if numbers is not None and numbers.shape != shape:
                raise ValueError(
                    f"{name} must have shape {shape}, with one row per value of {first.feature!r} and one column per "
                    f"value of {second.feature!r}, got {numbers.shape}."
                )
            if numbers is not None and not np.isfinite(numbers).all():
                i, j = np.argwhere(~np.isfinite(numbers))[0].tolist()
                raise ValueError(f"{name} must be finite, got {numbers[i, j]} at ({i}, {j}).")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        features: Any,
        *,
        target: Any = None,
        sample_weight: Any = None,
        most: int = 20,
        ax: Any = None,
    ) -> PairContributionDisplay:
        """Plot the contribution of a pair of features in a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with a single network.
        X : array-like or frame of shape (n_samples, n_features)
            Rows over which the contributions have mean 0 for each value of either feature. Usually, these are the rows
            of ``fit``.
        features : tuple of (int or str, int or str)
            Column numbers from 0, or names, of two features that share a CPT: parent and child, or two parents of the
            same child.
        target : class, optional
            Class whose log odds are plotted. If there are two classes, the default is the second class. If there are
            more classes, the default is the class whose contributions have the largest range.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        most : int, default=20
            Maximum number of categories to show per feature. The most frequent categories are shown.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        PairContributionDisplay
            The display. Its ``figure_`` can be saved, and ``contributions`` contains the numbers.

        Raises
        ------
        ValueError
            If a feature or the class does not exist, if the two features do not share a CPT, if X does not have the
            columns of ``fit``, or if a probability is 0.
        TypeError
            If the classifier does not have a single network.
        ImportError
            If Matplotlib is not installed.
        """
        rows = encode_for_display(estimator, X, sample_weight)
        if isinstance(features, str) or np.size(features) != 2:
            raise ValueError(f"features must be two column numbers or names, got {features!r}.")
        first, second = (feature_number(estimator, feature) for feature in features)
        targets, against = classes_of(estimator, target)
        found = rows.contributions(estimator, targets)
        axes = [feature_values(estimator, rows.columns, i, found.counts(i), rows.weights) for i in (first, second)]
        pairs = found.pairs()
        if (min(first, second), max(first, second)) not in pairs:
            names = [one.feature for one in axes]
            of_either = [pair for pair in pairs if {first, second} & {*pair}] or pairs
            every = feature_names(estimator)
            shown = ", ".join(f"({every[i]!r}, {every[j]!r})" for i, j in of_either[:8])
            shown += ", ..." if len(of_either) > 8 else ""
            raise ValueError(
                f"features must share a CPT, but {names[0]!r} and {names[1]!r} do not, so the pair contributes nothing "
                f"beyond the single features. Plot a ContributionDisplay for each feature"
                + (f", or another pair: {shown}." if pairs else "; the network has no edges.")
            )
        tables = found.of_pair(first, second)
        best = int(np.ptp(tables, axis=(0, 1)).argmax())
        display = cls(
            tables[..., best],
            *axes,
            target=estimator.classes_.tolist()[targets[best]],
            against=against,
            row_counts=found.counts_of_pair(first, second),
        )
        return display.plot(ax, most=most)

    def plot(self, ax: Any = None, *, most: int = 20) -> PairContributionDisplay:
        """Plot the heat map.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.
        most : int, default=20
            Maximum number of categories to show per feature. The most frequent categories are shown.

        Returns
        -------
        PairContributionDisplay
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
        x, y = _shown(self.first, most), _shown(self.second, most)
        if is_new:
            sizes = [
                4.0 if one.cut_points is not None else 0.42 * len(k) for one, k in ((self.first, x), (self.second, y))
            ]
            ax.figure.set_size_inches(np.clip([2.6 + sizes[0], 1.4 + sizes[1]], [4.5, 3.2], [12, 9]))
        table = self.contributions[np.ix_(x, y)].T
        scale = max(float(np.abs(table).max()), 1e-12)
        edges = [_edges(self.first, x), _edges(self.second, y)]
        image = ax.pcolormesh(*edges, table, cmap="RdBu", vmin=-scale, vmax=scale, rasterized=True)
        is_empty = np.zeros(table.shape, np.bool_)
        if self.row_counts is not None:
            is_empty = self.row_counts[np.ix_(x, y)].T == 0
            self._fade(ax, edges, is_empty)
        if self.first.categories and self.second.categories and table.size <= _MOST_NUMBERS:
            for (row, column), number in np.ndenumerate(table):
                is_dark = abs(number) > 0.6 * scale and not is_empty[row, column]
                style = {"ha": "center", "va": "center", "fontsize": "small"}
                ax.text(column, row, f"{number:+.2f}", color="white" if is_dark else "black", **style)
        self._label(ax, x, y)
        label = wrapped(odds_label(self.target, self.against), ax, "height")
        ax.figure.colorbar(image, ax=ax, label=label)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _fade(self, ax: Any, edges: list[FloatArray], is_empty: AnyArray) -> None:
        """Draw combinations without rows in pale colors, with an entry in the legend."""
        if not is_empty.any():
            return
        white = np.ma.masked_array(np.zeros(is_empty.shape), ~is_empty)
        ax.pcolormesh(*edges, white, cmap="gray_r", vmin=0, vmax=1, alpha=_WHITE, linewidth=0, rasterized=True)
        ax.plot([], [], "s", color="#dddddd", label="pale: no rows")
        above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2, "handletextpad": 0.2}
        ax.legend(frameon=False, fontsize="small", **above)

    def _label(self, ax: Any, x: IntArray, y: IntArray) -> None:
        """Set the limits, ticks and labels of both axes."""
        for axis, one, shown, side in ((ax.xaxis, self.first, x, "width"), (ax.yaxis, self.second, y, "height")):
            is_x = side == "width"
            if one.categories is None:
                (ax.set_xlim if is_x else ax.set_ylim)(one.shown_range)
            else:
                names = shortened([one.categories[i] for i in shown])
                is_long = sum(map(len, names)) > 24 or len(names) > 12
                axis.set_ticks(np.arange(len(shown)), names, fontsize="small" if is_long else None)
                if is_x and is_long:
                    for label in ax.get_xticklabels():
                        label.set(rotation=40, ha="right", rotation_mode="anchor")
                axis.set_tick_params(length=0)
                if not is_x:
                    ax.set_ylim(len(shown) - 0.5, -0.5)
            axis.set_label_text(wrapped("\n".join([one.feature, *one.notes(len(shown))]), ax, side))
        ax.spines[:].set_visible(False)


def _shown(values: FeatureValues, most: int) -> IntArray:
    """Return the positions of the values that are shown: all intervals, or the most frequent categories."""
    return values.most_frequent(values.n_values if values.categories is None else most)


def _edges(values: FeatureValues, shown: IntArray) -> FloatArray:
    """Return the edges of the values on an axis."""
    return values.edges if values.categories is None else np.arange(len(shown) + 1) - 0.5
