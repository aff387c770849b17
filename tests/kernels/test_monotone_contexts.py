"""Smoothed probabilities with rising odds, against isotonic regression by its formula."""

import numpy as np
import pytest
from oracles import context_tries as oracle

from tanlearn.kernels.monotone_contexts import smooth_rising


def smooth(above, m, n_ranked, is_falling, counts):
    """Return probabilities and odds of contexts."""
    n_values = counts.shape[1]
    p, odds = np.empty(counts.shape), np.empty(counts.shape[:2])
    scratch = np.empty((n_values, 2)), np.empty(n_values, np.intp)
    smooth_rising(above, m, n_ranked, is_falling, counts.copy(), *scratch, p, odds)
    return p, odds


def test_violators_are_pooled_by_hand():
    counts = np.array([[[3.0, 0.0], [1.0, 1.0], [3.0, 0.0], [0.0, 4.0]]])  # odds 1/4, 2/2, 1/4, 5/1 with m / 4 = 1
    p, odds = smooth(np.array([-1]), 4.0, 4, False, counts)
    np.testing.assert_allclose(odds[0], [1 / 4, 3 / 6, 3 / 6, 5])
    np.testing.assert_allclose(
        p[0], [[4 / 11, 1 / 9], [4 * (6 / 9) / 11, 4 / 27], [5 * (6 / 9) / 11, 5 / 27], [1 / 11, 5 / 9]]
    )


@pytest.mark.parametrize("seed", range(12))
def test_contexts_are_smoothed_by_those_above(seed):
    rng = np.random.default_rng(seed)
    n_values, n_ranked, m, is_falling = 5, int(rng.integers(1, 6)), float(rng.uniform(0.1, 3)), seed % 2 == 1
    above = np.array([-1, 0, 0, 1, 2, 2])
    counts = rng.integers(0, 6, (6, n_values, 2)) * rng.choice([1.0, 0.5], (6, 1, 1))
    p, odds = smooth(above, m, n_ranked, is_falling, counts)
    order = [*np.arange(n_ranked)[:: -1 if is_falling else 1].tolist(), *range(n_ranked, n_values)]
    for g, parent in enumerate(above.tolist()):
        own = counts[g] + m * (p[parent] if parent >= 0 else 1 / n_values)
        expected = np.array(oracle.rising_probabilities(own[order].tolist(), n_ranked))
        np.testing.assert_allclose(p[g][order], expected, rtol=1e-12)
        np.testing.assert_allclose(p[g].sum(axis=0), 1, rtol=1e-12)
        totals = own.sum(axis=0)
        np.testing.assert_allclose(odds[g] * totals[0] / totals[1], p[g, :, 1] / p[g, :, 0], rtol=1e-12)
        assert (np.diff(odds[g][order][:n_ranked]) >= -1e-15 * odds[g].max()).all()
