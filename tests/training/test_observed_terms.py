"""Terms of observed parent values: sums of an oracle, the transpose, and the objective of all terms."""

import numpy as np
import pytest
from oracles import observed_terms as oracle

from tanlearn import ConditionalNLL, EncodedData
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.cpt_terms import CPTTerms
from tanlearn.training.objectives import Objective
from tanlearn.training.observed_terms import ObservedTerms

N_STATES, N_CLASSES = np.array([3, 4, 5, 2, 6]), 3
FAMILIES = [[], [0], [0, 1], [2, 1], [1, 0, 2]]
PARENTS = np.array([parents + [-1] * (3 - len(parents)) for parents in FAMILIES])
LAYOUT = TableLayout.of_parents(PARENTS, N_STATES, N_CLASSES)


def rows(n=30, seed=0):
    """Return rows, some of weight 0, and their observed terms."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, m, n) for m in N_STATES], axis=1)
    weights = rng.integers(0, 3, n).astype(float)
    y = rng.integers(0, N_CLASSES, n)
    data = EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=N_CLASSES, sample_weight=weights)
    return data, ObservedTerms(LAYOUT, data)


@pytest.mark.parametrize("seed", range(3))
def test_entries_are_sums_of_terms(seed):
    data, terms = rows(seed=seed)
    every = np.random.default_rng(seed).normal(size=len(CPTTerms(LAYOUT).n_parents))
    expected = oracle.observed_entries(data.codes[:, data.weights > 0].T, FAMILIES, N_STATES, N_CLASSES, every)
    cells = terms.cells(every[terms.positions])
    np.testing.assert_array_equal(cells[:N_CLASSES], every[:N_CLASSES])
    for t, entries in enumerate(expected):
        own = cells[terms.layout.offset[t] : terms.layout.offset[t + 1]]
        np.testing.assert_allclose(own, list(entries.values()), atol=1e-12)
    numbers = oracle.term_numbers(FAMILIES, N_STATES, N_CLASSES)
    sizes = [0] * N_CLASSES + [len(subset) for _, subset, *_ in numbers]
    np.testing.assert_array_equal(terms.n_parents, np.array(sizes)[terms.positions])


def test_pull_back_is_the_transpose():
    _, terms = rows()
    rng = np.random.default_rng(1)
    parameters, d_cells = rng.normal(size=len(terms.n_parents)), rng.normal(size=terms.layout.n_cells)
    assert terms.cells(parameters) @ d_cells == pytest.approx(parameters @ terms.pull_back(d_cells), rel=1e-12)


def test_loss_and_gradient_are_those_of_all_terms():
    data, terms = rows()
    all_terms = CPTTerms(LAYOUT)
    parameters = np.random.default_rng(2).normal(size=len(terms.positions))
    every = np.zeros(len(all_terms.n_parents))
    every[terms.positions] = parameters
    value, d_cells = Objective(LAYOUT, data, ConditionalNLL())(all_terms.cells(every))
    gradient = all_terms.pull_back(d_cells)
    found, d_found = Objective(terms.layout, terms.rows, ConditionalNLL())(terms.cells(parameters))
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(terms.pull_back(d_found), gradient[terms.positions], atol=1e-12)
    assert np.delete(gradient, terms.positions) == pytest.approx(0, abs=1e-15)
