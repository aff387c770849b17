"""Encoders: every way to hold a category, unseen and missing ones, and the way back."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from tanlearn import CategoryEncoder, TableEncoder
from tanlearn.sources.table import Column

MISSING = 255


@parametrize_with_checks([CategoryEncoder(), CategoryEncoder(handle_unknown="error")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def codes_of(column, **parameters):
    return CategoryEncoder(**parameters).fit_transform(column)[:, 0].tolist()


STRINGS = {
    "list": [["b"], ["a"], [None], ["b"]],
    "list with NaN": [["b"], ["a"], [np.nan], ["b"]],
    "object array": np.array([["b"], ["a"], [pd.NA], ["b"]], dtype=object),
    "pandas object": pd.DataFrame({"x": pd.Series(["b", "a", None, "b"], dtype=object)}),
    "pandas str": pd.DataFrame({"x": pd.Series(["b", "a", None, "b"], dtype="str")}),
    "pandas string": pd.DataFrame({"x": pd.Series(["b", "a", None, "b"], dtype="string")}),
    "pandas arrow": pd.DataFrame({"x": pd.Series(["b", "a", None, "b"], dtype="string[pyarrow]")}),
    "pandas category": pd.DataFrame({"x": pd.Series(["b", "a", None, "b"], dtype="category")}),
    "polars String": pl.DataFrame({"x": ["b", "a", None, "b"]}),
    "polars Categorical": pl.DataFrame({"x": pl.Series(["b", "a", None, "b"], dtype=pl.Categorical)}),
    "polars Enum": pl.DataFrame({"x": pl.Series(["b", "a", None, "b"], dtype=pl.Enum(["a", "b"]))}),
    "bytes": np.array([[b"b"], [b"a"], [None], [b"b"]], dtype=object),
}
NUMBERS = {
    "list": [[2], [1], [None], [2]],
    "floats": [[2.0], [1.0], [np.nan], [2.0]],
    "float32": np.array([[2.0], [1.0], [np.nan], [2.0]], dtype=np.float32),
    "object array": np.array([[2], [True], [None], [2.0]], dtype=object),
    "pandas float": pd.DataFrame({"x": [2.0, 1.0, None, 2.0]}),
    "pandas Int64": pd.DataFrame({"x": pd.Series([2, 1, None, 2], dtype="Int64")}),
    "pandas UInt8": pd.DataFrame({"x": pd.Series([2, 1, None, 2], dtype="UInt8")}),
    "pandas Float64": pd.DataFrame({"x": pd.Series([2, 1, None, 2], dtype="Float64")}),
    "pandas arrow": pd.DataFrame({"x": pd.Series([2, 1, None, 2], dtype="int64[pyarrow]")}),
    "pandas category": pd.DataFrame({"x": pd.Series([2, 1, None, 2], dtype="category")}),
    "pandas sparse": pd.DataFrame({"x": pd.arrays.SparseArray([2.0, 1.0, np.nan, 2.0])}),
    "polars Int": pl.DataFrame({"x": [2, 1, None, 2]}),
    "polars Float": pl.DataFrame({"x": [2.0, 1.0, None, 2.0]}),
}
BOOLEANS = {
    "list": [[True], [False], [None], [True]],
    "object with NaN": np.array([[True], [False], [np.nan], [True]], dtype=object),
    "pandas boolean": pd.DataFrame({"x": pd.Series([True, False, None, True], dtype="boolean")}),
    "pandas arrow": pd.DataFrame({"x": pd.Series([True, False, None, True], dtype="bool[pyarrow]")}),
    "polars Boolean": pl.DataFrame({"x": [True, False, None, True]}),
}


@pytest.mark.parametrize("table", STRINGS.values(), ids=STRINGS)
def test_strings_of_every_kind(table):
    assert codes_of(table) == [1, 0, MISSING, 1]


@pytest.mark.parametrize("table", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_every_kind_mean_the_same(table):
    assert codes_of(table) == [1, 0, MISSING, 1]
    encoder = CategoryEncoder(handle_unknown="error").fit(table)
    for other in NUMBERS.values():
        if hasattr(other, "columns") == hasattr(table, "columns"):
            assert encoder.transform(other)[:, 0].tolist() == [1, 0, MISSING, 1]


@pytest.mark.parametrize("table", BOOLEANS.values(), ids=BOOLEANS)
def test_booleans_of_every_kind(table):
    assert codes_of(table) == [1, 0, MISSING, 1]


def test_values_compare_as_numbers_and_never_as_text():
    encoder = CategoryEncoder().fit(np.array([[True], [False]]))
    assert encoder.transform([[1], [0], [2]])[:, 0].tolist() == [1, 0, MISSING]
    assert encoder.transform([[1.0], [0.5], [-0.0]])[:, 0].tolist() == [1, MISSING, 0]
    with pytest.raises(
        TypeError, match=r"holds .1. in row 0, of strings, but held numbers such as False in fit.* equal"
    ):
        encoder.transform([["1"], ["True"], ["0"]])
    texts = CategoryEncoder().fit([["1"], ["2"]])
    with pytest.raises(TypeError, match=r"holds 1 in row 0, of numbers, but held strings such as '1' in fit.* Cast"):
        texts.transform([[1], [2]])
    assert texts.transform(np.array([["2"], ["1"]]))[:, 0].tolist() == [1, 0]


def test_a_column_without_missing_values_keeps_its_plain_type():
    for table in (pd.DataFrame({"x": pd.Series([3, 1], dtype="Int64")}), pl.DataFrame({"x": [3, 1]})):
        encoder = CategoryEncoder().fit(table)
        assert encoder.categories_[0].dtype == np.int64
        assert encoder.categories_[0].tolist() == [1, 3]


def test_declared_categories_are_kept_in_their_order_even_if_unseen():
    order = ["low", "middle", "high"]
    category = pd.CategoricalDtype(order, ordered=True)
    for table in (
        pd.DataFrame({"x": pd.Series(["high", "low"], dtype=category)}),
        pl.DataFrame({"x": pl.Series(["high", "low"], dtype=pl.Enum(order))}),
    ):
        encoder = CategoryEncoder(handle_unknown="error").fit(table)
        assert encoder.categories_[0].tolist() == order
        assert encoder.n_states_.tolist() == [3]
        assert encoder.transform(table)[:, 0].tolist() == [2, 0]
    again = pd.DataFrame({"x": pd.Series(["low", None, "middle"], dtype=pd.CategoricalDtype(["middle", "low"]))})
    assert encoder.transform(again)[:, 0].tolist() == [0, MISSING, 1]


def test_declared_categories_may_be_numbers_out_of_order_or_intervals():
    numbers = pd.DataFrame({"x": pd.Series([30, 10], dtype=pd.CategoricalDtype([30, 20.5, 10]))})
    encoder = CategoryEncoder().fit(numbers)
    assert encoder.transform(pd.DataFrame({"x": [10, 30, 11]}))[:, 0].tolist() == [2, 0, MISSING]
    bins = pd.DataFrame({"x": pd.cut([1.0, 5.0, 9.0], [0, 3, 6, 10])})
    assert codes_of(bins) == [0, 1, 2]


def test_polars_categorical_does_not_take_over_the_categories_of_other_columns():
    table = pl.DataFrame({"x": ["a", "b"], "z": ["q", "p"]}).cast(pl.Categorical)
    assert [known.tolist() for known in CategoryEncoder().fit(table).categories_] == [["a", "b"], ["p", "q"]]


def test_unseen_category_is_missing_or_an_error_that_tells_where():
    train = pd.DataFrame({"size": [1, 2], "town": ["Graz", "Linz"]})
    new = pd.DataFrame({"size": [1, 2, 1], "town": ["Linz", None, "Wels"]})
    assert CategoryEncoder().fit(train).transform(new).tolist() == [[0, 1], [1, MISSING], [0, MISSING]]
    encoder = CategoryEncoder(handle_unknown="error").fit(train)
    with pytest.raises(ValueError, match=r"column 'town' holds 'Wels' in row 2.*the categories are 'Graz', 'Linz'\."):
        encoder.transform(new)
    with pytest.raises(ValueError, match=r"column 'size' holds 7 in row 0.*handle_unknown='missing'"):
        encoder.transform(pd.DataFrame({"size": [7], "town": ["Graz"]}))
    with pytest.raises(ValueError, match="column 'town' holds 'Enns' in row 1"):
        encoder.transform(pd.DataFrame({"size": [1, 1], "town": pd.Series(["Graz", "Enns"], dtype="category")}))


def test_error_message_shows_some_of_many_categories():
    encoder = CategoryEncoder(handle_unknown="error").fit(np.arange(40)[:, None])
    with pytest.raises(ValueError, match=r"the categories are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\. \(40 in all\)"):
        encoder.transform([[40]])


def test_codes_are_feature_major_and_as_small_as_they_can_be():
    small = CategoryEncoder().fit_transform(np.arange(255)[:, None])
    assert small.dtype == np.uint8
    assert small.T.flags.c_contiguous
    large = CategoryEncoder().fit(np.arange(256)[:, None])
    assert large.transform([[255], [256]])[:, 0].tolist() == [255, 65535]
    assert large.transform([[255]]).dtype == np.uint16


def test_ten_categories_are_shown_in_full():
    encoder = CategoryEncoder(handle_unknown="error").fit(np.arange(10)[:, None])
    with pytest.raises(ValueError, match=r"categories are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9\. Correct"):
        encoder.transform([[40]])


def test_bytes_keep_their_last_zeros():
    values = [b"a\0", b"a", b"", b"\0", b"a"]
    table = np.empty((5, 1), object)
    table[:, 0] = values
    encoder = CategoryEncoder().fit(table)
    assert encoder.categories_[0].tolist() == [b"", b"\0", b"a", b"a\0"]
    assert encoder.transform(table)[:, 0].tolist() == [3, 2, 0, 1, 2]
    assert encoder.inverse_transform(encoder.transform(table))[:, 0].tolist() == values


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint64, np.float64])
@pytest.mark.parametrize("span", [4094, 4095, 4096, 4097])
def test_distinct_numbers_of_wide_and_narrow_ranges(dtype, span):
    values = np.array([7 + span, 7, 8, 7 + span, 6 + span], dtype)
    found = Column(values, None, None, "x").distinct_values()
    assert (found.dtype, found.tolist()) == (dtype, [7, 8, 6 + span, 7 + span])


def test_tags_say_what_encoders_accept():
    tags = get_tags(CategoryEncoder())
    assert (tags.input_tags.allow_nan, tags.input_tags.categorical) == (True, True)
    assert tags.transformer_tags.preserves_dtype == []


def test_too_many_categories_are_an_error_that_says_what_to_do():
    column = pd.DataFrame({"id": np.arange(65_536).astype(str)})
    with pytest.raises(ValueError, match=r"'id' has 65536 categories, more than 65535.*identifier.*Drop it, or disc"):
        CategoryEncoder().fit(column)
    assert CategoryEncoder().fit(column[:-1]).n_states_.tolist() == [65_535]


def test_a_column_without_a_value_has_one_state_and_knows_nothing():
    encoder = CategoryEncoder().fit([[None, 1], [None, 2]])
    assert encoder.n_states_.tolist() == [1, 2]
    assert encoder.transform([["a", 1], [None, 2]]).tolist() == [[MISSING, 0], [MISSING, 1]]
    assert encoder.inverse_transform([[MISSING, 0]]).tolist() == [[None, 1]]


def test_integers_far_apart_and_at_the_ends_of_their_type():
    for values, other in (
        (np.array([-(2**63), 0, 2**63 - 1]), 5),
        (np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64), 2**64 - 2),
        (np.array([-128, 127, -1], dtype=np.int8), 3),
    ):
        column = np.append(values, values[:1])[:, None]
        encoder = CategoryEncoder().fit(column)
        assert encoder.categories_[0].tolist() == sorted(set(values.tolist()))
        np.testing.assert_array_equal(encoder.categories_[0][encoder.transform(column)[:, 0]], column[:, 0])
        assert encoder.transform(np.array([[other]], dtype=values.dtype))[0, 0] == MISSING


@pytest.mark.parametrize("train", [[-1, 0, 1], [0, 1, 2]])
def test_large_unsigned_integers_are_no_negative_categories(train):
    encoder = CategoryEncoder().fit(np.array(train)[:, None])
    new = np.array([[2**64 - 1], [2**63], [1]], dtype=np.uint64)
    assert encoder.transform(new)[:, 0].tolist() == [MISSING, MISSING, train.index(1)]


@pytest.mark.filterwarnings("ignore:no value in")
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=20),
    st.lists(st.integers(-20, 20), min_size=1, max_size=20),
    st.sampled_from([np.int8, np.int64, np.float32, np.float64, object]),
    st.sampled_from([np.int8, np.int32, np.float64, object]),
)
def test_codes_are_positions_among_the_sorted_values(train, new, train_type, new_type):
    known = sorted(set(train))
    encoder = CategoryEncoder().fit(np.array(train, dtype=train_type)[:, None])
    codes = encoder.transform(np.array(new, dtype=new_type)[:, None])[:, 0].tolist()
    assert codes == [known.index(value) if value in known else MISSING for value in new]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "", None]), st.sampled_from([1, 2, None]), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_inverse_transform_gives_the_table_back(rows):
    table = np.empty((len(rows), 3), dtype=object)
    table[:] = rows
    encoder = CategoryEncoder()
    assert encoder.inverse_transform(encoder.fit_transform(table)).tolist() == table.tolist()


def columns_of(n):
    """Return a strategy of columns that all containers read alike."""
    kinds = (
        st.sampled_from(["a", "b", "", None]),
        st.sampled_from([1, 2, -7, None]),
        st.sampled_from([True, False, None]),
        st.sampled_from([0.5, -1.25, 2.0, 1e300]),
        st.sampled_from([0.5, 2.0, None]),
    )
    return st.sampled_from(kinds).flatmap(lambda kind: st.lists(kind, min_size=n, max_size=n))


@pytest.mark.filterwarnings("ignore:discretization left", "ignore:no value in")
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(columns_of(10), min_size=1, max_size=4), st.lists(st.booleans(), min_size=10, max_size=10))
def test_any_container_gives_the_same_codes_and_values(columns, y):
    y[:2] = False, True
    named = {f"c{j}": values for j, values in enumerate(columns)}
    rows = list(map(list, zip(*columns, strict=True)))
    array = np.empty((10, len(columns)), dtype=object)
    array[:] = rows
    encoder = TableEncoder().fit(rows, y)
    codes = encoder.encode(rows)
    for table in (array, pd.DataFrame(named), pd.DataFrame(named).astype(object),
                  pl.DataFrame(named)):  # fmt: skip
        other = TableEncoder().fit(table, y)
        assert other.is_discrete_.tolist() == encoder.is_discrete_.tolist()
        np.testing.assert_array_equal(other.encode(table), codes)
    back = encoder.decode(codes)
    np.testing.assert_array_equal(encoder.encode(back), codes)
    assert back[:, encoder.is_discrete_].tolist() == array[:, encoder.is_discrete_].tolist()
    unseen = [[None if value is None else "zzz" if isinstance(value, str) else value for value in row] for row in rows]
    gone = [[None if isinstance(value, str) else value for value in row] for row in rows]
    np.testing.assert_array_equal(encoder.encode(unseen), encoder.encode(gone))


def test_inverse_transform_refuses_what_are_no_codes():
    encoder = CategoryEncoder().fit([["a", 1], ["b", 1]])
    with pytest.raises(ValueError, match="code 1 of feature 1, sample 0, is out of range: the feature has 1 codes"):
        encoder.inverse_transform([[0, 1]])
    for wrong in ([[0]], [0, 0], [[0.0, 0.0]]):
        with pytest.raises(ValueError, match=r"integers of shape \(n_samples, 2\)"):
            encoder.inverse_transform(wrong)


def test_names_survive_to_frames():
    encoder = CategoryEncoder().set_output(transform="pandas")
    table = pd.DataFrame({"x": ["a", "b"], "z": [1, 2]}, index=[10, 20])
    codes = encoder.fit_transform(table)
    pd.testing.assert_frame_equal(codes, pd.DataFrame({"x": [0, 1], "z": [0, 1]}, index=[10, 20], dtype=np.uint8))
