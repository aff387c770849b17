"""Cuts by class entropy, against all that there are, and at quantiles, against rows; codes merged by them."""

import numpy as np
import pytest
from oracles import context_tries as oracle

from tanlearn.kernels.feature_cuts import cut_features, entropy_cuts, merge_codes, purest_cut, quantile_cuts
from tanlearn.kernels.mathematics import tabulate_xlogx, unit_scale


def prepare(counts):
    """Return the scale and the table of x log x for counts."""
    scale = unit_scale(float(counts.sum()))
    units = np.zeros(counts.sum() + 1, np.int64)
    tabulate_xlogx(scale, units)
    return scale, units


@pytest.mark.parametrize("seed", range(30))
def test_best_cut_takes_most_entropy_away(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, (int(rng.integers(2, 9)), 3)) * (rng.random((1, 3)) < 0.8)
    scale, units = prepare(counts)
    place, gain = purest_cut(counts, 0, len(counts), scale, units, *np.zeros((2, 2, 3), np.int64))
    gains = oracle.best_cut(counts.tolist(), 0, len(counts))
    most = max(gains.values())
    assert gain / scale == pytest.approx(max(most, 0), abs=1e-9)
    if most > 1e-9:
        assert gains[place] == pytest.approx(most, abs=1e-9)
        assert place == min(v for v, g in gains.items() if g > most - 1e-12)
    else:
        assert place == -1


def test_no_cut_is_made_where_nothing_is_left_to_tell():
    counts, is_cut = np.array([[3, 0], [2, 0], [0, 4], [0, 1]]), np.zeros(3, np.bool_)
    entropy_cuts(counts, 3, *prepare(counts), *np.zeros((2, 2, 2), np.int64), *np.zeros((4, 4), np.int64), is_cut)
    assert is_cut.tolist() == [False, True, False]


def greedy_cuts(counts, n_cuts):
    """Return up to so many cuts, each the best of all intervals."""
    intervals, found = [(0, len(counts))], set()
    for _ in range(n_cuts):
        gains = {
            (v, i): g for i in intervals if i[1] - i[0] > 1 for v, g in oracle.best_cut(counts.tolist(), *i).items()
        }
        if not gains:
            break
        (place, (first, last)), gain = max(gains.items(), key=lambda item: item[1])
        if gain <= 1e-9:
            break
        found.add(place)
        intervals.remove((first, last))
        intervals += [(first, place + 1), (place + 1, last)]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_cuts_are_made_where_they_take_most_away_first(seed):
    rng = np.random.default_rng(100 + seed)
    counts, n_cuts = rng.integers(0, 9, (10, 2)), int(rng.integers(1, 7))
    is_cut = np.zeros(9, np.bool_)
    entropy_cuts(
        counts, n_cuts, *prepare(counts), *np.zeros((2, 2, 2), np.int64), *np.zeros((4, n_cuts + 1), np.int64), is_cut
    )
    assert set(np.flatnonzero(is_cut).tolist()) == greedy_cuts(counts, n_cuts)


def cuts_at_quantiles(x, n_values, weight, quantiles):
    """Return after which values rows of a share of the weight have passed, of those that have no last value."""
    found = set()
    rows = sorted((v, w) for v, w in zip(x.tolist(), weight.tolist(), strict=True) if v < n_values - 1)
    total = sum(w for _, w in rows)
    for q in quantiles if rows else ():
        passed = 0
        for v, w in rows:
            passed += w
            if passed >= q * total:
                found.add(v)
                break
    return found


@pytest.mark.parametrize("seed", range(20))
def test_quantiles_are_those_of_the_weight_of_rows(seed):
    rng = np.random.default_rng(seed)
    n, n_values = int(rng.integers(1, 60)), int(rng.integers(1, 12))
    x = np.where(rng.random(n) < 0.2, 255, rng.binomial(n_values - 1, 0.3, n)).astype(np.uint8)
    x[0] = 0
    weight = rng.integers(1, 5, n) if seed % 2 else rng.random(n) + 0.01
    quantiles, is_cut = rng.random(4), np.zeros(n_values, np.bool_)
    quantile_cuts(x, n_values, weight, quantiles, np.full(20, 9.0), is_cut)
    assert set(np.flatnonzero(is_cut).tolist()) == cuts_at_quantiles(x, n_values, weight, quantiles.tolist())


def test_a_quantile_that_many_rows_share_makes_one_cut():
    x, is_cut = np.array([0] * 3 + [1] * 94 + [3] * 3, np.uint8), np.zeros(9, np.bool_)
    quantile_cuts(x, 9, np.ones(100), np.array([0.02, 0.03, 0.1, 0.5, 0.97]), np.zeros(9), is_cut)
    assert np.flatnonzero(is_cut).tolist() == [0, 1]
    is_cut[:] = False
    quantile_cuts(x, 4, np.ones(100), np.array([1.0]), np.zeros(4), is_cut[:4])  # after the last value comes none
    assert np.flatnonzero(is_cut).tolist() == [1]
    quantile_cuts(np.full(5, 3, np.uint8), 4, np.ones(5), np.array([0.5]), np.zeros(4), is_cut[:4])
    assert np.flatnonzero(is_cut).tolist() == [1]  # no more: all have the last


@pytest.mark.parametrize("seed", range(10))
def test_features_are_cut_each_in_its_way(seed):
    rng = np.random.default_rng(seed)
    n, n_states = 80, np.array([9, 4, 9, 1, 12, 9])
    y, weight, drawn = rng.integers(0, 3, n), rng.random(n), rng.integers(0, 4, n)
    codes = (rng.random((6, n)) * n_states[:, np.newaxis]).astype(np.uint8)
    codes[0] = np.where(rng.random(n) < 0.7, 3 * y, codes[0])
    codes[rng.random((6, n)) < 0.1] = 255
    is_ordered = np.array([True, False, True, True, True, False])
    is_supervised = np.array([True, False, False, True, True, True])
    n_cuts, quantiles = np.array([2, 3, 3, 2, 4, 1]), rng.random((6, 4))
    scale, units = prepare(drawn)
    scratch = (
        np.full((12, 3), 9),
        *np.full((2, 2, 3), 9),
        *np.full((4, 5), 9),
        np.full(12, 9.0),
        rng.random(12) < 0.5,
    )
    start = np.append(0, np.cumsum(n_states + 1))
    merged = np.full(start[-1], 99, np.uint16)
    rows = codes, n_states, y, weight, drawn
    cut_features(*rows, is_ordered, is_supervised, n_cuts, quantiles, scale, units, scratch, start, merged)
    for i, k in enumerate(n_states.tolist()):
        if not is_ordered[i]:
            expected = set(range(k - 1))
        elif is_supervised[i]:
            here = codes[i] < k
            counts = np.zeros((k, 3), np.int64)
            np.add.at(counts, (codes[i, here], y[here]), drawn[here])
            expected = greedy_cuts(counts, n_cuts[i])
        else:
            expected = cuts_at_quantiles(codes[i], k, weight, quantiles[i, : n_cuts[i]].tolist())
        own = merged[start[i] : start[i + 1]].astype(int)
        assert own[0] == 0
        assert set(np.flatnonzero(np.diff(own[:-1])).tolist()) == expected
        assert own[-2] == len(expected)
        assert own[-1] == 99  # what is missing is not decided here


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_codes_become_what_the_table_says_and_missing_ones_what_is_behind_it(dtype):
    codes = np.array([[0, 2, 1, 3, np.iinfo(dtype).max], [1, 0, 0, 1, 2]], dtype)
    out = np.full(codes.shape, 9, np.uint16)
    merged = np.array([0, 0, 1, 7, 1, 0, 300], np.uint16)
    merge_codes(codes, np.array([3, 2]), np.array([0, 4, 7]), merged, out)
    assert out.tolist() == [[0, 1, 0, 7, 7], [0, 1, 1, 0, 300]]
