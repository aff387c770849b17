"""The tree chosen on validation rows among all cells, beside the lowest published error of a tree."""

from collections import Counter

from benchmarks.shared.reports import markdown_table, paragraph

from .cells import BEST_HEURISTIC, CELLS
from .complete_runs import best_on_test, chosen_on_validation

#: A k-tree has two augmenting parents per feature; the edges of a pseudo-TAN may form cycles.
NO_TREES = {cell.name for cell in CELLS if cell.family in ("K-tree", "Pseudo-TAN")}
TEXT = """This section treats all our runs for trees, including naive Bayes, as one search. The cell is selected per
fold by the lowest validation error, like the settings. With hundreds of runs and a thousand validation rows (satimage),
the lowest error is partly chance. *published* is the lowest test error of a tree in table 1, selected on the test part.
*alone* is the result of the cell that is selected most often, without the others (see below)."""
HEADER = ["set", "published", "chosen on validation", "cells chosen (folds)", "alone", "best on test", "runs"]


def best_trees_section(runs):
    """Return the section, or an empty string if no data set has runs of our settings."""
    rows = []
    for name, found in runs.items():
        trees = [run for run in found if run.cell not in NO_TREES and run.validation is not None]
        if not trees:
            continue
        cells = Counter(
            min(trees, key=lambda run, fold=fold: run.folds[fold][0]).cell for fold in range(len(trees[0].folds))
        ).most_common()
        most = [run for run in trees if run.cell == cells[0][0]]
        errors = [chosen_on_validation(trees), chosen_on_validation(most), best_on_test(trees).test]
        pooled, alone, best = (f"{100 * error:.2f}" for error in errors)
        chosen = ", ".join(f"{cell} ({n})" for cell, n in cells)
        rows.append([name, _lowest_published(name), pooled, chosen, alone, best, f"{len(trees):,}"])
    if not rows:
        return ""
    return f"## The best tree\n\n{paragraph(TEXT)}\n\n{markdown_table(HEADER, rows)}"


def _lowest_published(name):
    """Return the lowest published error of a tree on a data set, as a string."""
    figures = [cell.published[name] for cell in CELLS if name in cell.published and cell.name not in NO_TREES]
    return f"{min([*figures, *filter(None, [BEST_HEURISTIC.get(name)])]):.2f}"
