"""Hierarchical smoothing, scores that back off, and rows left out, against recursion over rows."""

import numpy as np
import pytest
from oracles import back_off as naive
from support.seen_contexts import MISSING, N_CLASSES, N_STATES, columns_of, levels_of, random_rows, sort

from tanlearn.kernels import back_off as kernels
from tanlearn.kernels import contexts

M = np.array([0.5, 2.0, 1.0, 3.0])


def smoothed(codes, y, child, parents):
    """Return the levels of a family and what scores are made of."""
    _, columns, n_values = columns_of(codes, y, child, parents)
    order, shared = sort(columns, n_values)
    values, counts = np.empty_like(columns), np.empty(len(order), np.int64)
    n = contexts.sum_equal(columns, order, shared, np.ones(len(order), np.int64), values, counts)
    levels, sizes = levels_of(values[:, :n].copy(), n_values, counts[:n])
    bounds = np.vstack([np.zeros((1, 3), np.intp), sizes])
    p, log_p, log_rest = np.empty((3, len(levels.run)))
    root = np.empty((N_STATES[child], N_CLASSES))
    m = M[: len(parents) + 1]
    totals = levels.class_total.astype(float)
    kernels.smooth(levels, levels.entry_count, totals, bounds, m, int(N_STATES[child]), p, log_p, log_rest, root)
    return levels, log_p, log_rest, root


@pytest.mark.parametrize("parents", [[], [2], [2, 0, 1]])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_are_smoothed_frequencies_of_the_longest_context(parents, missing):
    X, codes, y = random_rows(0, 30, missing)
    y %= 2  # a class without rows
    arrays = smoothed(codes, y, 3, parents)
    seen, seen_codes, _ = random_rows(1, 50, missing)
    found = np.full((46, N_CLASSES), 7.0)
    kernels.add_log_back_off(seen_codes, 4, 3, np.array(parents, np.intp), *arrays, MISSING, np.empty(N_CLASSES), found)
    for sample, scores in zip(seen[4:].tolist(), found, strict=True):
        values = [sample[j] for j in parents]
        known = values.index(-1) if -1 in values else len(values)
        for c in range(N_CLASSES):
            rows = X.tolist(), y.tolist(), [1] * 30, 3, parents[:known], values[:known]
            expected = 0.0 if sample[3] == -1 else np.log(naive.probability(*rows, sample[3], c, N_STATES, M))
            assert scores[c] - 7 == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_places_are_found_by_bisection():
    values = np.array([1, 1, 4, 6, 6, 6, 9])
    for value in range(11):
        assert kernels.find(values, 0, 7, value) == np.searchsorted(values, value)
        assert kernels.find(values, 2, 5, value) == 2 + np.searchsorted(values[2:5], value)


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
