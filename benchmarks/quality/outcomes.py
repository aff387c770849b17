"""What came of a learner on all folds of a set, and how two of them compare on the same rows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .runs import PUBLISHED, calibration_error, unpacked


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a learner on a set: its lines, a fold each. Errors are in %."""

    folds: list

    @property
    def n_rows(self):
        return self.folds[0]["n_train"] + self.folds[0]["n_test"]

    @cached_property
    def wrong(self):
        """Which test rows were wrong, fold by fold."""
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
        """The expected calibration error of the test rows of all folds together, which lowers what is chance in it."""
        return 100 * calibration_error(np.sum([line["bins"] for line in self.folds], axis=0))

    @property
    def seconds(self):
        return float(np.mean([line["seconds"] for line in self.folds]))


def outcomes(lines):
    """Return what came of every learner whose folds are all done, by set: small sets first, published parts last."""
    folds = {}
    for line in lines:
        if "failure" not in line:
            folds.setdefault(line["set"], {}).setdefault(line["learner"], {})[line["fold"]] = line
    found = {}
    for name, row in folds.items():
        whole = {learner: some for learner, some in row.items() if len(some) == next(iter(some.values()))["n_folds"]}
        if whole:
            found[name] = {learner: Outcome([some[k] for k in sorted(some)]) for learner, some in whole.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: _place(name, found[name]))}


def _place(name, row):
    """Return what sets are sorted by."""
    return name.endswith(PUBLISHED), next(iter(row.values())).n_rows, name


def paired(a, b):
    """Return how many points more one errs than the other on the same rows, and the standard error of that."""
    difference = a.wrong.astype(float) - b.wrong
    return 100 * float(difference.mean()), 100 * float(difference.std() / np.sqrt(len(difference)))


def mean(found, names, learner, value="error"):
    """Return the mean of a measure over sets."""
    return float(np.mean([getattr(found[name][learner], value) for name in names]))
