"""Hill climbing over arcs against enumeration of all graphs and all moves."""

import itertools

import numpy as np
import pytest
from oracles import family_scores as naive
from support.family_searches import naive_score, parents_of, random_data, replayed

from tanlearn import BayesNetClassifier, EncodedData, NaiveBayesClassifier, Structure
from tanlearn.baselines import HillClimbing, structures_along
from tanlearn.baselines.arc_moves import ArcGraph, Move
from tanlearn.baselines.family_scores import FAMILY_SCORES


@pytest.mark.parametrize("score", FAMILY_SCORES)
@pytest.mark.parametrize("max_parents", [1, 2, 3])
def test_no_move_improves_the_result(score, max_parents):
    for seed in range(4):
        data = random_data(seed, n_states=(2, 3, 2, 3), n_classes=3)
        search = HillClimbing(score=score, max_parents=max_parents)
        found = parents_of(search.learn(data, np.random.default_rng(0)))
        own = naive_score(data, score)
        assert search.score_ == pytest.approx(own(found), abs=1e-7)
        assert max(own(other) for other in naive.next_graphs(found, max_parents)) < search.score_ + 1e-7


@pytest.mark.parametrize("score", FAMILY_SCORES)
def test_each_step_is_the_best_move_from_the_graph_before(score):
    for seed in range(3):
        data = random_data(seed, n_states=(2, 3, 2, 3), n_classes=2, missing=0.1, weight="integer")
        search, own = HillClimbing(score=score), naive_score(data, score)
        search.learn(data, None)
        graph = [()] * 4
        for after, value in replayed(search.history_, graph):
            assert value == pytest.approx(own(after), abs=1e-7)
            assert value == pytest.approx(max(own(other) for other in naive.next_graphs(graph, 2)), abs=1e-7)
            assert value > own(graph)
            graph = after
        assert graph == parents_of(search.structure_)


@pytest.mark.parametrize("score", FAMILY_SCORES)
@pytest.mark.parametrize("max_parents", [1, 2, None])
def test_restarts_find_the_best_of_all_graphs(score, max_parents):
    graphs = list(naive.all_graphs(4, max_parents))
    for seed in range(3):
        data = random_data(seed)
        own = naive_score(data, score)
        search = HillClimbing(score=score, max_parents=max_parents, n_restarts=30)
        search.learn(data, np.random.default_rng(0))
        assert search.score_ == pytest.approx(max(map(own, graphs)), abs=1e-7)


@pytest.mark.parametrize("options", [{"tabu_length": 5}, {"n_restarts": 3}, {"tabu_length": 3, "n_restarts": 2}])
def test_cached_changes_equal_scores_from_scratch(options):
    for seed in range(3):
        data = random_data(seed, 120, n_states=(2, 3, 2, 3, 2))
        own, search = naive_score(data, "bic"), HillClimbing(score="bic", **options)
        search.learn(data, np.random.default_rng(seed))
        steps = list(replayed(search.history_, [()] * 5))
        assert all(naive.is_acyclic(parents) for parents, _ in steps)
        assert [value for _, value in steps] == pytest.approx([own(parents) for parents, _ in steps], abs=1e-7)
        assert search.score_ == max(value for _, value in steps)
        assert search.score_ == pytest.approx(own(parents_of(search.structure_)), abs=1e-7)
        assert any(value < before for (_, before), (_, value) in itertools.pairwise(steps))
        evaluations = [change.n_evaluations for change in search.history_]
        assert evaluations == sorted(evaluations)


def test_a_tabu_search_does_not_return_to_its_last_graphs():
    data = random_data(1, 120, n_states=(2, 3, 2, 3, 2))
    search = HillClimbing(score="bic", tabu_length=8)
    search.learn(data, None)
    graphs = [[()] * 5, *(parents for parents, _ in replayed(search.history_, [()] * 5))]
    assert len(graphs) > 10
    assert all(graph not in graphs[max(0, n - 8) : n] for n, graph in enumerate(graphs))


def test_a_tabu_search_can_leave_a_local_optimum():
    improved = 0
    for seed in range(20):
        data = random_data(seed, 60)
        plain, tabu = HillClimbing(score="k2"), HillClimbing(score="k2", tabu_length=10)
        plain.learn(data, None)
        tabu.learn(data, None)
        assert tabu.score_ >= plain.score_
        improved += tabu.score_ > plain.score_
    assert improved


def test_search_goes_on_from_a_structure_and_reverses_its_arcs():
    data = random_data(2, 200)
    own = naive_score(data, "k2")
    initial = Structure([[1, 2], [2, -1], [3, -1], [-1, -1]])
    search = HillClimbing(score="k2", initial=initial)
    search.learn(data, None)
    steps = list(replayed(search.history_, [()] * 4))
    assert steps[0][0] == parents_of(initial)
    assert [value for _, value in steps] == pytest.approx([own(parents) for parents, _ in steps], abs=1e-7)
    assert steps[-1][0] == parents_of(search.structure_)
    assert list(structures_along(search.history_, 4))[-1][1] == search.structure_


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (Structure([-1, 0]), "initial has 2 features, but the data have 4"),
        (Structure([1, 0, -1, -1], allow_cycles=True), "it has a cycle"),
        (Structure([[1, 2, 3], [-1] * 3, [-1] * 3, [-1] * 3]), "max_parents=2 .* but it has 3 of feature 0"),
    ],
)
def test_an_initial_structure_that_does_not_fit_is_refused(initial, message):
    with pytest.raises(ValueError, match=message):
        HillClimbing(initial=initial).learn(random_data(0), None)


def test_max_steps_ends_the_search_and_zero_is_naive_bayes():
    data = random_data(0, 200)
    whole = HillClimbing(score="aic")
    whole.learn(data, None)
    assert len(whole.history_) > 2
    for n in range(3):
        search = HillClimbing(score="aic", max_steps=n, n_restarts=2)
        assert search.learn(data, np.random.default_rng(0)).n_edges == n
        assert search.history_ == whole.history_[:n]


def test_an_interrupted_search_keeps_its_best_structure(monkeypatch):
    data, whole = random_data(0, 200), HillClimbing(score="aic")
    whole.learn(data, None)
    applied = []

    def apply(graph, move, own=ArcGraph.apply):
        if len(applied) == 2:
            raise KeyboardInterrupt
        applied.append(move)
        own(graph, move)

    monkeypatch.setattr(ArcGraph, "apply", apply)
    search = HillClimbing(score="aic")
    with pytest.raises(KeyboardInterrupt):
        search.learn(data, None)
    assert search.history_ == whole.history_[:2]
    assert search.score_ == whole.history_[1].score
    assert search.structure_.n_edges == 2


def test_rows_of_weight_zero_and_repeated_rows():
    data = random_data(3, weight="integer")
    repeated = data.take(np.repeat(np.arange(data.n_samples), data.weights))
    repeated = EncodedData.from_codes(repeated.codes.T.astype(int), repeated.y, n_states=[2] * 4, n_classes=2)
    first, second = HillClimbing(n_restarts=2), HillClimbing(n_restarts=2)
    assert first.learn(data, np.random.default_rng(0)) == second.learn(repeated, np.random.default_rng(0))
    assert first.history_ == second.history_


def test_threads_and_seeds():
    data = random_data(4, 300, n_states=(2, 3, 4, 3, 2, 2))
    searches = [HillClimbing(score="k2", n_restarts=3, n_jobs=n) for n in (1, 2)]
    for search in searches:
        search.learn(data, np.random.default_rng(7))
    assert searches[0].history_ == searches[1].history_


def test_progress_is_printed_with_verbose(capsys):
    HillClimbing(score="bic", verbose=1, n_restarts=1).learn(random_data(0, 200), np.random.default_rng(0))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("HillClimbing: add ")
    assert any("restart 1 of 1; bic -" in line for line in lines)


def test_legal_moves_are_those_that_keep_the_graph_acyclic():
    for parents in naive.all_graphs(4, 2):
        graph = ArcGraph(parents, 2, None)
        moves = [("add", graph.additions()), ("remove", graph.arcs), ("reverse", graph.reversals())]
        found = []
        for kind, mask in moves:
            for child, parent in np.argwhere(mask).tolist():
                after = ArcGraph(parents, 2, None)
                after.apply(Move(kind, child, parent))
                found.append([tuple(given) for given in after.all_parents()])
                assert np.array_equal(after._is_ancestor, ArcGraph(after.all_parents(), 2, None)._is_ancestor)
        assert sorted(found) == sorted(naive.next_graphs(parents, 2))


@pytest.mark.parametrize(
    "parameters",
    [{"score": "mdl"}, {"max_parents": 0}, {"equivalent_sample_size": 0.0}, {"tabu_length": -1}, {"n_random_moves": 0}],
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of HillClimbing must be"):
        HillClimbing(**parameters).learn(random_data(0), None)


def test_classifier_with_it_is_right_where_naive_bayes_is_not():
    X = np.random.default_rng(1).integers(0, 2, (200, 4))
    y = X[:, 0] ^ X[:, 1] ^ X[:, 2]
    model = BayesNetClassifier(structure=HillClimbing(n_restarts=20), random_state=0).fit(X, y)
    assert model.score(X, y) == 1
    assert NaiveBayesClassifier().fit(X, y).score(X, y) < 0.8
