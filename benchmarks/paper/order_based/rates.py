"""Finished lines of order-based learning as rates and seconds."""

from collections import defaultdict

import numpy as np

from .learners import LEARNERS


def latest(lines):
    """Return the complete results: set -> learner -> lines of all folds, of the largest number of runs."""
    groups = defaultdict(dict)
    for line in lines:
        groups[line["set"], line["learner"], line["n_runs"]][line["fold"]] = line
    found = defaultdict(dict)
    for (name, learner, _), folds in sorted(groups.items()):
        if len(folds) == next(iter(folds.values()))["n_folds"]:
            found[name][learner] = [folds[fold] for fold in sorted(folds)]
    return found


def row_name(learner, parameter):
    """Return the label of a learner with one kind of parameters."""
    return learner if parameter == learner else f"{learner}-{parameter}"


def labels(learners):
    """Return the labels of the rows of a table."""
    return [
        f"{row_name(name, parameter)}{choice}"
        for name in learners
        for parameter in LEARNERS[name].parameters
        for choice in ((" Mean", " Min", " Max") if LEARNERS[name].is_random else ("",))
    ]


def set_rates(learners):
    """Return the rates of a set in %, over all folds, by label.

    Random orderings have their mean, and the test rates of the orderings with the lowest and highest training rate.
    """
    rates = {}
    for name, folds in learners.items():
        weights = [line["n_test"] for line in folds]

        def pooled(choose, parameter, folds=folds, weights=weights):
            return 100 * np.average(
                [choose(line["test"][parameter], line["training"]) for line in folds], weights=weights
            )

        for parameter in LEARNERS[name].parameters:
            row = row_name(name, parameter)
            if LEARNERS[name].is_random:
                rates[f"{row} Mean"] = pooled(lambda test, training: np.mean(test), parameter)
                rates[f"{row} Min"] = pooled(lambda test, training: test[np.argmin(training)], parameter)
                rates[f"{row} Max"] = pooled(lambda test, training: test[np.argmax(training)], parameter)
            else:
                rates[row] = pooled(lambda test, training: np.mean(test), parameter)
    return rates
