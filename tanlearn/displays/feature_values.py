"""Raw values of a feature on the axis of a plot: intervals of numbers, or categories."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.displays.names import value_names
from tanlearn.files.description import feature_names
from tanlearn.files.encoders import encoder_columns

__all__ = ["FeatureValues", "feature_values", "shortened"]

#: Maximum number of characters per line in the name of a category. A line of 24 small characters takes half of the
#: width of a phone.
_LINE = 24
#: Shown length of an outer interval that is longer than the distance between the first and the last cut point, as a
#: fraction of this distance.
_SHOWN_OUTSIDE = 0.5
#: Width of the interval of missing values, as a fraction of the axis.
_MISSING_WIDTH = 0.08
#: Number of bars of a histogram of numbers.
_N_BARS = 40


class FeatureValues:
    """Values of a feature (intervals of numbers, or categories), and the distribution of rows over the values.

    Parameters
    ----------
    feature : str
        Name of the feature.
    categories : sequence of n_values str, optional
        Names of the categories. Either ``categories`` or ``cut_points`` must be given.
    cut_points : array-like of shape (n_values - 1,), optional
        Increasing cut points between the intervals of a numeric feature.
    value_range : (float, float), optional
        Smallest and largest number. By default, the outermost intervals are as wide as the intervals next to them.
    row_counts : array-like of shape (n_bars,), optional
        Number of rows in each category, or in each bar of a histogram.
    row_edges : array-like of shape (n_bars + 1,), optional
        Edges of the bars of the histogram of a numeric feature.
    missing : float, default=0.0
        Fraction of the rows without a value.
    has_missing_category : bool, default=False
        Whether the last value of a numeric feature is the category of missing values. This category is drawn as an
        additional interval, after the largest number on the axis.

    Raises
    ------
    ValueError
        If not exactly one of ``categories`` and ``cut_points`` is given, if cut points do not increase, or if
        ``row_counts`` has a wrong length.

    Examples
    --------
    >>> from tanlearn.displays import FeatureValues
    >>> FeatureValues("age", cut_points=[30, 60], value_range=(18, 95)).edges.tolist()
    [18.0, 30.0, 60.0, 95.0]
    """

    def __init__(
        self,
        feature: str,
        *,
        categories: Sequence[str] | None = None,
        cut_points: Any = None,
        value_range: tuple[float, float] | None = None,
        row_counts: Any = None,
        row_edges: Any = None,
        missing: float = 0.0,
        has_missing_category: bool = False,
    ) -> None:
        if (categories is None) == (cut_points is None):
            raise ValueError(
                f"exactly one of categories and cut_points of {feature!r} must be given. Pass cut_points for a numeric "
                f"feature, and categories otherwise."
            )
        self.feature = feature
        self.categories = None if categories is None else list(categories)
        self.cut_points = None if cut_points is None else np.asarray(cut_points, np.float64)
        self.row_counts = None if row_counts is None else np.asarray(row_counts, np.float64)
        self.row_edges = None if row_edges is None else np.asarray(row_edges, np.float64)
        self.missing = float(missing)
        self.has_missing_category = bool(has_missing_category) and cut_points is not None
        if self.cut_points is not None and not (np.diff(self.cut_points) > 0).all():
            raise ValueError(
                f"the cut points of {feature!r} must be strictly increasing, got {self.cut_points.tolist()}."
            )
        n_bars = self.n_values if self.cut_points is None else np.size(row_edges) - 1
        if self.row_counts is not None and self.row_counts.shape != (n_bars,):
            raise ValueError(
                f"row_counts of {feature!r} must have shape ({n_bars},), one per category or one fewer than "
                f"row_edges, got {self.row_counts.shape}."
            )
        #: Edges (n_values + 1,) of all intervals, or the positions -0.5, 0.5, ... for categories.
        self.edges = np.arange(self.n_values + 1) - 0.5
        if self.cut_points is not None:
            self.edges = _edges(self.cut_points, value_range)
        self._number_range = float(self.edges[0]), float(self.edges[-1])
        if self.has_missing_category:
            low, high = self._shown_numbers
            self.edges = np.array([*self.edges[:-1], high, high + _MISSING_WIDTH * (high - low)])

    @property
    def n_values(self) -> int:
        """Number of intervals or categories, including the category of missing values."""
        if self.cut_points is None:
            return len(self.categories or ())
        return len(self.cut_points) + 1 + self.has_missing_category

    @property
    def shown_range(self) -> tuple[float, float]:
        """Range of the axis for missing values and all numbers except outliers, which would compress the others."""
        low, high = self._shown_numbers
        return low, float(self.edges[-1]) if self.has_missing_category else high

    @property
    def _shown_numbers(self) -> tuple[float, float]:
        """Range of numbers on the axis."""
        low, high = self._number_range
        if self.cut_points is None or len(self.cut_points) < 2:
            return low, high
        first, last = float(self.cut_points[0]), float(self.cut_points[-1])
        inside = last - first
        return (
            first - _SHOWN_OUTSIDE * inside if first - low > inside else low,
            last + _SHOWN_OUTSIDE * inside if high - last > inside else high,
        )

    def most_frequent(self, most: int) -> IntArray:
        """Return the positions of the most frequent values, in increasing order.

        Parameters
        ----------
        most : int
            Maximum number of values.

        Returns
        -------
        ndarray of shape (n_shown,)
        """
        shown = np.arange(self.n_values)
        if self.row_counts is not None and self.cut_points is None:
            shown = np.argsort(-self.row_counts, kind="stable")
        return np.sort(shown[:most])

    def notes(self, n_shown: int | None = None) -> list[str]:
        """Return notes about rows and values that the plot does not show.

        Parameters
        ----------
        n_shown : int, optional
            Number of categories on the axis. By default, all categories are shown.

        Returns
        -------
        list of str
        """
        notes, (low, high) = [], self._number_range
        if n_shown is not None and n_shown < self.n_values:
            notes.append(f"{n_shown} most frequent of {self.n_values} values")
        if self._shown_numbers != (low, high):
            notes.append(f"values from {low:.4g} to {high:.4g}")
        if self.has_missing_category:
            notes.append(f"beyond {self._shown_numbers[1]:.4g}: missing values")
        if self.missing:
            notes.append(f"{self.missing:.1%} of rows missing")
        return notes


def feature_values(estimator: Any, columns: Any, i: int, counts: FloatArray, weights: FloatArray) -> FeatureValues:
    """Return the values of a column of a fitted classifier, and the distribution of rows over the values.

    ``counts`` contains the weight of the rows with each value. Shapes: counts: (n_values,); weights: (n_samples,).
    """
    feature, column = feature_names(estimator)[i], encoder_columns(estimator.encoder_)[i]
    total, has_category = float(weights.sum()), "has_missing_category" in column
    if has_category and "cut_points" in column:
        counts = counts[:-1]
    missing = 1 - float(counts.sum()) / total if total else 0.0
    missing = missing if missing > 1e-9 else 0.0  # a smaller fraction is a rounding error of the weights
    if "categories" in column:
        names = value_names(estimator.encoder_, i)
        return FeatureValues(feature, categories=names, row_counts=counts, missing=missing)
    numbers = np.asarray(columns[i].numbers(were_numbers=True), np.float64)
    seen = ~np.isnan(numbers)
    known = np.array([*(estimator.encoder_.value_ranges_[i] or ()), *numbers[seen]])
    known = known[~np.isnan(known)]
    value_range = (float(known.min()), float(known.max())) if len(known) else None
    rule: dict[str, Any] = {"cut_points": column["cut_points"], "value_range": value_range, "missing": missing}
    shown = FeatureValues(feature, **rule).shown_range
    row_counts, row_edges = np.histogram(numbers[seen], _N_BARS, shown, weights=weights[seen])
    rule |= {"row_counts": row_counts, "row_edges": row_edges}
    return FeatureValues(feature, **rule, has_missing_category=has_category)


def shortened(names: Sequence[str]) -> list[str]:
    """Shorten names to at most two lines of 24 characters. If beginnings are equal, the middle is left out instead."""
    n = 2 * _LINE
    found = [textwrap.fill(name, _LINE, max_lines=2, placeholder="…") for name in names]
    if len({*found}) < len({*names}):
        short = [name if len(name) <= n else f"{name[: _LINE - 1]}… {name[1 - _LINE :]}" for name in names]
        found = [textwrap.fill(name, _LINE, max_lines=2, placeholder="…") for name in short]
    return found


def _edges(cut_points: FloatArray, value_range: tuple[float, float] | None) -> FloatArray:
    """Return the edges (n_cut_points + 2,) of all intervals. Each interval has a positive width."""
    widths = np.diff(cut_points)
    first, last = (float(widths[0]), float(widths[-1])) if len(widths) else (0.5, 0.5)
    if not len(cut_points):
        low, high = value_range or (0.0, 0.0)
        return np.array([low, high if high > low else low + 1.0])
    low, high = value_range or (cut_points[0] - first, cut_points[-1] + last)
    # If these rows are not the training rows, the smallest number may be above the first cut point.
    low = low if low < cut_points[0] else cut_points[0] - first
    high = high if high > cut_points[-1] else cut_points[-1] + last
    return np.array([low, *cut_points, high])
