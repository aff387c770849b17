"""Messages in a tree of columns: log normalizer and marginals against enumeration, and their gradient."""

import itertools

import numpy as np
import pytest
from oracles import term_nets as naive
from support.term_networks import random_network

from tanlearn.terms.term_tree import TermTree

N_STATES = [3, 2, 4, 5]
FOREST = [[-1], [0], [1], [-1]]
STAR = [[1], [-1], [1], [1]]
every_tree = pytest.mark.parametrize("parents", [FOREST, STAR, [[-1]] * 4], ids=["forest", "star", "no edges"])


def marginals(prior, plain):
    """Return the probability of each cell and class of each column, by enumeration of all rows and classes."""
    _, joint = naive.distribution(prior, plain, N_STATES)
    found = []
    for features, groups, cells in plain:
        table = np.zeros(np.shape(cells))
        for x in itertools.product(*map(range, N_STATES)):
            table[tuple(own[x[i]] for i, own in zip(features, groups, strict=True))] += joint[x]
        found.append(table.reshape(-1, len(prior)))
    return found, joint.reshape(-1, len(prior)).sum(axis=0)


@every_tree
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("spread", [1.0, 5.0])
def test_log_normalizer_and_marginals_equal_enumeration(parents, n_classes, spread):
    tables, structure, plain = random_network(parents, N_STATES, n_classes, spread=spread)
    found = TermTree(tables.columns, structure).marginals(tables.log_prior, tables.values)
    expected, p_class = marginals(tables.log_prior, plain)
    assert found.log_z == pytest.approx(naive.distribution(tables.log_prior, plain, N_STATES)[0], rel=1e-12)
    np.testing.assert_allclose(found.p_class, p_class, rtol=1e-9)
    for one, two in zip(found.columns, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


@every_tree
def test_marginals_are_the_gradient(parents):
    tables, structure, _ = random_network(parents, N_STATES, 2)
    tree, rng = TermTree(tables.columns, structure), np.random.default_rng(1)
    found = tree.marginals(tables.log_prior, tables.values)
    for _ in range(10):
        steps = [1e-6 * rng.normal(size=values.shape) for values in tables.values]
        of_prior = 1e-6 * rng.normal(size=2)
        up, down = (
            tree.marginals(
                tables.log_prior + sign * of_prior, [v + sign * s for v, s in zip(tables.values, steps, strict=True)]
            )
            for sign in (1, -1)
        )
        slope = float((found.p_class * of_prior).sum())
        slope += sum(float((one * step).sum()) for one, step in zip(found.columns, steps, strict=True))
        assert up.log_z - down.log_z == pytest.approx(2 * slope, rel=1e-6, abs=1e-13)


def test_marginals_of_extreme_parameters_are_finite():
    tables, structure, _ = random_network(STAR, N_STATES, 2, spread=2000.0)
    found = TermTree(tables.columns, structure).marginals(tables.log_prior, tables.values)
    assert np.isfinite(found.log_z)
    for one in found.columns:
        assert one.sum() == pytest.approx(1, rel=1e-9)
