"""Arrow's arrays are read as what pandas and polars make of them is."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tanlearn import TableEncoder
from tanlearn.sources.arrow_columns import read_array, read_record_batch
from tanlearn.sources.columns import read_columns

pa = pytest.importorskip("pyarrow")

N = 60
RNG = np.random.default_rng(0)
GAPS = RNG.random(N) < 0.2
Y = RNG.integers(0, 2, N)


def gappy(values, dtype):
    """Return an array that misses some values, and lies behind rows that do not count."""
    values = [values[0], values[0], *values]  # NumPy's scalars, as old versions of pyarrow want for float16
    return pa.array(values, dtype, mask=np.append([True, False], GAPS)).slice(2)


NUMBERS = RNG.integers(0, 40, N) * 0.5
WORDS = np.array(["a", "bb", "", "a\0"], object)[RNG.integers(0, 4, N)]
ARRAYS = {
    **{name: gappy(RNG.integers(0, 100, N), name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint64")},
    "few integers": gappy(RNG.integers(0, 4, N), "int64"),
    **{name: gappy(NUMBERS.astype(name), name) for name in ("float16", "float32", "float64")},
    "whole": pa.array(RNG.integers(0, 100, N)),
    "nan": pa.array(np.where(GAPS, np.nan, NUMBERS)),
    "boolean": gappy(RNG.random(N) < 0.5, "bool"),
    "whole boolean": pa.array(RNG.random(N + 3) < 0.5).slice(3),
    **{name: gappy(WORDS, name) for name in ("string", "large_string", "string_view")},
    **{name: gappy(np.char.encode(WORDS.astype("U2")).astype(object), name) for name in ("binary", "large_binary")},
    "dictionary": pa.DictionaryArray.from_arrays(gappy(RNG.integers(0, 3, N), "int8"), ["z", "b", "a", "unused"]),
    "numbered": pa.DictionaryArray.from_arrays(gappy(RNG.integers(0, 3, N), "int64"), pa.array([7, 3, 5], pa.int16())),
    "ordered": pa.DictionaryArray.from_arrays(gappy(RNG.integers(0, 2, N), "int8"), ["low", "high"], ordered=True),
    "null": pa.nulls(N),
}
TABLE = pa.table(ARRAYS)


def facts(table):
    """Return what an encoder makes of a table."""
    fitted = TableEncoder()
    codes = fitted.fit_columns(table, Y)
    cuts = [] if fitted.discretizer_ is None else fitted.discretizer_.cut_points_
    return {
        "codes": codes.tolist(),
        "categories": [None if known is None else known.tolist() for known in fitted.categories_],
        "cuts": [own.tolist() for own in cuts],
        "ordered": [column.is_ordered for column in table],
    }


@pytest.mark.filterwarnings("ignore:discretization left")
@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "string_view"])
def test_an_encoder_makes_of_an_array_what_it_makes_of_a_frame(name):
    table = TABLE.select([name])
    found = read_record_batch(table.to_batches()[0])
    assert facts(found) == facts(read_columns(table.to_pandas()))
    assert found.labels == (f"X column {name!r}",)


def test_views_of_strings_are_read_as_strings():
    views, strings = (read_array(ARRAYS[name], "X") for name in ("string_view", "string"))
    np.testing.assert_array_equal(views.values, strings.values)
    np.testing.assert_array_equal(views.missing, strings.missing)
    assert views.categories.tolist() == strings.categories.tolist()


def test_polars_declares_through_arrow_what_it_declares_itself():
    values = ["a", None, "b"]
    frame = pl.DataFrame({"e": pl.Series(values, dtype=pl.Enum(["z", "b", "a"]))})
    found, expected = read_record_batch(frame.to_arrow().to_batches()[0])[0], read_columns(frame)[0]
    assert found.categories.tolist() == expected.categories.tolist()
    assert found.values.tolist() == expected.values.tolist()
    assert found.is_declared


def test_numbers_lie_where_they_lay():
    values = np.arange(9.0)
    for array in (pa.array(values), pa.array(values).slice(3), pa.array(values.astype(np.int32))):
        found = read_array(array, "X").values
        assert found.__array_interface__["data"][0] == array.buffers()[1].address + array.offset * found.itemsize


def test_texts_declare_nothing_and_dictionaries_do_unless_a_reader_made_them_of_texts():
    words = pa.array(["b", "a", None])
    batch = pa.record_batch({"text": words, "made": words.dictionary_encode(), "own": words.dictionary_encode()})
    columns = read_record_batch(batch, string_columns={"made"})
    assert [column.is_declared for column in columns] == [False, False, True]
    assert all(column.values.tolist() == [0, 1, -1] for column in columns)
    assert all(column.missing.tolist() == [False, False, True] for column in columns)


def test_of_long_dictionaries_of_texts_only_what_occurs_is_read():
    words = pa.DictionaryArray.from_arrays(pa.array([2, None, 2], pa.int32()), ["a", "b", "c", "d"])
    own, made = read_array(words, "X"), read_array(words, "X", is_declared=False)
    assert (own.categories.tolist(), own.values.tolist()) == (["a", "b", "c", "d"], [2, -1, 2])
    assert (made.categories.tolist(), made.values.tolist()) == (["c"], [0, -1, 0])


def test_a_dictionary_may_hold_null_and_a_value_twice():
    dictionary = pa.array(["a", None, "b", "a"])
    column = read_array(pa.DictionaryArray.from_arrays(pa.array([3, 1, 2, None, 0], pa.int8()), dictionary), "X")
    assert column.categories.tolist() == ["a", "b"]
    assert column.values.tolist() == [0, -1, 1, -1, 0]
    assert column.missing.tolist() == [False, True, False, True, False]


def test_dates_are_categories_where_they_are_declared():
    days = [datetime.date(2026, 11, 22), datetime.date(2026, 11, 23)]
    column = read_array(pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), pa.array(days)), "X")
    assert column.categories.tolist() == days


def test_decimal_numbers_are_floating_ones_as_of_a_frame():
    array = pa.array([decimal.Decimal("1.1"), None, decimal.Decimal("12345678901234567890.3")])
    for column in (read_array(array, "X"), read_columns(pd.DataFrame({"d": array.to_pandas()}))[0]):
        np.testing.assert_array_equal(column.numbers(), [1.1, np.nan, 12345678901234567890.3])


@pytest.mark.skipif(not hasattr(pa, "json_"), reason="pyarrow has this extension from version 19 on")
def test_a_type_of_an_extension_is_read_as_what_it_is_stored_as():
    column = read_array(pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None])), "X")
    assert column.categories.tolist() == ["1"]
    assert column.missing.tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([datetime.date(2026, 11, 22)], r"X column 'd' holds dates or durations \(date32"),
        ([datetime.datetime(2026, 11, 22)], r"X column 'd' holds dates or durations \(timestamp"),
        ([datetime.timedelta(1)], r"X column 'd' holds dates or durations \(duration"),
        ([[1, 2]], "X column 'd' has the Arrow type list<.*Cast the column to string.*or leave it out"),
        ([{"a": 1}], "X column 'd' has the Arrow type struct<"),
    ],
)
def test_what_is_neither_text_nor_number_is_refused_as_of_a_frame(values, reason):
    batch = pa.record_batch({"d": values})
    with pytest.raises(TypeError, match=reason):
        read_record_batch(batch)
    with pytest.raises(TypeError, match="X column 'd' holds "):
        read_columns(pd.DataFrame({"d": batch.column(0).to_pandas()}))


def test_categories_of_several_parts_are_refused():
    array = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([[1, 2]]))
    with pytest.raises(TypeError, match="X has nested categories"):
        read_array(array, "X")


def test_infinities_are_refused_with_their_row():
    with pytest.raises(ValueError, match=r"X contains infinity: -inf in row 2\."):
        read_array(pa.array([0.0, 1.0, None, -np.inf]).slice(1), "X")
