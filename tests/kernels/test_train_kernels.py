"""The pieces of the fused engine, and a tiny whole epoch; trajectories are compared in tests/test_epochs.py."""

import naive
import numpy as np
import pytest

from tanlearn.kernels import losses, train

REAL = np.float32
ADAM = (REAL(0.01), REAL(0.9), REAL(0.999), REAL(1e-7))


def naive_adam(theta, gradient, m, v):
    """One step in double precision."""
    step, beta1, beta2, epsilon = map(float, ADAM)
    m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    return theta - step * m / (np.sqrt(v) + epsilon), m, v


def random_table(seed, n_values, width=4):
    rng = np.random.default_rng(seed)
    theta = naive.normalize(rng.normal(size=(n_values, width)))
    m = 0.1 * rng.normal(size=(n_values, width))
    return rng, theta, m, m**2 + 0.1 * rng.random((n_values, width))


def single(array):
    return array.ravel().astype(np.float32)


@pytest.mark.parametrize("n_values", [1, 2, 5])
@pytest.mark.parametrize("idle", [False, True])
def test_sweep_is_pull_back_adam_and_normalisation(n_values, idle):
    rng, theta, m, v = random_table(n_values, n_values)
    d_theta = rng.normal(size=theta.shape) * (not idle)
    gradient = d_theta - np.exp(theta) * d_theta.sum(axis=0)
    moved, m_new, v_new = naive_adam(theta, gradient, m, v)
    arrays = single(m), single(v), single(theta)
    total = np.empty(4, np.float32)
    if idle:
        train.sweep_idle(*arrays, n_values, *ADAM, total)
    else:
        train.sweep(single(d_theta), *arrays, n_values, *ADAM, total)
    np.testing.assert_allclose(arrays[0], m_new.ravel(), atol=1e-6)
    np.testing.assert_allclose(arrays[1], v_new.ravel(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(arrays[2], naive.normalize(moved).ravel(), atol=2e-6)


@pytest.mark.parametrize("idle", [False, True])
def test_tiny_moments_are_flushed(idle):
    theta = single(naive.normalize(np.zeros((2, 4))))
    m, v = np.full(8, 1.2e-38, np.float32), np.full(8, 1.1755e-38, np.float32)
    total = np.empty(4, np.float32)
    if idle:
        train.sweep_idle(m, v, theta, 2, *ADAM, total)
    else:
        train.sweep(np.zeros(8, np.float32), m, v, theta, 2, *ADAM, total)
    assert not m.any()
    assert not v.any()


def test_gumbel_noise_follows_its_distribution_function():
    uniform = np.random.default_rng(0).random((2, 400), dtype=np.float32)
    uniform[0, 0] = 0.0
    uniform[0, 1] = 1 - 2.0**-24
    noise = np.empty_like(uniform)
    train.gumbel(uniform, noise)
    np.testing.assert_allclose(np.exp(-np.exp(-noise.astype(float))), uniform, atol=1e-6)
    assert np.isfinite(noise).all()


def test_listed_entries_and_their_cells():
    codes = np.array([[0, 1, 1], [2, 0, 1]], np.uint8)
    d_scores = np.array([[0, 0.5], [0, 0], [-1, 2]], np.float32)
    sample, entry_class, cell = (np.empty(6, np.intp) for _ in range(3))
    d, entry_codes = np.empty(6, np.float32), np.empty((2, 6), np.uint8)
    count = train.list_entries(codes, d_scores, sample, entry_class, d, entry_codes)
    assert count == 3
    assert sample[:3].tolist() == [0, 2, 2]
    assert entry_class[:3].tolist() == [1, 0, 1]
    assert d[:3].tolist() == [0.5, -1, 2]
    assert entry_codes[:, :3].tolist() == [[0, 1, 1], [2, 1, 1]]
    train.entry_cells(entry_codes, entry_class, count, 1, np.array([0, -1]), np.array([2, 3]), 2, cell)
    rows = [naive.family_index(codes.T[k], 1, [0], [2, 3]) for k in sample[:3]]
    assert cell[:3].tolist() == [row * 2 + c for row, c in zip(rows, entry_class[:3], strict=True)]


@pytest.mark.parametrize("arborescence", [False, True])
@pytest.mark.parametrize("choice", [False, True])
def test_an_epoch_lowers_the_loss_and_keeps_tables_normalised(arborescence, choice):
    """Two features, each the class itself; with a choice, each may have the other as its parent (or only 1 has 0)."""
    y = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    codes = np.stack([y, y]).astype(np.uint8)
    n_states = np.array([2, 2])
    if not choice:
        child, parent = np.array([0, 1]), [-1, 0]
    elif arborescence:
        child, parent = np.array([0, 0, 1, 1]), [-1, 1, -1, 0]
    else:
        child, parent = np.array([0, 1, 1]), [-1, -1, 0]
    parents = np.stack([parent, np.full(len(parent), -1)], axis=1)
    group = np.searchsorted(child, [0, 1, 2])
    offset = np.array(naive.offsets(child, parents, n_states, 2))
    theta = np.full(offset[-1], np.log(0.5), np.float32)
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    phi, phi_m, phi_v = np.zeros((3, len(child)))
    rng = np.random.default_rng(0)
    totals = []
    for _ in range(3):
        order = rng.permutation(8).reshape(2, 4)
        totals.append(
            train.train_epoch(
                codes,
                y,
                np.ones(8, np.float32),
                order,
                rng.random((2, len(child)), dtype=np.float32),
                child,
                parents,
                n_states,
                offset,
                group,
                arborescence and choice,
                losses.HYBRID,
                np.array([10, 1, 10], np.float32),
                np.full(2, 0.1, np.float32),
                np.full(2, 0.1),
                *ADAM[1:],
                1.0,
                m,
                v,
                theta,
                phi_m,
                phi_v,
                phi,
            )
        )
    assert totals[0] > totals[1] > totals[2]
    assert phi.any() == choice
    np.testing.assert_allclose(np.exp(theta[:2]).sum(), 1, rtol=1e-6)
    for t, first in enumerate(offset[:-1]):
        table = np.exp(theta[first : offset[t + 1]]).reshape(2, -1)
        np.testing.assert_allclose(table.sum(axis=0), 1, rtol=1e-6)
