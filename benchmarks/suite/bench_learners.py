"""Every learner on one table: the time of a fit and of predictions, error and log loss on test rows.

If a change makes a learner faster and less accurate, two lines of ``asv compare`` differ."""

import numpy as np
from sklearn.metrics import log_loss

from tanlearn import (
    LBFGS,
    BackOffRidge,
    BayesNetClassifier,
    ConjugateGradient,
    ConvexRelaxation,
    CrossTuned,
    ExpectationMaximization,
    ExtendedBaumWelch,
    FixedCPTs,
    HierarchicalDirichlet,
    HierarchicalSmoothing,
    HybridCV,
    IntegerBranchAndBound,
    MaximumLikelihood,
    MonotoneLikelihood,
    NaiveBayesClassifier,
    StochasticGradient,
    TANClassifier,
)
from tanlearn.baselines import (
    LEARNERS,
    ChowLiu,
    DiscriminativeHillClimbing,
    ExactMarginSearch,
    ExplainingAway,
    GradientStructure,
    GreedySearch,
    HillClimbing,
    K2Search,
    KDependence,
    LocalSearch,
    ModelAveraging,
    OrderSearch,
    RandomTree,
    SimulatedAnnealing,
    SuperParent,
)

from .shapes import make_mixed

N_TRAIN, N_TEST = 1_000, 4_000
SEED = {"random_state": 0}


def of_structure(learner):
    """Return how to make a classifier with a learner of structures and smoothed frequencies."""
    return lambda: BayesNetClassifier(structure=learner, **SEED)


def of_parameters(learner):
    """Return how to make a Chow-Liu tree with a learner of parameters."""
    return lambda: BayesNetClassifier(structure=ChowLiu(), parameters=learner, **SEED)


#: Estimators with their defaults that the registry does not have.
ESTIMATORS = {
    f"{kind.__name__}()": lambda kind=kind: kind(**SEED)
    for kind in (NaiveBayesClassifier, BayesNetClassifier, TANClassifier)
}
STRUCTURES = {
    learner.__class__.__name__: of_structure(learner)
    for learner in (
        ChowLiu(),
        ExactMarginSearch(),
        ExplainingAway(),
        KDependence(),
        RandomTree(),
        OrderSearch(),
        GradientStructure(n_epochs=20),
        GreedySearch(),
        HillClimbing(),
        DiscriminativeHillClimbing(),
        LocalSearch(max_steps=1),
        K2Search(),
        SuperParent(),
        SimulatedAnnealing(n_steps=2_000),
    )
}
PARAMETERS = {
    learner.__class__.__name__: of_parameters(learner)
    for learner in (
        MaximumLikelihood(),
        HierarchicalSmoothing(),
        HierarchicalDirichlet(),
        ModelAveraging(),
        MonotoneLikelihood(),
        BackOffRidge(),
        ConjugateGradient(),
        LBFGS(),
        ExtendedBaumWelch(),
        StochasticGradient(),
        HybridCV(),
        CrossTuned(cv=3),
        ConvexRelaxation(),
        IntegerBranchAndBound(max_nodes=5),
        ExpectationMaximization(),
        FixedCPTs({}),
    )
}
#: Learners that are made for rows with missing values, which the others learn from as well.
OF_MISSING_VALUES = ("ExpectationMaximization",)
#: Learners that support two classes only: all but the first one are merged.
OF_TWO_CLASSES = ("MonotoneLikelihood",)


def make_table(case, n_samples, seed):
    """Return the rows and classes of a case."""
    X, y = make_mixed(n_samples, seed)
    if case in OF_TWO_CLASSES:
        y = (y > 0).astype(y.dtype)
    if case in OF_MISSING_VALUES:
        X = np.where(np.random.default_rng(seed).random(X.shape) < 0.1, np.nan, X)
    return X, y


class _Learners:
    """One case per learner."""

    cases = {}
    param_names = ["learner"]
    timeout = 300
    repeat = (1, 5, 5.0)

    def setup(self, case):
        self.X, self.y = make_table(case, N_TRAIN, 0)
        self.X_test, self.y_test = make_table(case, N_TEST, 1)
        self.time_fit(case)  # reads compiled kernels
        self.time_predict(case)

    def time_fit(self, case):
        self.model = self.cases[case]().fit(self.X, self.y)

    def time_predict(self, case):
        self.probabilities = self.model.predict_proba(self.X_test)

    def track_error(self, case):
        return 100 * float(np.mean(self.model.classes_[self.probabilities.argmax(axis=1)] != self.y_test))

    def track_log_loss(self, case):
        return float(log_loss(self.y_test, self.probabilities, labels=self.model.classes_))

    track_error.unit = "% of test rows"
    track_log_loss.unit = "nats per test row"


class Registry(_Learners):
    """The learners of the registry, under the names of the papers."""

    cases = {name: learner.make for name, learner in LEARNERS.items()}
    params = [list(cases)]


class Estimators(_Learners):
    """Estimators with their defaults, the ones in the registry left out."""

    cases = ESTIMATORS
    params = [list(cases)]


class Structures(_Learners):
    """The learners of structures, with smoothed frequencies."""

    cases = STRUCTURES
    params = [list(cases)]


class Parameters(_Learners):
    """The learners of parameters, on a Chow-Liu tree."""

    cases = PARAMETERS
    params = [list(cases)]
