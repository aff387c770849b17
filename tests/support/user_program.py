"""What a type checker knows of a user's program; ``make types`` checks it, and nothing runs it."""

from typing import assert_type

import numpy as np

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    CandidateSets,
    ConditionalNLL,
    ConjugateGradient,
    EpochReport,
    Hybrid,
    KTreeClassifier,
    Margin,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableEncoder,
    Tables,
    TANClassifier,
    TermNetClassifier,
    pareto_search,
)
from tanlearn.baselines import ChowLiu
from tanlearn.displays import ContributionDisplay, ExplanationDisplay, StructureDisplay

X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
model = TANClassifier(loss=Hybrid(trade_off=100.0), encoder=TableEncoder(discrete_features=True), n_epochs=5).fit(X, y)
assert_type(model, TANClassifier)
assert_type(model.structure_, Structure)
assert_type(model.tables_, Tables)
assert_type(model.tables_.n_parameters, int)
assert_type(model.calibration_.temperature, float)
assert_type(model.candidates_, CandidateSets)
assert_type(model.history_, list[EpochReport])
assert_type(model.with_bits((3, 1)), TANClassifier)
assert_type(model.with_class_prior([0.5, 0.5]), TANClassifier)
assert_type(pareto_search(model, X, y).best_within(size_bits=100.0), TANClassifier)
assert_type(NaiveBayesClassifier(parameters=ConjugateGradient(loss=Margin())).fit(X, y), NaiveBayesClassifier)
assert_type(KTreeClassifier(loss=ConditionalNLL()).fit(X, y), KTreeClassifier)
assert_type(TermNetClassifier(max_parents=2).fit(X, y), TermNetClassifier)
assert_type(BayesForestClassifier(n_estimators=3).fit(X, y), BayesForestClassifier)
network = BayesNetClassifier(structure=ChowLiu(), parameters=MaximumLikelihood(alpha=1.0)).fit(X, y)
assert_type(network, BayesNetClassifier)
assert_type(network.explain(X).ndim, int)
assert_type(StructureDisplay.from_estimator(network), StructureDisplay)
assert_type(ExplanationDisplay.from_estimator(network, X[:1]).bars_, list[tuple[str, float]])
assert_type(ContributionDisplay.from_estimator(network, X, 0), ContributionDisplay)
TANClassifier(n_epoch=3)  # type: ignore[call-arg]
TANClassifier(n_epochs="three")  # type: ignore[arg-type]
