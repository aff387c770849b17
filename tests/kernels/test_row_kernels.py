"""Rows of tables as lanes: gather, transpose and product, against loops over samples and classes."""

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import rows, train
from tanlearn.kernels._lanes import padded


def random_rows(n, n_classes, n_rows=6):
    rng = np.random.default_rng(n * 100 + n_classes)
    lanes = padded(n_classes)
    values = np.zeros((n, lanes), np.float32)
    values[:, :n_classes] = rng.normal(size=(n, n_classes))
    table = np.zeros(n_rows * n_classes + lanes, np.float32)
    table[: n_rows * n_classes] = rng.normal(size=n_rows * n_classes)
    start = (rng.integers(0, n_rows, n) * n_classes).astype(np.int32)
    return values, table, start


@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("n_classes", [2, 16, 26])
def test_rows_are_gathered_added_and_multiplied(n, n_classes):
    values, table, start = random_rows(n, n_classes)
    picked = np.array([[table[s + c] for c in range(n_classes)] for s in start])
    expected = sum(values[k, c] * picked[k, c] for k in range(n) for c in range(n_classes))
    assert rows.dot_rows(values.ravel(), table, start) == pytest.approx(expected, rel=1e-5)
    gathered = values.copy()
    rows.gather_rows(gathered.ravel(), table, start)
    np.testing.assert_allclose(gathered[:, :n_classes], values[:, :n_classes] + picked, rtol=1e-6)
    summed = table.copy()
    rows.add_rows(values.ravel(), summed, start)
    for k in range(n):
        for c in range(n_classes):
            table[start[k] + c] += values[k, c]
    np.testing.assert_allclose(summed, table, rtol=1e-6)


@pytest.mark.parametrize(("child", "parents"), [(1, [-1, -1]), (1, [0, -1]), (2, [1, 0])])
def test_a_sample_starts_at_the_row_of_its_family(child, parents):
    codes = np.array([[0, 1, 1], [2, 0, 1], [0, 1, 0]], np.uint8)
    start = np.empty(3, np.int32)
    train.family_starts(codes, child, np.array(parents), np.array([2, 3, 2]), 4, start)
    assert start.tolist() == [4 * naive.family_index(codes.T[k], child, parents, [2, 3, 2]) for k in range(3)]


@pytest.mark.parametrize("n_classes", [2, 17])
def test_samples_without_a_start_are_left_out_of_a_product(n_classes):
    values, table, start = random_rows(5, n_classes)
    other, other_start = np.arange(5.0), np.array([0, -1, 0, 0, 0], np.int32)
    start[3] = -1
    expected = sum(values[k, c] * table[start[k] + c] for k in (0, 2, 4) for c in range(n_classes)) - (0 + 2 + 4)
    assert rows.dot_observed_rows(values.ravel(), table, start, other, other_start) == pytest.approx(expected, rel=1e-5)
