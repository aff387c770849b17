"""Axes to draw in, and what to install where there are none."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_or_new"]


def axes_or_new(ax: Any) -> Any:
    """Return axes to draw in.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Those that the user has, if any.

    Returns
    -------
    matplotlib.axes.Axes
        The same, or those of a new figure.

    Raises
    ------
    ImportError
        If Matplotlib is needed and not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need Matplotlib. Install it with: pip install "tanlearn[plot]"') from error
    return pyplot.subplots(layout="constrained")[1]
