"""The CUDA kernels of scores, their transpose and the choice gradient: against the oracles, in any order of threads.

Log joints add what the oracle adds in its order, so they are equal; other sums agree to some times their length in eps.
"""

import numpy as np
import pytest
from oracles import networks as naive
from support import host_cuda

from tanlearn.kernels import _cuda
from tanlearn.kernels.cuda import cuda_kernels

MISSING = 255
N_STATES = np.array([2, 3, 1, 2])
N_CLASSES, N = 3, 7
CHILD = np.array([0, 0, 1, 1, 2, 3, 3])
PARENTS = np.array([[-1, -1], [1, -1], [-1, -1], [2, 0], [3, -1], [-1, -1], [0, 1]])
OFFSET = np.array(naive.offsets(CHILD, PARENTS, N_STATES, N_CLASSES))
SELECTED = [[0, 2, 4, 5], [1, 3, 4, 6]]


def random_problem(seed):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, N) for k in N_STATES], axis=1)
    return rng, X, X.T.astype(np.uint8)


def in_every_order(monkeypatch, run):
    """Return what a function returns, after checking that it does so in whatever order threads run."""
    results = []
    for order in ("forwards", "backwards", 1):
        monkeypatch.setattr(host_cuda.RawKernel, "order", order)
        results.append(run())
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    return results[0]


def log_joint(codes, first, cells, selected, scores):
    device_codes, device_cells, device_scores = _cuda.to_device(codes, cells, scores)
    tables = _cuda.to_device(CHILD, PARENTS, N_STATES, OFFSET, np.array(selected))
    cuda_kernels.log_joint(device_codes, first, device_cells, *tables, MISSING, None, device_scores)
    return device_scores.get()


def adjoint(codes, d_scores, selected, d_cells, first=0):
    device_codes, device_d_scores, device_d_cells = _cuda.to_device(codes, d_scores, d_cells)
    tables = _cuda.to_device(CHILD, PARENTS, N_STATES, OFFSET, np.array(selected))
    cuda_kernels.log_joint_adjoint(device_codes, first, device_d_scores, *tables, MISSING, None, device_d_cells)
    return device_d_cells.get()


@pytest.mark.parametrize("selected", SELECTED)
@pytest.mark.parametrize("first", [0, 2])
def test_log_joint_equals_oracle(backend, monkeypatch, selected, first):
    rng, X, codes = random_problem(0)
    cells, scores = rng.normal(size=OFFSET[-1]), np.empty((N - first, N_CLASSES))
    found = in_every_order(monkeypatch, lambda: log_joint(codes, first, cells, selected, scores))
    expected = naive.log_joint(X[first:], cells, CHILD, PARENTS, N_STATES, N_CLASSES, selected)
    np.testing.assert_array_equal(found, expected)


def test_single_precision_stays_close(backend):
    rng, X, codes = random_problem(1)
    cells = rng.normal(size=OFFSET[-1]).astype(np.float32)
    found = log_joint(codes, 0, cells, SELECTED[1], np.empty((N, N_CLASSES), np.float32))
    expected = naive.log_joint(X, cells, CHILD, PARENTS, N_STATES, N_CLASSES, SELECTED[1])
    np.testing.assert_allclose(found, expected, atol=5 * np.finfo(np.float32).eps * np.abs(expected).max())


@pytest.mark.parametrize(("cell_type", "sum_type"), [("uint8", "int32"), ("uint16", "int64")])
def test_few_bits_are_added_as_integers(backend, cell_type, sum_type):
    rng, X, codes = random_problem(2)
    cells = rng.integers(0, np.iinfo(cell_type).max, OFFSET[-1], endpoint=True).astype(cell_type)
    found = log_joint(codes, 0, cells, SELECTED[0], np.empty((N, N_CLASSES), sum_type))
    expected = naive.log_joint(X, cells.astype(int), CHILD, PARENTS, N_STATES, N_CLASSES, SELECTED[0])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("selected", SELECTED)
@pytest.mark.parametrize("chunk_rows", [1024, 3, 1])
def test_adjoint_is_the_transpose(backend, monkeypatch, selected, chunk_rows):
    """<log_joint(cells), G> = <cells, adjoint(G)> for each cell, in one chunk of rows and in more."""
    monkeypatch.setattr(cuda_kernels, "_CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr(cuda_kernels, "_MOST_CHUNKS", 4)
    rng, X, codes = random_problem(3)
    G, before = rng.normal(size=(N, N_CLASSES)), rng.normal(size=OFFSET[-1])
    found = in_every_order(monkeypatch, lambda: adjoint(codes, G, selected, before))
    arguments = CHILD, PARENTS, N_STATES, N_CLASSES, selected
    columns = [naive.log_joint(X, cells, *arguments) for cells in np.eye(OFFSET[-1])]
    expected = before + [np.vdot(column, G) for column in columns]
    np.testing.assert_allclose(found, expected, atol=2 * N * np.finfo(np.float64).eps * np.abs(G).max())


def test_adjoint_of_later_rows(backend):
    rng, _, codes = random_problem(4)
    G = rng.normal(size=(N - 2, N_CLASSES))
    nothing = np.zeros(OFFSET[-1])
    part = adjoint(codes, G, SELECTED[0], nothing, first=2)
    whole = adjoint(codes, np.concatenate([np.zeros((2, N_CLASSES)), G]), SELECTED[0], nothing)
    np.testing.assert_array_equal(part, whole)


def test_adjoint_of_no_rows_is_zero(backend):
    _, _, codes = random_problem(5)
    ones = np.ones(OFFSET[-1])
    np.testing.assert_array_equal(adjoint(codes, np.zeros((0, N_CLASSES)), SELECTED[0], ones), ones)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_choice_gradient_is_the_contribution_of_every_table(backend, monkeypatch, dtype):
    """sum over n, c of d_scores * (scores with the table - prior), for every table by itself."""
    rng, X, codes = random_problem(6)
    cells, G = rng.normal(size=OFFSET[-1]).astype(dtype), rng.normal(size=(N, N_CLASSES)).astype(dtype)

    def run():
        device_codes, d_scores, *tables = _cuda.to_device(codes, G, cells, CHILD, PARENTS, N_STATES, OFFSET)
        d_choice = _cuda.cupy().empty(len(CHILD), np.float64)
        cuda_kernels.choice_gradient(device_codes, 0, d_scores, *tables, MISSING, None, d_choice)
        return d_choice.get()

    found = in_every_order(monkeypatch, run)
    exact = cells.astype(float)
    for t in range(len(CHILD)):
        alone = naive.log_joint(X, exact, CHILD, PARENTS, N_STATES, N_CLASSES, [t]) - exact[:N_CLASSES]
        tolerance = 4 * np.finfo(dtype).eps * np.abs(alone * G).sum()
        assert found[t] == pytest.approx((alone * G).sum(), abs=tolerance)
