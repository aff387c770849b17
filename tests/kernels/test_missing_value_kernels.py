"""Gaps of a forest, summed out component by component: every pattern, against enumeration, and extremes."""

import numpy as np
import pytest
from oracles import elimination as naive
from support.small_networks import MISSING, N_CLASSES, N_STATES, normalized_cells, offsets, patterns

from tanlearn.kernels import elimination as slow
from tanlearn.kernels import missing_values as kernels
from tanlearn.models.incomplete_rows import make_belief_scratch


@pytest.fixture(autouse=True)
def _logarithm_of_zero():
    """Without the compiler NumPy warns of it."""
    with np.errstate(divide="ignore"):
        yield


FORESTS = [[-1] * 5, [-1, 0, 1, 1, 0], [3, 0, 0, -1, 0], [1, -1, 1, 1, 1], [-1, 0, 1, 2, 3]]


def make(parent, cells, n_states=N_STATES, n_classes=N_CLASSES):
    """Return a forest and its scratch."""
    parent, n_states = np.array(parent), np.asarray(n_states)
    widths = n_states * np.where(parent >= 0, n_states[parent], 1) * n_classes
    offset = np.append(n_classes, n_classes + np.cumsum(widths))
    upward = np.empty(len(parent), np.intp)
    kernels.order_upward(parent, upward, np.empty(len(parent), np.intp))
    belief = np.append(0, np.cumsum(n_states)) * n_classes
    forest = kernels.Forest(parent, upward, n_states, offset[:-1], belief)
    return forest, make_belief_scratch(forest, n_classes, np.empty(len(cells)), is_known=False)


def score(sample, forest, cells, scratch, is_normalized, n_classes=N_CLASSES):
    """Return the log joint of a sample, and the families that its gaps touch."""
    row = np.empty((1, n_classes))
    with_zeros = np.append(cells, np.zeros(n_classes))
    codes = sample[:, np.newaxis].copy()
    arrays = forest.parent, forest.n_states, forest.offset, MISSING, np.empty(1, np.intp)
    kernels.score_observed(codes, with_zeros, *arrays, row)
    families = scratch.families[: kernels.find_incomplete_families(sample, forest, is_normalized, MISSING, scratch)]
    kernels.upward_pass(sample, families, forest, cells, MISSING, scratch, row[0])
    return row[0], families.copy()


def gradient(sample, families, forest, cells, scratch, d_row):
    """Return the gradient for the cells, behind a call of :func:`score`."""
    d_cells = np.zeros(len(cells) + len(d_row))
    arrays = forest.parent, forest.n_states, forest.offset, MISSING, np.empty(1, np.intp)
    kernels.score_observed_adjoint(sample[:, np.newaxis].copy(), d_row[np.newaxis], *arrays, d_cells)
    kernels.downward_pass(sample, families, forest, cells, MISSING, d_row, scratch, d_cells)
    return d_cells[: len(cells)]


def table_cells(parent, is_normalized, rng):
    """Return logarithms of tables, some of them impossible; or of numbers below one that do not sum to one."""
    cells = normalized_cells([[j, -1] for j in parent], rng)
    return cells if is_normalized else np.maximum(cells, -3.0) - np.abs(rng.normal(size=len(cells)))


@pytest.mark.parametrize("parent", FORESTS)
def test_children_come_before_parents(parent):
    upward, scratch = np.empty((2, 5), np.intp)
    kernels.order_upward(np.array(parent), upward, scratch)
    assert sorted(upward.tolist()) == [0, 1, 2, 3, 4]
    place = np.argsort(upward)
    assert all(j < 0 or place[i] < place[j] for i, j in enumerate(parent))


@pytest.mark.parametrize(("parent", "expected"), [(-1, [-1, 14, 12]), (0, [-1, -1, 14])])
def test_samples_that_miss_a_feature_or_its_parent_start_nowhere(parent, expected):
    codes = np.array([[1, 0, MISSING, 1], [0, MISSING, 2, 1]], np.uint8)
    start = np.empty(3, np.int32)
    kernels.observed_starts(codes, 1, 1, parent, np.array([2, 3]), 10 if parent < 0 else 8, 2, MISSING, -1, start)
    assert start.tolist() == expected


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("parent", FORESTS)
def test_the_score_is_the_sum_over_all_completions(parent, is_normalized):
    rng = np.random.default_rng(0)
    cells = table_cells(parent, is_normalized, rng)
    forest, scratch = make(parent, cells)
    parents = [[j, -1] for j in parent]
    X, codes = patterns(rng)
    for sample, x in zip(codes.T.copy(), X, strict=True):
        found, _ = score(sample, forest, cells, scratch, is_normalized)
        expected = naive.log_joint(x, cells, parents, N_STATES, N_CLASSES)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("parent", FORESTS)
def test_the_gradient_is_expected_indicators(parent):
    rng = np.random.default_rng(1)
    cells = table_cells(parent, False, rng)
    forest, scratch = make(parent, cells)
    parents = [[j, -1] for j in parent]
    X, codes = patterns(rng)
    for sample, x in zip(codes.T.copy(), X, strict=True):
        d_row = rng.normal(size=N_CLASSES)
        _, families = score(sample, forest, cells, scratch, False)
        found = gradient(sample, families, forest, cells, scratch, d_row)
        expected = naive.expected_counts(x, d_row, cells, parents, N_STATES, N_CLASSES)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("parent", FORESTS)
def test_the_gradient_is_that_of_differences(parent):
    rng = np.random.default_rng(2)
    cells = table_cells(parent, False, rng)
    forest, scratch = make(parent, cells)
    _, codes = patterns(rng)
    for sample in codes.T.copy():
        d_row, direction = rng.normal(size=N_CLASSES), rng.normal(size=len(cells))
        ends = []
        for step in (1e-6, -1e-6):
            scratch.is_known[:] = False
            ends.append(score(sample, forest, cells + step * direction, scratch, False)[0] @ d_row)
        scratch.is_known[:] = False
        _, families = score(sample, forest, cells, scratch, False)
        found = gradient(sample, families, forest, cells, scratch, d_row)
        assert found @ direction == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)


def test_observed_families_are_the_transpose_of_each_other():
    rng = np.random.default_rng(3)
    cells = table_cells(FORESTS[1], False, rng)
    forest, _ = make(FORESTS[1], cells)
    _, codes = patterns(rng)
    arrays = forest.parent, forest.n_states, forest.offset, MISSING, np.empty(32, np.intp)
    scores, d_scores = np.empty((32, N_CLASSES)), rng.normal(size=(32, N_CLASSES))
    d_cells = np.zeros(len(cells) + N_CLASSES)
    kernels.score_observed(codes, np.append(cells, np.zeros(N_CLASSES)), *arrays, scores)
    kernels.score_observed_adjoint(codes, d_scores, *arrays, d_cells)
    assert (scores * d_scores).sum() == pytest.approx(d_cells[: len(cells)] @ cells, rel=1e-12)


def test_impossible_samples_have_no_expected_completions():
    """They are -inf; what is observed is still there, and nothing is nan."""
    parent = [-1, 0, 1, 1, 0]
    cells = normalized_cells([[j, -1] for j in parent], np.random.default_rng(5))
    forest, scratch = make(parent, cells)
    for sample, n_observed in (([0, MISSING, 0, 1, 0], 3), ([MISSING, MISSING, 0, 1, 0], 1)):  # feature 2 is never 0
        codes = np.array(sample, np.uint8)
        row, families = score(codes, forest, cells, scratch, True)
        assert np.isneginf(row).all()
        found = gradient(codes, families, forest, cells, scratch, np.ones(N_CLASSES))
        assert found.sum() == n_observed * N_CLASSES  # the prior, and features 0 and 4 where they are there


def test_barren_families_get_nothing():
    cells = normalized_cells([[j, -1] for j in FORESTS[1]], np.random.default_rng(2))
    forest, scratch = make(FORESTS[1], cells)
    codes = np.array([0, MISSING, MISSING, 1, MISSING], np.uint8)
    _, families = score(codes, forest, cells, scratch, True)
    found = gradient(codes, families, forest, cells, scratch, np.ones(N_CLASSES))
    offset = offsets([[j, -1] for j in FORESTS[1]])
    weight = np.add.reduceat(found, np.append(0, offset[:-1]))
    np.testing.assert_allclose(weight, [2, 2, 2, 0, 2, 0])  # features 2 and 4 have nothing observed below


@pytest.mark.parametrize("low", [-3.0, -300.0, -650.0, -740.0, -2000.0])
def test_a_value_that_trails_by_far_may_win(low):
    """0 -> 1 -> many: children speak against the value of 1 that its parent wants, and sums of exponentials vanish."""
    rng = np.random.default_rng(4)
    parent = [-1, 0, *[1] * 4]
    n_states = np.full(6, 2)
    cells = np.full(2 + 4 + 5 * 8, -0.5)
    cells[6:] = np.where(rng.random(40) < 0.5, low, -1e-3) + rng.normal(size=40) / 100
    cells[6:14] = [-1e-3, low, -1e-3, low, low, -1e-3, low, -1e-3]
    parents = np.array([[j, -1] for j in parent])
    offset = np.append(2, 2 + np.cumsum([4, *[8] * 5]))
    network = slow.Network(
        parents, n_states, offset, np.arange(6)[::-1].copy(), np.arange(6)[::-1].copy(), np.arange(6), np.arange(7) * 4
    )
    forest, scratch = make(parent, cells, n_states, 2)
    for pattern in range(16):
        codes = np.array([MISSING, MISSING, *(pattern >> k & 1 for k in range(4))], np.uint8)
        column, first = codes[:, np.newaxis].copy(), np.array([0])
        expected, d_row, d_expected = np.empty((1, 2)), rng.normal(size=2), np.zeros(len(cells))
        slow.eliminate(column, first, cells, network, True, MISSING, 2, 4, 0, expected)
        slow.eliminate_adjoint(column, first, cells, network, True, MISSING, 2, 4, d_row[np.newaxis], d_expected)
        found, families = score(codes, forest, cells, scratch, True, 2)
        np.testing.assert_allclose(found, expected[0], rtol=1e-12)
        np.testing.assert_allclose(
            gradient(codes, families, forest, cells, scratch, d_row), d_expected, rtol=1e-9, atol=1e-12
        )


def test_events_are_scored_once_and_added_to_their_rows():
    rng = np.random.default_rng(6)
    cells = table_cells(FORESTS[1], True, rng)
    forest, scratch = make(FORESTS[1], cells)
    samples = np.array([[0, 1, 1, 1, 0], [1, MISSING, 1, 0, 2]], np.uint8)
    plan = samples, np.array([1]), np.array([0]), np.array([0, 3]), np.array([3, 2, 1])
    found, scores = np.empty((1, 2)), np.zeros((3, 2))
    kernels.score_events(forest, cells, *plan, MISSING, scratch, found)
    kernels.add_events(found, np.array([0, 2]), np.array([0, 0]), scores)
    row = np.zeros(2)
    kernels.upward_pass(samples[1], plan[-1], forest, cells, MISSING, scratch, row)
    np.testing.assert_array_equal(scores, [row, [0, 0], row])
    d_row, d_cells, expected = np.ones((1, 2)), np.zeros(len(cells)), np.zeros(len(cells))
    kernels.score_events_adjoint(forest, cells, *plan, MISSING, scratch, d_row, d_cells)
    kernels.downward_pass(samples[1], plan[-1], forest, cells, MISSING, d_row[0], scratch, expected)
    np.testing.assert_array_equal(d_cells, expected)
    assert d_cells.any()
