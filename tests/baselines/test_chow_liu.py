"""Chow-Liu trees against the enumeration of all trees."""

import itertools

import numpy as np
import pytest
from oracles import networks as naive
from oracles import spanning as sorting

from tanlearn import EncodedData, PairCounts
from tanlearn.baselines import ChowLiu
from tanlearn.baselines.chow_liu import maximum_spanning_forest
from tanlearn.kernels.mathematics import log

RNG = np.random.default_rng(0)


def chain_data(n=400, seed=0):
    """x0 -> x1 -> x2 given the class, x3 alone."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x0 = rng.integers(0, 3, n)
    x1 = np.where(rng.random(n) < 0.8, x0, rng.integers(0, 3, n))
    x2 = np.where(rng.random(n) < 0.8, (x1 + y) % 3, rng.integers(0, 3, n))
    return EncodedData.from_codes(np.stack([x0, x1, x2, rng.integers(0, 3, n)], axis=1), y)


def log_likelihood(data, parent):
    """Maximised log-likelihood of a structure, from raw frequencies."""
    X, total = data.codes.T.astype(int), 0.0
    for i, j in enumerate(parent):
        keys = data.y if j < 0 else data.y * 10 + X[:, j]
        for key in np.unique(keys):
            counts = np.bincount(X[keys == key, i])
            counts = counts[counts > 0]
            total += (counts * np.log(counts / counts.sum())).sum()
    return total


@pytest.mark.parametrize("seed", range(4))
def test_no_forest_is_likelier(seed):
    data = chain_data(80, seed)
    learnt = log_likelihood(data, ChowLiu().learn(data, RNG).parent)
    assert learnt == pytest.approx(max(log_likelihood(data, parent) for parent in naive.all_forests(4)))


def test_chain_is_found():
    parent = ChowLiu(penalty="bic").learn(chain_data(), RNG).parent
    assert parent.tolist() == [-1, 0, 1, -1]


def root_first(root, n_features):
    """Return all feature indices, the root before the others."""
    return np.array([root, *(i for i in range(n_features) if i != root)])


@pytest.mark.parametrize("penalty", [None, "bic"])
def test_every_tree_hangs_on_its_feature_that_is_most_informative_about_the_class(penalty):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    noisy = [np.where(rng.random(400) < share, rng.integers(0, 2, 400), y) for share in (0.9, 0.7, 0.2)]
    other = rng.integers(0, 2, (2, 400))
    copied = np.where(rng.random(400) < 0.1, 1 - other[0], other[0])
    shown = np.where(rng.random(400) < 0.3, y, copied)
    data = EncodedData.from_codes(np.column_stack([*noisy, other[0], shown]), y)
    parent = ChowLiu(penalty=penalty).learn(data, RNG).parent
    state = PairCounts(data.n_states, data.n_classes).update(data)
    of_class = state.mutual_information()
    trees = {}
    for i in range(data.n_features):
        top = i
        while parent[top] >= 0:
            top = parent[top]
        trees.setdefault(top, []).append(i)
    assert len(trees) == 1 or penalty == "bic"
    assert max(len(tree) for tree in trees.values()) > 1
    assert all(of_class[top] == max(of_class[tree]) for top, tree in trees.items())
    assert ChowLiu(penalty=penalty).from_counts(state).parent.tolist() == parent.tolist()


def test_every_tree_of_a_forest_hangs_on_the_root_or_its_lowest_feature():
    """Two chains, 0 - 2 - 4 and 1 - 3 - 5."""
    gain = np.full((6, 6), -1.0)
    for i, j in ((0, 2), (2, 4), (1, 3), (3, 5)):
        gain[i, j] = gain[j, i] = 1.0
    forests = {
        0: [-1, -1, 0, 1, 2, 3],
        1: [-1, -1, 0, 1, 2, 3],
        2: [2, -1, -1, 1, 2, 3],
        3: [-1, 3, 0, -1, 2, 3],
        4: [2, -1, 4, 1, -1, 3],
        5: [-1, 3, 0, 5, 2, -1],
    }
    for root, parent in forests.items():
        assert maximum_spanning_forest([(0, gain)], root_first(root, 6), spanning=False).tolist() == parent


@pytest.mark.parametrize("root", range(4))
def test_root_gets_no_parent_and_edges_stay(root):
    data = chain_data()
    parent = ChowLiu(root=root).learn(data, RNG).parent
    assert parent[root] == -1
    assert (parent >= 0).sum() == 3
    edges = {frozenset(edge) for edge in enumerate(parent.tolist()) if edge[1] >= 0}
    assert edges == {frozenset(edge) for edge in enumerate(ChowLiu().learn(data, RNG).parent.tolist()) if edge[1] >= 0}


def test_penalties_leave_forests():
    data = chain_data()
    n_edges = [ChowLiu(penalty=penalty).learn(data, RNG).n_edges for penalty in (None, 0.0, "aic", "bic", 1e6)]
    assert n_edges == sorted(n_edges, reverse=True)
    assert n_edges[0] == 3
    assert n_edges[-2:] == [2, 0]


def test_a_penalised_edge_pays_for_its_parameters():
    """BIC keeps the edge exactly when it raises the penalised likelihood."""
    for noise in np.linspace(0.0, 0.6, 13):
        rng = np.random.default_rng(7)
        x0 = rng.integers(0, 2, 200)
        x1 = np.where(rng.random(200) < noise, rng.integers(0, 2, 200), x0)
        data = EncodedData.from_codes(np.stack([x0, x1], axis=1), rng.integers(0, 2, 200))
        gain = log_likelihood(data, [-1, 0]) - log_likelihood(data, [-1, -1])
        keeps = ChowLiu(penalty="bic").learn(data, RNG).n_edges == 1
        assert keeps == (gain > 2 * np.log(200) / 2)


def worth(copies, n=200):
    """Two binary features of one class, and the log-likelihood that the edge between them is worth.

    The first ``copies`` rows copy each other, half of them zeros; in the rest all four pairs are equally frequent.
    """
    rest = n - copies
    x0 = np.repeat([0, 1, 0, 0, 1, 1], [copies // 2, copies // 2] + [rest // 4] * 4)
    x1 = np.repeat([0, 1, 0, 1, 0, 1], [copies // 2, copies // 2] + [rest // 4] * 4)
    data = EncodedData.from_codes(np.stack([x0, x1], axis=1), np.zeros(n, int), n_classes=1)
    return data, log_likelihood(data, [-1, 0]) - log_likelihood(data, [-1, -1])


def test_bic_is_half_the_logarithm_of_the_rows_for_a_parameter():
    """One edge is worth a little more than the one parameter it costs, the other a little less."""
    price = np.log(200) / 2
    for copies, n_edges in ((36, 1), (28, 0)):
        data, gain = worth(copies)
        assert price / 1.5 < gain < price * 1.5
        assert (gain > price) == (n_edges == 1)
        assert ChowLiu(penalty="bic").learn(data, RNG).n_edges == n_edges


def test_an_edge_pays_for_its_parameters_in_every_class():
    """Of two equal classes it is worth twice as much, and costs twice as much."""
    once, gain = worth(32)
    twice = once.take(np.repeat(np.arange(200), 2))
    twice = EncodedData.from_codes(twice.codes.T.astype(int), np.arange(400) % 2)
    for price, n_edges in ((0.9 * gain, 1), (1.1 * gain, 0)):
        for data in (once, twice):
            assert ChowLiu(penalty=price).learn(data, RNG).n_edges == n_edges


def test_without_a_price_every_edge_that_is_worth_anything_stays():
    data, gain = worth(8)
    assert 0 < gain < 0.5
    assert ChowLiu(penalty=0.0).learn(data, RNG).n_edges == 1


@pytest.mark.parametrize("seed", range(4))
def test_no_tree_is_likelier_whatever_the_numbers_of_values(seed):
    """Features of many values cost no more than others where nothing has a price."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 60)
    X = np.stack([(y + rng.integers(0, k, 60)) % k for k in (2, 3, 5, 8)], axis=1)
    X[:30, 3] = X[:30, 0]
    data = EncodedData.from_codes(X, y, n_states=[2, 3, 5, 8])
    learnt = log_likelihood(data, ChowLiu().learn(data, RNG).parent)
    assert learnt == pytest.approx(max(log_likelihood(data, parent) for parent in naive.all_forests(4)))


@pytest.mark.parametrize("parameters", [{"root": -1}, {"penalty": "mdl"}, {"penalty": -0.5}, {"n_jobs": 1.5}], ids=str)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of ChowLiu must be"):
        ChowLiu(**parameters).learn(chain_data(), RNG)


def test_aic_is_one_for_a_parameter():
    for copies, n_edges in ((24, 1), (16, 0)):
        data, gain = worth(copies)
        assert 0.5 < gain < 2
        assert (gain > 1) == (n_edges == 1)
        assert ChowLiu(penalty="aic").learn(data, RNG).n_edges == n_edges


def test_an_edge_worth_exactly_its_price_is_left_out():
    """A constant column tells nothing, and costs nothing: 0 for 0."""
    data = EncodedData.from_codes(np.zeros((16, 2), int), np.arange(16) % 2)
    for penalty in (0.0, "aic", "bic"):
        assert ChowLiu(penalty=penalty).learn(data, RNG).parent.tolist() == [-1, -1]
    gain = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0, -1.0, 0.0]])
    assert maximum_spanning_forest([(0, gain)], np.arange(3), spanning=False).tolist() == [-1, -1, 0]


@pytest.mark.parametrize("seed", range(5))
def test_spanning_tree_is_the_heaviest(seed):
    gain = np.random.default_rng(seed).normal(size=(4, 4))
    gain += gain.T
    parent = maximum_spanning_forest([(0, gain)], np.arange(4), spanning=True)
    weights = [
        sum(gain[i, j] for i, j in enumerate(forest) if j >= 0)
        for forest in itertools.product(range(-1, 4), repeat=4)
        if naive.is_acyclic(forest) and sum(j < 0 for j in forest) == 1
    ]
    assert sum(gain[i, j] for i, j in enumerate(parent) if j >= 0) == pytest.approx(max(weights))


def test_independent_and_constant_features_still_span():
    data = EncodedData.from_codes(np.zeros((10, 3), int), np.arange(10) % 2)
    assert ChowLiu().learn(data, RNG).parent.tolist() == [-1, 0, 0]


def first_of_the_heaviest(data):
    """The tree that Kruskal's algorithm finds when edges stand by weight, then by their lower and higher feature."""
    X = data.codes.T.astype(int)
    weights = {}
    for i, j in itertools.combinations(range(data.n_features), 2):
        table = np.zeros((data.n_states[i], data.n_states[j], data.n_classes))
        np.add.at(table, (X[:, i], X[:, j], data.y), 1)
        weights[i, j] = round(naive.conditional_mutual_information(table), 10)
    tree, label = set(), list(range(data.n_features))
    for i, j in sorted(weights, key=lambda edge: (-weights[edge], edge)):
        if label[i] != label[j]:
            tree.add(frozenset((i, j)))
            label = [label[i] if own == label[j] else own for own in label]
    return tree


@pytest.mark.parametrize("seed", range(30))
def test_of_equal_edges_the_order_of_the_features_decides(seed):
    """Copies under other names, constants, and columns that are equal but for the order of the rows."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (40, 3))
    X = np.column_stack(
        [x[:, 0], np.zeros(40, int), x[:, 1], 2 - x[:, 0], (x[:, 1] + 1) % 3, x[:, 2], np.ones(40, int)]
    )
    data = EncodedData.from_codes(X, rng.integers(0, 3, 40))
    parent = ChowLiu().learn(data, RNG).parent
    assert {frozenset((i, j)) for i, j in enumerate(parent.tolist()) if j >= 0} == first_of_the_heaviest(data)


def sorted_tree(data, penalty, root):
    """The long way: counts of all pairs, a matrix of information, all edges sorted."""
    state = PairCounts(data.n_states, data.n_classes).update(data)
    gain = np.rint(state.conditional_mutual_information() * 2.0**40) / 2.0**40
    weight = float(state.class_counts.sum())
    price = {None: 0.0, "aic": 1.0, "bic": log(max(weight, 1.0)) / 2}.get(penalty, penalty)
    free = data.n_states - 1
    if price:
        gain = gain - price / weight * (np.outer(free, free) * data.n_classes)
    return sorting.maximum_spanning_forest(gain, root, spanning=penalty is None)


@pytest.mark.parametrize("weights", [None, "integer", "real"])
@pytest.mark.parametrize("d", [2, 30, 300])
@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("gaps", [0, 0.1])
def test_trees_are_those_of_sorting_all_pairs(d, n_classes, gaps, weights, monkeypatch):
    """Of features of one to seven values, some of them copies or constant, so that there are ties."""
    rng = np.random.default_rng(d + n_classes)
    n = 80
    n_states = rng.integers(1, 8, d)
    X = rng.integers(0, n_states, (n, d))
    copied, sources = rng.permutation(d)[: d // 3], rng.permutation(d)[: d // 3]
    X[:, copied] = X[:, sources] % n_states[copied]
    X[(rng.random((n, d)) < gaps) & (rng.random(d) < 0.5)] = -1
    weight = {None: None, "integer": rng.integers(0, 3, n), "real": rng.uniform(0, 2, n)}[weights]
    y = rng.integers(0, n_classes, n)
    data = EncodedData.from_codes(X, y, n_states=n_states, n_classes=n_classes, sample_weight=weight)
    monkeypatch.setattr("tanlearn.counts.mutual_information._TILE", 256)
    monkeypatch.setattr("tanlearn.counts.mutual_information._BLOCK", 3000)
    monkeypatch.setattr("tanlearn.counts.packing._WORTH_A_THREAD", 1)
    for penalty, root, n_jobs in ((None, 0, 1), (None, d // 2, 2), ("aic", d - 1, 1), ("bic", 1, 2), (0.1, 0, 1)):
        found = ChowLiu(penalty=penalty, root=root, n_jobs=n_jobs).learn(data, RNG).parent
        assert found.tolist() == sorted_tree(data, penalty, root).tolist()


def test_single_feature():
    data = EncodedData.from_codes([[0], [1]], [0, 1])
    assert ChowLiu().learn(data, RNG).parent.tolist() == [-1]


def test_bad_root_is_refused():
    with pytest.raises(ValueError, match=r"root must be a feature \(0..3\), got 4"):
        ChowLiu(root=4).learn(chain_data(), RNG)


def test_threads_change_nothing():
    data = chain_data()
    assert ChowLiu(n_jobs=2).learn(data, RNG) == ChowLiu(n_jobs=1).learn(data, RNG)


@pytest.mark.parametrize(("penalty", "n_edges"), [(None, 2), ("aic", 0), ("bic", 0), (1e-9, 0)])
def test_counts_of_nothing_pay_for_no_edge(penalty, n_edges):
    assert ChowLiu(penalty=penalty).from_counts(PairCounts([2, 2, 2], 2)).n_edges == n_edges
