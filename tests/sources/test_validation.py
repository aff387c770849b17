"""What stands beside a table: classes and weights."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning

from tanlearn import NaiveBayesClassifier, TableEncoder
from tanlearn.sources.columns import read_columns
from tanlearn.sources.validation import (
    class_code,
    encode_labels,
    read_classes,
    read_labels,
    read_target,
    read_weights,
    zero_weight_rows,
)

# Classes -------------------------------------------------------------------------------------------------------

CLASSES = {
    "none": (None, ValueError, "requires y to be passed"),
    "one class": ([1, 1, 1], ValueError, r"one class only, 1, in all 3 row\(s\).*at least two classes"),
    "too short": ([0, 1], ValueError, "X has 3, y has 2"),
    "missing number": ([0, 1, None], ValueError, r"y is missing in row 2 \(1 of 3 rows\).*drop the rows"),
    "missing string": (["a", np.nan, None], ValueError, r"y is missing in row 1 \(2 of 3"),
    "NaN": (np.array([0, np.nan, 1]), ValueError, "y is missing in row 1"),
    "pandas.NA": (pd.Series([0, 1, None], dtype="Int64"), ValueError, "y is missing in row 2"),
    "missing category": (pd.Series(["a", None, "b"], dtype="category"), ValueError, "y is missing in row 1"),
    "polars null": (pl.Series([None, "a", "b"]), ValueError, "y is missing in row 0"),
    "infinity": ([0, 1, np.inf], ValueError, "y contains infinity: inf in row 2"),
    "continuous": ([0.5, 1.2, 3.1], ValueError, "Unknown label type: continuous"),
    "two columns": ([[0, 1], [1, 0], [0, 0]], ValueError, "1d array"),
    "truths and numbers": ([True, 0, 1], TypeError, "y mixes booleans and numbers: True in row 0, 0 in row 1.*cast"),
    "truths and a gap": ([True, None, False], ValueError, "y is missing in row 1"),
    "NumPy's truths": (np.array([0, np.True_, 0], object), TypeError, "True in row 1, 0 in row 0"),
    "mixed types": ([0, "a", 1], TypeError, r"y holds int .* and str .* Cast the classes to str\.$"),
}


@pytest.mark.parametrize(("y", "error", "words"), CLASSES.values(), ids=CLASSES)
def test_hostile_classes_are_an_error_that_says_why(y, error, words):
    with pytest.raises(error, match=words):
        TableEncoder().fit([[1], [2], [3]], y)


def test_one_row_cannot_hold_two_classes():
    with pytest.raises(ValueError, match="one class"):
        TableEncoder().fit([[1.5]], ["a"])


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"]), ["a", "b"]),
        (np.array([7, -2, 7], dtype=object), [-2, 7]),
        ([1.0, 0.0, 1.0], [0.0, 1.0]),
        ([True, False, True], [False, True]),
        (pd.Series([2, 1, 2], dtype="Int64", index=[5, 6, 7]), [1, 2]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["a", "b"]),
        (pl.Series([2, 1, 2]), [1, 2]),
    ],
)
def test_classes_of_every_kind_are_numbered_in_order(y, classes):
    codes, found = read_classes(y, 3)
    assert codes.tolist() == [1, 0, 1]
    assert codes.dtype == np.intp
    assert found.tolist() == classes
    assert type(found.tolist()[0]) is type(classes[0])


@pytest.mark.parametrize(
    "labels",
    [
        [-(2**63), 2**63 - 1],
        np.array([2**64 - 1, 2**63], np.uint64),
        np.array([-128, 127], np.int8),
        np.arange(-7, 8),
        np.arange(3) * 10**15,
        [f"class {i % 13}" for i in range(20)],
        np.array(["a", "bc", ""]),
        [2.0, -0.0, 0.0],
    ],
    ids=repr,
)
def test_classes_are_numbered_as_by_sorting(labels):
    y = np.random.default_rng(0).choice(np.array(labels), 60)
    codes, found = read_classes(y, len(y))
    expected, numbers = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(codes, numbers)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("is_part", [False, True])
def test_fractions_are_no_classes_wherever_they_stand(is_part):
    y = np.array([1.0, 2.0] * 10)
    assert read_classes(y, 20, is_part=is_part)[1].tolist() == [1.0, 2.0]
    for row in (0, 13, 19):
        fraction = y.copy()
        fraction[[row, row - 1]] = 1.5
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            read_classes(fraction, 20, is_part=is_part)
    # A row that does not count may hold anything.
    y[3] = 1.5
    codes, classes = read_classes(y, 20, np.arange(20) != 3, is_part=is_part)
    assert (codes.tolist(), classes.tolist()) == ([0, 1, 0] + [0, 1] * 8, [1.0, 2.0])


def test_parts_may_hold_one_class_or_none():
    for labels, codes, classes in ((["b"] * 3, [0] * 3, ["b"]), ([7], [0], [7]), ([], [], [])):
        found = read_classes(np.array(labels, object), len(labels), is_part=True)
        assert (found[0].tolist(), found[1].tolist()) == (codes, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # labels that differ in every row of a part are no reason
        assert len(read_classes([f"name {i}" for i in range(30)], 30, is_part=True)[1]) == 30


def test_classes_as_many_as_rows_are_warned_of():
    with pytest.warns(UserWarning, match="unique classes is greater than 50%"):
        read_classes([f"name {i}" for i in range(30)], 30)


@pytest.mark.parametrize(("n_classes", "is_warned"), [(15, False), (16, True), (29, True)])
def test_more_classes_than_half_of_the_rows_are_warned_of(n_classes, is_warned):
    y = [f"name {i % n_classes}" for i in range(30)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(read_classes(y, 30)[1]) == n_classes
    assert bool(caught) is is_warned


def test_column_vector_of_classes_is_warned_of():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        codes, _ = read_classes([[1], [0]], 2)
    assert codes.tolist() == [1, 0]


# Weights -------------------------------------------------------------------------------------------------------

WEIGHTS = {
    "negative": ([1, -2, 1], "sample_weight must be non-negative, but is -2 in row 1.*weight to 0"),
    "NaN": ([1, 1, np.nan], "sample_weight must be finite, but is nan in row 2"),
    "infinite": ([np.inf, 1, 1], "sample_weight must be finite, but is inf in row 0"),
    "missing": ([None, 1, 1], "sample_weight must be finite, but is nan in row 0"),
    "all zero": ([0, 0, 0], "but is zero in every row"),
    "too long": ([1] * 4, "X has 3, sample_weight has 4"),
    "two columns": ([[1, 1, 1]], r"one number per row, got shape \(1, 3\)"),
    "integers too large together": ([2**62, 2**62, 1], f"adds up to {2**63 + 1} over 3 rows, but integer .* floating"),
    "unsigned": (np.array([2**63, 0, 0], np.uint64), f"adds up to {2**63} over 3 rows.* at most. Divide"),
    "floats too large together": ([1e308] * 3, "adds up to inf over 3 rows, but floating weights .* common factor"),
}


@pytest.mark.parametrize(("weight", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_hostile_weights_are_an_error_that_says_why(weight, words):
    with pytest.raises(ValueError, match=words):
        TableEncoder().fit([[1], [2], [3]], [0, 1, 0], weight)


@pytest.mark.parametrize(
    ("weight", "expected", "dtype"),
    [
        ([1, 2, 3], [1, 2, 3], np.int64),
        (np.array([1, 0, 3], dtype=np.uint8), [1, 0, 3], np.int64),
        ([True, False, True], [1, 0, 1], np.int64),
        ([0.5, 2, 3], [0.5, 2, 3], np.float64),
        (np.ones(3, np.float32), [1, 1, 1], np.float64),
        (pd.Series([1, 2, 3], index=[7, 8, 9]), [1, 2, 3], np.int64),
        (pl.Series([0.5, 1, 2]), [0.5, 1, 2], np.float64),
        (2, [2, 2, 2], np.int64),
        (0.5, [0.5, 0.5, 0.5], np.float64),
        ([2**62, 2**62 - 1, 0], [2**62, 2**62 - 1, 0], np.int64),
        (np.array([2**63 - 1, 0, 0], np.uint64), [2**63 - 1, 0, 0], np.int64),
    ],
)
def test_weights_keep_their_kind_of_number(weight, expected, dtype):
    found = read_weights(weight, 3)
    assert found.tolist() == expected
    assert found.dtype == dtype


def test_no_weights_stay_none():
    assert read_weights(None, 3) is None


@pytest.mark.parametrize(
    ("weight", "is_allowed"),
    [
        ([1e100, 0.0], True), ([1e100, 1e90], False), ([0.5e100, 0.5e100], True), ([1e-100, 0.0], True),
        ([0.9e-100, 0.0], False), ([2**63 - 1, 0], True), ([2**63 - 1, 1], False), ([2**62, 2**62 - 1], True),
        (np.array([2**63 - 1, 0], np.uint64), True), ([5e-324, 1.0], True),
    ],
)  # fmt: skip
def test_sums_of_weights_have_limits_and_reach_them(weight, is_allowed):
    if is_allowed:
        assert read_weights(weight, 2).tolist() == list(weight)
    else:
        with pytest.raises(ValueError, match=r"sample_weight adds up to .* over 2 rows"):
            read_weights(weight, 2)


def test_rows_of_weight_zero_are_those_of_one_number_per_row():
    assert zero_weight_rows([0.0, -0.0, 5e-324, 2]).tolist() == [True, True, False, False]
    assert zero_weight_rows(pd.Series([True, False])).tolist() == [False, True]
    assert zero_weight_rows(np.array([0, 1], object)).tolist() == [True, False]
    for nothing in (None, 0, [1, 2], [np.nan, 1], [[0], [1], [1]], [[0, 1, 1]], ["0", "1"], [None, "a"], 1j, []):
        assert zero_weight_rows(nothing) is None
    X = [["a"], ["b"], ["a"]]
    for weight in ([[0], [1], [1]], np.array([[0.0, 1.0]] * 3), np.zeros((3, 1, 1))):
        with pytest.raises(ValueError, match=r"one number per row, got shape \((3, 1|3, 2|3, 1, 1)\)"):
            TableEncoder().fit(X, [0, 1, 0], weight)


LABELS = {
    "words": np.array(["no", "yes", "no", "perhaps"], object),
    "fixed": np.array(["no", "yes", "no", "perhaps"]),
    "declared": pd.Categorical(["no", "yes", "no", "perhaps"], ["perhaps", "unused", "yes", "no"]),
    "whole": np.array([7, 9, 7, 8]),
    "floating": np.array([7.0, 9.0, 7.0, 8.0]),
    "truth": np.array([False, True, False, False]),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_classes_are_numbered_as_columns_too(labels):
    column = read_columns(pd.DataFrame({"y": labels}))[0]
    plain = pd.Series(labels).tolist()
    classes = sorted(set(plain))
    expected = [classes.index(label) for label in plain]
    for given in (labels, column):
        codes, found = read_classes(given, 4)
        assert (codes.tolist(), found.tolist()) == (expected, classes)
        assert encode_labels(given, 4, np.array(classes)).tolist() == expected
        assert read_labels(given).tolist() == plain
        few, rows = np.array(classes[:-1]), np.array([label != classes[-1] for label in plain])
        assert encode_labels(given, 4, few, rows).tolist() == [code for code in expected if code < len(few)]
        with pytest.raises(ValueError, match=f"^y holds {classes[-1]!r} in row 1, which is not among"):
            encode_labels(given, 4, few)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_one_class_has_its_number(labels):
    classes = np.unique(pd.Series(labels).to_numpy())
    assert [class_code(label, classes, "against") for label in classes] == list(range(len(classes)))
    for wrong in ("maybe", [1], None, np.nan):
        with pytest.raises(ValueError, match=r"^against must be one of the classes: .*, .*, got .*\.$"):
            class_code(wrong, classes, "against")


def test_intervals_as_classes_are_refused_with_a_remedy_that_works():
    X, number = [["a"], ["b"]] * 15, np.arange(30.0)
    for y in (pd.Series(pd.cut(number, 3)), pd.cut(number, 3), pd.Series(pd.cut(number, 3)).astype(object)):
        with pytest.raises(
            TypeError, match=r"y holds Interval .*pandas\.cut\(\.\.\., labels=\[\.\.\.\]\).*y\.astype\(str\)"
        ):
            NaiveBayesClassifier().fit(X, y)
    named = NaiveBayesClassifier().fit(X, pd.cut(number, 3, labels=["low", "middle", "high"]))
    assert named.classes_.tolist() == ["high", "low", "middle"]
    cast = NaiveBayesClassifier().fit(X, pd.Series(pd.cut(number, 3)).astype(str))
    assert len(cast.classes_) == 3


def test_classes_that_are_a_query_are_refused_with_the_remedy():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"y is a polars LazyFrame.*pass y\.collect\(\)"):
        read_target(polars.LazyFrame({"y": [1, 0]}))
