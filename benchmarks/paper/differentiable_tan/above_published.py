"""Cells of table 1 whose best test error is above the published one, with the numbers of runs."""

from benchmarks.shared.reports import markdown_table, paragraph

from .cells import CELLS
from .complete_runs import best_on_test
from .expected_best import FEWEST, may_find, paper_runs

TEXT = """This section lists cells whose best on test (with the protocol of the paper or ours) is above the published
error. For cells with enough runs of *published* settings, *may find* estimates the result of as many runs as in the
paper (see the tables of the data sets below). *2 se* are two standard errors of the published error, the typical change
with other test rows."""
HEADER = ["set", "cell", "published", "here", "above by", "2 se", "runs", "runs of the paper", "may find"]


def above_published_section(runs):
    """Return the section, or an empty string if there is no such cell."""
    rows = []
    for name, found in runs.items():
        for cell in CELLS:
            published = cell.published.get(name)
            protocols = [
                [run for run in found if run.cell == cell.name and (run.settings == "published") == is_papers]
                for is_papers in (True, False)
            ]
            same = min(filter(None, protocols), key=lambda runs: best_on_test(runs).test, default=None)
            if published is None or same is None or cell.is_closed_form:
                continue
            errors = [100 * run.test for run in same]
            if min(errors) < published + 0.005:
                continue
            n_paper, n_rows = paper_runs(cell), sum(rows for _, _, rows in same[0].folds)
            spread = 2 * (published * (100 - published) / n_rows) ** 0.5
            row = [name, cell.name, f"{published:.2f}", f"{min(errors):.2f}", f"{min(errors) - published:.2f}"]
            row += [f"{spread:.2f}", f"{len(errors)}", f"{n_paper:,}" if n_paper else ""]
            papers = [100 * run.test for run in protocols[0]]
            rows.append([*row, f"{may_find(papers, n_paper):.2f}" if n_paper and len(papers) >= FEWEST else ""])
    if not rows:
        return ""
    return f"## Cells above the published error\n\n{paragraph(TEXT)}\n\n{markdown_table(HEADER, rows, left=(0, 1))}"
