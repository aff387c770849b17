"""Networks of terms with knowledge, against the enumeration of all structures that the knowledge permits."""

import numpy as np
import pandas as pd
import pytest
from oracles import knowledge as naive
from support.family_searches import parents_of
from support.random_knowledge import random_knowledge

from tanlearn import EncodedData, Knowledge, TermNetClassifier, load, save
from tanlearn.structures.structures import Structure
from tanlearn.terms.gains import parents_of_gains, with_triples
from tanlearn.terms.learning import learn_terms


def symmetric(rng, d):
    """Return random gains, some of them negative."""
    gains = np.tril(rng.normal(0.4, 1.0, (d, d)), -1)
    return gains + gains.T


def total_gain(parents, gains):
    return sum(gains[i, j] for i, own in enumerate(parents) for j in own)


def of_table(parents):
    return [tuple(j for j in row if j >= 0) for row in np.asarray(parents).tolist()]


@pytest.mark.parametrize("seed", range(25))
def test_trees_have_the_largest_gain_of_all_that_are_permitted(seed):
    rng = np.random.default_rng(seed)
    gains, given, by_name = symmetric(rng, 5), random_knowledge(seed, 5), rng.permutation(5)
    found = of_table(parents_of_gains(gains, 1, by_name, Knowledge(**given).rules(None, 5, max_parents=3)))
    assert naive.permits([set(own) for own in found], **given)
    best = max(total_gain(parents, gains) for parents in naive.structures(5, 1, **given))
    assert total_gain(found, gains) == pytest.approx(best)


@pytest.mark.parametrize("n_parents", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_networks_keep_required_and_leave_out_forbidden_edges(seed, n_parents):
    rng = np.random.default_rng(seed)
    gains, given = symmetric(rng, 5), random_knowledge(seed, 5, 3)
    rules = Knowledge(**given).rules(None, 5, max_parents=3)
    table = parents_of_gains(gains, n_parents, rng.permutation(5), rules)
    found = of_table(table)
    assert naive.permits([set(own) for own in found], **given)
    assert naive.is_acyclic(found)
    for i, own in enumerate(found):
        n_required = sum(child == i for _, child in given["required"])
        assert len(own) == len(set(own)) <= max(n_parents, n_required)
        assert all(gains[i, j] > 0 or (j, i) in given["required"] for j in own)
    triples = [(1.0, (0, 1, 2)), (0.9, (1, 2, 3)), (0.8, (2, 3, 4)), (0.7, (0, 2, 4))]
    structure = with_triples(table, triples, 3, 3, np.arange(5), rules)
    assert naive.permits([set(own) for own in of_table(structure.parents)], **given)
    assert naive.is_acyclic(of_table(structure.parents))


def test_without_rules_that_exclude_edges_structures_are_those_without_knowledge():
    rng = np.random.default_rng(0)
    for n_parents in (1, 2):
        gains, by_name = symmetric(rng, 6), rng.permutation(6)
        rules = Knowledge().rules(None, 6, max_parents=n_parents)
        one, other = (Structure(parents_of_gains(gains, n_parents, by_name, own)) for own in (None, rules))
        assert [set(own) for own in of_table(one.parents)] == [set(own) for own in of_table(other.parents)]


def rows(seed, n=240):
    """Return rows whose class depends on all pairs of four features, and on the second one."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 4))
    same = (X[:, :1] == X[:, 1:]).sum(axis=1) + (X[:, 1] == X[:, 2]) + (X[:, 2] == X[:, 3])
    y = (same + X[:, 1] + rng.normal(size=n) > 2.5).astype(int)
    return EncodedData.from_codes(X, y, n_states=[3] * 4, is_ordered=True)


@pytest.mark.parametrize("max_parents", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_fitted_networks_keep_to_their_knowledge(seed, max_parents):
    given = random_knowledge(seed + 1, 4, max_parents)
    rules = Knowledge(**given).rules(None, 4, max_parents=max_parents)
    outcome = learn_terms(rows(seed), max_parents, rules=rules)
    assert naive.permits(parents_of(outcome.network.structure), **given)


def test_required_edges_remain_where_features_have_no_effect_and_without_folds():
    rng = np.random.default_rng(0)
    rules = Knowledge(required=[(0, 2)]).rules(None, 3, max_parents=1)
    noise = EncodedData.from_codes(rng.integers(0, 3, (200, 3)), rng.integers(0, 2, 200), n_states=[3] * 3)
    outcome = learn_terms(noise, 1, rules=rules)
    assert outcome.held_out is None  # class frequencies are as good
    assert parents_of(outcome.network.structure) == [(), (), (0,)]
    single = EncodedData.from_codes([[0, 1, 2], [1, 0, 2]], [0, 1], n_states=[3] * 3)
    assert parents_of(learn_terms(single, 1, rules=rules).network.structure) == [(), (), (0,)]


def test_names_files_and_errors(tmp_path):
    data = rows(0)
    X = pd.DataFrame(data.codes.T.astype(float), columns=list("abcd"))
    knowledge = Knowledge(required=[("d", "a")], forbidden=[("b", "c"), ("c", "b")])
    model = TermNetClassifier(knowledge=knowledge).fit(X, data.y)
    parents = parents_of(model.structure_)
    assert parents[0] == (3,)
    assert 1 not in parents[2]
    assert 2 not in parents[1]
    save(model, tmp_path / "model.tan")
    assert load(tmp_path / "model.tan").knowledge.get_params() == knowledge.get_params()
    with pytest.raises(ValueError, match="the edge 'd' -> 'a' is required, but 'a' is in increasing or decreasing"):
        TermNetClassifier(knowledge=knowledge, increasing=["a"]).fit(X, data.y)
    with pytest.raises(ValueError, match="'a' has 1 required parents, 'd', but this learner allows at most 0"):
        TermNetClassifier(knowledge=knowledge, max_parents=0).fit(X, data.y)
    model = TermNetClassifier(knowledge=knowledge, increasing=["b"]).fit(X, data.y)
    parents = parents_of(model.structure_)
    assert parents[0] == (3,)
    assert not parents[1]
    assert all(1 not in own for own in parents)
    with pytest.raises(ValueError, match="The 'knowledge' parameter of TermNetClassifier must be an instance of"):
        TermNetClassifier(knowledge=[("d", "a")]).fit(X, data.y)
