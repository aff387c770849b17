"""Hill climbing with any score and moves: neighbors by enumeration, local optima, records and errors."""

import itertools

import networkx
import numpy as np
import pytest
from support.wrapper_searches import naive_score, varied_data

from tanlearn import BayesNetClassifier, EncodedData, Structure
from tanlearn.baselines import GreedySearch, HillClimbing, LocalSearch, one_arc_away, structures_along
from tanlearn.checks import check_learner


def arcs_of(structure):
    """Return the arcs (parent, child) of a structure."""
    return frozenset((j, i) for i, row in enumerate(structure.parents.tolist()) for j in row if j >= 0)


def neighbors_by_enumeration(arcs, n_features, max_parents):
    """Return all acyclic sets of arcs that differ by one arc, or by the direction of one."""
    pairs = list(itertools.permutations(range(n_features), 2))
    changed = [arcs - {arc} for arc in arcs]
    added = [(arcs | {arc}, arc) for arc in pairs if arc not in arcs]
    added += [(arcs - {(j, i)} | {(i, j)}, (i, j)) for j, i in arcs]
    for found, (_, child) in added:
        if sum(i == child for _, i in found) <= max_parents:
            changed.append(found)
    return {found for found in changed if networkx.is_directed_acyclic_graph(networkx.DiGraph(list(found)))}


@pytest.mark.parametrize("max_parents", [1, 2, 3])
@pytest.mark.parametrize("parents", [[-1] * 4, [-1, 0, 1, 1], [[1, 2], [2, -1], [-1, -1], [0, 1]]], ids=str)
def test_neighbors_are_all_acyclic_graphs_one_arc_away(parents, max_parents):
    structure = Structure(parents)
    found = [arcs_of(neighbor) for neighbor in one_arc_away(structure, max_parents)]
    assert len(found) == len(set(found))
    assert set(found) == neighbors_by_enumeration(arcs_of(structure), 4, max_parents)


def by_raw_rows(data, score):
    """Return a score from raw rows, for structures."""
    of_parents = naive_score(data, score)
    return lambda structure, rows: of_parents([[j for j in row if j >= 0] for row in structure.parents.tolist()])


@pytest.mark.parametrize("score", ["accuracy", "margin", "conditional-likelihood"])
def test_a_climb_ends_where_no_neighbor_is_better(score):
    data = varied_data(2)
    value = by_raw_rows(data, score)
    search = LocalSearch(value, max_parents=2)
    structure = search.learn(data, None)
    assert search.score_ == value(structure, data) > value(Structure.naive_bayes(data.n_features), data)
    assert all(value(neighbor, data) <= search.score_ for neighbor in one_arc_away(structure, 2))


def test_with_additions_only_it_is_greedy_search():
    data = varied_data(3)

    def additions(structure):
        return (one for one in one_arc_away(structure) if one.n_edges > structure.n_edges)

    greedy = GreedySearch(score="conditional-likelihood")
    search = LocalSearch(by_raw_rows(data, "conditional-likelihood"), neighbors=additions)
    assert search.learn(data, None) == greedy.learn(data, None)
    ours, theirs = ([(one.child, one.parents) for one in found.history_] for found in (search, greedy))
    assert ours == theirs
    assert search.score_ == pytest.approx(greedy.score_, rel=1e-12)


def test_histories_lead_to_the_structure():
    data, initial = varied_data(2), Structure([-1, 0, 0, -1])
    search = LocalSearch(by_raw_rows(data, "accuracy"), initial=initial)
    structure = search.learn(data, None)
    along = [found for _, found in structures_along(search.history_, data.n_features)]
    assert (along[0], along[-1]) == (initial, structure)
    assert [one.step for one in search.history_] == sorted(one.step for one in search.history_)
    assert search.history_[-1].n_evaluations <= search.n_evaluations_


def test_steps_are_limited_and_interrupted_searches_keep_their_structure():
    data = varied_data(2)
    value = by_raw_rows(data, "accuracy")
    whole, one = LocalSearch(value), LocalSearch(value, max_steps=1)
    whole.learn(data, None)
    one.learn(data, None)
    assert max(change.step for change in one.history_) == 1 < max(change.step for change in whole.history_)
    calls = []

    def interrupt(structure, rows):
        calls.append(structure)
        if len(calls) > one.n_evaluations_:
            raise KeyboardInterrupt
        return value(structure, rows)

    search = LocalSearch(interrupt)
    with pytest.raises(KeyboardInterrupt):
        search.learn(data, None)
    assert search.structure_ == one.structure_


@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_with_a_decomposable_score_it_is_hill_climbing(score):
    data = varied_data(2)
    search, climbing = LocalSearch(score, max_parents=2), HillClimbing(score=score, max_parents=2)
    search.learn(data, None)
    climbing.learn(data, None)
    assert search.score_ == pytest.approx(climbing.score_, rel=1e-9)


def edges(structure, data):
    """Prefer as many edges as possible, a score that pickle finds."""
    return float(structure.n_edges)


def test_it_is_a_structure_learner_like_others(capsys):
    check_learner(LocalSearch(edges))
    X, y = np.random.default_rng(0).integers(0, 2, (60, 4)), np.arange(60) % 2
    model = BayesNetClassifier(structure=LocalSearch(edges, verbose=1)).fit(X, y)
    assert model.structure_.n_edges == 3
    assert capsys.readouterr().out.splitlines()[-1] == "LocalSearch: step 3, score 3"


DATA = EncodedData.from_codes(np.zeros((4, 3), int), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"score": lambda structure, data: np.nan}, ValueError, r"finite number, got nan for parents \[\[-1, -1\]"),
        ({"score": edges, "neighbors": lambda structure: [[0, -1]]}, TypeError, "of type list"),
        ({"score": edges, "neighbors": lambda s: [Structure([-1])]}, ValueError, "the structure has 1 features"),
        ({"score": edges, "initial": Structure([-1])}, ValueError, "the structure has 1 features"),
        ({"score": "accuracy"}, ValueError, "'score' parameter of LocalSearch must be"),
        ({"score": edges, "max_parents": 0}, ValueError, "'max_parents' parameter"),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        LocalSearch(**arguments).learn(DATA, None)
