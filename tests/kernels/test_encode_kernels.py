"""Codes of blocks of rows against dictionaries, in every order of memory."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from oracles import encode as naive

from tanlearn.kernels import encode as kernels

ORDERS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
N = kernels.LONG_TILE + 2 * kernels.TILE + 3


def panel_of(X):
    """Return the memory of a table, and the steps in it."""
    steps = [step // X.itemsize for step in X.strides]
    n_cells = 1 + sum((n - 1) * step for n, step in zip(X.shape, steps, strict=True))
    # Not writeable, as the library passes it: otherwise kernels would compile once more.
    return as_strided(X, (n_cells,), (X.itemsize,), writeable=False), *steps


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.float32, np.float64])
@pytest.mark.parametrize("chosen", [[0, 1, 2], [0, 2], [1]])
def test_look_up_is_that_of_a_dictionary(order, dtype, chosen):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (N, 3)).astype(dtype)
    if X.dtype.kind == "f":
        X[::7, 0], X[1::7, 1], X[2::7] = np.nan, 2.5, -1e30
    known = [[1, 2, 5], [2], [0, 3, 4, 8]]
    low, high = np.array([1, 2, 0]), np.array([6, 3, 9])
    tables, codes = [], np.zeros((3, N), np.uint8)
    for j in chosen:
        tables += [[*naive.look_up(list(range(low[j], high[j])), known[j], 255), 255, 255]]
    start = np.cumsum([0, *map(len, tables)])[:-1]
    chosen = np.array(chosen)
    for first, last in ((0, 5), (5, N)):
        kernels.look_up(
            *panel_of(ORDERS[order](X)), first, last, chosen, chosen, low[chosen], high[chosen], start,
            np.concatenate(tables).astype(np.uint8), codes,
        )  # fmt: skip
    for j in range(3):
        expected = naive.look_up(X[:, j].tolist(), known[j], 255) if j in chosen else [0] * N
        assert codes[j].tolist() == expected


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_marks_are_of_what_occurs(order, dtype):
    X = np.array([[3, 5], [3, 7], [4, 5]]).astype(dtype)
    X = np.repeat(X, 30, axis=0)
    present = np.zeros((2, 7), bool)
    low = np.array([2, 1])
    kernels.mark_present(*panel_of(ORDERS[order](X)), 0, len(X), np.arange(2), low, low + 5, present)
    assert [np.flatnonzero(row).tolist() for row in present] == [[1, 2], [4, 5]]  # 7 is outside of 1, ..., 5
    if dtype == np.float64:
        X[4], present[:] = [np.nan, 1.5], False
        kernels.mark_present(*panel_of(ORDERS[order](X)), 0, len(X), np.arange(2), low, low + 5, present)
        assert [np.flatnonzero(row).tolist() for row in present] == [[1, 2, 6], [4, 5]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("n_cuts", [0, 1, 3, 4, 40, 128, 129])
def test_cuts_are_counted(order, dtype, n_cuts):
    rng = np.random.default_rng(n_cuts)
    X = rng.normal(0, 20, (N, 2)).astype(dtype)
    near = np.concatenate([X[:20, 0], X[:20, 1] + 0.25, rng.normal(size=n_cuts)])
    cuts = np.sort(near[:n_cuts].astype(float))
    if X.dtype.kind == "f":
        X[3] = np.nan
    codes, chosen, zeros = np.zeros((2, N), np.uint8), np.arange(2), np.zeros(2, int)
    kernels.count_cuts_below(*panel_of(ORDERS[order](X)), 0, N, chosen, chosen, zeros, zeros + n_cuts, cuts, 255, codes)
    for j in range(2):
        assert codes[j].tolist() == naive.count_cuts_below(X[:, j].tolist(), cuts.tolist(), 255)


def test_means_of_states_leave_out_what_is_missing():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(30, 2)), rng.random(30)
    codes = rng.integers(0, 3, 30).astype(np.uint8)
    codes[::5] = 255
    total, mean = np.zeros(4), np.zeros(4)
    kernels.mean_of_states(*panel_of(X), 1, codes, weight, 255, total, mean)
    expected = naive.means(X[:, 1].tolist(), codes.tolist(), weight.tolist(), 4, 255)
    np.testing.assert_allclose(np.where(total > 0, mean, np.nan), expected, rtol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_cells_of_a_column_are_found_in_every_order(order):
    X = np.arange(15).reshape(5, 3)
    assert kernels.cells_of(*panel_of(ORDERS[order](X)), 1, 2, 5).tolist() == X[2:5, 1].tolist()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("chosen", [[0, 1, 2], [1, 2], [0, 2], [1]])
def test_positions_lie_in_rows_where_the_cells_do(order, chosen):
    X = np.array([[4.0, 0.0, 9.5], [6.0, np.nan, 9.0], [3.0, -1.0, 1e300]])
    panel, chosen = panel_of(ORDERS[order](X)), np.array(chosen)
    low, high = np.array([4, -1, 8])[chosen], np.array([6, 1, 11])[chosen]
    in_rows = kernels.lies_in_rows(panel[2], chosen)
    assert in_rows == (order in {"rows", "every other row"} and 1 < len(chosen) == chosen[-1] - chosen[0] + 1)
    tile = np.zeros(kernels.TILE * len(chosen), np.uint32)
    kernels.find_positions(*panel, 0, 3, chosen, low, high, tile)
    found = [kernels.positions_of(tile, s, len(chosen), in_rows)[:3].tolist() for s in range(len(chosen))]
    expected = [[0, 2, 2], [1, 3, 0], [3, 1, 3]]  # beyond the last whole number others, then nan
    assert found == [expected[j] for j in chosen]


@pytest.mark.parametrize("step", [1, 2])
def test_positions_of_a_column_end_with_those_of_other_numbers(step):
    x, out = np.array([4.0, 7.0, 3.0, np.nan, 6.0, 4.5, -1e300]), np.zeros(7, np.uint16)
    kernels.column_positions(np.repeat(x, step)[::step], 4, 7, out)
    assert out.tolist() == [0, 3, 3, 4, 2, 3, 3]
