"""Finished lines of maximum-margin learning as cells of tables."""

from collections import defaultdict
from statistics import fmean

from .learners import LEARNERS, PUBLISHED, TUNED


def latest(lines):
    """Return the lines of all seeds that are tuned on most rows: set -> (structure, parameters) -> lines."""
    cells = defaultdict(lambda: defaultdict(dict))
    for line in sorted(lines, key=lambda line: line["tune_rows"]):
        cells[line["set"]][line["structure"], line["parameters"]][line["seed"]] = line
    return {name: {cell: list(seeds.values()) for cell, seeds in sets.items()} for name, sets in cells.items()}


def mean(lines, name):
    """Return the mean of a number; a line without it counts as 0."""
    return fmean(line.get(name) or 0.0 for line in lines)


def choice(line):
    """Return the chosen settings in words, and the number of rows they were chosen on."""
    settings = [f"{name.removeprefix('loss__')} {value:.3g}" for name, value in line.get("choice", {}).items()]
    if line.get("n_iter") is not None:
        settings.append(f"{line['n_iter']} iterations")
    if settings and 0 < line["tune_rows"] < line["n_train"]:
        settings.append(f"tuned on {line['tune_rows']:,} rows")
    return ", ".join(settings)


def order(cell):
    """Return the sort key of a cell: structures in the order of the paper, then parameters."""
    structures = ["NB", "TAN-CMI", "TAN-OMI-CR", "TAN-CR", "TAN-OM", "AODE", "SVM"]
    parameters = ["structure", *LEARNERS, PUBLISHED, TUNED]
    (structure, learner), _ = cell
    return structures.index(structure), parameters.index(learner)
