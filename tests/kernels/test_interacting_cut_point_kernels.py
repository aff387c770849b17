"""Kernels of cut points that separate classes only together with another feature."""

import numpy as np
import pytest
from oracles import interacting_cut_points as oracle

from tanlearn.kernels.interacting_cut_points import best_bin, description, entropy_of, interacting_cut_points, saved
from tanlearn.kernels.mathematics import tabulate_xlogx, unit_scale

N_BINS = 7


def problem(seed, n=60, n_classes=3):
    """Bins, where N_BINS is missing, codes of three features, the first of which is the searched one, and classes."""
    rng = np.random.default_rng(seed)
    fine = rng.integers(0, N_BINS + 1, n)
    codes = np.stack([np.zeros(n), rng.integers(0, 3, n), rng.integers(0, 2, n)]).astype(np.uint8)
    y = np.where(rng.random(n) < 0.1, rng.integers(0, n_classes, n), (fine > 3) ^ (codes[1 + seed % 2] == 0))
    return fine, codes, y.astype(np.intp), n_classes


def found(fine, codes, n_values, y, weight, n_classes):
    total = weight.sum()
    units = np.empty(int(total) + 1 if (weight == np.floor(weight)).all() else 0, np.int64)
    scale = unit_scale(total)
    tabulate_xlogx(scale, units)
    is_cut = np.zeros(N_BINS - 1, np.bool_)
    interacting_cut_points(fine, codes, n_values, 0, y, weight, n_classes, scale, units, is_cut)
    return np.flatnonzero(is_cut).tolist()


def expected(fine, codes, n_values, y, weight):
    x = np.where(fine < N_BINS, fine, np.nan)
    others = [own.tolist() for own, n in zip(codes[1:], n_values[1:], strict=True) if n > 1]
    cuts = oracle.best_cut_points(x.tolist(), others, len(codes), y.tolist(), weight.tolist())
    # a cut point lies after any bin without rows that follows the lower value
    return [int(low) for low, _ in cuts or []]


@pytest.mark.parametrize("kind", ["rows", "integers", "real weights"])
@pytest.mark.parametrize("seed", range(6))
def test_cut_points_are_those_of_the_oracle(seed, kind):
    fine, codes, y, n_classes = problem(seed)
    rng = np.random.default_rng(seed)
    weights = {
        "rows": np.ones(len(y)),
        "integers": rng.integers(1, 4, len(y)),
        "real weights": rng.random(len(y)) + 0.5,
    }
    weight = weights[kind].astype(float)
    n_values = np.array([1, 3, 2])
    own = found(fine, codes, n_values, y, weight, n_classes)
    assert own == expected(fine, codes, n_values, y, weight)
    assert own == [3]


def test_entropies_and_descriptions_are_those_of_their_definitions():
    counts, none = np.array([3.0, 0.0, 1.0]), np.zeros(3)
    scale, units = 2.0**40, np.empty(0, np.int64)
    entropy, n = entropy_of(counts, scale, units)
    expected = -(3 * np.log(3 / 4) + np.log(1 / 4))
    assert n == 4
    assert entropy / scale == pytest.approx(expected)
    assert description(counts, scale, units) == (2, 4, pytest.approx(2 * expected / 4))
    assert entropy_of(none, scale, units) == (0, 0)
    assert description(none, scale, units) == (0, 0, 0)


def test_the_best_cut_point_of_a_small_table_saves_what_the_criterion_says():
    """Twelve rows per value of the other feature, with one class below the cut point and the other class above it."""
    counts = np.zeros((4, 2, 2))
    counts[:2, 0, 0] = counts[2:, 0, 1] = counts[:2, 1, 1] = counts[2:, 1, 0] = 6
    scale, units, scratch = 2.0**40, np.empty(0, np.int64), (np.empty((2, 2)), np.empty((2, 2)))
    cut, gain = best_bin(counts, 0, 4, scale, units, *scratch, np.empty(2, np.int64))
    assert cut == 1
    assert gain / scale == pytest.approx(48 * np.log(2))
    subsets = 2 * (np.log(3**2 - 2) - 2 * np.log(2))
    expected = 48 * np.log(2) - np.log(47) - subsets - 0.5
    assert saved(counts, 0, cut, 4, gain, 0.5, scale, units, *scratch) == pytest.approx(expected)


def test_features_with_one_value_are_skipped():
    fine, codes, y, n_classes = problem(0)
    n_values = np.array([1, 1, 2])
    assert found(fine, codes, n_values, y, np.ones(len(y)), n_classes) == []


def test_less_than_the_weight_of_two_rows_is_not_divided():
    fine, codes, y, n_classes = problem(0)
    weight = np.full(len(y), 1.9 / len(y))
    assert found(fine, codes, np.array([1, 3, 2]), y, weight, n_classes) == []


def test_a_feature_without_values_has_no_cut_point():
    _, codes, y, n_classes = problem(0)
    fine = np.full(len(y), N_BINS)
    assert found(fine, codes, np.array([1, 3, 2]), y, np.ones(len(y)), n_classes) == []


def test_many_classes_cost_more():
    """With 40 classes in both halves, 3^k - 2 is taken as 3^k, and two rows of each class are not enough."""
    y = np.tile(np.arange(40), 4)
    fine, other = np.repeat([0, 6, 0, 6], 40), np.repeat([0, 0, 1, 1], 40)
    codes = np.stack([np.zeros(160), other]).astype(np.uint8)
    assert found(fine, codes, np.array([1, 2]), y, np.ones(160), 40) == []
