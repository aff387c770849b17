"""Missing features, eliminated and passed up a forest: every pattern, against the enumeration of all completions."""

import itertools

import numpy as np
import pytest
from oracles import elimination as naive
from support.small_networks import (
    CASES,
    MISSING,
    N_CLASSES,
    N_STATES,
    TREE,
    WIDE_LOOP,
    network,
    normalized_cells,
    offsets,
    patterns,
)

from tanlearn.kernels import elimination as kernels
from tanlearn.kernels import upward


@pytest.fixture(autouse=True)
def _logarithm_of_zero():
    """Without the compiler NumPy warns of it."""
    with np.errstate(divide="ignore"):
        yield


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize(("parents", "order"), CASES)
def test_log_joint_is_the_sum_over_all_completions(parents, order, is_normalized):
    rng = np.random.default_rng(0)
    cells = normalized_cells(parents, rng)
    if not is_normalized:
        cells += rng.normal(size=len(cells))
    X, codes = patterns(rng)
    scores = np.empty((32, N_CLASSES))
    tables = cells, network(parents, order)
    assert kernels.eliminate(codes, np.arange(32), *tables, is_normalized, MISSING, 5, 300, 0, scores) == 32
    expected = [naive.log_joint(sample, cells, parents, N_STATES, N_CLASSES) for sample in X]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("most", [1, 2, 100])  # whether every product is scaled, some, or none
@pytest.mark.parametrize("parent", [[-1] * 5, [-1, 0, 1, 1, 0], [3, 0, 0, -1, 0], [1, -1, 1, 1, 1]])
def test_upward_pass_is_the_sum_over_all_completions(parent, most, is_normalized):
    rng = np.random.default_rng(6)
    parents = [[j, -1] for j in parent]
    cells = normalized_cells(parents, rng)
    if not is_normalized:
        cells += rng.normal(size=len(cells))
    X, codes = patterns(rng)
    depth = [0 if j < 0 else 1 if parent[j] < 0 else 2 for j in parent]
    start = np.append(0, np.cumsum(N_STATES)) * N_CLASSES
    tables = cells, np.exp(cells), np.array(parent), np.argsort(depth)[::-1].copy(), N_STATES, offsets(parents), start
    scratch = np.empty(5, np.intp), np.empty(start[-1]), np.empty(3 * N_CLASSES), np.empty(N_CLASSES)
    scores = np.empty((32, N_CLASSES))
    upward.log_joint_upward(codes, *tables, is_normalized, most, MISSING, *scratch, scores)
    expected = [naive.log_joint(sample, cells, parents, N_STATES, N_CLASSES) for sample in X]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("parents", "order"), CASES)
def test_adjoint_gives_expected_indicators(parents, order):
    rng = np.random.default_rng(1)
    cells = np.maximum(normalized_cells(parents, rng), -3.0) + rng.normal(size=offsets(parents)[-1])
    X, codes = patterns(rng)
    tables = cells, network(parents, order)
    for n, sample in enumerate(X):
        d_scores = rng.normal(size=(1, N_CLASSES))
        d_cells = np.zeros(len(cells))
        rows = np.array([n])
        assert kernels.eliminate_adjoint(codes, rows, *tables, False, MISSING, 5, 300, d_scores, d_cells) == 1
        expected = naive.expected_counts(sample, d_scores[0], cells, parents, N_STATES, N_CLASSES)
        np.testing.assert_allclose(d_cells, expected, rtol=1e-10, atol=1e-12)


def test_impossible_samples_have_no_expected_completions():
    """They are -inf; what is observed is still there, and nothing is nan."""
    cells = normalized_cells(TREE, np.random.default_rng(5))
    codes = np.array([[0, MISSING, 0, 1, 0]], dtype=np.uint8).T.copy()  # feature 2 is never 0
    tables = cells, network(TREE, [4, 3, 2, 1, 0])
    scores, d_cells = np.empty((1, N_CLASSES)), np.zeros(len(cells))
    assert kernels.eliminate(codes, np.array([0]), *tables, True, MISSING, 5, 300, 0, scores) == 1
    assert np.isneginf(scores).all()
    one = np.ones((1, N_CLASSES))
    assert kernels.eliminate_adjoint(codes, np.array([0]), *tables, True, MISSING, 5, 300, one, d_cells) == 1
    assert d_cells.sum() == 3 * N_CLASSES  # the prior, features 0 and 4


def test_barren_families_get_no_indicators():
    rng = np.random.default_rng(2)
    cells = normalized_cells(TREE, rng)
    codes = np.array([[0, MISSING, MISSING, 1, MISSING]], dtype=np.uint8).T.copy()
    tables = cells, network(TREE, [4, 3, 2, 1, 0])
    d_cells = np.zeros(len(cells))
    one = np.ones((1, N_CLASSES))
    assert kernels.eliminate_adjoint(codes, np.array([0]), *tables, True, MISSING, 5, 300, one, d_cells) == 1
    offset = offsets(TREE)
    weight = [d_cells[first:last].sum() for first, last in itertools.pairwise(offset)]
    np.testing.assert_allclose(weight, [2, 2, 0, 2, 0])  # features 2 and 4 have nothing observed below


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize(("parents", "order"), CASES)
def test_values_are_counted_without_being_summed(parents, order, is_normalized):
    X, codes = patterns(np.random.default_rng(8))
    n_values, net = np.empty(32, np.int64), network(parents, order)
    assert kernels.count_values(codes, np.arange(32), net, N_CLASSES, is_normalized, MISSING, 5, 300, n_values) == 32
    expected = [naive.n_values(sample, parents, N_STATES.tolist(), order, is_normalized) for sample in X]
    assert n_values.tolist() == expected
    for capacity in range(0, 90, 7):
        scores, capacity = np.empty((1, N_CLASSES)), (is_normalized, MISSING, 5, capacity)
        for n in range(32):
            one, cells = np.array([n]), np.zeros(offsets(parents)[-1])
            done = kernels.eliminate(codes, one, cells, net, *capacity, 0, scores)
            assert kernels.count_values(codes, one, net, N_CLASSES, *capacity, n_values) == done


@pytest.mark.parametrize(("parents", "order"), CASES)
def test_on_the_way_back_joins_tell_how_probable_values_are(parents, order):
    """From the last feature eliminated to the first, given those that are back; all before them are summed out."""
    rng = np.random.default_rng(9)
    cells, net = rng.normal(size=offsets(parents)[-1]), network(parents, order)
    codes, row = np.full((5, 1), MISSING, np.uint8), np.empty(N_CLASSES)
    work = kernels.new_workspace(net, N_CLASSES, 5, 300)
    n_factors = kernels.open_sample(codes, 0, cells, net, False, MISSING, work, row)
    assert kernels.eliminate_missing(cells, net, False, 0, n_factors, work, row) >= net.belief[-1]
    sample = [-1] * 5
    for v in order[::-1]:
        n_left = kernels.unite(v, net, work)
        work.digit[:n_left] = [sample[j] for j in work.union[:n_left]]
        found = []
        for value in range(N_STATES[v]):
            kernels.join(v, value, cells, net, work)
            found.append(work.joint.copy())
            factor = work.head[v]
            if factor >= 0 and work.following[factor] < 0:  # besides it, there is what factors of v alone add up to
                cell = kernels.cell_of(factor, value, work)
                values = (work.space if work.in_space[factor] else cells)[cell : cell + N_CLASSES]
                alone = work.space[net.belief[v] + value * N_CLASSES :][:N_CLASSES]
                np.testing.assert_allclose(values + alone, work.joint, rtol=1e-12)
        expected = []
        for value in range(N_STATES[v]):
            sample[v] = value
            expected.append(naive.log_joint(sample, cells, parents, N_STATES, N_CLASSES))
        np.testing.assert_allclose(np.array(found) - found[0], np.array(expected) - expected[0], rtol=1e-10, atol=1e-12)
        sample[v] = int(rng.integers(N_STATES[v]))


@pytest.mark.parametrize(("order", "limit"), [([0, 1, 2, 3, 4], 3), ([2, 0, 4, 1, 3], 3), ([0, 3, 1, 2, 4], 3)])
@pytest.mark.parametrize("parents", [WIDE_LOOP, [[-1, -1], [0, -1], [0, 1], [0, 2], [3, 0]]])
def test_what_would_be_too_large_is_taken_apart(parents, order, limit):
    rng = np.random.default_rng(7)
    cells = normalized_cells(parents, rng) + rng.normal(size=offsets(parents)[-1])
    X, codes = patterns(rng)
    scores, tables = np.empty((32, N_CLASSES)), (cells, network(parents, order))
    assert kernels.eliminate(codes, np.arange(32), *tables, False, MISSING, limit, 300, 300, scores) == 32
    found = [naive.log_joint_in_parts(sample, cells, parents, N_STATES, N_CLASSES, order, limit) for sample in X]
    np.testing.assert_allclose(scores, found, rtol=1e-12, atol=1e-12)
    exact = np.array([naive.log_joint(sample, cells, parents, N_STATES, N_CLASSES) for sample in X])
    is_exact = np.isclose(scores, exact).all(axis=1)
    assert is_exact[[pattern.bit_count() <= 3 for pattern in range(32)]].all()
    assert is_exact.all() == (order[0] != 0)  # which four others depend on


@pytest.mark.parametrize("capacity", [1, 9, 25, 60])
@pytest.mark.parametrize(("parents", "order"), CASES)
def test_taking_apart_takes_no_more_than_the_reserve(parents, order, capacity):
    rng = np.random.default_rng(4)
    cells = normalized_cells(parents, rng)
    widths = [[N_STATES[j] for j in (i, *row) if j >= 0] for i, row in enumerate(parents)]
    reserve = int(sum(np.prod(width) // min(width) * N_CLASSES for width in widths))
    _, codes = patterns(rng)
    scores, tables = np.full((32, N_CLASSES), np.nan), (cells, network(parents, order))
    capacity = MISSING, 5, capacity, reserve
    assert kernels.eliminate(codes, np.arange(32), *tables, False, *capacity, scores) == 32
    assert not np.isnan(scores).any()
    if capacity == 60:  # of a prior and five tables, this many numbers hold what any order leaves
        exact = np.empty((32, N_CLASSES))
        assert kernels.eliminate(codes, np.arange(32), *tables, False, MISSING, 5, 300, 0, exact) == 32
        assert np.isclose(scores, exact).all(axis=1).mean() > 0.9


@pytest.mark.parametrize(("max_width", "capacity"), [(3, 300), (5, 20)])
def test_samples_that_would_take_too_much_are_told(max_width, capacity):
    cells = normalized_cells(WIDE_LOOP, np.random.default_rng(4))
    codes = np.array([[0] * 5, [MISSING] * 5], dtype=np.uint8).T.copy()
    tables = cells, network(WIDE_LOOP, [0, 1, 2, 3, 4])
    scores, d_cells = np.empty((2, N_CLASSES)), np.zeros(len(cells))
    capacity = max_width, capacity
    assert kernels.eliminate(codes, np.arange(2), *tables, False, MISSING, *capacity, 0, scores) == 1
    assert kernels.eliminate_adjoint(codes, np.arange(2), *tables, False, MISSING, *capacity, scores, d_cells) == 1
    n_values = np.empty(2, np.int64)
    assert kernels.count_values(codes, np.arange(2), tables[1], N_CLASSES, False, MISSING, *capacity, n_values) == 1
