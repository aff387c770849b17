"""Networks of five features, in all shapes that elimination has to do with, and samples that miss whatever can be."""

import numpy as np
import pytest

from tanlearn.kernels.elimination import Network

N_STATES = np.array([2, 3, 2, 2, 3])
N_CLASSES = 2
MISSING = 255
NONE = [[-1, -1]] * 5
TREE = [[-1, -1], [0, -1], [1, -1], [1, -1], [0, -1]]
CHAIN_OF_TWO = [[-1, -1], [0, -1], [1, 0], [2, 1], [3, 2]]
#: Two parents that are not joined, and a loop: in some orders, eliminating a feature leaves a factor of three.
LOOP = [[-1, -1], [-1, -1], [0, 1], [1, 0], [2, 3]]
#: Three parents, of which one is not joined to the others: eliminating it leaves a factor of four.
THREE = [[-1, -1, -1], [0, -1, -1], [-1, -1, -1], [2, 0, 1], [3, 1, 0]]
#: With the roots first, this leaves factors of three features and 2 * 2 * 2 cells.
WIDE_LOOP = [[-1, -1], [0, -1], [0, 1], [0, -1], [0, 3]]
#: Parents, and an order of elimination.
CASES = [
    pytest.param(NONE, [0, 1, 2, 3, 4], id="naive Bayes"),
    pytest.param(TREE, [4, 3, 2, 1, 0], id="tree"),
    pytest.param(TREE, [0, 1, 2, 3, 4], id="tree, roots first"),
    pytest.param(CHAIN_OF_TWO, [0, 1, 2, 3, 4], id="2-tree"),
    pytest.param(CHAIN_OF_TWO, [2, 0, 4, 1, 3], id="2-tree, mixed"),
    pytest.param(LOOP, [4, 2, 3, 0, 1], id="loop"),
    pytest.param(LOOP, [1, 0, 2, 3, 4], id="loop, roots first"),
    pytest.param(THREE, [4, 3, 2, 1, 0], id="three parents"),
    pytest.param(THREE, [0, 2, 4, 1, 3], id="three parents, mixed"),
]


def offsets(parents):
    """Return where the tables start."""
    widths = np.where(np.array(parents) >= 0, N_STATES[np.array(parents)], 1).prod(axis=1)
    return np.append(N_CLASSES, N_CLASSES + N_CLASSES * np.cumsum(N_STATES * widths))


def network(parents, order):
    """Return the arrays that the kernels take."""
    belief = np.append(0, np.cumsum(N_STATES)) * N_CLASSES
    return Network(
        np.array(parents), N_STATES, offsets(parents), np.array(order), np.argsort(order), np.arange(5), belief
    )


def patterns(rng):
    """Return samples with every pattern of missing features (-1), and their codes."""
    X = rng.integers(0, N_STATES, (32, 5))
    X[np.arange(32)[:, np.newaxis] >> np.arange(5) & 1 == 1] = -1
    return X, np.where(X < 0, MISSING, X).T.astype(np.uint8).copy()


def normalized_cells(parents, rng):
    """Return log-probabilities of random tables, of which some entries are zero."""
    offset = offsets(parents)
    cells = [np.log(rng.dirichlet(np.ones(N_CLASSES)))]
    for i, k in enumerate(N_STATES):
        table = rng.dirichlet(np.ones(k), (offset[i + 1] - offset[i]) // k).T
        if i == 2:
            table[0] = 0.0
            table /= table.sum(axis=0)
        cells.append(np.log(table).ravel())
    return np.concatenate(cells)
