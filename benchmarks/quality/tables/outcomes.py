"""Results of learners by data set: means over folds of the seeds that all compared learners have finished."""

import numpy as np

from ..runs import PUBLISHED, calibration_error
from .learners import LEARNERS
from .sets import HALF

PARTS = "all sets", "chosen on", "held out"
MEASURES = {"error": "error", "log_loss": "log loss", "brier": "Brier score"}


class Outcomes:
    """Lines of results by data set, learner and seed; a seed counts when all its folds are finished."""

    def __init__(self, lines):
        folds, self.failures = {}, {}
        for line in lines:
            name, learner = line["set"], line["learner"]
            if "failure" in line:
                self.failures.setdefault((name, learner), line["failure"])
            folds.setdefault((name, learner), {}).setdefault(line["seed"], {})[line["fold"]] = line
        self._whole = {
            pair: {seed: list(some.values()) for seed, some in seeds.items() if _is_whole(some)}
            for pair, seeds in folds.items()
        }
        for name in {name for name, _ in folds}:
            for learner in LEARNERS.values():
                instead = self._whole.get((name, learner.stand_in), {})
                if instead and not next(iter(instead.values()))[0]["n_categorical"]:
                    self._whole.setdefault((name, learner.name), instead)
                    if (name, learner.stand_in) in self.failures:
                        self.failures[name, learner.name] = self.failures[name, learner.stand_in]
        self._whole = {pair: seeds for pair, seeds in self._whole.items() if seeds}
        self.learners = [name for name in LEARNERS if any(name == learner for _, learner in self._whole)]
        names = sorted({name for name, _ in self._whole}, key=lambda name: (name.endswith(PUBLISHED), name))
        self.sets = [name for name in names if not name.endswith(PUBLISHED)]
        self.published = names[len(self.sets) :]

    def seeds(self, name, learners):
        """Return the seeds with which all given learners are finished on a data set."""
        return sorted(set.intersection(*(set(self._whole.get((name, learner), ())) for learner in learners)))

    def lines(self, name, learner, seeds=None):
        """Return lines, fold by fold, of some seeds or all."""
        found = self._whole[name, learner]
        return [line for seed in (sorted(found) if seeds is None else seeds) for line in found[seed]]

    def mean(self, name, learner, measure, seeds=None):
        """Return the mean of a measure over folds, or infinity for a failed learner."""
        if (name, learner) in self.failures:
            return np.inf
        return float(np.mean([line[measure] for line in self.lines(name, learner, seeds)]))

    def calibration(self, name, learner):
        """Return the calibration error of all folds together, which reduces its part due to chance."""
        if (name, learner) in self.failures:
            return np.inf
        return 100 * calibration_error(np.sum([line["bins"] for line in self.lines(name, learner)], axis=0))

    def with_areas(self):
        """Return the outcomes of lines with areas under ROC curves, which early lines lack."""
        everything = (line for seeds in self._whole.values() for some in seeds.values() for line in some)
        return Outcomes([line for line in everything if line.get("auc") is not None])

    def common(self, learners, part="all sets"):
        """Return the raw sets of a part that all given learners have finished, with their common seeds."""
        found = {name: self.seeds(name, learners) for name in self.sets if part in ("all sets", HALF.get(name))}
        return {name: seeds for name, seeds in found.items() if seeds}

    def table(self, learners, measure, part="all sets"):
        """Return an array with one row per common data set and one column per learner."""
        found = self.common(learners, part)
        rows = [[self.mean(name, learner, measure, seeds) for learner in learners] for name, seeds in found.items()]
        return np.array(rows).reshape(len(found), len(learners))


def _is_whole(folds):
    """Return whether all folds of a seed are there."""
    return len(folds) == next(iter(folds.values()))["n_folds"]
