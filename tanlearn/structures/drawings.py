"""SVG drawing of a structure, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tanlearn._typing import IntArray
from tanlearn.structures.layered_layout import layered_positions, margins

__all__ = ["structure_svg"]

#: Largest number of features for which names are visible. If there are more, names are tooltips. Distance between
#: features, in pixels, with and without names.
_MOST_NAMES = 40
_NAMED, _DOTTED = (96, 52), (22, 26)
#: Length of the longest name that fits, in characters.
_LETTERS = 13


def structure_svg(parents: IntArray, order: IntArray | None, names: Sequence[str] | None = None) -> str:
    """Return an SVG element that shows the edges between features, in layers with parents above their children.

    ``order`` (n_features,) is a topological order, or None if there is a cycle. If there is a cycle, the result is a
    sentence instead of a drawing. Names are escaped. By default, they are feature indices. Lines have the color of the
    surrounding text.
    """
    if order is None:
        return "<p>The parents form a cycle, so the structure cannot be drawn in layers.</p>"
    names = [str(i) for i in range(len(parents))] if names is None else names
    has_names = len(parents) <= _MOST_NAMES
    dx, dy = _NAMED if has_names else _DOTTED
    positions = layered_positions(parents, order)
    left, right, bottom, top = margins(positions)
    places = [((x - left) * dx, (top - y) * dy) for x, y in positions.tolist()]
    lines, nodes = [], []
    for i, ((x, y), row) in enumerate(zip(places, parents.tolist(), strict=True)):
        for j in row:
            if j >= 0:
                a, b = places[j]
                lines.append(f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{x:.1f}" y2="{y:.1f}"/>')
        name = names[i]
        title = f"<title>{escape(name)}</title>"
        if has_names:
            short = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
            nodes.append(
                f'<g>{title}<rect x="{x - 45:.1f}" y="{y - 11:.1f}" width="90" height="22" rx="11"/>'
                f'<text fill="#222" stroke="none" x="{x:.1f}" y="{y + 4:.1f}">{escape(short)}</text></g>'
            )
        else:
            nodes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5">{title}</circle>')
    width, height = (right - left) * dx, (top - bottom) * dy
    label = f"{len(lines)} edges between {len(parents)} features, from parents above to children below"
    text = 'font-family="sans-serif" font-size="11" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="width:{width:.0f}px;max-width:100%;height:auto">'
        f'<g stroke="currentColor" stroke-opacity="0.5">{"".join(lines)}</g>'
        f'<g fill="#e6eff6" stroke="#0072b2" {text}>{"".join(nodes)}</g></svg>'
    )
