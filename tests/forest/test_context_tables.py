"""Tables of a network hold the contexts of all of its families."""

import numpy as np
import pytest
from oracles import context_tries as oracle
from support.forests import make

from tanlearn import EncodedData
from tanlearn.forest import context_tables as module
from tanlearn.forest.context_tables import ContextTables


def grow(data, parents, **how):
    """Return the tables of lists of parents."""
    families = [np.array(own, np.intp) for own in parents]
    rows = data.codes, data.n_states, data.y, data.weights, data.n_classes
    return ContextTables.grow(*rows, families, **{"smoothing": 1.0, "min_samples": 2, **how})


def scores_of(tables, data):
    """Return the sum of all gains of rows."""
    d, scores = data.n_features, np.zeros((1, data.n_samples, data.n_classes))
    shape = d, tables.n_levels
    tables.add_scores(data.codes, np.ones(shape), np.zeros(shape, np.intp), scores)
    return scores[0]


def expected_of(data, parents, smoothing, min_samples):
    """Return the same by the oracle."""
    table, scores = data.codes.T.tolist(), np.zeros((data.n_samples, data.n_classes))
    rows = table, data.y, data.weights, data.n_states, data.n_classes
    for r, row in enumerate(table):
        for child, own in enumerate(parents):
            scores[r] += np.sum(oracle.gains(*rows, child, list(own), smoothing, min_samples, row) or [[0.0]], axis=0)
    return scores


@pytest.mark.parametrize("weights", [None, "real"])
def test_tables_are_the_contexts_of_all_families(weights):
    sample_weight = None if weights is None else np.random.default_rng(1).random(60) + 0.1
    data, parents = make(60, 4, 2, gaps=0.1, weights=sample_weight), [[], [0], [1, 0, 3], [2]]
    tables = grow(data, parents, smoothing=2.0)
    assert tables.n_levels == 4
    assert tables.parents.tolist() == [[-1, -1, -1], [0, -1, -1], [1, 0, 3], [2, -1, -1]]
    np.testing.assert_allclose(scores_of(tables, data), expected_of(data, parents, 2.0, 2), rtol=1e-5, atol=1e-5)


def small_contexts(seed):
    """Return rows and families of three parents, most of whose contexts are too small to be split to the end."""
    rng = np.random.default_rng(seed)
    data = EncodedData.from_codes(rng.integers(0, 3, (60, 4)), rng.integers(0, 2, 60), n_states=[3] * 4, n_classes=2)
    return data, [[1, 2, 3], [0, 2, 3], [1, 0, 3], [2, 1, 0]]


@pytest.mark.parametrize("seed", range(10))
def test_the_last_context_of_a_family_does_not_run_into_the_next(seed):
    data, parents = small_contexts(seed)
    tables = grow(data, parents, min_samples=12)
    np.testing.assert_allclose(scores_of(tables, data), expected_of(data, parents, 1.0, 12), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_missing_parent_of_many_values_ends_the_levels_of_its_family(seed):
    rng = np.random.default_rng(seed)
    codes = np.c_[rng.integers(0, 3, (80, 3)), np.arange(80) % 300, np.arange(80) + 220]
    codes[rng.random(codes.shape) < 0.1] = -1
    data = EncodedData.from_codes(codes, rng.integers(0, 2, 80), n_states=[3, 3, 3, 300, 300], n_classes=2)
    assert data.codes.dtype == np.uint16
    parents = [[3, 1, 2], [4, 0, 2], [3, 4, 0], [0, 4, 1], [3, 0, 1]]  # identifiers first: roots are all there is
    tables = grow(data, parents, min_samples=12)
    np.testing.assert_allclose(scores_of(tables, data), expected_of(data, parents, 1.0, 12), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_families", [0, 1, 2, 3])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_several_groups_of_families_make_the_tables_of_one(monkeypatch, n_families, gaps):
    data, parents = make(80, 6, gaps=gaps), [[1, 2], [], [5, 0, 1], [4], [3, 2, 0], [0, 1]]
    together = grow(data, parents)
    monkeypatch.setattr(module, "_ROOM", n_families * 80 * 4)  # at least one family
    apart = grow(data, parents)
    for name in ("n_states", "parents", "root", "gain", "unseen"):
        np.testing.assert_array_equal(getattr(apart, name), getattr(together, name), err_msg=name)
    for name, own, other in zip(apart.trie._fields, apart.trie, together.trie, strict=True):
        np.testing.assert_array_equal(own, other, err_msg=name)
        assert own.dtype == other.dtype
