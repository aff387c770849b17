"""Twins say of rows what they say without having seen their fold, by level, by feature, and by family."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from support.forests import DRAWS, make

from tanlearn.encoding.splits import draw_folds
from tanlearn.forest import learning
from tanlearn.forest import out_of_fold as module
from tanlearn.forest.forest_network import grow_network
from tanlearn.forest.learning import ForestSettings, fit_forest_weights, grow_forest
from tanlearn.forest.out_of_fold import FoldNetworks

ROWS = np.random.default_rng(7).permutation(90)[:70]


def grow(data, fold, n_jobs=None, most_parents=(3, 3)):
    """Return twins of two members."""
    ordered, gaps = np.ones(data.n_features, bool), np.zeros(data.n_features, bool)
    parts = [data.take(fold != f) for f in range(3)]
    members = [
        [
            grow_network(part, ordered, gaps, replace(DRAWS, max_parents=k), seed, smoothing=1.0, min_samples=2)
            for seed, k in enumerate(most_parents)
        ]
        for part in parts
    ]
    log_prior = np.log(np.random.default_rng(0).dirichlet(np.ones(data.n_classes), 3))
    return FoldNetworks(data, fold, members, log_prior, 4, n_jobs)


@pytest.fixture(scope="module")
def left():
    """Return twins of two members of which one has fewer levels."""
    data = make(90)
    return grow(data, draw_folds(data.y, 3, np.random.default_rng(0)), most_parents=(3, 1))


def gains_of(left, rows):
    """Return gains [member, feature, level, row, class], family by family and row by row."""
    d, n_levels = left.data.n_features, left.n_levels
    out = np.zeros((left.n_members, d, n_levels, len(rows), left.data.n_classes))
    for k, r in enumerate(rows):
        for e, member in enumerate(left.members[left.fold[r]]):
            own = member.tables.n_levels
            slot = np.arange(d * own).reshape(d, own)
            scores = np.zeros((d * own, 1, left.data.n_classes))
            member.add_scores(np.ascontiguousarray(left.data.codes[:, [r]]), np.ones((d, own)), slot, scores)
            out[e, :, :own, k] = scores.reshape(d, own, -1)
    return out


@pytest.mark.parametrize("room", [2**18, 100, 1])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_are_sums_of_the_gains_of_members_that_have_not_seen_the_row(left, monkeypatch, room, n_jobs):
    monkeypatch.setattr(module, "_ROOM", room)
    left = replace(left, n_jobs=n_jobs)
    gains, close = gains_of(left, ROWS), {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_array_equal(left.base(ROWS), left.log_prior[left.fold[ROWS]])
    np.testing.assert_allclose(left.level_scores(ROWS), gains.sum(axis=1).mean(axis=0), **close)
    weight = np.array([1.0, 0.5, -0.2, 0.3])
    by_family = np.tensordot(weight, gains, (0, 2))
    np.testing.assert_allclose(left.feature_scores(ROWS, weight), by_family.mean(axis=0), **close)
    classes = np.random.default_rng(1).permuted(np.tile(np.arange(3), (len(ROWS), 1)), axis=1)[:, :2]
    expected = np.take_along_axis(by_family.reshape(10, len(ROWS), 3), classes[np.newaxis], axis=2)
    families = left.family_scores(ROWS, weight, classes, None)
    assert families.dtype == np.float32
    np.testing.assert_allclose(families, expected, **close)
    shares = np.random.default_rng(2).dirichlet(np.ones(3), len(ROWS))
    rest = (by_family.reshape(10, len(ROWS), 3) * shares).sum(axis=2)
    families = left.family_scores(ROWS, weight, classes, shares)
    np.testing.assert_allclose(families, np.dstack([expected, rest]), **close)
    weights = np.random.default_rng(2).normal(size=gains.shape[:3])
    np.testing.assert_allclose(left.total_scores(ROWS, weights), np.tensordot(weights, gains, 3), **close)
    up_to = np.cumsum(gains.sum(axis=1), axis=1) + left.base(ROWS)
    np.testing.assert_allclose(left.level_probabilities(ROWS), softmax(up_to, axis=3).mean(axis=0), **close)


def test_what_is_left_out_does_not_know_its_classes():
    data, fold = make(90), np.arange(90) % 3
    turned = replace(data, y=np.where(fold == 1, (data.y + 1) % 3, data.y))
    scores, of_turned = (grow(own, fold).level_scores(np.arange(90)) for own in (data, turned))
    np.testing.assert_array_equal(scores[:, fold == 1], of_turned[:, fold == 1])
    assert (scores[:, fold == 0] != of_turned[:, fold == 0]).any()


def test_networks_of_many_rows_are_grown_once_without_the_rows_of_the_weights(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    monkeypatch.setattr(module, "HELD_OUT_FROM", 400)
    data, is_ordered = make(400), np.ones(5, bool)
    settings = ForestSettings(n_members=2, draws=DRAWS, n_folds=3)
    grown = grow_forest(data, is_ordered, settings, np.random.default_rng(0))
    assert len(set(grown.held_out.tolist())) == 60
    more = replace(settings, n_members=3)
    warm = grow_forest(data, is_ordered, more, np.random.default_rng(9), before=grown)
    assert warm.held_out.tolist() == grown.held_out.tolist()
    at_once = grow_forest(data, is_ordered, more, np.random.default_rng(0))
    assert at_once.held_out.tolist() == grown.held_out.tolist()
    others = np.setdiff1d(np.arange(400), grown.held_out)
    part = data.take(others)
    for seed, network in zip(grown.seeds, grown.members, strict=True):
        alone = grow_network(part, is_ordered, np.zeros(5, bool), DRAWS, seed, smoothing=1.0, min_samples=5)
        np.testing.assert_array_equal(network.tables.gain, alone.tables.gain)
    monkeypatch.setattr(learning, "grow_out_of_fold", None)  # not called
    fitted = fit_forest_weights(data, is_ordered, settings, grown, np.random.default_rng(1))
    assert set(fitted.rows.tolist()) == set(grown.held_out.tolist())
    scores = np.tile(fitted.forest.log_prior, (1, 60, 1))
    for network, weight in zip(fitted.forest.members, fitted.forest.weights, strict=True):
        network.add_scores(np.ascontiguousarray(data.codes[:, fitted.rows]), weight, np.zeros((5, 4), int), scores)
    own = softmax(scores[0], axis=1)
    assert np.abs(np.exp(fitted.log_p) - own).mean() < 0.1  # with weights that were fitted to all 60 rows
    assert module.left_out_folds(400, 3, is_nested=True) == []
    few = make(399)
    assert grow_forest(few, is_ordered, settings, np.random.default_rng(0)).held_out is None


def test_log_frequencies_of_held_out_rows_are_those_of_the_other_rows():
    data, rows = make(90), np.arange(30)
    networks = grow(data, np.arange(90) % 3).members[0]
    common = {"n_folds": 3, "n_levels": 4, "n_jobs": None}
    found = module.predict_held_out(data, networks, rows, rng=np.random.default_rng(0), **common)
    expected = np.log((1 + np.bincount(data.y[30:], minlength=3)) / 63)
    np.testing.assert_allclose(found.outer.base(rows), np.tile(expected, (30, 1)))
    assert set(found.fold[rows].tolist()) == {0, 1, 2}
