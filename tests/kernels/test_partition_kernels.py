"""Entropies of the class within groups against those of patterns."""

import numpy as np
import pytest
from oracles import wrapper as naive_wrapper

from tanlearn.kernels.partition import class_entropies


@pytest.mark.parametrize("seed", range(3))
def test_class_entropies_are_those_of_group_and_feature(seed):
    rng = np.random.default_rng(seed)
    n, n_states = 12, [2, 3, 1]
    X = np.stack([rng.integers(0, k, n) for k in n_states], axis=1)
    y, weight = rng.integers(0, 3, n), rng.integers(0, 3, n).astype(float)
    group = np.sort(rng.integers(0, 3, n))
    samples = rng.permutation(n)[:9]  # the others are left out
    start = np.append(np.flatnonzero(np.diff(group[:9], prepend=-1)), 9)
    features, entropy = np.array([2, 0, 1]), np.full(3, np.nan)
    counts, totals = np.zeros((3, 3)), np.zeros(3)
    codes = np.ascontiguousarray(X.T.astype(np.uint8))
    class_entropies(codes, samples, start, y, weight, 2 * weight.sum(), features, counts, totals, entropy)
    table = np.column_stack([X[samples], group[:9]])
    expected = [naive_wrapper.class_entropy(table, y[samples], weight[samples], [i, 3]) for i in features]
    np.testing.assert_allclose(entropy, np.array(expected) * weight[samples].sum() / (2 * weight.sum()), atol=1e-12)
    assert not counts.any()
    assert not totals.any()
