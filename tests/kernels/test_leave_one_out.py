"""Rows left out of the counts of networks that back off, against recursion over rows."""

import numpy as np
import pytest
from oracles import back_off as naive
from support.seen_contexts import N_CLASSES, N_STATES, columns_of, random_rows, sort

from tanlearn.kernels import leave_one_out as kernels

M = np.array([0.5, 2.0, 1.0, 3.0])


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rows_are_left_out_of_their_own_counts(missing, real):
    X, codes, y = random_rows(2, 30, missing)
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.1, 3, 30) if real else rng.integers(1, 4, 30).astype(float)
    parents = [2, 0, 1]
    rows, columns, n_values = columns_of(codes, y, 3, parents)
    order, shared = sort(columns, n_values)
    judged = np.flatnonzero(np.arange(30) % 3)
    slot = np.full(30, -1)
    slot[judged] = np.arange(len(judged))
    chances, candidates = np.empty((len(judged), N_CLASSES)), np.array([0.3, 4.0])
    kernels.start_chances(columns, int(N_STATES[3]), slot[rows], chances)
    cells, totals = np.zeros((N_STATES[3], N_CLASSES)), np.zeros(N_CLASSES)
    for level in range(4):
        absent = int(n_values[level - 1]) if level else 0
        family = columns, order, shared, level, absent, weight[rows], slot[rows]
        products = np.full((2, len(judged), N_CLASSES), 0.5)
        kernels.multiply_left_out(*family, candidates, cells, totals, chances, products)
        kernels.leave_out(*family, M[level], cells, totals, chances)
        np.testing.assert_allclose(cells, 0, atol=1e-12)
        for s, n in enumerate(judged):
            values = [X[n, j] for j in parents[:level]]
            known = values.index(-1) if -1 in values else level
            left = naive.left_out(weight, n)
            for c in range(N_CLASSES):
                arguments = X, y, left, 3, parents[:known], values[:known], X[n, 3], c, N_STATES
                is_there = X[n, 3] != -1
                assert chances[s, c] == pytest.approx(naive.probability(*arguments, M) if is_there else 1, rel=1e-12)
                for g, m in enumerate(candidates):
                    tried = np.array([*M[:level], m])
                    expected = naive.probability(*arguments, tried if known == level else M) if is_there else 1
                    assert products[g, s, c] == pytest.approx(0.5 * expected, rel=1e-12)


def test_logs_are_added():
    chances = np.array([[0.5, 0.25], [1.0, 0.0]])
    scores = np.ones((2, 2))
    with np.errstate(divide="ignore"):
        kernels.add_logs(chances, scores)
        np.testing.assert_allclose(scores, 1 + np.log(chances), rtol=1e-15)


def test_losses_are_those_of_posteriors():
    rng = np.random.default_rng(4)
    scores, y, weight = rng.normal(size=(2, 6, 3)), rng.integers(0, 3, 6), rng.random(6)
    scores[1, 2] = -np.inf
    losses = np.empty((2, 2))
    kernels.class_losses(scores, y, weight, losses)
    for g in range(2):
        nats = errors = 0.0
        for row, c, w in zip(scores[g], y, weight, strict=True):
            p = np.exp(row) / np.exp(row).sum() if np.isfinite(row).any() else np.full(3, 1 / 3)
            nats -= w * np.log(p[c])
            errors += w * (row.argmax() != c)
        np.testing.assert_allclose(losses[g], [nats, errors], rtol=1e-13)
