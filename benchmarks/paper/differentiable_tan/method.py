"""The part of the report on how its figures were made, and how to read them."""

from collections import Counter
from statistics import median

from benchmarks.shared.reports import paragraph
from benchmarks.shared.versions import made_by

from .cells import CELLS, CLOSED_FORM
from .expected_best import paper_runs

RUNS = """A run is one random draw of the loss and the learning rates, and of the ordering and the parents if a cell has
several. Each run is trained on every fold twice: on the training part to compute the test error, and on 80 % of the
training part to compute the validation error on the other 20 %. Runs of *published* settings are trained on the
training part only, because the paper selects by test error."""
COLUMNS = """- *published*: the lowest test error of all runs of the paper (15,000 runs of TAN Subset).
- *best on test*: the lowest test error of our runs. This error is optimistic, in particular with many runs.
- *chosen on validation*: the test error of the run with the lowest validation error, selected for each fold. A similar
  error can be expected on new rows.
- *narrow* settings are drawn from ranges that wider searches on validation rows selected. *refined* settings are drawn
  from narrower ranges with low validation errors of narrow runs. Both are one search in this report, including its
  median and seconds. The ranges of satimage were refined on the validation rows of all five folds, which are test rows
  of other folds.
- *best quarter*: settings of the quarter of each cell's runs with the lowest validation errors.
- *published* settings (second column) have the epochs, ranges and random search (I or II) of the paper. Each run draws
  one of its two learning rates. The paper reports the better of both rates, so one of its settings equals two of our
  runs.
- *median test error*: the median over all runs. *seconds per training*: the median time on the training part, while
  other trainings were running.

mnist is reduced as in the paper (see shared/mnist.py), but split differently, and its cut points are fitted without
test rows (see shared/data.py). Cells without a published number have other numbers of candidates, or use methods of
this library:

- *k-tree* (two augmenting parents per feature) and *order-free*;
- *OM* and *MM*: ordered and greedy search for the margin;
- *dropout*: CPTs of a given structure (order-free training, margin search, or Chow and Liu), trained with
  `parent_dropout` of StochasticGradient."""


def method(lines, runs):
    """Return how the figures were made, and how to read them."""
    every = [line for found in lines.values() for line in found]
    numbers = ", ".join(f"{name} {len(found):,}" for name, found in runs.items())
    failures = sum(bool(line["failure"]) for line in every)
    trained = f"""There are {len(every):,} trainings, of which {failures:,} failed (a failed training counts as 100 %
    errors). Complete runs: {numbers}."""
    made = made_by(every, "benchmarks.paper.differentiable_tan run", "benchmarks.paper.differentiable_tan report")
    return "\n\n".join((paragraph(RUNS), paragraph(trained), protocol(runs), COLUMNS, made))


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
        f"""{drawn} from the ranges of the paper, which trains for 500 epochs, and {others} draw from our ranges. Runs
        have {_span([run.epochs for run in every])} epochs. The number of runs per cell is: {numbers}.
        {long_trainings(runs.get("mnist", []))}"""
    )


#: The trained cells of mnist in table 1, with the best of the heuristic cells, and epochs of the paper.
HEADLINE = ("NB HYB", "TAN Random HYB", "Chow-Liu HYB", "TAN Subset K=8", "TAN Heuristic C K=8")
EPOCHS = 500


def long_trainings(runs):
    """Return the estimated time of the epochs of the paper on mnist in words, from shorter trainings."""
    cells = {cell.name: cell for cell in CELLS}
    seconds = {}
    for name in HEADLINE:
        same = [run.seconds * EPOCHS / run.epochs for run in runs if run.cell == name]
        if same:
            seconds[name] = median(same)
    if any(run.epochs >= EPOCHS for run in runs) or len(seconds) < len(HEADLINE):
        return ""
    one = sum(seconds.values())
    all_settings = sum(value * paper_runs(cells[name]) for name, value in seconds.items())
    return (
        f"On mnist, {EPOCHS} epochs were not run. One setting of each of {len(HEADLINE)} cells of table 1 would take "
        f"about {one / 60:.0f} minutes of a core, and all settings of the paper about {all_settings / 86400:.0f} days."
    )


def _span(numbers):
    """Return the range of some numbers in words."""
    return f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else f"{min(numbers)}"
