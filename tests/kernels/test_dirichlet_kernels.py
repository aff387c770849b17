"""Tables of a hierarchical Dirichlet process, against dictionaries, and digamma against SciPy's."""

import numpy as np
import pytest
from oracles import back_off as naive
from scipy.special import digamma
from support.seen_contexts import N_CLASSES, N_STATES, columns_of, random_rows, trie_of

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
    grown, k = trie_of(columns, n_values), len(parents)
    trie, n_entries = grown.trie, len(grown.counts)
    own = grown.counts.astype(float)
    below = np.flatnonzero(grown.above >= 0)
    np.subtract.at(own, grown.above[below], grown.counts[below])
    start = np.searchsorted(grown.level, np.arange(k + 2))
    bounds = np.stack([trie.class_start[start], trie.entry_start[trie.value_start[start]]], axis=1)
    c = np.array([0.7, 2.0, 1.5])[: k + 1]
    p, counts, tables = np.full(n_entries, 1 / N_STATES[3]), np.empty(n_entries), np.empty(n_entries)
    totals = np.empty(len(trie.classes))
    for _ in range(3):
        sums = np.zeros((k + 1, 2))
        kernels.seat(bounds, grown.above, grown.run, own, c, int(N_STATES[3]), p, counts, totals, tables, sums)
        p, _ = grown.smooth(c, N_STATES[[3]], counts)
    seen, expected = naive.restaurant(X.tolist(), y.tolist(), [1] * 40, 3, parents, N_STATES, N_CLASSES, c, 3)
    for (_, *key), e in grown.entries().items():
        assert counts[e] == pytest.approx(seen[tuple(key)], rel=1e-9)
        assert p[e] == pytest.approx(expected[tuple(key)], rel=1e-9)
    for level in range(k + 1):
        first, last = bounds[level : level + 2, 1]
        rise = digamma(totals[bounds[level, 0] : bounds[level + 1, 0]] + c[level]) - digamma(c[level])
        np.testing.assert_allclose(sums[level], [tables[first:last].sum(), rise.sum()], rtol=1e-9)
