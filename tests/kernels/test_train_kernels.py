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
    scratch = np.full(99, np.nan, np.float32), np.empty(99, np.float32)  # longer than the table, as in an epoch
    if idle:
        train.sweep_idle(*arrays, n_values, *ADAM, *scratch)
    else:
        train.sweep(single(d_theta), *arrays, n_values, *ADAM, *scratch)
    np.testing.assert_allclose(arrays[0], m_new.ravel(), atol=1e-6)
    np.testing.assert_allclose(arrays[1], v_new.ravel(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(arrays[2], naive.normalize(moved).ravel(), atol=2e-6)


@pytest.mark.parametrize("idle", [False, True])
def test_tiny_moments_are_flushed(idle):
    theta = single(naive.normalize(np.zeros((2, 4))))
    m, v = np.full(8, 1.2e-38, np.float32), np.full(8, 1.1755e-38, np.float32)
    scratch = np.full(99, np.nan, np.float32), np.empty(99, np.float32)
    if idle:
        train.sweep_idle(m, v, theta, 2, *ADAM, *scratch)
    else:
        train.sweep(np.zeros(8, np.float32), m, v, theta, 2, *ADAM, *scratch)
    assert not m.any()
    assert not v.any()


def test_listed_entries_and_their_cells():
    codes = np.array([[0, 1, 1], [2, 0, 1], [0, 1, 0]], np.uint8)
    d_scores = np.array([[0, 0.5], [0, 0], [-1, 2]], np.float32)
    sample, entry_class, cell = (np.empty(6, np.int32) for _ in range(3))
    d, entry_codes = np.empty(6, np.float32), np.empty((3, 6), np.uint8)
    count = train.list_entries(codes, d_scores, sample, entry_class, d, entry_codes)
    assert count == 3
    assert sample[:3].tolist() == [0, 2, 2]
    assert entry_class[:3].tolist() == [1, 0, 1]
    assert d[:3].tolist() == [0.5, -1, 2]
    assert entry_codes[:, :3].tolist() == [[0, 1, 1], [2, 1, 1], [0, 0, 0]]
    for child, parents in ((1, [-1, -1]), (1, [0, -1]), (2, [1, 0])):
        train.entry_cells(entry_codes, entry_class, count, child, np.array(parents), np.array([2, 3, 2]), 2, cell)
        rows = [naive.family_index(codes.T[k], child, parents, [2, 3, 2]) for k in sample[:3]]
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
    idle = np.zeros(len(child), np.intp)
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
                idle,
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


def test_waking_makes_up_for_the_steps_not_taken():
    m, v = np.array([1.0, -2.0], np.float32), np.array([4.0, 1.0], np.float32)
    train.wake(m, v, 3, REAL(0.5), REAL(0.9))
    np.testing.assert_allclose(m, [0.125, -0.25])
    np.testing.assert_allclose(v, [4 * 0.729, 0.729], rtol=1e-6)


def test_a_table_that_was_not_drawn_for_long_rests_until_it_is_drawn():
    """REST_AFTER steps without a draw leave theta alone; the draw lets the moments decay first."""
    for idle, expect_rest in ((train.REST_AFTER, True), (3, False)):
        theta = np.log(np.array([0.5, 0.5, 0.3, 0.6, 0.7, 0.4, 0.3, 0.6, 0.7, 0.4], np.float32))
        theta = np.append(theta, theta[2:])
        before = theta.copy()
        m, v = np.full_like(theta, 0.1), np.full_like(theta, 0.1)
        counters = np.array([0, idle + 5, idle])
        phi = np.array([0.0, 50.0, -50.0])
        y = np.array([0, 1, 1, 0])
        train.train_epoch(
            np.stack([y, 1 - y]).astype(np.uint8),
            y,
            np.ones(4, np.float32),
            np.array([[0, 1, 2, 3]]),
            np.full((1, 3), 0.5, np.float32),
            np.array([0, 1, 1]),
            np.full((3, 2), -1),
            np.array([2, 2]),
            np.array([2, 6, 10, 14]),
            np.array([0, 1, 3]),
            False,
            losses.JOINT_NLL,
            np.zeros(3, np.float32),
            np.full(1, 0.1, np.float32),
            np.zeros(1),
            *ADAM[1:],
            1.0,
            m,
            v,
            theta,
            counters,
            np.zeros(3),
            np.zeros(3),
            phi,
        )
        assert counters.tolist() == [0, 0, idle + 1]
        assert np.array_equal(theta[10:14], before[10:14]) == expect_rest
        assert not np.array_equal(theta[6:10], before[6:10])
