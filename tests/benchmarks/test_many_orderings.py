"""The search along many orderings with shared CPTs, against an oracle and against OrderSearch."""

import numpy as np
import pytest
from oracles import wrapper as naive_wrapper
from support.wrapper_searches import SMOOTHINGS, naive_score, random_data, varied_data

from benchmarks.paper.order_based.learners import LEARNERS
from benchmarks.paper.order_based.many_orderings import CandidateTables, shared_folds
from tanlearn.baselines import OrderSearch
from tanlearn.search.runs import Part


def tables_of(data, smoothing, n_folds=3):
    return CandidateTables(data, shared_folds(data, n_folds, np.random.default_rng(0)), smoothing)


def as_sets(parents):
    return [{int(j) for j in own if j >= 0} for own in parents]


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=["alpha", "epsilon"])
@pytest.mark.parametrize("seed", range(6))
def test_structures_are_those_of_the_oracle(smoothing, seed):
    data = varied_data(seed)
    tables, score = tables_of(data, smoothing), naive_score(data, "accuracy", 3, smoothing)
    for number in range(3):
        ordering = np.random.default_rng([seed, number]).permutation(data.n_features)
        expected, _ = naive_wrapper.order_search(ordering.tolist(), 2, score)
        assert as_sets(tables.search(ordering)) == [set(own) for own in expected]


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=["alpha", "epsilon"])
@pytest.mark.parametrize("n_states", [(2, 3, 4, 1, 5, 2, 3, 2), (2,) * 9], ids=["varied", "binary"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_structures_are_those_of_the_search_along_one_ordering(smoothing, n_states, n_classes):
    data = random_data(3, 300, n_states, n_classes)
    tables, found = tables_of(data, smoothing, 5), []
    for number in range(5):
        ordering = np.random.default_rng(number).permutation(data.n_features)
        search = OrderSearch(ordering=ordering, max_parents=2, validation=5, smoothing=smoothing)
        structure = search.learn(data, np.random.default_rng(0))
        found.append(as_sets(tables.search(ordering)))
        assert found[-1] == as_sets(structure.parents)
    assert max(len(own) for parents in found for own in parents) == 2


def test_the_bound_on_memory_is_not_exceeded():
    data = random_data(0, 300, (2, 3, 4, 5, 2, 3, 2))
    tables = tables_of(data, SMOOTHINGS[1], 5)
    pairs = (tables.families[:, 1:] < data.n_features).all(axis=1)
    used = tables.cells.nbytes * pairs.mean() + tables.row[pairs].nbytes
    assert used <= CandidateTables.n_bytes(data, 5)


def test_every_ordering_is_tested_as_if_it_were_the_only_one():
    data = random_data(1, 90, (2, 3, 4, 2))
    part = Part(data.take(np.arange(60)), data.take(np.arange(60, 90)).codes, data.y[60:])
    learner = LEARNERS["2-tree-RO-CR"]
    streams = [np.random.default_rng(k) for k in range(8)]
    outcomes = list(learner.run_orderings(part, np.random.default_rng(0), streams))
    assert len({outcome.structure.parents.tobytes() for outcome in outcomes}) > 1
    for k, outcome in enumerate(outcomes):
        ordering = np.random.default_rng(k).permutation(4)
        alone = OrderSearch(ordering=ordering, max_parents=2, validation=5, smoothing=learner.smoothing)
        structure = alone.learn(part.data, np.random.default_rng(0))
        expected = learner.tested(part, structure, 0.0, None)
        assert (outcome.training, outcome.test) == (expected.training, expected.test)
        assert outcome.seconds > 0
