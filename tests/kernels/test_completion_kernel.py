"""The most probable completion of every pattern of missing features, against the enumeration of all completions."""

import naive_elimination as naive
import numpy as np
import pytest
from small_networks import CASES, MISSING, N_CLASSES, N_STATES, TREE, WIDE_LOOP, network, offsets, patterns

from tanlearn.kernels import elimination


def complete(codes, samples, cells, parents, order, y, room=(5, 300)):
    """Return how many samples were done, and the completions."""
    completed = codes.copy()
    done = elimination.most_probable(codes, samples, cells, network(parents, order), MISSING, *room, y, completed)
    return done, completed


@pytest.mark.parametrize("given", [None, 0, 1])
@pytest.mark.parametrize(("parents", "order"), CASES)
def test_completions_are_the_most_probable_of_all(parents, order, given):
    rng = np.random.default_rng(0)
    cells = rng.normal(scale=3, size=offsets(parents)[-1])  # normalised or not: nothing may be left out
    cells[N_CLASSES:][rng.random(len(cells) - N_CLASSES) < 0.1] = -np.inf
    X, codes = patterns(rng)
    y = np.full(32, -1 if given is None else given)
    done, completed = complete(codes, np.arange(32), cells, parents, order, y)
    assert done == 32
    possible = 0
    for n, sample in enumerate(X):
        best, c, score = naive.most_probable(sample, cells, parents, N_STATES, N_CLASSES, given)
        if score > -np.inf:  # random numbers are no ties
            assert (completed[:, n].tolist(), y[n]) == (best, c)
            possible += 1
        np.testing.assert_array_equal(completed[sample >= 0, n], sample[sample >= 0])
        assert (completed[:, n] < N_STATES).all()
    assert possible > 16


@pytest.mark.parametrize(("parents", "order"), CASES)
def test_ties_go_to_the_first_class_and_the_first_values(parents, order):
    for level in (0.0, -np.inf):
        cells = np.full(offsets(parents)[-1], level)
        y = np.full(1, -1)
        codes = np.full((5, 1), MISSING, np.uint8)
        assert complete(codes, np.array([0]), cells, parents, order, y)[1].tolist() == [[0]] * 5
        assert y.tolist() == [0]


def test_only_the_samples_asked_for_are_done():
    codes = np.full((5, 3), MISSING, np.uint8)
    y = np.full(3, -1)
    cells = np.zeros(offsets(TREE)[-1])
    done, completed = complete(codes, np.array([2]), cells, TREE, [4, 3, 2, 1, 0], y)
    assert done == 1
    assert completed.tolist() == [[MISSING, MISSING, 0]] * 5
    assert y.tolist() == [-1, -1, 0]


@pytest.mark.parametrize(("max_width", "capacity"), [(3, 300), (5, 20), (5, 0)])
def test_samples_that_would_take_too_much_are_told(max_width, capacity):
    codes = np.array([[0] * 5, [MISSING] * 5], dtype=np.uint8).T.copy()
    cells, y = np.zeros(offsets(WIDE_LOOP)[-1]), np.full(2, -1)
    done, completed = complete(codes, np.arange(2), cells, WIDE_LOOP, range(5), y, (max_width, capacity))
    assert done == 1
    np.testing.assert_array_equal(completed, codes)
