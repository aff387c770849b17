"""Trees that grow vertex by vertex against sorting all edges."""

import itertools

import numpy as np
import pytest
from oracles.spanning import maximum_spanning_forest

from tanlearn.kernels import spanning as kernels


def grow(gain, n_rows):
    """Return parents, weights and numbers of children of the tree, of so many new vertices at a time."""
    d = len(gain)
    parent, weight, n_children = np.full(d, 7), np.full(d, np.nan), np.full(d, 7)
    scratch = np.full(d, 7), np.full(d, 7), np.full(d, np.nan), np.full(d, 7)
    for first in range(0, d, n_rows):
        kernels.insert_vertices(gain[first : first + n_rows], first, parent, weight, n_children, *scratch)
    return parent, weight, n_children


def edges(parent):
    return {frozenset((i, j)) for i, j in enumerate(parent.tolist()) if j >= 0}


@pytest.mark.parametrize("n_weights", [1, 2, 4, 1000])  # few weights: ties, which the order of the features decides
@pytest.mark.parametrize("d", [1, 2, 3, 9, 14])
def test_trees_are_those_of_all_edges_sorted(d, n_weights):
    rng = np.random.default_rng(100 * d + n_weights)
    for n_rows in (1, 4, d):
        gain = np.tril(rng.integers(0, n_weights, (d, d)).astype(float), -1)
        parent, weight, n_children = grow(gain, n_rows)
        assert edges(parent) == edges(maximum_spanning_forest(gain + gain.T, 0, spanning=True))
        assert weight[parent >= 0].tolist() == [gain[max(i, j), min(i, j)] for i, j in enumerate(parent) if j >= 0]
        assert n_children.tolist() == [np.count_nonzero(parent == v) for v in range(d)]


def test_an_edge_that_was_cut_may_stay_further_up():
    """Vertex 3 hangs on the end of a chain: of the circle that its second edge closes, only the lightest edge goes."""
    for weights in itertools.permutations(range(1, 7)):
        gain = np.zeros((4, 4))
        gain[np.tril_indices(4, -1)] = weights
        assert edges(grow(gain, 1)[0]) == edges(maximum_spanning_forest(gain + gain.T, 0, spanning=True))


def test_of_equal_edges_the_lower_lower_end_comes_first_then_the_lower_higher_end():
    parent = np.array([-1, 0, 0, 1])  # the new vertex is 4: edges 0 to 3 are new, 5 + v is (v, parent[v])
    in_order = [5 + 1, 5 + 2, 0, 5 + 3, 1, 2, 3]
    for a, b in itertools.combinations(in_order, 2):
        assert kernels.is_better(1.0, a, 1.0, b, 4, parent)
        assert not kernels.is_better(1.0, b, 1.0, a, 4, parent)
        assert kernels.is_better(1.5, b, 1.0, a, 4, parent)
        assert not kernels.is_better(1.0, a, 1.5, b, 4, parent)


@pytest.mark.parametrize(("top", "expected"), [(-1, [1, 2, -1, 1]), (4, [1, 2, 4, 1])])
def test_a_tree_is_turned_to_hang_on_another_vertex(top, expected):
    parent, weight = np.array([-1, 0, 1, 1, -1]), np.array([0.0, 10.0, 21.0, 31.0, 0.0])
    n_children = np.array([1, 2, 0, 0, 0])
    kernels.hang_on(2, top, 5.0, parent, weight, n_children)
    assert parent.tolist() == [*expected, -1]
    assert weight.tolist() == [10.0, 21.0, 5.0, 31.0, 0.0]
    assert n_children.tolist() == [0, 2, 1, 0, int(top == 4)]
