"""Colors, line styles and markers that distinguish learners, even in grayscale and for color-blind readers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

__all__ = ["learner_styles"]

#: Palette of Okabe and Ito (2008) without yellow, which is too light for lines on white.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9")
LINES = ("-", (0, (5, 2)), (0, (1, 1.2)))
MARKERS = "osD^vPX"


def learner_styles(learners: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return color, line style and marker for each learner. The first 21 learners differ in color or line style."""
    styles = itertools.cycle(itertools.product(LINES, zip(COLORS, MARKERS, strict=True)))
    return {
        name: {"color": color, "linestyle": line, "marker": marker}
        for name, (line, (color, marker)) in zip(learners, styles, strict=False)
    }
