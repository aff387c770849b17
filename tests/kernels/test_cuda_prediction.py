"""The CUDA kernels of prediction: against the oracles, and the same to the last bit in whatever order threads run."""

import numpy as np
import pytest
from oracles import aode as naive_aode
from oracles import elimination as naive_elimination
from support import host_cuda
from support.one_dependence import random_problem
from support.small_networks import N_CLASSES, N_STATES, normalized_cells, offsets, patterns

from tanlearn.kernels import _cuda, aode, upward
from tanlearn.kernels._lanes import LANES
from tanlearn.kernels.cuda import cuda_kernels

EPS = np.finfo(np.float64).eps
ORDERS = ["forwards", "backwards", 1]
FORESTS = [[-1] * 5, [-1, 0, 1, 1, 0], [3, 0, 0, -1, 0], [1, -1, 1, 1, 1]]


@pytest.fixture(autouse=True)
def _logarithm_of_zero():
    """Without the compiler NumPy warns of it."""
    with np.errstate(divide="ignore"):
        yield


def in_every_order(monkeypatch, run):
    """Return what a function returns, after checking that it does so in whatever order threads run."""
    found = []
    for order in ORDERS:
        monkeypatch.setattr(host_cuda.RawKernel, "order", order)
        found.append(run())
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    return found[0]


def forest(parent, cells, codes, n_classes, most, is_normalized):
    """Return what the kernels of upward passes take before their scratch, and the sizes of that."""
    depth = [0 if j < 0 else 1 if parent[j] < 0 else 2 for j in parent]
    widths = np.where(np.array(parent) >= 0, N_STATES[parent], 1)
    offset = np.append(n_classes, n_classes + n_classes * np.cumsum(N_STATES * widths))
    start = np.append(0, np.cumsum(N_STATES)) * n_classes
    tables = np.exp(cells), np.array(parent), np.argsort(depth)[::-1].copy(), N_STATES, offset, start
    return (codes, cells, *tables), (is_normalized, most, int(np.iinfo(codes.dtype).max)), start[-1]


def on_device(arrays, rules, n_beliefs, n_classes, n_workers):
    """Return the log joint as the twin finds it."""
    cupy = _cuda.cupy()
    n_samples, d = arrays[0].shape[1], arrays[0].shape[0]
    count, belief = cupy.empty((n_workers, d), np.int64), cupy.empty((n_workers, n_beliefs), np.float64)
    product, scores = (cupy.empty((n, n_classes), np.float64) for n in (n_workers, n_samples))
    cuda_kernels.log_joint_upward(*_cuda.to_device(*arrays), *rules, count, belief, None, product, scores)
    return scores.get()


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("most", [0, 1, 2, 100])  # whether every product is scaled, some, or none
@pytest.mark.parametrize("parent", FORESTS)
def test_upward_pass_is_the_sum_over_all_completions(backend, monkeypatch, parent, most, is_normalized):
    rng = np.random.default_rng(6)
    parents = [[j, -1] for j in parent]
    cells = normalized_cells(parents, rng)
    if not is_normalized:
        cells += rng.normal(size=len(cells))
    X, codes = patterns(rng)
    problem = forest(parent, cells, codes, N_CLASSES, most, is_normalized)
    scores = in_every_order(monkeypatch, lambda: on_device(*problem, N_CLASSES, n_workers=5))
    expected = np.array([naive_elimination.log_joint(sample, cells, parents, N_STATES, N_CLASSES) for sample in X])
    # Each of at most 36 completions is a sum of 6 numbers up to 20.
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1000 * EPS)
    whole = (X >= 0).all(axis=1)
    assert whole.any()
    np.testing.assert_array_equal(scores[whole], complete_scores(X[whole], cells, parents))
    assert (X[-1] < 0).all()
    assert (scores[-1] == cells[:N_CLASSES]).all() == is_normalized  # the prior itself: nothing is summed


def complete_scores(X, cells, parents):
    """Return sums in the order of the features, which is part of the promise."""
    offset, scores = offsets(parents), []
    for sample in X:
        score = cells[:N_CLASSES].copy()
        for i, (j, _) in enumerate(parents):
            row = sample[i] if j < 0 else sample[i] * N_STATES[j] + sample[j]
            score += cells[offset[i] + row * N_CLASSES :][:N_CLASSES]
        scores.append(score)
    return scores


@pytest.mark.parametrize("most", [1, 100])
def test_upward_pass_of_many_classes_and_large_codes_equals_the_cpu(backend, monkeypatch, most):
    """40 classes are more than lanes; codes of two bytes; more workers than samples, and fewer."""
    rng = np.random.default_rng(1)
    n_classes, parent = 40, FORESTS[2]
    X, _ = patterns(rng)
    codes = np.where(X < 0, 65535, X).T.astype(np.uint16).copy()
    n_cells = n_classes * (1 + sum(N_STATES[i] * (N_STATES[j] if j >= 0 else 1) for i, j in enumerate(parent)))
    arrays, rules, n_beliefs = forest(parent, rng.uniform(-5, 0, n_cells), codes, n_classes, most, False)
    expected = np.empty((32, n_classes))
    scratch = np.empty(5, np.intp), np.empty(n_beliefs), np.empty(3 * n_classes), np.empty(n_classes)
    upward.log_joint_upward(*arrays, *rules, *scratch, expected)
    for n_workers in (40, 7):
        scores = in_every_order(monkeypatch, lambda n=n_workers: on_device(arrays, rules, n_beliefs, n_classes, n))
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1000 * EPS)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_rows_that_samples_pick_equal_the_oracle_and_the_cpu(backend, monkeypatch, dtype):
    rng = np.random.default_rng(2)
    n_states, n_classes = np.array([2, 3, 1]), 3
    X = np.array([[0, 2, 0], [-1, 1, 0], [1, -1, -1], [-1, -1, -1], [0, 0, 0]])
    codes = np.where(X < 0, np.iinfo(dtype).max, X).T.astype(dtype).copy()
    is_parent = np.append(rng.random(6) < 0.5, False)
    is_parent[[0, 2]] = False  # the last sample has no super-parent
    is_parent[5] = False
    start = np.append(0, np.cumsum(n_states))
    arrays, rules = (codes, start, is_parent.view(np.uint8)), (int(np.iinfo(dtype).max), n_classes)
    shapes = (4, 5), (5, 3), (5,)

    def run():
        found = [_cuda.cupy().empty(shape, np.int64) for shape in shapes]
        cuda_kernels.pick_rows(*_cuda.to_device(*arrays), *rules, *found)
        return np.concatenate([part.get().ravel() for part in found])

    expected = naive_aode.pick_rows(X, n_states, is_parent, n_classes)
    np.testing.assert_array_equal(in_every_order(monkeypatch, run), np.concatenate([np.ravel(e) for e in expected]))
    on_cpu = [np.empty(shape, np.intp) for shape in shapes]
    aode.pick_rows(*arrays, *rules, *on_cpu)
    for found, wanted in zip(on_cpu, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert 0 in expected[2]
    assert max(expected[2]) > 0


@pytest.mark.parametrize("n_classes", [2, LANES + 2])
def test_log_sum_joint_equals_oracle(backend, monkeypatch, n_classes):
    parents, children, log_parent, log_child = random_problem(n_classes)
    arrays = parents, children * n_classes, log_parent.ravel(), log_child.ravel()

    def run():
        scores = _cuda.cupy().empty((len(children), n_classes), np.float64)
        cuda_kernels.log_sum_joint(*_cuda.to_device(*arrays), len(log_parent) * n_classes, None, None, scores)
        return scores.get()

    scores = in_every_order(monkeypatch, run)
    expected = naive_aode.log_sum_joint(parents, children, log_parent, log_child)
    # 19 numbers up to 5, in float32.
    np.testing.assert_allclose(scores, expected, rtol=0, atol=19 * 19 * 5 * np.finfo(np.float32).eps)
    total, on_cpu = np.empty_like(scores), np.empty_like(scores)
    flat = [np.append(table, np.zeros(LANES, np.float32)) for table in arrays[2:]]
    lanes = np.empty(-(-n_classes // LANES) * LANES, np.float32)
    aode.log_sum_joint(*arrays[:2], *flat, len(log_parent) * n_classes, lanes, total, on_cpu)
    # The numbers in float32 are the same; 6 of them, up to 100, join in float64.
    np.testing.assert_allclose(scores, on_cpu, rtol=0, atol=6 * 100 * EPS)
