"""A forest as arrays, back again, and arrays that point nowhere."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.forests import learn, make

from tanlearn.forest.forest import Forest
from tanlearn.forest.serialization import _LISTS


def test_state_is_the_forest():
    data = make(120, gaps=0.05)
    forest = learn(data)
    again = Forest.from_state(forest.to_state(), data.n_states, 3)
    np.testing.assert_array_equal(again.log_joint(data.codes), forest.log_joint(data.codes))


@pytest.mark.parametrize("weights", ["auto", None])
def test_every_array_of_every_network_comes_back(weights):
    forest = learn(make(120, gaps=0.05), weights=weights)
    fewer = [
        replace(member, tables=member.tables.first_levels(n_levels))
        for member, n_levels in zip(forest.members, (9, 2, 1), strict=True)
    ]
    forest = replace(forest, members=fewer, label_noise=0.25, shift=np.array([0.5, -np.inf, 0.0]))
    again = Forest.from_state(forest.to_state(), np.full(5, 12), 3)
    for name in ("log_prior", "log_frequency", "shift", "weights", "label_noise", "is_average", "importances"):
        np.testing.assert_array_equal(getattr(again, name), getattr(forest, name), err_msg=name)
    for one, two in zip(again.members, forest.members, strict=True):
        for name in ("merged", "start", "n_states"):
            np.testing.assert_array_equal(getattr(one.cuts, name), getattr(two.cuts, name), err_msg=name)
        assert one.cuts.merged.dtype == two.cuts.merged.dtype
        for name in ("n_states", "parents", "root", "gain", "unseen", *one.tables.trie._fields):
            holders = [own.tables.trie if name in own.tables.trie._fields else own.tables for own in (one, two)]
            np.testing.assert_array_equal(*(getattr(own, name) for own in holders), err_msg=name)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("weights", lambda a: a[0], "at least one network"),
        ("doubt", lambda a: 1.5, "doubt in "),
        ("log_prior", lambda a: a[:-1], "log_prior must have"),
        ("shift", lambda a: a - np.inf, "at least one possible class"),
        ("log_prior", lambda a: a - np.inf, "log_prior must be finite"),
        ("parents", lambda a: a - 5, "parents must be feature indices"),
        ("sizes", lambda a: -a, "sizes must be nonnegative"),
        ("parents", lambda a: a + 9, "parents must be feature indices"),
        ("root", lambda a: a + 10**6, "root among the contexts"),
        ("children", lambda a: a[::-1].copy(), r"children must contain \d+ non-negative numbers that"),
        ("children", lambda a: np.where(np.arange(len(a)) < 3, 0, a), "must come after it"),
        ("classes", lambda a: a + np.uint16(9), "class codes must be below"),
        ("cell_start", lambda a: np.where(np.arange(len(a)) == 1, 0, a), "a gain for each"),
        ("n_states", lambda a: 0 * a, "features must have values"),
        ("n_states", lambda a: a + 65_000, "all classes and all values"),
        ("root", lambda a: np.append(a[:-1], a[-1] + 1), "each (family|root) must have"),
        ("root", lambda a: np.append(a[1], a[1:]), "in ascending order"),
        ("gain", lambda a: np.full_like(a, -np.inf), "gain"),
        # The first values that are refused.
        ("weights", lambda a: a[:, :, :0], "at least one network and one level"),
        ("weights", lambda a: a[:0], "at least one network and one level"),
        ("weights", lambda a: at(a, (0, 0, 0), -np.inf), "weights must be finite"),
        ("log_frequency", lambda a: at(a, 0, -np.inf), "log_frequency must be finite"),
        ("doubt", lambda a: 1.0, "doubt in"),
        ("doubt", lambda a: -1e-9, "doubt in"),
        ("doubt", lambda a: np.nan, "doubt in"),
        ("is_average", int, "is_average a boolean"),
        ("parents", lambda a: at(a, (0, 0, 0), -2), "parents must be feature indices"),
        ("parents", lambda a: at(a, (0, 0, 0), 5), "parents must be feature indices"),
        ("sizes", lambda a: a[:, :-1], "sizes must"),
        ("classes", lambda a: at(a, 3, 3), "class codes must be below"),
        ("unseen", lambda a: at(a, 0, -np.inf), "unseen must be finite"),
        ("children", lambda a: at(a, 0, -1), r"children must contain \d+ non-negative numbers that"),
        ("children", lambda a: at(a, -1, a[-1] - 1), r"children must contain \d+ non-negative numbers that"),
        ("class_start", lambda a: at(a, 0, 1), r"class_start must contain \d+ non-negative numbers that"),
        ("value_start", lambda a: at(a, 1, a[2] + 1), r"value_start must contain \d+ non-negative numbers that"),
        ("cell_start", lambda a: at(a, 1, a[1] - 1), "a gain for each"),
        ("root", lambda a: at(a, -1, len_branch()), "root among the contexts"),
        ("root", lambda a: at(a, 0, 1), "root among the contexts"),
        ("root", lambda a: at(a, 1, 0), "in ascending order"),
    ],
)
def test_state_that_points_nowhere_is_refused(name, change, message):
    state = dict(valid_state())
    state[name] = change(state[name])
    with pytest.raises(ValueError, match=message):
        Forest.from_state(state, np.full(5, 12), 3)


@cache
def valid_state():
    """Return the state of a forest of one network over five features of 12 values, and three classes."""
    return learn(make(60), n_members=1).to_state()


def len_branch():
    """Return the number of contexts of that network."""
    return len(valid_state()["branch"])


def at(array, place, value):
    """Return a copy of an array with another value at one place."""
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize("name", ["unseen", "classes", "gain", "values", "branch", "children", "root"])
def test_lists_with_an_entry_more_are_refused(name):
    state = dict(valid_state())
    state[name] = np.append(state[name], state[name][-1:])
    with pytest.raises(ValueError, match=f"{name} must"):
        Forest.from_state(state, np.full(5, 12), 3)
    state["sizes"] = at(state["sizes"], (0, list(_LISTS).index(name)), len(state[name]))
    with pytest.raises(ValueError, match=r"must|every"):
        Forest.from_state(state, np.full(5, 12), 3)


def test_impossible_classes_and_no_doubt_are_read():
    state = {**valid_state(), "shift": np.array([-np.inf, 0.5, -np.inf]), "doubt": 0.0}
    forest = Forest.from_state(state, np.full(5, 12), 3)
    assert forest.shift.tolist() == [-np.inf, 0.5, -np.inf]
    assert forest.label_noise == 0


def test_starts_that_leave_the_lists_are_refused_though_their_differences_overflow():
    data = make(60)
    state = learn(data, n_members=1).to_state()
    n, end = len(state["branch"]), len(state["values"])
    state["value_start"] = np.r_[0, 2**63 - 1, -(2**63), -(2**62), 0, np.full(n - 4, end)]
    for name in ("classes", "unseen", "gain"):
        state["sizes"][0, list(_LISTS).index(name)] = 0
        state[name] = state[name][:0]
    state["class_start"], state["cell_start"] = 0 * state["class_start"], 0 * state["cell_start"]
    with pytest.raises(ValueError, match=r"value_start must contain \d+ non-negative numbers that"):
        Forest.from_state(state, data.n_states, 3)
