"""Reading columns: masks, lists, numbers of several types, and reasons that name the row."""

import fractions
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.broken_tables import CONTAINERS, fit, judge, sound, trained

from tanlearn import CategoryEncoder, NaiveBayesClassifier, TableEncoder
from tanlearn.sources.columns import from_array, read_columns
from tanlearn.sources.validation import read_labels, read_weights


class NoLooks:
    """What cannot be printed."""

    def __repr__(self):
        raise RuntimeError("no looks")


@pytest.mark.filterwarnings("ignore:discretization left")
@pytest.mark.parametrize("container", ["float array", "object array"])
def test_what_is_masked_is_missing(container):
    columns, y = sound(0)
    X = CONTAINERS[container](columns)
    mask = np.zeros(X.shape, np.bool_)
    mask[[1, 5, 5], [0, 0, 1]] = True
    masked, gappy = np.ma.array(X, mask=mask), np.where(mask, None, X)
    np.testing.assert_array_equal(fit("tree", masked, y), fit("tree", gappy, y))
    model = trained("tree", container, 0)
    np.testing.assert_array_equal(judge(model, masked), judge(model, gappy))
    for arguments, reason in (
        ((np.ma.array(y, mask=mask[:, 0]),), "y is missing in row 1 "),
        ((y, np.ma.array(y, mask=mask[:, 0])), "sample_weight must be finite, but is nan in row 1"),
    ):
        with pytest.raises(ValueError, match=reason):
            fit("tree", X, *arguments)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, float, str, object])
@pytest.mark.parametrize("has_missing", [False, True])
def test_masks_mean_missing_in_arrays_of_every_type_and_in_lists_of_their_rows(dtype, has_missing):
    values = np.array([[1, 0], [1, 1], [0, 1]]).astype(dtype)
    masked = np.ma.array(values, mask=[[0, has_missing], [0, has_missing], [0, 0]])
    rows = [[None if value is np.ma.masked else value for value in row] for row in masked]
    expected = TableEncoder(discrete_features=True).fit(rows, [0, 1, 1])
    assert expected.encode(rows)[1].tolist() == ([255, 255, 0] if has_missing else [0, 1, 1])
    for X in (masked, list(masked), tuple(map(list, masked))):
        encoder = TableEncoder(discrete_features=True).fit(X, [0, 1, 1])
        np.testing.assert_array_equal(encoder.encode(X), expected.encode(rows))
        assert [found.tolist() for found in encoder.categories_] == [found.tolist() for found in expected.categories_]


@pytest.mark.parametrize("dtype", [float, np.int16])
def test_masked_numbers_are_read_without_objects(dtype):
    masked = np.ma.array(np.arange(6).reshape(3, 2), mask=[[1, 0]] * 3, dtype=dtype)
    gappy, whole = read_columns(masked)
    assert (gappy.values.dtype, whole.values.dtype) == (dtype, dtype)
    assert gappy.missing.all()
    assert whole.missing is None


def test_columns_of_a_list_are_read_one_by_one():
    """Numbers beside floating ones stay integers, as in a frame, and NumPy's own bools are bools."""
    columns, y = sound(0)
    rows = list(zip(columns["size"], columns["rooms"], map(np.bool_, columns["owner"]), strict=True))
    encoder = TableEncoder().fit(rows, y)
    assert encoder.is_discrete_.tolist() == [False, True, True]
    assert encoder.categories_[1].tolist() == sorted(set(columns["rooms"]))
    assert encoder.categories_[2].tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2**63], "u"),
        ([2**64 - 1, True], "u"),
        ([np.uint64(1), 2], "i"),
        ([2**63, 0.5], "f"),
        ([np.True_, 0.5], "f"),
        ([np.uint64(200), -1], "i"),
        ([np.uint64(2**63 - 1), -(2**63)], "i"),
        ([np.uint64(7), 2**63 - 1], "i"),
        ([np.int64(0), 2**63], "u"),
    ],
)
def test_python_numbers_become_the_type_that_holds_all_of_them(values, kind):
    (column,) = read_columns([[value] for value in values])
    assert column.values.dtype.kind == kind
    assert column.values.tolist() == values


def test_decimal_numbers_are_read_as_floating_ones():
    values = [Decimal("1.5"), None, Decimal("NaN"), Decimal(3), 2]
    for X in ([[value] for value in values], pd.DataFrame({"x": values}), pl.DataFrame({"x": [Decimal("1.5"), None]})):
        (column,) = read_columns(X)
        assert column.values.dtype == float
        expected = [1.5, np.nan, np.nan, 3, 2][: len(column.values)]
        np.testing.assert_array_equal(column.numbers(), expected)
    for value, reason in ((Decimal("1e400"), "contains infinity"), (Decimal("sNaN"), "holds float .* and Decimal")):
        with pytest.raises((TypeError, ValueError), match=reason):
            read_columns([[1.5], [value]])
    with pytest.raises(TypeError, match=r"y holds Decimal .* Cast the classes to str"):
        read_labels([Decimal(1), Decimal(2)])


@pytest.mark.parametrize("values", [[2**63, -1], [10**30, 0.5], [10**5000, 1], [fractions.Fraction(1, 3), 1]])
def test_numbers_of_no_type_are_refused(values):
    with pytest.raises(ValueError, match=r"X column 0 holds .* in row 0, which fits neither .*integers.* Cast the col"):
        read_columns([[value] for value in values])
    with pytest.raises(TypeError, match=r"X column 0 holds .*int.* and str \('a' in row 2\)|Fraction"):
        read_columns([*([value] for value in values), ["a"]])


def test_reasons_name_the_row():
    with pytest.raises(ValueError, match=r"rows that differ in length: 2 value\(s\) in row 0, 1 in row 1\. Every row"):
        read_columns([[1, 2], [1], [1, 2]])
    for rows in ([pd.Series([1, 2]), pd.Series([1])], [pl.Series([1, 2]), pl.Series([1])], [range(2), np.array(5)]):
        with pytest.raises(ValueError, match=r"rows that differ in length: 2 value\(s\) in row 0, 1 in row 1"):
            read_columns(rows)
    with pytest.raises(TypeError, match=r"column 0 holds NoLooks \(<NoLooks instance at .*> in row 1\) and int"):
        read_columns([[None], [NoLooks()], [1]])
    for read, remedy in ((read_labels, "Cast the classes to str"), (read_weights, "Pass floating numbers")):
        with pytest.raises(ValueError, match=rf"^(y|sample_weight) holds {2**70} in row 1, .*integers.*\. {remedy}\.$"):
            read([1, 2**70, 1], 3)
    with pytest.raises(ValueError, match=r"sample_weight must hold one number per row, got .*: \[None, 'a', 1\]"):
        read_weights([None, "a", 1], 3)
    with pytest.raises(ValueError, match="classes must be a list of the classes of all batches, got 3"):
        NaiveBayesClassifier().partial_fit([[1], [2]], [0, 1], 3)


@pytest.mark.parametrize(
    ("dtype", "error", "reason"),
    [
        ("M8[D]", TypeError, r"holds dates or durations \(datetime64\[D\]\)"),
        ("m8[s]", TypeError, r"holds dates or durations \(timedelta64\[s\]\)"),
        ("c16", ValueError, "Complex data not supported: y has dtype complex128"),
        ("V4", TypeError, r"y has dtype \|?V4, but only strings and numbers can be read"),
    ],
)
def test_arrays_of_other_types_are_refused_with_their_type(dtype, error, reason):
    with pytest.raises(error, match=reason):
        from_array(np.zeros(2, dtype), "y")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(2, 40_000), (40_000, 2)])
def test_long_rows_and_columns_are_read_whole(shape, order):
    X = np.zeros(shape, order=order)
    X[-1, -1] = np.nan
    columns = read_columns(X)
    assert [columns[j].missing is not None for j in (0, shape[1] - 1)] == [False, True]
    X[-1, 0] = np.inf
    with pytest.raises(ValueError, match=f"^X column 0 contains infinity: inf in row {shape[0] - 1}"):
        read_columns(X)


def test_polars_integers_keep_their_type_with_and_without_nulls():
    for dtype in (pl.Int8, pl.Int32, pl.UInt16, pl.UInt64, pl.Boolean):
        whole, gap = (pl.DataFrame({"x": pl.Series(values).cast(dtype)}) for values in ([1, 0, 1], [1, None, 0]))
        (column,), (gappy,) = read_columns(whole), read_columns(gap)
        assert column.values.dtype == gappy.values.dtype == whole["x"].to_numpy().dtype
        assert (column.values.tolist(), column.missing) == ([1, 0, 1], None)
        assert gappy.missing.tolist() == [False, True, False]
        assert gappy.values[[0, 2]].tolist() == [1, 0]


def test_columns_of_an_array_are_read_without_a_copy_of_feature_major_data():
    X = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    assert all(np.shares_memory(column.values, X) for column in read_columns(X))


STRINGS = ["a\0b", "a\0c", "a", "", "\ud800", "'\\ud800'", "Grün", "b"]


@pytest.mark.parametrize(
    "make",
    [
        lambda values: np.array(values, dtype=object)[:, np.newaxis],
        lambda values: np.array(values)[:, np.newaxis],
        lambda values: [[value] for value in values],
        lambda values: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
        lambda values: pd.DataFrame({"x": pd.Series(values, dtype="string[python]")}),
    ],
    ids=["objects", "strings", "list", "pandas objects", "pandas strings"],
)
def test_strings_are_distinguished_to_the_last_character(make):
    rng = np.random.default_rng(0)
    values = [STRINGS[k] for k in rng.permutation(np.arange(80) % len(STRINGS))]
    encoder = CategoryEncoder().fit(make(values))
    assert encoder.categories_[0].tolist() == sorted(STRINGS)
    assert encoder.transform(make(values))[:, 0].tolist() == [sorted(STRINGS).index(value) for value in values]


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, pd.NaT, np.ma.masked], ids=repr)
def test_objects_that_mean_missing_stand_between_strings(gap):
    values = np.empty(5, dtype=object)
    values[:] = ["b", gap, "a", gap, np.str_("b")]
    (column,) = read_columns(values[:, np.newaxis])
    assert column.missing.tolist() == [False, True, False, True, False]
    codes = CategoryEncoder().fit_transform(values[:, np.newaxis])
    assert codes[:, 0].tolist() == [1, 255, 0, 255, 1]


def test_a_number_between_strings_is_refused():
    with pytest.raises(TypeError, match=r"holds str \('a' in row 0\) and float \(1.5 in row 1\)"):
        read_columns(np.array([["a"], [1.5]], dtype=object))


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_declared_dates_stay_dates_whatever_their_unit(unit):
    """NumPy makes integers of dates in nanoseconds, and these would match no date of another unit."""
    days = pd.to_datetime(["2024-01-01", "2024-01-02"])
    here, there = (pd.DataFrame({"day": pd.Categorical(days.as_unit(name))}) for name in (unit, "us"))
    encoder = CategoryEncoder().fit(here)
    assert encoder.categories_[0].tolist() == days.to_pydatetime().tolist()
    assert encoder.transform(there).ravel().tolist() == [0, 1]
