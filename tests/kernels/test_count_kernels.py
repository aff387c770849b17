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
        kernels.count_pairs(codes, y, weight, i, np.arange(i), N_STATES, 2, pair_offset, MISSING, counts)
    information = np.zeros((3, 3))
    for pair, (i, j) in enumerate([(1, 0), (2, 0), (2, 1)]):
        kernels.pairwise_information(counts, N_STATES, 2, pair_offset, i, np.empty(18, np.int64), information[i])
        start = naive.offsets([i], [[j]], N_STATES, 2)[0]
        expected = naive.count_cells(X, y, weight, [i], [[j]], N_STATES, 2)[start:]
        np.testing.assert_array_equal(counts[pair_offset[pair] : pair_offset[pair + 1]], expected)
        table = expected.reshape(N_STATES[i], N_STATES[j], 2)
        assert information[i, j] == pytest.approx(naive.conditional_mutual_information(table), abs=1e-14)


def test_pairs_with_other_features_are_left_alone():
    _, _, codes, y = random_table(2)
    counts = np.zeros(2 * (3 * 2 + 4 * 2 + 4 * 3), np.int64)
    pair_offset = np.array([0, 12, 28, 52])
    kernels.count_pairs(codes, y, np.ones(40, np.int64), 2, np.array([1]), N_STATES, 2, pair_offset, MISSING, counts)
    assert counts[:28].sum() == 0
    assert counts[28:].sum() == ((codes[1] != MISSING) & (codes[2] != MISSING)).sum()


def information_of(counts):
    return kernels.conditional_mutual_information(counts, 2, 2, 2, np.empty(10, counts.dtype))


def test_information_of_independent_features_is_zero_and_of_copies_is_the_entropy():
    independent = np.outer([3, 1], [2, 2]).ravel().repeat(2)
    assert information_of(independent) == pytest.approx(0, abs=1e-15)
    copies = np.array([[[2, 1], [0, 0]], [[0, 0], [2, 3]]]).ravel()
    entropy = -(4 * np.log(1 / 2) + np.log(1 / 4) + 3 * np.log(3 / 4)) / 8
    assert information_of(copies) == pytest.approx(entropy)


def test_information_of_no_counts_is_zero():
    assert information_of(np.zeros(8)) == 0.0


@pytest.mark.parametrize(
    "x", [1e-300, 1e-9, 0.5, 0.70710678, 0.70710679, 1 - 1e-9, 1 + 1e-9, 1.4142136, 3, 7340, 1e300]
)
def test_x_log_x_is_exact_to_the_last_digits(x):
    assert kernels.sum_xlogx(np.array([x])) == pytest.approx(naive.sum_xlogx([x]), rel=1e-15)


@pytest.mark.parametrize("values", [np.arange(20), np.array([0.0, -1e-17, 2.5, 0.3]), np.zeros(0)])
def test_sum_of_x_log_x_equals_oracle_and_leaves_out_what_is_not_positive(values):
    assert kernels.sum_xlogx(values) == pytest.approx(naive.sum_xlogx(values.tolist()), rel=1e-14)
