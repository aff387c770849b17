"""Gains of interactions against loops over rows, and exact sums against ``math.fsum``."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tanlearn.kernels.interaction_gains import (
    PARTIALS,
    add_to_cells,
    gain_of_scores,
    sum_by_partials,
    sum_exactly,
    write_gains,
)

NUMBERS = st.lists(st.floats(-1e15, 1e15) | st.sampled_from([0.0, 2.0**-60, -(2.0**-53), 1.0, 2.0**53, -1e300, 1e300]))
SMOOTHING = 4.0


@given(NUMBERS)
@example([1.0, 2.0**-53])  # ties, of which the last one has a rest above and below
@example([1.0, 2.0**-53, 2.0**-110])
@example([1.0, 2.0**-53, -(2.0**-110)])
@example([-1.0, -(2.0**-53), -(2.0**-110)])
@example([1e300, 1.0, -1e300])
@example([])
def test_sums_are_exactly_rounded(numbers):
    for function in (sum_exactly, sum_by_partials):
        assert function(np.array(numbers, np.float64), np.empty(PARTIALS)) == math.fsum(numbers)


def loop_over_cells(codes, n_groups, rows, features):
    """Sums of the rows of each cell, as a dictionary with tuples of codes as keys."""
    cells = {}
    for r, own in enumerate(rows.tolist()):
        key = tuple(int(codes[i, r]) for i in features)
        if all(value < n_groups[i] for i, value in zip(features, key, strict=True)):
            before = cells.setdefault(key, [0.0] * len(own))
            cells[key] = [a + b for a, b in zip(before, own, strict=True)]
    return cells


def gain_of_cell(g, h):
    return (g * g - h) / (h + SMOOTHING)


def loop_gain(codes, n_groups, rows, features, is_scored, scores):
    """Return the gain of a family from its cells, in Python."""
    cells, n_classes = loop_over_cells(codes, n_groups, rows, features), rows.shape[1] // 2
    gain = math.fsum(gain_of_cell(own[c], own[n_classes + c]) for own in cells.values() for c in range(n_classes))
    if len(features) > 2:
        return gain
    products = {key: math.prod(scores[i, v] for i, v in zip(features, key, strict=True)) for key in cells}
    of_classes = []
    for c in range(n_classes):
        g = math.fsum(own[c] * products[key] for key, own in cells.items())
        h = math.fsum(own[n_classes + c] * products[key] ** 2 for key, own in cells.items())
        of_classes.append(gain_of_cell(g, h))
    return max(gain, math.fsum(of_classes) if all(is_scored[i] for i in features) else 0.0)


@pytest.mark.parametrize("families", [[[0, 1], [2, 0], [3, 2], [1, 3]], [[0, 1, 2], [3, 1, 0]]])
@pytest.mark.parametrize("n_classes", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_gains_equal_loops_over_rows(families, n_classes, dtype):
    rng = np.random.default_rng(len(families) + n_classes)
    n_groups = np.array([2, 5, 3, 4])
    codes = rng.integers(0, n_groups[:, np.newaxis] + 1, (4, 60)).astype(dtype)  # the last code is missing
    rows = np.hstack([rng.normal(size=(60, n_classes)), rng.random((60, n_classes))])
    is_scored, scores = np.array([True, False, True, True]), rng.normal(size=(4, 5))
    most = 5 ** len(families[0])
    cells, is_found = np.zeros((most, 2 * n_classes)), np.zeros(most, np.bool_)
    scratch = cells, is_found, np.empty(most, np.intp), np.empty(cells.size), np.empty(PARTIALS)
    gains = np.empty(len(families))
    write_gains(codes, n_groups, rows, np.array(families), is_scored, scores, SMOOTHING, *scratch, gains)
    expected = [loop_gain(codes, n_groups, rows, features, is_scored, scores) for features in families]
    np.testing.assert_array_equal(gains, expected)
    assert not cells.any()
    assert not is_found.any()


def test_rows_are_added_to_their_cells():
    codes, n_groups = np.array([[0, 1, 2, 1], [1, 0, 0, 0]], np.uint8), np.array([2, 2])
    rows = np.arange(8.0).reshape(4, 2)
    cells, is_found, found = np.zeros((4, 2)), np.zeros(4, np.bool_), np.empty(4, np.intp)
    assert add_to_cells(codes, n_groups, rows, np.array([0, 1]), cells, is_found, found) == 2
    assert found[:2].tolist() == [1, 2]  # the third row has a missing value
    np.testing.assert_array_equal(cells, [[0, 0], [0, 1], [8, 10], [0, 0]])
    of_scores = np.array([-1.0, 1.0])
    scratch = np.empty(8), np.empty(PARTIALS)
    gain = gain_of_scores(of_scores, of_scores, 2, found[:2], cells, SMOOTHING, *scratch)
    assert gain == gain_of_cell(-8.0, 11.0)
