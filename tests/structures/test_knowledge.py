"""Knowledge against the columns of the data: masks by enumeration, orderings, and messages."""

import numpy as np
import pytest
from oracles import knowledge as naive
from sklearn.base import clone
from support.random_knowledge import random_knowledge

from tanlearn import Knowledge, Structure

NAMES = ("age", "income", "sex", "education")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("max_parents", [1, 2, None])
def test_an_edge_is_allowed_if_a_permitted_structure_contains_it(seed, max_parents):
    given = random_knowledge(seed, 4, max_required=1 if max_parents == 1 else 2)
    rules = Knowledge(**given).rules(None, 4, max_parents=max_parents)
    possible = list(naive.structures(4, 3 if max_parents is None else max_parents, **given))
    expected = np.zeros((4, 4), bool)
    for parents in possible:
        for i, own in enumerate(parents):
            expected[i, list(own)] = True
    assert np.array_equal(rules.allowed, expected)
    assert sorted((j, i) for i, own in enumerate(rules.parents()) for j in own) == sorted(given["required"])
    assert rules.structure().n_edges == len(given["required"])


@pytest.mark.parametrize("seed", range(6))
def test_structures_are_permitted_as_by_the_oracle(seed):
    given = random_knowledge(seed, 4)
    rules = Knowledge(**given).rules(None, 4, max_parents=1)
    seen = set()
    for parents in naive.structures(4, 1):
        structure = Structure([own[0] if own else -1 for own in parents])
        expected = naive.permits(parents, **given)
        assert rules.permits(structure) == expected
        seen.add(expected)
        if not expected:
            with pytest.raises(
                ValueError, match=r"initial (lacks|contains) the edge .*, which the knowledge (re|does)"
            ):
                rules.check(structure, "initial")
    assert seen == {True, False}


@pytest.mark.parametrize("seed", range(20))
def test_orderings_have_required_parents_and_earlier_tiers_first(seed):
    given = random_knowledge(seed, 6)
    preferred = np.random.default_rng(seed).permutation(6)
    order = Knowledge(**given).rules(None, 6).ordered(preferred).tolist()
    assert sorted(order) == list(range(6))
    position = {i: k for k, i in enumerate(order)}
    assert all(position[j] < position[i] for j, i in given["required"])
    for first, second in zip(given["tiers"], given["tiers"][1:], strict=False):
        assert all(position[j] < position[i] for j in first for i in second)


def test_the_preferred_ordering_is_kept_where_nothing_contradicts_it():
    assert Knowledge(forbidden=[(0, 1)]).rules(None, 4).ordered(np.array([2, 0, 3, 1])).tolist() == [2, 0, 3, 1]
    rules = Knowledge(required=[(3, 2)], tiers=[[0], [1]]).rules(None, 4)
    assert rules.ordered(np.array([1, 2, 3, 0])).tolist() == [3, 2, 0, 1]
    # Feature 2 is in no tier, but its required edges lead from the second tier to the first.
    rules = Knowledge(required=[(1, 2), (2, 0)], tiers=[[0], [1]]).rules(None, 3)
    assert rules.ordered(np.arange(3)).tolist() == [1, 2, 0]


def test_an_ordering_with_a_child_first_is_refused():
    rules = Knowledge(required=[("age", "income")]).rules(NAMES, 4)
    rules.check_ordering(np.array([2, 0, 3, 1]))
    with pytest.raises(
        ValueError, match="the edge 'age' -> 'income' is required, but 'income' comes first in the ordering"
    ):
        rules.check_ordering(np.array([1, 0, 2, 3]))


def test_names_and_positions_mean_the_same():
    by_name = Knowledge(required=[("age", "income")], forbidden=[("sex", "age")], tiers=[["age"], ["sex", "income"]])
    by_position = Knowledge(required=[(0, np.int64(1))], forbidden=((2, 0),), tiers=[(0,), (2, 1)])
    found, expected = by_name.rules(np.array(NAMES, object), 4), by_position.rules(None, 4)
    assert np.array_equal(found.allowed, expected.allowed)
    assert np.array_equal(found.required, expected.required)
    order = np.array([3, 1, 0, 2])
    turned = found.take(order)
    assert turned.allowed[0, 1] == found.allowed[3, 1]
    assert turned.shown == ("'education'", "'income'", "'age'", "'sex'")
    assert turned.tier.tolist() == [-1, 1, 0, 1]


def test_choices_have_a_column_for_no_parent():
    choices = Knowledge(required=[(0, 1)], forbidden=[(1, 2)]).rules(None, 3, max_parents=1).choices()
    assert choices.tolist() == [[False, False, True, True], [True, False, False, False], [True, False, False, True]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"required": [("agee", "income")]}, r"required\[0\] contains 'agee', .* Did you mean 'age'\?"),
        (
            {"forbidden": [("age", "xyz")]},
            r"forbidden\[0\] contains 'xyz', .* The columns are 'age', 'income', 'sex', '",
        ),
        ({"tiers": [["age"], ["wealth"]]}, r"tiers\[1\] contains 'wealth'"),
        ({"required": [(0, 4)]}, "contains column 4, but the data have 4 columns: positions are from 0 to 3"),
        ({"required": [(0, -1)]}, "contains column -1"),
        ({"required": [(0, True)]}, "must contain column names or positions, got True"),
        ({"required": ["ab"]}, r"required\[0\] must be a pair \(parent, child\) of columns, got 'ab'"),
        ({"required": [("age", "sex", "income")]}, "must be a pair"),
        ({"forbidden": [("age", 0)]}, r"forbidden\[0\] leads from 'age' to itself"),
        ({"tiers": ["age"]}, r"tiers\[0\] must be a list of columns, got 'age'. Pass \['age'\]"),
        ({"tiers": [["age", "sex"], ["age"]]}, r"'age' is in tiers\[0\] and in tiers\[1\]. Remove one of them"),
        (
            {"required": [("age", "sex")], "forbidden": [("age", "sex")]},
            "the edge 'age' -> 'sex' is both required and forbidden. Remove it from one of the two lists",
        ),
        (
            {"required": [("income", "age")], "tiers": [["age"], ["income"]]},
            "the edge 'income' -> 'age' is required, but leads to an earlier tier",
        ),
        (
            {"required": [("age", "sex"), ("sex", "income"), ("income", "age")]},
            "cycle ('age' -> 'sex' -> 'income' -> 'age'|'sex' -> 'income' -> 'age' -> 'sex'|"
            r"'income' -> 'age' -> 'sex' -> 'income')\. Remove one of them",
        ),
        ({"required": 3}, "The 'required' parameter of Knowledge must be an instance of 'list'"),
    ],
)
def test_messages_name_the_rule_the_columns_and_the_remedy(given, message):
    with pytest.raises(ValueError, match=message):
        Knowledge(**given).rules(NAMES, 4)


def test_names_need_columns_with_names():
    with pytest.raises(ValueError, match=r"but the data have no column names\. Pass a frame, or use positions from 0"):
        Knowledge(tiers=[["age"]]).rules(None, 4)
    with pytest.raises(ValueError, match=r"The columns are 'c0', .*'c7' and 2 more\."):
        Knowledge(tiers=[["zzz"]]).rules([f"c{i}" for i in range(10)], 10)


def test_too_many_required_parents_are_refused():
    knowledge = Knowledge(required=[("age", "income"), ("sex", "income")])
    with pytest.raises(
        ValueError, match=r"'income' has 2 required parents, 'age', 'sex', but this learner allows at m"
    ):
        knowledge.rules(NAMES, 4, max_parents=1)
    assert knowledge.rules(NAMES, 4, max_parents=2).allowed[1].tolist() == [True, False, True, False]


def test_knowledge_is_a_parameter_object():
    knowledge = Knowledge(forbidden=[("age", "sex")])
    assert repr(knowledge) == "Knowledge(forbidden=[('age', 'sex')])"
    assert clone(knowledge).get_params() == knowledge.get_params()
