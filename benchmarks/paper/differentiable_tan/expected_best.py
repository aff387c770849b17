"""How the best on test depends on the number of runs, and what a search as long as the paper's may find."""

from collections import defaultdict
from math import comb, log10

from benchmarks.shared.reports import decimals, markdown_table, paragraph

from .cells import CELLS

#: Fewer runs say nothing of ten times as many: of 25, a tenth are two.
FEWEST = 80
HEADER = ["cell", "runs", "best of a tenth", "best of a third", "best of all", "gain", "runs of the paper", "may find"]
#: Settings of random search I and II, each with both learning rates ([DT] 4.2).
N_SETTINGS = {"I": 2 * 500, "II": 2 * 100}
SAID = """What the best on test owes to the number of runs of *published* settings: its mean over all choices of a tenth
and a third of them. *gain*: what a tenfold of runs has brought. *may find* is the best of as many runs as the paper has
made (settings times orderings times draws; it does not say how many of the pseudo-TAN), if every further tenfold
brought as much: a guess, and mostly too low, as errors have a lower end."""


def expected_best(errors, n):
    """Return the mean over all choices of so many errors of the lowest among them."""
    errors = sorted(errors)
    choices = (comb(len(errors) - 1 - i, n - 1) * error for i, error in enumerate(errors))
    return sum(choices) / comb(len(errors), n)


def gain(errors):
    """Return by how much the expected lowest error falls from a tenth of the runs to all, for a tenfold of runs."""
    n, few = len(errors), round(len(errors) / 10)
    return (expected_best(errors, few) - min(errors)) / log10(n / few)


def may_find(errors, n):
    """Return what the lowest error of so many runs may be, if every tenfold brings as much as the last."""
    return min(errors) - gain(errors) * log10(n / len(errors))


def paper_runs(cell):
    """Return how many runs the paper made of a cell, if it says so."""
    if cell.family == "Pseudo-TAN":
        return None
    return N_SETTINGS[cell.setting] * max(1, cell.n_orderings) * max(1, cell.n_draws)


def expected_section(name, runs):
    """Return a row for every cell with enough runs of the paper's settings, or nothing."""
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
    return f"{paragraph(SAID)}\n\n{markdown_table([*HEADER, 'published'], rows)}" if rows else ""
