"""Information counted from rows against that of pair counts."""

import tracemalloc

import numpy as np
import pytest

from tanlearn import EncodedData, PairCounts
from tanlearn.baselines import ChowLiu, KDependence
from tanlearn.counts import rounded_information
from tanlearn.counts.rounded_information import Information


def random_data(seed, n_states, n=60, weights=None):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(-1, k, n) for k in n_states], axis=1)  # -1 is missing
    weight = {None: None, "integer": rng.integers(0, 3, n), "real": rng.uniform(0, 2, n)}[weights]
    return EncodedData.from_codes(X, rng.integers(0, 3, n), n_states=n_states, sample_weight=weight)


def matrix(information):
    """Return the information of all pairs, symmetric."""
    found = np.zeros((len(information.n_states),) * 2)
    for first, block in information.of_pairs(np.arange(len(found))):
        found[first : first + len(block), : block.shape[1]] = np.tril(block, first - 1)
    return found + found.T


@pytest.mark.parametrize("weights", [None, "integer", "real"])
@pytest.mark.parametrize("n_states", [[40, 2, 3, 50, 1], [30, 40, 50], [300, 2]])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_information_of_rows_is_that_of_their_counts(n_states, weights, n_jobs, is_sparse, monkeypatch):
    data = random_data(0, n_states, weights=weights)
    expected = Information.of_counts(PairCounts(data.n_states, data.n_classes).update(data))
    if is_sparse:
        monkeypatch.setattr(rounded_information, "_DENSE_CELLS", 0)
        monkeypatch.setattr(rounded_information, "_CELLS_A_ROW", 1)
    monkeypatch.setattr(rounded_information, "PairCounts", None)  # there may be no room for one
    found = Information.of_rows(data, n_jobs=n_jobs)
    np.testing.assert_array_equal(found.of_class, expected.of_class)
    np.testing.assert_array_equal(matrix(found), matrix(expected))
    assert matrix(found).max() > 0.01
    assert found.n_classes == expected.n_classes
    assert found.weight == expected.weight


def test_information_comes_in_the_order_that_is_asked_for():
    data = random_data(0, [4, 2, 3, 5, 1])
    order = np.array([3, 0, 4, 2, 1])
    of_rows, of_counts = Information.of_rows(data), Information.of_counts(PairCounts([4, 2, 3, 5, 1], 3).update(data))
    expected = np.tril(matrix(of_rows)[np.ix_(order, order)], -1)
    for found in (of_rows, of_counts):
        ((first, block),) = found.of_pairs(order)
        assert first == 0
        np.testing.assert_array_equal(block, expected)


@pytest.mark.parametrize("learner", [ChowLiu(), ChowLiu(penalty="bic"), KDependence(k=2)])
def test_structures_do_not_depend_on_how_pairs_are_counted(learner, monkeypatch):
    data, rng = random_data(1, [40, 2, 3, 50, 1, 4]), np.random.default_rng(0)
    expected = learner.from_counts(PairCounts(data.n_states, data.n_classes).update(data))
    assert learner.learn(data, rng) == expected
    monkeypatch.setattr(rounded_information, "_DENSE_CELLS", 0)
    monkeypatch.setattr(rounded_information, "_CELLS_A_ROW", 1)
    assert learner.learn(data, rng) == expected


def test_tables_with_more_cells_than_rows_fill_are_counted_sparsely():
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 3000, (500, 4)), rng.integers(0, 2, 500), n_states=[3000] * 4)
    tracemalloc.start()
    assert matrix(Information.of_rows(data)).shape == (4, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24  # one table has 18 million cells, 144 MB


@pytest.mark.parametrize("weights", [None, "integer", "real"])
def test_no_counts_of_all_pairs_are_kept(weights):
    rng = np.random.default_rng(0)
    weight = {None: None, "integer": np.full(40, 2), "real": rng.uniform(0, 2, 40)}[weights]
    data = EncodedData.from_codes(rng.integers(0, 8, (40, 100)), rng.integers(0, 8, 40), sample_weight=weight)
    tracemalloc.start()
    ChowLiu().learn(data, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22  # counts of all pairs are 2.5 million, 20 MB


def test_information_is_rounded_to_the_nearest_multiple_of_the_quantum():
    step = 2.0**-40
    values = np.array([0.0, 1e-16, 0.49 * step, 0.51 * step, 1 + 1.4 * step, 0.1 + 0.2])
    assert rounded_information.round_information(values).tolist()[:5] == [0.0, 0.0, 0.0, step, 1 + step]
    assert rounded_information.round_information(values)[5] == rounded_information.round_information(np.array([0.3]))[0]


def test_counts_are_sparse_beyond_a_number_of_counts_and_of_cells_a_row(monkeypatch):
    data = random_data(2, [12, 13, 2], n=54)  # 12 * 12 * 3 cells are eight for each of 54 rows
    n_counts = 3 * (12 * 13 + 12 * 2 + 13 * 2)
    sparse = []
    monkeypatch.setattr(
        rounded_information, "pair_information", lambda data, order, wide, n_jobs: sparse.append(wide) or []
    )
    for most in (n_counts, n_counts - 1):
        monkeypatch.setattr(rounded_information, "_DENSE_CELLS", most)
        assert list(Information.of_rows(data).of_pairs(np.arange(3))) == []
    assert [np.flatnonzero(wide).tolist() for wide in sparse] == [[], [1]]
