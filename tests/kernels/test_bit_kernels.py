"""Sets of bits against counting one by one."""

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import bits as kernels

MISSING = 255
N_STATES = [2, 3, 2, 4]
N_CLASSES = 2


@pytest.fixture(autouse=True)
def wrapping_around_is_meant():
    """Plain Python warns where the product of the population count overflows; compiled code does not."""
    with np.errstate(over="ignore"):
        yield


@pytest.mark.parametrize("x", [0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF, 0xAAAAAAAAAAAAAAAA])
def test_popcount_equals_counting_digits(x):
    assert kernels.popcount(np.uint64(x)) == x.bit_count()


def test_samples_of_a_class_stand_side_by_side():
    bit = np.empty(5, np.intp)
    kernels.number_samples(np.array([1, 0, 1, 1, 0]), np.array([0, 128]), bit)
    assert bit.tolist() == [128, 0, 129, 130, 1]


@pytest.mark.parametrize("first", [0, 3])
def test_packed_pair_counts_equal_oracle(first):
    rng = np.random.default_rng(0)
    n = 140 + first
    X = np.stack([rng.integers(-1, k, n) for k in N_STATES], axis=1)  # -1 is missing
    codes = np.ascontiguousarray(np.where(X < 0, MISSING, X).T.astype(np.uint8))
    y = (rng.random(n) < 0.95).astype(int)  # one class needs more than two words, the other a part of one
    X, y = X[first:], y[first:]
    features, start = np.array([0, 1, 3]), np.array([0, 2, 5, 9])  # feature 2 is counted elsewhere
    class_word = np.array([0, 2, 6])
    bit = np.empty(140, np.intp)
    kernels.number_samples(y, 64 * class_word[:-1], bit)
    bits = np.zeros((6, 9), np.uint64)
    kernels.pack_values(codes, first, bit, features, start, bits)
    sizes = [N_STATES[i] * N_STATES[j] * N_CLASSES for i in range(4) for j in range(i)]
    pair_offset = np.append(0, np.cumsum(sizes))
    counts = np.full(pair_offset[-1], 5)
    for p in (1, 2):
        shared = np.empty((N_CLASSES, N_STATES[features[p]], start[p]), np.int64)
        kernels.count_packed_pairs(bits, class_word, p, features, start, N_CLASSES, pair_offset, shared, counts)
    for pair, (i, j) in enumerate([(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]):
        table = counts[pair_offset[pair] : pair_offset[pair + 1]].reshape(N_STATES[i], N_STATES[j], N_CLASSES)
        for (x, z, c), count in np.ndenumerate(table):
            added = 0 if 2 in (i, j) else naive.shared_samples(X, y, i, x, j, z, c)
            assert count == 5 + added  # whatever was there before stays
