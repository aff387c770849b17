"""Groups of classes: the likeliest ones, and the remainder as the tangent of its log-sum-exp."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from tanlearn.forest.class_groups import grouped, likeliest_classes, own_group, remainder_shares


@pytest.mark.parametrize(("n_classes", "n_groups", "n_likeliest"), [(2, 4, 2), (4, 4, 4), (5, 4, 3), (5, 2, 1)])
def test_the_likeliest_classes_are_in_order(n_classes, n_groups, n_likeliest):
    log_p = np.random.default_rng(0).normal(size=(20, n_classes))
    found = likeliest_classes(log_p, n_groups)
    assert found.shape == (20, n_likeliest)
    assert [own.tolist() for own in found] == [
        sorted(range(n_classes), key=lambda c, own=own: -own[c])[:n_likeliest] for own in log_p
    ]


def test_equally_likely_classes_keep_their_order():
    assert likeliest_classes(np.array([[0.0, 1.0, 0.0, 1.0, 0.0]]), 4).tolist() == [[1, 3, 0]]
    assert likeliest_classes(np.tile([0.0, 1.0, 2.0], (1, 40)), 30).tolist() == [list(range(2, 89, 3))]


def test_own_group_is_the_position_of_the_class_or_the_remainder():
    likeliest = np.array([[3, 0], [3, 0], [1, 2], [1, 2]])
    assert own_group(np.array([3, 0, 0, 2]), likeliest).tolist() == [0, 1, 2, 1]


def test_without_a_remainder_values_are_permuted():
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    likeliest = np.random.default_rng(1).permuted(np.tile(np.arange(4), (3, 1)), axis=1)
    found = grouped(values, likeliest, None)
    for r, order in enumerate(likeliest.tolist()):
        np.testing.assert_array_equal(found[:, r], values[:, r, order])


def test_the_remainder_is_the_tangent_of_the_log_sum_of_its_classes():
    rng = np.random.default_rng(0)
    gains, base, weights = rng.normal(size=(3, 10, 6)), rng.normal(size=(10, 6)), rng.normal(size=3)
    scores = np.tensordot(weights, gains, 1) + base
    likeliest = likeliest_classes(scores, 4)
    shares = remainder_shares(scores, likeliest)
    height = grouped(base - np.log(np.where(shares > 0, shares, 1.0)), likeliest, shares)
    slopes = grouped(gains, likeliest, shares)

    def exact(weights):
        own = np.tensordot(weights, gains, 1) + base
        rest = [logsumexp(np.delete(row, order)) for row, order in zip(own, likeliest, strict=True)]
        return np.column_stack([np.take_along_axis(own, likeliest, axis=1), rest])

    np.testing.assert_allclose(height + np.tensordot(weights, slopes, 1), exact(weights), atol=1e-12)
    for step in 1e-5 * np.eye(3):
        change = (exact(weights + step) - exact(weights - step)) / 2e-5
        np.testing.assert_allclose(slopes[step.argmax()], change, atol=1e-8)
    moved = weights + rng.normal(size=3)
    tangent = (height + np.tensordot(moved, slopes, 1))[:, -1]
    assert (tangent < exact(moved)[:, -1]).all()  # a lower bound


def test_shares_of_far_scores_are_finite():
    scores = np.array([[1000.0, -1000.0, -3000.0, -1000.0]])
    shares = remainder_shares(scores, np.array([[0]]))
    np.testing.assert_allclose(shares, [[0.0, 0.5, 0.0, 0.5]])
    np.testing.assert_allclose(shares[0, 1:], softmax(scores[0, 1:]))
