"""Families counted over seen contexts, against dictionaries."""

import numpy as np
import pytest
from support.seen_contexts import N_STATES, columns_of, levels_of, random_rows, sort

from tanlearn.kernels import contexts as kernels


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


@pytest.mark.parametrize("parents", [[], [2], [2, 0, 1]])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_levels_have_the_counts_of_all_contexts(parents, missing):
    X, codes, y = random_rows(4, 60, missing)
    _, columns, n_values = columns_of(codes, y, 3, parents)
    order, shared = sort(columns, n_values)
    values, counts = np.empty_like(columns), np.empty(len(order), np.int64)
    n = kernels.sum_equal(columns, order, shared, np.ones(len(order), np.int64), values, counts)
    levels, sizes = levels_of(values[:, :n].copy(), n_values, counts[:n])
    path, first = {0: ()}, 0
    found = {}
    for level, last in enumerate(sizes[:, 0]):
        for c in range(first, last):
            for q in range(levels.entry_start[c], levels.entry_start[c + 1]):
                key = path[c], int(levels.entry_value[q]), int(levels.entry_class[q])
                found[key] = int(levels.entry_count[q])
                r = levels.run[q]
                assert levels.class_start[c] <= r < levels.class_start[c + 1]
                assert levels.class_id[r] == key[2]
                if level == 0:
                    assert levels.above[q] == -1
                else:
                    above = levels.above[q]
                    assert (levels.entry_value[above], levels.entry_class[above]) == key[1:]
                    parent = np.searchsorted(levels.entry_start[:last], above, side="right") - 1
                    assert path[parent] == path[c][:-1]
            for child in range(levels.child_start[c], levels.child_start[c + 1]):
                path[child] = (*path[c], int(levels.digit[child]))
            keys = [(levels.entry_value[q], levels.entry_class[q]) for q in range(*levels.entry_start[c : c + 2])]
            assert keys == sorted(set(keys))
        first = last
    expected = {}
    for sample, label in zip(X.tolist(), y.tolist(), strict=True):
        context = []
        for j in [None, *parents]:
            if sample[3] == -1 or (j is not None and sample[j] == -1):
                break
            context += [] if j is None else [sample[j]]
            key = tuple(context), sample[3], label
            expected[key] = expected.get(key, 0) + 1
    assert found == expected
    totals = {}
    for (context, _, label), count in expected.items():
        totals[context, label] = totals.get((context, label), 0) + count
    assert sizes[-1].tolist() == [len(path), len(totals), len(expected)]
    assert {
        (path[c], int(levels.class_id[r])): int(levels.class_total[r])
        for c in path
        for r in range(levels.class_start[c], levels.class_start[c + 1])
    } == totals
    digits = [levels.digit[levels.child_start[c] : levels.child_start[c + 1]].tolist() for c in path]
    assert all(row == sorted(set(row)) for row in digits)


def test_without_rows_there_is_the_empty_context():
    rows, columns = np.empty(0, np.intp), np.empty((3, 0), np.uint16)
    codes, nothing, n_values = np.empty((4, 0), np.uint8), np.empty(0, np.intp), np.array([4, 2, 3])
    assert kernels.family_columns(codes, nothing, 3, np.array([2]), N_STATES, 255, rows, columns) == 0
    shared = np.empty(0, np.uint16)
    kernels.sort_columns(columns, n_values, nothing, nothing.copy(), np.empty(6, np.intp))
    kernels.mark_shared(columns, nothing, shared)
    scratch = kernels.Scratch(*np.zeros((7, 6), np.intp))
    levels = kernels.Levels(*np.full((11, 3), -9))
    sizes = np.empty((2, 3), np.intp)
    kernels.build_levels(columns, shared, nothing, n_values, scratch, levels, sizes)
    assert sizes.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert levels.child_start[:2].tolist() == [1, 1]
