"""Counts of values: sums that are exact, and points whose ranks keep their promise."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.value_counts import sum_pairs, sum_points
from support.summaries import assert_same, fitted, merged, of, parts_of

from tanlearn import QuantileDiscretizer, TableEncoder
from tanlearn.encoding.summaries import TableSummary
from tanlearn.encoding.value_counts import Block, ValueCounts, add_block, collect, compress, merge_counts, sum_by_key
from tanlearn.sources.columns import read_columns

pytestmark = pytest.mark.filterwarnings("ignore:discretization left")  # small tables are noise


@pytest.mark.parametrize("n", [20, 3000])  # which NumPy and a kernel sort
@pytest.mark.parametrize("weight", [1, 0.1])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8"])
def test_counts_are_those_of_all_values_and_classes(dtype, weight, n):
    rng = np.random.default_rng(0)
    values = rng.normal(0, 50, n) if dtype[0] in "fi" else rng.integers(0, 99, n)
    values = values.astype(dtype) if dtype[0] != "?" else values > 50
    if dtype[1:] == "8":
        values[:4] = [2**63, 2**64 - 1, 0, 2**63] if dtype == "u8" else [-(2**62), 2**62, 0, -(2**62)]
    classes, weights = rng.integers(0, 3, n), rng.integers(1, 9, n) * weight
    counts = collect(values, classes, weights, 3)
    pairs = zip(values.tolist(), classes.tolist(), strict=True)
    found = zip(counts.values.tolist(), counts.classes.tolist(), strict=True)
    assert list(zip(found, counts.weights.tolist(), strict=True)) == sum_pairs(pairs, weights.tolist())
    assert counts.values.dtype == values.dtype


@pytest.mark.parametrize("n", [200, 3000])
@pytest.mark.parametrize("dtype", ["i4", "u8", "f8"])
def test_real_weights_are_added_in_the_order_of_rows(dtype, n):
    """Also of runs that are sorted already; sums of other orders are rounded otherwise."""
    rng = np.random.default_rng(1)
    runs = [np.sort(rng.integers(0, 9, n)).astype(dtype) for _ in range(3)]
    classes, weights = rng.integers(0, 2, 3 * n), rng.random(3 * n)
    expected = sum_pairs(zip(np.concatenate(runs).tolist(), classes.tolist(), strict=True), weights.tolist())
    for are_sorted_runs in (False, True):
        counts = collect(np.concatenate(runs), classes, weights, 2, are_sorted_runs=are_sorted_runs)
        pairs = zip(counts.values.tolist(), counts.classes.tolist(), strict=True)
        assert list(zip(pairs, counts.weights.tolist(), strict=True)) == expected


@pytest.mark.parametrize("n_keys", [8, 50, 10**12])
@pytest.mark.parametrize("scale", [1, 2**52, 0.1])
def test_sums_by_key_are_those_of_a_dictionary(n_keys, scale):
    rng = np.random.default_rng(2)
    keys, weights = rng.integers(0, min(n_keys, 40), 30) * (n_keys // min(n_keys, 40)), rng.integers(1, 9, 30) * scale
    found, sums = sum_by_key(keys, weights, n_keys)
    assert list(zip(found.tolist(), sums.tolist(), strict=True)) == sum_pairs(keys.tolist(), weights.tolist())
    assert sums.dtype == weights.dtype


@pytest.mark.parametrize("n_points", [1, 2, 5, 20, 29, 30])
@pytest.mark.parametrize("scale", [1, 0.25])
def test_compressed_counts_are_those_of_the_groups(n_points, scale):
    """From 30 points on, 30 values stay as they are, and nothing is lost."""
    rng = np.random.default_rng(3)
    values, classes = np.arange(60) // 2 + 0.5, np.tile(np.arange(2, dtype=np.int32), 30)
    weights = rng.integers(1, 9, 60) * scale
    points, under, over = compress(ValueCounts(values, classes, weights), n_points, 2)
    found = list(zip(zip(points.values.tolist(), points.classes.tolist(), strict=True), points.weights, strict=True))
    if n_points < 30:
        assert (found, under, over) == sum_points(values.tolist(), classes.tolist(), weights.tolist(), n_points)
    else:
        assert (len(found), under, over) == (60, 0, 0)
        assert points.weights.tolist() == weights.tolist()


def test_counts_merge_with_those_of_no_rows():
    nothing = collect(np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), 2)
    some = collect(np.array([2.5, 1.5]), np.array([1, 0]), np.array([3, 4]), 2)
    for parts in ([nothing, some], [some, nothing, nothing], [some]):
        assert [array.tolist() for array in merge_counts(parts, 2)] == [[1.5, 2.5], [0, 1], [4, 3]]
    assert merge_counts([nothing, nothing], 2).n_values == 0


def test_levels_of_blocks_are_the_bits_of_their_number():
    """Two blocks of a level become one of the next, and no row is lost."""
    blocks = ()
    for n in range(1, 12):
        values = np.arange(20.0) + n
        counts = ValueCounts(values, np.zeros(20, np.int32), np.full(20, n))
        blocks = add_block(blocks, Block(0, counts, 0, 0), 4, 1)
        assert [block.level for block in blocks] == [level for level in range(4) if n >> level & 1]
        assert sum(block.counts.weights.sum() for block in blocks) == 20 * n * (n + 1) // 2


def test_class_weights_of_values_are_kept():
    summary = of([["b", 3], ["a", 1], ["b", 1]], [1, 0, 0], [5, 1, 2]).merge(of([["a", 3]], [1], [7]))
    words, numbers = summary._columns
    assert words.names.tolist() == ["a", "b"]
    found = [list(zip(*(array.tolist() for array in column.counts), strict=True)) for column in (words, numbers)]
    assert found == [[(0, 0, 1), (0, 1, 7), (1, 0, 2), (1, 1, 5)], [(1, 0, 3), (3, 1, 12)]]


def test_large_whole_weights_are_added_exactly():
    large = 2**53
    summary = of([["a", 1.5], ["a", 1.5], ["b", 2.5]], [0, 0, 1], [large, 1, 1])
    summary.merge(of([["a", 1.5], ["b", 1.5]], [0, 1], [2, large + 1]))
    assert summary.class_counts.tolist() == [large + 3, large + 2]
    assert [column.counts.weights.tolist() for column in summary._columns] == [
        [large + 3, large + 2],
        [large + 3, large + 1, 1],
    ]


def hard_data(name, n, rng):
    """Return numbers and weights that are hard to rank."""
    weight = np.ones(n, np.int64)
    if name == "sorted":
        return np.arange(n) / 8, weight
    if name == "reversed":
        return -np.arange(n) / 8, weight
    if name == "skewed":
        return np.exp(5 * rng.normal(size=n)), weight
    if name == "ties":
        return np.where(rng.random(n) < 0.6, 0.0, np.round(rng.normal(size=n), 3)), weight
    if name == "huge weights":
        weight[rng.integers(0, n, 9)] = 2**45
        return rng.normal(size=n), weight
    if name == "geometric weights":
        return rng.permutation(n) / 2, np.int64(1) << np.arange(n) % 40
    if name == "real weights":
        return rng.normal(size=n), rng.random(n) ** 8
    return np.ldexp(rng.choice([-1.0, 1.0], n), np.arange(n) % 2000 - 1000) * rng.random(n), weight


HARD = [
    "sorted",
    "reversed",
    "skewed",
    "ties",
    "huge weights",
    "geometric weights",
    "real weights",
    "all sizes",
]


def largest_rank_error(summary, x, weight, i=0):
    """Return by how much the ranks of points are wrong, at most, as a share of the weight: looked up one by one."""
    column = summary._columns[i]
    points, _, of_point = column.pooled(len(summary.classes_))
    order = np.argsort(x, kind="stable")
    reached = np.append(0, np.cumsum(weight[order]))
    ours = np.append(0, np.cumsum(of_point))
    # Ranks change at values and at points only.
    at = np.concatenate([x, points, [-np.inf]])
    true = reached[np.searchsorted(x[order], at, side="right")]
    found = ours[np.searchsorted(points, at, side="right")]
    return float(np.abs(true - found).max() / weight.sum())


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("shape", ["one by one", "in a row", "large", "any", "tree"])
def test_no_rank_is_further_off_than_is_said(name, shape):
    rng = np.random.default_rng(HARD.index(name))
    n = 600 if shape == "one by one" else 6000
    x, weight = hard_data(name, n, rng)
    y = rng.integers(0, 3, n)
    n_parts = {"one by one": n, "in a row": 60, "large": 3, "any": 50, "tree": 64}[shape]
    ends = np.sort(rng.integers(0, n, n_parts - 1)) if shape == "any" else n_parts
    rows = np.split(np.arange(n), ends) if shape == "any" else np.array_split(np.arange(n), n_parts)
    summaries = parts_of(x[:, np.newaxis], y, weight, rows, n_points=16)
    summary = merged(summaries, rng if shape == "tree" else None)
    claimed, error = summary.rank_error(0), largest_rank_error(summary, x, weight)
    assert error <= claimed * (1 + 1e-9)
    n_blocks = n / (8 * 16)
    assert 0 < claimed < (1 + np.log2(n_blocks)) / 16
    column = summary._columns[0]
    assert np.isclose(column.total, weight.sum(), rtol=1e-12)
    assert len(column.blocks) <= 1 + np.log2(n_blocks)
    assert all(len(np.unique(block.counts.values)) <= 17 for block in column.blocks)
    # Ranks of each class are no worse.
    for label in range(3):
        counts = column.pooled(3)
        own = counts.classes == label
        at = np.append(x, counts.values)
        true = np.array([weight[(y == label) & (x <= t)].sum() for t in at[::37]])
        found = np.array([counts.weights[own & (counts.values <= t)].sum() for t in at[::37]])
        assert np.abs(true - found).max() <= claimed * weight.sum() * (1 + 1e-9)


def test_default_errors_are_below_a_thousandth():
    rng = np.random.default_rng(0)
    n = 1_000_000
    x = np.sort(rng.normal(size=n))
    y = (rng.random(n) < 1 / (1 + np.exp(-4 * x))).astype(int)
    summary = TableSummary()
    for rows in np.array_split(np.arange(n), 100):
        summary.update(read_columns(x[rows, np.newaxis]), y[rows])
    assert largest_rank_error(summary, x, np.ones(n)) <= summary.rank_error(0) < 1 / 2000
    found = summary.fit_encoder(TableEncoder(discretizer=QuantileDiscretizer(max_bins=10)))
    below = np.searchsorted(x, found.discretizer_.cut_points_[0]) / n
    assert np.abs(below - np.arange(1, 10) / 10).max() < 1 / 1000
    np.testing.assert_allclose(
        found.typical_values_[0], [part.mean() for part in np.split(x, (below * n).astype(int)[:9])], atol=0.01
    )


def test_points_are_only_made_of_too_many_values():
    values = np.arange(16.0)[:, np.newaxis]
    y = np.arange(16) % 2
    options = [TableSummary(n_points=2), TableSummary(n_points=2, exact=True)]
    for summary in options:
        for own in (y, 1 - y, y):
            summary.update(read_columns(values), own)
        assert summary.rank_error(0) == 0
        summary.update(read_columns([[0.5]]), [0])
    assert [summary.rank_error(0) > 0 for summary in options] == [True, False]
    points, exact = (summary.fit_encoder(TableEncoder()) for summary in options)
    whole = np.vstack([values, values, values, [[0.5]]])
    assert_same(exact, fitted(TableEncoder(), whole, np.concatenate([y, 1 - y, y, [0]]))[0])
    assert points.categories_ == [None]
    with pytest.raises(ValueError, match="X column 0 has so many distinct values that only quantiles are stored"):
        options[0].fit_encoder(TableEncoder(discrete_features=True))
    assert points.value_ranges_ == exact.value_ranges_ == [(0.0, 15.0)]
    # Later integers, and classes, find their place among points.
    options[0].update(read_columns([[-7]]), [-2])
    assert options[0].classes_.tolist() == [-2, 0, 1]
    assert options[0]._columns[0].total == 50
    assert options[0].fit_encoder(TableEncoder(discretizer=QuantileDiscretizer())).typical_values_[0][0] == -7
    # Points lose the extremes, but the summary keeps them, in bytes too and in either order of merging.
    assert options[0]._columns[0].pooled(3).values[-1] < 15
    again = TableSummary.from_bytes(options[0].to_bytes())
    assert again.fit_encoder(TableEncoder()).value_ranges_ == [(-7.0, 15.0)]
    one = TableSummary(n_points=2).update(read_columns(values + 0.5), y).merge(options[0])
    assert one.fit_encoder(TableEncoder()).value_ranges_ == [(-7.0, 15.5)]
    # A summary of an earlier version kept points without their extremes: then no range is known, and none is made up.
    old = replace(again._columns[0], bounds=None)
    again._columns = [old]
    assert again.fit_encoder(TableEncoder()).value_ranges_ == [None]
    assert again.merge(one).fit_encoder(TableEncoder()).value_ranges_ == [None]


def test_few_heavy_values_lose_nothing_among_points():
    # Half of the weight at one value: its rank is right, and so is a quantile there.
    x = np.append(np.zeros(5000), np.random.default_rng(0).normal(size=5000))
    summary = TableSummary(n_points=32)
    for rows in np.array_split(np.random.default_rng(1).permutation(10_000), 20):
        summary.update(read_columns(x[rows, np.newaxis]), rows % 2)
    points, _, weights = summary._columns[0].pooled(2)
    assert 5000 <= weights[points == 0].sum() < 5000 + summary.rank_error(0) * 2 * 10_000
