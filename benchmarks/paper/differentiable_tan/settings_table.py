"""Settings of the best quarter of every cell's runs, by validation error."""

import math
from collections import Counter, defaultdict
from statistics import quantiles

from benchmarks.shared.reports import markdown_table

from .cells import CELLS, TEST_PART_ONLY

KIND = {cell.name: cell.kind for cell in CELLS}
HEADER = ["cells", "setting", "drawn", "best quarter"]
#: Parameters that only number a draw.
_NUMBERS = ("random_state", "ordering", "draw")


def settings_table(runs):
    """Return a table of the settings drawn for every kind of cells; empty if there are too few runs."""
    cells = defaultdict(list)
    for run in runs:
        if run.settings not in TEST_PART_ONLY:
            cells[run.cell, run.settings].append(run)
    kinds = defaultdict(lambda: ([], []))
    for (cell, settings), found in cells.items():
        found.sort(key=lambda run: run.validation)
        drawn, best = kinds[KIND[cell], settings]
        drawn += found
        best += found[: len(found) // 4]
    rows = []
    for (kind, settings), (drawn, best) in sorted(kinds.items()):
        if len(best) > 1:
            names = (name for name in drawn[0].parameters if name not in _NUMBERS)
            rows += [[f"{kind}, {settings}", name, *(_spread(some, name) for some in (drawn, best))] for name in names]
    return markdown_table(HEADER, rows, left=(0, 1)) if rows else ""


def _spread(runs, name):
    """Return the range from the 10th to the 90th percentile of a number, or the frequency of every choice."""
    values = [run.parameters[name] for run in runs]
    if isinstance(values[0], float) and len(set(values)) > 5:
        tenths = quantiles(map(math.log10, values), n=10, method="inclusive")
        return f"{10 ** tenths[0]:.2g} to {10 ** tenths[-1]:.2g}"
    counts = Counter(str(value) for value in values)
    return ", ".join(f"{value} {100 * n / len(values):.0f} %" for value, n in sorted(counts.items()))
