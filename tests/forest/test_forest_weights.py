"""Levels, features and families are weighed as the oracle does, by views that are made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import weighing as oracle
from support.forests import Gains, draw_views

from tanlearn.forest import forest_weights as module
from tanlearn.forest import ridge as ridge_module
from tanlearn.forest.class_groups import likeliest_classes
from tanlearn.forest.forest_weights import first_rows, fit_all_weights
from tanlearn.forest.learning import NOISE, estimate_label_noise
from tanlearn.forest.out_of_fold import OutOfFold


@pytest.fixture(autouse=True)
def to_the_end(monkeypatch):
    """Minimise to the end, as the oracle does."""
    monkeypatch.setattr(ridge_module, "_TOLERANCE", 1e-13)


def expected_of(views, kind, ridge=None, n_level_rows=10**9, n_family_rows=10**9):
    """Return what the oracle finds."""
    data = views.outer.data
    outer, *inner = [(own.gains, own.log_prior) for own in (views.outer, *views.inner)]
    ridges = [
        module.LEVEL_RIDGES,
        *(own if ridge is None else [ridge] for own in (module.FEATURE_RIDGES, module.FAMILY_RIDGES)),
    ]
    rows = data.y, data.weights, views.fold, views.rows
    limits = module.N_GROUPS, n_level_rows, n_family_rows
    found = oracle.weigh(outer, inner, *rows, kind, ridges, *limits)
    assert found["margin"] > 1e-5  # more than rounding
    return found


def check(found, told, expected):
    """Compare with the oracle."""
    np.testing.assert_allclose(found.weights, expected["weights"], atol=1e-3)
    assert found.of_prior == pytest.approx(expected["of_prior"], abs=1e-3)
    np.testing.assert_allclose(found.p, expected["p"], atol=1e-3)
    ridges = [own.split("ridge ")[1].split(":")[0] for own in told if "ridge" in own]
    assert ridges == [f"{own:g}" for own in expected["ridges"]]


#: Kind, whether predictions are nested, a ridge, the signal, a seed, the number of classes and of their groups, and
#: which stages move weights; "family?" if they do so for groups of classes, but not for the log loss of all classes.
CASES = [
    ("auto", True, None, 1.0, 3, 3, 4, "level feature family"),
    ("auto", True, None, 1.0, 0, 3, 4, "level family"),
    ("auto", True, None, 0.15, 0, 3, 4, "level feature"),
    ("auto", True, 0.01, 1.0, 2, 3, 4, "level family"),
    ("auto", True, 0.01, 0.15, 1, 3, 4, "level"),
    ("auto", False, None, 1.0, 3, 3, 4, "level feature family"),
    ("auto", False, 0.01, 1.0, 0, 3, 4, "level feature"),
    ("auto", False, 0.01, 1.0, 4, 3, 4, "level feature family"),
    ("shared", True, None, 1.0, 3, 3, 4, "level feature"),
    ("shared", True, None, 1.0, 1, 3, 4, "level"),
    ("shared", False, None, 1.0, 2, 3, 4, "level feature"),
    ("shared", False, 0.01, 1.0, 1, 3, 4, "level feature"),
    ("auto", True, None, 1.0, 2, 6, 3, "level feature family"),
    ("auto", True, None, 0.15, 4, 6, 3, "level family?"),
    ("auto", True, None, 0.15, 5, 6, 3, "level feature family?"),
    ("auto", True, None, 0.4, 3, 6, 4, "level feature family"),
    ("auto", False, None, 1.0, 0, 6, 3, "level feature family"),
    ("auto", False, None, 1.0, 4, 6, 2, "level feature family"),
]


@pytest.mark.parametrize(("kind", "is_nested", "ridge", "signal", "seed", "n_classes", "n_groups", "moved"), CASES)
def test_weights_equal_the_oracle(monkeypatch, kind, is_nested, ridge, signal, seed, n_classes, n_groups, moved):
    monkeypatch.setattr(module, "N_GROUPS", n_groups)
    views, told = draw_views(seed, is_nested=is_nested, signal=signal, n_classes=n_classes), []
    expected = expected_of(views, kind, ridge)
    check(fit_all_weights(views, kind, ridge, told.append), told, expected)
    stages = zip(("level", "feature", "family"), expected["ridges"], strict=False)
    names = " ".join(name for name, own in stages if np.isfinite(own))
    assert names + "?" * ("family" in names and not expected["is_by_family"]) == moved


def test_many_classes_and_two_folds():
    views, told = draw_views(5, n=300, n_classes=6, n_folds=2, is_nested=False), []
    check(fit_all_weights(views, "auto", None, told.append), told, expected_of(views, "auto"))


def test_of_many_rows_the_first_are_weighed_by(monkeypatch):
    monkeypatch.setattr(module, "LEVEL_ROWS", 60)
    monkeypatch.setattr(module, "MOST_NUMBERS", 100 * 2 * 3 * 3)  # numbers of families: of 100 rows
    views, told = draw_views(6, n=180), []
    check(fit_all_weights(views, "auto", None, told.append), told, expected_of(views, "auto", None, 60, 100))
    assert first_rows(views.rows, 18).tolist() == views.rows[:100].tolist()
    assert first_rows(views.rows, 10**9).tolist() == views.rows[:1].tolist()


def test_classes_are_grouped_for_the_fitted_rows_only(monkeypatch):
    shapes = []

    def keep(log_p, n_groups):
        shapes.append(log_p.shape)
        return likeliest_classes(log_p, n_groups)

    monkeypatch.setattr(module, "likeliest_classes", keep)
    monkeypatch.setattr(module, "MOST_NUMBERS", 100 * 3 * 5)  # numbers of features: of 100 rows
    fit_all_weights(draw_views(6, n=180, n_classes=5), "auto", None, lambda message: None)
    assert shapes == [(100, 5)]


@pytest.mark.parametrize("seed", range(2))
def test_a_row_of_weight_two_is_two_rows(seed):
    views = draw_views(seed, n=120)
    outer, fold = views.outer, views.fold
    is_heavy = outer.data.weights > 0.2
    weighted = replace(outer.data, sample_weight=1.0 + is_heavy)
    rows = np.repeat(np.arange(120), 1 + is_heavy)
    repeated = replace(outer.data.take(rows), sample_weight=None)

    def some(view, data, own):
        return Gains(data, view.gains[:, :, :, own], view.log_prior[own])

    found = []
    for data, own in ((weighted, np.arange(120)), (repeated, rows)):
        inner, order = [some(view, data, own) for view in views.inner], np.random.default_rng(1).permutation(len(own))
        twins = OutOfFold(some(outer, data, own), inner, fold[own], order)
        found.append(fit_all_weights(twins, "auto", None, lambda message: None))
    np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-3)
    assert found[0].of_prior == pytest.approx(found[1].of_prior, abs=1e-3)
    unweighted = fit_all_weights(views, "auto", None, lambda message: None)
    assert np.abs(found[0].weights - unweighted.weights).max() > 0.01


@pytest.mark.parametrize("is_nested", [True, False])
def test_the_class_of_a_row_does_not_change_the_groups_of_its_classes(monkeypatch, is_nested):
    monkeypatch.setattr(module, "N_GROUPS", 3)
    views, seen = draw_views(2, n_classes=6, is_nested=is_nested), []
    data = views.outer.data

    def keep(log_p, n_groups):
        seen.append(likeliest_classes(log_p, n_groups))
        return seen[-1]

    monkeypatch.setattr(module, "likeliest_classes", keep)
    for row in (None, *range(5)):
        y = data.y.copy()
        if row is not None:
            y[row] = (y[row] + 3) % 6
        outer = replace(views.outer, data=replace(data, y=y))
        fit_all_weights(replace(views, outer=outer), "auto", None, lambda message: None)
    first, *others = seen
    assert first.shape == (150, 2)
    for row, found in enumerate(others):
        assert found[row].tolist() == first[row].tolist()
    assert (np.array(others) != first).any()  # weights fitted to a row change those of other folds


def test_families_that_raise_the_log_loss_of_all_classes_are_not_used(monkeypatch):
    views, told = draw_views(4, signal=0.15, n_classes=6), []
    monkeypatch.setattr(module, "N_GROUPS", 3)
    found = fit_all_weights(views, "auto", None, told.append)
    shared = fit_all_weights(views, "shared", None, lambda message: None)
    np.testing.assert_array_equal(found.weights, shared.weights)
    np.testing.assert_array_equal(found.p, shared.p)
    by_group, of_all = (told[-k].split("log loss ")[1].split(" -> ") for k in (2, 1))
    assert float(by_group[1]) < float(by_group[0])
    assert float(of_all[1]) > float(of_all[0])


def test_progress_messages_name_the_stages():
    told = []
    fit_all_weights(draw_views(3), "auto", 0.01, told.append)
    assert [own.split(",")[0] for own in told] == [
        f"weights of {what}" for what in ("levels", "features", "families", "families")
    ]


def test_label_noise_grows_with_rows_that_are_surely_wrong():
    sure = np.full(500, 0.999)
    doubts = [estimate_label_noise(np.append(sure, np.full(k, 1e-12)), np.ones(500 + k), 2) for k in (0, 1, 5, 20)]
    assert (np.diff(doubts) > 0).all()
    assert 1e-3 < doubts[0] < 5e-3  # one row of each kind is assumed
    assert 0.03 < doubts[3] < 0.12
    assert NOISE[0] < doubts[0]


@pytest.mark.parametrize("n", [3, 80])
@pytest.mark.parametrize("seed", range(10))
def test_label_noise_is_that_of_the_oracle(seed, n):
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.05 * seed * (n > 3), 1e-6, rng.beta(5, 1, n))
    weight = rng.choice([0.1, 3.0], n)
    expected, scores = oracle.label_noise(p, weight, 3, NOISE)
    assert scores[-1] - scores[-2] > 1e-9
    assert estimate_label_noise(p, weight, 3) == expected
    assert estimate_label_noise(p, 1000 * weight, 3) == expected


def test_rows_of_more_weight_count_more_for_the_label_noise():
    p = np.append(np.full(90, 0.99), np.full(10, 1e-9))
    shares = [estimate_label_noise(p, np.append(np.ones(90), np.full(10, own)), 2) for own in (0.1, 1.0, 10.0)]
    assert (np.diff(shares) > 0.01).all()
    halves = np.concatenate([np.full(100, 1.5), np.full(100, 0.5)])
    assert estimate_label_noise(np.tile(p, 2), halves, 2) == estimate_label_noise(np.tile(p, 2), np.ones(200), 2)
