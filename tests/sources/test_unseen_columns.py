"""Columns in which nothing is known: told by name with an example, and refused where types can never match."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tanlearn import CategoryEncoder, NaiveBayesClassifier, TableEncoder, TANClassifier
from tanlearn.baselines import AODEClassifier
from tanlearn.encoding.categories import CategoryIndex, encode_categories
from tanlearn.encoding.column_warnings import warn_of_new_categories
from tanlearn.sources.columns import read_columns

N = 60
Y = np.arange(N) % 2
FRAME = pd.DataFrame({"code": Y + 3, "town": np.where(Y, "Graz", "Linz"), "size": Y + np.linspace(0, 0.9, N)})


@cache
def model():
    return NaiveBayesClassifier().fit(FRAME, Y)


def no_warning(call, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call(*arguments)


@pytest.mark.parametrize(
    "ask",
    [
        lambda X: model().predict(X),
        lambda X: model().predict_proba(X),
        lambda X: model().score_samples(X),
        lambda X: model().encoder_.encode(X),
        lambda X: AODEClassifier().fit(FRAME, Y).predict(X),
        lambda X: TANClassifier(n_epochs=1, random_state=0).fit(FRAME, Y).predict(X),
        lambda X: NaiveBayesClassifier().partial_fit(FRAME, Y, [0, 1]).partial_fit(X, Y),
    ],
)
def test_columns_without_a_known_value_are_named_once_with_an_example(ask):
    with pytest.warns(UserWarning, match=r"no value in") as caught:
        ask(FRAME.assign(code=FRAME["code"] + 100, town="Wien"))
    (warning,) = caught
    assert str(warning.message) == (
        "no value in 2 column(s) was seen in fit, so all of them count as missing: X column 'code' (holds 103, fit had "
        "3), X column 'town' (holds 'Wien', fit had 'Graz'). Write the values as in fit, or fit again with these rows."
    )


@pytest.mark.parametrize("n_rows", [1, 9, 10])
def test_a_few_rows_say_nothing(n_rows):
    rows = FRAME[:n_rows].assign(town="Wien")
    if n_rows < 10:
        no_warning(model().predict, rows)
    else:
        with pytest.warns(UserWarning, match=r"X column 'town' \(holds 'Wien'"):
            model().predict(rows)


def test_missing_values_are_neither_known_nor_unseen():
    no_warning(model().predict, FRAME.assign(town=None, code=np.nan))
    no_warning(model().predict, FRAME.assign(town=["Wien"] * 9 + [None] * (N - 9)))
    with pytest.warns(UserWarning, match=r"X column 'town' \(holds 'Wien'"):
        model().predict(FRAME.assign(town=[None] * 5 + ["Wien"] * (N - 5)))


def test_one_known_value_is_enough():
    no_warning(model().predict, FRAME.assign(town=["Graz"] + ["Wien"] * (N - 1)))


def test_columns_that_never_had_a_value_are_passed_over():
    empty = FRAME.assign(town=None)
    model = NaiveBayesClassifier().fit(empty, Y)
    no_warning(model.predict, FRAME)
    no_warning(model.predict, FRAME.assign(town=7))


def test_long_lists_are_cut():
    encoder = CategoryEncoder().fit(np.zeros((20, 30), int))
    with pytest.warns(UserWarning, match=r"in 30 column\(s\).* X column 9 \(holds 1, fit had 0\), and 20 more\. Write"):
        assert (encoder.transform(np.ones((20, 30), int)) == 255).all()


def test_an_error_where_unknown_values_are_errors():
    strict = NaiveBayesClassifier(encoder=TableEncoder(handle_unknown="error")).fit(FRAME, Y)
    with pytest.raises(ValueError, match="'town' holds 'Wien' in row 0, which was not seen in fit"):
        strict.predict(FRAME.assign(town="Wien"))


NUMBERS, STRINGS = [3, 4] * 6, ["Graz", "Linz"] * 6
MISMATCHES = {
    "digits for numbers": (NUMBERS, ["3", "4"], "'3' in row 0, of strings, but held numbers such as 3"),
    "words for numbers": (NUMBERS, [None, "four"], "'four' in row 1, of strings, but held numbers"),
    "numbers for strings": (STRINGS, [7, 8], "7 in row 0, of numbers, but held strings such as 'Graz'"),
    "floats for strings": (STRINGS, [0.5], "0.5 in row 0, of numbers"),
    "bools for strings": (STRINGS, [True], "True in row 0, of numbers"),
    "strings for bools": ([True, False] * 6, ["True"], "'True' in row 0, of strings, but held numbers such as False"),
    "bytes for strings": (STRINGS, [b"Graz"], "b'Graz' in row 0, of bytes, but held strings"),
    "strings for bytes": ([b"a", b"b"] * 6, ["a"], "'a' in row 0, of strings, but held bytes"),
    "strings for floats with a gap": ([1.0, 2.0, None] * 4, ["1.0"], "'1.0' in row 0, of strings, but held numbers"),
}


@pytest.mark.parametrize(("known", "asked", "words"), MISMATCHES.values(), ids=MISMATCHES)
@pytest.mark.parametrize("frame", [dict, pd.DataFrame, "category"], ids=["list", "pandas", "category"])
@pytest.mark.parametrize("is_chunk", [False, True])
def test_types_that_never_match_are_refused_in_one_row_already(known, asked, words, frame, is_chunk):
    def table(values):
        if frame is dict:
            return [[value] for value in values]
        column = pd.Series(values, dtype="category" if frame == "category" else object)
        return pd.DataFrame({"x": column})

    y = np.arange(len(known)) % 2
    model = NaiveBayesClassifier().partial_fit(table(known), y, [0, 1])
    before = model.counts_.cells.copy()
    with pytest.raises(
        TypeError, match=words.replace(".", r"\.") + r".*never equal\. Cast the column to the type that it had in fit"
    ):
        model.partial_fit(table(asked), y[: len(asked)]) if is_chunk else model.predict(table(asked))
    np.testing.assert_array_equal(model.counts_.cells, before)


def test_numbers_of_any_type_match_numbers():
    model = NaiveBayesClassifier().fit(pd.DataFrame({"x": [3, 4] * 6}), [0, 1] * 6)
    for values in ([3.0, 4.0], np.array([3, 4], np.uint8), [4.0, None], [True]):
        no_warning(model.predict, pd.DataFrame({"x": values}))
        no_warning(model.predict, pl.DataFrame({"x": values}))


def test_declared_categories_of_both_kinds_match_either():
    column = pd.Series(pd.Categorical(["a", 1, "a", 1] * 4, categories=["a", 1]))
    encoder = CategoryEncoder().fit(pd.DataFrame({"x": column}))
    for value, code in (("a", 0), (1, 1), (2, 255), ("b", 255)):
        assert no_warning(encoder.transform, pd.DataFrame({"x": [value]})).tolist() == [[code]]


def test_declared_categories_are_refused_only_if_no_value_has_a_known_type():
    encoder = CategoryEncoder().fit(pd.DataFrame({"x": ["a", "b"] * 6}))
    both = pd.Categorical([1, "z", 1, "b"], categories=[1, "z", "b"])
    assert encoder.transform(pd.DataFrame({"x": both}))[:, 0].tolist() == [255, 255, 255, 1]
    unseen = pd.Categorical([1, 2, None, "z"], categories=[2, 1, "z"])
    assert encoder.transform(pd.DataFrame({"x": unseen}))[:, 0].tolist() == [255] * 4
    numbers = pd.Categorical([None, 1, 2], categories=[1, 2, "z"])
    with pytest.raises(TypeError, match="holds 1 in row 1, of numbers, but held strings such as 'a' in fit"):
        encoder.transform(pd.DataFrame({"x": numbers}))


def messages_of_new(columns, n_known=2):
    """Return the warnings about chunks with these values of columns with the categories a, b, ..."""
    table = read_columns(pd.DataFrame(columns))
    known = [np.array(list("abcdef")[:n_known], object)] * len(table)
    codes = np.array([encode_categories(own, CategoryIndex(known[0], np.uint8), "missing") for own in table])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_new_categories(table, known, codes)
        warn_of_new_categories(table, [None] * len(table), codes)  # cut points have no categories
    return [str(warning.message) for warning in caught]


def test_new_categories_of_later_chunks_are_named_with_their_columns():
    assert messages_of_new({"x": ["a", "b", None], "y": [None, "b", "b"]}) == []
    (message,) = messages_of_new({"x": ["a", "c", None], "y": ["a", "b", None], "z": ["d", None, "a"]})
    assert message.startswith("2 column(s) contain categories that were not seen when the encoder was fitted")
    assert "missing: X column 'x', X column 'z'. Start with more rows" in message
    for n, more in ((10, ""), (12, ", and 2 more")):
        (message,) = messages_of_new({f"x{j}": ["a", "c"] for j in range(n)})
        assert message.startswith(f"{n} column(s)")
        assert f"X column 'x9'{more}. Start" in message


@pytest.mark.parametrize("n_rows", [9, 10, 30])
def test_each_column_is_named_by_one_warning(n_rows):
    """Columns of ten or more values that are all unseen have the other warning, unless there was no value in fit."""
    for gaps in (0, 3):
        values = ["z"] * n_rows + [None] * gaps
        assert len(messages_of_new({"x": values})) == (n_rows < 10)
        assert len(messages_of_new({"x": ["a", *values]})) == 1
        assert len(messages_of_new({"x": values}, n_known=0)) == 1
