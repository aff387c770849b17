"""The most probable completion of every pattern of missing features, against the enumeration of all completions."""

import numpy as np
import pytest
from oracles import elimination as naive
from support.small_networks import CASES, MISSING, N_CLASSES, N_STATES, TREE, WIDE_LOOP, network, offsets, patterns

from tanlearn.kernels import completions


def complete(codes, samples, cells, parents, order, y, room=(5, 300)):
    """Return how many samples were done, and the completions."""
    completed = codes.copy()
    done = completions.most_probable(codes, samples, cells, network(parents, order), MISSING, *room, y, completed)
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


@pytest.mark.parametrize(("parents", "order"), CASES)
def test_drawn_completions_follow_the_posterior_of_every_class(parents, order):
    """Quantiles in place of random numbers: then the frequencies of 2 * 3 values are right to a few draws in 600."""
    rng = np.random.default_rng(1)
    cells = rng.normal(size=offsets(parents)[-1])
    n = 600
    sample = [-1, 2, 1, -1, 0]
    codes = np.tile(np.where(np.array(sample) < 0, MISSING, sample)[:, np.newaxis], n + 1).astype(np.uint8)
    uniform = np.full((n, 5), np.nan)  # what is there needs none
    uniform[:, 0], uniform[:, 3] = (np.arange(n) + 0.5) / n, rng.permutation(n) / n + 0.5 / n
    drawn = np.empty((5, n, N_CLASSES), np.uint8)
    arrays = codes, np.arange(1, n + 1), cells, network(parents, order), MISSING, 5, 300, uniform, drawn
    assert completions.sample_completions(*arrays) == n
    np.testing.assert_array_equal(drawn[[1, 2, 4]], np.array([2, 1, 0])[:, np.newaxis, np.newaxis] * np.ones((n, 2)))
    for c in range(N_CLASSES):
        expected = np.array(
            [
                [naive.log_joint([u, 2, 1, v, 0], cells, parents, N_STATES, N_CLASSES)[c] for v in range(2)]
                for u in range(2)
            ]
        )
        expected = np.exp(expected - naive.log_joint(sample, cells, parents, N_STATES, N_CLASSES)[c])
        found = np.array([[([u, v] == drawn[[0, 3], :, c].T).all(axis=1).mean() for v in range(2)] for u in range(2)])
        np.testing.assert_allclose(found, expected, atol=0.03)


def test_nothing_impossible_is_drawn_and_classes_that_cannot_be_get_the_first_values():
    cells = np.zeros(offsets(TREE)[-1])
    table = cells[N_CLASSES : N_CLASSES + N_STATES[0] * N_CLASSES].reshape(N_STATES[0], N_CLASSES)
    table[:] = [[-np.inf, -np.inf], [0.0, -np.inf]]  # feature 0 has its second value in class 0, and none in class 1
    drawn = np.empty((5, 2, N_CLASSES), np.uint8)
    codes = np.full((5, 2), MISSING, np.uint8)
    uniform = np.array([[0.0] * 5, [1 - 2**-53] * 5])
    arrays = codes, np.arange(2), cells, network(TREE, [4, 3, 2, 1, 0]), MISSING, 5, 300, uniform, drawn
    assert completions.sample_completions(*arrays) == 2
    assert drawn[0].tolist() == [[1, 0], [1, 0]]
    assert drawn[1:, 0, 0].tolist() == [0] * 4
    assert drawn[1:, 1, 0].tolist() == (N_STATES[1:] - 1).tolist()


def test_drawing_tells_samples_that_would_take_too_much():
    codes = np.full((5, 2), MISSING, np.uint8)
    codes[:, 0] = 0
    cells, drawn = np.zeros(offsets(WIDE_LOOP)[-1]), np.empty((5, 2, N_CLASSES), np.uint8)
    net = network(WIDE_LOOP, [0, 1, 2, 3, 4])
    arrays = codes, np.arange(2), cells, net, MISSING, 3, 300, np.zeros((2, 5)), drawn
    assert completions.sample_completions(*arrays) == 1
