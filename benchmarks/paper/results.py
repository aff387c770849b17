"""Finished trainings as lines of JSON, and the runs that are complete: all folds, test and validation part."""

import json
import os
from collections import defaultdict
from dataclasses import dataclass

from cells import CLOSED_FORM

#: What makes a training; all else follows from it.
KEY = ("cell", "settings", "seed", "epochs", "run", "fold", "part")


def key(line):
    """Return what names a training."""
    return tuple(line[name] for name in KEY)


def read(path):
    """Return the finished trainings of a file; a last line that was not written to its end does not count."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


def reopen(path):
    """Make room for a file of results, or cut off a last line that was not written to its end; return its lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    if not content.endswith(b"\n") and content:
        os.truncate(path, content.rfind(b"\n") + 1)
    return read(path)


def append(path, line):
    """Write a finished training, and see that it reaches the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class CompleteRun:
    """One draw of settings over all folds.

    ``test`` and ``validation`` are wrong rows over rows of all test parts and of all validation parts, ``folds`` has
    for every fold the error on the validation part and the wrong rows and rows of the test part.
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
        closed_form = names[1] == CLOSED_FORM
        if len(test) == n_folds and (closed_form or len(validation) == n_folds):
            seconds = sum(line["seconds"] for line in test) / n_folds
            held_out = None if closed_form else _error(validation)
            errors = {fold: line["error"] for fold, line in parts["validation"].items()}
            folds = tuple(
                (errors.get(fold, 0.0), line["error"] * line["rows"], line["rows"])
                for fold, line in sorted(parts["test"].items())
            )
            runs.append(CompleteRun(*names, test[0]["parameters"], _error(test), held_out, folds, seconds))
    return runs


def best_on_test(runs):
    """Return the run with the lowest test error, as the paper chooses: a choice that has seen the answers."""
    return min(runs, key=lambda run: run.test)


def chosen_on_validation(runs):
    """Return the test error of the choice by validation error, made for every fold by itself.

    The validation rows of a fold are test rows of other folds: one choice for all would have seen every test row.
    """
    chosen = [min(folds, key=lambda fold: fold[0]) for folds in zip(*(run.folds for run in runs), strict=True)]
    return sum(wrong for _, wrong, _ in chosen) / sum(rows for _, _, rows in chosen)


def _error(lines):
    """Return the wrong rows of all folds over their rows."""
    return sum(line["error"] * line["rows"] for line in lines) / sum(line["rows"] for line in lines)
