"""Forests with monotone columns: smoothing in all contexts, weights that keep the order, and all values of rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import context_tries as oracle
from oracles import monotone
from sklearn.utils._param_validation import InvalidParameterError
from support.monotone_rows import draw_rows, passengers

from tanlearn import BayesForestClassifier, EncodedData, Knowledge, load, save
from tanlearn.forest.context_tables import ContextTables
from tanlearn.forest.monotone_contexts import MonotoneFamilies, nonincreasing

N_STATES = (4, 3, 5, 3, 2)
DIRECTIONS = (1, 0, -1, 0, 0)


def log_odds_of_grid(model, hidden=()):
    """Return the log odds of all combinations of values, where some features are missing."""
    every = np.array(list(itertools.product(*map(range, N_STATES))))
    every[:, list(hidden)] = -1
    codes = EncodedData.from_codes(every, np.zeros(len(every), int), n_states=N_STATES).codes
    log_p = model.model_.log_joint(codes)
    return (log_p[:, 1] - log_p[:, 0]).reshape(N_STATES)


def largest_violation(log_odds, directions=DIRECTIONS):
    """Return the largest step in the wrong direction between neighbors of a grid."""
    cells = {cell: float(log_odds[cell]) for cell in np.ndindex(*log_odds.shape)}
    return max((abs(cells[a] - cells[b]) for a, b in monotone.violations(cells, directions)), default=0.0)


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("seed", range(4))
def test_families_are_smoothed_in_all_contexts(seed, direction):
    data, parents = draw_rows(seed, N_STATES, 90, missing=0.1), [[1, 3], [], [3, 4, 1], [1], [3]]
    directions, n_ranked = np.array([0, 0, direction, 0, 0]), np.array([4, 3, 4, 3, 2])  # the last value has no order
    rows = data.codes, data.n_states, data.y, data.weights, data.n_classes
    families = [np.array(own, np.intp) for own in parents]
    how = {"smoothing": 1.5, "min_samples": 3}
    free = ContextTables.grow(*rows, families, **how)
    tables = ContextTables.grow(*rows, families, monotone=MonotoneFamilies(directions, n_ranked), **how)
    every = np.array(list(itertools.product(*map(range, N_STATES))) + [[0, 1, v, -1, 0] for v in range(5)])
    codes = EncodedData.from_codes(every, np.zeros(len(every), int), n_states=N_STATES).codes
    for own in (0, 1, 3, 4):  # families without direction are the same
        found, expected = (_family_scores(one, codes, own) for one in (tables, free))
        np.testing.assert_array_equal(found, expected)
    found = _family_scores(tables, codes, 2)
    table = data.codes.T.tolist()
    plain = table, data.y.tolist(), data.weights.tolist(), data.n_states.tolist(), 2, parents[2], 1.5, 3
    known = {}
    for r, row in enumerate(codes.T.tolist()):
        key = tuple(row[j] for j in parents[2])
        if key not in known:
            known[key] = oracle.rising_levels(*plain, row, 4, direction)
        levels = np.log([own[row[2]] for own in known[key]])
        expected = np.zeros((4, 2))
        expected[: len(levels)] = np.diff(levels, axis=0, prepend=0)
        np.testing.assert_allclose(found[:, r], expected, atol=1e-5)
    deepest = found.sum(axis=0)
    log_odds = (deepest[:-5, 1] - deepest[:-5, 0]).reshape(N_STATES)
    assert largest_violation(log_odds[:, :, :4], directions) == 0  # sums of levels are exact


def _family_scores(tables, codes, own):
    """Return the gains of one family, shape (n_levels, n_rows, 2)."""
    weight = np.zeros((len(tables.parents), tables.n_levels))
    weight[own] = 1
    slot = np.broadcast_to(np.arange(tables.n_levels), weight.shape)
    scores = np.zeros((tables.n_levels, codes.shape[1], 2))
    tables.add_scores(codes, weight, np.ascontiguousarray(slot), scores)
    return scores


@pytest.mark.parametrize("weights", ["auto", "shared", None])
@pytest.mark.parametrize("seed", range(4))
def test_log_odds_of_all_values_are_monotone(seed, weights):
    data = draw_rows(seed, N_STATES, 200 + 50 * seed, missing=0.1 * (seed % 2))
    options = {"n_estimators": 5, "weights": weights, "random_state": seed}
    model = BayesForestClassifier(knowledge=Knowledge(increasing=[0], decreasing=[2]), **options).fit_encoded(data)
    free = BayesForestClassifier(**options).fit_encoded(data)
    assert np.ptp(log_odds_of_grid(model)) > 1
    for hidden in ((), (1,), (1, 3), (4,), (0,)):
        assert largest_violation(log_odds_of_grid(model, hidden)) < 1e-12
    assert largest_violation(log_odds_of_grid(free)) > 0.01
    for network, own in zip(model.forest_.members, model.forest_.weights, strict=True):
        assert not np.isin(network.tables.parents, [0, 2]).any()
        assert (own[[0, 2]] >= 0).all()
        assert (np.diff(own[[0, 2]], axis=1) <= 0).all()


def test_interactions_with_other_columns_remain():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 800), rng.integers(0, 2, 800)])
    rises = np.where(X[:, 1] == 1, X[:, 0] > 2, rng.random(800) < 0.5)  # column 0 has an effect only if column 1 is 1
    y = (rises ^ (rng.random(800) < 0.1)).astype(int)
    data = EncodedData.from_codes(X, y, n_states=[6, 2], n_classes=2, is_ordered=[True, False])
    model = BayesForestClassifier(n_estimators=8, knowledge=Knowledge(increasing=[0]), random_state=0).fit_encoded(data)
    every = np.array(list(itertools.product(range(6), range(2))))
    codes = EncodedData.from_codes(every, np.zeros(12, int), n_states=[6, 2]).codes
    log_p = model.model_.log_joint(codes)
    effect = np.diff((log_p[:, 1] - log_p[:, 0]).reshape(6, 2)[[0, -1]], axis=0)[0]
    assert effect[0] < 0.7 < 3 < effect[1]


@pytest.mark.parametrize("options", [{}, {"class_prior": [0.9, 0.1]}, {"class_weight": "balanced"}])
def test_classifiers_are_monotone_in_raw_values(tmp_path, options):
    X, y = passengers()
    knowledge = Knowledge(increasing=["fare"], decreasing=["age"])
    model = BayesForestClassifier(n_estimators=6, knowledge=knowledge, random_state=0, **options)
    model.fit(X, y)
    rows = X.iloc[np.repeat(np.arange(30), 40)].reset_index(drop=True)  # some have missing values
    for name, direction, high in (("fare", 1, 200), ("age", -1, 90)):
        scores = model.predict_log_proba(rows.assign(**{name: np.tile(np.linspace(0, high, 40), 30)}))
        log_odds = direction * (scores[:, 1] - scores[:, 0]).reshape(30, 40)
        assert (np.diff(log_odds, axis=1) >= -1e-12).all()
        assert (log_odds[:, -1] > log_odds[:, 0]).any()
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    assert loaded.knowledge.increasing == ["fare"]
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    contributions = model.explain(X[:9], against="died").sum(axis=1)[:, 1]
    scores = model.predict_log_proba(X[:9])
    np.testing.assert_allclose(contributions, scores[:, 1] - scores[:, 0], atol=1e-9)


def test_ordered_categories_are_ranked_by_their_order():
    X, y = passengers()
    X["age"] = pd.cut(X["age"], [0, 20, 40, 60, 80], labels=["young", "adult", "middle", "old"])
    model = BayesForestClassifier(n_estimators=4, knowledge=Knowledge(decreasing=["age"]), random_state=0).fit(X, y)
    rows = X.iloc[np.repeat(np.arange(20), 4)].reset_index(drop=True)
    ages = pd.Categorical(np.tile(X["age"].cat.categories, 20), X["age"].cat.categories, ordered=True)
    p = model.predict_proba(rows.assign(age=ages))[:, 1].reshape(20, 4)
    assert (np.diff(p, axis=1) <= 1e-12).all()


@pytest.mark.parametrize("weights", [[0.5, 0.9, 0.2], [1.0, -0.3, 0.1], [-1.0, -2.0, 0.5]])
def test_weights_of_levels_are_the_closest_ones_that_do_not_rise(weights):
    found = nonincreasing(np.array(weights))
    best = min(
        ((np.array(own) - weights) @ (np.array(own) - weights), own)
        for own in itertools.product(np.linspace(0, 1, 41), repeat=3)
        if own[0] >= own[1] >= own[2]
    )
    assert found[0] >= found[1] >= found[2] >= 0
    assert (found - weights) @ (found - weights) <= best[0] + 1e-12


def test_invalid_columns_and_methods_are_refused(tmp_path):
    X, y = passengers(60)
    with pytest.raises(ValueError, match=r"increasing\[0\] is X column 'port', which has no order"):
        BayesForestClassifier(knowledge=Knowledge(increasing=["port"])).fit(X, y)
    with pytest.raises(ValueError, match="need exactly two classes, but the data have 3"):
        BayesForestClassifier(knowledge=Knowledge(increasing=["age"])).fit(X, np.resize(["a", "b", "c"], 60))
    with pytest.raises(ValueError, match=r"the edge 'age' -> 'port' is required, but 'age' is .* have no children"):
        BayesForestClassifier(knowledge=Knowledge(required=[("age", "port")], increasing=["age"])).fit(X, y)
    knowledge = Knowledge(required=[("port", "age")], increasing=["age"])
    model = BayesForestClassifier(n_estimators=2, knowledge=knowledge, random_state=0).fit(X, y)
    assert all(structure.parents[0, 0] == 2 for structure in model.structures_)
    for export in (lambda: model.with_bits(8), lambda: model.export_c("forest.h")):
        with pytest.raises(ValueError, match=r"would not be monotone\. Use BoostedTermsClassifier"):
            export()
    with pytest.raises(AttributeError) as caught:
        BayesForestClassifier(weights=None, knowledge=Knowledge(increasing=["age"])).partial_fit(X, y)
    assert "increasing and decreasing need all rows at once. Call fit of tanlearn" in str(caught.value.__cause__)
    with pytest.raises(InvalidParameterError, match="'increasing' parameter of Knowledge must be an"):
        BayesForestClassifier(knowledge=Knowledge(increasing="age")).fit(X, y)


def test_rounding_depends_on_the_knowledge_of_the_fit(tmp_path):
    X, y = passengers(60)
    model = BayesForestClassifier(n_estimators=2, knowledge=Knowledge(increasing=["age"]), random_state=0).fit(X, y)
    save(model.set_params(knowledge=None), tmp_path / "forest.tan")
    for forest in (model, load(tmp_path / "forest.tan")):
        with pytest.raises(ValueError, match=r"would not be monotone\. Use BoostedTermsClassifier"):
            forest.with_bits(8)
    model.fit(X, y).with_bits(8)
    save(model.set_params(knowledge=Knowledge(increasing=["age"])), tmp_path / "forest.tan")
    for forest in (model, load(tmp_path / "forest.tan")):
        assert forest.with_bits(8).n_features_in_ == 3


def test_networks_of_other_directions_are_grown_again():
    X, y = passengers(80)
    model = BayesForestClassifier(n_estimators=2, warm_start=True, random_state=0)
    model.set_params(knowledge=Knowledge(increasing=["age"])).fit(X, y)
    first = model._grown.members
    assert model.set_params(n_estimators=3).fit(X, y)._grown.members[0] is first[0]
    assert model.set_params(knowledge=Knowledge(increasing=["fare"])).fit(X, y)._grown.members[0] is not first[0]
