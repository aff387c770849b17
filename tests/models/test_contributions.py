"""Contributions of features and pairs: against masses moved one by one, and as parts that add up to the log odds."""

import itertools

import numpy as np
import pytest
from oracles import contributions as naive
from support.term_networks import as_codes, as_plain, random_network

from tanlearn.models.contributions import Contributions
from tanlearn.models.tables import Tables
from tanlearn.models.term_tables import normalize_trees
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

N_STATES = [4, 3, 2, 5]


def rows(n_samples=60, *, missing=0.0, seed=0):
    """Return dependent rows with -1 for missing values, and their weights."""
    rng = np.random.default_rng(seed)
    shared = rng.random(n_samples)
    X = np.stack([np.minimum((shared * rng.random(n_samples) ** 0.3 * n).astype(int), n - 1) for n in N_STATES], axis=1)
    X[rng.random(X.shape) < missing] = -1
    return X, rng.integers(1, 4, n_samples).astype(float)


def dense(parents, n_classes, seed=0):
    """Return CPTs with an entry for each combination of values."""
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, np.array(N_STATES), n_classes)
    return Tables(layout, np.random.default_rng(seed).normal(size=layout.n_cells), is_normalized=False), structure


def expected_parts(tables, X, weight, target):
    """Return the sum of the parts of each set of features over all CPTs, (values of each feature)."""
    total = {}
    for i in range(len(N_STATES)):
        parents = [j for j in tables.layout.parents[i].tolist() if j >= 0]
        family = [i, *parents]
        table = naive.log_odds(np.asarray(tables[i]), target)
        order = np.argsort(family)
        weights = naive.frequencies(X[:, family].tolist(), weight, table.shape)
        for axes, part in naive.purified(table.transpose(order), weights.transpose(order)).items():
            key = tuple(sorted(family)[k] for k in axes)
            total[key] = total.get(key, 0.0) + part
    return total


def centered(curve, X, weight, i):
    """Return a curve with mean 0 over the rows with a value."""
    seen = X[:, i] >= 0
    return curve - (weight[seen] * curve[X[seen, i]]).sum() / weight[seen].sum()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    "parents",
    [[-1, -1, -1, -1], [-1, 0, 0, 1], [[-1, -1], [0, -1], [1, 0], [2, 0]]],
    ids=["no edges", "tree", "two parents"],
)
def test_parts_are_those_of_masses_moved_one_by_one(parents, missing, n_classes):
    tables, _ = dense(parents, n_classes)
    X, weight = rows(missing=missing)
    targets = [1] if n_classes == 2 else [2, 0]
    found = Contributions(tables, as_codes(X), weight, targets)
    for k, target in enumerate(targets):
        parts = expected_parts(tables, X, weight, target)
        for i in range(4):
            np.testing.assert_allclose(found.of_feature(i)[:, k], centered(parts[(i,)], X, weight, i), atol=1e-9)
        assert found.pairs() == [key for key in sorted(parts) if len(key) == 2]
        for i, j in found.pairs():
            np.testing.assert_allclose(found.of_pair(i, j)[..., k], parts[i, j], atol=1e-9)
            np.testing.assert_allclose(found.of_pair(j, i)[..., k], parts[i, j].T, atol=1e-9)


@pytest.mark.parametrize("parents", [[-1, 0, 0, 1], [[-1, -1], [0, -1], [1, 0], [2, 0]]], ids=["tree", "two parents"])
def test_contributions_of_sums_of_terms_add_up_to_the_log_odds(parents):
    """In each combination of values, up to a constant, although the columns of edges have groups of values.

    What three features contribute beyond their pairs is added by the oracle.
    """
    tables, _, _ = random_network(parents, N_STATES, 3)
    X, weight = rows()
    found = Contributions(tables, as_codes(X), weight, [0, 1, 2])
    curves, pairs = [found.of_feature(i) for i in range(4)], {pair: found.of_pair(*pair) for pair in found.pairs()}
    triples = []
    for features, groups, cells in as_plain(tables):
        if len(features) == 3:
            of_rows = [[own[v] for own, v in zip(groups, row, strict=True)] for row in X[:, features].tolist()]
            odds = [naive.log_odds(np.array(cells), c) for c in range(3)]
            counts = naive.frequencies(of_rows, weight, odds[0].shape)
            parts = [naive.purified(table, counts)[0, 1, 2] for table in odds]
            triples.append((features, groups, np.stack(parts, axis=-1)))
    differences = []
    for x in itertools.product(*map(range, N_STATES)):
        total = sum(curves[i][v] for i, v in enumerate(x)) + sum(t[x[i], x[j]] for (i, j), t in pairs.items())
        for features, groups, part in triples:
            total = total + part[tuple(own[x[i]] for i, own in zip(features, groups, strict=True))]
        scores = np.zeros(3)
        for features, groups, cells in as_plain(tables):
            cell = cells
            for i, own in zip(features, groups, strict=True):
                cell = cell[own[x[i]]]
            scores += cell
        differences.append([naive.log_odds(scores, c) for c in range(3)] - total)
    np.testing.assert_allclose(differences, differences[:1] * len(differences), atol=1e-9)
    for i, curve in enumerate(curves):
        np.testing.assert_allclose((weight[:, np.newaxis] * curve[X[:, i]]).sum(axis=0), 0, atol=1e-9)


def test_normalization_changes_no_contribution():
    """It moves a function of the parent from the CPT of the child to that of the parent."""
    tables, structure, _ = random_network([-1, 0, 0, 1], N_STATES, 3)
    X, weight = rows()
    before, after = (
        Contributions(one, as_codes(X), weight, [0, 2]) for one in (tables, normalize_trees(tables, structure))
    )
    for i in range(4):
        np.testing.assert_allclose(before.of_feature(i), after.of_feature(i), atol=1e-9)
    for pair in before.pairs():
        np.testing.assert_allclose(before.of_pair(*pair), after.of_pair(*pair), atol=1e-9)


def test_a_temperature_divides_contributions():
    tables, _ = dense([-1, 0, 0, 1], 2)
    X, weight = rows()
    one, two = (Contributions(tables, as_codes(X), weight, [1], temperature=t) for t in (1.0, 2.0))
    np.testing.assert_allclose(one.of_feature(0), 2 * two.of_feature(0), rtol=1e-12)
    np.testing.assert_allclose(one.of_pair(0, 1), 2 * two.of_pair(0, 1), rtol=1e-12)


def test_rows_of_one_combination_leave_all_parts_defined():
    """Two features that are copies of each other: most combinations have no row."""
    tables, _ = dense([-1, 0, 0, 1], 2)
    X = np.repeat(np.minimum(np.arange(60) % 4, 1)[:, np.newaxis], 4, axis=1)
    found = Contributions(tables, as_codes(X), np.ones(60), [1])
    parts = expected_parts(tables, X, np.ones(60), 1)
    for i in range(4):
        np.testing.assert_allclose(found.of_feature(i)[:, 0], centered(parts[(i,)], X, np.ones(60), i), atol=1e-6)


def test_features_without_rows_have_a_mean_of_zero_over_their_values():
    tables, _ = dense([-1, 0, 0, 1], 2)
    X, weight = rows()
    X[:, 3] = -1
    curve = Contributions(tables, as_codes(X), weight, [1]).of_feature(3)
    np.testing.assert_allclose(curve.sum(), 0, atol=1e-12)
    assert np.ptp(curve) > 0.1


def test_counts_are_weights_of_rows():
    tables, _, _ = random_network([-1, 0, 0, 1], N_STATES, 2)
    X, weight = rows(missing=0.2)
    found = Contributions(tables, as_codes(X), weight, [1])
    for v in range(4):
        assert found.counts(0)[v] == weight[X[:, 0] == v].sum()
    features, groups, _ = next(one for one in as_plain(tables) if len(one[0]) == 2)
    child, parent = features
    counts = found.counts_of_pair(child, parent)
    np.testing.assert_array_equal(counts, found.counts_of_pair(parent, child).T)
    own = [np.array(one) for one in groups]
    for v, w in itertools.product(range(N_STATES[child]), range(N_STATES[parent])):
        seen = (X[:, child] >= 0) & (X[:, parent] >= 0)
        same = (own[0][X[:, child]] == own[0][v]) & (own[1][X[:, parent]] == own[1][w])
        assert counts[v, w] == weight[seen & same].sum()


def test_probabilities_of_zero_are_refused():
    tables, _ = dense([-1, 0, 0, 1], 2)
    tables.cells[-1] = -np.inf
    X, weight = rows()
    found = Contributions(tables, as_codes(X), weight, [1])
    with pytest.raises(
        ValueError, match=r"log odds need positive probabilities.*feature 3.*MaximumLikelihood\(alpha=1\)"
    ):
        found.of_feature(3)
    assert np.isfinite(found.of_feature(2)).all()
