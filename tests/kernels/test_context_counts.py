"""Distinct rows of families and their counts, against dictionaries."""

import numpy as np
import pytest
from support.seen_contexts import N_STATES, columns_of, random_rows, sort

from tanlearn.kernels import context_counts as kernels


@pytest.mark.parametrize("parents", [[], [2], [2, 0, 1]])
def test_columns_are_values_until_one_is_missing(parents):
    X, codes, y = random_rows()
    rows, columns, _ = columns_of(codes, y, 3, parents)
    expected = []
    for n, sample in enumerate(X):
        if sample[3] != -1:
            values = [sample[j] for j in parents]
            known = values.index(-1) if -1 in values else len(values)
            expected.append([n, *values[:known], *N_STATES[parents[known:]], sample[3], y[n]])
    np.testing.assert_array_equal(np.vstack([rows, columns]).T, expected)


@pytest.mark.parametrize("parents", [[], [2, 0, 1]])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_columns_are_sorted_and_equals_stay_in_order(parents, n):
    _, codes, y = random_rows(1, n)
    _, columns, n_values = columns_of(codes, y, 3, parents)
    order, shared = sort(columns, n_values)
    assert order.tolist() == sorted(range(columns.shape[1]), key=lambda q: (columns[:, q].tolist(), q))
    for place in range(1, len(order)):
        same = columns[:, order[place]] == columns[:, order[place - 1]]
        assert shared[place] == (len(same) if same.all() else same.argmin())


@pytest.mark.parametrize("real", [False, True])
def test_equal_columns_are_added_up(real):
    _, codes, y = random_rows(2, 80)
    _, columns, n_values = columns_of(codes, y, 3, [1, 0])
    rng = np.random.default_rng(3)
    weight = rng.random(columns.shape[1]) if real else rng.integers(1, 5, columns.shape[1])
    order, shared = sort(columns, n_values)
    values, counts = np.empty_like(columns), np.empty(len(weight), weight.dtype)
    n = kernels.sum_equal(columns, order, shared, weight, values, counts)
    expected = {}
    for column, w in zip(columns.T.tolist(), weight, strict=True):
        expected[tuple(column)] = expected.get(tuple(column), 0) + w
    assert list(map(tuple, values[:, :n].T.tolist())) == sorted(expected)
    np.testing.assert_allclose(counts[:n], [expected[key] for key in sorted(expected)], rtol=1e-15)
    assert n < len(weight)


def test_without_rows_there_are_no_columns():
    rows, columns = np.empty(0, np.intp), np.empty((3, 0), np.uint16)
    codes, nothing, n_values = np.empty((4, 0), np.uint8), np.empty(0, np.intp), np.array([4, 2, 3])
    assert kernels.family_columns(codes, nothing, 3, np.array([2]), N_STATES, 255, rows, columns) == 0
    kernels.sort_columns(columns, n_values, nothing, nothing.copy(), np.empty(6, np.intp))
    kernels.mark_shared(columns, nothing, np.empty(0, np.uint16))
    assert kernels.sum_equal(columns, nothing, np.empty(0, np.uint16), nothing, columns, nothing) == 0
