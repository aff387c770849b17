"""The loss kernels against plain Python, row by row, with zero probabilities among the rows."""

import numba
import numpy as np
import pytest
from oracles import losses as naive_losses

from tanlearn.kernels import losses

INF = np.inf
# kind, parameters, oracle. Two settings of a loss reach different branches.
CASES = {
    "joint": (losses.JOINT_NLL, (0.0, 0.0, 0.0), naive_losses.joint_nll),
    "conditional": (
        losses.CONDITIONAL_NLL,
        (0.0, 0.0, 0.0),
        naive_losses.conditional_nll,
    ),
    "hinge": (
        losses.HINGE_MARGIN,
        (0.0, 1.5, 4.0),
        lambda scores, label: naive_losses.hinge_margin(scores, label, 1.5, 4.0),
    ),
    "margin": (
        losses.MARGIN,
        (0.4, 0.3, 2.0),
        lambda scores, label: naive_losses.smooth_margin(scores, label, 0.4, 0.3, 2.0),
    ),
    "hybrid": (
        losses.HYBRID,
        (7.0, 1.0, 10.0),
        lambda scores, label: naive_losses.hybrid(scores, label, 7.0, 1.0, 10.0),
    ),
    "hybrid without margin": (
        losses.HYBRID,
        (0.0, 1.0, 10.0),
        lambda scores, label: naive_losses.hybrid(scores, label, 0.0, 1.0, 10.0),
    ),
    "soft hybrid": (
        losses.SOFT_HYBRID,
        (7.0, 1.0, 0.5),
        lambda scores, label: naive_losses.soft_hybrid(scores, label, 7.0, 1.0, 0.5),
    ),
    "soft hybrid without margin": (
        losses.SOFT_HYBRID,
        (0.0, 1.0, 0.5),
        lambda scores, label: naive_losses.soft_hybrid(scores, label, 0.0, 1.0, 0.5),
    ),
}
ROWS = np.array(
    [
        [-1.0, -1.5, -2.0],  # a small margin for class 0, none for the others
        [-3.0, -1.0, -3.5],
        [-9.0, -8.0, -2.0],
        [-2.0, -2.0, -2.0],  # a tie
        [-30000.0, -30001.0, -30000.5],
        [-1.0, -INF, -2.0],
        [-INF, -INF, -2.0],
        [-INF, -INF, -INF],
    ]
)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def every_row_with_every_class(dtype):
    scores = np.repeat(ROWS, ROWS.shape[1], axis=0).astype(dtype)
    return scores, np.tile(np.arange(ROWS.shape[1]), ROWS.shape[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_equal_oracle(case, dtype):
    kind, parameters, oracle = case
    scores, y = every_row_with_every_class(dtype)
    loss, d_scores = np.empty(y.size, dtype), np.empty_like(scores)
    assert losses.loss_rows(kind, np.array(parameters, dtype), scores, y, loss, d_scores) == -1
    eps = np.finfo(dtype).eps
    for i, label in enumerate(y):
        value, gradient = oracle(scores[i], label)
        # The hybrid multiplies by 7 and the sum of exponentials by eta; 32 eps holds for all.
        np.testing.assert_allclose(loss[i], value, rtol=32 * eps, atol=32 * eps)
        np.testing.assert_allclose(d_scores[i], gradient, rtol=0, atol=32 * eps)
        alone = np.empty_like(scores[i])
        assert losses.row_loss(kind, scores[i], label, *np.array(parameters, dtype), alone) == pytest.approx(loss[i])
        np.testing.assert_allclose(alone, d_scores[i], rtol=0, atol=4 * eps)


@pytest.mark.parametrize("label", [-1, 3])
def test_loss_rows_returns_the_row_whose_class_does_not_exist(label):
    scores = np.zeros((3, 3))
    y = np.array([0, label, 7])
    loss, d_scores = np.zeros(3), np.zeros((3, 3))
    assert losses.loss_rows(losses.JOINT_NLL, np.zeros(3), scores, y, loss, d_scores) == 1
    assert not d_scores[1:].any()


@pytest.mark.parametrize("left_out", [-1, 0, 1, 2])
def test_soft_margin_writes_the_softmax_without_the_class_left_out(left_out):
    scores = np.array([-1.0, -1.2, -0.9])
    weights = np.empty(3)
    d = losses.soft_margin(scores, 1, left_out, 3.0, INF, weights)
    kept = [c for c in range(3) if c != left_out]
    assert d == pytest.approx(-1.2 - naive_losses.softened_maximum(scores[kept].tolist(), 3.0), rel=1e-14)
    np.testing.assert_allclose(weights[kept], naive_losses.softmax(scores[kept].tolist(), 3.0), rtol=1e-14)
    assert weights.sum() == pytest.approx(1.0)


def test_soft_margin_stops_at_a_lower_bound_that_is_enough():
    scores = np.array([0.0, -3.0, -3.5])
    weights = np.empty(3)
    bound = losses.soft_margin(scores, 0, 0, 10.0, 2.0, weights)
    exact = losses.soft_margin(scores, 0, 0, 10.0, INF, np.empty(3))
    assert 2.0 <= bound < exact
    assert bound == pytest.approx(3.0 - np.log(2) / 10)
    assert not weights.any()


def test_tiny_softmax_weights_are_zero_and_not_denormal():
    scores = np.array([0.0, -42.0, -44.0, -90.0, -INF], np.float32)
    weights = np.empty(5, np.float32)
    losses.soft_margin(scores, 0, -1, np.float32(1), np.float32(INF), weights)
    assert weights[1] == pytest.approx(np.exp(-42), rel=1e-6)
    assert not weights[2:].any()


def test_rows_are_weighed_by_their_share():
    d_scores = np.arange(6.0).reshape(3, 2)
    losses.weigh_rows(np.array([0.5, 0.0, -2.0]), d_scores)
    assert d_scores.tolist() == [[0.0, 0.5], [0.0, 0.0], [-8.0, -10.0]]


def loss_of_one_row(case, scores, label):
    kind, parameters, _ = case
    loss, d_scores = np.empty(1), np.empty((1, 3))
    losses.loss_rows(kind, np.array(parameters), np.array([scores]), np.array([label]), loss, d_scores)
    return loss[0]


@pytest.mark.parametrize("label", [0, 1, 2])
def test_nan_of_the_true_class_is_not_swallowed(case, label):
    scores = np.array([-1.0, -2.0, -3.0])
    scores[label] = np.nan
    assert np.isnan(loss_of_one_row(case, scores, label))


@pytest.mark.parametrize("name", ["conditional", "hinge", "margin", "hybrid"])
@pytest.mark.parametrize(("label", "position"), [(0, 1), (0, 2), (1, 0), (2, 0), (2, 1)])
def test_nan_of_another_class_is_not_swallowed(name, label, position):
    scores = np.array([-1.0, -2.0, -3.0])
    scores[position] = np.nan
    assert np.isnan(loss_of_one_row(CASES[name], scores, label))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="types of compiled code")
def test_float32_stays_float32(case):
    kind, parameters, _ = case
    losses.row_loss(kind, np.zeros(3, np.float32), 0, *np.array(parameters, np.float32), np.zeros(3, np.float32))
    returned = {s.args[1].dtype: s.return_type for s in losses.row_loss.nopython_signatures}
    assert returned[numba.float32] == numba.float32
