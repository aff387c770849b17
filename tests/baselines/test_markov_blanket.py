"""Networks over features and class, and the Markov blanket of the class, against enumeration."""

import itertools
from functools import cache

import numpy as np
import pytest
from oracles import blankets
from oracles import family_scores as naive
from support.family_searches import random_data, replayed, rows_of

from tanlearn import EncodedData, Structure, TableEncoder, load
from tanlearn.baselines import HillClimbing, MarkovBlanketClassifier
from tanlearn.baselines.arc_moves import ArcGraph
from tanlearn.baselines.family_scores import FAMILY_SCORES
from tanlearn.baselines.markov_blanket import class_rooted, fit_tables
from tanlearn.baselines.parents_and_children import parents_and_children
from tanlearn.baselines.scored_families import with_class_as_feature
from tanlearn.models.bayes_net import BayesNet

CODES = TableEncoder(discrete_features=True)


def searching(score):
    """Return a search without a limit on parents."""
    return HillClimbing(score=score, max_parents=None)


def network_score(data, score):
    """Return the function from the parents of all nodes, the class last, to the score."""
    rows, weights = rows_of(data), data.weights.tolist()
    n_states = (*data.n_states.tolist(), data.n_classes)
    family = cache(lambda child, given: naive.family_score(rows, weights, child, given, None, n_states, score))
    return lambda parents: sum(family(i, tuple(sorted(given))) for i, given in enumerate(parents))


@pytest.mark.parametrize("score", FAMILY_SCORES)
@pytest.mark.parametrize("max_parents", [2, None])
def test_restarts_find_the_best_of_all_networks(score, max_parents):
    graphs = list(naive.all_graphs(4, max_parents))
    for seed in range(2):
        data = random_data(seed, n_states=(2, 3, 2), n_classes=2, weight="integer")
        own = network_score(data, score)
        model = MarkovBlanketClassifier(
            search=HillClimbing(score=score, max_parents=max_parents, n_restarts=30), random_state=0
        )
        model.fit_encoded(data)
        assert model.network_score_ == pytest.approx(max(map(own, graphs)), abs=1e-7)
        assert model.network_score_ == pytest.approx(own(model.network_), abs=1e-7)


@pytest.mark.parametrize("initial", ["empty", "naive-bayes"])
@pytest.mark.parametrize("score", FAMILY_SCORES)
def test_each_step_is_the_best_move(score, initial):
    data = random_data(5, 100, n_states=(2, 3, 2, 2), n_classes=3, missing=0.1)
    model = MarkovBlanketClassifier(search=HillClimbing(score=score), initial=initial).fit_encoded(data)
    own = network_score(data, score)
    graph = [(4,) if initial == "naive-bayes" and i < 4 else () for i in range(5)]
    start = [change for change in model.history_ if change.step == 0]
    assert [change.parents for change in start] == [(4,)] * (4 if initial == "naive-bayes" else 0)
    for after, value in replayed(model.history_[len(start) :], graph):
        assert value == pytest.approx(own(after), abs=1e-7)
        assert value == pytest.approx(max(own(other) for other in naive.next_graphs(graph, 2)), abs=1e-7)
        graph = after
    assert [tuple(sorted(given)) for given in graph] == model.network_
    assert max(own(other) for other in naive.next_graphs(graph, 2)) < model.network_score_ + 1e-7
    assert model.learning_history()["structure"] == model.history_


@pytest.mark.parametrize("alpha", [0.0, 1.0, 0.3])
def test_posteriors_equal_those_of_the_whole_network(alpha):
    """All networks of three features and the class, so the class has up to three parents or children."""
    data = random_data(1, 60, n_states=(2, 3, 2), n_classes=2, weight="integer")
    rows, weights, n_states = rows_of(data), data.weights.tolist(), (2, 3, 2, 2)
    seen = [list(row) for row in itertools.product(range(2), range(3), range(2))]
    if alpha == 0:  # other rows may be impossible
        seen = [row[:3] for row, weight in zip(rows, weights, strict=True) if weight][:12]
    codes = np.array(seen, data.codes.dtype).T
    for network in list(naive.all_graphs(4))[::7]:
        structure, blanket = class_rooted(network)
        scores = BayesNet(structure, fit_tables(structure, network, data, alpha)).log_joint(np.ascontiguousarray(codes))
        of_class = {*network[3], *(i for i in range(3) if 3 in network[i])}
        spouses = {j for i in range(3) if 3 in network[i] for j in network[i]} - {3}
        assert set(blanket) == of_class | spouses
        joint = np.exp(scores)
        for row, p in zip(seen, joint, strict=True):
            expected = blankets.posterior(row, network, rows, weights, n_states, alpha)
            np.testing.assert_allclose(p / p.sum(), expected, rtol=1e-9)


def test_features_outside_the_blanket_do_not_influence_the_class():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (500, 6))
    X[:, 2] = np.where(rng.random(500) < 0.9, X[:, 3], X[:, 2])  # depends on another feature only
    y = X[:, 0] & X[:, 1]
    model = MarkovBlanketClassifier(search=searching("bic"), encoder=CODES).fit(X, y)
    assert model.blanket_.tolist() == [0, 1]
    changed = X.copy()
    changed[:, 2:] = 1 - changed[:, 2:]
    np.testing.assert_allclose(model.predict_proba(changed), model.predict_proba(X), rtol=1e-9)
    missing = X.astype(float)
    missing[:, 2:] = np.nan
    np.testing.assert_allclose(model.predict_proba(missing), model.predict_proba(X), rtol=1e-9)
    assert model.score(X, y) == 1


def test_without_a_blanket_the_prior_is_predicted():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 4, (300, 4)), (rng.random(300) < 0.2).astype(int)
    model = MarkovBlanketClassifier(search=searching("bic"), encoder=CODES).fit(X, y)
    assert model.blanket_.size == 0
    np.testing.assert_allclose(model.predict_proba(X), np.tile((np.bincount(y) + 1) / 302, (300, 1)), rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_candidates_equal_those_of_the_textbook_algorithm(missing):
    for seed in range(4):
        data = random_data(seed, 400, n_states=(2, 3, 2, 2, 3), n_classes=2, missing=missing, weight="integer")
        rows, weights, n_states = rows_of(data), data.weights.tolist(), (*data.n_states.tolist(), 2)
        found = [blankets.max_min_candidates(rows, weights, t, n_states, 0.05) for t in range(6)]
        expected = [[j for j in range(6) if j in found[i] and i in found[j]] for i in range(6)]
        for n_jobs in (1, 2):
            mask = parents_and_children(with_class_as_feature(data), 0.05, n_jobs=n_jobs)
            assert [np.flatnonzero(row).tolist() for row in mask] == expected
        assert any(expected)


def test_max_min_climbing_adds_candidates_only():
    data = random_data(3, 300, n_states=(2, 3, 2, 2, 3), n_classes=2)
    mask = parents_and_children(with_class_as_feature(data), 0.01)
    model = MarkovBlanketClassifier(candidates="mmpc", significance=0.01, search=searching("k2")).fit_encoded(data)
    arcs = [(i, j) for i, given in enumerate(model.network_) for j in given]
    assert arcs
    assert all(mask[i, j] for i, j in arcs)
    assert not mask.all(where=~np.eye(6, dtype=bool))


def test_very_strong_associations_keep_their_order():
    """Beyond p = 1e-308, where the probability itself is 0."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    copies = [np.where(rng.random(20_000) < p, y, 1 - y) for p in (0.9, 0.97, 0.95)]
    data = EncodedData.from_codes(np.stack(copies, axis=1), y)
    mask = parents_and_children(with_class_as_feature(data), 0.05)
    assert mask[3, :3].all()
    assert not mask[:3, :3].any()


def test_an_interrupted_search_keeps_its_network(monkeypatch):
    data = random_data(0, 200)
    whole = MarkovBlanketClassifier(search=HillClimbing(score="log-likelihood")).fit_encoded(data)

    applied = []

    def apply(graph, move, own=ArcGraph.apply):
        if len(applied) == 2:
            raise KeyboardInterrupt
        applied.append(move)
        own(graph, move)

    monkeypatch.setattr(ArcGraph, "apply", apply)
    model = MarkovBlanketClassifier(search=HillClimbing(score="log-likelihood"))
    with pytest.raises(KeyboardInterrupt):
        model.fit_encoded(data)
    assert model.history_ == [change for change in whole.history_ if change.step <= 2]
    assert model.network_score_ == model.history_[-1].score
    assert whole.n_evaluations_ >= whole.history_[-1].n_evaluations > 5


def test_threads_and_files_change_nothing(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (300, 5))
    y = (X[:, 0] + X[:, 1]) % 3
    one, two = (
        MarkovBlanketClassifier(n_jobs=n, search=HillClimbing(max_parents=None, n_restarts=2), random_state=0).fit(X, y)
        for n in (1, 2)
    )
    assert one.history_ == two.history_
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    one.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(X), one.predict_proba(X))


def test_settings_of_the_search_are_checked():
    X, y = [[0], [1]], [0, 1]
    with pytest.raises(ValueError, match="'score' parameter of HillClimbing must be"):
        MarkovBlanketClassifier(search=HillClimbing(score="mdl")).fit(X, y)
    with pytest.raises(ValueError, match=r"search.initial must be None, .* got Structure"):
        MarkovBlanketClassifier(search=HillClimbing(initial=Structure([-1]))).fit(X, y)


def test_progress_is_printed_with_verbose(capsys):
    MarkovBlanketClassifier(search=HillClimbing(score="k2", max_parents=None, verbose=1)).fit_encoded(
        random_data(0, 200)
    )
    assert capsys.readouterr().out.startswith("MarkovBlanketClassifier: ")


@pytest.mark.parametrize(
    "parameters",
    [{"search": "bdeu"}, {"initial": "full"}, {"candidates": "pc"}, {"significance": 1.0}, {"smoothing": -1.0}],
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of MarkovBlanketClassifier must be"):
        MarkovBlanketClassifier(**parameters).fit([[0], [1]], [0, 1])
