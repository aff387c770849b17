"""Axes to draw in, and what to install where there are none."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_or_new"]


def axes_or_new(ax: Any) -> Any:
    """Return axes to draw in."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need Matplotlib. Install it with: pip install "tanlearn[plot]"') from error
    return pyplot.subplots(layout="constrained")[1]
