"""CountState: exact whatever the partition."""

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanlearn import CountState, EncodedData

N_STATES = [2, 3, 4]


def random_data(seed, n=60, weight=None):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(-1, k, n) for k in N_STATES], axis=1)
    weights = {None: None, "integer": rng.integers(0, 4, n), "real": rng.uniform(0, 2, n)}[weight]
    return EncodedData.from_codes(X, rng.integers(0, 3, n), n_states=N_STATES, n_classes=3, sample_weight=weights)


def state(data, **options):
    return CountState(data.n_states, data.n_classes).update(data, **options)


def naive_pair(data, i, j):
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T
    start = naive.offsets([i], [[j]], N_STATES, 3)[0]
    counts = naive.count_cells(X, data.y, data.weights, [i], [[j]], N_STATES, 3)
    return counts[start:].reshape(N_STATES[i], N_STATES[j], 3)


@pytest.mark.parametrize("weight", [None, "integer"])
def test_counts_equal_oracle(weight):
    data = random_data(0, weight=weight)
    counted = state(data)
    assert counted.dtype == np.int64
    for i in range(3):
        for j in range(3):
            if i != j:
                np.testing.assert_array_equal(counted.pair(i, j), naive_pair(data, i, j))
    present = data.codes[1] != 255
    for c in range(3):
        assert counted.class_counts[c] == data.weights[data.y == c].sum()
        rows = present & (data.y == c) & (data.codes[1] == 2)
        assert counted.feature(1)[2, c] == data.weights[rows].sum()


@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_any_partition_merges_to_the_same_bytes(cuts, seed):
    data = random_data(seed, weight="integer")
    edges = [0, *sorted(cuts), 60]
    merged = CountState(N_STATES, 3)
    for first, last in reversed(list(itertools.pairwise(edges))):
        if last > first:
            merged.merge(state(data.take(np.arange(first, last))))
    assert merged.to_bytes() == state(data).to_bytes()


def test_total_minus_fold_is_the_rest():
    data = random_data(1)
    fold, rest = data.take(np.arange(20)), data.take(np.arange(20, 60))
    assert state(data).subtract(state(fold)) == state(rest)


def test_subtracting_rows_that_are_not_there_changes_nothing():
    small, large = state(random_data(1, n=5)), state(random_data(1, n=60))
    before = small.to_bytes()
    with pytest.raises(ValueError, match="negative counts"):
        small.subtract(large)
    assert small.to_bytes() == before


def test_real_weights_turn_counts_into_floats():
    data = random_data(2, weight="real")
    counted = state(random_data(2)).merge(state(data))
    assert counted.dtype == np.float64
    assert counted.class_counts.sum() == pytest.approx(60 + data.weights.sum())
    assert state(data).subtract(state(data)).class_counts.sum() == 0


def test_threads_change_nothing():
    data = random_data(3)
    assert state(data, n_jobs=2) == state(data, n_jobs=1)
    one, two = (state(data).conditional_mutual_information(n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_information_matrix_equals_oracle_with_entropies_on_the_diagonal():
    data = random_data(4)
    information = state(data).conditional_mutual_information()
    np.testing.assert_array_equal(information, information.T)
    assert information[2, 0] == pytest.approx(naive.conditional_mutual_information(naive_pair(data, 2, 0)))
    p = state(data).feature(0) / state(data).feature(0).sum()
    assert information[0, 0] == pytest.approx(-(p * np.log(p / p.sum(axis=0))).sum())


def test_bytes_round_trip_and_refuse_damage():
    counted = state(random_data(5, weight="real"))
    data = counted.to_bytes()
    assert CountState.from_bytes(data) == counted
    for broken in (b"", b"PK\x03\x04", data[:-30], data[: len(data) // 2], b"x" * 100):
        with pytest.raises(ValueError, match="no \\(or a damaged\\) CountState"):
            CountState.from_bytes(broken)


def test_bytes_of_a_newer_format_are_refused(monkeypatch):
    monkeypatch.setattr("tanlearn.counts._FORMAT", 2)
    data = state(random_data(6)).to_bytes()
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format 2, this version reads up to 1: upgrade"):
        CountState.from_bytes(data)


def test_other_tables_are_refused():
    with pytest.raises(ValueError, match="one and the same table"):
        CountState([2, 2], 2).update(random_data(0))
    with pytest.raises(ValueError, match="one and the same table"):
        CountState([2, 3, 4], 2).merge(CountState([2, 3, 4], 3))
    with pytest.raises(ValueError, match="different features, got 1 twice"):
        CountState([2, 3], 2).pair(1, 1)
    with pytest.raises(ValueError, match="at least one feature"):
        CountState([], 2)


def test_repr_names_the_weight():
    assert repr(state(random_data(0))) == "CountState(n_features=3, n_classes=3, weight=60, dtype=int64)"
