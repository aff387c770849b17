"""Cells of table 1 whose best test error is above the published one, with the numbers of runs."""

from typing import NamedTuple

from benchmarks.shared.reports import markdown_table, paragraph

from .cells import CELLS, Cell
from .complete_runs import best_on_test
from .expected_best import FEWEST, may_find, paper_runs

TEXT = """This section lists cells whose *best on test* (with the protocol of the paper or with ours) is above the
published error. For cells with enough runs of *published* settings, *may find* estimates the result of as many runs as
in the paper (see the tables of the data sets below). The column *2 se* contains two standard errors of the published
error, the typical change with other test rows."""
HEADER = ["set", "cell", "published", "here", "above by", "2 se", "runs", "runs of the paper", "may find"]


class Above(NamedTuple):
    """A cell whose best on test is above the published error, with its runs of the protocol of the paper or ours."""

    set_name: str
    cell: Cell
    published: float
    errors: list
    papers: list
    spread: float

    @property
    def points(self):
        """Return the difference from the published error in points."""
        return min(self.errors) - self.published

    def row(self):
        """Return cells of a table."""
        n_paper, papers = paper_runs(self.cell), self.papers
        row = [self.set_name, self.cell.name, f"{self.published:.2f}", f"{min(self.errors):.2f}", f"{self.points:.2f}"]
        row += [f"{self.spread:.2f}", f"{len(self.errors)}", f"{n_paper:,}" if n_paper else ""]
        return [*row, f"{may_find(papers, n_paper):.2f}" if n_paper and len(papers) >= FEWEST else ""]


def compared_cells(runs):
    """Yield the data set, the cell, and its runs with the lowest test error of each cell with a published error."""
    for name, found in runs.items():
        for cell in CELLS:
            protocols = [
                [run for run in found if run.cell == cell.name and (run.settings == "published") == is_papers]
                for is_papers in (True, False)
            ]
            same = min(filter(None, protocols), key=lambda runs: best_on_test(runs).test, default=None)
            if name in cell.published and same is not None:
                yield name, cell, same, protocols[0]


def cells_above(runs):
    """Return the trained cells above their published error."""
    found = []
    for name, cell, same, papers in compared_cells(runs):
        published, errors = cell.published[name], [100 * run.test for run in same]
        if cell.is_closed_form or min(errors) < published + 0.005:
            continue
        n_rows = sum(rows for _, _, rows in same[0].folds)
        spread = 2 * (published * (100 - published) / n_rows) ** 0.5
        found.append(Above(name, cell, published, errors, [100 * run.test for run in papers], spread))
    return found


def above_published_section(runs):
    """Return the section, or an empty string if there is no such cell."""
    rows = [one.row() for one in cells_above(runs)]
    if not rows:
        return ""
    return f"## Cells above the published error\n\n{paragraph(TEXT)}\n\n{markdown_table(HEADER, rows, left=(0, 1))}"
