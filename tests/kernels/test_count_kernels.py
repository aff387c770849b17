"""Counts and conditional mutual information against the naive oracles."""

import naive
import numpy as np
import pytest

from tanlearn.kernels import counts as kernels

MISSING = 255
N_STATES = np.array([2, 3, 4])


def random_table(seed, n=40):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(-1, k, n) for k in N_STATES], axis=1)  # -1 is missing
    codes = np.ascontiguousarray(np.where(X < 0, MISSING, X).T.astype(np.uint8))
    return rng, X, codes, rng.integers(0, 2, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_family_counts_equal_oracle(weighted):
    rng, X, codes, y = random_table(0)
    weight = rng.uniform(0, 2, 40) if weighted else rng.integers(0, 3, 40)
    child, parents = np.array([0, 1, 2]), np.array([[-1, -1], [0, -1], [0, 1]])
    offset = np.array(naive.offsets(child, parents, N_STATES, 2))
    counts = np.zeros(offset[-1], weight.dtype)
    kernels.count_classes(y, weight, counts)
    kernels.count_families(codes, y, weight, child, parents, N_STATES, offset, MISSING, np.empty(40, np.intp), counts)
    expected = naive.count_cells(X, y, weight, child, parents, N_STATES, 2)
    if weighted:
        np.testing.assert_allclose(counts, expected, rtol=1e-13)
    else:
        np.testing.assert_array_equal(counts, expected)


def test_pair_counts_and_information_equal_oracle():
    _, X, codes, y = random_table(1)
    weight = np.ones(40, np.int64)
    pair_offset = np.array([0, 2 * 3 * 2, 2 * 3 * 2 + 4 * 2 * 2, 2 * 3 * 2 + 4 * 2 * 2 + 4 * 3 * 2])
    counts = np.zeros(pair_offset[-1], np.int64)
    for i in (1, 2):
        kernels.count_pairs(codes, y, weight, i, N_STATES, 2, pair_offset, MISSING, counts)
    information = np.zeros((3, 3))
    for pair, (i, j) in enumerate([(1, 0), (2, 0), (2, 1)]):
        kernels.pairwise_information(counts, N_STATES, 2, pair_offset, i, information[i])
        start = naive.offsets([i], [[j]], N_STATES, 2)[0]
        expected = naive.count_cells(X, y, weight, [i], [[j]], N_STATES, 2)[start:]
        np.testing.assert_array_equal(counts[pair_offset[pair] : pair_offset[pair + 1]], expected)
        table = expected.reshape(N_STATES[i], N_STATES[j], 2)
        assert information[i, j] == pytest.approx(naive.conditional_mutual_information(table), abs=1e-14)


def test_information_of_independent_features_is_zero_and_of_copies_is_the_entropy():
    independent = np.outer([3, 1], [2, 2]).ravel().repeat(2)
    assert kernels.conditional_mutual_information(independent, 2, 2, 2) == pytest.approx(0, abs=1e-15)
    copies = np.array([[[2, 1], [0, 0]], [[0, 0], [2, 3]]]).ravel()
    entropy = -(4 * np.log(1 / 2) + np.log(1 / 4) + 3 * np.log(3 / 4)) / 8
    assert kernels.conditional_mutual_information(copies, 2, 2, 2) == pytest.approx(entropy)


def test_information_of_no_counts_is_zero():
    assert kernels.conditional_mutual_information(np.zeros(8), 2, 2, 2) == 0.0
