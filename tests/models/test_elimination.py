"""Rows with an elimination order of their own, and rows in slices: against the enumeration of all completions."""

import numpy as np
import pytest
from oracles import elimination as naive
from scipy.special import logsumexp

from tanlearn import Structure
from tanlearn.models import elimination
from tanlearn.models.elimination import Eliminator
from tanlearn.structures.table_layout import TableLayout

N_STATES = [2, 3, 2, 1, 3, 2, 2]
N_CLASSES = 2
MISSING = 255
CAPACITIES = [1, 5, 12, 30, 10**6]


@pytest.fixture(autouse=True)
def _every_row_is_planned(monkeypatch):
    monkeypatch.setattr(elimination, "_CHEAP", -1)


def network(seed, *, is_normalized=True, zeros=0.1):
    """Return a random network of up to three parents per feature, its layout and its cells."""
    rng = np.random.default_rng(seed)
    order, parents = rng.permutation(7), np.full((7, 3), -1)
    for place, i in enumerate(order.tolist()):
        n = int(rng.integers(0, min(place, 3) + 1))
        parents[i, :n] = rng.choice(order[:place], n, replace=False)
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, np.array(N_STATES), N_CLASSES)
    cells = [np.log(rng.dirichlet(np.ones(N_CLASSES)))]
    for i, k in enumerate(N_STATES):
        table = rng.dirichlet(np.ones(k), (layout.offset[i + 1] - layout.offset[i]) // k).T
        if k > 1:
            table[:, rng.random(table.shape[1]) < zeros] = np.eye(k)[0][:, np.newaxis]
        with np.errstate(divide="ignore"):
            cells.append(np.log(table).ravel() + (0 if is_normalized else rng.normal()))
    return structure, layout, np.concatenate(cells)


def rows(rng, n=24, missing=0.7):
    """Return samples, of which -1 is missing, and their codes."""
    X = rng.integers(0, N_STATES, (n, 7))
    X[rng.random(X.shape) < missing] = -1
    X[0] = -1
    return X, np.where(X < 0, MISSING, X).T.astype(np.uint8).copy()


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("seed", range(4))
def test_slices_add_up_to_the_sum_over_all_completions(seed, capacity, is_normalized):
    structure, layout, cells = network(seed, is_normalized=is_normalized)
    X, codes = rows(np.random.default_rng(seed))
    eliminator = Eliminator(structure, layout, is_normalized=is_normalized, capacity=capacity)
    found = eliminator.log_joint(codes, np.arange(24), cells)
    expected = [naive.log_joint(x, cells, structure.parents.tolist(), N_STATES, N_CLASSES) for x in X]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(eliminator.log_joint(codes, np.arange(24), cells, n_jobs=2), found)
    np.testing.assert_array_equal(eliminator.log_joint(codes, np.array([9, 2]), cells), found[[9, 2]])


def test_small_capacities_make_slices_and_large_ones_do_not():
    structure, layout, _ = network(1)
    codes = np.full((7, 1), MISSING, np.uint8)
    n_slices = []
    for capacity in CAPACITIES:
        eliminator = Eliminator(structure, layout, is_normalized=False, capacity=capacity)
        plans = [plan for _, plan in eliminator._sort(codes, np.array([0]), is_marginal=False).planned]
        assert all(plan.n_numbers <= max(capacity, N_CLASSES) for plan in plans)
        n_slices.append(plans[0].n_slices if plans else 1)
    assert n_slices[0] == np.prod(N_STATES)  # one for each completion
    assert n_slices == sorted(n_slices, reverse=True)
    assert len(set(n_slices)) > 3
    assert n_slices[-1] == 1


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_is_the_expected_use_of_every_cell(seed, capacity):
    structure, layout, cells = network(seed, is_normalized=False, zeros=0)
    rng = np.random.default_rng(seed)
    X, codes = rows(rng, 6)
    d_scores = rng.normal(size=(6, N_CLASSES))
    eliminator = Eliminator(structure, layout, is_normalized=False, capacity=capacity)
    found = eliminator.log_joint_adjoint(codes, np.arange(6), cells, d_scores)
    parents = structure.parents.tolist()
    one = [naive.expected_counts(x, d, cells, parents, N_STATES, N_CLASSES) for x, d in zip(X, d_scores, strict=True)]
    np.testing.assert_allclose(found, np.sum(one, axis=0), rtol=1e-10, atol=1e-12)
    again = eliminator.log_joint_adjoint(codes, np.arange(6), cells, d_scores, n_jobs=2)
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("given", [None, 1])
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("seed", range(3))
def test_completions_are_the_most_probable_of_all(seed, capacity, given):
    structure, layout, cells = network(seed, is_normalized=False)
    X, codes = rows(np.random.default_rng(seed), 10)
    y = np.full(10, -1 if given is None else given)
    completed = Eliminator(structure, layout, capacity=capacity).complete(codes, np.arange(10), cells, y)
    parents, possible = structure.parents.tolist(), 0
    for n, x in enumerate(X):
        score = naive.most_probable(x, cells, parents, N_STATES, N_CLASSES, given)[2]
        assert (completed[:, n] < N_STATES).all()
        if score > -np.inf:
            filled = naive.log_joint(completed[:, n].tolist(), cells, parents, N_STATES, N_CLASSES)[y[n]]
            assert filled == pytest.approx(score, rel=1e-12)
            possible += 1
    assert possible > 5


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_drawn_completions_follow_the_posterior_of_every_class(capacity):
    structure, layout, cells = network(0, is_normalized=False)
    n = 4000
    x = np.array([-1, -1, 0, 0, -1, 1, 1])
    codes = np.tile(np.where(x < 0, MISSING, x)[:, np.newaxis], n).astype(np.uint8)
    eliminator = Eliminator(structure, layout, is_normalized=False, capacity=capacity)
    drawn = eliminator.sample(codes, np.arange(n), cells, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[x >= 0], x[x >= 0, np.newaxis, np.newaxis] * np.ones((1, n, N_CLASSES)))
    completions = np.array(list(naive.completions(x, N_STATES)))
    parents = structure.parents.tolist()
    scores = np.array([naive.log_joint(row, cells, parents, N_STATES, N_CLASSES) for row in completions])
    expected = np.exp(scores - logsumexp(scores, axis=0))
    for c in range(N_CLASSES):
        frequency = (drawn[:, np.newaxis, :, c] == completions.T[:, :, np.newaxis]).all(axis=0).mean(axis=1)
        np.testing.assert_allclose(frequency, expected[:, c], atol=0.04)
        assert (frequency[expected[:, c] == 0] == 0).all()


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_impossible_rows_are_minus_infinity_and_nothing_is_nan(capacity):
    structure, layout, cells = network(0)
    cells[layout.offset[5] : layout.offset[6]] = -np.inf
    codes = np.full((7, 1), MISSING, np.uint8)
    codes[5] = 0
    eliminator = Eliminator(structure, layout, is_normalized=False, capacity=capacity)
    assert np.isneginf(eliminator.log_joint(codes, np.array([0]), cells)).all()
    d_cells = eliminator.log_joint_adjoint(codes, np.array([0]), cells, np.ones((1, N_CLASSES)))
    assert np.isfinite(d_cells).all()
    assert (eliminator.complete(codes, np.array([0]), cells, np.array([-1]))[:, 0] < N_STATES).all()
    drawn = eliminator.sample(codes, np.array([0]), cells, np.random.default_rng(0))
    assert (drawn < np.array(N_STATES)[:, np.newaxis, np.newaxis]).all()


def grid(width):
    """Return a structure in which the feature above and the one before are the parents of each."""
    number = np.arange(width * width).reshape(width, width)
    above, before = np.full((2, width, width), -1)
    above[1:], before[:, 1:] = number[:-1], number[:, :-1]
    return Structure(np.stack([above.ravel(), before.ravel()], axis=1))


def test_a_grid_too_large_to_enumerate_sums_to_the_prior_in_slices():
    structure, rng = grid(10), np.random.default_rng(0)
    layout = TableLayout.of_parents(structure.parents, np.full(100, 2), 2)
    tables = [np.log(rng.dirichlet([1, 1], n // 2).T).ravel() for n in np.diff(layout.offset)]
    prior = np.log([0.3, 0.7])
    cells = np.concatenate([prior, *tables])
    codes = np.full((100, 2), MISSING, np.uint8)
    codes[-1] = 0, 1
    whole = Eliminator(structure, layout).log_joint(codes, np.arange(2), cells)
    np.testing.assert_allclose(np.logaddexp(*whole), prior, rtol=1e-12)
    eliminator = Eliminator(structure, layout, capacity=20_000)
    assert all(plan.n_slices > 16 for _, plan in eliminator._sort(codes, np.arange(2), is_marginal=True).planned)
    np.testing.assert_allclose(eliminator.log_joint(codes, np.arange(2), cells), whole, rtol=1e-12)


def test_hidden_features_without_observed_descendants_are_free():
    """All 900 features of a grid but its first row: in normalized tables nothing has to be eliminated."""
    structure = grid(30)
    layout = TableLayout.of_parents(structure.parents, np.full(900, 2), 2)
    cells = np.concatenate([np.log([0.3, 0.7]), np.full(layout.n_cells - 2, np.log(0.5))])
    codes = np.full((900, 1), MISSING, np.uint8)
    codes[:30] = 0
    found = Eliminator(structure, layout, most_operations=0).log_joint(codes, np.array([0]), cells)
    np.testing.assert_allclose(found, [np.log([0.3, 0.7]) + 30 * np.log(0.5)], rtol=1e-12)
    with pytest.raises(
        ValueError, match=r"at most 1,000,000,000 operations, .* row 0 lacks 870 features .* more\. Impute"
    ):
        Eliminator(structure, layout).complete(codes, np.array([0]), cells, np.array([-1]))


def test_the_limit_of_operations_is_the_users(monkeypatch):
    structure, layout, cells = network(1)
    _, codes = rows(np.random.default_rng(1))
    exact = Eliminator(structure, layout).log_joint(codes, np.arange(24), cells)
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", "0")
    eliminator = Eliminator(structure, layout)
    inexact = eliminator.find_inexact(codes, np.arange(24))
    assert 4 < len(inexact) < 20  # some have nothing to eliminate
    others = np.setdiff1d(np.arange(24), inexact)
    np.testing.assert_array_equal(eliminator.log_joint(codes, others, cells), exact[others])
    for call in (
        lambda: eliminator.log_joint(codes, np.arange(24), cells),
        lambda: eliminator.log_joint_adjoint(codes, np.arange(24), cells, np.ones((24, N_CLASSES))),
    ):
        with pytest.raises(ValueError, match=f"at most 0 operations, .* row {inexact[0]} lacks .* {inexact[1]}, "):
            call()
    with pytest.raises(ValueError, match=r"all 7 features have to be marginalized.*set a larger limit"):
        eliminator.sample(codes, np.arange(1), cells, np.random.default_rng(0))
