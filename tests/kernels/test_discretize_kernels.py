"""Entropy cuts against the oracle that tries every cut, on tables of a few rows."""

import math
from itertools import pairwise

import numpy as np
import pytest
from oracles import discretize as naive

from tanlearn.kernels import discretize as kernels

SCALE = 2.0**50


def collapsed(x, y, weight, n_classes):
    n = len(x)
    values, start = np.empty(n), np.empty(n + 1, np.intp)
    classes, weights = np.empty(n, np.intp), np.empty(n)
    slot = np.full(n_classes, -1, np.intp)
    order = np.argsort(x)
    n_values = kernels.collapse(
        np.asarray(x, float), np.asarray(y), np.asarray(weight, float), order, slot, values, start, classes, weights
    )
    return values[:n_values], start[: n_values + 1], classes[: start[n_values]], weights[: start[n_values]]


def cuts_of(x, y, weight, n_classes):
    values, *counts = collapsed(x, y, weight, n_classes)
    is_cut = np.zeros(max(len(values) - 1, 0), bool)
    kernels.mdlp_cuts(*counts, n_classes, is_cut)
    return list(zip(values[:-1][is_cut], values[1:][is_cut], strict=True))


def scratch(n_classes):
    return [SCALE, *(np.empty(n_classes) for _ in range(3))]


def test_collapse_sums_the_weights_of_every_value_and_class():
    values, start, classes, weights = collapsed([3, 1, 3, 1, 3], [0, 1, 2, 1, 0], [1, 2, 4, 8, 16], 3)
    assert values.tolist() == [1, 3]
    found = [dict(zip(classes[a:b].tolist(), weights[a:b], strict=True)) for a, b in pairwise(start)]
    assert found == [{1: 10}, {0: 17, 2: 4}]


def test_set_entropy_counts_and_weighs_the_classes_that_occur():
    counts = np.empty(3)
    _, start, classes, weights = collapsed([1, 1, 2, 2], [0, 0, 2, 0], [1, 1, 2, 4], 3)
    assert kernels.count_set(start, classes, weights, 0, 2, counts) == 8
    assert counts.tolist() == [6, 0, 2]
    assert kernels.count_present(counts) == 2
    rows = [(0, 0, 6.0), (0, 2, 2.0)]
    assert kernels.set_entropy(counts, 8.0, SCALE) / SCALE == pytest.approx(8 * naive.entropy(rows) * math.log(2))


def test_best_cut_is_the_lowest_of_equals():
    # Cutting off either end leaves the same entropy.
    _, *counts = collapsed([1, 2, 3], [0, 1, 0], [1, 1, 1], 2)
    assert kernels.best_cut(*counts, 0, 3, *scratch(2)) == 1


def test_best_cut_of_one_class_or_one_value_is_none():
    _, *counts = collapsed([1, 2, 2], [1, 1, 1], [1, 1, 1], 2)
    assert kernels.best_cut(*counts, 0, 2, *scratch(2)) == 0
    assert kernels.best_cut(*counts, 1, 2, *scratch(2)) == 1


@pytest.mark.parametrize(("repetitions", "accepted"), [(1, True), (0.9, False)])
def test_a_cut_needs_the_weight_of_two_rows(repetitions, accepted):
    _, *counts = collapsed([1, 2], [0, 1], [repetitions, repetitions], 2)
    assert kernels.accept_cut(*counts, 0, 1, 2, SCALE, np.empty(2)) == accepted


def test_accept_cut_holds_the_paper_s_inequality():
    x, y = np.arange(8), np.array([0, 0, 0, 1, 0, 1, 1, 1])
    decisions = []
    for repetitions in range(1, 9):
        _, *counts = collapsed(x, y, np.full(8, repetitions), 2)
        n, gain = 8 * repetitions, 1 - naive.entropy([(0, 0, 3), (0, 1, 1)])
        delta = math.log2(7) - (2 - 4 * (1 - gain))
        decisions.append(kernels.accept_cut(*counts, 0, 4, 8, SCALE, np.empty(2)))
        assert decisions[-1] == (n * gain > math.log2(n - 1) + delta)
    assert decisions[0] != decisions[-1]


@pytest.mark.parametrize("seed", range(12))
def test_cuts_equal_oracle(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 8, 24)
    y = np.where(rng.random(24) < 0.8, x // 3, rng.integers(0, 3, 24))
    weight = rng.integers(1, 5, 24) if seed % 2 else rng.choice([0.25, 0.5, 1.75], 24)
    expected = naive.mdlp_cuts(x, y, weight)
    assert cuts_of(x, y, weight, 3) == expected
    assert expected or seed  # seed 0 does cut: the comparison is not of nothing


def test_no_rows_have_no_cuts():
    assert cuts_of([], np.empty(0, np.intp), [], 2) == []
