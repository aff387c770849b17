"""Arrays of numbers are encoded where they lie: every type, order and step of memory against dictionaries."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from oracles import encode as naive

from tanlearn import NaiveBayesClassifier, TableEncoder
from tanlearn.encoding.column_kinds import distinct_numbers
from tanlearn.sources.columns import read_columns
from tanlearn.sources.table import TABLE_SPAN, ArrayTable


def mapped(X, folder):
    """Return the array as a read-only file."""
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


LAYOUTS = {
    "rows": lambda X, _: np.ascontiguousarray(X),
    "columns": lambda X, _: np.asfortranarray(X),
    "strides": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X, _: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "foreign": lambda X, _: X.astype(X.dtype.newbyteorder()),
    "unaligned": lambda X, _: np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(X.dtype).reshape(X.shape),
    "mapped": mapped,
    "frame": lambda X, _: pd.DataFrame(X),
    "frame of columns": lambda X, _: pd.DataFrame(dict(enumerate(X.T.copy()))),
}
TYPES = [bool, np.int8, np.int16, np.int64, np.uint8, np.uint64, np.float16, np.float32, np.float64, np.longdouble]


@pytest.mark.filterwarnings("ignore:discretization left")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_codes_do_not_depend_on_memory(dtype, layout, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, (700, 4)).astype(dtype)
    X[:, 0] = rng.integers(0, 3, 700)
    if X.dtype.kind == "f":
        X[rng.random(X.shape) < 0.1] = np.nan
    y = (X[:, 1] > 30) | (X[:, 0] == 1)
    y[0], y[1] = True, False
    given = LAYOUTS[layout](X, tmp_path)
    encoder = TableEncoder(n_jobs=2).fit(given, y)
    codes = encoder.encode(given)
    assert encoder.is_discrete_.tolist() == [True] + [dtype is bool] * 3
    for j, column in enumerate(X.T.astype(float).tolist()):
        if encoder.is_discrete_[j]:
            known = naive.categories(column)
            assert encoder.categories_[j].tolist() == known
            assert codes[j].tolist() == naive.look_up(column, known, 255)
        else:
            cuts = encoder.discretizer_.cut_points_[len(encoder.categories_[:j]) - int(encoder.is_discrete_[:j].sum())]
            assert codes[j].tolist() == naive.count_cuts_below(column, cuts.tolist(), 255)
            means = naive.means(column, codes[j].tolist(), [1.0] * 700, encoder.n_states_[j], 255)
            np.testing.assert_allclose(encoder.typical_values_[j], means, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_what_was_not_there_in_fit_is_missing_at_any_distance(dtype):
    X = np.array([[5, 2**52], [7, 2**52 + 2]] * 5)
    encoder = TableEncoder(discrete_features=True).fit(X, [0, 1] * 5)
    asked = [[7, 2**52], [6, 2**52 + 1], [0, 0], [2**53, 2**53], [2**62, 2**63 - 1024]]
    expected = [[1, 255, 255, 255, 255], [0, 255, 255, 255, 255]]
    assert encoder.encode(np.array(asked, dtype)).tolist() == expected
    if dtype == np.float64:
        assert encoder.encode(np.array([[5.5, np.nan], [-1e300, 1e300]])).tolist() == [[255, 255], [255, 255]]
    if dtype == np.int64:
        assert encoder.encode(np.array([[-(2**63), 2**63 - 1], [-5, -7]])).tolist() == [[255, 255], [255, 255]]


@pytest.mark.parametrize("last", [5000, -5000, 0.5, 2**60])
def test_a_late_value_far_from_the_first_ones_is_found(last):
    X = np.zeros((3000, 2))
    X[::2] = 1
    X[-1, 0] = last
    y = np.arange(3000) % 2
    encoder = TableEncoder(discrete_features=True).fit(X, y)
    assert [known.tolist() for known in encoder.categories_] == [sorted({0.0, 1.0, float(last)}), [0.0, 1.0]]
    assert TableEncoder().fit(X, y).is_discrete_.tolist() == [last != 0.5, True]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint64, np.float32, np.float64])
def test_distinct_numbers_are_complete_up_to_both_ends_of_the_span(dtype, order):
    below, above = TABLE_SPAN // 4, 3 * TABLE_SPAN // 4
    offsets = [-below - 1, -below, -below + 1, -1, 0, 1, above - 2, above - 1, above, above + 1]
    X = np.full((300, len(offsets)), 2000, dtype=dtype, order=order)
    X[::2] += 1
    X[-1] += np.array(offsets).astype(dtype)
    if X.dtype.kind == "f":
        X[1, 3] = np.nan
    asked = np.array([0, 1, 2, 3, 5, 6, 7, 8, 9])
    found = distinct_numbers(read_columns(X), asked)
    for j, offset in enumerate(offsets):
        if j not in asked or not -below <= offset < above:
            assert j not in found
        else:
            expected = np.unique(X[~np.isnan(X[:, j]), j])
            assert found[j].dtype == dtype
            assert found[j].tolist() == expected.tolist()


@pytest.mark.filterwarnings("ignore:discretization left")
def test_threads_and_blocks_change_nothing():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 5, (40_000, 4)), rng.normal(size=(40_000, 3))])
    X[rng.random(X.shape) < 0.01] = np.nan
    y = X[:, 4] > X[:, 0]
    one, two = (NaiveBayesClassifier(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.tables_.cells, two.tables_.cells)
    np.testing.assert_array_equal(one.encoder_.encode(X), two.encoder_.encode(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_infinity_is_found_in_the_first_column_that_has_it(n_jobs):
    X = np.zeros((90_000, 3))
    X[80_000, 1], X[7, 2], X[5, 1] = -np.inf, np.inf, np.nan
    with pytest.raises(ValueError, match=r"^X column 1 contains infinity: -inf in row 80000\. Replace it"):
        read_columns(X, n_jobs=n_jobs)
    with pytest.raises(ValueError, match=r"^X column 'b' contains infinity: -inf in row 80000\. Replace it"):
        read_columns(pd.DataFrame(X, columns=["a", "b", "c"]), n_jobs=n_jobs)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_no_copy_of_a_table_is_made(order, dtype):
    X = np.asarray(np.random.default_rng(0).integers(0, 4, (200_000, 20)), dtype, order=order)
    y = np.arange(len(X)) % 2
    model = NaiveBayesClassifier().fit(X[:100], y[:100])
    model.predict(X[:100])
    tracemalloc.start()
    try:
        for work in (lambda: model.fit(X, y), lambda: model.predict(X)):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            work()
            # The codes, an eighth, and what goes with rows: classes, weights and scores.
            assert tracemalloc.get_traced_memory()[1] - before < X.nbytes / 8 + 60 * len(X) + 2**22
    finally:
        tracemalloc.stop()


def test_frames_of_one_array_are_read_as_that_array():
    X = np.arange(12.0).reshape(4, 3)
    assert isinstance(read_columns(pd.DataFrame(X)), ArrayTable)
    assert not isinstance(read_columns(pd.DataFrame({"a": X[:, 0], "b": [1, 2, 3, 4]})), ArrayTable)
    with pytest.raises(IndexError):
        read_columns(X)[3]
