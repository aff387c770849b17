"""Information of packed features against tables that are counted one by one."""

import itertools

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import bits as bit_kernels
from tanlearn.kernels import counts
from tanlearn.kernels import pair_information as kernels
from tanlearn.kernels.mathematics import tabulate_xlogx, tabulated_xlogx, unit_scale, xlogx

MISSING = 255
N_STATES = np.array([2, 3, 1, 2, 4, 2])
GAPS = np.array([False, True, False, True, False, True])
N_CLASSES, N = 2, 150


@pytest.fixture(autouse=True)
def wrapping_around_is_meant():
    """Plain Python warns where the product of the population count overflows; compiled code does not."""
    with np.errstate(over="ignore"):
        yield


def random_table():
    """Return rows, codes and classes; samples miss some features, and one shares no sample with another."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(-1 if gaps else 0, k, N) for k, gaps in zip(N_STATES, GAPS, strict=True)], axis=1)
    X[:, 5] = np.where(X[:, 3] < 0, X[:, 5], -1)
    codes = np.ascontiguousarray(np.where(X < 0, MISSING, X).T.astype(np.uint8))
    return X, codes, (rng.random(N) < 0.9).astype(int)


def make_classes(y, n_tabulated):
    """Return classes and logarithms."""
    size = np.bincount(y, minlength=N_CLASSES)
    scales = np.array(sorted({unit_scale(float(n)) for n in range(1, N + 1)}))
    units = np.zeros((len(scales), n_tabulated), np.int64)
    for scale, row in zip(scales.tolist(), units, strict=True):
        n_fitting = sum(unit_scale(float(x)) >= scale for x in range(1, n_tabulated))
        tabulate_xlogx(scale, row[: 1 + n_fitting])
    return kernels.Classes(np.append(0, np.cumsum(2 * -(-size // 128))), size, scales, units)


def make_tile(codes, y, features, classes, place):
    """Return features with their sets."""
    features = np.array(features)
    bit = np.empty(N, np.intp)
    bit_kernels.number_samples(y, 64 * classes.word[:-1], bit)
    start = np.append(0, np.cumsum(N_STATES[features] - 1 + GAPS[features]))
    bits = np.zeros((classes.word[-1], start[-1]), np.uint64)
    bit_kernels.pack_values(codes, 0, bit, features, start, bits)
    columns = [codes[i] == x for i in features for x in range(N_STATES[i] - 1 + GAPS[i])]
    sizes = np.array([[np.count_nonzero(c & (y == k)) for c in columns] for k in range(N_CLASSES)], np.int64)
    own_units = np.empty(len(features), np.int64)
    kernels.sum_own_units(start, sizes, classes, own_units)
    return kernels.Tile(bits, start, N_STATES[features], sizes, own_units, np.array(place))


def make_scratch(n_sets):
    sizes = n_sets, n_sets, len(N_STATES), len(N_STATES), 16 * N_CLASSES, 9 * N_CLASSES
    shared = np.full((N_CLASSES, 4, n_sets), 99)
    return kernels.Scratch(shared, *(np.full(size, 99) for size in sizes))


def expected_information(X, y, i, j):
    """Return what the oracle says, and what the kernel that sums whole tables does, of the later feature."""
    high, low = max(i, j), min(i, j)
    first = naive.offsets([high], [[low]], N_STATES, N_CLASSES)[0]
    cells = naive.count_cells(X, y, np.ones(N, int), [high], [[low]], N_STATES, N_CLASSES)[first:]
    table = cells.reshape(N_STATES[high], N_STATES[low], N_CLASSES)
    margins = np.empty((table.shape[0] + table.shape[1] + 1) * N_CLASSES, np.int64)
    of_table = counts.conditional_mutual_information(cells, *table.shape, margins)
    assert of_table == pytest.approx(naive.conditional_mutual_information(table), abs=1e-14)
    return of_table


@pytest.mark.parametrize("n_tabulated", [3, 200])  # logarithms are made where the table ends
def test_information_of_packed_features_is_that_of_their_tables(n_tabulated):
    X, codes, y = random_table()
    classes = make_classes(y, n_tabulated)
    rows, columns = {4: 2, 1: 0, 5: 1}, {0: 0, 2: 1, 3: 3}
    tile, other = (make_tile(codes, y, list(places), classes, list(places.values())) for places in (rows, columns))
    information = np.full((3, 4), np.nan)
    kernels.packed_information(tile, other, False, classes, make_scratch(other.bits.shape[1]), information)
    assert np.isnan(information[:, 2]).all()
    for i, j in itertools.product(rows, columns):
        assert information[rows[i], columns[j]] == expected_information(X, y, i, j)
    assert information[1, 3] == 0.0  # no sample has both
    assert information.max(where=~np.isnan(information), initial=0) > 0.01


def test_a_tile_meets_itself_below_the_diagonal():
    X, codes, y = random_table()
    classes = make_classes(y, 200)
    tile = make_tile(codes, y, range(6), classes, range(6))
    information = np.full((6, 6), np.nan)
    kernels.packed_information(tile, tile, True, classes, make_scratch(tile.bits.shape[1]), information)
    for i, j in itertools.product(range(6), repeat=2):
        if j < i:
            assert information[i, j] == expected_information(X, y, i, j)
        else:
            assert np.isnan(information[i, j])


@pytest.mark.parametrize("weighted", [False, True])
def test_information_counted_sample_by_sample_is_that_of_the_later_feature_given_the_earlier(weighted):
    X, codes, y = random_table()
    weight = np.random.default_rng(1).uniform(0, 2, N) if weighted else np.ones(N, np.int64)
    cells, margins = np.full(16 * N_CLASSES, 9, weight.dtype), np.full(9 * N_CLASSES, 9, weight.dtype)
    features, others, information = np.array([1, 5]), np.array([4, 0, 3]), np.full((2, 3), np.nan)
    wanted = np.array([[True, True, True], [False, True, False]])
    sizes = N_STATES, N_CLASSES, MISSING
    kernels.counted_information(codes, y, weight, features, others, wanted, *sizes, cells, margins, information)
    assert np.isnan(information[~wanted]).all()
    for r, q in np.argwhere(wanted):
        high, low = max(features[r], others[q]), min(features[r], others[q])
        first = naive.offsets([high], [[low]], N_STATES, N_CLASSES)[0]
        table = naive.count_cells(X, y, weight, [high], [[low]], N_STATES, N_CLASSES)[first:]
        shape = N_STATES[high], N_STATES[low], N_CLASSES
        assert information[r, q] == counts.conditional_mutual_information(table, *shape, margins)
        assert information[r, q] == pytest.approx(naive.conditional_mutual_information(table.reshape(shape)), abs=1e-14)


@pytest.mark.parametrize("weights", ["integer", "real"])
@pytest.mark.parametrize("n", [40, 2000])  # the pairs of large features have more cells than rows, or fewer
@pytest.mark.parametrize("n_tabulated", [5, 10**4])
def test_information_of_listed_pairs_is_that_of_their_tables(weights, n, n_tabulated):
    rng = np.random.default_rng(n)
    n_states, y = np.array([2, 3, 1, 9, 12]), rng.integers(0, 3, n)
    X = rng.integers(0, n_states, (n, 5))
    X[:, 4] = np.where(rng.random(n) < 0.5, X[:, 3], X[:, 4])
    gaps = np.array([False, True, False, False, True])
    X = np.where((rng.random((n, 5)) < 0.2) & gaps, -1, X)
    codes = np.ascontiguousarray(np.where(X < 0, np.where(np.arange(n)[:, np.newaxis] % 2, n_states, MISSING), X).T)
    codes = codes.astype(np.uint8)  # a code from the number of values on is missing, whichever it is
    weight = rng.integers(1, 4, n) if weights == "integer" else rng.random(n) + 0.01
    scale = unit_scale(float(weight.sum()))
    units = np.zeros(n_tabulated if weights == "integer" else 0, np.int64)
    tabulate_xlogx(scale, units[: int(weight.sum()) + 1])
    features, start, others = np.array([4, 2, 1, 0]), np.array([0, 3, 4, 4, 6]), np.array([3, 1, 0, 4, 4, 1])
    cells, margins = np.zeros(9 * 12 * 3, weight.dtype), np.full(25 * 3, 9, weight.dtype)
    information = np.full(6, np.nan)
    rows = codes, n_states, y, weight
    scratch = np.empty(n, np.int32), cells, margins
    kernels.listed_information(*rows, features, others, start, 3, scale, units, *scratch, information)
    assert not cells.any()
    for f, i in enumerate(features):
        for q in range(start[f], start[f + 1]):
            first = naive.offsets([i], [[others[q]]], n_states, 3)[0]
            table = naive.count_cells(X, y, weight, [i], [[others[q]]], n_states, 3)[first:]
            table = table.reshape(n_states[i], n_states[others[q]], 3)
            assert information[q] == pytest.approx(naive.conditional_mutual_information(table), abs=1e-12)
    assert information.max() > 0.3


def test_listed_pairs_that_no_sample_has_say_nothing():
    codes, y, weight = np.array([[0, 255], [255, 1]], np.uint8), np.array([0, 1]), np.array([1, 2])
    cells, information = np.zeros(8, np.int64), np.full(1, np.nan)
    units, pair = np.zeros(0, np.int64), (np.array([0]), np.array([1]), np.array([0, 1]))
    scratch = np.empty(2, np.int32), cells, np.zeros(10, np.int64)
    kernels.listed_information(
        codes, np.array([2, 2]), y, weight, *pair, 2, unit_scale(3.0), units, *scratch, information
    )
    assert information.tolist() == [0.0]


def meet(X, codes, y, i, j):
    """Return classes, tiles of one feature each, and scratch in which their sets have been counted."""
    classes = make_classes(y, 200)
    tile, other = make_tile(codes, y, [i], classes, [0]), make_tile(codes, y, [j], classes, [0])
    scratch = make_scratch(other.bits.shape[1])
    n_sets, width = tile.bits.shape[1], other.bits.shape[1]
    for c in range(N_CLASSES):
        words = classes.word[c], classes.word[c + 1]
        bit_kernels.count_shared(tile.bits, 0, n_sets, other.bits, width, *words, scratch.shared[c])
    first = naive.offsets([i], [[j]], N_STATES, N_CLASSES)[0]
    table = naive.count_cells(X, y, np.ones(N, int), [i], [[j]], N_STATES, N_CLASSES)[first:]
    return classes, tile, other, scratch, table


@pytest.mark.parametrize(("i", "j"), [(4, 0), (0, 4), (2, 0)])
def test_cells_of_complete_features_follow_from_their_sets(i, j):
    classes, tile, other, scratch, table = meet(*random_table(), i, j)
    vectors = scratch.rest, scratch.lasts, scratch.cells, scratch.totals
    kernels.sum_cell_units(scratch.shared, tile, 0, other, 1, classes, *vectors)
    assert scratch.totals[0] == sum(xlogx(count, classes.scales[0]) for count in table)


@pytest.mark.parametrize(("i", "j"), [(1, 0), (0, 1), (3, 1), (4, 5)])
def test_tables_of_features_with_gaps_follow_from_their_sets(i, j):
    classes, tile, other, scratch, table = meet(*random_table(), i, j)
    kernels.fill_table(scratch.shared, tile, 0, other, 0, scratch.counts)
    assert scratch.counts[: len(table)].tolist() == table.tolist()
    shape = N_STATES[i], N_STATES[j], N_CLASSES
    found = kernels.tabulated_information(table, *shape, scratch.margins, classes.scales, classes.units)
    assert found == counts.conditional_mutual_information(table, *shape, scratch.margins)


@pytest.mark.parametrize("length", [2, 9])
def test_what_is_not_in_the_table_is_computed(length):
    scale = unit_scale(8.0)
    row = np.array([xlogx(x, scale) for x in range(length)])
    values = np.array([3, 0, 8, 1])
    expected = [xlogx(x, scale) for x in values]
    assert [tabulated_xlogx(x, scale, row) for x in values] == expected
    totals = np.full(4, 5)
    kernels.add_xlogx(values, 8, scale, row, totals)
    assert (totals - 5).tolist() == expected


def test_a_pair_is_added_where_neither_is_missing():
    x, z, y = np.array([0, 1, 255, 1], np.uint8), np.array([2, 255, 0, 0], np.uint8), np.array([1, 0, 0, 1])
    table = np.ones(12, np.int64)
    counts.add_pair(x, z, y, np.array([2, 3, 4, 5]), 3, 2, MISSING, table)
    assert (table - 1).reshape(2, 3, 2).tolist() == [[[0, 0], [0, 0], [0, 2]], [[0, 5], [0, 0], [0, 0]]]
