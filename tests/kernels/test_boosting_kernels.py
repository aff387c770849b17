"""Kernels of boosted terms against loops over rows, cells and values."""

import math

import numpy as np
import pytest

from tanlearn.kernels.boosting import (
    add_cell_rows,
    add_terms,
    add_value_rows,
    best_split,
    find_splits,
    split_cells,
    sum_squares,
    take_codes,
    value_ratios,
    write_residuals,
)

RIDGE = 0.5
N_STATES = np.array([2, 5, 1, 4])

every_dtype = pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
every_number = pytest.mark.parametrize("n_outputs", [1, 3])


def draw_codes(rng, dtype, n=50):
    """Return codes of four features; a sixth of the values are missing, with the largest code of the dtype."""
    codes = rng.integers(0, N_STATES[:, np.newaxis], (4, n))
    return np.where(rng.random((4, n)) < 1 / 6, np.iinfo(dtype).max, codes).astype(dtype)


def draw_rows(rng, n_outputs, n=50):
    """Return residuals and positive variances, multiples of 1/8: their sums are exact in any order."""
    g, h = rng.integers(-8, 9, (n, n_outputs)) / 8, rng.integers(1, 9, (n, n_outputs)) / 8
    return np.hstack([g, h])


def loop_sums(codes, n_values, cells, n_cells, selected, rows):
    """Return the sums of selected rows by cell and value, [cell][value][column]."""
    sums = [[[0.0] * len(rows[0]) for _ in range(n_values)] for _ in range(n_cells)]
    for k, r in enumerate(selected):
        if cells[k] >= 0 and codes[r] < n_values:
            for c, value in enumerate(rows[k]):
                sums[cells[k]][codes[r]][c] += value
    return sums


@every_number
def test_residuals_are_indicators_minus_probabilities(n_outputs):
    n_classes = n_outputs + (n_outputs == 1)
    rng = np.random.default_rng(n_outputs)
    scores, y, weights = rng.normal(0, 3, (200, n_classes)), rng.integers(0, n_classes, 200), rng.random(200)
    scores[7] = 1000.0 * (np.arange(n_classes) == y[7])  # certain
    selected = np.append(rng.permutation(200)[:150], 7)  # more than two blocks of samples
    rows = np.empty((151, 2 * n_outputs))
    write_residuals(scores, y, weights, selected, 1e-6, rows)
    for k, r in enumerate(selected):
        exponentials = [math.exp(one - max(scores[r])) for one in scores[r]]
        p = [one / sum(exponentials) for one in exponentials][-n_outputs:]
        own = [float(y[r] == c) for c in range(n_classes)][-n_outputs:]
        g = [weights[r] * (one - p_one) for one, p_one in zip(own, p, strict=True)]
        h = [weights[r] * max(p_one * (1 - p_one), 1e-6) for p_one in p]
        np.testing.assert_allclose(rows[k], g + h, rtol=1e-12, atol=1e-15)


@every_number
def test_squares_of_residuals_are_added(n_outputs):
    rows, sums = draw_rows(np.random.default_rng(n_outputs), n_outputs), np.full(n_outputs, np.nan)
    sum_squares(rows, n_outputs, 0.25, sums)
    assert sums.tolist() == [0.25 + sum(row[c] ** 2 for row in rows.tolist()) for c in range(n_outputs)]


def score(members, n_outputs):
    """Return the sum of g^2 / (h + ridge) over outputs, of the sum of some rows."""
    totals = [sum(column) for column in zip(*members, strict=True)]
    return sum(totals[c] ** 2 / (totals[n_outputs + c] + RIDGE) for c in range(n_outputs)) if members else 0.0


def loop_gains(sums, order, n_outputs):
    """Return the gain of each beginning of the order from its two sides in every cell."""
    gains = []
    for length in range(1, len(order)):
        gain = 0.0
        for of_cell in sums:
            first, second = [of_cell[v] for v in order[:length]], [of_cell[v] for v in order[length:]]
            gain += score(first, n_outputs) + score(second, n_outputs) - score(first + second, n_outputs)
        gains.append(gain)
    return gains


@every_dtype
@every_number
def test_rows_are_added_to_their_cell_and_value(dtype, n_outputs):
    rng = np.random.default_rng(n_outputs)
    codes, selected = draw_codes(rng, dtype), rng.permutation(50)[:35]
    rows, cells = draw_rows(rng, n_outputs, 35), rng.integers(-1, 4, 35)
    for i, n_values in enumerate(N_STATES.tolist()):
        sums = np.ones((4, n_values, 2 * n_outputs))
        add_value_rows(codes[i][selected], cells, rows, sums)
        expected = loop_sums(codes[i].tolist(), n_values, cells.tolist(), 4, selected.tolist(), rows.tolist())
        np.testing.assert_array_equal(sums - 1, expected)


@pytest.mark.parametrize("n_cells", [1, 2, 4])
@every_number
def test_the_best_beginning_of_an_order_has_the_largest_gain(n_cells, n_outputs):
    rng = np.random.default_rng(n_cells + 10 * n_outputs)
    scratch = np.full((2, 4, 2 * n_outputs), np.nan)
    for n_values in (2, 3, 6):
        sums = draw_rows(rng, n_outputs, n_cells * n_values).reshape(n_cells, n_values, -1)
        order = rng.permutation(n_values)
        gain, length = best_split(sums, np.append(order, 9), RIDGE, *scratch)  # more entries than values
        expected = loop_gains(sums.tolist(), order.tolist(), n_outputs)
        assert length == 1 + int(np.argmax(expected))
        assert gain == pytest.approx(max(expected), rel=1e-12)


def test_of_equal_gains_the_shortest_beginning_is_returned():
    sums = np.array([[[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [-1.0, 1.0]]])  # values 1 and 2 are on either side
    scratch = np.empty((2, 1, 2))
    gain, length = best_split(sums, np.arange(4), RIDGE, *scratch)
    assert length == 1
    assert gain == 2 / 1.5
    assert best_split(sums, np.array([1, 3, 0, 2]), RIDGE, *scratch) == (2 / 1.5, 2)


def test_a_single_value_has_no_split():
    assert best_split(np.ones((2, 1, 2)), np.arange(1), RIDGE, *np.empty((2, 2, 2))) == (-1.0, 0)


def test_a_split_without_a_gain_is_found_with_a_gain_of_zero():
    sums = np.zeros((1, 3, 2))
    assert best_split(sums, np.arange(3), RIDGE, *np.empty((2, 1, 2))) == (0.0, 1)


@every_dtype
@every_number
@pytest.mark.parametrize("n_cells", [1, 4])
def test_all_features_are_split_by_the_rows_that_have_their_value(dtype, n_outputs, n_cells):
    rng = np.random.default_rng(n_cells)
    codes, selected = draw_codes(rng, dtype), np.sort(rng.permutation(50)[:40])
    rows, cells = draw_rows(rng, n_outputs, 40), rng.integers(-1, n_cells, 40)
    features = np.array([3, 0, 2, 1])
    orders, order_of = np.array([np.append(rng.permutation(n), np.arange(n, 5)) for n in N_STATES])[::-1], [3, 2, 1, 0]
    scratch = np.full(n_cells * 5 * 2 * n_outputs, np.nan), *np.full((2, 4, 2 * n_outputs), np.nan)
    gains, lengths, own_codes = np.empty(4), np.empty(4, np.intp), np.empty((4, 40), dtype)
    take_codes(codes, features, selected, own_codes)
    where = own_codes, N_STATES[features], orders[order_of][features], cells, n_cells, rows
    find_splits(*where, RIDGE, *scratch, gains, lengths)
    for j, i in enumerate(features.tolist()):
        n_values = int(N_STATES[i])
        of_values = loop_sums(codes[i].tolist(), n_values, cells.tolist(), n_cells, selected.tolist(), rows.tolist())
        expected = loop_gains(of_values, orders[3 - i, :n_values].tolist(), n_outputs)
        assert gains[j] == pytest.approx(max(expected, default=-1.0), rel=1e-12)
        assert lengths[j] == (1 + int(np.argmax(expected)) if expected else 0)


@every_dtype
@every_number
def test_ratios_of_values_are_those_of_the_class_with_the_largest_gain(dtype, n_outputs):
    rng = np.random.default_rng(n_outputs)
    codes, features, selected = draw_codes(rng, dtype), np.array([3, 1]), np.sort(rng.permutation(50)[:40])
    rows, n_values = draw_rows(rng, n_outputs, 40), N_STATES[features]
    ratios, scratch = np.full(n_values.sum(), np.nan), np.full(5 * 2 * n_outputs, np.nan)
    value_ratios(codes, features, n_values, selected, rows, RIDGE, scratch, ratios)
    expected = []
    for i in features.tolist():
        one_cell = loop_sums(codes[i].tolist(), int(N_STATES[i]), [0] * 40, 1, selected.tolist(), rows.tolist())
        of_values = np.asarray(one_cell)[0]
        g, h = of_values[:, :n_outputs], of_values[:, n_outputs:] + RIDGE
        chosen = max(range(n_outputs), key=lambda c: sum(g[:, c] ** 2 / h[:, c]))
        expected += (g[:, chosen] / h[:, chosen]).tolist()
    np.testing.assert_array_equal(ratios, expected)


@every_dtype
def test_cells_are_split_and_rows_with_missing_values_leave_them(dtype):
    rng = np.random.default_rng(0)
    codes, cells, selected = draw_codes(rng, dtype), np.zeros(40, np.intp), rng.permutation(50)[:40]
    sides = [rng.integers(0, 2, n).astype(np.uint8) for n in N_STATES]
    chosen = [1, 3, 1]
    for level, i in enumerate(chosen):
        split_cells(codes[i][selected], sides[i], level, cells)
    for k, r in enumerate(selected):
        values = [int(codes[i, r]) for i in chosen]
        expected = -1
        if all(value < N_STATES[i] for i, value in zip(chosen, values, strict=True)):
            expected = sum(2**s * int(sides[i][v]) for s, (i, v) in enumerate(zip(chosen, values, strict=True)))
        assert cells[k] == expected
    assert -1 in cells


@every_number
def test_rows_are_added_to_their_cells(n_outputs):
    rng = np.random.default_rng(n_outputs)
    rows, cells = draw_rows(rng, n_outputs), rng.integers(-1, 3, 50)
    sums = np.ones((3, 2 * n_outputs))
    add_cell_rows(cells, rows, sums)
    expected = np.ones((3, 2 * n_outputs))
    for r in range(50):
        for c in range(2 * n_outputs):
            if cells[r] != -1:
                expected[cells[r], c] += rows[r, c]
    np.testing.assert_array_equal(sums, expected)


#: Terms with two, one, no and three splits; the last one has a feature twice.
FEATURES = np.array([[1, 3, -1], [0, -1, -1], [-1, -1, -1], [1, 1, 3]])


def draw_terms(rng, n_classes):
    """Return the arrays of terms; one cell in four has no weight."""
    sizes = np.where(FEATURES >= 0, N_STATES[FEATURES], 0)
    starts = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
    sides = rng.integers(0, 2, sizes.sum()).astype(np.uint8)
    weights = rng.integers(1, 4, (4, 8)) * (rng.random((4, 8)) < 0.75)
    return N_STATES, FEATURES, starts, sides, weights.astype(float), rng.normal(size=(4, 8, n_classes))


def loop_value(t, row, terms):
    """Return the value of a term for a row: the weighted mean over the cells that agree with its values."""
    n_states, features, starts, sides, weights, values = terms
    used = [(s, int(i)) for s, i in enumerate(features[t]) if i >= 0]
    agreeing = [
        cell
        for cell in range(2 ** len(used))
        if all(row[i] >= n_states[i] or sides[starts[t, s] + row[i]] == cell // 2**s % 2 for s, i in used)
    ]
    if len(agreeing) == 1:
        return values[t, agreeing[0]]
    total = sum(weights[t, cell] for cell in agreeing)
    if total == 0:
        return np.zeros(values.shape[2])
    return sum(weights[t, cell] * values[t, cell] for cell in agreeing) / total


@every_dtype
@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_of_terms_are_added_to_the_scores(dtype, n_classes):
    rng = np.random.default_rng(n_classes)
    codes, terms = draw_codes(rng, dtype), draw_terms(rng, n_classes)
    terms[4][0, :4] = 0  # a term that no training row determines
    before = rng.normal(size=(30, n_classes))
    scores = before.copy()
    add_terms(codes, 15, *terms, scores)
    for r in range(30):
        row = codes[:, 15 + r].astype(int).tolist()
        expected = before[r] + sum(loop_value(t, row, terms) for t in range(4))
        np.testing.assert_allclose(scores[r], expected, rtol=1e-12, atol=1e-14)


def test_missing_values_without_training_rows_add_nothing():
    rng = np.random.default_rng(0)
    *terms, weights, values = draw_terms(rng, 2)
    scores = np.zeros((1, 2))
    add_terms(np.full((4, 1), 255, np.uint8), 0, *terms, np.zeros_like(weights), values, scores)
    np.testing.assert_array_equal(scores[0], values[2, 0])  # the term without splits has no missing value


def test_no_terms_add_nothing():
    scores = np.ones((3, 2))
    empty = np.empty((0, 1), np.intp)
    terms = N_STATES, empty, empty, np.empty(0, np.uint8), np.empty((0, 2)), np.empty((0, 2, 2))
    add_terms(np.zeros((4, 3), np.uint8), 0, *terms, scores)
    np.testing.assert_array_equal(scores, 1)
