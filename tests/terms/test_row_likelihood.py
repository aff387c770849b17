"""Class-independent terms: frequencies at the maximum, and unchanged posteriors."""

import itertools

import numpy as np
import pytest
from oracles import term_nets as naive
from support.term_networks import as_codes, as_plain, random_network

from tanlearn import EncodedData
from tanlearn.models.log_joint import log_joint, log_posterior
from tanlearn.models.term_tables import normalize_trees
from tanlearn.terms.row_likelihood import add_log_frequencies, column_frequencies, fit_row_terms

N_STATES = [3, 2, 4, 5]
FOREST = [[-1], [0], [1], [-1]]
STAR = [[1], [-1], [1], [1]]
every_tree = pytest.mark.parametrize("parents", [FOREST, STAR, [[-1]] * 4], ids=["forest", "star", "no edges"])
EVERYTHING = [list(x) for x in itertools.product(*map(range, N_STATES))]


def marginals(prior, plain):
    """Return the probability of each cell of each column, by enumeration of all rows and classes."""
    _, joint = naive.distribution(prior, plain, N_STATES)
    found = []
    for features, groups, cells in plain:
        table = np.zeros(np.shape(cells)[:-1])
        for x in EVERYTHING:
            place = tuple(own[x[i]] for i, own in zip(features, groups, strict=True))
            table[place] += joint[tuple(x)].sum()
        found.append(table.ravel())
    return found


def rows(n_samples=200, *, missing=0.0, seed=0, weights=None):
    """Return rows of dependent features, with a quarter of the weight, or none, at some values."""
    rng = np.random.default_rng(seed)
    X = np.minimum(rng.integers(0, 3, (n_samples, 1)) + rng.integers(0, 3, (n_samples, 4)), np.array(N_STATES) - 1)
    X[rng.random(X.shape) < missing * np.array([0.5, 1.0, 1.5, 2.0])] = -1
    y = rng.integers(0, 2, n_samples)
    weight = None if weights is None else weights(rng, n_samples)
    data = EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=2, sample_weight=weight)
    return X.tolist(), [1] * n_samples if weight is None else weight.tolist(), data


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("weights", [None, lambda rng, n: rng.integers(0, 4, n)], ids=["no weights", "weights"])
def test_frequencies_are_those_of_complete_pairs_and_one_independent_row(missing, weights):
    X, weight, data = rows(60, missing=missing, weights=weights)
    for column, (features, groups, cells) in zip(
        random_network(STAR, N_STATES, 2)[0].columns, random_network(STAR, N_STATES, 2)[2], strict=True
    ):
        shape = np.shape(cells)[:-1]
        expected = np.zeros(shape)
        for x, w in zip(X, weight, strict=True):
            if all(x[i] >= 0 for i in features):
                expected[tuple(own[x[i]] for i, own in zip(features, groups, strict=True))] += w
        total = expected.sum()
        sides = []
        for axis, n in enumerate(shape):
            side = expected.sum(axis=tuple(a for a in range(len(shape)) if a != axis)) + 1 / n
            sides.append(side / (total + 1))
        expected += sides[0] if len(sides) == 1 else np.outer(*sides)
        found = column_frequencies(column, data)
        np.testing.assert_allclose(found, expected.ravel() / (total + 1), rtol=1e-9)
        assert found.sum() == pytest.approx(1, rel=1e-12)
        assert found.min() > 0


@every_tree
@pytest.mark.parametrize("n_samples", [3, 200])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_maximum_has_the_frequencies_of_the_rows(parents, n_samples, missing):
    """Roots have theirs. Groups have theirs given the parent's group, and so have values within their group."""
    tables, structure, _ = random_network(parents, N_STATES, 2, seed=4)
    _, _, data = rows(n_samples, missing=missing)
    fitted = fit_row_terms(tables, structure, data)
    assert max(np.abs(values).max() for values in fitted.values) < 30
    frequencies = {column.features: column_frequencies(column, data) for column in tables.columns}
    found = marginals(fitted.log_prior, as_plain(fitted))
    found = {column.features: own for column, own in zip(tables.columns, found, strict=True)}
    children = set()
    for column in tables.columns[4:]:
        child, parent = column.features
        children.add(child)
        one, two = (each[child, parent].reshape(column.n_groups) for each in (found, frequencies))
        np.testing.assert_allclose(one / one.sum(axis=0), two / two.sum(axis=0), atol=1e-3)
        groups = column.groups[0]
        one, two = (each[child,] / np.bincount(groups, each[child,])[groups] for each in (found, frequencies))
        np.testing.assert_allclose(one, two, atol=1e-3)
    for root in set(range(4)) - children:
        np.testing.assert_allclose(found[root,], frequencies[root,], atol=1e-4)


def test_values_of_children_have_their_frequencies_if_nothing_is_missing():
    """The smoothing changes them by less than a row."""
    tables, structure, _ = random_network(STAR, N_STATES, 2, seed=4)
    X, _, data = rows(200)
    fitted = fit_row_terms(tables, structure, data)
    found = marginals(fitted.log_prior, as_plain(fitted))
    for i, n in enumerate(N_STATES):
        counts = [sum(x[i] == v for x in X) / 200 for v in range(n)]
        np.testing.assert_allclose(found[i], counts, atol=1 / 200)


@every_tree
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_posteriors_of_complete_rows_do_not_change(parents, missing):
    tables, structure, _ = random_network(parents, N_STATES, 3, seed=5)
    _, _, data = rows(missing=missing)
    data = EncodedData(data.codes, data.n_states, data.y, 3)
    codes = as_codes(EVERYTHING)
    expected = log_posterior(log_joint(tables, structure, codes))
    fitted = fit_row_terms(tables, structure, data)
    for found in (fitted, normalize_trees(fitted, structure)):
        np.testing.assert_allclose(log_posterior(log_joint(found, structure, codes)), expected, atol=1e-9)


@every_tree
def test_row_terms_raise_the_likelihood(parents):
    """No class-independent terms give the rows a larger likelihood than those of the maximum."""
    tables, structure, _ = random_network(parents, N_STATES, 2, seed=6)
    X, _, data = rows(2000)

    def mean_log_likelihood(one):
        plain = as_plain(one)
        log_z, _ = naive.distribution(one.log_prior, plain, N_STATES)
        return np.mean([naive.log_sum(naive.log_joint(x, one.log_prior, plain)) for x in X[:300]]) - log_z

    data = data.take(np.arange(300))
    fitted = fit_row_terms(tables, structure, data)
    best = mean_log_likelihood(fitted)
    assert best > mean_log_likelihood(tables)
    rng = np.random.default_rng(7)
    for _ in range(5):
        moved = [values + 0.5 * rng.normal(size=(len(values), 1)) for values in fitted.values]
        other = type(tables)(tables.layout, tables.columns, moved, tables.log_prior, is_normalized=False)
        assert mean_log_likelihood(other) < best


def test_log_frequencies_are_added_to_columns_of_features_only():
    tables, _, _ = random_network([[-1, -1], [0, -1], [0, 1], [-1, -1]], N_STATES, 2)
    _, _, data = rows(50, missing=0.2)
    found = add_log_frequencies(tables, data)
    for column, before, after in zip(tables.columns, tables.values, found.values, strict=True):
        expected = np.log(column_frequencies(column, data)) if len(column.features) == 1 else np.zeros(len(before))
        np.testing.assert_allclose(after - before, np.tile(expected[:, np.newaxis], 2), atol=1e-12)
    assert not found.is_normalized
