"""The sum over one-dependence estimators against a loop over them."""

import numpy as np
import pytest
from oracles import aode as naive_aode
from support.one_dependence import random_problem

from tanlearn.kernels import aode
from tanlearn.kernels._lanes import LANES, padded


def flat(table):
    """Return a table as a vector with slack for the last register; what is there is read, and must not matter."""
    return np.append(table.ravel(), np.full(LANES, np.nan, np.float32))


@pytest.mark.parametrize("n_classes", [2, LANES + 2])
def test_log_sum_joint_equals_oracle(n_classes):
    parents, children, log_parent, log_child = random_problem(n_classes)
    scores, total = np.full((2, len(children), n_classes), np.nan)
    aode.log_sum_joint(
        parents,
        children * n_classes,
        flat(log_parent),
        flat(log_child),
        len(log_parent) * n_classes,
        np.empty(padded(n_classes), np.float32),
        total,
        scores,
    )
    expected = naive_aode.log_sum_joint(parents, children, log_parent, log_child)
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    assert np.isneginf(scores[-1]).all()
    assert np.isfinite(scores[:-1]).any(axis=1).all()


def test_joints_far_below_what_exp_can_hold_are_summed():
    """Two estimators of log joint -30,000 and -30,001: their sum is the larger one and log(1 + 1/e)."""
    log_parent = np.array([[-30_000.0], [-30_001.0]], np.float32)
    log_child = np.zeros((2, 2, 1), np.float32)
    for order in ([0, 1], [1, 0]):
        scores, total = np.empty((1, 1)), np.empty((1, 1))
        parents, children = np.array(order)[:, np.newaxis], np.zeros((1, 1), np.intp)
        lanes = np.empty(LANES, np.float32)
        aode.log_sum_joint(parents, children, flat(log_parent), flat(log_child), 2, lanes, total, scores)
        assert scores[0, 0] == pytest.approx(-30_000 + np.log1p(np.exp(-1)), rel=1e-12)
