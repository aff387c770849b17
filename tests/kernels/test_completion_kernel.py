"""The most probable completion of every pattern of missing features, against the enumeration of all completions."""

import naive_elimination as naive
import numpy as np
import pytest

from tanlearn.kernels import completion
from tanlearn.kernels.elimination import Network

N_STATES = np.array([2, 3, 2, 2, 3])
N_CLASSES = 2
MISSING = 255
SAMPLES = np.arange(32)
NONE = [[-1, -1]] * 5
TREE = [[-1, -1], [0, -1], [1, -1], [1, -1], [0, -1]]
CHAIN_OF_TWO = [[-1, -1], [0, -1], [1, 0], [2, 1], [3, 2]]
#: Two parents that are not joined, and a loop: in some orders, eliminating a feature leaves a factor of three.
LOOP = [[-1, -1], [-1, -1], [0, 1], [1, 0], [2, 3]]
CASES = [
    pytest.param(NONE, [0, 1, 2, 3, 4], id="naive Bayes"),
    pytest.param(TREE, [4, 3, 2, 1, 0], id="tree"),
    pytest.param(TREE, [0, 1, 2, 3, 4], id="tree, roots first"),
    pytest.param(CHAIN_OF_TWO, [2, 0, 4, 1, 3], id="2-tree, mixed"),
    pytest.param(LOOP, [4, 2, 3, 0, 1], id="loop"),
    pytest.param(LOOP, [1, 0, 2, 3, 4], id="loop, roots first"),
]


def offsets(parents):
    """Return where the tables start."""
    sizes = [
        k * np.prod([N_STATES[j] for j in row if j >= 0], dtype=int) for k, row in zip(N_STATES, parents, strict=True)
    ]
    return np.append(N_CLASSES, N_CLASSES + N_CLASSES * np.cumsum(sizes))


def network(parents, order):
    """Return the arrays that the kernel takes."""
    belief = np.append(0, np.cumsum(N_STATES)) * N_CLASSES
    return Network(
        np.array(parents), N_STATES, offsets(parents), np.array(order), np.argsort(order), np.arange(5), belief
    )


def patterns(rng):
    """Return samples with every pattern of missing features (-1), and their codes."""
    X = rng.integers(0, N_STATES, (32, 5))
    X[SAMPLES[:, np.newaxis] >> np.arange(5) & 1 == 1] = -1
    return X, np.where(X < 0, MISSING, X).T.astype(np.uint8).copy()


def complete(codes, samples, cells, parents, order, y, room=(5, 300)):
    """Return how many samples were done, and the completions."""
    completed = codes.copy()
    done = completion.most_probable(codes, samples, cells, network(parents, order), MISSING, *room, y, completed)
    return done, completed


@pytest.mark.parametrize("given", [None, 0, 1])
@pytest.mark.parametrize(("parents", "order"), CASES)
def test_completions_are_the_most_probable_of_all(parents, order, given):
    rng = np.random.default_rng(0)
    cells = rng.normal(scale=3, size=offsets(parents)[-1])  # normalised or not: nothing may be left out
    cells[N_CLASSES:][rng.random(len(cells) - N_CLASSES) < 0.1] = -np.inf
    X, codes = patterns(rng)
    y = np.full(32, -1 if given is None else given)
    done, completed = complete(codes, SAMPLES, cells, parents, order, y)
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
    """With the roots first, a loop leaves factors of three features and 2 * 2 * 2 cells."""
    parents = [[-1, -1], [0, -1], [0, 1], [0, -1], [0, 3]]
    codes = np.array([[0] * 5, [MISSING] * 5], dtype=np.uint8).T.copy()
    cells, y = np.zeros(offsets(parents)[-1]), np.full(2, -1)
    done, completed = complete(codes, np.arange(2), cells, parents, range(5), y, (max_width, capacity))
    assert done == 1
    np.testing.assert_array_equal(completed, codes)
