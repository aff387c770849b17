"""Plot of a network structure: layers of features, or arcs between the pixels of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import FloatArray
from tanlearn.files.description import feature_names
from tanlearn.models.tables import Tables
from tanlearn.structures.layered_layout import layered_positions, margins
from tanlearn.structures.structures import Structure

__all__ = ["StructureDisplay", "edge_information"]

_BLUE, _GREY, _ORANGE = "#0072b2", "#555555", "#d55e00"
#: Maximum number of features that are all labeled. If there are more, only those with the most children are labeled.
_MOST_NAMES, _HUBS = 40, 12
_WEIGHTS = "auto", "information", "probability"


class StructureDisplay:
    """Plot of a structure.

    Parents are above their children. The class, which is a parent of all features, is above the features. If features
    are pixels, they can be plotted as an image. The shade of a pixel is its mutual information with the class, and arcs
    point from parent to child.

    Parameters
    ----------
    structure : Structure
        Structure to plot.
    feature_names : sequence of str, optional
        Names of the features. By default, their numbers are used.
    weights : ndarray of shape (n_features, width), optional
        Weights of the edges, in the layout of ``structure.parents``. Line widths are proportional to the weights.
    weight_name : str, default=""
        Name of the weights in the caption.
    relevance : ndarray of shape (n_features,), optional
        Shades of the pixels.
    class_name : str, default="class"
        Name of the class.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.

    Raises
    ------
    ValueError
        If the structure has a cycle, or the numbers of names, weights or shades do not match the features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import TANClassifier
    >>> from tanlearn.displays import StructureDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = StructureDisplay.from_estimator(TANClassifier(n_epochs=5, random_state=0).fit(X, y))
    >>> [text.get_text() for text in display.ax_.texts[:1]]
    ['class']
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        structure: Structure,
        *,
        feature_names: Sequence[str] | None = None,
        weights: FloatArray | None = None,
        weight_name: str = "",
        relevance: FloatArray | None = None,
        class_name: str = "class",
    ) -> None:
        if not structure.is_acyclic:
            raise ValueError("a structure with a cycle cannot be plotted in layers. Learn a structure without cycles.")
        n_features = structure.n_features
        names = [str(i) for i in range(n_features)] if feature_names is None else [str(name) for name in feature_names]
        if len(names) != n_features:
            raise ValueError(f"feature_names must contain {n_features} names, one per feature, got {len(names)}.")
        if weights is not None and np.shape(weights) != structure.parents.shape:
            raise ValueError(
                f"weights must have the shape of structure.parents, {structure.parents.shape}, got {np.shape(weights)}."
            )
        if relevance is not None and np.shape(relevance) != (n_features,):
            raise ValueError(f"relevance must have shape ({n_features},), got {np.shape(relevance)}.")
        self.structure = structure
        self.feature_names = names
        self.weights = weights
        self.weight_name = weight_name
        self.relevance = relevance
        self.class_name = class_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        weights: str | None = "auto",
        image_shape: tuple[int, int] | None = None,
        class_name: str = "class",
        ax: Any = None,
    ) -> StructureDisplay:
        """Plot the structure of a classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with a ``structure_``.
        weights : {"auto", "information", "probability"} or None, default="auto"
            Meaning of the line widths. "information" is the mutual information of child and parent given the class, in
            the distribution of the model (for at most one parent per feature). "probability" is the probability of the
            chosen parents (``structure_probabilities_``). "auto" is "information" if it is available, and otherwise
            "probability". If None, all lines have the same width.
        image_shape : tuple of (height, width), optional
            Shape of the image if features are pixels. Pixel (row, column) is feature ``row * width + column``.
        class_name : str, default="class"
            Name of the class.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        StructureDisplay

        Raises
        ------
        ValueError
            If ``weights`` is not available for the classifier, or if the number of pixels is not the number of
            features.
        TypeError
            If the classifier has no ``structure_``.
        ImportError
            If Matplotlib is not installed.
        """
        if not hasattr(estimator, "structure_"):
            raise TypeError(
                f"{type(estimator).__name__} has no structure_ to plot. Fit the classifier, or use "
                "ForestImportanceDisplay for a forest."
            )
        if weights is not None and weights not in _WEIGHTS:
            raise ValueError(f"weights must be one of {_WEIGHTS} or None, got {weights!r}.")
        structure, tables = estimator.structure_, estimator.tables_
        has_trees = not (structure.parents[:, 1] >= 0).any() and tables.is_normalized and tables.is_dense
        found, name, relevance = None, "", None
        if has_trees and weights in ("auto", "information"):
            found, relevance = edge_information(structure, tables)
            name = "mutual information given the class [nats]"
        elif weights in ("auto", "probability") and hasattr(estimator, "structure_probabilities_"):
            found, name = _probabilities(estimator), "probability of the parents"
        elif weights in ("information", "probability"):
            raise ValueError(
                f"{type(estimator).__name__} cannot show weights={weights!r}: 'information' needs a network with one "
                f"parent per feature, and 'probability' a classifier that learns its structure by gradient. Pass "
                f"weights='auto' or None."
            )
        display = cls(
            structure,
            feature_names=feature_names(estimator),
            weights=found,
            weight_name=name,
            relevance=relevance,
            class_name=class_name,
        )
        return display.plot(ax, image_shape=image_shape)

    def plot(self, ax: Any = None, *, image_shape: tuple[int, int] | None = None) -> StructureDisplay:
        """Plot the structure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure of suitable size is created.
        image_shape : tuple of (height, width), optional
            Shape of the image if features are pixels.

        Returns
        -------
        StructureDisplay
            The display itself.

        Raises
        ------
        ValueError
            If the number of pixels is not the number of features.
        ImportError
            If Matplotlib is not installed.
        """
        if image_shape is not None and int(np.prod(image_shape)) != self.structure.n_features:
            raise ValueError(
                f"image_shape must have {self.structure.n_features} pixels, one per feature, got {tuple(image_shape)}."
            )
        is_new = ax is None
        ax = axes_or_new(ax)
        if image_shape is None:
            self._draw_layers(ax, is_new)
        else:
            self._draw_pixels(ax, image_shape, is_new)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_layers(self, ax: Any, is_new: bool) -> None:
        """Draw the features in layers, and the class above them."""
        positions, n_features = (
            layered_positions(self.structure.parents, self.structure.order),
            self.structure.n_features,
        )
        left, right, bottom, top = margins(positions)
        has_names = n_features <= _MOST_NAMES
        if is_new:
            unit, height = (1.15, 0.8) if has_names else (0.22, 0.42)
            size = np.clip([(right - left) * unit, (top - bottom + 1.2) * height], [5.5, 2.5], [16, 12])
            ax.figure.set_size_inches(size)
        ax.set(xlim=(left, right), ylim=(bottom, top + 1.2))
        ax.axis("off")
        middle = (left + right) / 2
        style = {"boxstyle": "round,pad=0.35", "facecolor": _ORANGE, "edgecolor": "none"}
        ax.text(middle, top + 0.75, self.class_name, ha="center", va="center", color="white", bbox=style)
        ax.plot([left + 0.1, right - 0.1], [top + 0.2] * 2, color=_ORANGE, linewidth=1, linestyle=(0, (4, 3)))
        ax.annotate(
            "",
            (middle, top + 0.2),
            (middle, top + 0.75),
            arrowprops={"arrowstyle": "-|>", "color": _ORANGE, "shrinkA": 10, "shrinkB": 0},
        )
        ax.text(
            right - 0.1, top + 0.28, "parent of all features", ha="right", va="bottom", color=_ORANGE, fontsize="small"
        )
        widths = self._widths()
        arrow = {"arrowstyle": "-|>", "shrinkA": 9, "shrinkB": 11} if has_names else {"arrowstyle": "-", "shrinkB": 0}
        for i, row in enumerate(self.structure.parents.tolist()):
            for p, j in enumerate(row):
                if j >= 0:
                    arrowprops = {**arrow, "color": _GREY, "linewidth": widths[i, p]}
                    ax.annotate("", positions[i], positions[j], arrowprops=arrowprops, zorder=1)
        n_children = np.bincount(self.structure.parents[self.structure.parents >= 0], minlength=n_features)
        if has_names:
            named = np.arange(n_features)
            box: dict[str, Any] = {"boxstyle": "round,pad=0.3", "facecolor": "#e6eff6", "edgecolor": _BLUE}
        else:
            named = np.argsort(-n_children, kind="stable")[:_HUBS]
            ax.scatter(*positions.T, s=12 + 10 * n_children, color=_BLUE, zorder=2)
            box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": _BLUE, "linewidth": 0.5}
        for i in named.tolist():
            text = _broken(self.feature_names[i]) if has_names else self.feature_names[i]
            ax.text(*positions[i], text, ha="center", va="center", fontsize="small", bbox=box, zorder=3)
        self._explain_widths(ax)

    def _draw_pixels(self, ax: Any, image_shape: tuple[int, int], is_new: bool) -> None:
        """Draw an image of the relevances, with arcs from parents to children."""
        height, width = image_shape
        if is_new:
            ax.figure.set_size_inches(6.5, 6.5 * height / width)
        shades = np.zeros(image_shape) if self.relevance is None else self.relevance.reshape(image_shape)
        image = ax.imshow(shades, cmap="Oranges", vmin=0, vmax=max(float(shades.max()), 1e-12) * 1.3)
        if self.relevance is not None:
            ax.figure.colorbar(image, ax=ax, label="mutual information with the class [nats]", shrink=0.7)
        widths = self._widths()
        reach = 30 / max(image_shape)  # scale of arrow heads, relative to a pixel
        head = f"head_width={0.006 * reach + 0.08:.3f},head_length={0.012 * reach + 0.16:.3f}"
        for i, row in enumerate(self.structure.parents.tolist()):
            for p, j in enumerate(row):
                if j >= 0:
                    arrowprops = {
                        "arrowstyle": f"-|>,{head}",
                        "connectionstyle": "arc3,rad=0.2",
                        "color": _BLUE,
                        "linewidth": 0.6 * widths[i, p],
                        "shrinkA": 0,
                        "shrinkB": 0,
                    }
                    ax.annotate("", (i % width, i // width), (j % width, j // width), arrowprops=arrowprops)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        self._explain_widths(ax)

    def _widths(self) -> FloatArray:
        """Return the line widths of the edges, in points."""
        if self.weights is None:
            return np.full(self.structure.parents.shape, 1.2)
        most = float(np.max(self.weights, initial=0.0, where=self.structure.parents >= 0))
        return 0.5 + 2.5 * np.clip(self.weights, 0, None) / (most or 1.0)

    def _explain_widths(self, ax: Any) -> None:
        """Add a caption that explains the line widths."""
        if self.weights is not None and self.structure.n_edges:
            most = float(np.max(self.weights, initial=0.0, where=self.structure.parents >= 0))
            title = f"line widths: {self.weight_name}, maximum {most:.2g}"
            ax.set_title(title, fontsize="small", color=_GREY, y=-0.02, va="top")


def edge_information(structure: Structure, tables: Tables) -> tuple[FloatArray, FloatArray]:
    """Return mutual information, in nats, under the distribution of a network with at most one parent per feature.

    The first result is the conditional mutual information (n_features, width) of each feature and its parent given the
    class. The second result is the mutual information (n_features,) of each feature and the class.
    """
    p_class = np.exp(tables.log_prior)
    p_class = p_class / p_class.sum()  # rounded CPTs do not sum to 1
    of_edges, of_features = np.zeros(structure.parents.shape), np.zeros(structure.n_features)
    marginal: list[FloatArray] = [np.empty(0)] * structure.n_features
    for i in structure.order.tolist():
        table = np.exp(tables[i])
        table = table / np.maximum(table.sum(axis=0, keepdims=True), np.finfo(float).tiny)
        parent = int(structure.parents[i, 0])
        if parent < 0:
            marginal[i] = table
        else:
            joint = table * marginal[parent][np.newaxis]
            marginal[i] = joint.sum(axis=1)
            of_edges[i, 0] = _information(joint * p_class, table, marginal[i][:, np.newaxis])
        of_features[i] = _information(marginal[i] * p_class, marginal[i], (marginal[i] @ p_class)[:, np.newaxis])
    return of_edges, of_features


def _information(joint: FloatArray, given: FloatArray, alone: FloatArray) -> float:
    """Return the mean of log(given / alone) under the joint distribution, in nats, but at least 0."""
    there = joint > 0
    ratio = np.log(np.divide(given, alone, where=there, out=np.ones(joint.shape)))
    return max(0.0, float((joint * ratio).sum()))


def _probabilities(estimator: Any) -> FloatArray:
    """Return the probability of the chosen set of parents of each feature, repeated for each parent."""
    parents = estimator.structure_.parents
    found = np.zeros(parents.shape)
    for i, (row, choices) in enumerate(zip(parents.tolist(), estimator.structure_probabilities_, strict=True)):
        chosen = tuple(j for j in row if j >= 0)
        by_set = {frozenset([key] if isinstance(key, int) else key): p for key, p in choices.items()}
        found[i, : len(chosen)] = by_set.get(frozenset(chosen), 0.0)
    return found


def _broken(name: str) -> str:
    """Break a long label into two lines, or shorten it if it is one word."""
    words, half = name.split(" "), len(name) / 2
    if len(name) <= 12 or len(words) == 1:
        return name if len(name) <= 18 else name[:17] + "\N{HORIZONTAL ELLIPSIS}"
    ends = np.cumsum([len(word) + 1 for word in words])
    cut = int(np.abs(ends[:-1] - half).argmin()) + 1
    return " ".join(words[:cut]) + "\n" + " ".join(words[cut:])
