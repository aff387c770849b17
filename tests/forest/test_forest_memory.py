"""Forests whose networks would exceed the memory limit have fewer networks, the first ones, and issue a warning."""

import numpy as np
import pytest

from tanlearn import BayesEnsembleClassifier, BayesForestClassifier, EncodedData
from tanlearn.forest.forest_network import DrawSettings, draw_parents
from tanlearn.forest.out_of_fold import left_out_folds

RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 4, (120, 5)), RNG.integers(0, 2, 120)
N_COPIES = 1 + 15  # a network of all rows, and those without each fold and each pair of five folds


def limit_to(n_networks, model, monkeypatch):
    """Set the memory limit to that of so many networks of a fitted forest, and a half."""
    size = model.forest_.members[0].tables.n_bytes
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", str((n_networks + 0.5) * N_COPIES * size / 2**30))


def make_forest(**parameters):
    return BayesForestClassifier(**{"n_estimators": 5, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def whole():
    return make_forest().fit(X, Y)


def test_networks_that_do_not_fit_are_not_grown(whole, monkeypatch):
    limit_to(3, whole, monkeypatch)
    with pytest.warns(
        UserWarning, match=r"has 3 instead of 5 networks.* MiB each, grown 16 times .* merge rare"
    ) as own:
        limited = make_forest().fit(X, Y)
    assert len(own) == 1
    assert [list(map(list, one.parents)) for one in limited.structures_] == [
        list(map(list, one.parents)) for one in whole.structures_[:3]
    ]


@pytest.mark.parametrize(("most_a_row", "n_networks"), [(0.2, 1), (0.5, 4)])
def test_networks_with_mostly_empty_entries_have_a_quarter_of_the_limit(whole, monkeypatch, most_a_row, n_networks):
    """Five columns of four values have 40 entries for two classes, one third per row."""
    size = whole.forest_.members[0].tables.n_bytes
    monkeypatch.delenv("TANLEARN_MAX_TABLE_GIB", raising=False)
    monkeypatch.setattr("tanlearn._memory._FIXED", 4.5 * N_COPIES * size)
    monkeypatch.setattr("tanlearn._memory._CELLS_A_ROW", most_a_row)
    with pytest.warns(UserWarning, match=f"has {n_networks} instead of 5 networks"):
        make_forest().fit(X, Y)


@pytest.mark.parametrize("seed", range(3))
def test_candidates_without_permutations_are_all_earlier_features_if_they_are_few(monkeypatch, seed):
    data, found = EncodedData.from_codes(X, Y), []
    for most in (5, 4):
        monkeypatch.setattr("tanlearn.forest.forest_network._MOST_PERMUTED", most)
        rng = np.random.default_rng(seed)
        parents = draw_parents(data.codes, data.n_states, data, DrawSettings(), rng)
        found.append([sorted(own.tolist()) for own in parents])
    assert found[0] == found[1]
    assert sorted(map(len, found[0])) == [0, 1, 2, 3, 4]


def test_at_least_one_network_is_grown(whole, monkeypatch):
    limit_to(0, whole, monkeypatch)
    with pytest.warns(UserWarning, match="has 1 instead of 5 networks"):
        assert len(make_forest().fit(X, Y).forest_.members) == 1


def test_a_forest_that_is_continued_keeps_to_the_limit(whole, monkeypatch):
    model = make_forest(warm_start=True).fit(X, Y)
    limit_to(3, whole, monkeypatch)
    with pytest.warns(UserWarning, match="has 3 instead of 9 networks"):
        model.set_params(n_estimators=9).fit(X, Y)
    assert len(model.forest_.members) == 3


def test_the_forest_of_an_ensemble_keeps_to_the_limit(whole, monkeypatch):
    """The environment variable would limit the other parts, too."""
    size = whole.forest_.members[0].tables.n_bytes
    monkeypatch.delenv("TANLEARN_MAX_TABLE_GIB", raising=False)
    monkeypatch.setattr("tanlearn.forest.learning.fixed_limit", lambda cells_a_row: 3.5 * N_COPIES * size)
    with pytest.warns(UserWarning, match="has 3 instead of 5 networks"):
        BayesEnsembleClassifier(forest=BayesForestClassifier(n_estimators=5), random_state=0).fit(X, Y)


def test_forests_of_batches_have_all_networks(monkeypatch):
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", "1e-9")
    model = make_forest(weights=None).partial_fit(X, Y, classes=[0, 1]).partial_fit(X, Y)
    assert len(model.forest_.members) == 5


def test_folds_that_are_left_out():
    assert left_out_folds(100, 3, is_nested=True) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert (
        left_out_folds(100, 3, is_nested=False)
        == left_out_folds(5_000, 3, is_nested=True)
        == [(f, f) for f in range(3)]
    )
    assert left_out_folds(100_000, 5, is_nested=True) == [(0, 0)]
