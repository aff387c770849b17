"""Hill climbing by classification scores against scores of every neighboring structure from raw rows."""

import itertools

import numpy as np
import pytest
from oracles import family_scores as graphs
from support.family_searches import parents_of, replayed
from support.wrapper_searches import SCORES, SMOOTHINGS, VALIDATIONS, naive_score, random_data, varied_data

from tanlearn import BayesNetClassifier, EncodedData, NaiveBayesClassifier, Structure
from tanlearn.baselines import DiscriminativeHillClimbing, GreedySearch
from tanlearn.baselines import discriminative_climbing as module
from tanlearn.baselines.arc_moves import ArcGraph


def climbed(data, rng=None, **options):
    """Return the search after learning."""
    search = DiscriminativeHillClimbing(gamma=1.25, **options)
    assert search.learn(data, np.random.default_rng(0) if rng is None else rng) == search.structure_
    return search


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
@pytest.mark.parametrize("max_parents", [1, 2])
def test_each_step_is_the_best_move_and_no_move_improves_the_result(score, validation, max_parents):
    for seed in range(2):
        data = random_data(seed, 40, (2, 3, 2, 2), 2 + seed, "integer")
        search = climbed(data, score=score, validation=validation, max_parents=max_parents)
        own, graph = naive_score(data, score, validation), [()] * 4
        for after, value in replayed(search.history_, graph):
            assert value == pytest.approx(own(after), rel=1e-12, abs=1e-15)
            best = max(own(other) for other in graphs.next_graphs(graph, max_parents))
            assert value == pytest.approx(best, rel=1e-11, abs=1e-15)
            assert value > own(graph)
            graph = after
        assert graph == parents_of(search.structure_)
        assert search.score_ >= max(own(other) for other in graphs.next_graphs(graph, max_parents)) - 1e-11


@pytest.mark.parametrize("options", [{"tabu_length": 4}, {"n_restarts": 2}, {"smoothing": SMOOTHINGS[1]}])
def test_scores_of_all_steps_equal_those_from_raw_rows(options):
    data = varied_data(2, "real")
    search = climbed(data, score="margin", **options)
    own = naive_score(data, "margin", smoothing=options.get("smoothing", SMOOTHINGS[0]))
    steps = list(replayed(search.history_, [()] * data.n_features))
    assert all(graphs.is_acyclic(parents) for parents, _ in steps)
    assert [value for _, value in steps] == pytest.approx([own(parents) for parents, _ in steps], rel=1e-11)
    assert search.score_ == max(value for _, value in steps)
    evaluations = [change.n_evaluations for change in search.history_]
    assert evaluations == sorted(evaluations)


def test_restarts_find_the_best_of_all_structures():
    data = random_data(3, 60, (2, 2, 2), 2)
    own = naive_score(data, "conditional-likelihood")
    search = climbed(data, n_restarts=15)
    assert search.score_ == pytest.approx(max(map(own, graphs.all_graphs(3, 2))), rel=1e-11)


def test_evaluations_are_the_structures_next_to_each_step():
    data = random_data(1, 60, (2, 3, 2, 2), 2)
    search = climbed(data)
    total, graph = 0, [()] * 4
    for after, _ in replayed(search.history_, graph):
        total += len(list(graphs.next_graphs(graph, 2)))
        assert [change.n_evaluations for change in search.history_ if change.score == _] == [total] * (
            1 + (sum(a != b for a, b in zip(after, graph, strict=True)) == 2)
        )
        graph = after
    assert search.n_evaluations_ == total + len(list(graphs.next_graphs(graph, 2)))


def test_it_reaches_at_least_the_score_of_greedy_search_in_its_first_steps():
    data = varied_data(1)
    greedy = GreedySearch(score="margin", gamma=1.25)
    greedy.learn(data, None)
    ours = climbed(data, score="margin", max_parents=1)
    first = [change.score for change in greedy.history_]
    assert [change.score for change in ours.history_][: len(first)] == first
    assert ours.score_ >= greedy.score_


def test_candidate_families_need_not_be_kept(monkeypatch):
    data = varied_data(3)
    kept = climbed(data)
    monkeypatch.setattr(module, "_MAX_CELLS", 0)
    assert climbed(data).history_ == kept.history_


def test_search_goes_on_from_a_structure():
    data = varied_data(1)
    initial = Structure([[1, 2], [2, -1], [-1, -1], [-1, -1], [-1, -1]])
    search = climbed(data, initial=initial, score="margin")
    own = naive_score(data, "margin")
    steps = list(replayed(search.history_, [()] * 5))
    assert steps[0][0] == parents_of(initial)
    assert [value for _, value in steps] == pytest.approx([own(parents) for parents, _ in steps], rel=1e-11)
    with pytest.raises(ValueError, match="max_parents=1 augmenting parents per feature, but it has 2 of feature 0"):
        climbed(data, initial=initial, max_parents=1)


def test_an_interrupted_search_keeps_its_best_structure(monkeypatch):
    data = varied_data(2)
    whole, applied = climbed(data), []
    assert len(whole.history_) > 2

    def apply(graph, move, own=ArcGraph.apply):
        if len(applied) == 2:
            raise KeyboardInterrupt
        applied.append(move)
        own(graph, move)

    monkeypatch.setattr(ArcGraph, "apply", apply)
    search = DiscriminativeHillClimbing(gamma=1.25)
    with pytest.raises(KeyboardInterrupt):
        search.learn(data, np.random.default_rng(0))
    assert search.history_ == whole.history_[:2]
    assert search.score_ == whole.history_[1].score


def test_threads_change_nothing():
    data = varied_data(3, "real")
    searches = [climbed(data, n_jobs=n, n_restarts=1, validation=3) for n in (1, 2)]
    assert searches[0].history_ == searches[1].history_


def test_missing_values_are_refused_with_the_remedy():
    data = EncodedData.from_codes([[0, -1], [1, 0], [0, 1]], [0, 1, 1])
    with pytest.raises(ValueError, match="learns from complete rows only"):
        climbed(data)


def test_progress_is_printed_with_verbose(capsys):
    climbed(varied_data(2), verbose=1)
    assert capsys.readouterr().out.startswith("DiscriminativeHillClimbing: add ")


@pytest.mark.parametrize("parameters", [{"score": "bic"}, {"max_parents": 3}, {"tabu_length": -1}, {"max_steps": -1}])
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of DiscriminativeHillClimbing must be"):
        climbed(varied_data(0), **parameters)


def test_classifier_with_it_is_right_where_naive_bayes_is_not():
    X = np.array(list(itertools.product([0, 1], repeat=3)) * 30)
    y = X[:, 0] ^ X[:, 2]
    assert BayesNetClassifier(structure=DiscriminativeHillClimbing()).fit(X, y).score(X, y) == 1
    assert NaiveBayesClassifier().fit(X, y).score(X, y) < 0.8
