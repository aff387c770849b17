"""Counts and conditional mutual information against the naive oracles."""

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import counts as kernels
from tanlearn.kernels.mathematics import unit_scale

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
        margins = np.empty(18, np.int64)
        kernels.pairwise_information(counts, N_STATES, 2, pair_offset, i, margins, information[i])
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


def test_information_of_a_constant_is_exactly_zero_and_of_a_relabelled_copy_exactly_that_of_the_original():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 50, (2, 2, 2))
    constant = np.zeros((2, 2, 2), np.int64)
    constant[1] = table[0]
    assert information_of(constant.ravel()) == 0.0
    steps = [(a, b, c) for a in (1, -1) for b in (1, -1) for c in (1, -1)]
    found = {information_of(np.ascontiguousarray(table[::a, ::b, ::c]).ravel()) for a, b, c in steps}
    assert len(found | {information_of(np.ascontiguousarray(table.swapaxes(0, 1)).ravel())}) == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_information_counted_sparsely_is_that_of_the_table(seed, weighted):
    rng, X, codes, y = random_table(seed)
    weight = rng.uniform(0, 2, 40) if weighted else rng.integers(0, 3, 40)
    samples = rng.permutation(np.flatnonzero(codes[1] != MISSING))
    samples = samples[np.argsort(codes[1, samples], kind="stable")]
    start = np.append(np.flatnonzero(np.diff(codes[1, samples].astype(int), prepend=-1)), len(samples))
    scratch = [np.zeros(n, weight.dtype) for n in (8, 8, 4)]
    found = np.full(2, np.nan)
    kernels.sparse_information(codes, y, weight, samples, start, np.array([2, 0]), 2, MISSING, *scratch, found)
    for j, information in zip((2, 0), found, strict=True):
        first = naive.offsets([1], [[j]], N_STATES, 2)[0]
        table = naive.count_cells(X, y, weight, [1], [[j]], N_STATES, 2)[first:].reshape(N_STATES[1], N_STATES[j], 2)
        assert information == pytest.approx(naive.conditional_mutual_information(table), abs=1e-14)
        if not weighted:
            margins = np.empty((3 + N_STATES[j] + 1) * 2, weight.dtype)
            args = np.asarray(table, np.int64).ravel(), 3, N_STATES[j], 2, margins
            assert information == kernels.conditional_mutual_information(*args)
    assert not any(array.any() for array in scratch)


@pytest.mark.parametrize("values", [np.arange(20), np.array([0.0, -1e-17, 2.5, 0.3]), np.zeros(0), np.array([1e300])])
def test_sum_of_x_log_x_equals_oracle_and_leaves_out_what_is_not_positive(values):
    scale = unit_scale(float(values.sum()))
    expected = naive.sum_xlogx(values.tolist())
    assert kernels.sum_xlogx(values, scale) / scale == pytest.approx(expected, rel=1e-14, abs=len(values) / scale)
