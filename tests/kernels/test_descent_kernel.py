"""Descent cell by cell against objectives that are computed anew for every step."""

import numpy as np
import pytest
from oracles import descent as oracle

from tanlearn.kernels import descent as kernels

STEPS = [1, -1, 2, -2]


def rows_of(X, n_states, n_classes):
    """Return the first cells of the families of naive Bayes that rows pick, (n, d + 1)."""
    start = n_classes * np.cumsum([1, *n_states])
    return np.column_stack([np.zeros(len(X), int), start[:-1] + n_classes * X])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_pass_takes_the_best_step_of_every_cell(n_classes, seed):
    rng = np.random.default_rng(seed)
    n, n_states, margin = 12, [3, 2], 2
    cells = rows_of(np.column_stack([rng.integers(0, m, n) for m in n_states]), n_states, n_classes)
    y, weight = rng.integers(0, n_classes, n), rng.integers(1, 4, n).astype(float)
    families = np.unique(cells)
    lists = [np.flatnonzero((cells == first).any(axis=1)) for first in families]
    start, rows = np.cumsum([0, *map(len, lists)]), np.concatenate(lists)
    n_cells = n_classes * (1 + sum(n_states))
    lower, upper = rng.integers(0, 2, n_cells), rng.integers(2, 4, n_cells)
    magnitudes = rng.integers(lower, upper + 1)
    problem = cells.tolist(), y.tolist(), weight.tolist(), margin
    wanted, n_wanted = oracle.descend(*problem, families.tolist(), STEPS, lower, upper, magnitudes.tolist(), n_classes)

    found = magnitudes.copy()
    costs = np.array([oracle.costs_of(own, magnitudes, n_classes) for own in cells.tolist()], float)
    scratch = np.full(n, 7), np.full(n, np.nan), np.full(n, np.nan), np.full(len(STEPS), np.nan)
    inputs = y, weight, float(margin), families, start, rows
    n_changed = 0
    for first, last in ((0, 2), (2, len(families))):
        box = np.array(STEPS), lower, upper, 1e-9
        n_changed += kernels.descend(*inputs, first, last, *box, *scratch, costs, found)
    assert found.tolist() == wanted
    assert n_changed == n_wanted > 0
    np.testing.assert_array_equal(costs, [oracle.costs_of(own, wanted, n_classes) for own in cells.tolist()])


def test_rivals_are_the_two_cheapest_other_classes():
    costs = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, 5.0, 4.0, 6.0], [1.0, 2.0, 0.0, 0.0]])
    y = np.array([1, 0, 3])
    cheapest, least, second = np.full(3, 7), np.full(3, np.nan), np.full(3, np.nan)
    for r in range(3):
        kernels.rank_rivals(costs, y, r, cheapest, least, second)
    assert cheapest.tolist() == [3, 2, 2]
    assert least.tolist() == [1.0, 4.0, 0.0]
    assert second.tolist() == [2.0, 5.0, 1.0]
