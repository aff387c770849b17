"""Kernels that count values: orders, sums and points against those of dictionaries."""

import numpy as np
import pytest
from oracles import value_counts as oracle

from tanlearn.kernels.value_counts import float_keys, sort_rows, sum_points, sum_rows, sum_values

RNG = np.random.default_rng(0)
WEIGHTS = [np.ones(40, np.int64), RNG.integers(1, 9, 40), RNG.integers(1, 9, 40) / 4]
FLOATS = np.array([0.5, -np.inf, 5e-324, -1e300, 0.0, np.inf, -5e-324, -2.5, 2.5, 1e300, 0.5])


def keys_of(numbers):
    keys = np.empty(len(numbers), np.uint64)
    float_keys(numbers.view(np.int64), keys)
    return keys


@pytest.mark.parametrize(
    "keys",
    [
        RNG.integers(0, 5, 40).astype(np.uint64),
        RNG.integers(0, 2**16, 40).astype(np.uint64),
        RNG.integers(0, 2**64, 40, dtype=np.uint64),
        np.repeat(RNG.integers(0, 2**64, 8, dtype=np.uint64), 5),
        np.full(4, 7, np.uint64),
        FLOATS,
    ],
    ids=["one byte", "two bytes", "eight bytes", "ties", "all the same", "floating"],
)
def test_orders_are_stable(keys):
    keys = keys_of(keys) if keys.dtype.kind == "f" else keys
    expected = sorted(range(len(keys)), key=keys.tolist().__getitem__)
    order, spare = np.empty((2, len(keys)), np.intp)
    is_spare = sort_rows(keys.copy(), np.empty_like(keys), order, spare, np.empty((8, 256), np.intp))
    assert (spare if is_spare else order).tolist() == expected


def test_floating_numbers_are_in_the_order_of_their_keys():
    keys = keys_of(FLOATS).tolist()
    assert [keys[k] < keys[j] for k in range(len(keys)) for j in range(len(keys))] == [
        a < b for a in FLOATS for b in FLOATS
    ]


def sorted_rows(n_values, n_classes):
    """Return values in increasing order, which of them are first ones, and classes in any order."""
    values = np.sort(RNG.integers(0, n_values, 40))
    return values, np.append(True, np.diff(values) > 0), RNG.integers(0, n_classes, 40).astype(np.int32)


def test_sums_of_some_rows_join_those_before():
    row, own, weight, sums = np.zeros(4, np.intp), np.zeros(4, np.int32), np.zeros(4, np.int64), np.zeros(5, np.int64)
    classes, weights = np.array([0, 3, 1, 3, 0], np.int32), np.array([9, 2, 5, 4, 9])
    assert sum_rows(1, 4, 7, 1, classes, weights, sums, row, own, weight) == 3
    assert (row.tolist(), own.tolist(), weight.tolist()) == ([0, 7, 7, 0], [0, 1, 3, 0], [0, 5, 6, 0])
    assert not sums.any()


@pytest.mark.parametrize("weights", WEIGHTS, ids=["ones", "whole", "quarters"])
@pytest.mark.parametrize("n_values", [1, 6, 1000])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_sums_are_those_of_every_value_and_class(n_values, n_classes, weights):
    values, is_first, classes = sorted_rows(n_values, n_classes)
    row, own, weight = np.empty(40, np.intp), np.empty(40, np.int32), np.empty(40, weights.dtype)
    n = sum_values(is_first, classes, weights, np.zeros(n_classes, weights.dtype), row, own, weight)
    found = zip(zip(values[row[:n]].tolist(), own[:n].tolist(), strict=True), weight[:n].tolist(), strict=True)
    pairs = zip(values.tolist(), classes.tolist(), strict=True)
    assert list(found) == oracle.sum_pairs(pairs, weights.tolist())


@pytest.mark.parametrize("weights", WEIGHTS, ids=["ones", "whole", "quarters"])
@pytest.mark.parametrize("n_values", [1, 6, 1000])
@pytest.mark.parametrize("n_points", [1, 2, 8, 13])
def test_points_have_the_sums_of_their_groups(n_values, n_points, weights):
    values, is_first, classes = sorted_rows(n_values, 3)
    n_distinct = np.count_nonzero(is_first)
    room = np.empty(40, np.intp), np.empty(40, np.int32), np.empty(40, weights.dtype)
    sums, lost = np.zeros(3, weights.dtype), np.zeros(2, weights.dtype)
    reached, begin = np.zeros(n_distinct + 1, weights.dtype), np.empty(n_distinct + 1, np.intp)
    n = sum_points(is_first, classes, weights, n_points, sums, reached, begin, *room, lost)
    row, own, weight = (array[:n].tolist() for array in room)
    found = zip(zip(values[row].tolist(), own, strict=True), weight, strict=True)
    pairs, under, over = oracle.sum_points(values.tolist(), classes.tolist(), weights.tolist(), n_points)
    assert list(found) == pairs
    assert lost.tolist() == [under, over]
    assert not sums.any()
