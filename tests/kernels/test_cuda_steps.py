"""The CUDA kernels of a step, one by one, against the oracles of their kernels; whole epochs in test_cuda_train.py."""

import itertools

import numpy as np
import pytest
from kernels.test_loss_kernels import CASES, ROWS
from oracles import losses as naive_losses
from oracles import networks as naive
from support import host_cuda

from tanlearn.kernels import losses, trees
from tanlearn.kernels._cuda import cupy, to_device
from tanlearn.kernels.cuda import cuda_kernels

GROUP = np.array([0, 1, 3, 7, 7 + 40])
ORDERS = ["forwards", "backwards", 5]


def there(array, dtype=None):
    return to_device(np.asarray(array, dtype))[0]


def fresh(shape, dtype=np.float64):
    """An array of the device that must be written before it is read."""
    return cupy().empty(shape, dtype)


@pytest.fixture(params=ORDERS)
def order(request, monkeypatch, backend):
    """Resume the threads of a block in some order; a result that depends on it is a race."""
    monkeypatch.setattr(host_cuda.RawKernel, "order", request.param)
    return request.param


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_equal_the_oracle(backend, name, dtype):
    kind, parameters, oracle = CASES[name]
    y = np.arange(len(ROWS)) % 3
    loss, d_scores = fresh(len(ROWS), dtype), fresh(ROWS.shape, dtype)
    assert cuda_kernels.loss_rows(kind, there(parameters, dtype), there(ROWS, dtype), there(y), loss, d_scores) == -1
    tolerance = {"rtol": 64 * np.finfo(dtype).eps, "atol": 64 * np.finfo(dtype).eps}
    for row, label, value, gradient in zip(ROWS.tolist(), y.tolist(), loss.get(), d_scores.get(), strict=True):
        expected, d_expected = oracle(row, label)
        np.testing.assert_allclose(value, expected, **tolerance)
        np.testing.assert_allclose(gradient, d_expected, **tolerance)


@pytest.mark.parametrize("n_classes", [2, 31, 32, 33, 70])
def test_losses_of_any_number_of_classes(order, n_classes):
    """A lane holds every 32nd class; labels of all lanes."""
    rng = np.random.default_rng(n_classes)
    scores, y = rng.normal(0, 3, (9, n_classes)), np.r_[0, n_classes - 1, rng.integers(0, n_classes, 7)]
    loss, d_scores = fresh(9), fresh((9, n_classes))
    cuda_kernels.loss_rows(4, there([7.0, 1.0, 2.0]), there(scores), there(y), loss, d_scores)
    for row, label, value, gradient in zip(scores.tolist(), y.tolist(), loss.get(), d_scores.get(), strict=True):
        expected, d_expected = naive_losses.hybrid(row, label, 7.0, 1.0, 2.0)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, d_expected, rtol=1e-12, atol=1e-12)


def test_rows_are_weighed_as_on_the_cpu(backend):
    share, d_scores = np.random.default_rng(0).normal(size=100), np.random.default_rng(1).normal(size=(100, 7))
    found = there(d_scores)
    cuda_kernels.weigh_rows(there(share), found)
    losses.weigh_rows(share, d_scores)
    np.testing.assert_array_equal(found.get(), d_scores)


def test_noise_is_that_of_the_cpu(backend):
    """Ends of the interval included; the CPU's logarithm is right to 2e-7."""
    uniform = np.r_[0, 2**-24, 0.5, 1 - 2**-24, np.random.default_rng(0).random(300)].astype(np.float32)
    noise, expected = fresh(len(uniform), np.float32), np.empty_like(uniform)
    cuda_kernels.gumbel(there(uniform), noise)
    trees.gumbel(uniform, expected)
    assert np.isfinite(noise.get()).all()
    np.testing.assert_allclose(noise.get(), expected, rtol=2e-6, atol=2e-6)


def test_choices_and_their_gradients_equal_the_oracles(order):
    """Groups of one table, of several, and of more than a warp has lanes."""
    rng = np.random.default_rng(0)
    phi, size_penalty, d_choice = rng.normal(size=(3, GROUP[-1]))
    noise = rng.normal(size=GROUP[-1]).astype(np.float32)
    group = there(GROUP)
    perturbed, selected = fresh(GROUP[-1]), fresh(len(GROUP) - 1, np.int64)
    cuda_kernels.perturb(there(phi), there(noise), group, perturbed)
    shares = np.concatenate([naive.softmax(phi[a:b].tolist()) for a, b in itertools.pairwise(GROUP)])
    np.testing.assert_allclose(perturbed.get(), np.log(shares) + noise, rtol=1e-12)
    cuda_kernels.draw_independent(perturbed, group, selected)
    best = [a + int(np.argmax(perturbed.get()[a:b])) for a, b in itertools.pairwise(GROUP)]
    assert selected.get().tolist() == best
    d_phi = fresh(GROUP[-1])
    cuda_kernels.structure_gradient(perturbed, group, 0.7, there(d_choice), d_phi)
    expected = np.array(naive.structure_gradient(perturbed.get().tolist(), GROUP.tolist(), 0.7, d_choice.tolist()))
    np.testing.assert_allclose(d_phi.get(), expected, rtol=1e-10, atol=1e-13)
    cuda_kernels.size_penalty_gradient(perturbed, there(noise), group, there(size_penalty), d_phi)
    added = []
    for t in range(GROUP[-1]):
        ends = [phi + step * (np.arange(GROUP[-1]) == t) for step in (1e-5, -1e-5)]
        high, low = (naive.expected_size_penalty(end.tolist(), GROUP.tolist(), size_penalty.tolist()) for end in ends)
        added.append((high - low) / 2e-5)
    np.testing.assert_allclose(d_phi.get() - expected, added, atol=1e-9)


@pytest.mark.parametrize("tied", [[3.0, 3.0, 1.0, 3.0], [-np.inf] * 4])
def test_of_equal_choices_the_first_wins(order, tied):
    selected = fresh(1, np.int64)
    cuda_kernels.draw_independent(there(tied), there([0, 4]), selected)
    assert selected.get().tolist() == [0]


def draw(weight):
    """Return the parents of the tree that the device draws of weight[i][j], the last column being "no parent".

    Candidates stand in no order.
    """
    d = len(weight)
    rng = np.random.default_rng(d)
    edges = [(i, j, weight[i][j]) for i in range(d) for j in rng.permutation(d + 1) if i != j]
    child, parent, perturbed = (np.array(part) for part in zip(*edges, strict=True))
    parent = np.where(parent == d, -1, parent)
    nodes = 2 * d + 1
    scratch = [fresh((nodes, nodes)), *(fresh((nodes, nodes), np.int32) for _ in range(2)), fresh((6, nodes), np.int32)]
    selected = fresh(d, np.int64)
    group = np.searchsorted(child, np.arange(d + 1))
    cuda_kernels.draw_arborescence(there(perturbed), there(group), there(parent), *scratch, selected)
    return parent[selected.get()].tolist(), (perturbed, group, parent)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_arborescence_is_the_best_of_all_forests(order, d, seed):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(d, d + 1))
    weight[:, d] -= 4 * (seed % 3)
    assert draw(weight)[0] == list(naive.best_arborescence(weight.tolist()))


@pytest.mark.parametrize("d", [20, 45])
@pytest.mark.parametrize("ties", [False, True])
def test_arborescence_is_that_of_the_cpu(order, d, ties):
    """Of more nodes than a warp has lanes, with nested cycles, and where all weights are small integers."""
    rng = np.random.default_rng(d)
    weight = rng.integers(0, 3, (d, d + 1)).astype(float) if ties else rng.normal(size=(d, d + 1))
    weight[:, d] -= 5
    found, (perturbed, group, parent) = draw(weight)
    ends, selected = np.empty((2, 2 * d + 1, 2 * d + 1), np.intp), np.empty(d, np.intp)
    square, work = np.empty((2 * d + 1, 2 * d + 1)), np.empty((5, 2 * d + 1), np.intp)
    trees.draw_arborescence(perturbed, group, parent, square, *ends, work, selected)
    assert found == parent[selected].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_arborescence_takes_no_impossible_candidates(order, seed):
    """Masked candidates have the weight -infinity. Without a number, a feature has no parent."""
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random((30, 31)) < 0.8, -np.inf, rng.normal(size=(30, 31)))
    weight[:, 30] = rng.normal(size=30) - 5
    found, (perturbed, group, parent) = draw(weight)
    ends, selected = np.empty((2, 61, 61), np.intp), np.empty(30, np.intp)
    trees.draw_arborescence(perturbed, group, parent, np.empty((61, 61)), *ends, np.empty((5, 61), np.intp), selected)
    assert found == parent[selected].tolist()
    assert np.isfinite(weight[range(30), found]).all()
    weight[::2] = np.nan
    assert draw(weight)[0][::2] == [-1] * 15


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_equals_the_oracle(backend, dtype):
    rng = np.random.default_rng(0)
    start = rng.normal(size=7).astype(dtype)
    gradients = (rng.normal(size=(5, 7)) * np.logspace(-6, 3, 7)).astype(dtype)
    x, m, v = there(start), there(np.zeros(7, dtype)), there(np.zeros(7, dtype))
    for t, gradient in enumerate(gradients, start=1):
        step_size = 0.01 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        cuda_kernels.adam_step(x, there(gradient), step_size, 0.9, 0.999, 1e-7, m, v)
    expected, expected_m, _ = naive_losses.adam(start, gradients, 0.01, 0.9, 0.999, 1e-7)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(x.get(), expected, rtol=0, atol=16 * eps)
    np.testing.assert_array_less(np.abs(m.get() - expected_m), 2 * eps * np.abs(gradients).max(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_equals_the_oracle(backend, dtype):
    theta = np.r_[0, -0.25, -0.75, -1.25, -99, 1e-9, -np.random.default_rng(0).exponential(3, 40)].astype(dtype)
    result = fresh(len(theta), dtype)
    cuda_kernels.round_cells(there(theta), len(theta), 0.5, 7, result)
    assert result.get().tolist() == [naive.round_to_bits(value, 2, 1) for value in theta.tolist()]


@pytest.mark.parametrize(("n_values", "width"), [(1, 4), (5, 3), (3, 40), (20, 33)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweeps_are_pull_back_adam_and_normalisation(order, n_values, width, dtype):
    """First a step with a gradient after two without, then the way of three steps without."""
    rng = np.random.default_rng(0)
    theta = naive.normalize(rng.normal(size=(n_values, width)))
    m, d_theta = 0.1 * rng.normal(size=theta.shape), rng.normal(size=theta.shape)
    v = m**2 + 0.1 * rng.random(theta.shape)
    arrays = [there(array, dtype) for array in (m / (np.sqrt(v) + 1e-7), v, theta)]
    cuda_kernels.sweep_drawn(there(d_theta, dtype), *arrays, width, n_values, 2, 0.01, 0.9, 0.999, 1e-7, None)
    gradient = d_theta - np.exp(theta) * d_theta.sum(axis=0)
    # The direction stands for m at the v that it was written with; both decay in the steps between.
    m, v = 0.9**3 * m + 0.1 * gradient, 0.999**3 * v + 0.001 * gradient**2
    direction = m / (np.sqrt(v) + 1e-7)
    moved = naive.normalize(theta - 0.01 * direction)
    for found, expected in zip(arrays, (direction, v, moved), strict=True):
        np.testing.assert_allclose(found.get(), expected, rtol=500 * np.finfo(dtype).eps, atol=50 * np.finfo(dtype).eps)
    way = 0.01 * sum((0.9 / np.sqrt(0.999)) ** step for step in (1, 2, 3))
    cuda_kernels.sweep_undrawn(arrays[0], arrays[2], width, n_values, way, None)
    expected = naive.normalize(moved - way * direction)
    np.testing.assert_allclose(arrays[2].get(), expected, rtol=500 * np.finfo(dtype).eps, atol=50 * np.finfo(dtype).eps)
