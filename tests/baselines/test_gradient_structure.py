"""Structures learned by gradient: interactions are found, and limits and knowledge are kept."""

import numpy as np
import pytest
from oracles import knowledge as naive
from support.family_searches import parents_of, random_data
from support.random_knowledge import random_knowledge

from tanlearn import BayesNetClassifier, Candidates, CandidateSets, EncodedData, HingeMargin, Knowledge
from tanlearn.baselines import GradientStructure
from tanlearn.checks import check_learner

PAIRS = CandidateSets.from_lists([[1, 2], [], [], [], [], []], n_parents=2)


def exclusive_or(n_together, n_samples=400, seed=0):
    """Return rows of six binary features, of which some are informative only together, with a few missing values."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n_samples, 6))
    y = np.bitwise_xor.reduce(x[:, :n_together], axis=1)
    x[rng.random(x.shape) < 0.02] = -1
    return EncodedData.from_codes(x, y, n_states=[2] * 6)


def families_of(structure):
    """Return each feature with its parents as a set."""
    return [{i, *own} for i, own in enumerate(parents_of(structure))]


@pytest.mark.parametrize("candidates", ["order-free", "gain", Candidates("gain", n_candidates=2)])
def test_a_pair_that_is_informative_only_together_is_an_edge(candidates):
    learner = GradientStructure(candidates=candidates, n_epochs=100)
    found = learner.learn(exclusive_or(2), np.random.default_rng(0))
    assert {0, 1} in families_of(found)
    assert len(learner.structure_probabilities_) == 6
    likely = [max(own, key=own.get) for own in learner.structure_probabilities_[:2]]
    assert likely[0] == (1,) or likely[1] == (0,)


def test_a_triple_that_is_informative_only_together_is_a_family():
    found = GradientStructure(max_parents=2, n_epochs=100).learn(exclusive_or(3), np.random.default_rng(0))
    assert {0, 1, 2} in families_of(found)


@pytest.mark.parametrize("max_parents", [1, 2])
def test_knowledge_is_kept(max_parents):
    for seed in range(6):
        data = random_data(seed, n_states=(2, 3, 2, 3), n_classes=3)
        given = random_knowledge(seed, 4, max_parents)
        for kind in ("order-free", "information"):
            own = GradientStructure(
                candidates=kind, max_parents=max_parents, n_epochs=3, knowledge=Knowledge(**given), loss=HingeMargin()
            )
            found = parents_of(own.learn(data, np.random.default_rng(seed)))
            assert naive.permits(found, **given)
            assert naive.is_acyclic(found)
            assert max(map(len, found)) <= max_parents


def test_knowledge_of_candidates_is_kept():
    learner = GradientStructure(candidates=Candidates("order-free", knowledge=Knowledge(required=[(4, 5)])), n_epochs=2)
    assert learner.learn(exclusive_or(2), np.random.default_rng(0)).parent[5] == 4


@pytest.mark.parametrize("max_parents", [1, 2])
def test_the_learner_passes_the_checks(max_parents):
    check_learner(GradientStructure(max_parents=max_parents, n_epochs=5))


def test_other_parameter_learners_accept_the_structure():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 6))
    y = X[:, 0] ^ X[:, 1]
    model = BayesNetClassifier(structure=GradientStructure(n_epochs=100), random_state=0).fit(X, y)
    assert model.score(X, y) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"candidates": "unconstrained"}, "candidates"),
        ({"candidates": Candidates("unconstrained")}, "allow cycles"),
        ({"candidates": PAIRS}, "max_parents is 1. Set max_parents=2"),
        ({"candidates": [[]] * 6, "knowledge": Knowledge()}, "knowledge can be combined only with a kind"),
        ({"candidates": Candidates(knowledge=Knowledge()), "knowledge": Knowledge()}, "knowledge is given twice"),
        ({"max_parents": 3}, "max_parents"),
        ({"loss": "margin"}, "loss"),
    ],
)
def test_invalid_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        GradientStructure(**parameters).learn(exclusive_or(2), np.random.default_rng(0))
