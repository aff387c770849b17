"""Candidate sets and orderings."""

import itertools

import numpy as np
import pytest

from tanlearn.structures.candidate_kinds import CANDIDATE_KINDS, Candidates, make_candidates
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.orderings import check_ordering, pixel_ordering
from tanlearn.structures.structures import Structure


def information(n_features=9, seed=0):
    """Return a symmetric matrix without equals."""
    matrix = np.random.default_rng(seed).random((n_features, n_features))
    return matrix + matrix.T


def make(kind, n_features=9, seed=0, n_parents=1, **settings):
    return make_candidates(
        Candidates(kind, **settings) if isinstance(kind, str) else kind,
        n_features,
        rng=np.random.default_rng(seed),
        information=lambda: information(n_features, seed),
        gains=lambda: information(n_features, seed),
        n_parents=n_parents,
    )


def lists(candidates):
    """Candidate parents of every feature, "no parent" included as -1."""
    edges = itertools.pairwise(candidates.group.tolist())
    return [candidates.parents[a:b, 0].tolist() for a, b in edges]


@pytest.mark.parametrize("kind", CANDIDATE_KINDS)
def test_no_parent_is_a_candidate_of_every_feature(kind):
    sets = lists(make(kind, image_shape=(3, 3) if kind == "heuristic" else None))
    assert all(parents[0] == -1 and parents.count(-1) == 1 for parents in sets)
    assert all(i not in parents and len(set(parents)) == len(parents) for i, parents in enumerate(sets))


def test_all_are_the_features_before_in_the_ordering():
    order = [2, 0, 1]
    assert lists(make("all", 3, ordering=order)) == [[-1, 2], [-1, 0, 2], [-1]]


@pytest.mark.parametrize("kind", ["subset", "unconstrained", "order-free", "information", "gain"])
def test_smaller_sets_are_nested_in_larger_ones(kind):
    small, large = lists(make(kind, 20, n_candidates=2)), lists(make(kind, 20, n_candidates=5))
    assert all(set(a) <= set(b) for a, b in zip(small, large, strict=True))
    assert max(map(len, small)) == 3
    assert max(map(len, large)) == 6


def test_random_orderings_differ_by_seed_only():
    assert lists(make("all", seed=1)) == lists(make("all", seed=1))
    assert lists(make("all", seed=1)) != lists(make("all", seed=2))


def test_heuristic_takes_the_nearest_pixels_before():
    sets = lists(make("heuristic", 9, n_candidates=2, ordering="A", image_shape=(3, 3)))
    assert sets == [[-1], [-1, 0], [-1, 0, 1], [-1, 0, 1], [-1, 1, 3], [-1, 2, 4], [-1, 3, 4], [-1, 4, 6], [-1, 5, 7]]


def test_heuristic_takes_an_ordering_of_the_users_own():
    order = list(range(8, -1, -1))
    sets = lists(make("heuristic", 9, n_candidates=1, ordering=order, image_shape=(3, 3)))
    assert sets[8] == [-1]
    assert sets[0] in ([-1, 1], [-1, 3])


def test_pixel_orderings_as_in_the_paper():
    assert pixel_ordering("A", (2, 3)).tolist() == [0, 1, 2, 3, 4, 5]
    assert pixel_ordering("B", (3, 3)).tolist() == [0, 3, 1, 4, 6, 2, 7, 5, 8]
    centre = [5, 6, 9, 10]
    assert pixel_ordering("C", (4, 4)).tolist() == [*centre, 1, 2, 13, 14, 4, 8, 7, 11, 0, 3, 12, 15]
    for name, shape in itertools.product("ABC", [(14, 14), (16, 16), (5, 5)]):
        assert sorted(pixel_ordering(name, shape)) == list(range(shape[0] * shape[1]))


def test_only_unconstrained_may_form_cycles():
    for kind in CANDIDATE_KINDS:
        candidates = make(kind, image_shape=(3, 3) if kind == "heuristic" else None)
        assert candidates.allow_cycles == (kind == "unconstrained")
        assert candidates.arborescence == (kind in ("order-free", "information", "gain"))
        assert candidates.is_acyclic == (kind != "unconstrained")


@pytest.mark.parametrize("kind", ["information", "gain"])
def test_information_takes_who_tells_most(kind):
    found = lists(make(kind, 6, n_candidates=2))
    for i, given in enumerate(found):
        others = sorted((j for j in range(6) if j != i), key=lambda j: -information(6)[i, j])
        assert given == [-1, *sorted(others[:2])]
    order = [3, 1, 5, 0, 4, 2]
    found = lists(make(kind, 6, n_candidates=1, ordering=order))
    for place, i in enumerate(order):
        assert found[i] == [-1, *sorted(order[:place], key=lambda j: -information(6)[i, j])[:1]]
    with pytest.raises(ValueError, match="needs counts of rows"):
        make_candidates(kind, 3, rng=np.random.default_rng(0))


def test_pairs_stand_behind_their_members():
    sets = CandidateSets.from_lists([[], [0], [1, 0, 3], [2]], n_parents=2)
    assert sets.parents[3:10].tolist() == [[-1, -1], [1, -1], [0, -1], [3, -1], [1, 0], [1, 3], [0, 3]]
    assert sets.members[3:10].tolist() == [[-1, -1]] * 4 + [[4, 5], [4, 6], [5, 6]]
    assert sets.group.tolist() == [0, 1, 3, 10, 12]


def test_how_structures_are_drawn():
    assert CandidateSets.from_lists([[], [0]], n_parents=2).draws == "independent"
    assert CandidateSets.from_lists([[1], [0]], n_parents=2).draws == "acyclic"
    assert CandidateSets.from_lists([[1], [0]]).draws == "arborescence"
    assert CandidateSets.from_lists([[1], [0]], allow_cycles=True).draws == "independent"
    assert "draws='acyclic'" in repr(CandidateSets.from_lists([[1], [0]], n_parents=2))


@pytest.mark.parametrize(
    ("parents", "place"),
    [
        ([[1, -1], [-1, -1]], r"candidate 0 of feature 0 is invalid: \[1\]"),
        ([[-1, -1], [1, 2]], r"candidate 1 of feature 0 is invalid: \[1, 2\]"),
        ([[-1, -1], [1, 2], [1, -1], [2, -1]], r"candidate 1 of feature 0 is invalid: \[1, 2\]"),
        ([[-1, -1], [-1, -1]], r"candidate 1 of feature 0 is invalid: \[\]"),
        ([[-1, -1, -1], [1, 2, 3]], r"candidate 1 of feature 0 is invalid: \[1, 2, 3\]"),
    ],
)
def test_sets_without_members_are_refused(parents, place):
    """A pair stands for its members too, so they have to be there, and before it."""
    table = np.array(parents)
    others = np.full((3, table.shape[1]), -1)
    group = np.cumsum([0, len(table), 1, 1, 1])
    sets = CandidateSets(np.concatenate([table, others]), group, allow_cycles=True)
    with pytest.raises(ValueError, match=place):
        _ = sets.members


def test_explicit_sets():
    assert not CandidateSets.from_lists([[], [0], [0, 1]]).arborescence
    assert CandidateSets.from_lists([[1], [0]]).arborescence
    assert lists(make([[1], []], 2)) == [[-1, 1], [-1]]
    own = CandidateSets.from_lists([[1], [0]], allow_cycles=True)
    assert make(own, 2) is own


def test_sets_of_a_structure_leave_no_choice():
    structure = Structure([[-1, -1], [0, -1], [0, 1]])
    candidates = CandidateSets.of_structure(structure)
    assert candidates.n_tables == candidates.n_features == 3
    assert candidates.structure(np.arange(3)) == structure


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "nearest"}, "The 'kind' parameter of Candidates must be a str among"),
        (
            {"kind": [[0], []], "n_features": 2},
            r"candidates\[0\] must contain distinct features from 0 to 1 other than 0, got \[0\]",
        ),
        ({"kind": [[1], [5]], "n_features": 2}, r"candidates\[1\] must contain .* got \[5\]"),
        ({"kind": [[1]], "n_features": 2}, r"candidates\[0\] must contain .* got \[1\]"),
        ({"kind": [[]], "n_features": 2}, "must have 2 features, got 1"),
        ({"kind": [[], [0.9]], "n_features": 2}, r"candidates\[1\] must contain .* got \[0.9\]"),
        (
            {"kind": "all", "n_candidates": 2},
            "candidates of kind 'all' do not use n_candidates, got n_candidates=2. Leave it out",
        ),
        ({"kind": "subset", "image_shape": (3, 3)}, "do not use image_shape"),
        ({"kind": "heuristic", "image_shape": (-3, -3)}, r"needs image_shape.*got image_shape=\(-3, -3\)"),
        ({"kind": "heuristic", "image_shape": (3, 3.0)}, r"needs image_shape.*got image_shape=\(3, 3.0\)"),
        ({"kind": "heuristic", "image_shape": ("a", "b")}, "needs image_shape"),
        ({"kind": "heuristic"}, r"needs image_shape=\(height, width\) with height \* width = 9"),
        ({"kind": "heuristic", "image_shape": (2, 3)}, r"got image_shape=\(2, 3\)"),
        ({"kind": "heuristic", "image_shape": (1, 9), "ordering": "B"}, "square images, got 1 x 9. Use order A"),
        ({"kind": "all", "ordering": [0, 1]}, r"each number from 0 to 8 once, got \[0, 1\]"),
        ({"kind": "all", "ordering": "A"}, "pixel orderings 'A', 'B' and 'C' require candidates='heuristic'"),
        ({"kind": "order-free", "ordering": list(range(9))}, "'order-free' do not use ordering"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_unknown_pixel_order_is_refused():
    with pytest.raises(ValueError, match="a pixel order must be one of A, B, C, got 'D'"):
        pixel_ordering("D", (3, 3))
    with pytest.raises(ValueError, match="each number from 0 to 1 once"):
        check_ordering([0.0, 1.0], 2)


@pytest.mark.parametrize("kind", ["order-free", "information", "gain"])
def test_features_of_one_value_are_nobodys_candidates(kind):
    n_states = np.array([3, 1, 2, 1, 4])
    shared = np.ones((5, 5))
    rest = {"rng": np.random.default_rng(0), "information": lambda: shared, "gains": lambda: shared}
    sets = make_candidates(kind, 5, **rest, n_states=n_states)
    assert lists(sets) == [[-1, 2, 4], [-1], [-1, 0, 4], [-1], [-1, 0, 2]]
    everybody = make_candidates(kind, 5, **rest)
    assert everybody.n_tables == 25
