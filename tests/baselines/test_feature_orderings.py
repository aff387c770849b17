"""Orderings by information about the class, against the entropies of patterns of rows."""

import numpy as np
import pytest
from oracles import wrapper as naive_wrapper

from tanlearn import EncodedData, PairCounts
from tanlearn.baselines.feature_orderings import all_parents_ordering, single_parent_ordering


def single_parent(data):
    return single_parent_ordering(PairCounts(data.n_states, data.n_classes).update(data))


ORDERINGS = [
    (all_parents_ordering, naive_wrapper.all_parents_ordering),
    (single_parent, naive_wrapper.single_parent_ordering),
]
BOTH = pytest.mark.parametrize(("ours", "naive"), ORDERINGS, ids=["all parents", "single parent"])


def random_data(seed, n=60, d=6, weight=None):
    """Features that tell a little about the class, alone or together; after a few of them every row is alone."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, rng.integers(2, 5, d), (n, d))
    y = np.where(rng.random(n) < 0.5, (X[:, 0] + X[:, 1] * X[:, 2]) % 3, rng.integers(0, 3, n))
    return EncodedData.from_codes(X, y, sample_weight=weight)


def naive_ordering(naive, data):
    return naive(data.codes.T.astype(int), data.y, data.weights.astype(float))


@BOTH
@pytest.mark.parametrize("seed", range(10))
def test_ordering_equals_the_one_from_entropies_of_patterns(ours, naive, seed):
    data = random_data(seed)
    assert ours(data).tolist() == naive_ordering(naive, data)


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_weighted_rows(ours, naive, seed):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, 60)
    data = random_data(seed, weight=weight)
    assert ours(data).tolist() == naive_ordering(naive, data)
    assert ours(data).tolist() == ours(random_data(seed).take(np.repeat(np.arange(60), weight))).tolist()
    real = random_data(seed, weight=rng.uniform(0.1, 1, 60))
    assert ours(real).tolist() == naive_ordering(naive, real)


@BOTH
def test_weight_zero_is_an_absent_row(ours, naive):
    weight = np.random.default_rng(0).integers(0, 2, 60)
    for seed in range(4):
        present = random_data(seed).take(weight > 0)
        assert ours(random_data(seed, weight=weight)).tolist() == ours(present).tolist()


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_of_equally_informative_features_the_lower_number_comes_first(ours, naive, seed):
    """Every feature stands there three times, once with its values in another order."""
    X = random_data(seed, d=3).codes.T.astype(int)
    X = np.concatenate([X, X.max(axis=0) - X, X], axis=1)
    data = EncodedData.from_codes(X, random_data(seed, d=3).y)
    assert ours(data).tolist() == naive_ordering(naive, data)


def test_features_after_those_that_determine_the_class_are_ordered_anew():
    """Feature 3 is the class; the others follow as they would without it."""
    data = random_data(5, n=200, d=5)
    y = data.y
    X = np.column_stack([data.codes.T.astype(int)[:, :3], y, data.codes.T.astype(int)[:, 3:]])
    ordering = all_parents_ordering(EncodedData.from_codes(X, y))
    rest = all_parents_ordering(EncodedData.from_codes(np.delete(X, 3, axis=1), y))
    assert ordering[0] == 3
    assert ordering[1:].tolist() == (rest + (rest >= 3)).tolist()


def test_all_features_before_and_the_best_of_them_make_different_orderings():
    assert sum(all_parents_ordering(data)[2] != single_parent(data)[2] for data in map(random_data, range(10))) > 3


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs):
    data = random_data(7, d=8)
    assert all_parents_ordering(data, n_jobs=n_jobs).tolist() == all_parents_ordering(data).tolist()


@BOTH
def test_single_feature_and_single_value(ours, naive):
    assert ours(EncodedData.from_codes([[0], [1], [1]], [0, 1, 0])).tolist() == [0]
    assert ours(EncodedData.from_codes(np.zeros((4, 3), int), [0, 1, 1, 0])).tolist() == [0, 1, 2]


def test_missing_values_are_refused():
    data = EncodedData.from_codes([[0, -1], [1, 0], [-1, 1], [1, 1]], [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"An ordering by all parents learns from complete rows only, but 2 values"):
        all_parents_ordering(data)
