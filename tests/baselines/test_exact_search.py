"""Exact margin search against the enumeration of all structures, scored from raw rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import networks as naive
from support.wrapper_searches import SMOOTHINGS, naive_score, random_data

from tanlearn import BayesNetClassifier, EncodedData, MaximumLikelihood, Structure
from tanlearn.baselines import ExactMarginSearch, GreedySearch

RNG = np.random.default_rng(0)


def structures(n_features, max_parents):
    """Yield all acyclic structures."""
    families = [
        [own for k in range(max_parents + 1) for own in itertools.combinations(set(range(n_features)) - {i}, k)]
        for i in range(n_features)
    ]
    for parents in itertools.product(*families):
        order, known = list(range(n_features)), set()
        while any(set(parents[i]) <= known for i in order):
            known |= {i for i in order if set(parents[i]) <= known}
            order = [i for i in order if i not in known]
        if not order:
            yield parents


def test_enumeration_counts_all_structures():
    assert len(list(structures(3, 1))) == 16  # (d + 1) ** (d - 1) forests
    assert len(list(structures(4, 1))) == 125 == len(list(naive.all_forests(4)))
    assert len(list(structures(3, 2))) == 25  # acyclic graphs of three nodes


@pytest.mark.parametrize("gamma", [0.25, 1.25, 20.0])
@pytest.mark.parametrize(("seed", "weight"), [(0, None), (1, "integers"), (2, "real"), (3, None)])
def test_no_forest_has_a_larger_margin(seed, weight, gamma):
    data = random_data(seed, weight=weight)
    search = ExactMarginSearch(gamma=gamma)
    structure = search.learn(data, RNG)
    score = naive_score(data, "margin", gamma=gamma)
    best = max(score(parents) for parents in structures(4, 1))
    assert search.score_ == pytest.approx(best, abs=1e-6)
    assert search.score_ == pytest.approx(score(structure.parents), rel=1e-12)
    assert search.is_optimal_
    assert search.score_ <= search.bound_ <= best + 1e-6
    greedy = GreedySearch(score="margin", gamma=gamma)
    greedy.learn(data, RNG)
    assert greedy.score_ <= search.score_ + 1e-6


def test_greedy_search_is_not_always_exact():
    gaps = []
    for seed in range(12):
        data = random_data(seed, 40)
        greedy, exact = GreedySearch(score="margin"), ExactMarginSearch()
        greedy.learn(data, RNG)
        exact.learn(data, RNG)
        gaps.append(exact.score_ - greedy.score_)
    assert min(gaps) > -1e-6
    assert max(gaps) > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_no_structure_of_two_parents_has_a_larger_margin(seed):
    data = random_data(seed, 40, n_states=(2, 3, 2))
    search = ExactMarginSearch(max_parents=2)
    search.learn(data, RNG)
    score = naive_score(data, "margin", gamma=1.0)
    assert search.score_ == pytest.approx(max(score(parents) for parents in structures(3, 2)), abs=1e-6)


def test_two_classes_and_replaced_zeros():
    data = random_data(4, n_classes=2)
    search = ExactMarginSearch(smoothing=SMOOTHINGS[1])
    search.learn(data, RNG)
    score = naive_score(data, "margin", gamma=1.0, smoothing=SMOOTHINGS[1])
    assert search.score_ == pytest.approx(max(score(parents) for parents in structures(4, 1)), abs=1e-6)


def test_cycles_are_excluded():
    """Features 0 to 2 are best explained by each other, in a cycle."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = rng.integers(0, 2, 200)
    X = np.stack([x ^ (y & (rng.random(200) < 0.5)) for _ in range(3)], axis=1)
    structure = ExactMarginSearch(gamma=5).learn(EncodedData.from_codes(X, y), RNG)
    assert structure.is_acyclic
    assert structure.n_edges <= 2


def test_a_limit_of_nodes_ends_with_a_bound():
    data = random_data(4, 200, n_states=(3, 3, 3, 3, 3), n_classes=4)
    whole, limited = ExactMarginSearch(gamma=0.5), ExactMarginSearch(gamma=0.5, max_nodes=3)
    whole.learn(data, RNG)
    assert whole.is_optimal_
    with pytest.warns(UserWarning, match="before the optimum was proved"):
        limited.learn(data, RNG)
    assert not limited.is_optimal_
    assert limited.score_ <= whole.score_ + 1e-6
    assert limited.bound_ >= whole.score_ - 1e-6
    assert limited.bound_ > limited.score_ + 0.01


def test_history_is_the_structure():
    search = ExactMarginSearch(max_parents=2)
    structure = search.learn(random_data(0, 40, n_states=(2, 3, 2)), RNG)
    parents = np.full((3, 2), -1)
    for change in search.history_:
        parents[change.child, : len(change.parents)] = change.parents
        assert change.score == search.score_
    assert structure == Structure(parents)
    assert search.history_


def test_order_of_columns_changes_nothing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (60, 4)), columns=list("dbca"))
    X["a"] = X["d"]
    y = (X["d"] + X["b"] + rng.integers(0, 2, 60)) % 2
    first = BayesNetClassifier(structure=ExactMarginSearch()).fit(X, y)
    other = BayesNetClassifier(structure=ExactMarginSearch()).fit(X[list("abcd")], y)
    np.testing.assert_allclose(other.predict_proba(X[list("abcd")]), first.predict_proba(X), atol=1e-12)


def test_bad_input_is_refused():
    data = EncodedData.from_codes(np.random.default_rng(0).integers(0, 2, (20, 13)), np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"supports up to 12 features.*have 13"):
        ExactMarginSearch().learn(data, RNG)
    with pytest.raises(ValueError, match="must keep all probabilities above zero"):
        ExactMarginSearch(smoothing=MaximumLikelihood(alpha=0)).learn(random_data(), RNG)
    with pytest.raises(ValueError, match="max_parents"):
        ExactMarginSearch(max_parents=3).learn(random_data(), RNG)
