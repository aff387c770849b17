"""Complete runs, with all folds and both parts, and the choice among them."""

from collections import defaultdict
from dataclasses import dataclass

from benchmarks.shared.results import line_key, pooled_error

from .cells import TEST_PART_ONLY

key = line_key("cell", "settings", "seed", "epochs", "run", "fold", "part")


@dataclass(frozen=True)
class CompleteRun:
    """One draw of settings on all folds.

    ``test`` and ``validation`` are wrong rows over rows of all test parts and of all validation parts. For every fold,
    ``folds`` contains the error on the validation part, and the wrong rows and rows of the test part.
    """

    cell: str
    settings: str
    epochs: int
    seed: int
    run: int
    parameters: dict
    test: float
    validation: float | None
    folds: tuple[tuple[float, float, int], ...]
    seconds: float


def complete_runs(lines):
    """Return the complete runs, sorted."""
    groups = defaultdict(lambda: {"test": {}, "validation": {}})
    for line in lines:
        names = ("cell", "settings", "epochs", "seed", "run")
        groups[tuple(line[name] for name in names)][line["part"]][line["fold"]] = line
    runs = []
    for names, parts in sorted(groups.items()):
        test, validation = (list(parts[part].values()) for part in ("test", "validation"))
        n_folds = next(line["n_folds"] for line in test + validation)
        test_only = names[1] in TEST_PART_ONLY
        if len(test) == n_folds and (test_only or len(validation) == n_folds):
            seconds = sum(line["seconds"] for line in test) / n_folds
            held_out = None if test_only else pooled_error(validation)
            errors = {fold: line["error"] for fold, line in parts["validation"].items()}
            folds = tuple(
                (errors.get(fold, 0.0), line["error"] * line["rows"], line["rows"])
                for fold, line in sorted(parts["test"].items())
            )
            runs.append(CompleteRun(*names, test[0]["parameters"], pooled_error(test), held_out, folds, seconds))
    return runs


def best_on_test(runs):
    """Return the run with the lowest test error, which the paper chooses: an optimistic choice."""
    return min(runs, key=lambda run: run.test)


def chosen_on_validation(runs):
    """Return the test error of the choice by validation error, made separately for every fold.

    The validation rows of a fold are test rows of other folds: a common choice would have used every test row.
    """
    chosen = [min(folds, key=lambda fold: fold[0]) for folds in zip(*(run.folds for run in runs), strict=True)]
    return sum(wrong for _, wrong, _ in chosen) / sum(rows for _, _, rows in chosen)
