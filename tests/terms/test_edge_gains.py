"""Gains of edges and triples against loops over rows, and parents of gains against Kruskal's algorithm."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import term_nets as naive
from support.term_networks import ALL_WITH_MISSING, IS_ORDERED, N_STATES, random_rows

from tanlearn import EncodedData, Structure
from tanlearn.terms.basis import Resolutions
from tanlearn.terms.gains import (
    EdgeGains,
    edge_gains,
    parents_of_gains,
    strongest_features,
    triple_gains,
    with_triples,
)


def of_all(gains):
    """Return the gains of all pairs of features as those of some pairs."""
    return EdgeGains(np.arange(len(gains)), gains)


def every_triple(of_edges):
    """Return the triples of the strongest features, without names."""
    return of_edges.triples(np.arange(len(N_STATES)))


def naive_features(X, weight, n_states=N_STATES, is_ordered=IS_ORDERED, has_missing=None):
    masks = zip(is_ordered, has_missing or [False] * len(is_ordered), strict=True)
    return [naive.Feature(naive.value_weights(X, weight, n_states, i), *own) for i, own in enumerate(masks)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("has_missing", [[False] * 6, ALL_WITH_MISSING])
def test_gains_equal_loops_over_rows(n_classes, missing, is_weighted, has_missing):
    weights = (lambda rng, n: rng.integers(1, 4, n)) if is_weighted else None
    X, y, weight, data = random_rows(120, n_classes, missing=missing, weights=weights, has_missing=has_missing)
    p = np.random.default_rng(1).dirichlet(np.ones(n_classes), len(X))
    found = edge_gains(data, Resolutions(data), p)
    features = naive_features(X, weight, has_missing=has_missing)
    for i, j in itertools.product(range(len(N_STATES)), repeat=2):
        expected = 0.0 if i == j else max(naive.edge_gain(X, y, weight, features, p, i, j))
        assert found[i, j] == pytest.approx(expected, abs=1e-9, rel=1e-9), (i, j)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_gains_of_triples_equal_loops_over_rows(n_classes, missing):
    """Those of features with several values, sorted from large to small."""
    X, y, weight, data = random_rows(120, n_classes, missing=missing, weights=lambda rng, n: rng.integers(1, 4, n))
    p = np.random.default_rng(1).dirichlet(np.ones(n_classes), len(X))
    found = triple_gains(data, Resolutions(data), p, every_triple(of_all(np.zeros((6, 6)))))
    features = naive_features(X, weight)
    assert sorted(scope for _, scope in found) == list(itertools.combinations([0, 1, 3, 4, 5], 3))
    for gain, scope in found:
        assert gain == pytest.approx(naive.triple_gain(X, y, weight, features, p, scope), abs=1e-9, rel=1e-9)
    assert [gain for gain, _ in found] == sorted((gain for gain, _ in found), reverse=True)


def test_triples_of_many_features_are_those_with_the_largest_gains_of_edges(monkeypatch):
    monkeypatch.setattr("tanlearn.terms.gains.MOST_FEATURES_OF_TRIPLES", 3)
    of_edges = np.zeros((6, 6))
    of_edges[0, 3] = of_edges[3, 0] = of_edges[3, 5] = of_edges[5, 3] = 2.0
    of_edges[1, 4] = of_edges[4, 1] = -9.0
    assert every_triple(of_all(of_edges)) == [(0, 3, 5)]


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("tanlearn.terms.gains._BLOCK", 2)
    _, _, _, data = random_rows(120, 3, missing=0.2)
    p = np.random.default_rng(1).dirichlet(np.ones(3), 120)
    one, two = (edge_gains(data, Resolutions(data), p, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
    first, second = (
        triple_gains(data, Resolutions(data), p, every_triple(of_all(one)), n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    assert first == second


def test_the_triple_of_a_parity_of_three_has_the_largest_gain():
    X = np.random.default_rng(0).integers(0, 4, (600, 6))
    y = (X[:, 1] >= 2) ^ (X[:, 2] >= 2) ^ (X[:, 5] >= 2)
    data = EncodedData.from_codes(X, y.astype(int), is_ordered=True)
    p = np.full((600, 2), 0.5)
    found = triple_gains(data, Resolutions(data), p, every_triple(of_all(edge_gains(data, Resolutions(data), p))))
    assert found[0][1] == (1, 2, 5)
    assert found[0][0] > 5 * found[1][0]


@pytest.mark.parametrize("max_parents", [2, 3, 5])
def test_triples_give_no_feature_more_parents_than_allowed(max_parents):
    gains = [(9.0, scope) for scope in itertools.combinations(range(6), 3)]
    found = with_triples(np.full((6, 1), -1), gains, 20, max_parents, np.arange(6))
    assert (found.parents >= 0).sum(axis=1).max() == max_parents
    assert len(found.triples) == sum(
        min(before, max_parents) * (min(before, max_parents) - 1) // 2 for before in range(6)
    )


def test_parents_of_triples_are_added_up_to_five():
    """The last feature in the order of the network is the child; what would give it a sixth parent is left out."""
    parents = np.array([[-1], [0], [1], [-1], [-1], [-1], [-1], [-1]])
    order = Structure(parents[:, 0]).order.tolist()
    gains = [(9.0, (0, 1, 2)), (8.0, (0, 3, 4)), (0.5, (3, 4, 5)), (-1.0, (5, 6, 7))]
    found = with_triples(parents, gains, 10, 5, np.arange(8))
    assert [frozenset(one) for one in found.triples] == [frozenset(one) for gain, one in gains if gain > 0]
    for child, *two in found.triples:
        assert max(order.index(i) for i in two) < order.index(child)
        assert set(two) <= set(found.parents[child].tolist())
    assert len(with_triples(parents, gains, 1, 5, np.arange(8)).triples) == 1
    assert Structure(found.parents).is_acyclic
    # Feature 5 has five parents, and feature 6 comes first.
    star = np.full((7, 5), -1)
    star[0, 0] = 6
    for child in range(1, 6):
        star[child, :child] = range(child)
    gains = [(2.0, (1, 5, 6)), (1.0, (1, 2, 5))]
    assert with_triples(star, gains, 10, 5, np.arange(7)).triples == ((5, 1, 2),)


@pytest.mark.parametrize("parents", [[-1] * 8, [-1, 0, 0, 1, 1, 2, 2, 0]])
def test_triples_do_not_depend_on_the_order_of_columns(parents):
    """Children, and triples that would give a sixth parent, are the same ones under other column numbers."""
    rng = np.random.default_rng(0)
    every = list(itertools.combinations(range(8), 3))
    gains = sorted(zip(rng.random(len(every)).tolist(), every, strict=True), reverse=True)
    expected = with_triples(np.array(parents)[:, np.newaxis], gains, 24, 5, np.arange(8))
    # The limit of five parents leaves out some of the largest gains.
    assert {frozenset(one) for one in expected.triples} != {frozenset(one) for _, one in gains[:24]}
    for _ in range(3):
        feature = rng.permutation(8)  # of each column
        column = np.argsort(feature)
        moved = np.array([-1 if parents[i] < 0 else column[parents[i]] for i in feature])
        of_columns = [(gain, tuple(column[list(one)].tolist())) for gain, one in gains]
        found = with_triples(moved[:, np.newaxis], of_columns, 24, 5, column)
        assert [tuple(feature[list(one)].tolist()) for one in found.triples] == list(expected.triples)
        assert {(feature[i], feature[j]) for i, j in found.edges} == set(expected.edges)


def test_expected_gain_of_independent_classes_is_zero():
    """All classes of seven rows, each with its probability: the gains of cells and of scores are 0 on average."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, (7, 2))
    p = rng.dirichlet(np.ones(2), 7)
    features = naive_features(X.tolist(), [1] * 7, [3, 3], [True, True])
    mean = np.zeros(2)
    for y in itertools.product(range(2), repeat=7):
        chance = float(np.prod(p[np.arange(7), y]))
        expected = naive.edge_gain(X.tolist(), y, [1] * 7, features, p, 0, 1)
        data = EncodedData.from_codes(X, list(y), n_states=[3, 3], n_classes=2, is_ordered=True)
        found = edge_gains(data, Resolutions(data), p)[0, 1]
        assert found == pytest.approx(max(expected), abs=1e-12)
        mean += chance * np.array(expected)
    np.testing.assert_allclose(mean, 0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_ordered", [False, True])
def test_the_gain_of_exclusive_or_is_the_largest(seed, is_ordered):
    X = np.random.default_rng(seed).integers(0, 4, (400, 6))
    y = (X[:, 1] >= 2) ^ (X[:, 4] >= 2)
    data = EncodedData.from_codes(X, y.astype(int), is_ordered=is_ordered)
    gains = edge_gains(data, Resolutions(data), np.full((400, 2), 0.5))
    assert gains[1, 4] > 5 * np.delete(gains[np.triu_indices(6, 1)], 7).max()
    assert parents_of_gains(gains, 1, data.by_name)[4, 0] in (-1, 1)


def test_constant_features_have_no_edges():
    """Their pairs have the residuals of the other feature, which a spanning forest would prefer to real edges."""
    X = np.random.default_rng(0).integers(0, 2, (100, 2))
    data = EncodedData.from_codes(np.column_stack([X[:, 0], np.zeros(100, int), X[:, 1]]), X[:, 0])
    gains = edge_gains(data, Resolutions(data), np.full((100, 2), 0.5))
    assert gains[0, 2] > 0
    assert not gains[1].any()
    assert parents_of_gains(gains, 1, data.by_name)[1, 0] == -1


def test_equal_columns_have_equal_gains():
    """Copies of a column tie exactly, wherever they stand, so that their names decide."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 32, (500, 4))
    y = rng.integers(0, 2, 500)
    p = rng.dirichlet(np.ones(2), 500)
    copies = X[:, [0, 1, 2, 0, 3, 0, 1, 2, 3, 0, 0, 1]]
    data = EncodedData.from_codes(copies, y, is_ordered=True)
    gains = edge_gains(data, Resolutions(data), p)
    others = gains[[1, 2, 4]]
    for copy in (3, 5, 9, 10):
        np.testing.assert_array_equal(others[:, copy], others[:, 0])
    order = rng.permutation(12)
    permuted = data.take_features(order)
    np.testing.assert_array_equal(edge_gains(permuted, Resolutions(permuted), p), gains[np.ix_(order, order)])


# --------------------------------------------------------------------------------------------------------- parents


@st.composite
def symmetric_gains(draw):
    """Draw gains of up to 8 features, of few different values, so that many of them are equal."""
    d = draw(st.integers(1, 8))
    pairs = draw(st.lists(st.integers(-1, 4), min_size=d * (d - 1) // 2, max_size=d * (d - 1) // 2))
    gains = np.zeros((d, d))
    gains[np.triu_indices(d, 1)] = pairs
    return gains + gains.T


def kruskal(gains):
    """Return the edges of the maximum spanning forest of positive gains; of equal ones, the first by name."""
    tree_of, edges = list(range(len(gains))), []
    pairs = [pair for pair in itertools.combinations(range(len(gains)), 2) if gains[pair] > 0]
    for i, j in sorted(pairs, key=lambda pair: (-gains[pair], pair)):
        if tree_of[i] != tree_of[j]:
            edges.append((i, j))
            tree_of = [tree_of[i] if tree == tree_of[j] else tree for tree in tree_of]
    return edges


@given(symmetric_gains())
def test_one_parent_is_the_maximum_spanning_forest(gains):
    parents = parents_of_gains(gains, 1, np.arange(len(gains)))
    edges = sorted((min(i, j), max(i, j)) for i, (j,) in enumerate(parents.tolist()) if j >= 0)
    assert naive.is_forest_of_most_gain(gains, edges)
    assert edges == sorted(kruskal(gains))
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(len(gains)))
    total = np.maximum(gains, 0).sum(axis=1)
    for tree in nx.connected_components(graph):
        (root,) = [i for i in tree if parents[i, 0] < 0]
        assert root == max(tree, key=lambda i: (total[i], -i))


def test_many_equal_gains_are_broken_by_name():
    """Sorting them without keeping their order would depend on the processor."""
    gains = np.ones((40, 40)) - np.eye(40)
    assert parents_of_gains(gains, 1, np.arange(40))[:, 0].tolist() == [-1] + [0] * 39
    names = np.random.default_rng(0).permutation(40)
    expected = np.where(np.arange(40) == names[0], -1, names[0])
    assert parents_of_gains(gains, 1, names)[:, 0].tolist() == expected.tolist()


@given(symmetric_gains(), st.integers(2, 5))
def test_several_parents_are_those_of_largest_gain(gains, n_parents):
    parents = parents_of_gains(gains, n_parents, np.arange(len(gains)))
    assert parents.shape == (len(gains), n_parents)
    total = np.maximum(gains, 0).sum(axis=1)
    order = sorted(range(len(gains)), key=lambda i: (-total[i], i))
    for place, i in enumerate(order):
        ahead = sorted(order[:place], key=lambda j: (-gains[i, j], order.index(j)))
        expected = [j for j in ahead if gains[i, j] > 0][:n_parents]
        assert parents[i].tolist() == expected + [-1] * (n_parents - len(expected))
    graph = nx.DiGraph([(j, i) for i, row in enumerate(parents.tolist()) for j in row if j >= 0])
    assert nx.is_directed_acyclic_graph(graph)


@given(symmetric_gains(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_columns_does_not_matter(gains, n_parents, random):
    d = len(gains)
    expected = parents_of_gains(gains, n_parents, np.arange(d))
    order = list(range(d))
    random.shuffle(order)  # column k of the permuted data is feature order[k]
    found = parents_of_gains(gains[np.ix_(order, order)], n_parents, np.argsort(order))
    for k, row in enumerate(found.tolist()):
        assert [order[j] if j >= 0 else -1 for j in row] == expected[order[k]].tolist()


def wide(n_rows=200, seed=0):
    """Return rows of five features: two predict the class alone, two together, and one is a copy of the first."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n_rows, 5))
    codes[:, 4] = codes[:, 0]
    is_wanted = (codes[:, 0] >= 2) ^ (rng.random(n_rows) < 0.2)
    y = np.where(rng.random(n_rows) < 0.5, is_wanted, (codes[:, 2] + codes[:, 3]) % 2)
    return codes, y.astype(int)


def test_the_strongest_features_have_the_largest_gains_alone(monkeypatch):
    """Those of a parity have none; with equal gains, the first name counts."""
    codes, y = wide()
    data = EncodedData.from_codes(codes, y, is_ordered=True)
    for most, expected in ((5, [0, 1, 2, 3, 4]), (2, [0, 4]), (1, [0])):
        monkeypatch.setattr("tanlearn.terms.gains.MOST_FEATURES", most)
        assert strongest_features(data).tolist() == expected
    named = replace(data, names=("z", "y", "x", "w", "a"))
    assert strongest_features(named).tolist() == [4]


@pytest.mark.parametrize("n_parents", [1, 2])
def test_gains_of_some_features_are_those_of_their_pairs(n_parents):
    _, _, _, data = random_rows(120, 3, missing=0.2)
    p = np.random.default_rng(1).dirichlet(np.ones(3), 120)
    features = np.array([0, 1, 3, 5])
    every = edge_gains(data, Resolutions(data), p)
    some = edge_gains(data, Resolutions(data), p, features)
    np.testing.assert_array_equal(some, every[np.ix_(features, features)])
    without_others = np.zeros(every.shape)
    without_others[np.ix_(features, features)] = some
    expected = parents_of_gains(without_others, n_parents, data.by_name)
    np.testing.assert_array_equal(EdgeGains(features, some).parents(n_parents, data.by_name), expected)
    triples = every_triple(EdgeGains(features, some))
    scopes = [scope for _, scope in triple_gains(data, Resolutions(data), p, triples)]
    assert sorted(scopes) == list(itertools.combinations(features.tolist(), 3))
