"""Probabilities of the entries of tries, by hand."""

import numpy as np
import pytest
from support.tries import draw_rows, grow

from tanlearn.kernels.context_smoothing import divide_by_above, smooth_entries


def test_entries_are_smoothed_by_those_above():
    above, run = np.array([-1, -1, 0, -2]), np.array([0, 1, 2, 3])
    p, unseen = np.empty(4), np.empty(4)
    counts, m = np.array([3, 0, 2, 1]), np.array([1.0, 1.0, 0.5, 2.0])
    smooth_entries(above, run, np.array([0.5, 0.25]), m, counts, p, unseen)
    np.testing.assert_allclose(p, [3.5 / 4, 0.5, (2 + 0.5 * 3.5 / 4) / 2.5, 1.5 / 3], rtol=1e-15)
    np.testing.assert_allclose(unseen, [1 / 4, 1, 0.5 / 2.5, 2 / 3], rtol=1e-15)
    ratio = np.empty(4)
    divide_by_above(p, above, ratio)
    np.testing.assert_allclose(ratio, [p[0], p[1], p[2] / p[0], p[3]], rtol=1e-15)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("is_full", [False, True])
def test_probabilities_of_a_context_sum_to_one_over_seen_and_unseen_values(seed, is_full):
    codes, n_states, y, n_classes, weights, child, parents = draw_rows(seed)
    grown = grow(codes, n_states, y, n_classes, weights, child, parents, 2, is_full)
    p, unseen = grown.smooth(np.linspace(0.5, 2, parents.shape[1] + 1), n_states[child])
    trie, of_entry = grown.trie, {}
    for (f, context, value, c), e in grown.entries().items():
        of_entry.setdefault((f, context, c), {})[value] = p[e]
    of_run = {key: grown.run[e] for key, e in grown.entries().items()}
    for (f, context, c), own in of_entry.items():
        n_values, above = n_states[child[f]], of_entry.get((f, context[:-1], c))
        if context == ():
            missed, r = 1 - len(own) / n_values, trie.class_start[grown.root[f]] + c
        else:
            (r,) = {of_run[f, context, value, c] for value in own}
            missed = 1 - sum(above[value] for value in own)
        np.testing.assert_allclose(sum(own.values()) + missed * unseen[r], 1)
