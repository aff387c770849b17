"""Tables as sums of terms: beside sums by hand, and the transpose."""

from itertools import product

import numpy as np
import pytest

from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.cpt_terms import CPTTerms

LAYOUT = TableLayout.of_parents(np.array([[-1, -1, -1], [0, -1, -1], [0, 1, -1], [2, 0, 1]]), np.array([2, 3, 2, 3]), 2)


def test_two_parents_add_up_by_hand():
    layout = TableLayout(np.array([2]), np.array([[0, 1]]), np.array([2, 3, 4]), 2)
    terms = CPTTerms(layout)
    parameters = np.random.default_rng(0).normal(size=len(terms.n_parents))
    prior, rest = parameters[:2], parameters[2:]
    sizes = [4 * 2, 4 * 2 * 2, 4 * 3 * 2, 4 * 2 * 3 * 2]
    alone, first, second, both = np.split(rest, np.cumsum(sizes)[:-1])
    cells = terms.cells(parameters)
    assert cells[:2].tolist() == prior.tolist()
    table = cells[2:].reshape(4, 2, 3, 2)
    for x, p, q, y in product(range(4), range(2), range(3), range(2)):
        expected = alone.reshape(4, 2)[x, y] + first.reshape(4, 2, 2)[x, p, y]
        expected += second.reshape(4, 3, 2)[x, q, y] + both.reshape(4, 2, 3, 2)[x, p, q, y]
        assert table[x, p, q, y] == pytest.approx(expected, rel=1e-12)
    assert terms.n_parents.tolist() == [0] * (2 + 8) + [1] * (16 + 24) + [2] * 48


def test_the_adjoint_identity():
    terms, rng = CPTTerms(LAYOUT), np.random.default_rng(1)
    parameters, d_cells = rng.normal(size=len(terms.n_parents)), rng.normal(size=LAYOUT.n_cells)
    assert terms.cells(parameters) @ d_cells == pytest.approx(parameters @ terms.pull_back(d_cells), rel=1e-12)


def test_cells_become_terms_of_mean_zero():
    terms, cells = CPTTerms(LAYOUT), np.random.default_rng(2).normal(size=LAYOUT.n_cells)
    before = cells.copy()
    parameters = terms.from_cells(cells)
    assert cells.tolist() == before.tolist()
    assert terms.cells(parameters) == pytest.approx(cells, abs=1e-12)
    # A table without any effect of parents has no deeper terms.
    plain = terms.from_cells(terms.cells(np.where(terms.n_parents == 0, parameters, 0)))
    assert plain[terms.n_parents > 0] == pytest.approx(0, abs=1e-12)
    assert np.abs(parameters[terms.n_parents == 3]).max() > 0.1
