"""Terms of features, edges and triples: the cells are explicit sums of functions of the values."""

import numpy as np
import pytest
from oracles import term_nets as naive
from support.term_networks import ALL_WITH_MISSING, IS_ORDERED, N_STATES, ONE_WITH_MISSING, random_rows

from tanlearn import EncodedData
from tanlearn.terms.basis import (
    EDGE_GROUPS,
    EDGE_SMOOTH,
    OWN_GROUPS,
    OWN_SMOOTH,
    TRIPLE_GROUPS,
    Resolutions,
    TermBasis,
    TermStructure,
)

NUMBERS = {
    "own groups": OWN_GROUPS,
    "own smooth": OWN_SMOOTH,
    "edge groups": EDGE_GROUPS,
    "edge smooth": EDGE_SMOOTH,
    "triple groups": TRIPLE_GROUPS,
}
NONE_WITH_MISSING = [False] * 6
#: Edges of ordered features of different depth, of categories, of a feature with one value, and two parents.
PARENTS = np.array([[-1, -1, -1], [0, -1, -1], [0, 1, -1], [0, -1, -1], [1, 0, -1], [4, 0, 2]])
#: Triples of ordered features and categories, and with a feature of one value.
TRIPLES = ((4, 1, 0), (5, 4, 0), (5, 4, 2))


def integer_weights(rng, n_samples):
    return rng.integers(0, 4, n_samples)


def build(missing=0.0, seed=0, weights=integer_weights, has_missing=NONE_WITH_MISSING):
    """Return rows, the basis of the network, and the functions of the naive implementation with their features."""
    X, _, weight, data = random_rows(150, missing=missing, seed=seed, weights=weights, has_missing=has_missing)
    basis = TermBasis(Resolutions(data), TermStructure(PARENTS, TRIPLES))
    features = [
        naive.Feature(naive.value_weights(X, weight, N_STATES, i), *masks)
        for i, masks in enumerate(zip(IS_ORDERED, has_missing, strict=True))
    ]
    terms = [((i,), *term) for i, one in enumerate(features) for term in naive.own_terms(one)]
    for i, row in enumerate(PARENTS.tolist()):
        terms += [((i, j), *term) for j in row if j >= 0 for term in naive.edge_terms(features[i], features[j])]
    terms += [(scope, *term) for scope in TRIPLES for term in naive.joint_terms(features, scope)]
    return X, data, basis, terms


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("has_missing", [NONE_WITH_MISSING, ONE_WITH_MISSING, ALL_WITH_MISSING])
def test_scores_are_explicit_sums_of_terms(missing, seed, has_missing):
    X, data, basis, terms = build(missing, seed, has_missing=has_missing)
    assert basis.kinds.tolist() == [NUMBERS[kind] for _, kind, _ in terms]
    values = np.random.default_rng(2).normal(size=(len(terms), 3))
    cells = np.split(basis.cells(values), np.cumsum(basis.n_states)[:-1])
    found = sum(column[codes] for column, codes in zip(cells, basis.encode(data.codes), strict=True))
    for row, scores in zip(X, found, strict=True):
        expected = np.zeros(3)
        for (scope, _, function), value in zip(terms, values, strict=True):
            if all(row[i] >= 0 for i in scope):
                x = tuple(row[i] for i in scope)
                expected += value * (function[x] if len(x) > 1 else function[x[0]])
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


def test_a_missing_value_has_no_rank():
    """The category of missing values is heavy, and changes neither scores nor groups of the others."""
    x = np.repeat([0, 1, 2, 3], [10, 10, 10, 60])
    data = EncodedData.from_codes(x[:, None], np.arange(90) % 2, is_ordered=True, has_missing_category=True)
    alone = EncodedData.from_codes(x[:30, None], np.arange(30) % 2, is_ordered=True)
    found, known = Resolutions(data), Resolutions(alone)
    np.testing.assert_array_equal(found.scores(0)[:-1], known.scores(0))
    assert found.scores(0)[-1] == 0
    assert [division.tolist() for division in found.divisions(0)] == [[0, 1, 1, 2], [0, 1, 2, 3]]
    assert [division[:-1].tolist() for division in found.divisions(0)] == [
        division.tolist() for division in known.divisions(0)
    ]


def test_pull_back_is_the_transpose():
    _, _, basis, terms = build()
    rng = np.random.default_rng(3)
    values, d_cells = rng.normal(size=(len(terms), 2)), rng.normal(size=(int(basis.n_states.sum()), 2))
    left, right = float((basis.cells(values) * d_cells).sum()), float((values * basis.pull_back(d_cells)).sum())
    assert left == pytest.approx(right, rel=1e-12)
    assert abs(left) > 1


def test_cells_of_missing_values_are_zero():
    _, _, basis, terms = build()
    cells = basis.cells(np.random.default_rng(4).normal(size=(len(terms), 2)))
    last = np.cumsum(basis.n_states) - 1
    np.testing.assert_array_equal(cells[last], 0)
    assert [len(one) for one in basis.split(cells)] == [column.n_cells for column in basis.columns]
    np.testing.assert_array_equal(np.concatenate(basis.split(cells)), np.delete(cells, last, axis=0))


@pytest.mark.parametrize("features", [(5, 2), (5, 4, 2)])
def test_a_column_with_a_feature_of_one_value_has_no_terms(features):
    _, _, basis, terms = build()
    assert not any(scope == features for scope, _, _ in terms)
    (column,) = [k for k, one in enumerate(basis.columns) if one.features == features]
    assert not basis.split(basis.cells(np.ones((len(terms), 1))))[column].any()


def test_features_with_one_value_have_no_terms_at_all():
    _, _, _, data = random_rows(10, features=[2, 2])
    basis = TermBasis(Resolutions(data), TermStructure(np.array([[-1], [0]])))
    assert basis.cells(np.empty((0, 2))).tolist() == [[0.0, 0.0]] * 6
    assert basis.pull_back(np.ones((6, 2))).shape == (0, 2)


def test_resolutions_depend_on_the_scale_of_weights_only_by_rounding():
    _, _, basis, _ = build()
    _, _, lighter, _ = build(weights=lambda rng, n: rng.integers(0, 4, n) * 2.0**-10)
    np.testing.assert_allclose(lighter.expansion.toarray(), basis.expansion.toarray(), atol=1e-12)


def test_rare_categories_share_a_group_in_edges_and_triples_only():
    X, data, basis, _ = build()
    assert basis.columns[5].n_cells == 40
    n_groups = {column.features: column.n_groups for column in basis.columns}
    assert n_groups[5, 4] == (32, 5)
    assert n_groups[5, 4, 0] == (8, 5, 4)
    codes, counts = np.unique([row[5] for row in X], return_counts=True)
    assert len(codes) < 41
    assert data.n_states[5] == 40
    assert counts.sum() == 150
