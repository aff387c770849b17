"""The learners of the comparison: how they are made, and on which data sets they run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from tanlearn import TermNetClassifier
from tanlearn.baselines import LEARNERS as REGISTRY

from . import peers

TUNED = ", tuned"
#: The learner with targets, its forest and boosted terms, and the forest with equal weights.
ENSEMBLE, FOREST, BOOSTED = "BayesEnsemble", "BayesForest", "BoostedTerms"
UNWEIGHTED = f"{FOREST}, unweighted"
#: Names of the registry.
OURS = (
    *("NB ML", "AODE", "A2DE", "A3DE", "KDB-1 ML", "KDB-2 ML", "KDB-5 HS", "KDB-5 HDP", "SKDB"),
    *("TAN-CMI ML", "TAN-CMI CG-CL", "TAN-CMI CG-MM", "TAN Subset HYB", "TAN Order-free HYB"),
    FOREST,
    BOOSTED,
    ENSEMBLE,
)
#: Networks of terms, and their maximum numbers of parents per feature.
TERMS = {"Terms, no edges": 0, "Terms, tree": 1, "Terms, 5 parents": 5}
#: Stages of the runs: counting and defaults of peers, trainings, and settings chosen on folds.
STAGES = COUNTED, TRAINED, CHOSEN = range(3)
#: The peer whose errors ours are compared with, and its variant with numbered categories.
RANDOM_FOREST = "RandomForest"
NUMBERED = f"{RANDOM_FOREST}, numbered"
#: Training rows above which a support vector machine takes too long.
FEW_ROWS = 10_000


@dataclass(frozen=True)
class Learner:
    """A learner of the comparison.

    ``make(table, seed, jobs)`` returns it unfitted. It is not run where ``package`` is not installed, nor on more than
    ``most_rows`` training rows; where no column is categorical it is the learner ``stand_in``, if it has one.
    """

    name: str
    make: Callable
    stage: int
    is_ours: bool = False
    package: str | None = None
    most_rows: int | None = None
    stand_in: str | None = None

    @property
    def is_tuned(self):
        return self.stage == CHOSEN

    @property
    def is_installed(self):
        return self.package is None or find_spec(self.package) is not None

    def is_run_on(self, table):
        """Return whether it is run on a set."""
        if self.stand_in and not table.is_categorical.any():
            return False
        return self.most_rows is None or max(len(train) for train, _ in table.folds) <= self.most_rows


def own(name, title=None, **settings):
    """Return a learner of the registry, under another title where settings make it another."""
    entry = REGISTRY[name]

    def make(table, seed, jobs):
        # These learners merge neighboring values: like the peers, they get the published parts as numbers.
        encoder = None if name in (FOREST, BOOSTED, ENSEMBLE) else table.encoder
        return entry.make(random_state=seed, n_jobs=jobs, encoder=encoder).set_params(**settings)

    return Learner(title or name, make, TRAINED if entry.cost else COUNTED, is_ours=True)


def network_of_terms(name, max_parents):
    """Return a network of terms with at most so many parents per feature, which gets numbers, as the peers do."""

    def make(table, seed, jobs):
        return TermNetClassifier(max_parents=max_parents, n_jobs=jobs)

    return Learner(name, make, TRAINED, is_ours=True)


def forests(name, kind):
    """Return a forest with defaults, and tuned."""
    return [
        Learner(name, partial(peers.forest, kind), COUNTED),
        Learner(f"{name}{TUNED}", partial(peers.tuned_forest, kind), CHOSEN),
    ]


def boosting(name, make, of_trees, fit_until, trees, package=None):
    """Return boosting with defaults, and tuned."""
    tuned = partial(peers.tuned_boosting, name, of_trees, fit_until, trees)
    return [
        Learner(name, make, COUNTED, package=package),
        Learner(f"{name}{TUNED}", tuned, CHOSEN, package=package),
    ]


def numbered_forest():
    """Return the random forest that numbers categories."""
    make = partial(peers.forest, RandomForestClassifier, is_numbered=True)
    return Learner(NUMBERED, make, COUNTED, stand_in=RANDOM_FOREST)


#: All of them, by name.
LEARNERS = {
    learner.name: learner
    for learner in (
        *(own(name) for name in OURS),
        own(FOREST, UNWEIGHTED, weights=None),
        *(network_of_terms(*one) for one in TERMS.items()),
        *forests(RANDOM_FOREST, RandomForestClassifier),
        numbered_forest(),
        *forests("ExtraTrees", ExtraTreesClassifier),
        *boosting(
            "HistGradientBoosting",
            peers.hist_gradient_boosting,
            peers.hist_gradient_boosting_of,
            peers.hist_until,
            "max_iter",
        ),
        *boosting("LightGBM", peers.lightgbm, peers.lightgbm, peers.lightgbm_until, "n_estimators", "lightgbm"),
        *boosting("XGBoost", peers.xgboost, peers.xgboost, peers.xgboost_until, "n_estimators", "xgboost"),
        Learner("CatBoost", peers.catboost, COUNTED, package="catboost"),
        Learner("ChimeraBoost", peers.chimera_boost, COUNTED, package="chimeraboost"),
        Learner("Perpetual", peers.perpetual, COUNTED, package="perpetual"),
        Learner("EBM", peers.explainable_boosting, COUNTED, package="interpret"),
        Learner("LogisticRegression", peers.logistic_regression, COUNTED),
        Learner(f"LogisticRegression{TUNED}", peers.tuned_logistic_regression, CHOSEN),
        Learner(f"SVM{TUNED}", peers.support_vector_machine, CHOSEN, most_rows=FEW_ROWS),
    )
}
