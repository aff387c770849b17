"""Greedy search against one that scores every structure from raw rows."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import networks as naive
from oracles import wrapper as naive_wrapper
from support.wrapper_searches import (
    SCORES,
    SMOOTHINGS,
    VALIDATIONS,
    learn,
    naive_learn,
    naive_score,
    varied_data,
)

from tanlearn import BayesNetClassifier, EncodedData, NaiveBayesClassifier, Structure, baselines
from tanlearn.baselines import GreedySearch, ParentChange
from tanlearn.baselines.greedy import tree_labels


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_edges_and_scores_equal_those_from_raw_rows(score, validation, seed):
    data = varied_data(seed)
    search = GreedySearch(score=score, gamma=1.25, validation=validation)
    assert learn(search, data) == naive_learn(naive_wrapper.greedy, data, score, validation)
    assert search.score_ == pytest.approx(naive_score(data, score, validation)(search.structure_.parents), rel=1e-12)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
def test_with_real_weights_and_replaced_zeros(score, validation):
    for seed in range(3):
        data = varied_data(seed, "real")
        search = GreedySearch(score=score, gamma=1.25, validation=validation, smoothing=SMOOTHINGS[1])
        expected = naive_learn(naive_wrapper.greedy, data, score, validation, smoothing=SMOOTHINGS[1])
        assert learn(search, data) == expected


@pytest.mark.parametrize("initial", [[-1, -1, 1, -1, -1], [1, 2, -1, -1, 3], [-1, 0, 1, 2, 3]])
def test_search_goes_on_from_a_forest(initial):
    data = varied_data(1)
    ours = learn(GreedySearch(score="margin", gamma=1.25, initial=Structure(initial)), data)
    assert ours == naive_learn(naive_wrapper.greedy, data, "margin", parents=initial)
    assert all(ours[0][i] == j for i, j in enumerate(initial) if j >= 0)


def test_an_interrupted_search_leaves_its_structure_to_go_on_from(monkeypatch):
    def interrupt(self, event, scorer):
        if event.startswith("edge 2"):
            raise KeyboardInterrupt

    data, whole = varied_data(1), GreedySearch()
    whole.learn(data, None)
    interrupted = GreedySearch()
    monkeypatch.setattr(GreedySearch, "_report", interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted.learn(data, None)
    assert interrupted.history_ == whole.history_[:2]
    assert interrupted.structure_.n_edges == 2
    assert interrupted.score_ == whole.history_[1].score < whole.score_
    monkeypatch.undo()
    rest = GreedySearch(initial=interrupted.structure_)
    assert rest.learn(data, None) == whole.structure_
    before = whole.history_[1].n_evaluations
    added = [edge for edge in rest.history_ if edge.step > 0]
    later = [replace(edge, step=edge.step + 2, n_evaluations=edge.n_evaluations + before) for edge in added]
    assert later == whole.history_[2:]
    assert added


def test_every_edge_improves_the_score_of_the_one_before():
    data = varied_data(3)
    search = GreedySearch(score="conditional-likelihood")
    search.learn(data, None)
    values = [naive_score(data, "conditional-likelihood")([()] * 5)] + [edge.score for edge in search.history_]
    assert len(values) > 2
    assert (np.diff(values) > 1e-12).all()


def test_of_equal_edges_the_first_child_takes_the_first_parent():
    """The class is x xor z, and z is there three times: its copies 1 to 3 are equally good parents of 0."""
    x, z = np.random.default_rng(0).integers(0, 2, (2, 100))
    data = EncodedData.from_codes(np.stack([x, z, z, z], axis=1), x ^ z)
    assert GreedySearch().learn(data, None) == Structure([1, -1, -1, -1])


@pytest.mark.parametrize("score", SCORES)
def test_threads_change_nothing(score):
    data = varied_data(5, "real")
    one, two = (learn(GreedySearch(score=score, n_jobs=n_jobs, validation=3), data) for n_jobs in (1, 2))
    assert one == two


def test_classifier_with_it_is_right_where_naive_bayes_is_not():
    X = np.random.default_rng(1).integers(0, 2, (200, 3))
    y = X[:, 0] ^ X[:, 2]
    assert BayesNetClassifier(structure=GreedySearch()).fit(X, y).score(X, y) == 1
    assert NaiveBayesClassifier().fit(X, y).score(X, y) < 0.8


def test_tree_labels_are_the_roots():
    for parent in naive.all_forests(4):
        expected = list(range(4))
        for i in range(4):
            while parent[expected[i]] >= 0:
                expected[i] = parent[expected[i]]
        assert tree_labels(np.array(parent)).tolist() == expected


def test_every_scored_structure_is_counted():
    """Each step scores all edges into features without a parent that close no cycle."""
    data = varied_data(3)
    _, history = naive_wrapper.greedy([()] * 5, naive_score(data, "margin"))
    parents, n_scored = [()] * 5, []
    for child, given, *_ in history:
        n_scored.append(len(naive_wrapper.orphan_edges(parents)))
        parents = naive_wrapper.with_parent(parents, child, *given)
    search = GreedySearch(score="margin", n_jobs=2)
    search.learn(data, None)
    assert len(n_scored) > 1
    assert [change.n_evaluations for change in search.history_] == np.cumsum(n_scored).tolist()


def test_the_former_name_of_a_change_still_works():
    with pytest.warns(FutureWarning, match=r"Edge is now ParentChange"):
        assert baselines.Edge is ParentChange
    with pytest.raises(AttributeError, match="no attribute 'Corner'"):
        baselines.Corner  # noqa: B018
