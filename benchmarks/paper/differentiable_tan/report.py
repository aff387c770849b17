"""The report on the search; plots.py draws its figures."""

from collections import Counter
from statistics import median

from benchmarks.shared.reports import decimals, markdown_table, paragraph, write_sections
from benchmarks.shared.versions import made_with

from .above_published import above_published_section
from .best_trees import best_trees_section
from .cells import BEST_HEURISTIC, CELLS, CLOSED_FORM, TEST_PART_ONLY
from .complete_runs import best_on_test, chosen_on_validation, complete_runs
from .expected_best import expected_section
from .plots import draw_figures
from .settings_table import settings_table

HEADER = ["cell", "settings and runs", "published", "best on test (runs)", "chosen on validation", "median test error"]


def write_report(lines, folder):
    """Write ``report.md`` and the figures of the trainings of every set into a folder."""
    runs = {name: complete_runs(found) for name, found in lines.items()}
    pictures = draw_figures(runs, folder / "figures")
    sections = [_introduction(lines, runs), best_trees_section(runs), above_published_section(runs)]
    for name, found in runs.items():
        sections += [f"## {name}\n\n{table(name, found)}", expected_section(name, found), settings_table(found)]
    sections.append(
        "## Figures\n\n" + "\n".join(f"![{in_words(path.stem)}](figures/{path.name})\n" for path in pictures)
    )
    write_sections(folder / "report.md", sections)


def _introduction(lines, runs):
    """Return how the figures were made, and how to read them."""
    every = [line for found in lines.values() for line in found]
    numbers = ", ".join(f"{name} {len(found):,}" for name, found in runs.items())
    failures = sum(bool(line["failure"]) for line in every)
    return f"""# Differentiable TAN, table 1 and figures 2 and 3

This page compares our test errors (in %) with those of the paper. There are {len(every):,} trainings, of which
{failures:,} failed (a failed training counts as 100 % errors). Complete runs: {numbers}.

{protocol(runs)}

A run is one random draw of loss and learning rates, and of ordering and parents for cells with several. Each run is
trained on every fold twice: on the training part, for the test error, and on 80 % of it, for the error on the other
20 %. Runs of *published* settings are trained on the training part only, because the paper selects by test error.

- *published*: the lowest test error of all runs of the paper (15,000 runs of TAN Subset).
- *best on test*: the lowest test error of our runs. It is optimistic, and more so with more runs.
- *chosen on validation*: the test error of the run with the lowest validation error, selected for each fold. Expect
  this error on new rows.
- *narrow* settings are drawn from ranges that wider searches on validation rows selected. *refined* settings are drawn
  from narrower ranges with low validation errors of narrow runs. Both count as one search, also for median and seconds.
  The ranges of satimage were refined on the validation rows of all five folds, which are test rows of other folds.
- *best quarter*: settings of the quarter of each cell's runs with the lowest validation errors.
- *published* settings (second column) have the epochs, ranges and random search (I or II) of the paper. Each run draws
  one of its two learning rates. The paper reports the better of both, so two of our runs are one of its settings.
- *median test error*: median over all runs. *seconds per training*: median on the training part, with other trainings
  running at the same time.

mnist is reduced as in the paper (see shared/mnist.py), but split differently, and its cut points are fitted without
test rows (see shared/data.py). Cells without a published number have other numbers of candidates, or methods of this
library:

- *k-tree* (two augmenting parents per feature) and *order-free*;
- *OM* and *MM*: ordered and greedy search for the margin;
- *dropout*: CPTs of a given structure (order-free training, margin search, or Chow and Liu), trained with
  `parent_dropout` of StochasticGradient.

Made by

    python -m benchmarks.paper.differentiable_tan run
    python -m benchmarks.paper.differentiable_tan report

with {made_with(every)}."""


def in_words(picture):
    """Return the description of a picture."""
    number, _, name = picture.removeprefix("figure").partition("-")
    what = "test error of every run over the trade-off"
    by = "by family" if name else "by orderings, candidates and draws"
    return f"Figure {number}{name and f', {name}'}: {what}, {by}"


def protocol(runs):
    """Return the differences from the paper's search: ranges, epochs, and runs per cell."""
    trained = {name: [run for run in found if run.settings != CLOSED_FORM] for name, found in runs.items()}
    every = [run for found in trained.values() for run in found]
    if not every:
        return "No run is complete yet."
    published = sum(run.settings == "published" for run in every)
    drawn = f"{published:,} of {len(every):,} runs draw" if published else "No run draws"
    others = "all others" if published else "all"
    cells = {name: Counter(run.cell for run in found).values() for name, found in trained.items() if found}
    numbers = "; ".join(f"{name} {_span(found)}" for name, found in cells.items())
    return paragraph(
        f"""{drawn} from the ranges of the paper, which trains 500 epochs; {others} draw from our ranges. Runs have
        {_span([run.epochs for run in every])} epochs. The number of runs per cell is: {numbers}."""
    )


def _span(numbers):
    """Return the range of some numbers in words."""
    return f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else f"{min(numbers)}"


def table(name, runs):
    """Return the table of a data set."""
    rows = []
    for cell in CELLS:
        rows += _rows(cell.name, cell.published.get(name), [run for run in runs if run.cell == cell.name])
    heuristic = {cell.name for cell in CELLS if cell.family == "TAN Heuristic"}
    found = [run for run in runs if run.cell in heuristic]
    rows += _rows("TAN Heuristic, all twelve", BEST_HEURISTIC.get(name), found)
    return markdown_table([*HEADER, "seconds per training"], rows, left=(0, 1))


def _rows(cell, published, runs):
    """Return rows for a closed form, for the paper's settings, and for both stages of ours together."""
    rows = []
    for stages in ((CLOSED_FORM,), ("published",), ("narrow", "refined")):
        same = [run for run in runs if run.settings in stages]
        if not same:
            continue
        closed_form, test_only = CLOSED_FORM in stages, stages[0] in TEST_PART_ONLY
        seconds = median(run.seconds for run in same)
        numbers = Counter((run.settings, run.epochs) for run in same)
        stages = [f"{settings}, {epochs} epochs: {n}" for (settings, epochs), n in sorted(numbers.items())]
        fields = [
            cell,
            CLOSED_FORM if closed_form else "; ".join(stages),
            decimals(published),
            f"{100 * best_on_test(same).test:.2f}" + ("" if closed_form else f" ({len(same)})"),
            "" if test_only else f"{100 * chosen_on_validation(same):.2f}",
            "" if closed_form else f"{100 * median(run.test for run in same):.2f}",
            f"{seconds:.2f}" if closed_form else f"{seconds:.0f}",
        ]
        rows.append(fields)
    return rows
