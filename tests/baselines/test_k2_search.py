"""K2 search against a greedy search from the textbook formulas."""

import numpy as np
import pytest
from support.family_searches import naive_score, parents_of, random_data, replayed

from tanlearn.baselines import K2Search
from tanlearn.counts.rounded_information import Information


def naive_k2(data, ordering, max_parents, score):
    """Return the parents of each feature: the best earlier one is added while it increases the score."""
    own, parents = naive_score(data, score), [()] * data.n_features
    for position, child in enumerate(ordering):
        while len(parents[child]) < max_parents:
            options = []
            for j in ordering[:position]:
                if j not in parents[child]:
                    options.append([*parents])
                    options[-1][child] = (*parents[child], j)
            if not options or max(map(own, options)) <= own(parents) + 1e-9:
                break
            parents = max(options, key=own)
    return parents


@pytest.mark.parametrize("score", ["k2", "bdeu", "bic", "aic", "log-likelihood"])
@pytest.mark.parametrize("max_parents", [1, 2, None])
def test_parents_equal_those_of_the_textbook_search(score, max_parents):
    for seed in range(4):
        data = random_data(seed, n_states=(2, 3, 2, 3), n_classes=3, missing=0.1, weight="integer")
        ordering = np.random.default_rng(seed).permutation(4).tolist()
        search = K2Search(ordering=ordering, max_parents=max_parents, score=score)
        found = parents_of(search.learn(data, None))
        assert found == naive_k2(data, ordering, 4 if max_parents is None else max_parents, score)
        own = naive_score(data, score)
        assert search.score_ == pytest.approx(own(found), abs=1e-7)
        steps = list(search.history_)
        parents = [()] * 4
        for change in steps:
            parents[change.child] = change.parents
            assert change.score == pytest.approx(own(parents), abs=1e-7)
            assert search.ordering_[change.step] == change.child
        assert parents == found


def test_orderings():
    data = random_data(1, 200, n_states=(2, 3, 4, 2))
    by_class = K2Search()
    by_class.learn(data, None)
    assert by_class.ordering_.tolist() == Information.of_rows(data).by_class.tolist()
    drawn = [K2Search(ordering="random") for _ in range(2)]
    for search in drawn:
        search.learn(data, np.random.default_rng(5))
    assert drawn[0].ordering_.tolist() == np.random.default_rng(5).permutation(4).tolist()
    assert drawn[0].history_ == drawn[1].history_
    with pytest.raises(ValueError, match="ordering must contain each number from 0 to"):
        K2Search(ordering=[0, 1, 2, 2]).learn(data, None)


def test_history_leads_to_the_structure_and_is_printed(capsys):
    data = random_data(0, 300)
    search = K2Search(score="aic", verbose=1)
    search.learn(data, None)
    assert list(replayed(search.history_, [()] * 4))[-1] == (parents_of(search.structure_), search.score_)
    assert len(capsys.readouterr().out.splitlines()) == len(search.history_) > 0


@pytest.mark.parametrize("parameters", [{"score": "mdl"}, {"max_parents": 0}, {"ordering": "cmi"}])
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of K2Search must be"):
        K2Search(**parameters).learn(random_data(0), None)
