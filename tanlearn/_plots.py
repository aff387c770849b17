"""Matplotlib axes for plots."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_or_new"]


def axes_or_new(ax: Any) -> Any:
    """Return the given axes, or new axes for None. Raise ImportError if Matplotlib is needed but not installed."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need Matplotlib. Install it with: pip install "tanlearn[plot]"') from error
    return pyplot.subplots(layout="constrained")[1]
