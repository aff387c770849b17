"""Simulated annealing: what it settles at, what it finds, and what it must not depend on."""

import numpy as np
import pytest
from oracles import networks as naive
from scipy.stats import chisquare
from support.wrapper_searches import SCORES, VALIDATIONS, naive_score, random_data, scorer_of, varied_data

from tanlearn import Structure
from tanlearn.baselines import GreedySearch, OrderSearch, ParentChange, SimulatedAnnealing
from tanlearn.baselines.annealing import _anneal, _is_below
from tanlearn.baselines.structure_scores import StructureScorer


def learn(data, seed=0, **parameters):
    """Return the search after learning in a few steps."""
    search = SimulatedAnnealing(
        **{"n_steps": 150, "initial": None, "gamma": 1.25, "temperature": (0.03, 1e-4), **parameters}
    )
    assert search.learn(data, np.random.default_rng(seed)) == search.structure_
    return search


class TableOfScores:
    """A scorer whose forests of three features have any scores one likes."""

    def __init__(self, values, parent=(-1, -1, -1)):
        self.values = values
        self.n_evaluations = 0
        self.parents = np.array([[j, -1] for j in parent])

    @property
    def value(self):
        return self.values[tuple(self.parents[:, 0].tolist())]

    def copy(self):
        return TableOfScores(self.values, self.parents[:, 0])

    def change(self, child, parents, step):
        return ParentChange(child, tuple(parents), self.value, step, self.n_evaluations, 0.0)

    changes = StructureScorer.changes

    def families(self, child, parents):
        return child, parents[0, 0]

    def with_parent(self, child, parent):
        forest = self.parents[:, 0].tolist()
        forest[child] = parent
        return tuple(forest)

    def try_families(self, families):
        return [self.values[self.with_parent(*families)]]

    def take(self, families, number, value):
        assert value == self.values[self.with_parent(*families)]
        self.parents[:, 0] = self.with_parent(*families)


def test_at_a_steady_temperature_every_forest_is_as_frequent_as_its_boltzmann_factor():
    """Metropolis' rule, with moves that are as likely as their reverse: p(forest) = exp(score / T) / Z."""
    rng = np.random.default_rng(0)
    scores = {forest: rng.normal() for forest in naive.all_forests(3)}
    scorer, seen = TableOfScores(scores), dict.fromkeys(scores, 0)
    for _ in range(2000):
        _anneal(scorer, np.full(100, 0.8), rng)  # after 12, the start still shows
        seen[tuple(scorer.parents[:, 0].tolist())] += 1
    expected = np.exp(np.array(list(scores.values())) / 0.8)
    assert len(scores) == 16
    assert chisquare(list(seen.values()), 2000 * expected / expected.sum()).pvalue > 0.01


def test_history_is_that_of_the_best_forests_on_the_way():
    rng = np.random.default_rng(1)
    scores = {forest: rng.normal() for forest in naive.all_forests(3)}
    start = min(scores, key=scores.get)
    best, history = _anneal(TableOfScores(scores, start), np.full(400, 0.5), rng)
    values = [scores[start]] + [edge.score for edge in history]
    assert values == sorted(values)  # a reversed edge is two changes of one score
    assert best.value == values[-1] == max(scores.values())
    assert [edge.step for edge in history] == sorted(edge.step for edge in history)
    assert all(best.parents[edge.child, 0] == (edge.parents or (-1,))[0] for edge in history[-1:])


def test_history_tells_a_lost_parent_and_the_step():
    """Where naive Bayes alone scores, the last change takes the last parent away."""
    scores = {forest: -sum(j >= 0 for j in forest) for forest in naive.all_forests(3)}

    def history_of(n_steps):
        start = TableOfScores(scores, (-1, 0, -1))
        return _anneal(start, np.full(n_steps, 1e-9), np.random.default_rng(0))[1]

    start, edge = history_of(100)
    assert (start.child, start.parents, start.score, start.step) == (1, (0,), -1, 0)
    assert (edge.parents, edge.score) == ((), 0)
    assert [history_of(edge.step - 1), history_of(edge.step)] == [[start], [start, edge]]  # it takes so many steps


def test_without_temperature_it_climbs():
    """At 1e-9 nothing worse is taken: from a forest all of whose neighbours are worse there is no way out."""
    scores = dict.fromkeys(naive.all_forests(3), 0.0) | {(-1, -1, -1): 1.0, (2, 0, -1): 2.0}
    for temperature, found in [(1e-9, 1.0), (1.0, 2.0)]:
        best, _ = _anneal(TableOfScores(scores), np.full(500, temperature), np.random.default_rng(0))
        assert best.value == found


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
def test_the_best_forest_of_three_features_is_found(score, validation):
    data = random_data(8, n_states=(2, 3, 3))
    expected = naive_score(data, score, validation)
    search = learn(data, score=score, validation=validation, temperature=(1.0, 1e-3), n_steps=200)
    best = max(expected([(j,) for j in forest]) for forest in naive.all_forests(3))
    assert expected(search.structure_.parents.tolist()) == pytest.approx(best, rel=1e-12)
    assert search.score_ == search.history_[-1].score == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_it_is_never_worse_than_its_start(score):
    for seed in range(3):
        data = varied_data(seed)
        start = GreedySearch(score=score, gamma=1.25).learn(data, None)
        hot = learn(data, score=score, initial=start, temperature=(10.0, 10.0), n_steps=30)
        expected = naive_score(data, score)
        assert hot.score_ == pytest.approx(expected(hot.structure_.parents), rel=1e-12)
        assert hot.score_ >= expected(start.parents) - 1e-12
        if hot.history_[-1].step == 0:
            assert hot.structure_ == start


def test_it_finds_more_than_greedy_search():
    data = varied_data(10)
    greedy = GreedySearch(score="margin", gamma=1.25)
    greedy.learn(data, None)
    assert learn(data, temperature=(0.1, 1e-3), n_steps=400).score_ > greedy.score_ + 0.01


def test_generator_alone_decides():
    data = varied_data(1)
    first, second, other = (learn(data, seed, validation=3) for seed in (0, 0, 1))
    assert first.structure_ == second.structure_
    assert first.history_ == second.history_
    assert first.history_ != other.history_


def test_the_best_of_several_chains_wins_whatever_the_number_of_threads():
    data, n_steps = varied_data(1), 25
    one, two = (learn(data, n_chains=4, n_steps=n_steps, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.structure_ == two.structure_
    assert one.history_ == two.history_
    temperatures = np.geomspace(0.03, 1e-4, n_steps)
    chains = [
        _anneal(scorer_of(data, "margin"), temperatures, own)[0].value for own in np.random.default_rng(0).spawn(4)
    ]
    assert len(set(chains)) > 1
    assert one.score_ == two.score_ == max(chains) > chains[0]


def test_a_temperature_that_falls_does_so_geometrically():
    schedule = SimulatedAnnealing(n_steps=5)._schedule((1.0, 1e-4))
    np.testing.assert_allclose(schedule, [1, 0.1, 0.01, 1e-3, 1e-4])
    assert SimulatedAnnealing(n_steps=1)._schedule((2.0, 1.0)).tolist() == [2.0]


@pytest.mark.parametrize("temperature", [(1e-3, 1e-2), (0.0, 0.0), (1.0, -1.0), (1.0,), (np.inf, 1.0), ("a", 1.0)])
def test_temperatures_that_rise_or_are_not_positive_are_refused(temperature):
    with pytest.raises(ValueError, match=r"temperature must contain two positive numbers, .*not be larger, got"):
        learn(random_data(), temperature=temperature)


@pytest.mark.parametrize("parameters", [{"n_steps": 0}, {"n_chains": 0}, {"temperature": 1.0}], ids=str)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of SimulatedAnnealing must be"):
        learn(random_data(), **parameters)


def test_a_feature_is_below_itself_and_its_ancestors():
    for forest in naive.all_forests(4):
        for i in range(4):
            for j in range(-1, 4):
                changed = [*forest[:i], j, *forest[i + 1 :]]
                assert _is_below(np.array(forest), j, i) == (not naive.is_acyclic(changed))


def test_no_move_closes_a_cycle():
    """From a chain of five features most draws would; a structure with a cycle is an error."""
    chain = Structure([-1, 0, 1, 2, 3])
    hot = learn(varied_data(1), initial=chain, n_steps=300, temperature=(10.0, 10.0))
    assert hot.history_


@pytest.mark.parametrize("seed", range(6))
def test_defaults_reach_the_optimum_of_all_forests_and_never_end_below_greedy_search(seed):
    data = varied_data(seed)
    scorer = scorer_of(data, "margin", gamma=3.0)
    forests = (np.array([[j, -1] for j in forest]) for forest in naive.all_forests(data.n_features))
    optimum = max(scorer.score(parents) for parents in forests)
    greedy = GreedySearch(score="margin", gamma=3.0)
    greedy.learn(data, None)
    search = SimulatedAnnealing(n_steps=1000)
    search.learn(data, np.random.default_rng(seed))
    assert search.score_ == pytest.approx(optimum, rel=1e-12)
    hot = SimulatedAnnealing(n_steps=100, temperature=(10.0, 10.0))
    hot.learn(data, np.random.default_rng(seed))
    assert hot.score_ >= greedy.score_ - 1e-12


def test_few_steps_start_at_the_structure_of_order_search():
    data = varied_data(1)
    order = OrderSearch(score="margin", gamma=3.0)
    order.learn(data, None)
    search = SimulatedAnnealing(n_steps=1, temperature=(1e-9, 1e-9))
    search.learn(data, np.random.default_rng(0))
    assert search.score_ >= order.score_ - 1e-12
