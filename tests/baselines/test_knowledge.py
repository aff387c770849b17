"""Structure learners with knowledge against the enumeration of all structures that the knowledge permits."""

import numpy as np
import pandas as pd
import pytest
from oracles import knowledge as naive
from oracles import networks
from support.family_searches import naive_score, parents_of, random_data, rows_of
from support.random_knowledge import random_knowledge

from tanlearn import BayesNetClassifier, EncodedData, Knowledge, PairCounts, Structure, load, save
from tanlearn.baselines import (
    ChowLiu,
    DiscriminativeHillClimbing,
    ExactMarginSearch,
    ExplainingAway,
    GreedySearch,
    HillClimbing,
    K2Search,
    KDependence,
    LocalSearch,
    MarkovBlanketClassifier,
    OrderSearch,
    RandomTree,
    SimulatedAnnealing,
    SuperParent,
    structures_along,
)
from tanlearn.checks import check_learner

TREES = {
    "chow-liu": ChowLiu(),
    "chow-liu by bic": ChowLiu(penalty="bic"),
    "explaining away": ExplainingAway(),
    "random tree": RandomTree(),
    "kdb": KDependence(k=1),
    "k2": K2Search(max_parents=1),
    "climbing": HillClimbing(max_parents=1),
    "greedy": GreedySearch(score="conditional-likelihood"),
    "super-parent": SuperParent(score="conditional-likelihood"),
    "order": OrderSearch(score="margin"),
    "annealing": SimulatedAnnealing(n_steps=200),
    "annealing without greedy search": SimulatedAnnealing(n_steps=20),
    "exact": ExactMarginSearch(),
    "local": LocalSearch("bic"),
}
PAIRS = {
    "kdb": KDependence(k=2),
    "k2": K2Search(),
    "climbing": HillClimbing(score="aic", tabu_length=3, n_restarts=2),
    "discriminative": DiscriminativeHillClimbing(n_restarts=1, n_random_moves=3),
    "order": OrderSearch(max_parents=2, score="margin"),
    "order with few candidates": OrderSearch(max_parents=2, n_candidates=1, score="margin"),
    "exact": ExactMarginSearch(max_parents=2),
    "local": LocalSearch("bic", max_parents=2),
}
CASES = [(name, learner, 1) for name, learner in TREES.items()] + [(n, learner, 2) for n, learner in PAIRS.items()]


def learned(learner, data, seed=0):
    """Return the structure that a learner learns."""
    return learner.learn(data, np.random.default_rng(seed))


def with_knowledge(learner, given):
    """Return a copy of a learner with knowledge."""
    return type(learner)(**{**learner.get_params(), "knowledge": Knowledge(**given)})


@pytest.mark.parametrize(("name", "learner", "max_parents"), CASES, ids=[f"{c[0]}, {c[2]}" for c in CASES])
def test_every_learner_keeps_to_its_knowledge(name, learner, max_parents):
    n_edges = set()
    for seed in range(6):
        data = random_data(seed, n_states=(2, 3, 2, 3), n_classes=3)
        given = random_knowledge(seed, 4, max_parents)
        own = with_knowledge(learner, given)
        found = learned(own, data)
        assert naive.permits(parents_of(found), **given)
        assert naive.is_acyclic(parents_of(found))
        assert max(map(len, parents_of(found))) <= max_parents
        n_edges.add(found.n_edges - len(given["required"]))
        if getattr(own, "history_", []):
            structures = [structure for _, structure in structures_along(own.history_, 4)]
            assert found in structures
    assert max(n_edges) > 0  # knowledge does not keep all edges away


@pytest.mark.parametrize("name", sorted(TREES))
def test_empty_knowledge_changes_nothing(name):
    data = random_data(3, n_states=(2, 3, 2, 3, 2), n_classes=2)
    if name != "random tree":  # draws its parents in another way
        assert learned(with_knowledge(TREES[name], {}), data) == learned(TREES[name], data)


@pytest.mark.parametrize("name", sorted(set(TREES) - {"exact"}))
def test_learners_with_knowledge_pass_the_checks(name):
    check_learner(with_knowledge(TREES[name], {"required": [(4, 1)], "forbidden": [(0, 2)], "tiers": [[3], [0, 4]]}))


def gains_of(data, minus_marginal):
    """Return I(X_i; X_j | C) of all pairs, or explaining-away residuals, from the raw rows."""
    X, y = data.codes.T.astype(int), data.y
    d, gains = data.n_features, np.zeros((data.n_features, data.n_features))
    for i in range(d):
        for j in range(d):
            table = np.zeros((data.n_states[i], data.n_states[j], data.n_classes))
            np.add.at(table, (X[:, i], X[:, j], y), 1)
            if i != j:
                gains[i, j] = networks.conditional_mutual_information(table)
                if minus_marginal:
                    gains[i, j] -= networks.conditional_mutual_information(table.sum(axis=2, keepdims=True))
    return gains


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["spanning", "penalty", "residuals"])
def test_no_permitted_forest_has_a_larger_weight(seed, kind):
    data = random_data(seed, 60, n_states=(2, 3, 2, 2, 3), n_classes=2)
    given = random_knowledge(seed, 5)
    gains = gains_of(data, kind == "residuals")
    learner = {"spanning": ChowLiu(), "penalty": ChowLiu(penalty=1.0), "residuals": ExplainingAway()}[kind]
    if kind == "penalty":
        gains = gains - np.outer(data.n_states - 1, data.n_states - 1) * data.n_classes / data.n_samples
    weight = lambda parents: sum(gains[i, j] for i, own in enumerate(parents) for j in own)  # noqa: E731
    best = max(weight(parents) for parents in naive.structures(5, 1, **given))
    own = with_knowledge(learner, given)
    found = learned(own, data)
    assert naive.permits(parents_of(found), **given)
    assert weight(parents_of(found)) == pytest.approx(best, abs=1e-9)
    counts = PairCounts(data.n_states, data.n_classes).update(data)
    assert own.from_counts(counts) == found


def test_a_spanning_tree_keeps_edges_without_information():
    rng = np.random.default_rng(0)
    x = np.repeat(rng.permutation(np.repeat([0, 1], 8))[:, np.newaxis], 3, axis=1)
    x[:, 1] = np.tile([0, 1], 8)
    x[:, 2] = 0  # a constant has no information
    data = EncodedData.from_codes(x, rng.integers(0, 2, 16), n_states=[2, 2, 2])
    found = learned(ChowLiu(knowledge=Knowledge(forbidden=[(0, 2)])), data)
    assert found.n_edges == 2


def test_the_first_possible_root_is_the_most_informative_feature():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    x = np.stack([np.where(rng.random(400) < noise, rng.integers(0, 2, 400), y) for noise in (0.9, 0.2, 0.5)], axis=1)
    data = EncodedData.from_codes(x, y)
    assert learned(ChowLiu(), data).parent[1] == -1
    assert learned(ChowLiu(knowledge=Knowledge(forbidden=[(0, 1), (2, 1)])), data) == learned(ChowLiu(), data)
    found = learned(ChowLiu(knowledge=Knowledge(required=[(0, 1)])), data)
    assert found.parent.tolist().count(-1) == 1
    assert found.parent[1] == 0
    tiers = Knowledge(tiers=[[0, 2], [1]])
    assert learned(ChowLiu(knowledge=tiers), data).parent[2] == -1  # of features 0 and 2, the more informative one


def test_a_given_root_stays_without_parent():
    data = random_data(0, n_states=(2, 3, 2, 3), n_classes=2)
    for root in range(4):
        found = learned(ChowLiu(root=root, knowledge=Knowledge(forbidden=[(0, 1), (2, 3)])), data)
        assert found.parent[root] == -1
    with pytest.raises(ValueError, match="root=1 has no augmenting parent, but the edge 0 -> 1 is required"):
        learned(ChowLiu(root=1, knowledge=Knowledge(required=[(0, 1)])), data)


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize("max_parents", [1, 2])
def test_restarts_find_the_best_permitted_graph(score, max_parents):
    for seed in range(4):
        data = random_data(seed)
        given = random_knowledge(seed, 4, max_parents)
        own = naive_score(data, score)
        search = with_knowledge(HillClimbing(score=score, max_parents=max_parents, n_restarts=30), given)
        learned(search, data)
        assert search.score_ == pytest.approx(max(map(own, naive.structures(4, max_parents, **given))), abs=1e-7)


def test_exact_search_finds_the_best_permitted_structure():
    for seed in range(3):
        data = random_data(seed, 40)
        given = random_knowledge(seed, 4)
        search = with_knowledge(ExactMarginSearch(), given)
        learned(search, data)
        scores = []
        for parents in naive.structures(4, 1, **given):
            start = Structure([own[0] if own else -1 for own in parents])
            fixed = DiscriminativeHillClimbing(score="margin", max_parents=1, initial=start, max_steps=0)
            learned(fixed, data)
            scores.append(fixed.score_)
        assert search.score_ == pytest.approx(max(scores), abs=1e-6)


def test_knowledge_by_name_does_not_depend_on_the_order_of_columns():
    data = random_data(1, 200, n_states=(2, 3, 2, 3))
    rows = np.array(rows_of(data))
    names = ["b", "d", "a", "c"]
    frame, y = pd.DataFrame(rows[:, :4].astype(str), columns=names), rows[:, 4]
    knowledge = Knowledge(required=[("d", "a")], forbidden=[("b", "c")], tiers=[["d"], ["b"]])
    for learner in (ChowLiu, KDependence, HillClimbing, K2Search, GreedySearch):
        networks_found = []
        for order in (names, sorted(names), sorted(names, reverse=True)):
            model = BayesNetClassifier(structure=learner(knowledge=knowledge), random_state=0).fit(frame[order], y)
            networks_found.append(set(model.to_networkx().edges))
        assert networks_found[0] == networks_found[1] == networks_found[2]
        assert ("d", "a") in networks_found[0]
        assert not {("b", "c"), ("b", "d")} & networks_found[0]


def test_batches_files_and_unknown_names(tmp_path):
    data = random_data(1, 200, n_states=(2, 3, 2, 3))
    rows = np.array(rows_of(data))
    frame, y = pd.DataFrame(rows[:, :4].astype(str), columns=list("abcd")), rows[:, 4]
    knowledge = Knowledge(required=[("d", "a")], tiers=(("d",), ("b", "c")))
    model = BayesNetClassifier(structure=ChowLiu(knowledge=knowledge)).fit(frame, y)
    batches = BayesNetClassifier(structure=ChowLiu(knowledge=knowledge))
    for part in (slice(0, 100), slice(100, 200)):
        batches.partial_fit(frame[part], y[part], classes=[0, 1])
    assert batches.structure_ == model.structure_
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    assert loaded.structure.knowledge.get_params() == knowledge.get_params()
    assert loaded.fit(frame, y).structure_ == model.structure_
    with pytest.raises(ValueError, match=r"required\[0\] contains 'd', which is not a column of the data"):
        model.fit(frame.rename(columns={"d": "e"}), y)


def test_contradictions_with_other_parameters_are_refused():
    data, knowledge = random_data(0), Knowledge(required=[(0, 1)], forbidden=[(2, 3)])
    for learner in (
        HillClimbing,
        DiscriminativeHillClimbing,
        GreedySearch,
        SuperParent,
        SimulatedAnnealing,
        LocalSearch,
    ):
        with pytest.raises(ValueError, match="initial lacks the edge 0 -> 1, which the knowledge requires"):
            learned(learner(initial=Structure([-1, -1, 0, -1]), knowledge=knowledge), data)
        with pytest.raises(ValueError, match="initial contains the edge 2 -> 3, which the knowledge does not allow"):
            learned(learner(initial=Structure([-1, 0, -1, 2]), knowledge=knowledge), data)
        with pytest.raises(ValueError, match="features"):
            learned(learner(initial=Structure([-1, 0]), knowledge=knowledge), data)
    for learner in (K2Search, OrderSearch, RandomTree):
        with pytest.raises(ValueError, match="the edge 0 -> 1 is required, but 1 comes first in the ordering"):
            learned(learner(ordering=[1, 0, 2, 3], knowledge=knowledge), data)
    with pytest.raises(ValueError, match="1 has 1 required parents, 0, but this learner allows at most 0"):
        learned(KDependence(k=0, knowledge=knowledge), data)
    with pytest.raises(ValueError, match=r"search.knowledge must be None.*BayesNetClassifier\(structure=HillClimbing"):
        MarkovBlanketClassifier(search=HillClimbing(knowledge=knowledge)).fit(data.codes.T, data.y)
