"""Plots of a fitted forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tanlearn._plots import axes_or_new
from tanlearn._typing import FloatArray

__all__ = ["plot_dependences", "plot_importances"]

_BLUE = "#0072b2"


def plot_importances(importances: FloatArray, names: Sequence[str], ax: Any = None, *, most: int = 20) -> Any:
    """Draw feature importances (n_features,), in nats, as bars, the ``most`` largest from the top."""
    ax = axes_or_new(ax)
    shown = np.argsort(-importances, kind="stable")[:most]
    ax.barh(np.arange(len(shown)), importances[shown], color=_BLUE)
    ax.set_yticks(np.arange(len(shown)), [names[i] for i in shown])
    ax.invert_yaxis()
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set_xlabel("increase of the log loss without the feature [nats per row]")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_dependences(strengths: FloatArray, names: Sequence[str], ax: Any = None, *, most: int = 20) -> Any:
    """Draw the strengths of dependences (n_features, n_features), in nats, as a map of parents and children.

    Only the ``most`` features with the strongest dependences are shown, in the order of the columns. The diagonal is
    left out, and negative strengths are white.
    """
    ax = axes_or_new(ax)
    own = np.eye(len(strengths), dtype=bool)
    between = np.where(own, 0.0, strengths)
    shown = np.sort(np.argsort(-(between.sum(axis=0) + between.sum(axis=1)), kind="stable")[:most])
    part = np.ix_(shown, shown)
    image = ax.imshow(np.ma.masked_array(between[part], own[part]), cmap="Blues", vmin=0.0)
    ax.set_facecolor("#eeeeee")  # color of masked entries
    labels = [names[i] for i in shown]
    ax.set_xticks(np.arange(len(shown)), labels, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(len(shown)), labels)
    ax.set(xlabel="child", ylabel="parent")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, label="contribution of the child given the parent [nats per row]")
    return ax
