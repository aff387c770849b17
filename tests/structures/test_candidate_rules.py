"""Candidate sets with rules, and the structures that are drawn from them, against enumeration."""

import numpy as np
import pytest
from oracles import knowledge as naive
from support.family_searches import parents_of, random_data
from support.random_knowledge import random_knowledge

from tanlearn import Candidates, CandidateSets, Knowledge
from tanlearn.structures.candidate_kinds import make_candidates
from tanlearn.training.structure_state import StructureState

KINDS = ("all", "subset", "heuristic", "order-free", "information", "gain", "unconstrained")


def sets_of(kind, given, n_features=4, n_parents=1, seed=0, **settings):
    """Return the candidates of a kind with knowledge."""
    scores = np.random.default_rng(seed).random((n_features, n_features))
    rules = Knowledge(**given).rules(None, n_features, max_parents=n_parents)
    if kind == "heuristic":
        settings = {"ordering": rules.ordered(np.arange(n_features)), "image_shape": (2, n_features // 2), **settings}
    return make_candidates(
        Candidates(kind, **settings),
        n_features,
        rng=np.random.default_rng(seed),
        information=lambda: scores,
        gains=lambda: scores,
        n_parents=n_parents,
        rules=rules,
    )


def families(sets):
    """Return the selectable sets of parents of each feature."""
    mask = np.ones(sets.n_tables, bool) if sets.selectable is None else sets.selectable
    rows = [tuple(j for j in row if j >= 0) for row in sets.parents.tolist()]
    return [[rows[t] for t in np.flatnonzero(mask & (sets.child == i))] for i in range(sets.n_features)]


@pytest.mark.parametrize("n_parents", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_that_can_be_selected_is_permitted(kind, n_parents):
    if kind == "unconstrained" and n_parents == 2:
        return
    for seed in range(8):
        given = random_knowledge(seed, 4, n_parents)
        sets = sets_of(kind, given, n_parents=n_parents, seed=seed)
        required = [{j for j, i in given["required"] if i == child} for child in range(4)]
        possible = list(naive.structures(4, n_parents, **given))
        for i, own in enumerate(families(sets)):
            assert own
            assert all(required[i] <= set(family) for family in own)
            allowed = {j for parents in possible for j in parents[i]}
            assert all(set(family) <= allowed for family in own)
        assert n_parents == 1 or sets.draws == "independent" or not given["required"]


@pytest.mark.parametrize("kind", ["order-free", "information"])
def test_all_permitted_edges_are_candidates_of_order_free_kinds(kind):
    for seed in range(8):
        given = random_knowledge(seed, 4)
        possible = list(naive.structures(4, 1, **given))
        found = families(sets_of(kind, given))
        for i in range(4):
            assert sorted(found[i]) == sorted({parents[i] for parents in possible})


def test_limits_count_the_optional_parents():
    given = {"required": [(0, 3)], "forbidden": [(1, 2)]}
    found = families(sets_of("order-free", given, n_features=6, n_candidates=1))
    assert found[3] == [(0,)]
    assert all(len(own) == 2 for i, own in enumerate(found) if i != 3)


@pytest.mark.parametrize("n_parents", [1, 2])
@pytest.mark.parametrize("kind", ["order-free", "all"])
def test_the_most_probable_structure_is_the_best_permitted_one(kind, n_parents):
    data = random_data(0, 60, n_states=(2, 2, 2, 2))
    for seed in range(12):
        given = random_knowledge(seed, 4, n_parents)
        sets = sets_of(kind, given, n_parents=n_parents, seed=seed)
        if sets.draws == "acyclic":  # drawn by a greedy algorithm
            continue
        state = StructureState(data, sets)
        can_be = state.phi == 0
        state.phi[can_be] = np.random.default_rng(seed).normal(size=can_be.sum())
        log_p = state.perturb(np.zeros_like(state.phi))
        own = {
            (i, tuple(sorted(j for j in row if j >= 0))): value
            for i, row, value in zip(sets.child.tolist(), sets.parents.tolist(), log_p.tolist(), strict=True)
        }
        value = lambda parents: sum(own.get((i, tuple(p)), -np.inf) for i, p in enumerate(parents))  # noqa: E731, B023
        found = [tuple(sorted(p)) for p in parents_of(sets.structure(state.draw(log_p)))]
        assert naive.permits(found, **given)
        assert value(found) == pytest.approx(max(map(value, naive.structures(4, n_parents, **given))))
        noise = -np.log(-np.log(np.random.default_rng(seed).random((50, len(log_p)))))
        drawn = [parents_of(sets.structure(state.draw(state.perturb(one)))) for one in noise]
        assert all(naive.permits(one, **given) for one in drawn)


def test_other_orderings_and_candidates_are_refused():
    rules = Knowledge(required=[(0, 1)]).rules(None, 3, max_parents=1)
    with pytest.raises(ValueError, match="the edge 0 -> 1 is required, but 1 comes first in the ordering"):
        make_candidates(Candidates("all", ordering=[1, 0, 2]), 3, rng=np.random.default_rng(0), rules=rules)
    with pytest.raises(ValueError, match=r"no candidate of feature 1 has the required parents \[2\]"):
        CandidateSets.from_lists([[], [0], [0]]).requiring([[], [2], []])
