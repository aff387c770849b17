"""Tables as sums of levels: beside sums by hand, and the transpose."""

from itertools import product

import numpy as np
import pytest

from tanlearn.network.table_layout import TableLayout
from tanlearn.training.levels import Levels

LAYOUT = TableLayout.of_parents(np.array([[-1, -1, -1], [0, -1, -1], [0, 1, -1], [2, 0, 1]]), np.array([2, 3, 2, 3]), 2)


def test_two_parents_add_up_by_hand():
    layout = TableLayout(np.array([2]), np.array([[0, 1]]), np.array([2, 3, 4]), 2)
    levels = Levels(layout)
    numbers = np.random.default_rng(0).normal(size=len(levels.depth))
    prior, rest = numbers[:2], numbers[2:]
    sizes = [4 * 2, 4 * 2 * 2, 4 * 3 * 2, 4 * 2 * 3 * 2]
    alone, first, second, both = np.split(rest, np.cumsum(sizes)[:-1])
    cells = levels.cells(numbers)
    assert cells[:2].tolist() == prior.tolist()
    table = cells[2:].reshape(4, 2, 3, 2)
    for x, p, q, y in product(range(4), range(2), range(3), range(2)):
        expected = alone.reshape(4, 2)[x, y] + first.reshape(4, 2, 2)[x, p, y]
        expected += second.reshape(4, 3, 2)[x, q, y] + both.reshape(4, 2, 3, 2)[x, p, q, y]
        assert table[x, p, q, y] == pytest.approx(expected, rel=1e-12)
    assert levels.depth.tolist() == [0] * (2 + 8) + [1] * (16 + 24) + [2] * 48


def test_the_adjoint_identity():
    levels, rng = Levels(LAYOUT), np.random.default_rng(1)
    numbers, d_cells = rng.normal(size=len(levels.depth)), rng.normal(size=LAYOUT.n_cells)
    assert levels.cells(numbers) @ d_cells == pytest.approx(numbers @ levels.pull_back(d_cells), rel=1e-12)


def test_cells_become_terms_of_mean_zero():
    levels, cells = Levels(LAYOUT), np.random.default_rng(2).normal(size=LAYOUT.n_cells)
    before = cells.copy()
    numbers = levels.of_cells(cells)
    assert cells.tolist() == before.tolist()
    assert levels.cells(numbers) == pytest.approx(cells, abs=1e-12)
    # A table without any effect of parents has no deeper terms.
    plain = levels.of_cells(levels.cells(np.where(levels.depth == 0, numbers, 0)))
    assert plain[levels.depth > 0] == pytest.approx(0, abs=1e-12)
    assert np.abs(numbers[levels.depth == 3]).max() > 0.1
