"""The CUDA kernels of counting: equal to the oracle, floats included, and whatever order threads run in."""

import numpy as np
import pytest
from oracles import networks as naive
from support import host_cuda

from tanlearn.kernels import _cuda
from tanlearn.kernels.cuda import cuda_kernels

N_STATES = np.array([2, 3, 4])
CHILD, PARENTS = np.array([0, 1, 2]), np.array([[-1, -1], [0, -1], [0, 1]])
PAIR_OFFSET = np.array([0, 12, 28, 52])
#: Sums go over into the high half of a count: with a carry, and without one.
LARGE = np.array([1, 3, 2**32 - 1, 2**32, 2**45 + 5])
KINDS = [("uint8", "small"), ("uint8", "large"), ("uint8", "real"), ("uint16", "small")]


@pytest.fixture(params=["forwards", "backwards", 1])
def order(request, monkeypatch):
    """Run threads in some order, and let few rows be enough for a block."""
    monkeypatch.setattr(host_cuda.RawKernel, "order", request.param)
    monkeypatch.setattr(cuda_kernels, "_COUNTED_ROWS", 16)


def random_table(seed, code_type, kind, n=40, n_states=N_STATES):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(-1, k, n) for k in n_states], axis=1)  # -1 is missing
    missing = int(np.iinfo(code_type).max)
    codes = np.where(X < 0, missing, X).T.astype(code_type)
    weight = {"small": rng.integers(0, 3, n), "large": rng.choice(LARGE, n), "real": rng.uniform(0, 2, n)}[kind]
    return X, codes, rng.integers(0, 2, n), weight, missing


@pytest.mark.parametrize(("code_type", "kind"), KINDS)
def test_family_counts_equal_oracle(backend, order, code_type, kind):
    X, codes, y, weight, missing = random_table(0, code_type, kind)
    offset = np.array(naive.offsets(CHILD, PARENTS, N_STATES, 2))
    arrays = _cuda.to_device(codes, y, weight, CHILD, PARENTS, N_STATES, offset)
    counts = _cuda.cupy().zeros(offset[-1], weight.dtype)
    cuda_kernels.count_classes(*arrays[1:3], counts[:2])
    cuda_kernels.count_families(*arrays, missing, None, counts)
    expected = naive.count_cells(X, y, weight, CHILD, PARENTS, N_STATES, 2)
    np.testing.assert_array_equal(counts.get(), expected)


@pytest.mark.parametrize(("code_type", "kind"), KINDS)
def test_pair_counts_equal_oracle(backend, order, code_type, kind):
    X, codes, y, weight, missing = random_table(1, code_type, kind)
    samples = _cuda.to_device(codes, y, weight)
    others, n_states, pair_offset = _cuda.to_device(np.arange(3), N_STATES, PAIR_OFFSET)
    counts = _cuda.cupy().zeros(52, weight.dtype)
    for i in (1, 2):
        cuda_kernels.count_pairs(*samples, i, others[:i], n_states, 2, pair_offset, missing, counts)
    for pair, (i, j) in enumerate([(1, 0), (2, 0), (2, 1)]):
        start = naive.offsets([i], [[j]], N_STATES, 2)[0]
        expected = naive.count_cells(X, y, weight, [i], [[j]], N_STATES, 2)[start:]
        np.testing.assert_array_equal(counts.get()[PAIR_OFFSET[pair] : PAIR_OFFSET[pair + 1]], expected)


def test_pairs_with_other_features_are_left_alone(backend, order):
    _, codes, y, weight, missing = random_table(2, "uint8", "small")
    samples = _cuda.to_device(codes, y, weight)
    others, n_states, pair_offset = _cuda.to_device(np.array([1]), N_STATES, PAIR_OFFSET)
    counts = _cuda.cupy().zeros(52, np.int64)
    cuda_kernels.count_pairs(*samples, 2, others, n_states, 2, pair_offset, missing, counts)
    assert counts.get()[:28].sum() == 0
    assert counts.get()[28:].sum() == weight[(codes[1] != missing) & (codes[2] != missing)].sum()


@pytest.mark.parametrize("kind", ["large", "real"])
def test_counts_are_added_to_those_of_a_table_that_shared_memory_does_not_hold(backend, order, kind):
    n_states = np.array([70, 60])
    X, codes, y, weight, missing = random_table(3, "uint8", kind, n_states=n_states)
    samples = _cuda.to_device(codes, y, weight)
    others, device_states, pair_offset = _cuda.to_device(np.array([0]), n_states, np.array([0, 8400]))
    counts = _cuda.cupy().full(8400, 7, weight.dtype)
    cuda_kernels.count_pairs(*samples, 1, others, device_states, 2, pair_offset, missing, counts)
    expected = np.full(8400, 7, weight.dtype)
    for (x0, x1), c, w in zip(X, y, weight, strict=True):
        if x0 >= 0 and x1 >= 0:
            expected[(x1 * 70 + x0) * 2 + c] += w
    np.testing.assert_array_equal(counts.get(), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_no_rows_change_no_counts(backend, dtype):
    y, weight = _cuda.to_device(np.zeros(0, np.int64), np.zeros(0, dtype))
    counts = _cuda.cupy().full(2, 5, dtype)
    cuda_kernels.count_classes(y, weight, counts)
    assert counts.get().tolist() == [5, 5]
