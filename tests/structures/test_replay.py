"""Structures along a history that is written by hand."""

import pytest

from tanlearn import Structure
from tanlearn.baselines import ParentChange, structures_along


def history_of(*changes):
    return [ParentChange(child, parents, float(k), step, k, 0.0) for k, (child, parents, step) in enumerate(changes)]


def test_records_of_one_step_are_one_change():
    # Between the two records of step 2, features 0 and 1 are parents of each other.
    history = history_of((2, (1,), 0), (1, (0,), 1), (0, (1,), 2), (1, (), 2), (2, (1, 0), 5), (0, (), 5))
    along = list(structures_along(history, 3))
    assert [change.step for change, _ in along] == [0, 1, 2, 5]
    assert [change.score for change, _ in along] == [0.0, 1.0, 3.0, 5.0]
    parents = [[[], [], [1]], [[], [0], [1]], [[1], [], [1]], [[], [], [1, 0]]]
    for (_, structure), expected in zip(along, parents, strict=True):
        assert structure == Structure([[*row, -1, -1][:2] for row in expected])


def test_wide_families_and_empty_histories():
    ((_, structure),) = structures_along(history_of((3, (2, 0, 1), 1)), 4)
    assert structure == Structure([[-1, -1, -1]] * 3 + [[2, 0, 1]])
    assert list(structures_along([], 4)) == []


def test_histories_of_other_data_are_refused():
    with pytest.raises(ValueError, match=r"search over 3 features, but it contains feature 3"):
        list(structures_along(history_of((3, (0,), 1)), 3))
    with pytest.raises(ValueError, match="cycle"):
        list(structures_along(history_of((0, (1,), 1), (1, (0,), 2)), 2))
