"""k-dependence structures against direct counting, and their limits."""

import itertools
import math

import numpy as np
import pytest
from oracles import networks as naive
from scipy.special import logsumexp

from tanlearn import BayesNetClassifier, EncodedData, MaximumLikelihood, PairCounts, Structure
from tanlearn.baselines import KDependence
from tanlearn.models.log_joint import log_joint

RNG = np.random.default_rng(0)


def random_data(seed=0, n=120, missing=0.0, weight=None):
    """Five features of which some copy others, a class that some depend on."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x0 = rng.integers(0, 3, n)
    x1 = np.where(rng.random(n) < 0.6, (x0 + y) % 3, rng.integers(0, 3, n))
    x2 = np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n))
    x3 = np.where(rng.random(n) < 0.5, x1, x2)
    X = np.stack([x0, x1, x2, x3, rng.integers(0, 2, n)], axis=1)
    X[rng.random(X.shape) < missing] = -1
    return EncodedData.from_codes(X, y, n_states=[3, 3, 3, 3, 2], n_classes=3, sample_weight=weight)


def information(data, i, j=None):
    """I(X_i; X_j | C), or I(X_i; C) without j, from a table of the rows that miss neither."""
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T
    shape = [data.n_states[i], data.n_classes, 1] if j is None else [data.n_states[i], data.n_states[j], data.n_classes]
    table = np.zeros(shape)
    for x, c, w in zip(X, data.y, data.weights, strict=True):
        if x[i] != -1 and (j is None or x[j] != -1):
            table[(x[i], c, 0) if j is None else (x[i], x[j], c)] += w
    return naive.conditional_mutual_information(table)


def brute_force(data, k, threshold):
    """Sahami's algorithm, one feature after the other; the parents of every feature as a set."""
    waiting, used = set(range(data.n_features)), []
    parents = {}
    while waiting:
        i = max(waiting, key=lambda i: information(data, i))
        by_information = sorted(used, key=lambda j: information(data, i, j), reverse=True)
        parents[i] = {j for j in by_information[: min(len(used), k)] if information(data, i, j) > threshold}
        waiting.remove(i)
        used.append(i)
    return [parents[i] for i in range(data.n_features)]


def parent_sets(structure):
    return [{j for j in row if j >= 0} for row in structure.parents.tolist()]


@pytest.mark.parametrize("k", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("threshold", [0.0, 0.05])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_structure_equals_brute_force(k, threshold, missing):
    for seed in range(4):
        data = random_data(seed, missing=missing)
        learnt = KDependence(k=k, threshold=threshold).learn(data, RNG)
        assert parent_sets(learnt) == brute_force(data, k, threshold)


def test_weighted_rows_equal_brute_force_and_weight_two_is_the_row_twice():
    weight = np.random.default_rng(1).integers(0, 3, 120)
    weighted = random_data(5, weight=weight)
    learnt = KDependence(k=2).learn(weighted, RNG)
    assert parent_sets(learnt) == brute_force(weighted, 2, 0.0)
    assert learnt == KDependence(k=2).learn(random_data(5).take(np.repeat(np.arange(120), weight)), RNG)


def test_one_parent_is_the_most_informative_of_the_more_relevant_features():
    data = random_data(6)
    state = PairCounts(data.n_states, data.n_classes).update(data)
    relevance, pairwise = state.mutual_information(), state.conditional_mutual_information()
    parent = KDependence(k=1).from_counts(state).parent
    for i in range(5):
        earlier = relevance > relevance[i]
        expected = np.where(earlier, pairwise[i], -np.inf).argmax() if earlier.any() else -1
        assert parent[i] == expected


def test_no_parent_is_naive_bayes():
    assert KDependence(k=0).learn(random_data(), RNG) == Structure.naive_bayes(5)


def test_a_higher_threshold_leaves_edges_out_and_the_largest_all():
    data = random_data(7)
    n_edges = [KDependence(k=2, threshold=t).learn(data, RNG).n_edges for t in (0, 0.01, 0.1, math.log(3))]
    assert n_edges == sorted(n_edges, reverse=True)
    assert n_edges[0] == 7  # 0 + 1 + 2 + 2 + 2
    assert n_edges[-1] == 0


def test_an_edge_at_the_threshold_is_left_out():
    data = random_data(8)
    state = PairCounts(data.n_states, data.n_classes).update(data)
    weights = state.conditional_mutual_information()
    parent = KDependence(k=1).from_counts(state).parent
    child = int(np.flatnonzero(parent >= 0)[0])
    at = weights[child, parent[child]]
    assert KDependence(k=1, threshold=at).from_counts(state).parent[child] == -1
    assert KDependence(k=1, threshold=at - 1e-11).from_counts(state).parent[child] == parent[child]


def test_constant_features_stay_alone_and_equals_go_by_number():
    y = np.arange(40) % 2
    constant = np.zeros(40, int)
    copies = [y ^ (np.arange(40) % 5 == 0)] * 3
    data = EncodedData.from_codes(np.stack([constant, *copies], axis=1), y)
    assert KDependence(k=2).learn(data, RNG).parents.tolist() == [[-1, -1], [-1, -1], [1, -1], [1, 2]]


def test_of_many_equals_the_first_are_the_parents():
    """Of more than 16, of which only a stable sort keeps the order."""
    y = np.arange(60) % 2
    copies = np.repeat((y ^ (np.arange(60) % 5 == 0))[:, np.newaxis], 40, axis=1)
    parents = KDependence(k=2).learn(EncodedData.from_codes(copies, y), RNG).parents
    assert parents[:3].tolist() == [[-1, -1], [0, -1], [0, 1]]
    assert (parents[2:] == [0, 1]).all()


@pytest.mark.parametrize("weights", [None, "integer", "real"])
@pytest.mark.parametrize("gaps", [0, 0.1])
def test_parents_are_those_of_the_matrix_of_all_pairs(gaps, weights, monkeypatch):
    """Where every feature's earlier ones are sorted; copies and constants make ties."""
    rng = np.random.default_rng(0)
    d, n = 60, 80
    n_states = rng.integers(1, 6, d)
    X = rng.integers(0, n_states, (n, d))
    copied = rng.permutation(d)[:20]
    X[:, copied] = X[:, rng.permutation(d)[:20]] % n_states[copied]
    X[(rng.random((n, d)) < gaps) & (rng.random(d) < 0.5)] = -1
    weight = {None: None, "integer": rng.integers(0, 3, n), "real": rng.uniform(0, 2, n)}[weights]
    data = EncodedData.from_codes(X, rng.integers(0, 3, n), n_states=n_states, sample_weight=weight)
    state = PairCounts(data.n_states, data.n_classes).update(data)
    relevance, pairwise = (
        np.rint(values * 2.0**40) / 2.0**40
        for values in (state.mutual_information(), state.conditional_mutual_information())
    )
    order = np.argsort(-relevance, kind="stable")
    monkeypatch.setattr("tanlearn.counts.mutual_information._TILE", 256)
    monkeypatch.setattr("tanlearn.counts.mutual_information._BLOCK", 600)
    for k, threshold in ((1, 0.0), (2, 0.0), (2, 0.1)):
        parents = KDependence(k=k, threshold=threshold).learn(data, RNG).parents
        for position, i in enumerate(order):
            earlier = np.sort(order[:position])
            best = earlier[np.argsort(-pairwise[i, earlier], kind="stable")][:k]
            assert parents[i][parents[i] >= 0].tolist() == best[pairwise[i, best] > threshold].tolist()


def test_single_feature():
    assert KDependence(k=2).learn(EncodedData.from_codes([[0], [1]], [0, 1]), RNG).parents.tolist() == [[-1, -1]]


def test_threads_change_nothing():
    data = random_data(9)
    assert KDependence(k=2, n_jobs=2).learn(data, RNG) == KDependence(k=2, n_jobs=1).learn(data, RNG)


def test_two_parents_learn_what_one_cannot():
    X = np.random.default_rng(10).integers(0, 2, (400, 3))
    y = X[:, 0] ^ X[:, 1] ^ X[:, 2]
    two, one = (BayesNetClassifier(structure=KDependence(k=k)).fit(X, y).score(X, y) for k in (2, 1))
    assert two == 1
    assert one < 0.8


@pytest.mark.parametrize(
    "parameters",
    [{"k": -1}, {"k": 1.5}, {"threshold": -0.1}, {"threshold": "bic"}, {"n_jobs": 1.5}],
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of KDependence must be"):
        KDependence(**parameters).learn(random_data(), RNG)


@pytest.mark.parametrize("seed", range(20))
def test_rounding_decides_nothing(seed):
    """A constant feature stays alone, and of copies with other names of the values the first one is the parent."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 50)
    x0 = np.where(rng.random(50) < 0.5, y, rng.integers(0, 3, 50))
    x1 = np.where(rng.random(50) < 0.4, x0, rng.integers(0, 3, 50))
    X = np.stack([x0, rng.permutation(3)[x0], rng.permutation(3)[x0], np.zeros(50, int), x1], axis=1)
    parents = KDependence(k=2).learn(EncodedData.from_codes(X, y), RNG).parents
    assert parents[3].tolist() == [-1, -1]
    assert parents[1, 0] == 0
    assert 3 not in parents


def test_two_parents_predict_rows_that_miss_features():
    """Missing values are summed over: against the scores of every completion."""
    data, gaps = random_data(3), random_data(3, missing=0.4)
    structure = KDependence(k=2).learn(data, RNG)
    assert (structure.parents[:, 1] >= 0).any()
    tables = MaximumLikelihood().fit(structure, data, RNG)
    found = log_joint(tables, structure, gaps.codes)
    for row, scores in zip(gaps.codes.T[:20].astype(int), found, strict=False):
        completed = itertools.product(*(range(n) if x == 255 else [x] for x, n in zip(row, data.n_states, strict=True)))
        codes = np.array(list(completed), data.codes.dtype).T
        np.testing.assert_allclose(scores, logsumexp(log_joint(tables, structure, codes), axis=0), rtol=1e-12)


def test_of_many_equals_among_others_the_first_comes_first():
    """Two features in a hundred copies each, one after the other: a sort that is not stable mixes equals."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    a, b = (y + (rng.random(60) < 0.1)) % 2, (y + (rng.random(60) < 0.3)) % 2
    data = EncodedData.from_codes(np.tile(np.column_stack([a, b]), (1, 100)), y)
    parents = KDependence(k=1).learn(data, rng).parents[:, 0]
    assert parents[0] == -1
    assert set(parents[2::2]) == {0}
    assert set(parents[3::2]) == {1}
