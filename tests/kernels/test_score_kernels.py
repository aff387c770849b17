"""Scores, their transpose and the gradient of a choice, against the naive oracles."""

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import scores as kernels

MISSING = 255
N_STATES = np.array([2, 3, 1, 2])
N_CLASSES = 3


def random_problem(seed, n=7, n_classes=N_CLASSES):
    """Seven tables over four features, with none to three parents."""
    rng = np.random.default_rng(seed)
    child = np.array([0, 0, 1, 1, 2, 3, 3])
    parents = np.array([[-1, -1, -1], [1, -1, -1], [-1, -1, -1], [2, 0, -1], [3, -1, -1], [-1, -1, -1], [0, 2, 1]])
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    offset = np.array(naive.offsets(child, parents, N_STATES, n_classes))
    return rng, child, parents, X, np.ascontiguousarray(X.T.astype(np.uint8)), offset


@pytest.mark.parametrize("selected", [[0, 2, 4, 5], [1, 3, 4, 6]])
@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_joint_equals_oracle(selected, first, n_classes):
    rng, child, parents, X, codes, offset = random_problem(0, n_classes=n_classes)
    cells = rng.normal(size=offset[-1])
    out = np.empty((len(X) - first, n_classes))
    rows = np.empty(len(out), np.intp)
    kernels.log_joint(codes, first, cells, child, parents, N_STATES, offset, np.array(selected), MISSING, rows, out)
    expected = naive.log_joint(X[first:], cells, child, parents, N_STATES, n_classes, selected)
    np.testing.assert_allclose(out, expected, rtol=1e-14)


@pytest.mark.parametrize("selected", [[0, 2, 4, 5], [1, 3, 4, 6]])
def test_adjoint_identity(selected):
    """<log_joint(cells), G> = <cells, adjoint(G)> for any cells and G."""
    rng, child, parents, _, codes, offset = random_problem(1)
    arrays = (child, parents, N_STATES, offset, np.array(selected), MISSING, np.empty(7, np.intp))
    cells, G = rng.normal(size=offset[-1]), rng.normal(size=(7, N_CLASSES))
    scores, d_cells = np.empty((7, N_CLASSES)), np.zeros(offset[-1])
    kernels.log_joint(codes, 0, cells, *arrays, scores)
    kernels.log_joint_adjoint(codes, 0, G, *arrays, d_cells)
    assert np.vdot(scores, G) == pytest.approx(np.vdot(cells, d_cells), rel=1e-12)


def test_adjoint_accumulates():
    rng, child, parents, _, codes, offset = random_problem(2)
    arrays = (child, parents, N_STATES, offset, np.array([1, 3, 4, 6]), MISSING, np.empty(7, np.intp))
    G = rng.normal(size=(7, N_CLASSES))
    once, twice = np.zeros(offset[-1]), np.zeros(offset[-1])
    kernels.log_joint_adjoint(codes, 0, G, *arrays, once)
    for _ in range(2):
        kernels.log_joint_adjoint(codes, 0, G, *arrays, twice)
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-14)


def test_choice_gradient_is_the_contribution_of_every_table():
    """sum over n, c of d_scores * (scores with the table - prior), for every table by itself."""
    rng, child, parents, X, codes, offset = random_problem(3)
    cells, G = rng.normal(size=offset[-1]), rng.normal(size=(7, N_CLASSES))
    d_choice = np.empty(len(child))
    rows = np.empty(7, np.intp)
    kernels.choice_gradient(codes, 0, G, cells, child, parents, N_STATES, offset, MISSING, rows, d_choice)
    for t in range(len(child)):
        alone = naive.log_joint(X, cells, child, parents, N_STATES, N_CLASSES, [t]) - cells[:N_CLASSES]
        assert d_choice[t] == pytest.approx((alone * G).sum(), rel=1e-12)


def test_family_rows_marks_incomplete_families():
    codes = np.array([[0, 1, MISSING], [2, MISSING, 1]], dtype=np.uint8)
    rows = np.empty(3, np.intp)
    kernels.family_rows(codes, 0, 0, np.array([1, -1]), np.array([2, 3]), MISSING, rows)
    assert rows.tolist() == [2, -1, -1]


@pytest.mark.parametrize("selected", [[0, 2, 4, 5], [1, 3, 4, 6]])
def test_incomplete_samples_say_what_an_exchange_of_tables_would_change(selected):
    rng, child, parents, X, codes, offset = random_problem(4)
    cells, G = rng.normal(size=offset[-1]), rng.normal(size=(7, N_CLASSES))
    is_missing = rng.random(X.shape) < 0.3
    X[is_missing], codes[is_missing.T] = -1, MISSING
    d_choice = np.ones(len(child))
    rows = np.empty((2, 7), np.intp)
    arrays = child, parents, N_STATES, offset, np.array(selected), MISSING, *rows
    kernels.add_choice_gradient(codes, 0, G, cells, *arrays, d_choice)
    arguments = cells, child, parents, selected, N_STATES, N_CLASSES
    expected = 1 + sum(np.array(naive.exchanges(x, d, *arguments)) for x, d in zip(X.tolist(), G, strict=True))
    np.testing.assert_allclose(d_choice, expected, rtol=1e-12)
    assert (d_choice[selected] == 1).all()
    assert (d_choice != 1).sum() == len(child) - 4


def test_score_row_adds_up_the_cells_of_one_sample():
    """Two features, the second given the first, and two classes; of equal classes the first is best."""
    n_states, parents, offset = np.array([2, 3]), np.array([[-1, -1], [0, -1]]), np.array([2, 6, 18])
    cells = np.random.default_rng(0).integers(-9, 0, 18).astype(float)
    scores = np.empty(2)
    for codes in np.ndindex(2, 3):
        best = kernels.score_row(np.array(codes), cells, parents, n_states, offset, 255, scores)
        row = codes[0] * 2, 6 + (codes[1] * 2 + codes[0]) * 2
        assert scores.tolist() == [cells[c] + cells[2 + row[0] + c] + cells[row[1] + c] for c in range(2)]
        assert best == scores.argmax()
    for codes, reason in (([255, 0], -1), ([0, 255], -1), ([2, 0], -2), ([0, 3], -2), ([-1, 0], -2)):
        assert kernels.score_row(np.array(codes), cells, parents, n_states, offset, 255, scores) == reason
    backwards = np.array([[1, -1], [-1, -1]]), np.array([3, 2]), np.array([2, 14, 18])
    for codes, reason in (([0, 255], -1), ([0, 2], -2), ([0, -1], -2)):
        assert kernels.score_row(np.array(codes), cells, *backwards, 255, scores) == reason
