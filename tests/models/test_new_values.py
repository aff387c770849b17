"""Unseen values: against minima over the values in their place, and never more probable than these."""

import numpy as np
import pytest
from oracles import new_values as naive

from tanlearn import InexactMarginalizationWarning, Structure
from tanlearn.models import new_values as module
from tanlearn.models.log_joint import log_joint
from tanlearn.models.new_values import bound_new_values, log_joint_of_new_values
from tanlearn.models.tables import Tables
from tanlearn.structures.table_layout import TableLayout

N_STATES = [2, 3, 1, 2, 3]
STRUCTURES = {
    "naive Bayes": [-1, -1, -1, -1, -1],
    "tree": [-1, 0, 1, 1, 0],
    "two parents": [[-1, -1], [0, -1], [1, 0], [1, -1], [3, 1]],
    "three parents": [[-1, -1, -1], [0, -1, -1], [-1, -1, -1], [1, 0, -1], [3, 0, 1]],
}


def network(name, *, zeros=0.2, is_normalized=True):
    """Return a random network; some probabilities are zero."""
    rng = np.random.default_rng(0)
    structure = Structure(STRUCTURES[name])
    layout = TableLayout.of_parents(structure.parents, np.array(N_STATES), 2)
    cells = [np.array([0.4, 0.6])]
    for i, k in enumerate(N_STATES):
        table = rng.dirichlet(np.ones(k), (layout.offset[i + 1] - layout.offset[i]) // k).T
        if k > 1:
            table[:, rng.random(table.shape[1]) < zeros] = np.eye(k)[0][:, np.newaxis]
        cells.append(table.ravel())
    with np.errstate(divide="ignore"):
        log_cells = np.log(np.concatenate(cells))
    if not is_normalized:
        log_cells[2:] += rng.normal(size=len(log_cells) - 2)
    return structure, Tables(layout, log_cells, is_normalized)


def rows(rng, n=60):
    """Return samples with missing values (-1) and unseen ones (None)."""
    X = rng.integers(0, N_STATES, (n, 5)).astype(object)
    X[rng.random(X.shape) < 0.2] = -1
    X[rng.random(X.shape) < 0.3] = None
    return X


def encode(X):
    codes = np.array([[255 if x == -1 else 0 if x is None else x for x in row] for row in X], np.uint8).T.copy()
    return codes, np.array([[x is None for x in row] for row in X]).T


def barren(sample, parents):
    """Return the missing features without a descendant that is present."""
    needed = {i for i, value in enumerate(sample) if value != -1}
    for _ in sample:
        needed |= {j for i in needed for j in parents[i] if j >= 0}
    return set(range(len(sample))) - needed


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("name", STRUCTURES)
def test_scores_are_products_of_the_smallest_possible_entries(name, is_normalized):
    structure, tables = network(name, is_normalized=is_normalized)
    X = rows(np.random.default_rng(1))
    found = log_joint_of_new_values(tables, structure, *encode(X))
    parents, probabilities = structure.parents.tolist(), [np.exp(tables[i]) for i in range(5)]
    shares = [table / table.sum(axis=0) for table in probabilities]
    rarest = [min([1 / 3, *(table[..., c][table[..., c] > 0].min() for table in shares)]) for c in range(2)]
    prior = np.exp(tables.log_prior)
    for sample, scores in zip(X.tolist(), found, strict=True):
        free = barren(sample, parents) if is_normalized else set()
        if is_normalized:
            expected = naive.log_joint(sample, probabilities, prior, parents, N_STATES, rarest, free)
            np.testing.assert_allclose(scores, expected, rtol=1e-10)
        assert not np.isnan(scores).any()


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("name", STRUCTURES)
def test_no_seen_value_that_is_possible_scores_less(name, is_normalized):
    structure, tables = network(name, zeros=0, is_normalized=is_normalized)
    X = rows(np.random.default_rng(2))
    found = log_joint_of_new_values(tables, structure, *encode(X))
    n_compared = 0
    for i, k in enumerate(N_STATES):
        unseen = np.flatnonzero(X[:, i] == None)  # noqa: E711
        for value in range(k):
            replaced = X[unseen].copy()
            replaced[:, i] = value
            others = log_joint_of_new_values(tables, structure, *encode(replaced))
            assert (found[unseen] <= others + 1e-12).all()
            n_compared += len(unseen)
    assert n_compared > 100


@pytest.mark.parametrize("name", STRUCTURES)
def test_rows_without_unseen_values_are_those_of_log_joint(name):
    structure, tables = network(name)
    X = rows(np.random.default_rng(3))
    codes, is_unseen = encode(X)
    found = log_joint_of_new_values(tables, structure, codes, is_unseen)
    seen = ~is_unseen.any(axis=0)
    assert 0 < seen.sum() < len(X)
    np.testing.assert_array_equal(found[seen], log_joint(tables, structure, codes[:, seen].copy()))
    np.testing.assert_array_equal(log_joint_of_new_values(tables, structure, codes, is_unseen, n_jobs=2), found)
    one = [5], codes[:, 5:6].copy(), is_unseen[:, 5:6]
    np.testing.assert_array_equal(log_joint_of_new_values(tables, structure, *one[1:]), found[one[0]])


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("name", STRUCTURES)
def test_many_rows_have_the_scores_of_single_rows(name, is_normalized):
    """Many rows take minima over whole CPTs, single rows over the entries of their context."""
    structure, tables = network(name, is_normalized=is_normalized)
    X = rows(np.random.default_rng(4), n=200)
    X[X == -1] = 0
    codes, is_unseen = encode(X)
    found = log_joint_of_new_values(tables, structure, codes, is_unseen)
    for n in range(len(X)):
        one = log_joint_of_new_values(tables, structure, codes[:, n : n + 1], is_unseen[:, n : n + 1])
        np.testing.assert_array_equal(one[0], found[n])


def test_one_warning_names_all_approximated_rows_by_their_numbers(monkeypatch):
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", "1")
    structure, tables = network("two parents")
    X = np.ones((9, 5), object)
    X[:, 2] = 0
    X[0, 0] = X[3, 4] = None
    X[5, :3] = X[7, :3] = X[8, :3] = -1
    X[7, 3] = X[8, 4] = None
    with pytest.warns(InexactMarginalizationWarning) as caught:
        found = log_joint_of_new_values(tables, structure, *encode(X))
    assert len(caught) == 1
    assert "the scores of rows 5, 7, 8 are approximate, " in str(caught[0].message)
    with pytest.warns(InexactMarginalizationWarning, match="the scores of row 5 are"):
        expected = log_joint(tables, structure, encode(X[:7])[0])
    np.testing.assert_array_equal(found[[1, 2, 4, 5, 6]], expected[[1, 2, 4, 5, 6]])


def test_missing_values_under_a_cycle_are_named_by_their_row():
    structure = Structure([1, 2, 0], allow_cycles=True)
    layout = TableLayout.of_parents(structure.parents, np.array([2, 2, 2]), 2)
    tables = Tables(layout, np.log(np.full(layout.n_cells, 0.5)))
    codes, is_unseen = np.zeros((3, 6), np.uint8), np.zeros((3, 6), bool)
    codes[1, 4], is_unseen[0, [0, 4]] = 255, True
    with pytest.raises(ValueError, match=r"row 4 lacks feature 1 .* in a structure with a cycle"):
        log_joint_of_new_values(tables, structure, codes, is_unseen)


def test_only_the_entries_of_the_contexts_in_a_row_are_evaluated(monkeypatch):
    """Not whole CPTs for each pattern of unseen values."""
    d, n_states = 12, 10
    structure = Structure([[max(i - 1, -1), i - 2 if i > 1 else -1] for i in range(d)])
    layout = TableLayout.of_parents(structure.parents, np.full(d, n_states), 2)
    rng, sizes = np.random.default_rng(0), []
    tables = Tables(layout, np.log(rng.random(layout.n_cells)))
    smallest = module._smallest

    def count(table, *arguments, **options):
        sizes.append(table.size)
        return smallest(table, *arguments, **options)

    monkeypatch.setattr(module, "_smallest", count)
    codes, is_unseen = rng.integers(0, n_states, (d, 8)).astype(np.uint8), np.zeros((d, 8), bool)
    is_unseen[[0, 3, 6, 9], :4] = is_unseen[[1, 4, 8, 11], 4:] = True  # no two of one family
    log_joint_of_new_values(tables, structure, codes, is_unseen)
    assert 0 < sum(sizes) <= 8 * 4 * 3 * n_states * layout.n_classes  # rows, unseen values, families, entries
    assert 10 * sum(sizes) < 8 * layout.n_cells


def test_a_new_value_is_never_more_probable_than_after_a_single_row():
    assert bound_new_values(np.log([[0.9, 0.5], [1.0, 0.2]])).tolist() == [np.log(1 / 3), np.log(0.2)]
    with np.errstate(divide="ignore"):
        assert bound_new_values(np.log([[0.0, 0.1]])).tolist() == [np.log(1 / 3), np.log(0.1)]
