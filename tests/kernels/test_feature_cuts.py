"""Cuts by class entropy, against all that there are."""

import numpy as np
import pytest
from oracles import context_tries as oracle

from tanlearn.kernels.feature_cuts import entropy_cuts, purest_cut
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
    place, gain = purest_cut(counts, 0, len(counts), scale, units, *np.zeros((2, 3), np.int64))
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
    entropy_cuts(counts, 3, *prepare(counts), *np.zeros((2, 2), np.int64), *np.zeros((4, 4), np.int64), is_cut)
    assert is_cut.tolist() == [False, True, False]


@pytest.mark.parametrize("seed", range(30))
def test_cuts_are_made_where_they_take_most_away_first(seed):
    rng = np.random.default_rng(100 + seed)
    counts, n_cuts = rng.integers(0, 9, (10, 2)), int(rng.integers(1, 7))
    intervals, expected = [(0, 10)], set()
    for _ in range(n_cuts):
        gains = {
            (v, i): g for i in intervals if i[1] - i[0] > 1 for v, g in oracle.best_cut(counts.tolist(), *i).items()
        }
        (place, (first, last)), gain = max(gains.items(), key=lambda item: item[1])
        if gain <= 1e-9:
            break
        expected.add(place)
        intervals.remove((first, last))
        intervals += [(first, place + 1), (place + 1, last)]
    is_cut = np.zeros(9, np.bool_)
    entropy_cuts(
        counts, n_cuts, *prepare(counts), *np.zeros((2, 2), np.int64), *np.zeros((4, n_cuts + 1), np.int64), is_cut
    )
    assert set(np.flatnonzero(is_cut).tolist()) == expected
