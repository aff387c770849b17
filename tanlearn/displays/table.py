"""Heat map of the CPT of a feature."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import FloatArray
from tanlearn.displays.names import feature_number, value_names
from tanlearn.files.description import feature_names

__all__ = ["TableDisplay"]

#: Maximum number of readable labels per axis.
_MOST_LABELS = 40


class TableDisplay:
    """Heat map of the CPT of a feature.

    Parameters
    ----------
    table : ndarray of shape (n_values, n_columns)
        Probabilities, whose columns each sum to 1, or scores.
    values : sequence of n_values str
        Names of the values of the feature.
    columns : sequence of n_columns str
        Values of the parents and the class for each column.
    feature : str
        Name of the feature.
    given : str, default="class"
        Names of the parents and the class in the axis label.
    is_normalized : bool, default=True
        Whether ``table`` contains probabilities.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If the numbers of names and the shape of ``table`` do not match.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.displays import TableDisplay
    >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0]]
    >>> model = NaiveBayesClassifier().fit(X, ["beach", "home", "home"])
    >>> display = TableDisplay.from_estimator(model, 0)
    >>> display.values, display.columns, display.table.sum(axis=0).round(3).tolist()
    (['rain', 'sun'], ['beach', 'home'], [1.0, 1.0])
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        table: FloatArray,
        values: Sequence[str],
        columns: Sequence[str],
        *,
        feature: str,
        given: str = "class",
        is_normalized: bool = True,
    ) -> None:
        if np.shape(table) != (len(values), len(columns)):
            raise ValueError(f"table must have shape ({len(values)}, {len(columns)}), got {np.shape(table)}.")
        self.table = np.asarray(table, float)
        self.values = list(values)
        self.columns = list(columns)
        self.feature = feature
        self.given = given
        self.is_normalized = is_normalized

    @classmethod
    def from_estimator(cls, estimator: Any, feature: Any, *, ax: Any = None) -> TableDisplay:
        """Plot the CPT of a feature.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with ``tables_``.
        feature : int or str
            Name of the feature, or its column number from 0.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        TableDisplay
            The display. Its columns are ordered by the first parent, then by the second parent, then by the class. If
            the CPTs are not normalized, the difference between each score and the mean over the classes is shown.

        Raises
        ------
        ValueError
            If the feature does not exist.
        TypeError
            If the classifier has no ``tables_``, or its CPTs are back-off CPTs or sums of terms.
        ImportError
            If Matplotlib is not installed.
        """
        if not hasattr(estimator, "tables_") or not estimator.tables_.is_dense:
            raise TypeError(
                f"{type(estimator).__name__} has no tables_ with CPTs to plot. Fit a classifier with a single "
                f"structure that stores CPTs entry by entry. (Back-off smoothing stores counts. TermNetClassifier "
                f"stores sums of terms; its CPTs are tables_[i].)"
            )
        i, names = feature_number(estimator, feature), feature_names(estimator)
        tables, encoder = estimator.tables_, estimator.encoder_
        parents = [j for j in estimator.structure_.parents[i].tolist() if j >= 0]
        table = np.asarray(tables[i], float)
        if tables.is_normalized:
            table = np.exp(table)
            table = table / np.maximum(table.sum(axis=0, keepdims=True), np.finfo(float).tiny)
        else:
            table = table - table.mean(axis=-1, keepdims=True)
        sides = [value_names(encoder, j) for j in parents] + [[str(c) for c in estimator.classes_.tolist()]]
        columns = [", ".join(reversed(column)) for column in itertools.product(*sides)]
        display = cls(
            table.reshape(len(table), -1),
            value_names(encoder, i),
            columns,
            feature=names[i],
            given=", ".join(["class", *(names[j] for j in reversed(parents))]),
            is_normalized=tables.is_normalized,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> TableDisplay:
        """Plot the heat map.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure of suitable size is created.

        Returns
        -------
        TableDisplay
            The display itself.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        n_values, n_columns = self.table.shape
        is_new = ax is None
        ax = axes_or_new(ax)
        if is_new:
            ax.figure.set_size_inches(np.clip([2.8 + 0.42 * n_columns, 1.8 + 0.36 * n_values], 3.2, [14, 10]))
        most = max(float(np.abs(self.table[np.isfinite(self.table)]).max(initial=0.0)), 1e-12)
        scale: dict[str, Any] = {"cmap": "RdBu", "vmin": -most, "vmax": most}
        if self.is_normalized:
            scale = {"cmap": "Blues", "vmin": 0.0, "vmax": 1.0}
        image = ax.imshow(self.table, aspect="auto", **scale)
        if self.table.size <= 120:
            for (row, column), number in np.ndenumerate(self.table):
                colour = "white" if abs(number) > 0.6 * scale["vmax"] else "black"
                ax.text(column, row, f"{number:.2f}", ha="center", va="center", fontsize="small", color=colour)
        for axis, labels in ((ax.xaxis, self.columns), (ax.yaxis, self.values)):
            every = -(-len(labels) // _MOST_LABELS)
            axis.set_ticks(range(0, len(labels), every), labels[::every])
        longest = max(map(len, self.columns))
        if longest * n_columns > 40:
            steep: dict[str, Any] = {"rotation": 90} if n_columns > 12 else {"rotation": 40, "ha": "right"}
            for label in ax.get_xticklabels():
                label.set(**steep, rotation_mode="anchor" if n_columns <= 12 else None)
        ax.set(xlabel=f"given {self.given}", ylabel=self.feature)
        label = "probability" if self.is_normalized else "score minus mean over classes [nats]"
        ax.figure.colorbar(image, ax=ax, label=label)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
