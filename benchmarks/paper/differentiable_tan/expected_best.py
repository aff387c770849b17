"""How the best on test depends on the number of runs, and what a search as long as the paper's may find."""

from collections import defaultdict
from math import comb, log10

from benchmarks.paper.shared.report_parts import markdown_table, paragraph

from .cells import CELLS

SIZES = (10, 30, 100)
HEADER = ["cell", *(f"best of {n}" for n in SIZES), "gain", "runs of the paper", "may find", "published"]
#: Settings of random search I and II, each with both learning rates ([DT] 4.2).
N_SETTINGS = {"I": 2 * 500, "II": 2 * 100}
SAID = f"""What the best on test owes to the number of runs of *published* settings: its mean over all choices of
{SIZES[0]}, {SIZES[1]} and {SIZES[2]} of them. *gain*: what the last tenfold of runs has brought. Errors have a lower
end, so a further tenfold brings less; with the same gain again and again, *may find* is no higher than the best that is
to be expected of as many runs as the paper has made (settings times orderings times draws; it does not say how many of
the pseudo-TAN)."""


def expected_best(errors, n):
    """Return the mean over all choices of so many errors of the lowest among them."""
    errors = sorted(errors)
    choices = (comb(len(errors) - 1 - i, n - 1) * error for i, error in enumerate(errors))
    return sum(choices) / comb(len(errors), n)


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
        if len(errors) < SIZES[-1]:
            continue
        bests = [expected_best(errors, n) for n in SIZES]
        gain, n_paper = (bests[0] - bests[-1]) / log10(SIZES[-1] / SIZES[0]), paper_runs(cell)
        row = [cell.name, *(f"{best:.2f}" for best in bests), f"{gain:.2f}"]
        if n_paper:
            row += [f"{n_paper:,}", f"{bests[-1] - gain * log10(n_paper / SIZES[-1]):.2f}"]
        else:
            row += ["", ""]
        published = cell.published.get(name)
        rows.append([*row, "" if published is None else f"{published:.2f}"])
    return f"{paragraph(SAID)}\n\n{markdown_table(HEADER, rows)}" if rows else ""
