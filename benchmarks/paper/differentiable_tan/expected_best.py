"""Expected best test error as a function of the number of runs, extrapolated to the paper's number."""

from collections import defaultdict
from math import comb, log10

from benchmarks.shared.reports import decimals, markdown_table, paragraph

from .cells import CELLS

#: Smallest number of runs to extrapolate from: a tenth of 25 runs would be two.
FEWEST = 80
HEADER = ["cell", "runs", "best of a tenth", "best of a third", "best of all", "gain", "runs of the paper", "may find"]
#: Settings of random search I and II, each with both learning rates ([DT] 4.2).
N_SETTINGS = {"I": 2 * 500, "II": 2 * 100}
TEXT = """This table shows how *best on test* depends on the number of runs with *published* settings. The values for a
tenth and for a third of the runs are means over all possible choices of these runs. *gain* is the decrease from ten
times as many runs. *may find* extrapolates this decrease to the number of runs in the paper (settings times orderings
times draws, unknown for the pseudo-TAN). The extrapolation is mostly too low, because errors have a lower bound."""


def expected_best(errors, n):
    """Return the mean lowest error over all choices of n errors."""
    errors = sorted(errors)
    choices = (comb(len(errors) - 1 - i, n - 1) * error for i, error in enumerate(errors))
    return sum(choices) / comb(len(errors), n)


def gain(errors):
    """Return the decrease of the expected lowest error per tenfold of runs, from a tenth of the runs to all."""
    n, few = len(errors), round(len(errors) / 10)
    return (expected_best(errors, few) - min(errors)) / log10(n / few)


def may_find(errors, n):
    """Return the extrapolated lowest error of n runs, if each tenfold of runs gains as much as the last."""
    return min(errors) - gain(errors) * log10(n / len(errors))


def paper_runs(cell):
    """Return the paper's number of runs of a cell, or None if it is not printed."""
    if cell.family == "Pseudo-TAN":
        return None
    return N_SETTINGS[cell.setting] * max(1, cell.n_orderings) * max(1, cell.n_draws)


def expected_section(name, runs):
    """Return the table of all cells with enough runs of the paper's settings, or an empty string."""
    found = defaultdict(list)
    for run in runs:
        if run.settings == "published":
            found[run.cell].append(100 * run.test)
    rows = []
    for cell in CELLS:
        errors = found[cell.name]
        n = len(errors)
        if n < FEWEST:
            continue
        bests, n_paper = [expected_best(errors, size) for size in (round(n / 10), round(n / 3), n)], paper_runs(cell)
        row = [cell.name, f"{n}", *(f"{best:.2f}" for best in bests), f"{gain(errors):.2f}"]
        row += [f"{n_paper:,}", f"{may_find(errors, n_paper):.2f}"] if n_paper else ["", ""]
        published = cell.published.get(name)
        rows.append([*row, decimals(published)])
    return f"{paragraph(TEXT)}\n\n{markdown_table([*HEADER, 'published'], rows)}" if rows else ""
