"""The learners of order-based learning, table 1 and figure 1, and two of ours."""

import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC

from tanlearn import BayesNetClassifier, ConditionalNLL, ConjugateGradient, MaximumLikelihood, Structure
from tanlearn.baselines import AODEClassifier, ChowLiu, ExplainingAway, GreedySearch, OrderSearch
from tanlearn.models.log_joint import log_joint

from .many_orderings import CandidateTables, shared_folds

SMOOTHING = MaximumLikelihood(alpha=0, epsilon=1e-5)
#: Section 5.2 smooths its last 2-tree "similar as in" Friedman et al. (1997), who add 5 rows to every distribution.
FRIEDMAN = MaximumLikelihood(alpha=0, epsilon=1e-5, shrinkage=5)
LAPLACE = MaximumLikelihood(alpha=1)
CONDITIONAL = ConjugateGradient(loss=ConditionalNLL(), max_iter=20, calibrate=False)


def learn_structure(learner, data, rng, n_jobs, verbose):
    """Return the learned structure, and the processor seconds of the search."""
    started = time.process_time()
    learner = clone(learner).set_params(n_jobs=n_jobs)
    if "verbose" in learner.get_params():
        learner.set_params(verbose=verbose)
    return learner.learn(data, rng), time.process_time() - started


class FromThird(OrderSearch):
    """The search as the paper writes it: the second feature in the ordering takes no parent."""

    _first = 2


@dataclass(frozen=True)
class Outcome:
    """The result of one run: structure, processor seconds of its search, and rates on training and test rows."""

    structure: Structure | None
    seconds: float
    training: float
    test: dict[str, float]


@dataclass(frozen=True)
class BayesNet:
    """A structure learner (None is naive Bayes), ML parameters, and CL parameters from there on."""

    name: str
    structure: Any = None
    smoothing: MaximumLikelihood = SMOOTHING
    parameters: tuple[str, ...] = ("ML", "CL")

    @property
    def is_random(self):
        """Return whether every run draws an ordering."""
        return "-RO-" in self.name

    @property
    def estimator(self):
        """Return the classifier with ML parameters."""
        return BayesNetClassifier(structure=self.structure, parameters=self.smoothing)

    def run(self, part, rng, *, n_jobs=None, verbose=0):
        """Learn and test once."""
        data = part.data
        structure, seconds = Structure.naive_bayes(data.n_features), 0.0
        if self.structure is not None:
            structure, seconds = learn_structure(self.structure, data, rng, n_jobs, verbose)
        return self.tested(part, structure, seconds, rng, n_jobs)

    def run_orderings(self, part, folds, streams):
        """Learn along one random ordering per generator, all with the validation folds drawn by ``folds``, and test."""
        data, search = part.data, self.structure
        started = time.process_time()
        tables = CandidateTables(data, shared_folds(data, search.validation, folds), search.smoothing)
        of_tables = (time.process_time() - started) / len(streams)
        tested = {}
        for rng in streams:
            started = time.process_time()
            structure = Structure(tables.search(rng.permutation(data.n_features)))
            seconds = of_tables + time.process_time() - started
            key = structure.parents.tobytes()
            if key not in tested:
                tested[key] = self.tested(part, structure, seconds, rng)
            yield replace(tested[key], seconds=seconds)

    def tested(self, part, structure, seconds, rng, n_jobs=None):
        """Return the outcome of a structure whose search took a number of seconds."""
        data = part.data
        tables = {"ML": self.smoothing.fit(structure, data, rng)}
        if "CL" in self.parameters:
            tables["CL"] = CONDITIONAL.improve(tables["ML"], data)

        def rate(tables, codes, y):
            return _rate(log_joint(tables, structure, codes, n_jobs=n_jobs), y)

        test = {name: rate(found, part.codes, part.y) for name, found in tables.items()}
        return Outcome(structure, seconds, rate(tables["ML"], data.codes, data.y), test)


@dataclass(frozen=True)
class AveragedOneDependence:
    """AODE with its defaults, which has no search for a structure."""

    name: str = "AODE"
    parameters: ClassVar = ("ML",)
    is_random: ClassVar = False

    @property
    def estimator(self):
        """Return the classifier."""
        return AODEClassifier()

    def run(self, part, rng, *, n_jobs=None, verbose=0):
        """Learn and test once."""
        started = time.process_time()
        model = self.estimator.set_params(n_jobs=n_jobs).fit_encoded(part.data)
        seconds = time.process_time() - started
        training, test = (
            _rate(model.ensemble_.log_joint(rows.codes, n_jobs=n_jobs), rows.y) for rows in (part.data, part)
        )
        return Outcome(None, seconds, training, {"ML": test})


@dataclass(frozen=True)
class SupportVectors:
    """The support vector machine of figure 1: C = 3 and a radial basis function of width sigma = 1.

    scikit-learn's kernel is exp(-gamma |x - z|^2), the usual one exp(-|x - z|^2 / (2 sigma^2)): gamma = 1/2.
    """

    name: str = "SVM"
    model: SVC = field(default_factory=lambda: SVC(C=3.0, kernel="rbf", gamma=0.5))
    parameters: ClassVar = ("SVM",)
    is_random: ClassVar = False

    @property
    def estimator(self):
        """Return the classifier, of codes as numbers."""
        return self.model

    def run(self, part, rng, *, n_jobs=None, verbose=0):
        """Learn and test once."""
        started = time.process_time()
        model = clone(self.model).fit(part.data.codes.T, part.data.y)
        seconds = time.process_time() - started
        training, test = (float(model.score(rows.codes.T, rows.y)) for rows in (part.data, part))
        return Outcome(None, seconds, training, {"SVM": test})


def _rate(scores, y):
    """Return the share of rows whose class has the highest score."""
    return float(np.mean(scores.argmax(axis=1) == y))


_TWO_TREE = {"max_parents": 2, "validation": 5, "smoothing": SMOOTHING}
LEARNERS = {
    learner.name: learner
    for learner in (
        BayesNet("NB"),
        BayesNet("TAN-CMI", ChowLiu(root=0)),
        BayesNet("TAN-RO-CR", OrderSearch(ordering="random", smoothing=SMOOTHING), parameters=("ML",)),
        BayesNet("TAN-OMI-CR", OrderSearch(smoothing=SMOOTHING)),
        BayesNet("TAN-OMISP-CR", OrderSearch(ordering="cmisp", smoothing=SMOOTHING)),
        BayesNet("TAN-CR", GreedySearch(smoothing=SMOOTHING)),
        BayesNet("2-tree-RO-CR", OrderSearch(ordering="random", **_TWO_TREE), parameters=("ML",)),
        BayesNet("2-tree-OMI-CR", OrderSearch(**_TWO_TREE)),
        BayesNet("TAN-OM", OrderSearch(score="margin", gamma=10, smoothing=SMOOTHING), parameters=("ML",)),
        AveragedOneDependence(),
        BayesNet(
            "2-tree-OMI-CR smoothed",
            OrderSearch(max_parents=2, smoothing=FRIEDMAN),
            smoothing=FRIEDMAN,
            parameters=("ML",),
        ),
        SupportVectors(),
        BayesNet("TAN-OMI-CL", OrderSearch(score="conditional-likelihood", smoothing=SMOOTHING)),
        BayesNet("TAN-OMI-CR, 5 candidates", OrderSearch(n_candidates=5, smoothing=SMOOTHING), parameters=("ML",)),
        BayesNet("2-tree-OMI-CR, 5 candidates", OrderSearch(n_candidates=5, **_TWO_TREE), parameters=("ML",)),
        BayesNet("TAN-EAR", ExplainingAway(root=0, spanning=True)),
        *(
            BayesNet(f"TAN-{name}-CR, {variant}", search.set_params(ordering=ordering), smoothing, ("ML",))
            for name, ordering in (("RO", "random"), ("OMI", "cmi"))
            for variant, smoothing, search in (
                ("from third", SMOOTHING, FromThird(smoothing=SMOOTHING)),
                ("alpha=1", LAPLACE, OrderSearch(smoothing=LAPLACE)),
            )
        ),
    )
}
#: The learners of the experiments, by default.
TABLE_1 = (
    *("NB", "TAN-CMI", "TAN-RO-CR", "TAN-OMI-CR", "TAN-OMISP-CR", "TAN-CR", "2-tree-RO-CR", "2-tree-OMI-CR"),
    *("TAN-OM", "AODE"),
)
#: Other variants that the paper mentions, on the same sets.
WAYS = ("TAN-OMI-CL", "TAN-OMI-CR, 5 candidates", "2-tree-OMI-CR, 5 candidates", "TAN-EAR")
#: Three variants of the search, in each of which an ordering by information is compared with random ones.
VARIANTS = ("", ", from third", ", alpha=1")
ORDERINGS = tuple(f"TAN-{name}-CR{variant}" for variant in VARIANTS for name in ("RO", "OMI"))
FIGURE_1 = ("NB", "TAN-CMI", "TAN-OMI-CR", "SVM")
TABLE_4 = ("NB", "TAN-CMI", "TAN-OMI-CR", "TAN-CR")
