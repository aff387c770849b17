"""What is drawn of a member: cuts of codes, and parents."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from support.forests import DRAWS, make

from tanlearn import EncodedData
from tanlearn.counts import mutual_information
from tanlearn.forest import forest_network as module
from tanlearn.forest.forest_network import DrawSettings, draw_discretization, draw_parents

ALL = replace(DRAWS, max_features=1.0)


def cut(data, seed=0, gaps=(), **draws):
    """Return cuts of features that all have an order."""
    has_missing = np.isin(np.arange(data.n_features), gaps)
    ordered = np.ones(data.n_features, bool)
    return draw_discretization(data, ordered, has_missing, replace(DRAWS, **draws), np.random.default_rng(seed))


def places(cuts, i):
    """Return after which codes a feature is cut."""
    return np.flatnonzero(np.diff(cuts.merged[cuts.start[i] : cuts.start[i + 1] - 1].astype(int))).tolist()


def test_cuts_keep_the_order_and_leave_categories_alone():
    data = make(300, gaps=0.05)
    has_missing = np.array([True, True, True, True, False])
    cuts = draw_discretization(
        data, np.array([True, True, False, True, True]), has_missing, DRAWS, np.random.default_rng(0)
    )
    codes = cuts.encode(data.codes)
    assert cuts.n_states[2] == 13  # and the gap
    for i in (0, 1, 3, 4):
        merged = cuts.merged[cuts.start[i] : cuts.start[i + 1] - 1].astype(int)
        assert set(np.diff(merged)) <= {0, 1}
        assert 2 <= merged[-1] <= 4
        missing = data.codes[i] == 255
        assert (codes[i][missing] == (merged[-1] + 1 if has_missing[i] else 255)).all()
        np.testing.assert_array_equal(codes[i][~missing], merged[data.codes[i][~missing]])
        assert cuts.n_states[i] == merged[-1] + 1 + has_missing[i]


def test_a_category_for_missing_values_is_not_merged():
    """Codes of the other values are merged as if its rows had a missing code, which is another value."""
    data = make(300, gaps=0.2)
    names = {"n_states": data.n_states + 1, "has_missing_category": np.ones(5, bool)}
    codes = np.where(data.codes == 255, data.n_states[:, np.newaxis], data.codes).astype(np.uint8)
    codes[:, 0] = 255
    ordered, nothing = np.array([True, True, False, True, True]), np.zeros(5, bool)
    plain = data.codes.copy()
    plain[:, 0] = 255
    known = draw_discretization(replace(data, codes=plain), ordered, ~nothing, DRAWS, np.random.default_rng(0))
    found = draw_discretization(replace(data, codes=codes, **names), ordered, nothing, DRAWS, np.random.default_rng(0))
    np.testing.assert_array_equal(found.n_states, known.n_states)
    np.testing.assert_array_equal(found.encode(codes)[:, 1:], known.encode(plain)[:, 1:])
    assert (found.encode(codes)[:, 0] == 255).all()
    both = draw_discretization(replace(data, codes=codes, **names), ordered, ~nothing, DRAWS, np.random.default_rng(0))
    np.testing.assert_array_equal(both.n_states, known.n_states + 1)
    np.testing.assert_array_equal(both.encode(codes)[:, 0], known.n_states)


def test_many_codes_become_few_and_few_stay_in_small_types():
    data = EncodedData.from_codes(np.arange(600)[:, np.newaxis] % [600, 2], np.arange(600) % 2)
    cuts = cut(data, gaps=[0])
    codes = cuts.encode(np.append(data.codes, [[65535], [65535]], axis=1).astype(np.uint16))
    assert codes.dtype == np.uint8
    assert codes[:, -1].tolist() == [cuts.n_states[0] - 1, 255]


def test_supervised_cuts_lie_where_classes_change():
    data = make(2000, 2, 2, seed=3)
    data = replace(data, y=(data.codes[0] >= 5).astype(np.intp))
    assert places(cut(data, n_cuts=(1, 1), supervised=1.0), 0) == [4]


@pytest.mark.parametrize("heavy", [0, 1])
def test_supervised_cuts_lie_where_classes_of_heavy_rows_change(heavy):
    rng = np.random.default_rng(0)
    codes, kind = rng.integers(0, 12, (400, 1)), np.arange(400) % 2
    y = (codes[:, 0] >= np.where(kind == 0, 3, 8)).astype(int)
    weight = np.where(kind == heavy, 1.0, 1e-9)
    data = EncodedData.from_codes(codes, y, n_states=[12], sample_weight=weight)
    for seed in range(5):
        assert places(cut(data, seed, n_cuts=(1, 1), supervised=1.0), 0) == [[2], [7]][heavy]


@pytest.mark.parametrize("n_cuts", [1, 2, 9])
def test_cuts_are_as_many_as_asked_up_to_one_between_all_values(n_cuts):
    rng, n_values = np.random.default_rng(0), np.array([2, 3, 4, 12])
    codes = rng.integers(0, n_values, (400, 4))
    for i in range(4):  # every value differs from its neighbors in the class, so every cut gains
        data = EncodedData.from_codes(codes, codes[:, i] % 2, n_states=n_values)
        cuts = cut(data, n_cuts=(n_cuts, n_cuts), supervised=1.0)
        assert len(places(cuts, i)) == min(n_cuts, n_values[i] - 1)
        assert cuts.n_states[i] == min(n_cuts, n_values[i] - 1) + 1


def test_by_default_half_of_the_features_have_supervised_cuts_and_features_have_three_to_fifteen():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    codes = 30 * y[:, np.newaxis] + rng.integers(0, 30, (200, 300))
    data = EncodedData.from_codes(codes, y, n_states=[60] * 300)
    cuts = draw_discretization(data, np.ones(300, bool), np.zeros(300, bool), DrawSettings(), np.random.default_rng(0))
    n_cuts = np.array([len(places(cuts, i)) for i in range(300)])
    assert 0.4 < (n_cuts == 1).mean() < 0.6  # one supervised cut separates the classes, no other gains
    data = EncodedData.from_codes(np.resize(np.arange(60), (300, 200)).T, np.arange(200) % 2)  # cuts gain everywhere
    cuts = draw_discretization(
        data, np.ones(300, bool), np.zeros(300, bool), DrawSettings(supervised=1.0), np.random.default_rng(0)
    )
    n_cuts = np.bincount([len(places(cuts, i)) for i in range(300)])
    assert not n_cuts[:3].any()
    assert len(n_cuts) == 16
    assert (n_cuts[3:] > 9).all()  # of about 23 each


@pytest.mark.parametrize("supervised", [0.0, 1.0])
def test_members_differ_in_their_cuts(supervised):
    data = make(100, 1)
    data = replace(data, y=np.random.default_rng(9).integers(0, 3, 100))
    assert len({tuple(places(cut(data, seed, n_cuts=(3, 3), supervised=supervised), 0)) for seed in range(10)}) > 3


@pytest.mark.parametrize("weights", [None, "first ten"])
def test_other_cuts_lie_at_quantiles_of_the_rows(weights):
    codes = np.append(np.full(90, 6), np.arange(10))[:, np.newaxis]
    weight = None if weights is None else np.append(np.full(90, 1e-9), np.ones(10))
    data = EncodedData.from_codes(codes, np.arange(100) % 2, n_states=[12], sample_weight=weight)
    found = [places(cut(data, seed, n_cuts=(3, 3), supervised=0.0), 0) for seed in range(40)]
    share = np.mean([6 in own for own in found])
    if weights is None:
        assert share > 0.9
        assert np.mean([len(own) for own in found]) < 2  # two of three cuts mostly coincide
    else:
        assert share < 0.6
        assert np.mean([len(own) for own in found]) > 2
    assert max(max(own) for own in found) <= 9  # above code 9 there is nothing


def test_the_same_seed_draws_the_same_of_other_rows():
    data = make(300, 6, gaps=0.05)
    part = data.take(np.arange(300) % 3 > 0)
    for seed in range(5):
        cuts = [cut(own, seed, n_cuts=(1, 9), supervised=0.5) for own in (data, part)]
        sizes = [own.n_states for own in cuts]
        assert np.abs(sizes[0] - sizes[1]).max() <= 2
        drawn = []
        for own in (data, part):
            draws = replace(DRAWS, max_parents=6)
            parents = draw_parents(own.codes, own.n_states, own, draws, np.random.default_rng(seed))
            drawn.append([sorted(of.tolist()) for of in parents])
        assert drawn[0] == drawn[1]  # all candidates


def test_parents_are_those_of_most_information_among_earlier_ones():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (500, 4))
    x[:, 1] = np.where(rng.random(500) < 0.9, x[:, 0], x[:, 1])
    data = EncodedData.from_codes(x, rng.integers(0, 2, 500))
    draws = replace(DRAWS, max_features=1.0, max_parents=1)
    for seed in range(5):
        parents = draw_parents(data.codes, data.n_states, data, draws, np.random.default_rng(seed))
        assert parents[1].tolist() == [0] or parents[0].tolist() == [1]
        assert sum(len(own) for own in parents) == 3  # all but the first of the order have one
        few = draw_parents(
            data.codes, data.n_states, data, replace(draws, max_features=0.0), np.random.default_rng(seed)
        )
        assert [len(own) for own in few] == [0] * 4


def test_the_most_important_parent_is_the_first():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (2000, 4))
    for j, share in ((1, 0.3), (2, 0.6), (3, 0.9)):
        x[:, j] = np.where(rng.random(2000) < share, x[:, 0], x[:, j])
    data = EncodedData.from_codes(x, rng.integers(0, 2, 2000))
    orders = set()
    for seed in range(30):
        draws = replace(DRAWS, max_features=1.0)
        parents = draw_parents(data.codes, data.n_states, data, draws, np.random.default_rng(seed))
        orders.add(tuple(parents[0].tolist()))
        assert parents[0].tolist() == sorted(parents[0].tolist(), reverse=True)
    assert (3, 2, 1) in orders


def test_candidates_are_as_many_as_asked(monkeypatch):
    data = make(50, 30)
    for most_pairs, max_candidates, most in ((2**13, 5, 5), (2**13, 32, 15), (30 * 10, 32, 10), (30, 32, 8)):
        monkeypatch.setattr(module, "_MOST_PAIRS", most_pairs)
        draws = replace(DRAWS, max_candidates=max_candidates, max_parents=99)
        parents = draw_parents(data.codes, data.n_states, data, draws, np.random.default_rng(0))
        assert sorted(len(own) for own in parents) == [min((i + 1) // 2, most) for i in range(30)]
        draws = replace(draws, min_candidates=4)
        parents = draw_parents(data.codes, data.n_states, data, draws, np.random.default_rng(0))
        assert sorted(len(own) for own in parents) == [min(i, max((i + 1) // 2, 4), most) for i in range(30)]


@pytest.mark.parametrize(("d", "most"), [(80, 32), (256, 32), (300, 27), (1100, 8)])
def test_by_default_half_of_the_earlier_features_are_candidates_and_four_at_most_parents(d, most):
    codes = np.random.default_rng(0).integers(0, 2, (9, d))
    codes[:2] = [[0], [1]]  # all features have two values
    data = EncodedData.from_codes(codes, np.arange(9) % 2)

    def n_parents(draws):
        return sorted(map(len, draw_parents(data.codes, data.n_states, data, draws, np.random.default_rng(0))))

    assert n_parents(DrawSettings()) == [min(earlier, 4) for earlier in range(d)]
    expected = [min(earlier, max(-(-earlier // 2), 4), most) for earlier in range(d)]
    assert n_parents(replace(DrawSettings(), max_parents=d)) == expected


@pytest.mark.parametrize("weights", [None, "integer", "real"])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_wide_columns_are_visited_and_say_the_same(monkeypatch, weights, gaps):
    rng = np.random.default_rng(0)
    weight = {None: None, "integer": rng.integers(1, 4, 40), "real": rng.random(40) + 0.1}[weights]
    data, visited = make(40, 8, gaps=gaps, weights=weight), []
    information = mutual_information.visited_information
    data = replace(data, n_states=np.where(np.arange(8) == 3, 2, data.n_states))
    data.codes[3] = np.where(data.codes[3] == 255, 255, data.codes[3] % 2)

    def visit(*arguments):
        visited.append(arguments[5])
        return information(*arguments)

    monkeypatch.setattr(mutual_information, "visited_information", visit)

    def draw():
        draws = replace(DRAWS, max_features=1.0, max_parents=9)
        found = draw_parents(data.codes, data.n_states, data, draws, np.random.default_rng(0))
        return [own.tolist() for own in found]

    tabled = draw()
    assert visited == []
    monkeypatch.setattr(mutual_information, "_DENSE_CELLS", 8 * 40)  # 12 * 12 * 3 cells are more; 2 * 12 * 3 are not
    assert draw() == tabled
    assert len(visited) >= 5
    assert 3 not in visited


def test_columns_of_one_value_are_nobodys_parents():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (80, 4))
    codes[:, 1] = 1
    data = EncodedData.from_codes(codes, codes[:, 0] ^ codes[:, 2], n_states=[2] * 4, n_classes=2)
    for seed in range(5):
        parents = draw_parents(data.codes, data.n_states, data, ALL, np.random.default_rng(seed))
        assert sorted(len(parents[i]) for i in (0, 2, 3)) == [0, 1, 2]
        assert not any(1 in own for own in parents)


def test_parents_of_no_information_are_taken_as_they_may_say_something_together():
    table = np.array(list(product([0, 1], repeat=3)) * 4)
    data = EncodedData.from_codes(table, table.sum(axis=1) % 2, n_states=[2] * 3, n_classes=2)
    parents = draw_parents(data.codes, data.n_states, data, ALL, np.random.default_rng(0))
    assert sorted(len(own) for own in parents) == [0, 1, 2]


def test_of_many_rows_some_choose_parents(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (3000, 3))
    x[:, 1] = np.where(rng.random(3000) < 0.9, x[:, 0], x[:, 1])
    data = EncodedData.from_codes(x, rng.integers(0, 2, 3000), sample_weight=np.arange(1, 3001))
    seen, information = [], module.candidate_information

    def spy(codes, n_states, some, *how):
        seen.append((codes.shape[1], int(some.weights.sum())))
        assert any(np.array_equal(codes[:, r], data.codes[:, some.weights[r] - 1]) for r in range(5))
        return information(codes, n_states, some, *how)

    monkeypatch.setattr(module, "candidate_information", spy)
    draws = replace(ALL, max_parents=1)
    for most in (3000, 500):
        monkeypatch.setattr(module, "_MOST_ROWS", most)
        for seed in range(5):
            parents = draw_parents(data.codes, data.n_states, data, draws, np.random.default_rng(seed))
            assert 0 in parents[1] or 1 in parents[0]
    assert [n for n, _ in seen] == [3000] * 5 + [500] * 5
    assert len({total for _, total in seen[5:]}) == 5  # every seed draws others
