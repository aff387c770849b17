"""The tree chosen on validation rows among all cells, compared with the lowest published error of a tree."""

from collections import Counter

from benchmarks.shared.reports import markdown_table, paragraph

from .cells import BEST_HEURISTIC, CELLS
from .complete_runs import best_on_test, chosen_on_validation

#: A k-tree has two augmenting parents per feature; the edges of a pseudo-TAN may form cycles.
NO_TREES = {cell.name for cell in CELLS if cell.family in ("K-tree", "Pseudo-TAN")}
TEXT = """This table treats all our runs for trees, including naive Bayes, as one search. The cell is selected per
fold by the lowest validation error, like the settings. With hundreds of runs and a thousand validation rows (satimage),
the lowest error is partly chance. *published* is the lowest test error of a tree in table 1, selected on the test part.
*alone* is the result of the cell that is selected most often, without the others."""
HEADER = ["set", "published", "chosen on validation", "cells chosen (folds)", "alone", "best on test", "runs"]


def best_trees(runs):
    """Return for each data set the lowest published error, the pooled, single and best errors, cells and runs."""
    trees = {
        name: [run for run in found if run.cell not in NO_TREES and run.validation is not None]
        for name, found in runs.items()
    }
    found = {}
    for name, some in ((name, some) for name, some in trees.items() if some):
        cells = Counter(
            min(some, key=lambda run, fold=fold: run.folds[fold][0]).cell for fold in range(len(some[0].folds))
        ).most_common()
        most = [run for run in some if run.cell == cells[0][0]]
        errors = [100 * error for error in (chosen_on_validation(some), chosen_on_validation(most))]
        best = 100 * best_on_test(some).test
        found[name] = (lowest_published(name), *errors, best, dict(cells), len(some))
    return found


def best_trees_section(runs):
    """Return the section, or an empty string if no data set has runs of our settings."""
    rows = []
    for name, (published, pooled, alone, best, cells, n_runs) in best_trees(runs).items():
        chosen = ", ".join(f"{cell} ({n})" for cell, n in cells.items())
        rows.append([name, f"{published:.2f}", f"{pooled:.2f}", chosen, f"{alone:.2f}", f"{best:.2f}", f"{n_runs:,}"])
    if not rows:
        return ""
    return f"## The best tree\n\n{markdown_table(HEADER, rows)}\n\n{paragraph(TEXT)}"


def lowest_published(name):
    """Return the lowest published error of a tree on a data set."""
    figures = [cell.published[name] for cell in CELLS if name in cell.published and cell.name not in NO_TREES]
    return min([*figures, *filter(None, [BEST_HEURISTIC.get(name)])])
