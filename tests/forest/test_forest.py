"""Forests: members, what is left out, weights, and the whole."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import context_tries as oracle
from scipy.special import log_softmax

from tanlearn import EncodedData
from tanlearn.data.splits import deal_folds
from tanlearn.forest.contexts import ContextTables
from tanlearn.forest.drawing import Grain, draw_cuts, draw_parents
from tanlearn.forest.forest import Forest
from tanlearn.forest.learning import Settings, learn_forest
from tanlearn.forest.left_out import LeftOut
from tanlearn.forest.member import grow_member
from tanlearn.forest.ridge import fit_weights
from tanlearn.forest.state import _LISTS, from_state, to_state
from tanlearn.forest.weighing import DOUBTS, doubt_of

GRAIN = Grain(n_cuts=(2, 4), max_parents=3)


def make(n=200, d=5, n_classes=3, seed=0, gaps=0.0, weights=None):
    """Return rows whose class depends on two features together."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, (n, d))
    y = (codes[:, 0] // 4 + codes[:, -1] // 6) % n_classes
    y = np.where(rng.random(n) < 0.1, rng.integers(0, n_classes, n), y)
    codes = np.where(rng.random((n, d)) < gaps, -1, codes)
    return EncodedData.from_codes(codes, y, n_states=[12] * d, n_classes=n_classes, sample_weight=weights)


def learn(data, n_jobs=None, seed=0, **settings):
    """Return a small forest."""
    settings = Settings(**{"n_members": 3, "grain": GRAIN, "n_folds": 3, **settings})
    return learn_forest(data, np.arange(data.n_features) != 2, settings, np.random.default_rng(seed), n_jobs=n_jobs)


@pytest.mark.parametrize("weights", [None, "real"])
def test_tables_are_the_contexts_of_all_families(weights):
    sample_weight = None if weights is None else np.random.default_rng(1).random(60) + 0.1
    data = make(60, 4, 2, gaps=0.1, weights=sample_weight)
    parents = [np.array(p, np.intp) for p in ([], [0], [1, 0, 3], [2])]
    rows = data.codes, data.n_states, data.y, data.weights, 2
    tables = ContextTables.grow(*rows, parents, smoothing=2.0, min_samples=2)
    scores = np.zeros((1, 60, 2))
    tables.add_scores(data.codes, np.ones((4, 4)), np.zeros((4, 4), np.intp), scores)
    table = data.codes.T.tolist()
    for r, row in enumerate(table):
        gains = [
            own
            for child, of_child in enumerate(parents)
            for own in oracle.gains(
                table, data.y, data.weights, data.n_states, 2, child, of_child.tolist(), 2.0, 2, row
            )
        ]
        np.testing.assert_allclose(scores[0, r], np.sum(gains, axis=0), rtol=1e-5, atol=1e-5)


def test_cuts_keep_the_order_and_leave_categories_alone():
    data = make(300, gaps=0.05)
    has_gaps = np.array([True, True, True, True, False])
    cuts = draw_cuts(data, np.array([True, True, False, True, True]), has_gaps, GRAIN, np.random.default_rng(0))
    codes = cuts.encode(data.codes)
    assert cuts.n_states[2] == 13  # and the gap
    for i in (0, 1, 3, 4):
        merged = cuts.merged[i][:-1].astype(int)
        assert set(np.diff(merged)) <= {0, 1}
        assert 2 <= merged[-1] <= 4
        missing = data.codes[i] == 255
        assert (codes[i][missing] == (merged[-1] + 1 if has_gaps[i] else 255)).all()
        np.testing.assert_array_equal(codes[i][~missing], merged[data.codes[i][~missing]])


def test_supervised_cuts_lie_where_classes_change():
    data = make(2000, 2, 2, seed=3)
    data = replace(data, y=(data.codes[0] >= 5).astype(np.intp))
    grain = replace(GRAIN, n_cuts=(1, 1), supervised=1.0)
    cuts = draw_cuts(data, np.ones(2, bool), np.zeros(2, bool), grain, np.random.default_rng(0))
    assert cuts.merged[0][:-1].tolist() == [0] * 5 + [1] * 7


def test_parents_are_those_of_most_information_among_earlier_ones():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (500, 4))
    x[:, 1] = np.where(rng.random(500) < 0.9, x[:, 0], x[:, 1])
    data = EncodedData.from_codes(x, rng.integers(0, 2, 500))
    grain = replace(GRAIN, max_features=1.0, max_parents=1)
    for seed in range(5):
        parents = draw_parents(data.codes, data.n_states, data, grain, np.random.default_rng(seed))
        assert parents[1].tolist() == [0] or parents[0].tolist() == [1]
        assert sum(len(own) for own in parents) == 3  # all but the first of the order have one
        few = draw_parents(
            data.codes, data.n_states, data, replace(grain, max_features=0.0), np.random.default_rng(seed)
        )
        assert [len(own) for own in few] == [0] * 4


def test_what_is_left_out_does_not_know_its_classes():
    data, fold = make(90), np.arange(90) % 3
    turned = replace(data, y=np.where(fold == 1, (data.y + 1) % 3, data.y))
    found = []
    for own in (data, turned):
        left = LeftOut.grow(
            own,
            fold,
            [1, 2],
            lambda part, seed: grow_member(
                part, np.ones(5, bool), np.zeros(5, bool), GRAIN, seed, smoothing=1.0, min_samples=2
            ),
            4,
            None,
        )
        found.append((left.level_scores(np.arange(90)), left.base(np.arange(90))))
    (scores, base), (turned_scores, turned_base) = found
    np.testing.assert_array_equal(scores[:, fold == 1], turned_scores[:, fold == 1])
    np.testing.assert_array_equal(base[fold == 1], turned_base[fold == 1])
    assert (scores[:, fold == 0] != turned_scores[:, fold == 0]).any()


def test_scores_of_levels_features_and_families_add_up_to_the_same():
    data, rows = make(60), np.arange(60)[::-1]
    fold = deal_folds(data.y, 3, np.random.default_rng(0))
    how = {"smoothing": 1.0, "min_samples": 2}
    ordered, gaps = np.ones(5, bool), np.zeros(5, bool)
    left = LeftOut.grow(data, fold, [5, 6], lambda part, s: grow_member(part, ordered, gaps, GRAIN, s, **how), 4, 2)
    weight = np.array([1.0, 0.5, -0.2, 0.3])
    by_level = np.tensordot(weight, left.level_scores(rows), 1)
    np.testing.assert_allclose(left.feature_scores(rows, weight).sum(axis=0), by_level)
    classes = np.tile([2, 0], (60, 1))
    families = left.family_scores(rows, weight, classes)
    assert families.shape == (10, 60, 2)
    np.testing.assert_allclose(families.sum(axis=0) / 2, by_level[:, [2, 0]], rtol=1e-4, atol=1e-4)
    probabilities = left.level_probabilities(rows)
    np.testing.assert_allclose(probabilities.sum(axis=2), 1)


def test_weights_are_at_the_minimum_and_ridges_pull_them_back():
    rng = np.random.default_rng(0)
    scores, base = rng.normal(size=(3, 200, 3)), rng.normal(size=(200, 3))
    y = (np.tensordot([2.0, 0.0, -1.0], scores, 1) + rng.gumbel(size=(200, 3))).argmax(axis=1)
    weight, fold = rng.random(200) + 0.5, np.arange(200) % 4
    start = np.ones(3)
    found = fit_weights(scores, base, y, weight, start, [10.0, 0.1, 1e-3], fold, max_iter=200)
    assert found.ridge == 1e-3

    def objective(w):
        log_p = log_softmax(np.tensordot(w, scores, 1) + base, axis=1)[np.arange(200), y]
        return -np.average(log_p, weights=weight) + found.ridge / 2 * ((w - start) ** 2).sum()

    for step in 0.05 * np.eye(3):
        assert objective(found.weights) < min(objective(found.weights + step), objective(found.weights - step))
    assert found.log_loss < found.start_loss
    assert found.losses.shape == (200,)
    assert found.of_folds.shape == (4, 3)
    stiff = fit_weights(scores, base, y, weight, start, [1e6], fold)
    np.testing.assert_allclose(stiff.weights, start, atol=1e-4)


def test_left_out_losses_are_of_weights_that_have_not_seen_the_rows():
    rng = np.random.default_rng(1)
    scores, base, y = rng.normal(size=(2, 90, 2)), np.zeros((90, 2)), rng.integers(0, 2, 90)
    fold = np.arange(90) % 3
    found = fit_weights(scores, base, y, np.ones(90), np.ones(2), [0.1], fold)
    for f in range(3):
        rows = fold == f
        total = np.tensordot(found.of_folds[f], scores[:, rows], 1)
        own = -log_softmax(total, axis=1)[np.arange(rows.sum()), y[rows]]
        np.testing.assert_allclose(found.losses[rows], own)
        turned = np.where(rows, 1 - y, y)
        again = fit_weights(scores, base, turned, np.ones(90), np.ones(2), [0.1], fold)
        np.testing.assert_array_equal(again.of_folds[f], found.of_folds[f])


def test_doubt_grows_with_rows_that_are_surely_wrong():
    sure = np.full(500, 0.999)
    doubts = [doubt_of(np.append(sure, np.full(k, 1e-12)), np.ones(500 + k), 2) for k in (0, 1, 5, 20)]
    assert (np.diff(doubts) > 0).all()
    assert 1e-3 < doubts[0] < 5e-3  # one row of each kind is assumed
    assert 0.03 < doubts[3] < 0.12
    assert DOUBTS[0] < doubts[0]


@pytest.mark.parametrize("weights", ["auto", "shared", None])
def test_forest_is_the_same_on_any_number_of_threads_and_of_one_seed(weights):
    data = make(150, gaps=0.05)
    first, second = learn(data, weights=weights), learn(data, n_jobs=3, weights=weights)
    other = learn(data, seed=1, weights=weights)
    scores = first.log_scores(data.codes)
    np.testing.assert_array_equal(scores, second.log_scores(data.codes, n_jobs=2))
    assert (scores != other.log_scores(data.codes)).any()
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1)
    assert (scores.argmax(axis=1) == data.y).mean() > 0.6


def test_average_is_the_mean_of_probabilities_and_weighted_scores_are_added():
    data = make(100)
    forest = learn(data, weights=None)
    logs = []
    for member, weight in zip(forest.members, forest.weights, strict=True):
        scores = np.tile(forest.log_prior, (1, 100, 1))
        member.add_scores(data.codes, weight, np.zeros(weight.shape, np.intp), scores)
        logs.append(scores[0])
    mean = np.exp(log_softmax(logs, axis=2)).mean(axis=0)
    expected = np.log((1 - forest.doubt) * mean + forest.doubt / 3)
    np.testing.assert_allclose(forest.log_scores(data.codes), expected)
    added = replace(forest, is_average=False)
    total = np.exp(log_softmax(np.sum(logs, axis=0) - 2 * forest.log_prior, axis=1))
    expected = np.log((1 - forest.doubt) * total + forest.doubt / 3)
    np.testing.assert_allclose(added.log_scores(data.codes), expected)


def test_state_is_the_forest():
    data = make(120, gaps=0.05)
    forest = learn(data)
    again = from_state(to_state(forest), data.n_states, 3)
    np.testing.assert_array_equal(again.log_scores(data.codes), forest.log_scores(data.codes))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("weights", lambda a: a[0], "at least one member"),
        ("doubt", lambda a: 1.5, "doubt a share"),
        ("log_prior", lambda a: a[:-1], "log_prior must have"),
        ("shift", lambda a: a - np.inf, "a class that is possible"),
        ("log_prior", lambda a: a - np.inf, "log_prior must be finite"),
        ("parents", lambda a: a - 5, "parents must be features"),
        ("sizes", lambda a: -a, "sizes must be numbers from 0"),
        ("parents", lambda a: a + 9, "parents must be features"),
        ("root", lambda a: a + 10**6, "root among the contexts"),
        ("children", lambda a: a[::-1].copy(), "children must increase"),
        ("children", lambda a: np.where(np.arange(len(a)) < 3, 0, a), "must come after it"),
        ("classes", lambda a: a + np.uint16(9), "classes must be known"),
        ("cell_start", lambda a: np.where(np.arange(len(a)) == 1, 0, a), "a cell for each"),
        ("n_states", lambda a: 0 * a, "features have states"),
        ("gain", lambda a: a * np.float32(-np.inf), "gain"),
    ],
)
def test_state_that_points_nowhere_is_refused(name, change, message):
    data = make(60)
    state = to_state(learn(data, n_members=1))
    state[name] = change(state[name])
    with pytest.raises(ValueError, match=message):
        from_state(state, data.n_states, 3)


def test_starts_that_leave_the_lists_are_refused_though_their_differences_overflow():
    data = make(60)
    state = to_state(learn(data, n_members=1))
    n, end = len(state["branch"]), len(state["values"])
    state["value_start"] = np.r_[0, 2**63 - 1, -(2**63), -(2**62), 0, np.full(n - 4, end)]
    for name in ("classes", "unseen", "gain"):
        state["sizes"][0, list(_LISTS).index(name)] = 0
        state[name] = state[name][:0]
    state["class_start"], state["cell_start"] = 0 * state["class_start"], 0 * state["cell_start"]
    with pytest.raises(ValueError, match="value_start must increase"):
        from_state(state, data.n_states, 3)


def test_columns_of_many_values_take_no_table_of_their_square():
    data = EncodedData.from_codes([[0, 0], [59_999, 1], [5, 1], [6, 0]], [0, 1, 1, 0], n_states=[60_000, 2])
    forest = learn(data, n_folds=2)
    assert np.isfinite(forest.log_scores(data.codes)).all()


def test_forest_of_one_feature_and_of_few_rows():
    data = make(6, 1, 2)
    forest = learn(data, n_folds=6)
    assert isinstance(forest, Forest)
    assert np.isfinite(forest.log_scores(data.codes)).all()
