"""Results of learners on all folds of a data set, and comparison of two learners on the same rows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .runs import PUBLISHED, calibration_error, unpacked


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a learner on a data set, from one line per fold. Errors are in %."""

    folds: list

    @property
    def n_rows(self):
        return self.folds[0]["n_train"] + self.folds[0]["n_test"]

    @cached_property
    def wrong(self):
        """Return for all test rows, fold by fold, whether they are wrong."""
        return np.concatenate([unpacked(line["wrong"], line["n_test"]) for line in self.folds])

    @property
    def error(self):
        return 100 * float(self.wrong.mean())

    @property
    def standard_error(self):
        return 100 * float(self.wrong.std() / np.sqrt(len(self.wrong)))

    @property
    def log_loss(self):
        n_test = [line["n_test"] for line in self.folds]
        return float(np.average([line["log_loss"] for line in self.folds], weights=n_test))

    @property
    def calibration(self):
        """Return the expected calibration error of all folds together, which reduces its part due to chance."""
        return 100 * calibration_error(np.sum([line["bins"] for line in self.folds], axis=0))

    @property
    def seconds(self):
        return float(np.mean([line["seconds"] for line in self.folds]))


def outcomes(lines):
    """Return the outcomes of learners with all folds, by data set: small sets first, published parts last."""
    folds = {}
    for line in lines:
        if "failure" not in line:
            folds.setdefault(line["set"], {}).setdefault(line["learner"], {})[line["fold"]] = line
    found = {}
    for name, row in folds.items():
        whole = {learner: some for learner, some in row.items() if len(some) == next(iter(some.values()))["n_folds"]}
        if whole:
            found[name] = {learner: Outcome([some[k] for k in sorted(some)]) for learner, some in whole.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: _sort_key(name, found[name]))}


def first_cells(name, row, value):
    """Return the first cells of a row: data set, number of rows and, for errors, the largest standard error."""
    cells = [name, f"{next(iter(row.values())).n_rows:,}"]
    return [*cells, f"{max(outcome.standard_error for outcome in row.values()):.1f}"] if value == "error" else cells


def first_header(value):
    """Return the header of the first cells."""
    return ["set", "rows", "\N{PLUS-MINUS SIGN}"] if value == "error" else ["set", "rows"]


def _sort_key(name, row):
    """Return the sort key of a data set."""
    return name.endswith(PUBLISHED), next(iter(row.values())).n_rows, name


def paired(a, b):
    """Return the difference of two errors on the same rows in points, and its standard error."""
    difference = a.wrong.astype(float) - b.wrong
    return 100 * float(difference.mean()), 100 * float(difference.std() / np.sqrt(len(difference)))


def mean(found, names, learner, value="error"):
    """Return the mean of a measure over sets."""
    return float(np.mean([getattr(found[name][learner], value) for name in names]))
