"""Plots for comparisons of learners over data sets: critical differences of ranks, and paired errors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._rank_tests import critical_difference, friedman_test, nemenyi_test, ranks_of, require_posthocs
from tanlearn._typing import AnyArray, FloatArray

__all__ = ["CriticalDifferenceDisplay", "PairedErrorsDisplay"]

_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#666666"
_DIAGRAM = "a critical difference diagram"
#: Smaller p-values are written as "< 0.001".
_SMALLEST_P = 0.001
#: Number of data sets that are named. These are the data sets with the largest differences.
_N_NAMED = 4
#: Minimum range of mean ranks on the horizontal axis, because the range of equal ranks is 0.
_LEAST_SPREAD = 0.1
#: Distance of a name from its point, in typographic points.
_OFFSET = 6
#: Directions from a point below the diagonal to its name, in order of preference. Above the diagonal, they are
#: mirrored.
_DIRECTIONS = ((1, 0), (1, -1), (0, -1), (1, 1), (-1, -1), (0, 1), (-1, 0), (-1, 1))
#: Horizontal and vertical alignment of a name that is to the left of or below its point (-1), centered (0), or to the
#: right of or above it (1).
_ALIGNMENTS = {-1: ("right", "top"), 0: ("center", "center"), 1: ("left", "bottom")}
#: Maximum number of characters per line in the label of an axis.
_LABEL_WIDTH = 28
#: Maximum number of characters per line in a caption.
_CAPTION_WIDTH = 40


class CriticalDifferenceDisplay:
    """Critical difference diagram: mean ranks of learners, with bars between learners without significant differences.

    On each data set, learners are ranked by their error. The lowest error has rank 1, and learners with equal errors
    share their mean rank.

    Parameters
    ----------
    errors : Comparison, dict of str to array-like of shape (n_datasets,), dict of str to dict, or pandas.DataFrame
        Errors of each learner (at least 3) on the same data sets (at least 2). Any measure can be used if smaller
        values are better. Arrays must contain the data sets in the same order; inner dicts have the names of data sets
        as keys. If the object has no ``items``, such as a :class:`~tanlearn.comparison.Comparison`, its method
        :meth:`~tanlearn.comparison.Comparison.errors` is called, which leaves out data sets that are not complete for
        every learner.
    alpha : float, default=0.05
        Significance level, between 0 and 1.
    p_values : array-like of shape (n_learners, n_learners), optional
        Symmetric matrix of p-values from your own test, in the order of ``errors``. They must be adjusted for multiple
        comparisons, for example p-values of Wilcoxon's signed-rank test with Holm's correction. By default, Nemenyi's
        test is used.

    Attributes
    ----------
    mean_ranks_ : dict of str to float
        Mean rank of each learner, starting with the best learner.
    p_values_ : ndarray of shape (n_learners, n_learners)
        p-values of all pairs, in the order of ``errors``.
    friedman_p_value_ : float
        p-value of Friedman's test for the hypothesis that all learners have equal ranks, with the correction of Iman
        and Davenport, as in :meth:`~tanlearn.comparison.Comparison.ranks`. If it is above ``alpha``, Nemenyi's test is
        omitted, and one bar joins all learners.
    critical_difference_ : float
        Smallest difference of mean ranks that is significant at level ``alpha`` in Nemenyi's test.
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If there are too few learners or data sets, lengths differ, an error is not a finite number, or ``alpha`` or
        ``p_values`` is invalid.
    ImportError
        If scikit-posthocs is not installed.

    Notes
    -----
    For k learners and N data sets, the critical difference is ``q sqrt(k (k + 1) / 6 N)``, where q is the quantile of
    the studentized range statistic for k groups and infinite degrees of freedom, divided by the square root of 2.

    References
    ----------
    Demsar: Statistical comparisons of classifiers over multiple data sets. Journal of Machine Learning Research 7,
    2006.

    Examples
    --------
    >>> from tanlearn.displays import CriticalDifferenceDisplay
    >>> errors = {"a": [10, 8, 31, 4, 12], "b": [12, 9, 33, 4.5, 13], "c": [15, 9.5, 33.5, 6, 15]}
    >>> display = CriticalDifferenceDisplay(errors)
    >>> display.mean_ranks_, round(display.critical_difference_, 2)
    ({'a': 1.0, 'b': 2.0, 'c': 3.0}, 1.48)
    """

    ax_: Any
    figure_: Any

    def __init__(self, errors: Any, *, alpha: float = 0.05, p_values: FloatArray | None = None) -> None:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {alpha}.")
        self.names, self.errors, self.datasets = _aligned(_mapping(errors), n_learners=3, n_datasets=2)
        self.alpha = alpha
        self.p_values = p_values
        require_posthocs(_DIAGRAM)
        n_datasets, n_learners = self.errors.shape
        means = ranks_of(self.errors).mean(axis=0)
        order = np.argsort(means, kind="stable")
        self.mean_ranks_ = {self.names[k]: float(means[k]) for k in order}
        _, p_value = friedman_test(self.errors)
        self.friedman_p_value_ = 1.0 if np.isnan(p_value) else p_value  # NaN if all learners are equal
        self.critical_difference_ = critical_difference(n_datasets, n_learners, alpha)
        if p_values is None:
            self.p_values_ = nemenyi_test(self.errors)
        else:
            self.p_values_ = _checked_p_values(p_values, n_learners)

    def plot(self, ax: Any = None) -> Self:
        """Plot the diagram.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created, whose height depends on the number of learners.

        Returns
        -------
        CriticalDifferenceDisplay
            The display itself.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        import pandas as pd

        is_new, ax = ax is None, axes_or_new(ax)
        if is_new:
            ax.figure.set_size_inches(8, 1.9 + 0.16 * len(self.names))
        p_values = self.p_values_ if self._tests_pairs() else np.ones_like(self.p_values_)
        ranks = list(self.mean_ranks_.values())
        spread = max(ranks[-1] - ranks[0], _LEAST_SPREAD)
        drawn = require_posthocs(_DIAGRAM).critical_difference_diagram(
            self.mean_ranks_,
            pd.DataFrame(p_values, index=self.names, columns=self.names),
            ax=ax,
            alpha=self.alpha,
            label_fmt_left="{label}  {rank:.2f} ",
            label_fmt_right=" {rank:.2f}  {label}",
            color_palette=["black"] * len(self.names),
            elbow_props={"linewidth": 0.8},
            marker_props={"s": 14},
            crossbar_props={"linewidth": 3.0, "solid_capstyle": "butt"},
            text_h_margin=0.02 * spread,
        )
        if spread == _LEAST_SPREAD:
            ax.set_xlim(ranks[0] - spread, ranks[-1] + spread)
        _separate([bar for bars in drawn["crossbars"] for bar in bars])
        ax.set_title(f"mean rank over {len(self.errors)} data sets, 1 is best\n{self._note()}", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _tests_pairs(self) -> bool:
        """Return whether pairs are tested. Nemenyi's test requires a significant result of Friedman's test."""
        return self.p_values is not None or self.friedman_p_value_ <= self.alpha

    def _note(self) -> str:
        """Return the sentence that explains the bars."""
        if self.p_values is not None:
            return f"bars: no significant difference at level {self.alpha:g}\nby the given p-values"
        if not self._tests_pairs():
            return f"no significant differences at level {self.alpha:g}\n{self._friedman()}"
        nemenyi = f"Nemenyi test: critical difference {self.critical_difference_:.2f}"
        return f"bars: no significant difference at level {self.alpha:g}\n{nemenyi}\n{self._friedman()}"

    def _friedman(self) -> str:
        """Describe the result of Friedman's test in the same words as the report of a comparison."""
        p = self.friedman_p_value_
        return "Friedman test (Iman and Davenport): " + (f"p = {p:.3f}" if p >= _SMALLEST_P else f"p < {_SMALLEST_P}")


class PairedErrorsDisplay:
    """Scatter plot of the errors of two learners, one point per data set.

    A point below the diagonal is a data set on which the second learner has the lower error.

    Parameters
    ----------
    errors : Comparison, dict of str to array-like of shape (n_datasets,), dict of str to dict, or pandas.DataFrame
        Errors of two learners on the same data sets. The first learner is on the horizontal axis. Any measure can be
        used if smaller values are better. Arrays must contain the data sets in the same order; inner dicts have the
        names of data sets as keys. An object without ``items``, such as a :class:`~tanlearn.comparison.Comparison` of
        two learners, is also accepted. If a comparison has more than two learners, select two with its method
        :meth:`~tanlearn.comparison.Comparison.errors`.
    datasets : sequence of str, optional
        Names of the data sets. By default, they are the keys of inner dicts, or the index of a DataFrame unless it is
        the default index. The four data sets with the largest differences are named in the plot if there is space
        between the points.
    measure : str, default="error [%]"
        Name of the measure for the labels of the axes.

    Attributes
    ----------
    wins_ : tuple of (int, int)
        Number of data sets on which the first learner has the lower error, and the same for the second learner.
    n_ties_ : int
        Number of data sets with equal errors.
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If there are not two learners, lengths differ, or an error is not a finite number.

    Examples
    --------
    >>> from tanlearn.displays import PairedErrorsDisplay
    >>> errors = {"Chow-Liu": [10, 8, 31, 4], "gradient": [9, 8, 28, 5]}
    >>> display = PairedErrorsDisplay(errors, datasets=["adult", "letter", "satimage", "usps"]).plot()
    >>> display.wins_, display.n_ties_
    ((1, 2), 1)
    """

    ax_: Any
    figure_: Any

    def __init__(self, errors: Any, *, datasets: Sequence[str] | None = None, measure: str = "error [%]") -> None:
        errors = _mapping(errors)
        if len(errors.keys()) != 2:
            raise ValueError(
                f"errors must contain exactly two learners, got {_listed(errors.keys())}. Select two of them, for "
                f"example with comparison.errors([first, second])."
            )
        self.names, self.errors, self.datasets = _aligned(errors, n_learners=2, n_datasets=1)
        if datasets is not None and len(datasets) != len(self.errors):
            raise ValueError(f"datasets must contain {len(self.errors)} names, one per error, got {len(datasets)}.")
        if datasets is not None:
            self.datasets = list(datasets)
        self.measure = measure
        first, second = self.errors.T
        self.wins_ = int((first < second).sum()), int((second < first).sum())
        self.n_ties_ = int((first == second).sum())

    def plot(self, ax: Any = None) -> Self:
        """Plot the points.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        PairedErrorsDisplay
            The display itself.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        is_new, ax = ax is None, axes_or_new(ax)
        if is_new:
            ax.figure.set_size_inches(5.6, 5.2)  # if the height limits the square axes, the layout converges at once
        first, second = self.errors.T
        low, high = self.errors.min(), self.errors.max()
        margin = 0.06 * (high - low) or 1.0
        limits = max(low - margin, min(low, 0.0)), high + margin
        ax.plot(limits, limits, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        captions = [f"{self.names[k]} better: {self.wins_[k]}" for k in range(2)] + [f"equal: {self.n_ties_}"]
        for rows, caption, color, marker in zip(
            [first < second, second < first, first == second], captions, (_ORANGE, _BLUE, _GREY), "^os", strict=True
        ):
            label = textwrap.fill(caption, _CAPTION_WIDTH)
            style = {"color": color, "marker": marker, "s": 22, "alpha": 0.8, "linewidths": 0, "clip_on": False}
            ax.scatter(first[rows], second[rows], label=label if rows.any() else None, zorder=2.5, **style)
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2, "handletextpad": 0.2}
        ax.legend(frameon=False, fontsize="small", labelspacing=0.2, **above)
        ax.set(xlim=limits, ylim=limits, aspect="equal")
        labels = [textwrap.fill(f"{name}: {self.measure}", _LABEL_WIDTH) for name in self.names]
        ax.set(xlabel=labels[0], ylabel=labels[1])
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        self._name_points(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _name_points(self, ax: Any) -> None:
        """Name the data sets with the largest differences, if names and points do not overlap."""
        if self.datasets is None:
            return
        ax.figure.draw_without_rendering()  # the layout determines the space between the points
        points, pixels = self.errors, ax.transData.transform(self.errors)
        differences = np.abs(points[:, 0] - points[:, 1])
        taken: list[Any] = []
        for k in np.argsort(-differences, kind="stable")[:_N_NAMED]:
            side = 1 if points[k, 1] < points[k, 0] else -1  # prefer directions away from the diagonal
            for right, up in _DIRECTIONS if differences[k] else ():
                right, up = right * side, up * side
                offset = (_OFFSET * right, _OFFSET * up)
                style = {"ha": _ALIGNMENTS[right][0], "va": _ALIGNMENTS[up][1], "fontsize": "x-small"}
                name = ax.annotate(self.datasets[k], points[k], offset, textcoords="offset points", **style)
                box = name.get_window_extent()
                is_inside = ax.bbox.containsx(box.x0) and ax.bbox.containsx(box.x1)
                is_inside &= ax.bbox.containsy(box.y0) and ax.bbox.containsy(box.y1)
                around = box.padded(_OFFSET / 2 * ax.figure.dpi / 72)
                if is_inside and not around.count_contains(pixels) and not box.count_overlaps(taken):
                    taken.append(box)
                    break
                name.remove()


def _separate(bars: Sequence[Any]) -> None:
    """Draw each bar at its own height, because two adjacent bars at the same height look like one bar."""
    lowest = min((bar.get_ydata()[0] for bar in bars), default=-1.0)
    for number, bar in enumerate(bars, start=1):
        bar.set_ydata(np.full(len(bar.get_xdata()), lowest * number / len(bars)))


def _mapping(errors: Any) -> Mapping[str, Any]:
    """Return a mapping from learners to errors, converted from a comparison if necessary."""
    if hasattr(errors, "items"):
        return cast(Mapping[str, Any], errors)
    if not hasattr(errors, "errors"):
        raise TypeError(f"errors must be a comparison, a dict or a DataFrame, got {type(errors).__name__}.")
    return cast(Mapping[str, Any], errors.errors())


def _dataset_names(errors: Any) -> list[Any] | None:
    """Return the names of data sets in the errors of a learner: keys of a dict, or the index of a Series."""
    if not hasattr(errors, "keys"):
        return None
    names = list(errors.keys())
    return None if names == list(range(len(names))) else names  # the default index contains no names


def _aligned(
    errors: Mapping[str, Any], *, n_learners: int, n_datasets: int
) -> tuple[list[str], FloatArray, list[str] | None]:
    """Return the names of the learners, their errors (n_datasets, n_learners), and the names of the data sets."""
    datasets = next((_dataset_names(values) for _, values in errors.items()), None)
    columns = {str(name): _column(str(name), values, datasets) for name, values in errors.items()}
    if len(columns) < n_learners:
        raise ValueError(f"errors must contain at least {n_learners} learners, got {_listed(columns)}. Add learners.")
    lengths = {name: values.shape for name, values in columns.items()}
    if len(set(lengths.values())) > 1 or len(next(iter(lengths.values()))) != 1:
        raise ValueError(
            f"errors must contain one number per data set for each learner, on the same data sets, got the shapes "
            f"{lengths}."
        )
    table: AnyArray = np.stack(list(columns.values()), axis=1)
    if len(table) < n_datasets:
        raise ValueError(f"errors must contain at least {n_datasets} data sets, got {len(table)}. Add data sets.")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"errors must be finite numbers, got {table[row, column]} for {list(columns)[column]!r} on data set "
            f"{row if datasets is None else repr(datasets[row])}. Leave out the data sets or the "
            f"learners that have failed."
        )
    return list(columns), table, None if datasets is None else [str(name) for name in datasets]


def _column(learner: str, errors: Any, datasets: list[Any] | None) -> FloatArray:
    """Return the errors of a learner. If data sets have names, they are in the order of the first learner."""
    names = _dataset_names(errors)
    values: FloatArray = np.asarray(list(errors.values()) if isinstance(errors, Mapping) else errors, float)
    if names == datasets or names is None or datasets is None:
        return values
    if len(names) != len(datasets) or set(names) != set(datasets):
        different = sorted(map(str, set(names) ^ set(datasets))) or ["a repeated name"]
        raise ValueError(
            f"errors of all learners must be on the same data sets, but {different[0]!r} is missing for {learner!r} "
            f"or for the first learner. Leave out this data set."
        )
    return values[[names.index(name) for name in datasets]]


def _checked_p_values(p_values: Any, n_learners: int) -> FloatArray:
    """Return p-values as an array after validation."""
    found = np.asarray(p_values, float)
    if found.shape != (n_learners, n_learners):
        raise ValueError(f"p_values must have shape ({n_learners}, {n_learners}), got {found.shape}.")
    if not np.array_equal(found, found.T) or not (found >= 0).all() or not (found <= 1).all():
        raise ValueError("p_values must be symmetric and from 0 to 1, in the order of the learners in errors.")
    return found


def _listed(names: Iterable[Any]) -> str:
    """Return the names of learners as a phrase."""
    return ", ".join(map(repr, names)) or "none"
