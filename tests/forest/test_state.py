"""A forest as arrays, back again, and arrays that point nowhere."""

import numpy as np
import pytest
from support.forests import learn, make

from tanlearn.forest.state import _LISTS, from_state, to_state


def test_state_is_the_forest():
    data = make(120, gaps=0.05)
    forest = learn(data)
    again = from_state(to_state(forest), data.n_states, 3)
    np.testing.assert_array_equal(again.log_scores(data.codes), forest.log_scores(data.codes))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("weights", lambda a: a[0], "at least one network"),
        ("doubt", lambda a: 1.5, "doubt in "),
        ("log_prior", lambda a: a[:-1], "log_prior must have"),
        ("shift", lambda a: a - np.inf, "at least one possible class"),
        ("log_prior", lambda a: a - np.inf, "log_prior must be finite"),
        ("parents", lambda a: a - 5, "parents must be feature numbers"),
        ("sizes", lambda a: -a, "sizes must be nonnegative"),
        ("parents", lambda a: a + 9, "parents must be feature numbers"),
        ("root", lambda a: a + 10**6, "root among the contexts"),
        ("children", lambda a: a[::-1].copy(), "children must increase"),
        ("children", lambda a: np.where(np.arange(len(a)) < 3, 0, a), "must come after it"),
        ("classes", lambda a: a + np.uint16(9), "class codes must be below"),
        ("cell_start", lambda a: np.where(np.arange(len(a)) == 1, 0, a), "a gain for each"),
        ("n_states", lambda a: 0 * a, "features must have values"),
        ("n_states", lambda a: a + 65_000, "all classes and all values"),
        ("root", lambda a: np.append(a[:-1], a[-1] + 1), "each (family|root) must have"),
        ("root", lambda a: np.append(a[1], a[1:]), "in ascending order"),
        ("gain", lambda a: np.full_like(a, -np.inf), "gain"),
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
