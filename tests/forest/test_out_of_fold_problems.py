"""Twins have not seen what they are asked of, and inner ones have not seen the fold that judges either."""

from dataclasses import replace
from operator import is_

import numpy as np
import pytest
from support.forests import DRAWS, draw_views, make

from tanlearn.forest import out_of_fold as module
from tanlearn.forest.forest_network import grow_network
from tanlearn.forest.out_of_fold import grow_out_of_fold


def grow(data, n_folds=3, is_nested=True, seed=0, n_jobs=None):
    """Return views of two members."""
    ordered, gaps = np.ones(data.n_features, bool), np.zeros(data.n_features, bool)

    def of_part(part, seed):
        return grow_network(part, ordered, gaps, DRAWS, seed, smoothing=1.0, min_samples=2)

    how = {"n_folds": n_folds, "n_levels": 4, "is_nested": is_nested}
    return grow_out_of_fold(data, [5, 6], of_part, **how, rng=np.random.default_rng(seed), n_jobs=n_jobs)


def said(view, rows):
    """Return all that twins say of rows."""
    return np.concatenate([view.level_scores(rows), view.base(rows)[np.newaxis]])


def turn(data, rows):
    """Return data in which the classes of rows are others."""
    y = data.y.copy()
    y[rows] = (y[rows] + 1) % data.n_classes
    return replace(data, y=y)


def fixed(monkeypatch, n, n_folds):
    """Deal folds that do not depend on the classes."""
    fold = np.random.default_rng(1).permutation(np.arange(n) % n_folds)
    monkeypatch.setattr(module, "draw_folds", lambda y, n_folds, rng: fold)
    return fold


@pytest.mark.parametrize("n_folds", [3, 4])
def test_inner_twins_have_seen_neither_the_fold_of_a_row_nor_the_one_that_judges(monkeypatch, n_folds):
    data = make(80)
    fold = fixed(monkeypatch, 80, n_folds)
    views = grow(data, n_folds)
    assert len(views.inner) == n_folds
    for f in range(n_folds):
        turned = grow(turn(data, fold == f), n_folds)
        # What inner[f] says of any row does not depend on the classes of the fold f,
        np.testing.assert_array_equal(said(turned.inner[f], np.arange(80)), said(views.inner[f], np.arange(80)))
        for g in range(n_folds):
            rows = np.flatnonzero(fold == g)
            # and what any says of rows of f not either; of others, all that may have seen f do.
            knows_f = g != f
            assert (said(turned.outer, rows) != said(views.outer, rows)).any() == knows_f
            for h in range(n_folds):
                changed = (said(turned.inner[h], rows) != said(views.inner[h], rows)).any()
                assert changed == (knows_f and h != f), (f, g, h)


def test_inner_twins_of_two_folds_are_the_same_both_ways():
    views = grow(make(60))
    for f, g in ((0, 1), (0, 2), (1, 2)):
        assert all(map(is_, views.inner[f].members[g], views.inner[g].members[f]))
        assert all(map(is_, views.inner[f].members[f], views.outer.members[f]))
        np.testing.assert_array_equal(views.inner[f].log_prior[g], views.inner[g].log_prior[f])


@pytest.mark.parametrize("weights", [None, "real"])
def test_priors_are_weights_of_rows_that_were_seen(weights):
    weight = None if weights is None else np.random.default_rng(0).random(60) + 0.1
    data = make(60, weights=weight)
    views = grow(data)
    for f in range(3):
        for g in range(3):
            seen = (views.fold != f) & (views.fold != g)
            sums = np.array([data.weights[seen & (data.y == c)].sum() for c in range(3)]) + 1
            np.testing.assert_allclose(views.inner[f].log_prior[g], np.log(sums / sums.sum()))


@pytest.mark.parametrize("limits", [{}, {"MOST_ROWS": 40}])
def test_every_fold_has_its_share_of_every_class(monkeypatch, limits):
    for name, value in limits.items():
        monkeypatch.setattr(module, name, value)
    data = make(100, n_classes=2)
    data = replace(data, y=(np.arange(100) % 10 == 0).astype(np.intp))
    views = grow(data, 5, is_nested=False)
    for fold in (views.outer.fold, views.fold[views.rows]):
        assert np.ptp(np.bincount(fold, minlength=5)) <= 1
    by_class = np.array([np.bincount(views.outer.fold[data.y == c], minlength=5) for c in range(2)])
    assert by_class.tolist() == [[18] * 5, [2] * 5]
    of_rows = [np.bincount(views.fold[views.rows][data.y[views.rows] == c], minlength=5) for c in range(2)]
    assert max(map(np.ptp, of_rows)) <= 1


def test_rows_are_all_rows_in_random_order():
    views = grow(make(60))
    assert sorted(views.rows.tolist()) == list(range(60))
    assert np.abs(np.diff(views.rows)).mean() > 10
    assert (views.rows != grow(make(60), seed=1).rows).any()


@pytest.mark.parametrize(("n_folds", "is_nested", "nested_rows"), [(2, True, 2048), (3, False, 2048), (3, True, 59)])
def test_twins_are_not_nested_where_that_is_not_asked_or_not_possible_or_rows_are_many(
    monkeypatch, n_folds, is_nested, nested_rows
):
    monkeypatch.setattr(module, "NESTED_ROWS", nested_rows)
    views = grow(make(60), n_folds, is_nested)
    assert views.inner == []
    assert len(views.outer.members) == n_folds
    assert sorted(views.rows.tolist()) == list(range(60))
    np.testing.assert_array_equal(views.fold, views.outer.fold)
    monkeypatch.setattr(module, "NESTED_ROWS", 60)
    monkeypatch.setattr(module, "MOST_NESTED", 3)
    assert len(grow(make(60), 3, True).inner) == 3
    assert grow(make(60), 4, True).inner == []


def test_of_many_rows_some_folds_are_in_all_twins_and_others_judge(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 30)
    monkeypatch.setattr(module, "NESTED_ROWS", 50)
    data = make(100)
    fold = fixed(monkeypatch, 100, 5)
    monkeypatch.setattr(module, "draw_folds", lambda y, n, rng: fold[: len(y)])
    views = grow(data, 5)
    assert len(views.outer.members) == 2  # 30 rows need two folds of 20
    assert views.inner == []
    assert len(views.rows) == len(set(views.rows.tolist())) == 30
    assert set(fold[views.rows].tolist()) == {0, 1}
    np.testing.assert_array_equal(views.fold[views.rows], fold[:30])  # dealt again
    turned = grow(turn(data, fold == 0), 5)
    own = views.rows[fold[views.rows] == 0]
    np.testing.assert_array_equal(said(turned.outer, own), said(views.outer, own))
    turned = grow(turn(data, fold == 4), 5)
    assert (said(turned.outer, own) != said(views.outer, own)).any()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_twins_do_not_depend_on_threads(n_jobs):
    found = [grow(make(60), n_jobs=own) for own in (None, n_jobs)]
    np.testing.assert_array_equal(*(said(own.inner[1], own.rows) for own in found))


def ask(views, rows):
    """Return what is asked for the problems of rows: who sees which, for which part, and the answers."""
    asked = []

    class Answer:
        def __init__(self, number):
            self.number = number

        def take(self, mask):
            return self.number, rows[mask].tolist()

    def make(view, part, own):
        asked.append((view, part, own.tolist()))
        return Answer(len(asked) - 1)

    whole, parts = views.problems(make, rows)
    return asked, whole, parts


def test_inner_twins_teach_and_outer_ones_judge():
    views = draw_views(0, n=30)
    rows = views.rows[:20]
    asked, whole, parts = ask(views, rows)
    assert asked[whole.number] == (views.outer, -1, rows.tolist())
    for f, (inside, outside) in enumerate(parts):
        own = views.fold[rows] == f
        assert asked[inside.number] == (views.inner[f], f, rows[~own].tolist())
        assert asked[outside.number] == (views.outer, f, rows[own].tolist())


def test_without_inner_twins_the_whole_is_divided():
    views = draw_views(0, n=30, n_folds=2, is_nested=False)
    asked, whole, parts = ask(views, views.rows)
    assert len(asked) == 1
    assert len(parts) == 2
    for f, (inside, outside) in enumerate(parts):
        own = views.fold[views.rows] == f
        assert inside == (whole.number, views.rows[~own].tolist())
        assert outside == (whole.number, views.rows[own].tolist())
