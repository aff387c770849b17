"""Plots of a comparison of learners over data sets: critical differences of ranks, and paired errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._rank_tests import critical_difference, friedman_test, nemenyi_test, ranks_of, require_posthocs
from tanlearn._typing import AnyArray, FloatArray

__all__ = ["CriticalDifferenceDisplay", "PairedErrorsDisplay"]

_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#666666"
_DIAGRAM = "a critical difference diagram"
#: Smaller p-values are written as "< 0.001".
_SMALLEST_P = 0.001
#: Largest differences whose data sets are named.
_N_NAMED = 4
#: Smallest range of mean ranks that fills the width; equal ranks would have no width at all.
_LEAST_SPREAD = 0.1
#: Distance, in fractions of the axes' width and height, from which on names of data sets do not overlap.
_NEAR = np.array([0.3, 0.04])


class CriticalDifferenceDisplay:
    """Critical difference diagram: mean ranks of learners; bars join those without a significant difference.

    Learners are ranked by their error on each data set, from 1 for the lowest one. Equal errors share their mean rank.

    Parameters
    ----------
    errors : dict of str to array-like of shape (n_datasets,), or pandas.DataFrame
        Errors of each learner (at least 3) on the same data sets (at least 2), in the same order. Any measure can be
        used of which smaller values are better. A :class:`~tanlearn.comparison.Comparison` has this table as
        ``comparison.to_frame().pivot_table("error", "dataset", "learner")``.
    alpha : float, default=0.05
        Significance level, between 0 and 1.
    p_values : array-like of shape (n_learners, n_learners), optional
        Symmetric p-values of a test of your own, adjusted for multiple comparisons, in the order of ``errors``, such as
        Wilcoxon's signed ranks with Holm's correction. By default those of Nemenyi's test.

    Attributes
    ----------
    mean_ranks_ : dict of str to float
        Mean rank of each learner, best first.
    p_values_ : ndarray of shape (n_learners, n_learners)
        p-values of all pairs, in the order of ``errors``.
    friedman_p_value_ : float
        p-value of Friedman's test that all learners have equal ranks, with the correction of Iman and Davenport, as
        in :meth:`~tanlearn.comparison.Comparison.ranks`. If it is above ``alpha``, Nemenyi's test is omitted, and one
        bar joins all learners.
    critical_difference_ : float
        Difference of mean ranks that is significant at level ``alpha`` by Nemenyi's test.
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If there are too few learners or data sets, lengths differ, an error is not a finite number, or ``alpha`` or
        ``p_values`` are invalid.
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

    def __init__(self, errors: Mapping[str, Any], *, alpha: float = 0.05, p_values: FloatArray | None = None) -> None:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {alpha}.")
        self.names, self.errors = _aligned(errors, n_learners=3, n_datasets=2)
        self.alpha = alpha
        self.p_values = p_values
        require_posthocs(_DIAGRAM)
        n_datasets, n_learners = self.errors.shape
        means = ranks_of(self.errors).mean(axis=0)
        order = np.argsort(means, kind="stable")
        self.mean_ranks_ = {self.names[k]: float(means[k]) for k in order}
        _, p_value = friedman_test(self.errors)
        self.friedman_p_value_ = 1.0 if np.isnan(p_value) else p_value  # all learners are equal
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
            Axes to plot on; by default those of a new figure, whose height depends on the number of learners.

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
        """Return whether pairs are tested: Nemenyi's test requires a significant result of Friedman's test."""
        return self.p_values is not None or self.friedman_p_value_ <= self.alpha

    def _note(self) -> str:
        """Return the meaning of the bars."""
        if self.p_values is not None:
            return f"bars: no significant difference at level {self.alpha:g}\nby the given p-values"
        if not self._tests_pairs():
            return f"no significant differences at level {self.alpha:g}\n{self._friedman()}"
        nemenyi = f"Nemenyi test: critical difference {self.critical_difference_:.2f}"
        return f"bars: no significant difference at level {self.alpha:g}\n{nemenyi}\n{self._friedman()}"

    def _friedman(self) -> str:
        """Return Friedman's test in the words of the report of a comparison."""
        p = self.friedman_p_value_
        return "Friedman test (Iman and Davenport): " + (f"p = {p:.3f}" if p >= _SMALLEST_P else f"p < {_SMALLEST_P}")


class PairedErrorsDisplay:
    """Scatter plot of the errors of two learners, one point per data set.

    Points below the diagonal are data sets on which the second learner has the lower error.

    Parameters
    ----------
    errors : dict of str to array-like of shape (n_datasets,), or pandas.DataFrame
        Errors of two learners on the same data sets, in the same order. The first is drawn on the horizontal axis. Any
        measure can be used of which smaller values are better.
    datasets : sequence of str, optional
        Names of the data sets. The four with the largest differences are named in the plot.
    measure : str, default="error [%]"
        Name of the measure for the labels of the axes.

    Attributes
    ----------
    wins_ : tuple of (int, int)
        Numbers of data sets on which the first and the second learner has the lower error.
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

    def __init__(
        self, errors: Mapping[str, Any], *, datasets: Sequence[str] | None = None, measure: str = "error [%]"
    ) -> None:
        if len(errors.keys()) != 2:
            raise ValueError(f"errors must be those of two learners, got {_listed(errors.keys())}. Select two of them.")
        self.names, self.errors = _aligned(errors, n_learners=2, n_datasets=1)
        if datasets is not None and len(datasets) != len(self.errors):
            raise ValueError(f"datasets must be {len(self.errors)} names, one per error; got {len(datasets)}.")
        self.datasets = None if datasets is None else list(datasets)
        self.measure = measure
        first, second = self.errors.T
        self.wins_ = int((first < second).sum()), int((second < first).sum())
        self.n_ties_ = int((first == second).sum())

    def plot(self, ax: Any = None) -> Self:
        """Plot the points.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on; by default those of a new figure.

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
            ax.figure.set_size_inches(5, 5)
        first, second = self.errors.T
        low, high = self.errors.min(), self.errors.max()
        margin = 0.06 * (high - low) or 1.0
        limits = max(low - margin, min(low, 0.0)), high + margin
        ax.plot(limits, limits, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        for wins, color, marker in [
            (first < second, _ORANGE, "^"),
            (second < first, _BLUE, "o"),
            (first == second, _GREY, "s"),
        ]:
            ax.scatter(first[wins], second[wins], color=color, marker=marker, s=22, alpha=0.8, linewidths=0, zorder=2)
        text = {"transform": ax.transAxes, "fontsize": "small"}
        ax.text(0.03, 0.97, f"{self.names[0]} better: {self.wins_[0]}", color=_ORANGE, va="top", **text)
        ax.text(0.97, 0.03, f"{self.names[1]} better: {self.wins_[1]}", color=_BLUE, ha="right", **text)
        if self.n_ties_:
            ax.text(0.03, 0.91, f"equal: {self.n_ties_}", color=_GREY, va="top", **text)
        self._name_points(ax, limits)
        ax.set(xlim=limits, ylim=limits, aspect="equal")
        ax.set(xlabel=f"{self.names[0]}: {self.measure}", ylabel=f"{self.names[1]}: {self.measure}")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _name_points(self, ax: Any, limits: tuple[float, float]) -> None:
        """Name the data sets with the largest differences, on the side away from the diagonal."""
        if self.datasets is None:
            return
        points, extent = self.errors, limits[1] - limits[0]
        named: list[FloatArray] = []
        for k in np.argsort(-np.abs(points[:, 0] - points[:, 1]), kind="stable"):
            near = (np.abs(points[k] - other) < _NEAR * extent for other in named)
            if len(named) == _N_NAMED or points[k, 0] == points[k, 1]:
                break
            if any(is_near.all() for is_near in near):  # their names would overlap
                continue
            named.append(points[k])
            offset, side = ((6, -3), "left") if points[k, 1] < points[k, 0] else ((-6, -3), "right")
            ax.annotate(self.datasets[k], points[k], offset, textcoords="offset points", ha=side, fontsize="x-small")


def _separate(bars: Sequence[Any]) -> None:
    """Give each bar a height of its own: two bars in one row, close to each other, look like one."""
    lowest = min((bar.get_ydata()[0] for bar in bars), default=-1.0)
    for number, bar in enumerate(bars, start=1):
        bar.set_ydata(np.full(len(bar.get_xdata()), lowest * number / len(bars)))


def _aligned(errors: Mapping[str, Any], *, n_learners: int, n_datasets: int) -> tuple[list[str], FloatArray]:
    """Return the names of the learners and their errors, (n_datasets, n_learners), after validation."""
    columns = {str(name): np.asarray(values, float) for name, values in errors.items()}
    if len(columns) < n_learners:
        raise ValueError(f"errors must be those of at least {n_learners} learners, got {_listed(columns)}.")
    lengths = {name: values.shape for name, values in columns.items()}
    if len(set(lengths.values())) > 1 or len(next(iter(lengths.values()))) != 1:
        raise ValueError(
            f"errors must be one number per data set for each learner, on the same data sets; got the shapes {lengths}."
        )
    table: AnyArray = np.stack(list(columns.values()), axis=1)
    if len(table) < n_datasets:
        raise ValueError(f"errors must be those of at least {n_datasets} data sets, got {len(table)}.")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"errors must be finite numbers, got {table[row, column]} for {list(columns)[column]!r} on data set {row}. "
            f"Leave out the data sets or the learners that have failed."
        )
    return list(columns), table


def _checked_p_values(p_values: Any, n_learners: int) -> FloatArray:
    """Return p-values as an array after validation."""
    found = np.asarray(p_values, float)
    if found.shape != (n_learners, n_learners):
        raise ValueError(f"p_values must have shape ({n_learners}, {n_learners}), got {found.shape}.")
    if not np.array_equal(found, found.T) or not (found >= 0).all() or not (found <= 1).all():
        raise ValueError("p_values must be symmetric and from 0 to 1, in the order of the learners in errors.")
    return found


def _listed(names: Iterable[Any]) -> str:
    """Return the names of learners in words."""
    return ", ".join(map(repr, names)) or "none"
