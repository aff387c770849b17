"""Forests with knowledge: every network has all required and no forbidden edges."""

import numpy as np
import pandas as pd
import pytest
from oracles import knowledge as naive
from support.family_searches import parents_of
from support.random_knowledge import random_knowledge

from tanlearn import BayesForestClassifier, Knowledge, load, save


def rows(n=200, seed=0):
    """Return five columns, one of them numeric with missing values, and a class of all of them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 3, (n, 5)).astype(str), columns=list("abcde"))
    y = (X["a"] == X["b"]) ^ (X["c"] == X["d"]) ^ (rng.random(n) < 0.1)
    X["e"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + y)
    return X, y.to_numpy()


def by_name(given):
    """Return knowledge of positions as knowledge of names."""
    name = "abcde".__getitem__
    edges = {key: [tuple(map(name, edge)) for edge in given[key]] for key in ("required", "forbidden")}
    return Knowledge(**edges, tiers=[list(map(name, tier)) for tier in given["tiers"]])


@pytest.mark.parametrize("weights", ["auto", None])
@pytest.mark.parametrize("seed", range(5))
def test_all_networks_keep_to_their_knowledge(seed, weights):
    X, y = rows(seed=seed)
    given = random_knowledge(seed, 5, 2)
    model = BayesForestClassifier(n_estimators=6, weights=weights, knowledge=by_name(given), random_state=0)
    model.fit(X, y)
    for structure in model.structures_:
        parents = parents_of(structure)
        assert naive.is_acyclic(parents)
        assert naive.permits(parents, **given)


def test_required_edges_come_first_and_may_be_all():
    X, y = rows()
    knowledge = Knowledge(required=[("a", "c"), ("e", "c")])
    model = BayesForestClassifier(n_estimators=4, max_parents=2, knowledge=knowledge, random_state=0).fit(X, y)
    assert all(set(parents_of(structure)[2]) == {0, 4} for structure in model.structures_)
    more = BayesForestClassifier(n_estimators=4, max_parents=4, knowledge=knowledge, random_state=0).fit(X, y)
    assert all(structure.parents[2, :2].tolist() == [0, 4] for structure in more.structures_)


def test_a_required_parent_with_one_value_is_kept():
    X, y = rows()
    X["a"] = "x"
    model = BayesForestClassifier(n_estimators=2, knowledge=Knowledge(required=[("a", "b")]), random_state=0)
    model.fit(X, y)
    assert all(0 in parents_of(structure)[1] for structure in model.structures_)


def test_knowledge_without_edges_changes_nothing():
    X, y = rows()
    one, other = (
        BayesForestClassifier(n_estimators=3, knowledge=knowledge, random_state=0).fit(X, y)
        for knowledge in (None, Knowledge())
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_batches_files_warm_starts_and_errors(tmp_path):
    X, y = rows()
    knowledge = Knowledge(required=[("b", "a")], tiers=[["c"], ["d"]])
    model = BayesForestClassifier(n_estimators=3, weights=None, knowledge=knowledge, random_state=0)
    model.partial_fit(X[:100], y[:100], classes=[False, True]).partial_fit(X[100:], y[100:])
    assert all(3 not in parents_of(structure)[2] for structure in model.structures_)
    save(model, tmp_path / "model.tan")
    assert load(tmp_path / "model.tan").knowledge.get_params() == knowledge.get_params()
    warm = BayesForestClassifier(n_estimators=2, knowledge=knowledge, warm_start=True, random_state=0).fit(X, y)
    first = warm._grown.members
    warm.set_params(n_estimators=3).fit(X, y)
    assert all(one is other for one, other in zip(warm._grown.members[:2], first, strict=True))
    warm.set_params(knowledge=Knowledge(required=[("a", "b")])).fit(X, y)  # other networks
    assert all(0 in parents_of(structure)[1] for structure in warm.structures_)
    with pytest.raises(ValueError, match="'a' has 1 required parents, 'b', but this learner allows at most 0"):
        BayesForestClassifier(max_parents=0, knowledge=knowledge).fit(X, y)
    with pytest.raises(ValueError, match=r"required\[0\] contains 'z', which is not a column"):
        BayesForestClassifier(knowledge=Knowledge(required=[("z", "a")])).fit(X, y)
