"""Random trees: their shape, and that they are as random as the paper says."""

import numpy as np
import pytest
from scipy.stats import chisquare

from tanlearn import EncodedData, PairCounts
from tanlearn.baselines import RandomTree
from tanlearn.parameters.parameter_learner import check_learner_device


def table(n_features):
    """Return two rows with so many features."""
    return EncodedData.from_codes(np.zeros((2, n_features), dtype=int), [0, 1])


@pytest.mark.parametrize("n_features", [1, 2, 7, 40])
def test_every_feature_but_the_first_has_one_parent_and_nothing_is_a_cycle(n_features):
    structure = RandomTree().learn(table(n_features), np.random.default_rng(0))
    assert structure.is_acyclic
    assert structure.n_edges == n_features - 1
    assert (structure.parent == -1).sum() == 1


def test_parents_come_before_their_children_in_the_given_ordering():
    ordering = [3, 0, 4, 1, 2]
    position = np.argsort(ordering)
    rng = np.random.default_rng(1)
    for _ in range(50):
        parent = RandomTree(ordering=ordering).learn(table(5), rng).parent
        assert parent[3] == -1
        assert all(position[j] < position[i] for i, j in enumerate(parent) if i != 3)


@pytest.mark.parametrize("ordering", [None, [3, 0, 4, 1, 2]])
def test_counts_have_the_tree_of_rows(ordering):
    data = table(5)
    state = PairCounts(data.n_states, data.n_classes).update(data)
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(20):
        assert RandomTree(ordering=ordering).from_counts(state, one) == RandomTree(ordering=ordering).learn(data, two)


def test_every_parent_before_a_feature_is_equally_likely():
    ordering, n = [2, 0, 3, 1], 3000
    rng = np.random.default_rng(2)
    parents = np.array([RandomTree(ordering=ordering).learn(table(4), rng).parent for _ in range(n)])
    for k in range(1, 4):
        counts = [(parents[:, ordering[k]] == j).sum() for j in ordering[:k]]
        assert sum(counts) == n
        assert k == 1 or chisquare(counts).pvalue > 0.01


def test_every_root_is_equally_likely_without_an_ordering():
    rng = np.random.default_rng(3)
    roots = [RandomTree().learn(table(5), rng).parent.argmin() for _ in range(2000)]
    assert chisquare(np.bincount(roots, minlength=5)).pvalue > 0.01


def test_generator_alone_decides():
    first, second, other = (RandomTree().learn(table(20), np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert first == second
    assert first != other


@pytest.mark.parametrize("ordering", [[0, 1], [0, 1, 1], [1, 2, 3]])
def test_ordering_that_is_no_permutation_is_refused(ordering):
    with pytest.raises(ValueError, match="ordering must contain each number from 0 to 2 once"):
        RandomTree(ordering=ordering).learn(table(3), np.random.default_rng(0))


def test_it_is_for_every_device_and_its_parameter_is_checked():
    for device in ("cpu", "cuda"):
        check_learner_device(RandomTree(), device)
    with pytest.raises(ValueError, match="'ordering' parameter of RandomTree must be"):
        RandomTree(ordering="random").learn(table(3), np.random.default_rng(0))
