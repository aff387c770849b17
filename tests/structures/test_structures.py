"""Structures: rules, orders, graphs."""

import networkx
import numpy as np
import pytest

from tanlearn import Structure


@pytest.mark.parametrize(
    ("parent", "message"),
    [
        ([0, -1], r"parent\[0\] must contain distinct features from 0 to 1 other than 0, or -1 for none, got \[0\]"),
        ([-1, 2], r"parent\[1\] must contain .* from 0 to 1 other than 1, or -1 for none, got \[2\]"),
        ([-2, 0], r"parent\[0\] must contain .* got \[-2\]"),
        ([[1, 1], [-1, -1]], r"parent\[0\] must contain distinct .* got \[1, 1\]"),
        ([1, 0], r"the parents form a cycle.*allow_cycles=True"),
        ([], r"parent must have shape"),
        ([[[1]]], r"parent must have shape"),
        ([-1.0, 0.0], r"feature indices from 0, .* got dtype float64"),
    ],
)
def test_bad_parents_are_refused(parent, message):
    with pytest.raises(ValueError, match=message):
        Structure(parent)


def test_order_puts_parents_first():
    structure = Structure([3, 0, 1, -1, -1])
    position = np.argsort(structure.order)
    assert sorted(structure.order.tolist()) == [0, 1, 2, 3, 4]
    assert all(position[j] < position[i] for i, j in enumerate(structure.parent) if j >= 0)


def test_cyclic_scorer_says_so():
    scorer = Structure([1, 0, -1], allow_cycles=True)
    assert not scorer.is_acyclic
    assert repr(scorer) == "Structure(n_features=3, n_edges=2, cyclic)"
    with pytest.raises(ValueError, match="no topological order"):
        _ = scorer.order


def test_two_parents():
    structure = Structure([[-1, -1], [0, -1], [0, 1]])
    assert structure.n_edges == 3
    assert structure.is_acyclic
    with pytest.raises(AttributeError, match=r"two or more\. Use parents"):
        _ = structure.parent
    with pytest.raises(AttributeError, match=r"two or more\. Use parents"):
        _ = Structure([[-1, -1], [0, -1], [1, 0]]).parent  # feature 0 is a second parent, too
    assert Structure([[-1, -1], [-1, 0]]).parents.tolist() == [[-1, -1], [0, -1]]


def test_any_number_of_parents():
    structure = Structure([[-1, -1, -1, -1], [0, -1, -1, -1], [1, -1, 0, -1], [-1, 2, 0, 1]])
    assert structure.parents.tolist() == [[-1, -1, -1], [0, -1, -1], [1, 0, -1], [2, 0, 1]]
    assert structure.n_edges == 6
    assert structure.order.tolist() == [0, 1, 2, 3]
    assert structure != Structure([[-1, -1, -1], [0, -1, -1], [1, 0, -1], [0, 2, 1]])  # in another order
    assert Structure([[-1, -1, -1, 1], [-1] * 4]) == Structure([1, -1])  # as wide as need be
    with pytest.raises(ValueError, match=r"parent\[1\] must contain distinct .* got \[0, 2, 0\]"):
        Structure([[-1] * 3, [0, 2, 0], [-1] * 3])
    with pytest.raises(ValueError, match="form a cycle"):
        Structure([[1, 2, 3], [-1] * 3, [0, 1, -1], [-1] * 3])


def test_graph_has_the_class_above_everything():
    graph = Structure([-1, 0, 0]).to_networkx(["a", "b", "c"])
    assert networkx.is_directed_acyclic_graph(graph)
    assert set(graph.successors("C")) == {"a", "b", "c"}
    assert set(graph.predecessors("b")) == {"C", "a"}
    with pytest.raises(ValueError, match="3 entries, got 1"):
        Structure([-1, 0, 0]).to_networkx(["a"])
    with pytest.raises(ValueError, match="'C' is the name of two nodes: rename a feature, or pass another class_name"):
        Structure([-1, 0, 0]).to_networkx(["A", "B", "C"])
    assert Structure([-1, 0, 0]).to_networkx(["A", "B", "C"], class_name="Y").number_of_edges() == 5


def test_equality_and_hash():
    assert Structure([-1, 0]) == Structure([[-1, -1], [0, -1]])
    assert len({Structure([-1, 0]), Structure([-1, 0]), Structure([1, -1])}) == 2
    assert Structure([-1, 0]) != [-1, 0]


def test_naive_bayes_has_no_edges():
    assert Structure.naive_bayes(4).parent.tolist() == [-1] * 4
