"""Tables of a hierarchical Dirichlet process, against dictionaries, and digamma against SciPy's."""

import numpy as np
import pytest
from oracles import back_off as naive
from scipy.special import digamma
from support.seen_contexts import N_CLASSES, N_STATES, columns_of, levels_of, random_rows, sort

from tanlearn.kernels import contexts
from tanlearn.kernels import dirichlet as kernels


@pytest.mark.parametrize("a", [1e-3, 0.3, 2.0, 7.9, 8.0, 500.0])
@pytest.mark.parametrize("n", [0.0, 0.01, 1.0, 2.5, 9.0, 1e6])
def test_rise_of_digamma(a, n):
    assert kernels.digamma_rise(a, n) == pytest.approx(digamma(a + n) - digamma(a), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("parents", [[], [2, 0]])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rows_sit_at_expected_tables(parents, missing):
    X, codes, y = random_rows(0, 40, missing)
    _, columns, n_values = columns_of(codes, y, 3, parents)
    order, shared = sort(columns, n_values)
    values, counted = np.empty_like(columns), np.empty(len(order), np.int64)
    n = contexts.sum_equal(columns, order, shared, np.ones(len(order), np.int64), values, counted)
    levels, sizes = levels_of(values[:, :n].copy(), n_values, counted[:n])
    bounds = np.vstack([np.zeros((1, 3), np.intp), sizes])
    n_entries, k = sizes[-1, 2], len(parents)
    own = levels.entry_count[:n_entries].astype(float)
    for e in range(n_entries):
        if levels.above[e] >= 0:
            own[levels.above[e]] -= levels.entry_count[e]
    c = np.array([0.7, 2.0, 1.5])[: k + 1]
    p, counts, tables = np.full(n_entries, 1 / N_STATES[3]), np.empty(n_entries), np.empty(n_entries)
    totals = np.empty(sizes[-1, 1])
    for _ in range(3):
        sums = np.zeros((k + 1, 2))
        kernels.seat(levels, bounds, own, c, int(N_STATES[3]), p, counts, totals, tables, sums)
        kernels.predict(levels, bounds, c, int(N_STATES[3]), counts, totals, p)
    seen, expected = naive.restaurant(X.tolist(), y.tolist(), [1] * 40, 3, parents, N_STATES, N_CLASSES, c, 3)
    path = {0: ()}
    for context in range(sizes[-1, 0]):
        for child in range(levels.child_start[context], levels.child_start[context + 1]):
            path[child] = (*path[context], int(levels.digit[child]))
        for e in range(levels.entry_start[context], levels.entry_start[context + 1]):
            key = path[context], int(levels.entry_value[e]), int(levels.entry_class[e])
            assert counts[e] == pytest.approx(seen[key], rel=1e-9)
            assert p[e] == pytest.approx(expected[key], rel=1e-9)
    for level in range(k + 1):
        first, last = bounds[level : level + 2, 2]
        rise = digamma(totals[bounds[level, 1] : bounds[level + 1, 1]] + c[level]) - digamma(c[level])
        np.testing.assert_allclose(sums[level], [tables[first:last].sum(), rise.sum()], rtol=1e-9)
