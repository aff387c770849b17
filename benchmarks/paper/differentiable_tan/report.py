"""The report on the search, with figures from plots.py."""

from collections import Counter
from statistics import median

from benchmarks.paper.claims import claims_in_words, claims_table
from benchmarks.shared.reports import decimals, markdown_table, paragraph, write_sections

from .above_published import above_published_section, cells_above, compared_cells
from .best_trees import best_trees, best_trees_section
from .cells import BEST_HEURISTIC, CELLS, CLOSED_FORM, TEST_PART_ONLY
from .claims import claims
from .complete_runs import best_on_test, chosen_on_validation, complete_runs
from .expected_best import expected_section
from .mdlp_states import values_in_words, values_section
from .method import method
from .plots import draw_figures
from .recovery import recovery_claim, recovery_section
from .settings_table import settings_table
from .stages import stages_section
from .subsets import complete_settings, subset_claims, subsets_section

HEADER = ["cell", "settings and runs", "published", "best on test (runs)", "chosen on validation", "median test error"]


def write_report(lines, folder, recovered=(), values=(), subsets=(), stages=None):
    """Write the summary ``report.md``, the page of details, and the figures of the trainings of every set.

    ``recovered``, ``values`` and ``subsets`` are the lines of recovery.py, mdlp_states.py and subsets.py, and
    ``stages`` the probabilities of stages.py.
    """
    runs = {name: complete_runs(found) for name, found in lines.items()}
    of_subsets = complete_settings(subsets)
    pictures = draw_figures(runs, folder / "figures", of_subsets)
    found = [*claims(runs), *subset_claims(of_subsets), recovery_claim(recovered)]
    sections = [
        "# Differentiable TAN: table 1 and figures 2 and 3",
        summary(runs, found, values),
        f"## Claims of the paper\n\n{claims_table(found, EVIDENCE)}\n\n{CLAIMS}",
        best_trees_section(runs),
        f"![{in_words(pictures[0].stem)}](figures/{pictures[0].name})" if pictures else "",
        "All cells, settings and figures are on [a separate page](report_details.md).",
        f"## How it was measured\n\n{method(lines, runs)}",
    ]
    write_sections(folder / "report.md", sections)
    details = ["# Differentiable TAN: details", DETAILS, above_published_section(runs)]
    for name, some in runs.items():
        details += [f"## {name}\n\n{table(name, some)}", expected_section(name, some), settings_table(some)]
    details += [
        stages_section(stages),
        subsets_section(of_subsets),
        recovery_section(recovered),
        values_section(values),
    ]
    details.append(
        "## Figures\n\n" + "\n".join(f"![{in_words(path.stem)}](figures/{path.name})\n" for path in pictures)
    )
    write_sections(folder / "report_details.md", details)


def summary(runs, found, values=()):
    """Return the verdicts in sentences."""
    compared = list(compared_cells(runs))
    if not compared:
        return "No cell with a published error is complete yet."
    exact = [
        (name, abs(100 * best_on_test(same).test - cell.published[name]))
        for name, cell, same, _ in compared
        if cell.is_closed_form
    ]
    above, n_trained = cells_above(runs), len(compared) - len(exact)
    text = [
        f"The paper selects the run with the lowest test error. For {n_trained - len(above)} of {n_trained} trained "
        "cells of table 1, the error of this run is at most the published error here."
    ]
    if above:
        worst, n_within = max(above, key=lambda one: one.points), sum(one.points < one.spread for one in above)
        text.append(
            f"For the other {len(above)} cells, the error is {min(one.points for one in above):.2f} to "
            f"{worst.points:.2f} points higher, with the largest difference for {worst.cell.name} on "
            f"{worst.set_name}. {n_within} of these differences are below two standard errors."
        )
    if exact:
        name, most = max(exact, key=lambda one: one[1])
        where = f" ({name}, which is split differently)" if name == "mnist" and most >= 0.005 else f" ({name})"
        text.append(f"The {len(exact)} cells in closed form differ by at most {most:.2f} points{where}.")
    trees = best_trees(runs)
    if trees:
        better = [name for name, (published, pooled, *_) in trees.items() if pooled < published]
        listed = ", ".join(f"{name} {trees[name][1]:.2f} instead of {trees[name][0]:.2f} %" for name in better)
        text.append(
            f"A tree that is selected on validation rows is better than the best published tree on {len(better)} of "
            f"{len(trees)} data sets{f' ({listed})' if better else ''}."
        )
    text += [claims_in_words(found), values_in_words(values)]
    return paragraph(" ".join(filter(None, text)))


EVIDENCE = "evidence (lowest test errors in %)"
CLAIMS = paragraph(
    """Claims are checked with the lowest test errors of the runs with our ranges, because all cells have similar
    numbers of these runs. A difference counts as marginal, similar or no benefit if it is below two standard errors of
    the error. Trainings for the last claim have the initialization, the number of epochs and the larger learning rate
    of the paper ([details](report_details.md))."""
)
DETAILS = paragraph(
    """The [summary](report.md) contains the main results, and explains cells, settings and columns. All errors are test
    errors in %, unless a column states otherwise."""
)


def in_words(picture):
    """Return the description of a picture."""
    number, _, name = picture.removeprefix("figure").partition("-")
    what = "test error of every run over the trade-off"
    by = "by family" if name else "by orderings, candidates and draws"
    return f"Figure {number}{name and f', {name}'}: {what}, {by}"


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
