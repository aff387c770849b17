"""The super-parent search against one that scores every structure from raw rows."""

import numpy as np
import pytest
from oracles import wrapper as naive_wrapper
from support.wrapper_searches import SCORES, SMOOTHINGS, VALIDATIONS, learn, naive_learn, naive_score, varied_data

from tanlearn import EncodedData, Structure
from tanlearn.baselines import GreedySearch, SuperParent


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_edges_and_scores_equal_those_from_raw_rows(score, validation, seed):
    data = varied_data(seed)
    search = SuperParent(score=score, gamma=1.25, validation=validation)
    assert learn(search, data) == naive_learn(naive_wrapper.super_parent, data, score, validation)
    assert search.score_ == pytest.approx(naive_score(data, score, validation)(search.structure_.parents), rel=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_with_real_weights_and_replaced_zeros(score):
    for seed in range(3):
        data = varied_data(seed, "real")
        search = SuperParent(score=score, gamma=1.25, validation=3, smoothing=SMOOTHINGS[1])
        assert learn(search, data) == naive_learn(naive_wrapper.super_parent, data, score, 3, smoothing=SMOOTHINGS[1])


@pytest.mark.parametrize("initial", [[-1, -1, 1, -1, -1], [1, 2, -1, -1, 3], [-1, 0, 1, 2, 3]])
def test_search_goes_on_from_a_forest(initial):
    data = varied_data(1)
    ours = learn(SuperParent(score="margin", gamma=1.25, initial=Structure(initial)), data)
    assert ours == naive_learn(naive_wrapper.super_parent, data, "margin", parents=initial)


def test_a_feature_that_has_a_parent_keeps_it():
    """The class is x1 xor x2, which an edge between the two would tell; but both have a parent: feature 0."""
    X = np.random.default_rng(0).integers(0, 2, (100, 4))
    data, initial = EncodedData.from_codes(X, X[:, 1] ^ X[:, 2]), Structure([-1, 0, 0, -1])
    parent = SuperParent(initial=initial).learn(data, None).parent
    assert parent[1:3].tolist() == [0, 0]


def test_the_super_parent_may_be_worse_than_the_structure_and_its_edge_better():
    """Whatever feature becomes the parent of all others, more rows are wrong; with one of these edges fewer are."""
    data = varied_data(18)
    score = naive_score(data, "accuracy", 3)
    alone = score([()] * 4)
    assert all(score([(j,) if i != j else () for i in range(4)]) < alone for j in range(4))
    _, history = learn(SuperParent(validation=3), data)
    assert [score > alone for _, _, score, _ in history] == [True]


def test_it_may_find_another_edge_than_greedy_search():
    (_, ours), (_, greedy) = (learn(search, varied_data(5)) for search in (SuperParent(), GreedySearch()))
    assert ours[0][2] < greedy[0][2]  # scores


def test_of_equal_super_parents_and_children_the_first_is_taken():
    """The class is x xor z, and z is there three times: 1 to 3 are equally good parents of 0, 0 of each of them."""
    x, z = np.random.default_rng(0).integers(0, 2, (2, 100))
    data = EncodedData.from_codes(np.stack([x, z, z, z], axis=1), x ^ z)
    assert SuperParent().learn(data, None) == Structure([-1, 0, -1, -1])


@pytest.mark.parametrize("score", SCORES)
def test_threads_change_nothing(score):
    data = varied_data(5, "real")
    one, two = (learn(SuperParent(score=score, n_jobs=n_jobs, validation=3), data) for n_jobs in (1, 2))
    assert one == two
