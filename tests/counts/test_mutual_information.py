"""Information block by block against the counts of all pairs, and against the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import networks as naive

from tanlearn import EncodedData, PairCounts
from tanlearn.counts import mutual_information as module
from tanlearn.counts import packing
from tanlearn.counts.mutual_information import pair_information


def random_data(seed, d, n, n_classes, weights, most=7):
    """Return features of 1 to 7 values (one of more), some with gaps, some copies of others or constant."""
    rng = np.random.default_rng(seed)
    n_states = rng.integers(1, most + 1, d)
    if seed % 3 == 0:
        n_states[rng.integers(d)] = 40
    X = rng.integers(0, n_states, (n, d))
    copied = rng.permutation(d)[: d // 3]
    X[:, copied] = X[:, rng.permutation(d)[: d // 3]] % n_states[copied]
    X[(rng.random((n, d)) < 0.3) & (rng.random(d) < rng.choice([0, 0.5, 1]))] = -1
    X[:, 0] = 0
    weight = {None: None, "integer": rng.integers(0, 3, n) + (np.arange(n) == 0), "real": rng.uniform(0, 2, n)}[weights]
    y = rng.integers(0, n_classes, n)
    return EncodedData.from_codes(X, y, n_states=n_states, n_classes=n_classes, sample_weight=weight)


def matrix(data, order, is_sparse, n_jobs=None):
    """Return all blocks in one, after checking how they follow each other."""
    information, end = np.full((data.n_features, data.n_features), np.nan), 0
    for first, block in pair_information(data, order, is_sparse, n_jobs):
        assert first == end
        assert block.shape[1] == first + len(block)
        end = first + len(block)
        information[first:end] = 0
        information[first:end, :end] = block
    return information


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 30),
    n=st.integers(1, 200),
    n_classes=st.integers(1, 4),
    weights=st.sampled_from([None, None, "integer", "real"]),
    share=st.sampled_from([0, 0, 0.3, 1]),
    sizes=st.sampled_from([(2**14, 64, 2**23, 2**15), (8, 2, 40, 3), (16, 1, 1, 50)]),
    n_jobs=st.sampled_from([1, 2]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_blocks_are_the_matrix_of_all_pair_counts_to_the_last_bit(seed, d, n, n_classes, weights, share, sizes, n_jobs):
    data = random_data(seed, d, n, n_classes, weights)
    rng = np.random.default_rng(seed)
    order, is_sparse = rng.permutation(d), rng.random(d) < share
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("_TILE", "_FEWEST", "_BLOCK", "_TABULATED"), sizes, strict=True):
            patch.setattr(module, name, size)
        patch.setattr(packing, "_WORTH_A_THREAD", 1)
        found = matrix(data, order, is_sparse, n_jobs)
    expected = PairCounts(data.n_states, n_classes).update(data).conditional_mutual_information()
    expected = np.tril(expected[np.ix_(order, order)], -1)
    if weights == "real":  # counted sparsely, cells are added up in another order
        dense = ~(is_sparse[order, np.newaxis] | is_sparse[order])
        np.testing.assert_array_equal(found[dense], expected[dense])
        np.testing.assert_allclose(found, expected, atol=1e-13)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weights", [None, "integer", "real"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_blocks_equal_the_oracle(weights, share):
    data = random_data(5, 7, 60, 3, weights, most=4)
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T
    is_sparse = np.random.default_rng(0).random(7) < share
    found = matrix(data, np.arange(7), is_sparse)
    for i in range(7):
        for j in range(i):
            first = naive.offsets([i], [[j]], data.n_states, 3)[0]
            table = naive.count_cells(X, data.y, data.weights, [i], [[j]], data.n_states, 3)[first:]
            table = table.reshape(data.n_states[i], data.n_states[j], 3)
            assert found[i, j] == pytest.approx(naive.conditional_mutual_information(table), abs=1e-13)
    assert found.max() > 0.01


def test_three_hundred_features_of_one_class_and_of_ties():
    data = random_data(1, 300, 100, 1, None)
    found = matrix(data, np.arange(300), np.zeros(300, bool), 2)
    expected = PairCounts(data.n_states, 1).update(data).conditional_mutual_information()
    np.testing.assert_array_equal(found, np.tril(expected, -1))


def test_tiles_hold_as_many_sets_as_the_cache(monkeypatch):
    monkeypatch.setattr(module, "_TILE", 512)
    codes = np.random.default_rng(0).integers(0, 2, (128, 600))
    data = EncodedData.from_codes(codes, np.arange(128) % 2, n_states=[2] * 600)
    blocks = [information.shape for _, information in pair_information(data, np.arange(600), np.zeros(600, bool))]
    assert blocks == [(600, 600)]
    monkeypatch.setattr(module, "_BLOCK", 1)  # a tile at a time: 512 / 4 words
    blocks = [information.shape for _, information in pair_information(data, np.arange(600), np.zeros(600, bool))]
    assert [rows for rows, _ in blocks] == [127, 128, 128, 128, 89]


@pytest.mark.parametrize("weights", [None, "integer", "real"])
def test_a_wide_feature_is_visited_value_by_value(weights):
    data = random_data(4, 7, 60, 3, weights, most=4)
    wide = np.random.default_rng(0).integers(0, 20_000, 60)
    wide[:40] = wide[20]
    codes = np.append(np.where(data.codes == 255, 65535, data.codes.astype(int)), [wide], axis=0).astype(np.uint16)
    codes[7, :5] = 65535
    n_states, others = np.append(data.n_states, 20_000), np.array([5, 1, 3])
    found = module.visited_information(codes, n_states, data.y, data.weights, 3, 7, others)
    X = np.where(codes == 65535, -1, codes.astype(int)).T
    X[:, 7] = np.unique(X[:, 7], return_inverse=True)[1] - 1  # -1 is the first: values that occur say the same
    n_seen = np.append(data.n_states, X[:, 7].max() + 1)
    for own, j in zip(found, others, strict=True):
        first = naive.offsets([7], [[j]], n_seen, 3)[0]
        table = naive.count_cells(X, data.y, data.weights, [7], [[j]], n_seen, 3)[first:]
        table = table.reshape(n_seen[7], n_seen[j], 3)
        assert own == pytest.approx(naive.conditional_mutual_information(table), abs=1e-13)
    assert found.max() > 0.1
    assert module.visited_information(codes, n_states, data.y, data.weights, 3, 7, others[:0]).tolist() == []
