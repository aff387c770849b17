"""Summaries of columns: what kind of values all parts together hold, and which parts do not go together."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.summaries import FRAME, N, Y, assert_same, fitted, merged, of, parts_of

from tanlearn import ColumnKindWarning, MDLPDiscretizer, TableEncoder
from tanlearn.encoding.column_kinds import have_order
from tanlearn.encoding.summaries import TableSummary
from tanlearn.sources.columns import read_columns
from tanlearn.sources.table import Column, Table

pytestmark = pytest.mark.filterwarnings("ignore:discretization left")  # small tables are noise


def test_codes_are_those_of_few_whole_numbers_in_all_parts_together():
    few = of([[1], [2]], [0, 1])
    assert few.fit_encoder(TableEncoder()).categories_[0].tolist() == [1, 2]
    many = few.merge(of([[i] for i in range(3, 12)], np.arange(9) % 2))
    assert many.fit_encoder(TableEncoder()).categories_ == [None]
    assert of([[1], [2]], [0, 1]).merge(of([[2.5]], [0])).fit_encoder(TableEncoder()).categories_ == [None]


def test_large_integers_do_not_fall_together():
    def categories(*parts):
        summary = merged([of(np.array(part), [0] * len(part)) for part in parts])
        found = summary.merge(of(np.array(parts[0]), [1] * len(parts[0]))).fit_encoder(TableEncoder()).categories_[0]
        return found.dtype.name, found.tolist()

    large = 2**60
    assert categories([[large]], [[large + 1]]) == ("int64", [large, large + 1])
    assert categories([[np.uint64(5)]], [[-1]]) == ("int64", [-1, 5])
    assert categories([[np.uint64(2**63 + 1)]], [[np.uint64(2**63)]], [[7]]) == ("uint64", [7, 2**63, 2**63 + 1])
    assert categories([[True]], [[2]]) == ("int64", [1, 2])
    # Beside floating numbers they become such, as in one column.
    assert categories([[large]], [[large + 1]], [[1.0]]) == ("float64", [1.0, float(large)])
    with pytest.raises(ValueError, match=r"X column 0 holds -1 in one part and 18446744073709551615 in another\. No"):
        categories([[np.uint64(2**64 - 1)]], [[-1]])


BLANKS = {
    "floats": np.full((4, 1), np.nan, np.float32),
    "objects": [[None]] * 4,
    "integers": np.ma.masked_all((4, 1), int),
}


@pytest.mark.parametrize("blank", BLANKS.values(), ids=BLANKS)
@pytest.mark.parametrize("option", ["auto", True, False])
def test_missing_values_have_no_kind(blank, option):
    y = [0, 1, 0, 1]
    whole, _ = fitted(TableEncoder(discrete_features=option), blank, y)
    summary = of(blank, y).merge(of(blank, y))
    assert_same(summary.fit_encoder(TableEncoder(discrete_features=option)), whole)
    assert TableSummary.from_bytes(summary.to_bytes()).to_bytes() == summary.to_bytes()
    for column in ([["a"], ["b"]], [[1.5], [2]]):
        assert of(blank, y).merge(of(column, [0, 1])).n_samples == 6


def test_declared_categories_without_an_order_grow_from_part_to_part():
    def part(words, values):
        frame = pd.DataFrame({"x": pd.Categorical(list(values), list(words))})
        return read_columns(frame), ["n", "y", "n"][: len(values)]

    parts = [part("ba", "bab"), part("ac", "cac"), part("bac", "cb"), part("dab", "dda")]
    one = TableSummary()
    for columns, y in parts:
        one.update(columns, y)
    apart = [TableSummary().update(columns, y) for columns, y in parts]
    two = apart[0].merge(apart[1].merge(TableSummary())).merge(apart[2].merge(apart[3]))
    for summary in (one, two):
        assert summary.fit_encoder(TableEncoder()).categories_[0].tolist() == ["b", "a", "c", "d"]
        counts = summary._columns[0].pooled(2)
        found = np.stack([counts.values, counts.classes, counts.weights], axis=1).tolist()
        # b, a, c and d, in classes n and y
        assert found == [[0, 0, 2], [0, 1, 1], [1, 0, 1], [1, 1, 2], [2, 0, 3], [3, 0, 1], [3, 1, 1]]


def test_declared_categories_need_no_row():
    blank = pd.DataFrame({"t": pd.Categorical([None] * 4, ["b", "a"])})
    y = [0, 1, 0, 1]
    for option in ("auto", False):
        encoder = of(blank, y).merge(of(blank, y)).fit_encoder(TableEncoder(discrete_features=option))
        assert_same(encoder, fitted(TableEncoder(discrete_features=option), blank, y)[0])
    more = of(blank, y).merge(of(pd.DataFrame({"t": pd.Categorical(["a"], ["b", "a"])}), [0]))
    assert more.fit_encoder(TableEncoder()).categories_[0].tolist() == ["b", "a"]


def test_order_is_that_of_the_whole():
    columns = read_columns(FRAME)
    for option in ("auto", [0, 2, 3, 4, 5, 6, 7]):
        encoder = of(FRAME, Y).fit_encoder(TableEncoder(discrete_features=option))
        found = merged(parts_of(FRAME, Y, None, np.array_split(np.arange(N), 3))).have_order(encoder)
        assert found.tolist() == have_order(encoder, columns).tolist()


def test_constant_columns_are_warned_of_once(recwarn):
    noise = np.random.default_rng(1).normal(size=(50, 13))
    noise[:, 0] = np.arange(50) < 2  # of which one value takes almost all: nothing to lose
    y = np.arange(50) % 2
    encoder = TableEncoder(discrete_features=False)
    with pytest.warns(UserWarning, match="discretization left") as expected:
        fitted(TableEncoder(discrete_features=False), noise, y, np.full(50, 0.1))
    summary = merged(parts_of(noise, y, np.full(50, 0.1), [np.arange(20), np.arange(20, 50)]))
    with pytest.warns(UserWarning, match="discretization left") as found:
        summary.fit_encoder(encoder)
    assert [str(one.message) for one in found] == [str(one.message) for one in expected]


KINDS = {
    "words and numbers": (
        [["a"]],
        [[1]],
        TypeError,
        r"X column 0 holds str \('a'\) in one part and int \(1\) in another",
    ),
    "numbers and words": ([[2.5]], [["a"]], TypeError, r"holds float \(2.5\) .* and str .* all strings or all numbers"),
    "words and bytes": ([["a"]], [[b"a"]], TypeError, r"str \('a'\) in one part and bytes \(b'a'\)"),
    "other declarations": (
        pd.DataFrame({"t": pd.Categorical(["a"], ["a", "b"], ordered=True)}),
        pd.DataFrame({"t": pd.Categorical(["a"], ["b", "a"], ordered=True)}),
        TypeError,
        r"X column 't' declares the ordered categories \['a', 'b'\] in one part and the ordered \['b', 'a'\]",
    ),
    "other order": (
        pd.DataFrame({"t": pd.Categorical(["a"], ["a", "b"])}),
        pd.DataFrame({"t": pd.Categorical(["a"], ["a", "b"], ordered=True)}),
        TypeError,
        "X column 't' declares the unordered .* the ordered",
    ),
    "declared and not": (
        pd.DataFrame({"t": pd.Categorical(["a"], ["a", "b"])}),
        pd.DataFrame({"t": ["a"]}),
        TypeError,
        r"X column 't' holds declared categories in one part and str \('a'\) in another",
    ),
    "more columns": (
        [[1]],
        [[1, 2]],
        ValueError,
        "1 columns before, 2 now, and column 1 was nothing and is 'X column 1'",
    ),
    "other names": (
        pd.DataFrame({"t": [1]}),
        pd.DataFrame({"u": [1]}),
        ValueError,
        """column 0 was "X column 't'" and is "X column 'u'".""",
    ),
    "too many words": (
        [[f"{i}"] for i in range(40_000)],
        [[f"{i}"] for i in range(40_000, 70_000)],
        ValueError,
        "X column 0 has 70000 categories, more than 65535",
    ),
}


@pytest.mark.parametrize(("first", "second", "error", "message"), KINDS.values(), ids=KINDS)
def test_parts_that_do_not_go_together_are_refused(first, second, error, message):
    summary = of(first, np.zeros(len(first), int))
    before = summary.to_bytes()
    with pytest.raises(error, match=message):
        summary.update(read_columns(second), np.ones(len(second), int))
    assert summary.to_bytes() == before


def test_tables_made_by_hand_may_hold_strings_as_arrays():
    table = Table([Column(np.array(["b", "a", "b"]), None, None, "X column 0")])
    encoder = TableSummary().update(table, [0, 1, 1]).fit_encoder(TableEncoder(discretizer=MDLPDiscretizer()))
    assert encoder.categories_[0].tolist() == ["a", "b"]


def kind_warning(summary):
    """Return the text of the warning about string columns, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        summary.fit_encoder(TableEncoder())
    texts = [str(one.message) for one in caught if issubclass(one.category, ColumnKindWarning)]
    return texts[0] if texts else None


@pytest.mark.parametrize("weight", [None, 3, 0.01])
@pytest.mark.parametrize("n_parts", [1, 3])
def test_rows_with_a_unique_string_are_counted_as_rows_whatever_their_weights(weight, n_parts):
    X = np.array([[f"id {100 + i % 80}", "ab"[i % 2]] for i in range(99)], dtype=object)  # 61 values are unique
    weights = None if weight is None else np.full(len(X), weight)
    with pytest.warns(ColumnKindWarning) as caught:
        TableEncoder().fit(X, np.arange(99) % 2, weights)
    summary = merged(parts_of(X, np.arange(99) % 2, weights, np.array_split(np.arange(99), n_parts)))
    again = TableSummary.from_bytes(summary.to_bytes())
    assert kind_warning(summary) == kind_warning(again) == str(caught[0].message)
    assert summary._columns[1].n_rows.tolist() == [50, 49]


def test_summaries_of_earlier_versions_have_no_numbers_of_rows():
    X, y = [[f"id {i}"] for i in range(40)], np.arange(40) % 2
    old = of(X, y)
    old._columns = [replace(old._columns[0], n_rows=None)]
    assert "identifiers: 40 rows" in kind_warning(TableSummary.from_bytes(old.to_bytes()))
    assert old.merge(of(X, y))._columns[0].n_rows is None
    for rows in (np.ones(3, np.int64), np.zeros(40, np.int64), np.ones(40)):
        old._columns = [replace(old._columns[0], n_rows=rows)]
        with pytest.raises(ValueError, match=r"row counts|without rows"):
            TableSummary.from_bytes(old.to_bytes())
