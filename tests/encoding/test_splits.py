"""Splits: shares, folds, those of scikit-learn, and rows of weight 0 that are in none."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, StratifiedKFold, train_test_split

from tanlearn.encoding.splits import draw_folds, hold_out, search_splits, stratified_splits, validation_masks

Y = np.random.default_rng(5).integers(0, 3, 50)
X = np.zeros((50, 1))
ALL = np.arange(50)


def assert_same_splits(found, expected):
    for pair in zip(found, expected, strict=True):
        for one, other in zip(*pair, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fraction", [0.25, 0.5, 0.9])
def test_a_share_of_every_class_is_held_out_but_never_a_whole_class(fraction, seed):
    y = np.repeat([0, 1, 2, 4], [20, 2, 1, 5])  # no row is of class 3
    held_out = hold_out(y, 5, fraction, np.random.default_rng(seed))
    n_held_out = np.bincount(y[held_out], minlength=5).tolist()
    assert n_held_out == {0.25: [5, 0, 0, 0, 1], 0.5: [10, 1, 0, 0, 2], 0.9: [18, 1, 0, 0, 4]}[fraction]


def test_rows_to_hold_out_are_drawn():
    y = np.zeros(20, int)
    first, again, other = (hold_out(y, 1, 0.5, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_share_of_no_row_is_an_error():
    with pytest.raises(
        ValueError, match=r"a held-out fraction of 0\.01 of 20 rows is less than one row\. Increase the fraction"
    ):
        hold_out(np.zeros(20, int), 1, 0.01, np.random.default_rng(0))


def test_folds_are_stratified_and_seeded():
    y = np.repeat([0, 1, 2], [50, 13, 4])
    fold = draw_folds(y, 5, np.random.default_rng(0))
    counts = np.array([np.bincount(fold[y == c], minlength=5) for c in range(3)])
    assert np.ptp(counts, axis=1).max() <= 1
    assert np.ptp(counts.sum(axis=0)) <= 1
    assert (fold != draw_folds(y, 5, np.random.default_rng(1))).any()
    with pytest.raises(ValueError, match="68 folds need at least 68 rows of positive weight, got 67"):
        draw_folds(y, 68, np.random.default_rng(0))


def test_rows_of_a_class_are_dealt_in_the_order_that_was_drawn():
    """A stable sort: folds do not depend on the processor."""
    y = np.random.default_rng(0).integers(0, 3, 2000)
    order = np.random.default_rng(1).permutation(2000).tolist()
    expected = dict(zip(sorted(order, key=y.__getitem__), np.arange(2000) % 7, strict=True))
    assert draw_folds(y, 7, np.random.default_rng(1)).tolist() == [expected[row] for row in range(2000)]


@pytest.mark.parametrize("n_folds", [2, 5, 50])
def test_folds_are_disjoint_and_of_every_class_nearly_the_same_share(n_folds):
    folds = validation_masks(Y, 3, n_folds, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sum(folds, axis=0), np.ones(50))
    per_class = np.array([np.bincount(Y[rows], minlength=3) for rows in folds])
    assert (per_class.max(axis=0) - per_class.min(axis=0) <= 1).all()
    assert np.ptp(np.sum(folds, axis=1)) <= 1
    again, other = (validation_masks(Y, 3, n_folds, np.random.default_rng(seed)) for seed in (0, 1))
    np.testing.assert_array_equal(folds, again)
    assert np.not_equal(folds, other).any()


def test_a_held_out_share_is_of_every_class():
    (held_out,) = validation_masks(Y, 3, 0.3, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(Y[held_out]), np.rint(0.3 * np.bincount(Y)))
    np.testing.assert_array_equal(held_out, hold_out(Y, 3, 0.3, np.random.default_rng(0)))


def test_stratified_splits_are_those_of_scikit_learn():
    one = train_test_split(ALL, test_size=1 / 3, stratify=Y, random_state=4)
    assert_same_splits(stratified_splits(Y, None, 4), [one])
    folds = StratifiedKFold(3, shuffle=True, random_state=4).split(X, Y)
    assert_same_splits(stratified_splits(Y, 3, 4), folds)


def test_splits_of_a_search_leave_rows_of_weight_zero_out():
    present = np.flatnonzero(ALL % 7)
    for cv, n_splits in ((0.3, 1), (3, 3), (StratifiedKFold(2), 2), ([([0, 1, 7], [2, 14])], 1)):
        splits = search_splits(cv, X, Y, 3, present, 0)
        assert len(splits) == n_splits
        for train, test in splits:
            assert set(train) | set(test) <= set(present)
            assert not set(train) & set(test)
    assert_same_splits(splits, [([1], [2])])


def test_splits_of_a_search_are_what_was_asked_for():
    held_out = hold_out(Y, 3, 0.3, np.random.default_rng(6))
    assert_same_splits(search_splits(0.3, X, Y, 3, ALL, 6), [(ALL[~held_out], ALL[held_out])])
    assert_same_splits(search_splits(4, X, Y, 3, ALL, 6), stratified_splits(Y, 4, 6))
    assert_same_splits(search_splits(None, X, Y, 3, ALL, 6), StratifiedKFold(5).split(X, Y))
    splitter = StratifiedKFold(3)
    assert_same_splits(search_splits(splitter, X, Y, 3, ALL, 6), splitter.split(X, Y))
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        search_splits(GroupKFold(2), X, Y, 3, ALL, 0)
