"""Rows judged by all others, against counting all others anew."""

import numpy as np
import pytest
from oracles import back_off as naive
from support.seen_contexts import N_STATES, STRUCTURE, table

from tanlearn.models import leave_one_out
from tanlearn.models.leave_one_out import LeaveOneOut

FAMILIES = [[j for j in row if j >= 0] for row in STRUCTURE.parents.tolist()]


def losses(data, m, families):
    """Return mean -log P(class | features) and share of errors, counting all rows but one for every row."""
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T.tolist()
    y, weight = data.y.tolist(), data.weights.tolist()
    nats = errors = 0.0
    for n, (row, c, w) in enumerate(zip(X, y, weight, strict=True)):
        left = naive.left_out(weight, n)
        prior = np.bincount(y, left, 3) + 1.0
        scores = np.array(naive.log_joint(row, X, y, left, families, prior / prior.sum(), N_STATES, m))
        nats += w * (np.logaddexp.reduce(scores) - scores[c])
        errors += w * (scores.argmax() != c)
    return np.array([nats, errors]) / sum(weight)


@pytest.mark.parametrize("weights", [None, "integer", "real"])
def test_prefixes_are_judged_by_all_other_rows(weights):
    data = table(24, 0.2, weights, seed=3)
    m, order = np.array([1.0, 0.5, 2.0, 0.7]), np.array([2, 0, 3, 1])
    found = LeaveOneOut(data, STRUCTURE.parents, 4, n_jobs=2).prefixes(order, m)
    assert found.shape == (5, 4, 2)
    for n_features, k in ((0, 0), (2, 1), (4, 0), (4, 2), (4, 3)):
        kept = set(order[:n_features].tolist())
        gone = table(24, 0.2, weights, seed=3)
        gone.codes[[i for i in range(4) if i not in kept and not any(i in FAMILIES[j][:k] for j in kept)]] = 255
        families = [given[:k] if i in kept else [] for i, given in enumerate(FAMILIES)]
        X = np.where(data.codes == 255, -1, data.codes.astype(int)).T
        expected = np.zeros(2)
        for n in range(24):
            left = naive.left_out(data.weights.tolist(), n)
            prior = np.bincount(data.y, left, 3) + 1.0
            scores = np.log(prior / prior.sum())
            for i in sorted(kept):
                given = families[i]
                values = [X[n, j] for j in given]
                known = values.index(-1) if -1 in values else len(values)
                for c in range(3):
                    if X[n, i] != -1:
                        arguments = X, data.y, left, i, given[:known], values[:known], X[n, i], c, N_STATES, m
                        scores[c] += np.log(naive.probability(*arguments))
            w = data.weights[n]
            expected += w * np.array([np.logaddexp.reduce(scores) - scores[data.y[n]], scores.argmax() != data.y[n]])
        np.testing.assert_allclose(found[n_features, k], expected / data.weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_concentrations_are_chosen_level_by_level(missing):
    data, grid = table(24, missing, seed=4), [0.2, 1.0, 5.0]
    m, found = LeaveOneOut(data, STRUCTURE.parents, 3).choose(grid)
    chosen = []
    for level in range(4):
        families = [given[:level] for given in FAMILIES]
        tried = [losses(data, [*chosen, g], families) for g in grid]
        best = int(np.argmin([nats for nats, _ in tried]))
        chosen.append(grid[best])
    assert m.tolist() == chosen
    np.testing.assert_allclose(found, tried[best], rtol=1e-9)
    again = LeaveOneOut(data, STRUCTURE.parents, 3, n_jobs=2).choose(grid)
    assert again[0].tolist() == chosen
    assert again[1] == found


def test_a_row_twice_is_a_row_of_weight_two():
    data = table(24, 0.2, "integer", seed=5)
    twice = table(24, 0.2, seed=5).take(np.repeat(np.arange(24), data.weights))
    assert twice.n_samples != 24
    one, two = (LeaveOneOut(rows, STRUCTURE.parents, 2).choose([0.5, 2.0]) for rows in (data, twice))
    assert one[0].tolist() == two[0].tolist()
    np.testing.assert_allclose(one[1], two[1], rtol=1e-12)


def test_of_many_rows_an_evenly_spaced_part_is_judged(monkeypatch):
    data = table(60, 0.1, seed=6)
    monkeypatch.setattr(leave_one_out, "_NUMBERS", 3 * 2 * 20)
    _, (nats, _) = LeaveOneOut(data, STRUCTURE.parents, 2).choose([1.0])
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T.tolist()
    expected = 0.0
    for n in range(0, 60, 3):
        left = naive.left_out([1] * 60, n)
        prior = np.bincount(data.y, left, 3) + 1.0
        arguments = X, data.y.tolist(), left, FAMILIES, prior / prior.sum(), N_STATES, [1.0] * 4
        scores = np.array(naive.log_joint(X[n], *arguments))
        expected += np.logaddexp.reduce(scores) - scores[data.y[n]]
    assert nats == pytest.approx(expected / 20, rel=1e-9)
