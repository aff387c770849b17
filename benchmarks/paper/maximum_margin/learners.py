"""The learners of maximum-margin learning and some of this library, each trained, tested and timed once."""

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, train_test_split
from sklearn.svm import SVC

from benchmarks.paper.order_based.learners import SMOOTHING
from tanlearn import (
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    ConvexRelaxation,
    CrossTuned,
    Hybrid,
    Margin,
    MaximumLikelihood,
    StochasticGradient,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, GreedySearch, OrderSearch
from tanlearn.encoding.splits import hold_out, validation_masks

from .variants import ETAS, FROM_ML, FROM_RANDOM, LAMBDAS, NORMS, WEIGHTS, Penalized, RandomStart

STRUCTURES = {
    "NB": None,
    "TAN-CMI": ChowLiu(root=0),
    "TAN-OMI-CR": OrderSearch(smoothing=SMOOTHING),
    "TAN-OM": OrderSearch(score="margin", gamma=30, smoothing=SMOOTHING),
    "TAN-CR": GreedySearch(smoothing=SMOOTHING),
}
#: The two choices of settings of the support vector machine.
PUBLISHED, TUNED = "published settings", "cross-tuned"
#: With at least so many features, margins are tens of nats, and so is 1 / lambda.
MANY_FEATURES = 100
KAPPAS = [0.1, 0.5]
#: Figure 5: the paper's range of kappa, with its lambda.
FIGURE_5 = {f"CG-MM, kappa {kappa:g}": kappa for kappa in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)}
#: Variants that might explain the rates of the convex relaxation.
CONVEX_VARIANTS = {
    "CVX-MM, B=0.001": ConvexRelaxation(slack=1e-3),
    "CVX-MM, floor 0.01": ConvexRelaxation(slack=1.0, epsilon=0.01),
}
#: Folds that the weight of a penalty is selected on.
REGULARIZATION_FOLDS = 5
#: Rows on which the support vector machine is tuned: its time grows with their square.
SVM_ROWS = 3000


def scales(n_features):
    """Return the candidates of lambda, from the paper's range of 0.001 to 0.5."""
    return [0.005, 0.01, 0.02, 0.05] if n_features >= MANY_FEATURES else [0.02, 0.05, 0.1, 0.2, 0.5]


@dataclass(frozen=True)
class Fixed:
    """A learner of parameters with fixed settings."""

    learner: Any
    #: Whether settings may be chosen on a sample of the training rows.
    is_sampled = False

    def parameters(self, n_features, max_iter):
        """Return the learner of the parameters."""
        return self.learner

    def run(self, part, structure, rng, options):
        """Learn and test."""
        return measure(self.learner, part, structure, rng)


@dataclass(frozen=True)
class CrossTunedGradient:
    """Conjugate gradient, cross-tuned: lambda and kappa, then the iterations.

    Where the training rows are more than ``options.tune_rows``, lambda and kappa are chosen on a sample of them, and
    the iterations on all.
    """

    loss: Any
    #: lambda and kappa are those of the loss; only the iterations are chosen.
    has_margin: bool = False
    #: The learner, whose loss and iterations are replaced; by default it starts at Laplace's frequencies.
    learner: ConjugateGradient = field(default_factory=ConjugateGradient)

    @property
    def is_sampled(self):
        return isinstance(self.loss, Margin) and not self.has_margin

    def parameters(self, n_features, max_iter):
        """Return the learner of the parameters."""
        grid = {"loss__scale": scales(n_features), "loss__kappa": KAPPAS} if self.is_sampled else {}
        learner = clone(self.learner).set_params(loss=clone(self.loss), max_iter=max_iter)  # ``run`` sets the choice
        return CrossTuned(learner=learner, param_grid=grid, calibrate=False)

    def run(self, part, structure, rng, options):
        """Tune, learn and test."""
        started = time.process_time()
        data = part.data
        tuning = self.parameters(data.n_features, options.max_iter)
        tuning.set_params(n_jobs=options.n_jobs, verbose=options.verbose)
        grid, learner = tuning.param_grid, tuning.learner
        if grid and data.n_samples > options.tune_rows:
            tuning.fit(structure, sample(data, options.tune_rows, rng), rng)
            tuning.set_params(param_grid={name: [value] for name, value in tuning.best_params_.items()})
        tuning.fit(structure, data, rng)
        if tuning.best_n_iter_:
            learner.set_params(**tuning.best_params_, max_iter=tuning.best_n_iter_)
        else:
            learner = Started(learner)
        found = {
            "tuning_seconds": time.process_time() - started,
            "choice": tuning.best_params_,
            "n_iter": tuning.best_n_iter_,
        }
        return {**measure(learner, part, structure, rng), **found}


@dataclass(frozen=True)
class RegularizedGradient:
    """CG-MM without early stopping; the weight of its penalty is selected on folds of at most ``tune_rows`` rows."""

    norm: int
    is_sampled = True

    def parameters(self, n_features, max_iter):
        """Return the learner of the parameters; the weight is selected by ``run``."""
        return Penalized(loss=Margin(), max_iter=max_iter, norm=self.norm, calibrate=False)

    def run(self, part, structure, rng, options):
        """Select the weight, learn and test."""
        started = time.process_time()
        data = part.data if part.data.n_samples <= options.tune_rows else sample(part.data, options.tune_rows, rng)
        learner = self.parameters(data.n_features, options.max_iter)
        rates = dict.fromkeys(WEIGHTS, 0.0)
        for held_out in validation_masks(data.y, data.n_classes, REGULARIZATION_FOLDS, rng):
            rest, validation = data.take(~held_out), data.take(held_out)
            for weight in WEIGHTS:
                tables = clone(learner).set_params(weight=weight).fit(structure, rest, rng)
                rates[weight] += rate(tables, validation.codes, validation.y) / REGULARIZATION_FOLDS
        best = max(rates, key=rates.get)
        found = {"tuning_seconds": time.process_time() - started, "choice": {"weight": best}}
        return {**measure(learner.set_params(weight=best), part, structure, rng), **found}


@dataclass(frozen=True)
class ValidatedHybrid:
    """HYB: Adam on the hybrid loss, with margin and learning rate chosen on a fifth of the training rows."""

    learner: StochasticGradient
    is_sampled = True

    def parameters(self, n_features, max_iter):
        """Return the learner of the parameters; margin and learning rate are chosen by ``run``."""
        return self.learner

    def run(self, part, structure, rng, options):
        """Tune, learn and test."""
        started = time.process_time()
        data = part.data if part.data.n_samples <= options.tune_rows else sample(part.data, options.tune_rows, rng)
        gammas = [50.0, 150.0] if data.n_features >= MANY_FEATURES else [3.0, 10.0]
        held_out = hold_out(data.y, data.n_classes, 0.2, rng)
        rest, validation = data.take(~held_out), data.take(held_out)
        settings = list(ParameterGrid({"loss__gamma": gammas, "learning_rate": [0.01, 0.03]}))
        learners = [clone(self.learner).set_params(**setting) for setting in settings]
        rates = [rate(learner.fit(structure, rest, rng), validation.codes, validation.y) for learner in learners]
        best = int(np.argmax(rates))
        found = {"tuning_seconds": time.process_time() - started, "choice": settings[best]}
        return {**measure(learners[best], part, structure, rng), **found}


@dataclass(frozen=True)
class Started:
    """The start of a search as a learner, where the search has no better iteration."""

    learner: ConjugateGradient

    def fit(self, structure, data, rng):
        """Return the CPTs at the start."""
        return self.learner.start(structure, data, rng)


LEARNERS = {
    "ML": Fixed(SMOOTHING),
    "ML, alpha=1": Fixed(MaximumLikelihood(alpha=1)),
    "CG-MM": CrossTunedGradient(Margin()),
    "CG-CL": CrossTunedGradient(ConditionalNLL()),
    "HYB": ValidatedHybrid(StochasticGradient(loss=Hybrid(trade_off=100, eta=3), n_epochs=80, calibrate=False)),
    **{name: CrossTunedGradient(Margin(scale=0.02, kappa=kappa), True) for name, kappa in FIGURE_5.items()},
    FROM_ML: CrossTunedGradient(Margin(), True, ConjugateGradient(epsilon=SMOOTHING.epsilon)),
    FROM_RANDOM: CrossTunedGradient(Margin(), True, RandomStart()),
    **{name: CrossTunedGradient(Margin(eta=eta), True) for name, eta in ETAS.items()},
    **{name: CrossTunedGradient(Margin(scale=scale), True) for name, scale in LAMBDAS.items()},
    **{name: RegularizedGradient(norm) for name, norm in NORMS.items()},
    # The slack is the paper's for usps.
    "CVX-MM": Fixed(ConvexRelaxation(slack=1.0)),
    **{name: Fixed(learner) for name, learner in CONVEX_VARIANTS.items()},
    "CVX-MM, eq. 9": Fixed(ConvexRelaxation(slack=1.0, epsilon=None)),
}


def call(structure, parameters, n_features, max_iter=100):
    """Return the estimator with a structure and parameters of this module, on data with so many features."""
    learner = LEARNERS[parameters].parameters(n_features, max_iter)
    return BayesNetClassifier(structure=STRUCTURES[structure], parameters=learner)


def measure(learner, part, structure, rng):
    """Fit parameters and test them; return rate, parameters and seconds, or the failure and no rate."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.process_time()
        try:
            tables = learner.fit(structure, part.data, rng)
        except RuntimeError as error:
            return {"rate": None, "seconds": time.process_time() - started, "failure": str(error)}
        seconds = time.process_time() - started
    found = {"rate": rate(tables, part.codes, part.y), "n_parameters": tables.n_parameters, "seconds": seconds}
    return {**found, "warning": "; ".join(dict.fromkeys(str(warning.message) for warning in caught))}


def rate(tables, codes, y):
    """Return the share of complete rows whose class has the highest score."""
    return float(np.mean(tables.layout.log_joint(codes, tables.cells).argmax(axis=1) == y))


def sample(data, n_rows, rng):
    """Return a stratified sample of rows."""
    rows = np.arange(data.n_samples)
    kept, _ = train_test_split(rows, train_size=n_rows, stratify=data.y, random_state=int(rng.integers(2**31)))
    return data.take(np.sort(kept))


def run_aode(problem, n_jobs):
    """Train and test AODE."""
    part = problem.part
    started = time.process_time()
    model = AODEClassifier(n_jobs=n_jobs).fit_encoded(part.data)
    seconds = time.process_time() - started
    right = model.ensemble_.log_joint(part.codes, n_jobs=n_jobs).argmax(axis=1) == part.y
    return {"rate": float(np.mean(right)), "n_parameters": model.n_parameters_, "seconds": seconds}


def published_svm(sigma):
    """Return the published settings of a support vector machine."""
    return {"C": 1.0, "gamma": sigma}


def run_svm(problem, sigma, rng, n_jobs):
    """Train and test a support vector machine on standardized features; without a sigma it is tuned.

    The paper's sigma is used as gamma in exp(-gamma |x - z|^2). It then has 3,845 support vectors on standardized
    features of usps, 3,650 on pixels from 0 to 1, and 3,204 on discretized ones; the paper counts 3,837.
    """
    (X, X_test), (_, labels, train, test) = problem.standardized, problem.table
    y, y_test = labels[train], labels[test]
    started = time.process_time()
    choice = published_svm(sigma)
    if sigma is None:
        n_rows = min(SVM_ROWS, len(y) - problem.part.data.n_classes)
        few, _ = train_test_split(
            np.arange(len(y)), train_size=n_rows, stratify=y, random_state=int(rng.integers(2**31))
        )
        grid = {"C": [1.0, 4.0, 16.0], "gamma": [share / X.shape[1] for share in (0.25, 0.5, 1.0, 2.0)]}
        choice = GridSearchCV(SVC(), grid, n_jobs=n_jobs).fit(X[few], y[few]).best_params_
    tuned = time.process_time()
    model = SVC(**choice, cache_size=1000).fit(X, y)
    seconds = time.process_time() - tuned
    n_vectors = int(model.n_support_.sum())
    return {
        "rate": float(model.score(X_test, y_test)),
        "n_parameters": n_vectors * X.shape[1],  # as table 4 counts
        "n_support_vectors": n_vectors,
        "seconds": seconds,
        "tuning_seconds": tuned - started,
        "choice": choice,
    }
