"""Summaries of parts of a table: the encoder of the whole, whatever the parts, and ranks that keep their promise."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from tanlearn import MDLPDiscretizer, QuantileDiscretizer, TableEncoder
from tanlearn.data.column_kinds import have_order
from tanlearn.data.columns import read_columns
from tanlearn.data.summaries import TableSummary
from tanlearn.data.table import Column, Table
from tanlearn.data.validation import present_rows

pytestmark = pytest.mark.filterwarnings("ignore:discretisation left")  # small tables are noise

N = 400
RNG = np.random.default_rng(0)
Y = RNG.choice(["home", "office", "beach"], N)
FRAME = pd.DataFrame(
    {
        "town": pd.Series(np.where(RNG.random(N) < 0.7, np.char.upper(Y.astype(str)), "WELS"), dtype=object),
        "size": RNG.normal(size=N) + 4 * (Y == "beach"),
        "single": (RNG.normal(size=N) + (Y == "home")).astype(np.float32),
        "doors": RNG.integers(2, 6, N).astype(np.int16),
        "rooms": RNG.integers(0, 40, N) * (Y == "office"),
        "owner": RNG.random(N) < 0.5,
        "grade": pd.Categorical(RNG.choice(["b", "a"], N), categories=["c", "b", "a"], ordered=True),
        "gone": np.full(N, np.nan),
    }
)
FRAME.loc[5:60, "town"] = None
FRAME.loc[50:100, "size"] = np.nan
FRAME.loc[90:120, "grade"] = None
FRAME.loc[N - 1, "town"] = "only in the last row"
WEIGHT = RNG.integers(0, 5, N)
DISCRETIZERS = {
    "default": None,
    "quantiles": QuantileDiscretizer(max_bins=7),
    "all quantiles": QuantileDiscretizer(),
}


class OwnQuantiles(QuantileDiscretizer):
    """Somebody's own, which the encoder fits to arrays."""

    def fit(self, X, y, sample_weight=None):
        assert type(X) is np.ndarray
        return super().fit(X, y, sample_weight)


def of(X, y, sample_weight=None, **options):
    """Return the summary of one table."""
    return TableSummary(**options).update(read_columns(X), y, sample_weight)


def parts_of(X, y, weight, rows, **options):
    """Return the summaries of some rows each, of which there may be none."""
    columns = read_columns(X)
    found = []
    for some in rows:
        mask = np.zeros(len(y), np.bool_)
        mask[some] = True
        own = None if weight is None else weight[mask]
        # Read by itself where that can be done, so that types are its own.
        part = read_columns(X[mask]) if type(X) is np.ndarray and mask.any() else columns.take(mask)
        found.append(TableSummary(**options).update(part, y[mask], own))
    return found


def merged(summaries, rng=None):
    """Return the sum of summaries, pair after pair in a random tree."""
    left = list(summaries)
    while len(left) > 1:
        i, j = (0, 1) if rng is None else rng.choice(len(left), 2, replace=False)
        left = [s for k, s in enumerate(left) if k not in (i, j)] + [left[i].merge(left[j])]
    return left[0]


def fitted(encoder, X, y, weight=None):
    """Return the encoder of the whole table, and its classes."""
    columns, codes, classes, weights, _ = present_rows(read_columns(X), y, weight)
    encoder.fit_columns(columns, codes, weights)
    return encoder, classes


def assert_same(one, other, *, exact=True):
    """Compare all that encoders have learnt, bit for bit but for means."""
    assert one.is_discrete_.tolist() == other.is_discrete_.tolist()
    assert one.n_states_.tolist() == other.n_states_.tolist()
    for a, b in zip(one.categories_, other.categories_, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            assert a.tolist() == b.tolist()
    cuts = [[] if encoder.discretizer_ is None else encoder.discretizer_.cut_points_ for encoder in (one, other)]
    for a, b in zip(*cuts, strict=True):
        assert np.array_equal(a, b) if exact else np.allclose(a, b)
    for a, b in zip(one.typical_values_, other.typical_values_, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


# Exact summaries


@pytest.mark.parametrize("n_parts", [1, 2, 7, 64])
@pytest.mark.parametrize("discretizer", DISCRETIZERS.values(), ids=DISCRETIZERS)
@pytest.mark.parametrize("weight", [None, WEIGHT, WEIGHT / 4], ids=["rows", "whole", "quarters"])
def test_parts_have_the_encoder_of_the_whole(n_parts, discretizer, weight):
    whole, classes = fitted(TableEncoder(discretizer=discretizer), FRAME, Y, weight)
    parts = parts_of(FRAME, Y, weight, np.array_split(np.arange(N), n_parts))
    summary = merged(parts, np.random.default_rng(n_parts))
    assert summary.classes_.tolist() == classes.tolist()
    assert summary.classes_.dtype == classes.dtype
    assert summary.n_samples == (N if weight is None else np.count_nonzero(weight))
    weights = np.ones(N) if weight is None else weight
    assert summary.class_counts.tolist() == [weights[label == Y].sum() for label in classes]
    assert_same(summary.fit_encoder(TableEncoder(discretizer=discretizer)), whole)
    assert [summary.rank_error(i) for i in range(8)] == [0.0] * 8


@pytest.mark.parametrize("option", [False, True, [0, 3, 4, 6], ["town", "rooms", "grade"]], ids=str)
def test_options_of_the_encoder_hold(option):
    frame = FRAME if option is not False else FRAME.drop(columns=["town", "grade"])
    names = np.array(frame.columns, dtype=object)
    encoder = TableEncoder(discrete_features=option, handle_unknown="error", discretizer=OwnQuantiles(max_bins=5))
    whole = TableEncoder(**encoder.get_params(deep=False)).fit(frame, Y)
    found = merged(parts_of(frame, Y, None, np.array_split(np.arange(N), 3))).fit_encoder(encoder, names)
    assert_same(found, whole)
    assert found.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    assert found.handle_unknown == "error"
    assert not hasattr(encoder, "categories_")
    assert np.array_equal(found.encode(frame), whole.encode(frame))


CELLS = st.tuples(
    st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, 1e300, 5e-324, float("nan")]),
    st.sampled_from(["a", "b", "", "c\0", "ß", "\ud800", None]),
    st.sampled_from([0, 1, -1, 2**60, 2**60 + 1, None]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, st.integers(0, 3), st.integers(0, 3), st.integers(0, 63)), min_size=2, max_size=40),
    n_parts=st.sampled_from([1, 2, 7, 64]),
    seed=st.integers(0, 99),
)
def test_no_partition_and_no_order_of_merging_shows(rows, n_parts, seed):
    cells, y, weight, of_row = map(list, zip(*rows, strict=True))
    table = np.empty((len(rows), 4), object)
    table[:] = cells
    y, weight = np.array([0, 1, *y[2:]]), np.array(weight)
    weight[:2] += 1
    parts = parts_of(table, y, weight, [np.array(of_row) % n_parts == part for part in range(n_parts)])
    summary = merged(parts, np.random.default_rng(seed))
    whole, classes = fitted(TableEncoder(), table, y, weight)
    assert summary.classes_.tolist() == classes.tolist()
    assert_same(summary.fit_encoder(TableEncoder()), whole)
    assert summary.to_bytes() == of(table, y, weight).to_bytes()


def test_rows_one_by_one_are_the_table():
    rows = [read_columns(FRAME.iloc[[row]]) for row in range(N)]
    summary = TableSummary()
    for row, label, weight in zip(rows, Y.tolist(), WEIGHT.tolist(), strict=True):
        summary.update(row, [label], [weight])
    assert_same(summary.fit_encoder(TableEncoder()), fitted(TableEncoder(), FRAME, Y, WEIGHT)[0])


def test_numpy_and_polars_tables_do_as_well():
    X = RNG.integers(0, 30, (N, 3)).astype(np.uint8)
    for table in (X, X.astype(">f8"), np.asfortranarray(X.astype(np.float16)), pl.from_pandas(FRAME)):
        summary = merged(parts_of(table, Y, None, np.array_split(np.arange(N), 5)))
        assert_same(summary.fit_encoder(TableEncoder()), fitted(TableEncoder(), table, Y)[0])


def test_real_weights_are_added():
    weight = RNG.random(N)
    whole, _ = fitted(TableEncoder(), FRAME, Y, weight)
    summary = merged(parts_of(FRAME, Y, weight, np.array_split(np.arange(N), 5)))
    assert summary.class_counts.dtype == np.float64
    assert_same(summary.fit_encoder(TableEncoder()), whole, exact=False)
    # One part with real weights makes all of them real, and no part without any loses rows.
    summary = of(FRAME, Y).merge(of(FRAME, Y, weight))
    np.testing.assert_allclose(summary.class_counts, [(1 + weight)[label == Y].sum() for label in summary.classes_])
    twice = pd.concat([FRAME, FRAME], ignore_index=True)
    whole, _ = fitted(TableEncoder(), twice, np.append(Y, Y), np.append(np.ones(N), weight))
    assert_same(summary.fit_encoder(TableEncoder()), whole, exact=False)


def test_class_weights_of_values_are_kept():
    summary = of([["b", 3], ["a", 1], ["b", 1]], [1, 0, 0], [5, 1, 2]).merge(of([["a", 3]], [1], [7]))
    words, numbers = summary._columns
    assert words.names.tolist() == ["a", "b"]
    found = [list(zip(*(array.tolist() for array in column.counts), strict=True)) for column in (words, numbers)]
    assert found == [[(0, 0, 1), (0, 1, 7), (1, 0, 2), (1, 1, 5)], [(1, 0, 3), (3, 1, 12)]]


def test_large_whole_weights_are_added_exactly():
    large = 2**53
    summary = of([["a", 1.5], ["a", 1.5], ["b", 2.5]], [0, 0, 1], [large, 1, 1])
    summary.merge(of([["a", 1.5], ["b", 1.5]], [0, 1], [2, large + 1]))
    assert summary.class_counts.tolist() == [large + 3, large + 2]
    assert [column.counts.weights.tolist() for column in summary._columns] == [
        [large + 3, large + 2],
        [large + 3, large + 1, 1],
    ]


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
    with pytest.raises(ValueError, match=r"X column 0 holds -1 in one part and 18446744073709551615 in another, so it"):
        categories([[np.uint64(2**64 - 1)]], [[-1]])


@pytest.mark.parametrize(
    "labels",
    [
        ([1, 0], [0, 2]),
        (np.array([1, 0], np.int8), np.array([300, 0])),
        ([True, False], [2, 0]),
        (np.array(["b", "a"]), np.array(["zebra", "a"])),
        (["b", "a"], np.array(["zebra", "a"])),
        ([1.0, 2.0], [0, 3]),
        ([2**60], [2**60 + 1]),
        ([2**60, 2**60 + 1, 2], [3.0]),
    ],
    ids=str,
)
def test_classes_are_those_of_all_parts(labels):
    summary = merged([of(np.arange(len(part))[:, np.newaxis] * 0.5, part) for part in labels])
    joined = np.concatenate([np.asarray(part) for part in labels])
    expected = np.unique(joined)
    assert summary.classes_.tolist() == expected.tolist()
    assert summary.class_counts.tolist() == [(joined == label).sum() for label in expected]
    if not any(isinstance(part, list) for part in labels):
        assert summary.classes_.dtype == joined.dtype
    rows = np.concatenate([np.arange(len(part)) * 0.5 for part in labels])[:, np.newaxis]
    assert_same(summary.fit_encoder(TableEncoder()), fitted(TableEncoder(), rows, joined)[0])


def test_many_classes_give_no_warning():
    labels = np.arange(30)
    summary = of(labels[:, np.newaxis] * 0.5, labels.astype(float)).merge(of(labels[:, np.newaxis] * 0.5, labels))
    assert summary.fit_encoder(TableEncoder()).n_states_.tolist() == [30]


def test_empty_parts_leave_no_trace():
    none = read_columns(FRAME).take(np.zeros(N, np.bool_))
    summary = TableSummary().merge(TableSummary()).update(none, []).update(none, [], [])
    assert (summary.n_samples, summary.places[0], summary.classes_.tolist()) == (0, "X column 'town'", [])
    summary.update(read_columns(FRAME), np.full(N, "absent"), np.zeros(N))  # rows of no weight are none
    summary.update(read_columns(FRAME), Y, WEIGHT).update(none, [])
    assert summary.to_bytes() == of(FRAME, Y, WEIGHT).to_bytes()
    assert summary.merge(TableSummary()).n_samples == np.count_nonzero(WEIGHT)


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
        assert found.tolist() == have_order(option, columns, encoder.categories_).tolist()


def test_lost_columns_are_warned_of_once(recwarn):
    noise = np.random.default_rng(1).normal(size=(50, 13))
    noise[:, 0] = np.arange(50) < 2  # of which one value takes almost all: nothing to lose
    y = np.arange(50) % 2
    encoder = TableEncoder(discrete_features=False)
    with pytest.warns(UserWarning, match="discretisation left") as expected:
        fitted(TableEncoder(discrete_features=False), noise, y, np.full(50, 0.1))
    summary = merged(parts_of(noise, y, np.full(50, 0.1), [np.arange(20), np.arange(20, 50)]))
    with pytest.warns(UserWarning, match="discretisation left") as found:
        summary.fit_encoder(encoder)
    assert [str(one.message) for one in found] == [str(one.message) for one in expected]


# What is refused


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


ROWS = read_columns([[1.5], [2.5]])
BATCHES = {
    "strings": (
        ["a", "b"],
        None,
        TypeError,
        r"y holds int \(0\) in one part and str \('a'\) .* Cast the classes to str",
    ),
    "mixed": (["a", 1], None, TypeError, "y holds str .* and int"),
    "real classes": ([0.5, 1.0], None, ValueError, "Unknown label type"),
    "missing class": ([None, 1], None, ValueError, "y is missing in row 0"),
    "short": ([1], None, ValueError, "X has 2, y has 1"),
    "negative": ([0, 1], [1, -1], ValueError, "must be non-negative"),
    "short weights": ([0, 1], [1], ValueError, "sample_weight has 1"),
    "too much": ([0, 1], [2**63 - 3, 1], ValueError, f"add up to {2**63}, but may add up to {2**63 - 1} at most"),
    "much too much": ([0, 1], [1e100, 1e100], ValueError, "the weights of all parts add up to 2e[+]100"),
}


@pytest.mark.parametrize(("y", "weight", "error", "message"), BATCHES.values(), ids=BATCHES)
def test_batches_that_break_a_rule_change_nothing(y, weight, error, message):
    summary = of([[1.5], [2.5]], [0, 1])
    before = summary.to_bytes()
    with pytest.raises(error, match=message):
        summary.update(ROWS, y, weight)
    assert summary.to_bytes() == before


def test_real_weights_of_all_parts_have_a_limit():
    summary = of([[1.5]], [0], [9e99])
    with pytest.raises(ValueError, match=r"the weights of all parts add up to 1.8e[+]100, but may add up to 1e[+]100"):
        summary.merge(of([[1.5]], [0], [9e99]))
    with pytest.raises(ValueError, match="sample_weight adds up to 2e-120 over 2 rows"):
        of([[1.5], [2.5]], [0, 1], [1e-120, 1e-120]).fit_encoder(TableEncoder())


def test_encoders_need_rows_classes_and_cuts():
    class Bins(BaseEstimator):
        def fit(self, X, y, sample_weight=None):
            return self

        def transform(self, X):
            return X

    with pytest.raises(ValueError, match="holds no row of non-zero weight"):
        TableSummary().fit_encoder(TableEncoder())
    with pytest.raises(ValueError, match=r"y holds one class only, 7, in all 1 row\(s\)"):
        of([[1.5]], [7]).fit_encoder(TableEncoder())
    summary = of([[1.5, "a"], [2.5, "b"]], [0, 1])
    with pytest.raises(TypeError, match="X column 1 holds str, but only numbers can be discretised"):
        summary.fit_encoder(TableEncoder(discrete_features=False))
    with pytest.raises(TypeError, match="Bins is no CutDiscretizer"):
        summary.fit_encoder(TableEncoder(discretizer=Bins()))
    with pytest.raises(ValueError, match="discrete_features must be"):
        summary.fit_encoder(TableEncoder(discrete_features=[2]))
    with pytest.raises(IndexError, match="there is no column 2: columns are numbered from 0 to 1"):
        summary.rank_error(2)


@pytest.mark.parametrize("n_points", [1, 2.5, "many"])
def test_numbers_of_points_are_checked(n_points):
    with pytest.raises(ValueError, match="n_points must be an integer from 2 on"):
        TableSummary(n_points=n_points)
    with pytest.raises(ValueError, match="make both with the same n_points"):
        TableSummary().merge(TableSummary(exact=True))


# Points


def hard_data(name, n, rng):
    """Return numbers and weights that are hard to rank."""
    weight = np.ones(n, np.int64)
    if name == "sorted":
        return np.arange(n) / 8, weight
    if name == "reversed":
        return -np.arange(n) / 8, weight
    if name == "skewed":
        return np.exp(5 * rng.normal(size=n)), weight
    if name == "ties":
        return np.where(rng.random(n) < 0.6, 0.0, np.round(rng.normal(size=n), 3)), weight
    if name == "huge weights":
        weight[rng.integers(0, n, 9)] = 2**45
        return rng.normal(size=n), weight
    if name == "geometric weights":
        return rng.permutation(n) / 2, np.int64(1) << np.arange(n) % 40
    if name == "real weights":
        return rng.normal(size=n), rng.random(n) ** 8
    return np.ldexp(rng.choice([-1.0, 1.0], n), np.arange(n) % 2000 - 1000) * rng.random(n), weight


HARD = [
    "sorted",
    "reversed",
    "skewed",
    "ties",
    "huge weights",
    "geometric weights",
    "real weights",
    "all sizes",
]


def largest_rank_error(summary, x, weight, i=0):
    """Return by how much the ranks of points are wrong, at most, as a share of the weight: looked up one by one."""
    column = summary._columns[i]
    points, _, of_point = column.pooled(len(summary.classes_))
    order = np.argsort(x, kind="stable")
    reached = np.append(0, np.cumsum(weight[order]))
    ours = np.append(0, np.cumsum(of_point))
    # Ranks change at values and at points only.
    at = np.concatenate([x, points, [-np.inf]])
    true = reached[np.searchsorted(x[order], at, side="right")]
    found = ours[np.searchsorted(points, at, side="right")]
    return float(np.abs(true - found).max() / weight.sum())


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("shape", ["one by one", "in a row", "large", "any", "tree"])
def test_no_rank_is_further_off_than_is_said(name, shape):
    rng = np.random.default_rng(HARD.index(name))
    n = 600 if shape == "one by one" else 6000
    x, weight = hard_data(name, n, rng)
    y = rng.integers(0, 3, n)
    n_parts = {"one by one": n, "in a row": 60, "large": 3, "any": 50, "tree": 64}[shape]
    ends = np.sort(rng.integers(0, n, n_parts - 1)) if shape == "any" else n_parts
    rows = np.split(np.arange(n), ends) if shape == "any" else np.array_split(np.arange(n), n_parts)
    summaries = parts_of(x[:, np.newaxis], y, weight, rows, n_points=16)
    summary = merged(summaries, rng if shape == "tree" else None)
    claimed, error = summary.rank_error(0), largest_rank_error(summary, x, weight)
    assert error <= claimed * (1 + 1e-9)
    n_blocks = n / (8 * 16)
    assert 0 < claimed < (1 + np.log2(n_blocks)) / 16
    column = summary._columns[0]
    assert np.isclose(column.total, weight.sum(), rtol=1e-12)
    assert len(column.blocks) <= 1 + np.log2(n_blocks)
    assert all(len(np.unique(block.counts.values)) <= 17 for block in column.blocks)
    # Ranks of each class are no worse.
    for label in range(3):
        counts = column.pooled(3)
        own = counts.classes == label
        at = np.append(x, counts.values)
        true = np.array([weight[(y == label) & (x <= t)].sum() for t in at[::37]])
        found = np.array([counts.weights[own & (counts.values <= t)].sum() for t in at[::37]])
        assert np.abs(true - found).max() <= claimed * weight.sum() * (1 + 1e-9)


def test_default_errors_are_below_a_thousandth():
    rng = np.random.default_rng(0)
    n = 1_000_000
    x = np.sort(rng.normal(size=n))
    y = (rng.random(n) < 1 / (1 + np.exp(-4 * x))).astype(int)
    summary = TableSummary()
    for rows in np.array_split(np.arange(n), 100):
        summary.update(read_columns(x[rows, np.newaxis]), y[rows])
    assert largest_rank_error(summary, x, np.ones(n)) <= summary.rank_error(0) < 1 / 2000
    found = summary.fit_encoder(TableEncoder(discretizer=QuantileDiscretizer(max_bins=10)))
    below = np.searchsorted(x, found.discretizer_.cut_points_[0]) / n
    assert np.abs(below - np.arange(1, 10) / 10).max() < 1 / 1000
    np.testing.assert_allclose(
        found.typical_values_[0], [part.mean() for part in np.split(x, (below * n).astype(int)[:9])], atol=0.01
    )


def test_points_are_only_made_of_too_many_values():
    values = np.arange(16.0)[:, np.newaxis]
    y = np.arange(16) % 2
    options = [TableSummary(n_points=2), TableSummary(n_points=2, exact=True)]
    for summary in options:
        for own in (y, 1 - y, y):
            summary.update(read_columns(values), own)
        assert summary.rank_error(0) == 0
        summary.update(read_columns([[0.5]]), [0])
    assert [summary.rank_error(0) > 0 for summary in options] == [True, False]
    points, exact = (summary.fit_encoder(TableEncoder()) for summary in options)
    whole = np.vstack([values, values, values, [[0.5]]])
    assert_same(exact, fitted(TableEncoder(), whole, np.concatenate([y, 1 - y, y, [0]]))[0])
    assert points.categories_ == [None]
    with pytest.raises(ValueError, match="X column 0 has so many distinct values that quantiles of it are kept"):
        options[0].fit_encoder(TableEncoder(discrete_features=True))
    # Later integers, and classes, find their place among points.
    options[0].update(read_columns([[-7]]), [-1])
    assert options[0].classes_.tolist() == [-1, 0, 1]
    assert options[0]._columns[0].total == 50
    assert options[0].fit_encoder(TableEncoder(discretizer=QuantileDiscretizer())).typical_values_[0][0] == -7


def test_few_heavy_values_lose_nothing_among_points():
    # Half of the weight at one value: its rank is right, and so is a quantile there.
    x = np.append(np.zeros(5000), np.random.default_rng(0).normal(size=5000))
    summary = TableSummary(n_points=32)
    for rows in np.array_split(np.random.default_rng(1).permutation(10_000), 20):
        summary.update(read_columns(x[rows, np.newaxis]), rows % 2)
    points, _, weights = summary._columns[0].pooled(2)
    assert 5000 <= weights[points == 0].sum() < 5000 + summary.rank_error(0) * 2 * 10_000


# Bytes


SUMMARIES = {
    "frame": of(FRAME, Y, WEIGHT),
    "real weights": of(FRAME, Y, WEIGHT / 3),
    "points": of(np.random.default_rng(0).normal(size=(500, 2)), np.arange(500) % 3, n_points=4),
    "bytes": of([[b"\xff\0"], [b"a"]], ["x", "y"]),
    "surrogates": of([["\ud800"], ["\0"]], np.array(["a", "longer"])),
    "numbers declared": of(pd.DataFrame({"t": pd.Categorical([3, 1], [5, 3, 1])}), [1.0, 2.0]),
    "mixed declared": of(pd.DataFrame({"t": pd.Categorical(["a", 1], ["a", 1, 2.5])}), [True, False]),
    "scalars declared": of(
        pd.DataFrame({"t": pd.Categorical([2.5], pd.Index(["a", np.float32(2.5)], dtype=object))}), [0]
    ),
    "empty": TableSummary(n_points=77, exact=True),
}


@pytest.mark.parametrize("summary", SUMMARIES.values(), ids=SUMMARIES)
def test_bytes_give_the_summary_back(summary):
    again = TableSummary.from_bytes(summary.to_bytes())
    assert again.to_bytes() == summary.to_bytes()
    assert repr(again) == repr(summary)
    assert again.classes_.dtype == summary.classes_.dtype
    assert again.places == summary.places
    if len(summary.classes_) > 1:
        assert_same(again.fit_encoder(TableEncoder()), summary.fit_encoder(TableEncoder()))
        assert [again.rank_error(i) for i in range(len(again.places))] == [
            summary.rank_error(i) for i in range(len(again.places))
        ]
    if summary.n_samples:
        twice = again.merge(summary)
        assert twice.n_samples == 2 * summary.n_samples


def test_categories_that_cannot_be_stored_are_named():
    frame = pd.DataFrame({"t": pd.cut([1.0, 2.0], 2)})
    with pytest.raises(TypeError, match="X column 't' declares the category Interval"):
        of(frame, [0, 1]).to_bytes()


def altered(summary, change):
    """Return the bytes of a summary after changing its arrays and its state."""
    with np.load(io.BytesIO(summary.to_bytes())) as file:
        arrays = {name: file[name] for name in file.files}
    state = json.loads(arrays["state"].tobytes())
    change(arrays, state)
    arrays["state"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


DAMAGE = {
    "format": lambda a, s: a.update(tanlearn_summary=np.array(-1)),
    "no state": lambda a, s: s.clear(),
    "n_points": lambda a, s: s.update(n_points=0),
    "n_samples": lambda a, s: s.update(n_samples=0),
    "label type": lambda a, s: s.update(label_type="<f8"),
    "kind": lambda a, s: s["columns"][1].update(kind="colours"),
    "place": lambda a, s: s["columns"][1].update(place=3),
    "names gone": lambda a, s: s["columns"][1].update(names=None),
    "names too few": lambda a, s: s["columns"][1]["names"][1].pop(),
    "names unsorted": lambda a, s: s["columns"][1]["names"][1].reverse(),
    "no name": lambda a, s: s["columns"][7]["names"][1].append(None),
    "blocks": lambda a, s: s["columns"][1].update(blocks=[[0, 1, 1]]),
    "nothing": lambda a, s: s["columns"][2].update(kind="nothing"),
    "no numbers": lambda a, s: s["columns"][8].update(kind="numbers"),
    "column gone": lambda a, s: a.pop("2_0_values"),
    "unsorted": lambda a, s: a.update({"2_0_values": a["2_0_values"][::-1]}),
    "infinite": lambda a, s: a["2_0_values"].__setitem__(-1, np.inf),
    "shape": lambda a, s: a.update({"2_0_weights": a["2_0_weights"][1:]}),
    "type": lambda a, s: a.update({"2_0_weights": a["2_0_weights"].astype(np.float32)}),
    "zero": lambda a, s: a["2_0_weights"].__setitem__(0, 0),
    "class": lambda a, s: a["2_0_classes"].__setitem__(0, 3),
    "too heavy": lambda a, s: a["2_0_weights"].__setitem__(0, 10**6),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_damaged_bytes_are_refused(change):
    with pytest.raises(ValueError, match=r"bytes are no \(or a damaged\) TableSummary"):
        TableSummary.from_bytes(altered(SUMMARIES["frame"], change))


def test_damaged_blocks_and_other_bytes_are_refused():
    points = SUMMARIES["points"]
    for block in ([0.5, 1, 1], [-1, 1, 1], [0, -1, 1], [0, 1, float("inf")], [0, 1]):
        with pytest.raises(ValueError, match="damaged"):
            TableSummary.from_bytes(
                altered(points, lambda a, s, block=block: s["columns"][1]["blocks"].__setitem__(0, block))
            )
    whole = points.to_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.npy", b"0" * 1000)
    for data in (b"", whole[:-30], bytes(flipped), packed.getvalue()):
        with pytest.raises(ValueError, match="damaged"):
            TableSummary.from_bytes(data)
    with pytest.raises(ValueError, match="format 2, this version reads up to 1: upgrade"):
        TableSummary.from_bytes(altered(points, lambda a, s: a.update(tanlearn_summary=np.array(2))))


def test_tables_made_by_hand_may_hold_strings_as_arrays():
    table = Table([Column(np.array(["b", "a", "b"]), None, None, "X column 0")])
    encoder = TableSummary().update(table, [0, 1, 1]).fit_encoder(TableEncoder(discretizer=MDLPDiscretizer()))
    assert encoder.categories_[0].tolist() == ["a", "b"]
