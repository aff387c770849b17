"""What is read off a forest, beside sums over the dictionaries that it is made of."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from oracles import reading as oracle
from support.forests import learn_forest

from tanlearn import EncodedData
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_network import DrawSettings
from tanlearn.forest.interpretation import dependences, explain, left_out_importances, losses_without
from tanlearn.forest.learning import ForestSettings

N_STATES = (2, 3, 2, 2)
PARENTS = [
    [[], [0], [1, 0], []],
    [[3, 2, 1], [], [1], [2]],
    [[], [], [], [0, 1]],
]


class Spoken:
    """A member of a forest that looks its gains up in dictionaries, and keeps to what members promise."""

    def __init__(self, of_dictionaries):
        self.gains = of_dictionaries["gains"]
        parents = of_dictionaries["parents"]
        width = max(map(len, parents))
        self.tables = SimpleNamespace(parents=np.array([own + [-1] * (width - len(own)) for own in parents]))
        self.of_dictionaries = of_dictionaries

    def add_scores(self, codes, weight, slot, scores):
        """Add weighted gains."""
        for r, row in enumerate(rows_of(codes)):
            for place, own in oracle.levels(self.of_dictionaries, row).items():
                scores[slot[place], r] += weight[place] * np.array(own)


def rows_of(codes):
    """Return rows with None for what is missing."""
    return [[None if v == 255 else int(v) for v in row] for row in codes.T]


def make(is_average, label_noise=0.02, n_classes=3, seed=0):
    """Return a forest of dictionaries that has seen most contexts, and the dictionaries."""
    rng = np.random.default_rng(seed)
    members = []
    for parents in PARENTS:
        gains = {}
        for child, own in enumerate(parents):
            for level in range(len(own) + 1):
                values = product(*(range(N_STATES[j]) for j in [*own[:level], child]))
                scale = 1.5 if level == 0 else 0.7
                gains[child, level] = {v: (scale * rng.normal(size=n_classes)).tolist() for v in values}
        del gains[0, len(parents[0])][next(iter(gains[0, len(parents[0])]))]
        members.append({"parents": parents, "gains": gains})
    weights = rng.uniform(-0.2, 1.2, (3, 4, 4))
    log_prior = np.log(rng.dirichlet(np.ones(n_classes))) * (1.0 if is_average else 1.3)
    spoken = [Spoken(member) for member in members]
    forest = Forest(spoken, log_prior, log_prior, np.zeros(n_classes), weights, label_noise, is_average)
    return forest, (members, weights.tolist(), log_prior.tolist(), label_noise, is_average)


CODES = np.array(list(product(*(range(n) for n in N_STATES))), np.uint8).T.copy()
CODES = np.where(np.random.default_rng(5).random(CODES.shape) < 0.15, 255, CODES).astype(np.uint8)


def learnt(weights="auto", gaps=0.0, n=150):
    """Return a small forest that was learnt, and its rows."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, (n, 4))
    y = (codes[:, 0] // 2 + codes[:, 3] // 3) % 3
    codes = np.where(rng.random(codes.shape) < gaps, -1, codes)
    data = EncodedData.from_codes(codes, y, n_states=[6] * 4, n_classes=3)
    settings = ForestSettings(n_members=3, draws=DrawSettings(n_cuts=(2, 4), max_parents=2), weights=weights, n_folds=3)
    return learn_forest(data, np.ones(4, bool), settings, np.random.default_rng(0)), data


@pytest.mark.parametrize("is_average", [False, True])
@pytest.mark.parametrize("doubt", [0.0, 0.1])
def test_parts_are_those_of_the_dictionaries_and_add_up(is_average, doubt):
    forest, of_dictionaries = make(is_average, doubt)
    forest = replace(forest, shift=np.array([0.3, -1.0, 0.0]))
    found = explain(forest, CODES)
    np.testing.assert_allclose(found.sum(axis=1), forest.log_joint(CODES), rtol=1e-11, atol=1e-11)
    for r, row in enumerate(rows_of(CODES)):
        parts, start = oracle.split(*of_dictionaries, row)
        expected = np.zeros((5, 3))
        for (_, child, _), own in parts.items():
            expected[child] += own
        expected[-1] = start + forest.shift
        np.testing.assert_allclose(found[r], expected, rtol=1e-9, atol=1e-11)
        assert not found[r, [i for i in range(4) if row[i] is None]].any()


def test_without_doubt_odds_are_weighted_gains():
    forest, (members, weights, *_) = make(False, label_noise=0.0)
    odds = explain(forest, CODES)[:, :4] @ [1, 0, -1]
    for r, row in enumerate(rows_of(CODES)):
        expected = np.zeros(4)
        for e, member in enumerate(members):
            for (child, level), own in oracle.levels(member, row).items():
                expected[child] += weights[e][child][level] * (own[0] - own[2])
        np.testing.assert_allclose(odds[r], expected, atol=1e-12)


@pytest.mark.parametrize("is_average", [False, True])
def test_parts_add_up_where_classes_are_all_but_impossible(is_average):
    forest, _ = make(is_average, label_noise=2.0**-30)
    forest = replace(forest, weights=400 * forest.weights)
    found = explain(forest, CODES)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), forest.log_joint(CODES), atol=1e-9)
    assert forest.log_joint(CODES).min() < -20


@pytest.mark.parametrize("is_average", [False, True])
def test_dependences_are_expected_parts_of_single_levels(is_average):
    forest, of_dictionaries = make(is_average)
    expected, information = np.zeros((4, 4)), 0.0
    for row in rows_of(CODES):
        parts, start = oracle.split(*of_dictionaries, row)
        p = oracle.predict(*of_dictionaries, row)
        information += p @ (np.log(p) - start)
        for (e, child, level), own in parts.items():
            parent = PARENTS[e][child][level - 1] if level else child
            expected[parent, child] += p @ np.array(own)
    found = dependences(forest, CODES)
    np.testing.assert_allclose(found, expected / CODES.shape[1], atol=1e-12)
    np.testing.assert_allclose(found.sum(), information / CODES.shape[1])
    np.testing.assert_array_equal(dependences(forest, CODES[:, :0]), np.zeros((4, 4)))


@pytest.mark.parametrize("is_average", [False, True])
def test_a_feature_left_out_says_nothing_as_child_and_ends_levels_as_parent(is_average):
    forest, of_dictionaries = make(is_average)
    y = np.arange(CODES.shape[1]) % 3
    found = losses_without(forest, CODES, y)
    for r, row in enumerate(rows_of(CODES)):
        for number, absent in enumerate([(), (0,), (1,), (2,), (3,)]):
            p = oracle.predict(*of_dictionaries, row, absent)
            np.testing.assert_allclose(found[number, r], -np.log(p[y[r]]), rtol=1e-9)
    shifted = losses_without(replace(forest, shift=np.array([-np.inf, 0.0, 1.0])), CODES, y)
    assert np.isposinf(shifted[:, y == 0]).all()
    p = np.array([oracle.predict(*of_dictionaries, row, (2,)) for row in rows_of(CODES)]) * [0, 1, np.e]
    np.testing.assert_allclose(shifted[3, y == 1], -np.log(p[:, 1] / p.sum(axis=1))[y == 1])


@pytest.mark.parametrize("weights", ["auto", "shared", None])
def test_left_out_is_as_missing_where_training_has_no_gaps(weights):
    forest, data = learnt(weights)
    found = losses_without(forest, data.codes, data.y)
    for i in range(-1, 4):
        codes = data.codes.copy()
        if i >= 0:
            codes[i] = 255
        log_p = forest.log_joint(codes)[np.arange(150), data.y]
        np.testing.assert_allclose(found[i + 1], -log_p, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weights", ["auto", None])
def test_gaps_that_training_knows_are_values_with_parts(weights):
    forest, data = learnt(weights, gaps=0.2)
    found = explain(forest, data.codes)
    np.testing.assert_allclose(found.sum(axis=1), forest.log_joint(data.codes), rtol=1e-10, atol=1e-10)
    assert np.abs(found[:, 0][data.codes[0] == 255]).max() > 0
    nothing = losses_without(forest, np.full((4, 1), 255, np.uint8), np.array([0]))
    assert len(set(nothing[:, 0])) > 1  # that it is missing is left out, too


@pytest.mark.parametrize("is_average", [False, True])
def test_threads_and_blocks_change_nothing(is_average, monkeypatch):
    forest, data = learnt(None if is_average else "auto", n=700)
    whole = [f(forest, data.codes) for f in (explain, dependences)] + [losses_without(forest, data.codes, data.y)]
    again = [f(forest, data.codes, n_jobs=3) for f in (explain, dependences)]
    again += [losses_without(forest, data.codes, data.y, n_jobs=3)]
    for first, second in zip(whole, again, strict=True):
        np.testing.assert_array_equal(first, second)
    monkeypatch.setattr("tanlearn.forest.interpretation._MOST_NUMBERS", 1000)
    again = [f(forest, data.codes) for f in (explain, dependences)] + [losses_without(forest, data.codes, data.y)]
    for first, second in zip(whole, again, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-13)
    few = data.codes[:, :9].copy()
    whole = [explain(forest, few), dependences(forest, few), losses_without(forest, few, data.y[:9])]
    monkeypatch.setattr("tanlearn.forest.interpretation._MOST_NUMBERS", 1)  # one row takes more: a block of its own
    again = [explain(forest, few), dependences(forest, few), losses_without(forest, few, data.y[:9])]
    for first, second in zip(whole, again, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-13)


def test_importances_are_of_twins_that_have_not_seen_the_rows():
    (first, of_first), (second, of_second) = make(False), make(True, seed=1)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, CODES.shape[1])
    data = EncodedData(CODES, np.array(N_STATES), y, 3, sample_weight=rng.random(len(y)) + 0.5)
    fold, rows = rng.integers(0, 2, len(y)), rng.permutation(len(y))[:20]
    found = left_out_importances([first, second], data, fold, rows)
    for i in range(4):
        total = 0.0
        for r in rows:
            row, of_twin = rows_of(CODES[:, [r]])[0], (of_first, of_second)[fold[r]]
            p, without = oracle.predict(*of_twin, row), oracle.predict(*of_twin, row, (i,))
            total += data.weights[r] * np.log(p[y[r]] / without[y[r]])
        np.testing.assert_allclose(found[i], total / data.weights[rows].sum())


def test_files_keep_importances():
    forest, data = learnt()
    of_left_out = np.array([0.5, 0.0, -0.1, 0.2])
    state = replace(forest, importances=of_left_out).to_state()
    np.testing.assert_array_equal(Forest.from_state(state, data.n_states, 3).importances, of_left_out)
    assert Forest.from_state(replace(forest, importances=None).to_state(), data.n_states, 3).importances is None
    for wrong in (of_left_out[1:], of_left_out + np.inf):
        with pytest.raises(ValueError, match="importances"):
            Forest.from_state({**state, "importances": wrong}, data.n_states, 3)
