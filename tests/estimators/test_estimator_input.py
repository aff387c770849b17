"""Encoding of what users pass to estimators: columns, hostile frames, and rows of weight 0."""

import datetime
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from tanlearn import CategoryEncoder, MDLPDiscretizer, QuantileDiscretizer, TableEncoder
from tanlearn.estimators.estimator_input import (
    delete_fitted_attributes,
    encode_batch,
    encode_rows,
    encode_training,
    generator,
)

MISSING = 255


class Classifier(BaseEstimator):
    """The attributes of a classifier that encoding needs."""

    device = "cpu"
    _default_handle_missing = None

    def __init__(self, encoder=None, n_jobs=None, class_weight=None, random_state=None):
        self.class_weight = class_weight
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _default_discretizer(self):
        return None

    def fit(self, X, y, sample_weight=None):
        self.data_, _ = encode_training(self, X, y, sample_weight)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def mixed_frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Graz", "Linz", "Wels"], n),
            "income": y * 3 + rng.normal(size=n),
            "rooms": rng.integers(1, 6, n),
            "owner": rng.random(n) < 0.5,
            "grade": pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "a", "c"]),
        }
    )
    frame.loc[3, "town"] = None
    frame.loc[4, "income"] = np.nan
    return frame, y


def is_discrete(X, **parameters):
    return TableEncoder(**parameters).fit(X, [0, 1] * (len(X) // 2)).is_discrete_.tolist()


# What columns become ---------------------------------------------------------------------------------------


def test_mixed_frame_becomes_what_the_two_encoders_make_of_its_parts():
    frame, y = mixed_frame()
    encoder = TableEncoder().fit(frame, y)
    discrete, continuous = ["town", "rooms", "owner", "grade"], ["income"]
    assert encoder.feature_names_in_[encoder.is_discrete_].tolist() == discrete
    codes = encoder.encode(frame)
    assert codes.shape == (5, 60)
    assert codes.flags.c_contiguous
    categories = CategoryEncoder().fit(frame[discrete])
    cuts = MDLPDiscretizer().fit(frame[continuous], y)
    np.testing.assert_array_equal(codes[encoder.is_discrete_].T, categories.transform(frame[discrete]))
    np.testing.assert_array_equal(codes[~encoder.is_discrete_].T, cuts.transform(frame[continuous]))
    assert encoder.n_states_.tolist() == [3, int(cuts.n_states_[0]), 5, 2, 3]
    assert cuts.n_states_[0] > 1
    assert codes[0, 3] == codes[1, 4] == MISSING


def test_polars_frame_and_object_array_give_the_codes_of_the_pandas_frame():
    frame, y = mixed_frame()
    frame = frame.drop(columns="grade")
    expected = TableEncoder().fit(frame, y).encode(frame)
    for table in (pl.from_pandas(frame), frame.to_numpy(dtype=object), frame.to_numpy(dtype=object).tolist()):
        np.testing.assert_array_equal(TableEncoder(n_jobs=2).fit(table, y).encode(table), expected)


@pytest.mark.filterwarnings("ignore:discretization left")
def test_auto_goes_by_values_of_numbers_and_by_type_of_all_else():
    n = 66
    X = pd.DataFrame(
        {
            "few": np.arange(n) % 10,
            "few floats": np.arange(n) % 10 - 5.0,
            "many": np.arange(n) % 11,
            "many floats": np.arange(n) % 11 + 0.0,
            "few with missing": pd.array([*range(10)] * 6 + [None] * (n - 60), dtype="Int64"),
            "many with missing": pd.array([*range(11)] * 5 + [None] * (n - 55), dtype="Int64"),
            "few made floats by a gap": [*range(10)] * 6 + [None] * (n - 60),
            "many made floats by a gap": [*range(11)] * 5 + [None] * (n - 55),
            "few, but not whole": np.arange(n) % 2 + 0.5,
            "one is not whole": [0.5] + [1.0, 2.0, 3.0, 4.0, 5.0] * (n // 5),
            "bool": np.arange(n) % 2 == 0,
            "text": np.arange(n).astype(str),
            "category": pd.Categorical(np.arange(n)),
            "Float64": pd.array(np.arange(n) % 2, dtype="Float64"),
            "floats as objects": pd.Series([0.5, None] * (n // 2), dtype=object),
            "integers as objects": pd.Series([5, None] * (n // 2), dtype=object),
            "nothing": pd.Series([None] * n, dtype=object),
            "float without a value": [np.nan] * n,
        }
    )
    encoder = TableEncoder().fit(X, [0, 1] * (n // 2))
    continuous = ["many", "many floats", "many with missing", "many made floats by a gap", "few, but not whole"]
    continuous += ["one is not whole", "floats as objects"]
    assert encoder.feature_names_in_[~encoder.is_discrete_].tolist() == continuous
    in_polars = pl.DataFrame({"i": [*range(65), None], "f": [0.5] * n, "t": ["a"] * n, "b": [True] * n})
    assert is_discrete(in_polars) == [False, False, True, True]


def test_a_gap_in_a_column_of_integers_changes_no_category():
    values, y = np.array([0, 1, 2, 3, 4] * 4), [0, 1] * 10
    frame = pd.DataFrame({"rooms": values})
    gap = frame.drop(index=7).reindex(frame.index)
    whole, gapped = (TableEncoder().fit(table, y) for table in (frame, gap))
    assert gapped.n_states_.tolist() == whole.n_states_.tolist() == [5]
    expected = np.where(np.arange(20) == 7, MISSING, values)
    for table in (gap, gap.to_numpy(), pl.DataFrame({"rooms": gap["rooms"].to_numpy()})):
        assert TableEncoder().fit(table, y).encode(table).tolist() == [expected.tolist()]


@pytest.mark.filterwarnings("ignore:discretization left")
def test_a_value_in_a_row_of_weight_zero_is_no_value():
    X, y, weight = np.arange(11.0)[:, np.newaxis], np.arange(11) % 2, np.arange(11) < 10
    assert TableEncoder().fit(X, y).is_discrete_.tolist() == [False]
    assert TableEncoder().fit(X, y, weight).is_discrete_.tolist() == [True]


def test_discrete_features_by_bool_mask_number_and_name():
    X = pd.DataFrame({"a": [1.0, 2.0] * 3, "b": [1, 2] * 3, "c": [True, False] * 3})
    assert is_discrete(X, discrete_features=True) == [True] * 3
    assert is_discrete(X, discrete_features=False) == [False] * 3
    assert is_discrete(X, discrete_features=[True, False, True]) == [True, False, True]
    assert is_discrete(X, discrete_features=np.array([0, 2])) == [True, False, True]
    assert is_discrete(X, discrete_features=["b", "a"]) == [True, True, False]
    assert is_discrete(X, discrete_features=[]) == [False] * 3
    assert is_discrete(X.to_numpy(dtype=float), discrete_features=[1]) == [False, True, False]


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([3], "from 0 to 2"),
        ([-1], "from 0 to 2"),
        (["z"], r"got \['z'\] for columns named 'a', 'b', 'c'"),
        ([True, False], r"mask of shape \(3,\)"),
        ([0.5], "list of column numbers"),
        ([[0]], "list of column numbers"),
    ],
)
def test_discrete_features_that_fit_no_column_are_an_error(features, words):
    X = pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2]})
    with pytest.raises(ValueError, match=words):
        TableEncoder(discrete_features=features).fit(X, [0, 1])


def test_names_of_discrete_features_need_a_table_with_names():
    with pytest.raises(ValueError, match=r"got \['a'\] for columns without names"):
        TableEncoder(discrete_features=["a"]).fit([[1], [2]], [0, 1])
    with pytest.raises(ValueError, match="'discrete_features' parameter"):
        TableEncoder(discrete_features="all").fit([[1], [2]], [0, 1])


class Halves(BaseEstimator):
    """A discretizer of one's own: below and above the mean, two bytes a code."""

    def fit(self, X, y, sample_weight=None):
        self.mean_ = np.nanmean(X, axis=0)
        self.n_states_ = np.full(X.shape[1], 2)
        return self

    def transform(self, X):
        return np.where(np.isnan(X), 65535, np.greater(X, self.mean_)).astype(np.uint16)


def test_own_discretizer_is_cloned_and_its_codes_are_taken_over():
    X = [[0.5, "a"], [3.5, "b"], [np.nan, "a"]]
    own = Halves()
    encoder = TableEncoder(discretizer=own).fit(X, [0, 1, 1])
    assert encoder.encode(X).tolist() == [[0, 1, MISSING], [0, 1, 0]]
    assert not hasattr(own, "mean_")
    assert encoder.discretizer_.mean_.tolist() == [2]


def test_missing_values_survive_where_one_feature_needs_two_bytes():
    X = pd.DataFrame({"x": [np.nan] + [1.5] * 299, "text": np.arange(300).astype(str)})
    codes = TableEncoder().fit(X, [0, 1] * 150).encode(X)
    assert codes.dtype == np.uint16
    assert codes[0].tolist() == [65535] + [0] * 299


def test_unseen_category_is_missing_or_an_error():
    X, y = [["a"], ["b"]], [0, 1]
    assert TableEncoder().fit(X, y).encode([["c"]]).tolist() == [[MISSING]]
    with pytest.raises(ValueError, match="column 0 holds 'c' in row 0"):
        TableEncoder(handle_unknown="error").fit(X, y).encode([["c"]])


def test_encoder_can_be_cloned_and_printed():
    encoder = TableEncoder(discrete_features=[0], n_jobs=2)
    assert repr(clone(encoder)) == "TableEncoder(discrete_features=[0], n_jobs=2)"


# Hostile tables ----------------------------------------------------------------------------------------------

TABLES = {
    "no rows": (np.empty((0, 2)), ValueError, r"0 sample\(s\)"),
    "no columns": (np.empty((2, 0)), ValueError, r"0 feature\(s\)"),
    "frame without rows": (pd.DataFrame({"a": []}), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
    "frame without columns": (pd.DataFrame(index=[0, 1]), ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\)"),
    "polars without anything": (pl.DataFrame(), ValueError, r"0 sample\(s\)"),
    "one dimension": (np.ones(2), ValueError, "Reshape your data"),
    "three dimensions": (np.ones((2, 2, 2)), ValueError, "dim 3"),
    "Series": (pd.Series([1, 2]), ValueError, "2-dimensional container"),
    "complex": (np.ones((2, 1)) * 1j, ValueError, "Complex data not supported"),
    "complex frame": (pd.DataFrame({"a": [1j, 2j]}), ValueError, "Complex data not supported.*column 'a'"),
    "duplicate names": (
        pd.DataFrame([[1, 2, 3], [1, 2, 3]], columns=["a", "b", "a"]),
        ValueError,
        "duplicate column names: columns 0 and 2 are both called 'a'.*Rename",
    ),
    "infinity": (np.array([[1.0, 1.0], [2.0, -np.inf]]), ValueError, "column 1 contains infinity: -inf in row 1"),
    "infinity in a frame": (pd.DataFrame({"b": [1.0, np.inf]}), ValueError, "column 'b' contains infinity.*row 1"),
    "infinity in polars": (pl.DataFrame({"b": [np.inf, None]}), ValueError, "column 'b' contains infinity.*row 0"),
    "infinity among objects": (np.array([[np.inf], [1]], dtype=object), ValueError, "contains infinity: inf in row 0"),
    "mixed types": (
        [[1, "x"], ["a", "x"]],
        TypeError,
        r"column 0 holds int \(1 in row 0\) and str \('a' in row 1\).*Cast the column to str",
    ),
    "mixed types in a frame": (pd.DataFrame({"m": [None, 2.5, "a"]}), TypeError, "'m' holds float .*row 1.* and str"),
    "sparse matrix that is a dictionary": (scipy.sparse.dok_array((2, 2)), TypeError, "Sparse data was passed"),
    "row as a dictionary": ({"a": 1, "b": "x"}, TypeError, r"X is a dict. Pass pandas.DataFrame\(\[X\]\) for"),
    "columns as a dictionary": ({"a": [1, 2], "b": ["x", "y"]}, TypeError, r"X is a dict. Pass pandas.DataFrame\(X\)"),
    "rows as dictionaries": ([{"a": 1}, {"a": 2}], TypeError, r"X\[0\] is a dict. Pass pandas.DataFrame\(X\)"),
    "records of one dimension": (
        np.ones(2, [("a", "f8")]),
        TypeError,
        r"X is an array of records of dtype .*'a'.* Pass pandas.DataFrame\(X\)",
    ),
    "path": ("sales.csv", TypeError, r"got 'sales.csv'. Pass tanlearn.read_table\(X\)"),
    "path object": (Path("sales.csv"), TypeError, r"sales.csv'\). Pass tanlearn.read_table\(X\)"),
    "iterator of rows": (iter([[1], [2]]), TypeError, r"Pass list\(X\)"),
    "set": ({1, 2}, TypeError, r"X is a set. Pass list\(X\)"),
    "nothing": (None, TypeError, "a list of lists, got None. Pass the rows"),
    "dictionaries": ([[{}], [{}]], TypeError, "column 0 holds dict"),
    "dates": (pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None])}), TypeError, "'d' holds dates.*numbers such as"),
    "dates with a zone": (
        pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None]).tz_localize("UTC")}),
        TypeError,
        "'d' holds dates",
    ),
    "durations": (np.array([[1], [2]], dtype="m8[s]"), TypeError, "column 0 holds dates or durations"),
    "date objects": ([[datetime.date(2020, 1, 1)], [None]], TypeError, r"holds dates or durations \(date, such as"),
    "polars dates": (pl.DataFrame({"d": [datetime.date(2020, 1, 1)] * 2}), TypeError, "'d' holds dates"),
    "polars lists": (pl.DataFrame({"d": [[1], [2]]}), TypeError, "'d' holds list"),
    "polars query": (pl.LazyFrame({"a": [1, 2]}), TypeError, r"X is a polars LazyFrame.*pass X\.collect\(\)"),
    "records": (np.zeros((2, 1), dtype=[("a", int)]), TypeError, "dtype"),
}


@pytest.mark.parametrize(("table", "error", "words"), TABLES.values(), ids=TABLES)
def test_hostile_table_is_an_error_that_says_why(table, error, words):
    with pytest.raises(error, match=words):
        TableEncoder().fit(table, [0, 1])
    with pytest.raises(error, match=words):
        TableEncoder().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1]).encode(table)


def test_too_many_categories_are_an_error():
    n = 65_536
    with pytest.raises(ValueError, match=r"column 'id' has 65536 categories.*Drop it"):
        TableEncoder().fit(pd.DataFrame({"id": np.arange(n).astype(str)}), np.arange(n) % 2)


def test_strings_in_a_continuous_column_are_an_error():
    encoder = TableEncoder().fit([[0.5], [1.5]], [0, 1])
    with pytest.raises(TypeError, match=r"0 holds str, such as 'a' in row 0, but held numbers.*pandas\.to_numeric"):
        encoder.encode([["a"]])
    with pytest.raises(TypeError, match="column 0 holds str"):
        TableEncoder(discrete_features=False).fit([["a"], ["b"]], [0, 1])
    assert encoder.encode([[None]]).tolist() == [[MISSING]]


def test_constant_and_empty_columns_have_one_state():
    X = [["a", 1.5, None, np.nan]] * 4
    encoder = TableEncoder().fit(np.array(X, dtype=object), [0, 1, 0, 1])
    assert encoder.n_states_.tolist() == [1, 1, 1, 1]
    assert encoder.encode(np.array(X[:1], dtype=object)).tolist() == [[0], [0], [MISSING], [MISSING]]


def test_wrong_columns_at_transform_are_an_error():
    frame, y = mixed_frame()
    encoder = TableEncoder().fit(frame, y)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- other\n.*now missing:\n- town"):
        encoder.encode(frame.rename(columns={"town": "other"}))
    with pytest.raises(ValueError, match="same order as they were in fit"):
        encoder.encode(frame[frame.columns[::-1]])
    unnamed = TableEncoder().fit([[1, 2], [2, 1]], [0, 1])
    with pytest.raises(ValueError, match="X has 1 features, but TableEncoder is expecting 2 features"):
        unnamed.encode([[1], [2]])
    with pytest.raises(NotFittedError):
        TableEncoder().encode([[1]])


# What an estimator gets ----------------------------------------------------------------------------------------


def test_training_data_classes_and_names_of_an_estimator():
    frame, y = mixed_frame()
    estimator = Classifier(encoder=TableEncoder(handle_unknown="error"))
    data, _ = encode_training(estimator, frame, np.array(["no", "yes"])[y])
    assert estimator.classes_.tolist() == ["no", "yes"]
    assert estimator.feature_names_in_.tolist() == estimator.encoder_.feature_names_in_.tolist() == list(frame)
    assert estimator.n_features_in_ == data.n_features == 5
    assert not hasattr(estimator.encoder, "n_states_")
    assert estimator.encoder_.handle_unknown == "error"
    assert data.sample_weight is None
    assert data.codes.flags.c_contiguous
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.n_states, estimator.encoder_.n_states_)
    np.testing.assert_array_equal(data.codes, encode_rows(estimator, frame))


def test_nothing_is_fitted_to_rows_held_out():
    frame, y = mixed_frame(200)
    frame["town"] = [f"town {i}" for i in range(200)]  # all that are held out are unseen
    weight = 1 + 4 * (frame["income"] > 1)
    estimator = Classifier(encoder=TableEncoder(handle_unknown="error"), random_state=0)
    data, held_out = encode_training(estimator, frame, y, weight, validation_fraction=0.25)
    rest = data.row_numbers
    assert {*rest.tolist(), *held_out.row_numbers.tolist()} == {*range(200)}
    alone = TableEncoder().fit(frame.iloc[rest], y[rest], weight.iloc[rest])
    assert estimator.encoder_.n_states_.tolist() == alone.n_states_.tolist()
    np.testing.assert_array_equal(data.codes, alone.encode(frame.iloc[rest]))
    np.testing.assert_array_equal(estimator.encoder_.discretizer_.cut_points_[0], alone.discretizer_.cut_points_[0])
    unweighted = TableEncoder().fit(frame.iloc[rest], y[rest])
    assert unweighted.discretizer_.cut_points_[0].tolist() != alone.discretizer_.cut_points_[0].tolist()
    assert (held_out.codes[0] == MISSING).all()
    assert data.sample_weight.tolist() == weight.iloc[rest].tolist()


def test_estimator_without_an_encoder_gets_one_with_its_threads():
    estimator = Classifier(n_jobs=2)
    encode_training(estimator, [[0.5], [1.5]], [0, 1], [1, 2])
    assert estimator.encoder_.discretizer_.n_jobs == 2


def test_training_data_have_names_and_the_order_of_codes():
    frame, y = mixed_frame()
    frame["size"] = pd.Categorical(np.tile(["s", "m", "l"], 20), categories=["s", "m", "l"], ordered=True)
    data, _ = encode_training(Classifier(), frame, y, np.arange(60) % 3)
    assert list(data.names) == list(frame)
    ordered = {"town": False, "income": True, "rooms": True, "owner": False, "grade": False, "size": True}
    assert dict(zip(frame, data.is_ordered.tolist(), strict=True)) == ordered
    assert data.row_numbers.tolist() == [row for row in range(60) if row % 3]
    assert data.places == tuple(f"X column {name!r}" for name in frame)
    numbers, _ = encode_training(Classifier(), frame[["income", "rooms"]].to_numpy(), y)
    assert numbers.names is None
    named, _ = encode_training(Classifier(TableEncoder(discrete_features=["rooms"])), frame[["income", "rooms"]], y)
    assert named.is_ordered.tolist() == [True, False]  # numbers that the user calls categories are names


def test_the_discretizer_of_an_estimator_is_its_default_only():
    class Coarse(Classifier):
        def _default_discretizer(self):
            return QuantileDiscretizer(max_bins=3)

    frame, y = mixed_frame()
    estimator = Coarse()
    encode_training(estimator, frame, y)
    assert type(estimator.encoder_.discretizer_) is QuantileDiscretizer
    assert estimator.encoder_.n_states_[1] == 3
    own = TableEncoder(discretizer=MDLPDiscretizer())
    estimator = Coarse(encoder=own)
    encode_training(estimator, frame, y)
    assert type(estimator.encoder_.discretizer_) is MDLPDiscretizer
    estimator = Coarse(encoder=TableEncoder(handle_unknown="error"))
    encode_training(estimator, frame, y)
    assert type(estimator.encoder_.discretizer_) is QuantileDiscretizer
    assert estimator.encoder.discretizer is None  # the user's encoder is cloned


def batch(estimator, X, y, **options):
    return encode_batch(estimator, X, y, np.array(["no", "yes"]), **options)


def test_a_first_chunk_of_one_class_is_refused_where_cut_points_need_classes():
    X = pd.DataFrame({f"c{j}": np.linspace(0, 1, 30) + j for j in range(5)}).assign(town="Graz", code=[0, 1] * 15)
    for n, shown in (
        (1, "'c0'"),
        (3, "'c0', X column 'c1', X column 'c2'"),
        (4, "'c0', X column 'c1', X column 'c2' and 1 more"),
        (5, "'c0', X column 'c1', X column 'c2' and 2 more"),
    ):
        table = X[[f"c{j}" for j in range(n)] + ["town", "code"]]
        for encoder in (None, TableEncoder(), TableEncoder(discretizer=MDLPDiscretizer())):
            estimator = Classifier(encoder)
            words = rf"\(X column {shown}\), but all of its 30 row\(s\) have the class 'yes'\. Start with"
            with pytest.raises(ValueError, match=words):
                batch(estimator, table, ["yes"] * 30)
            assert not hasattr(estimator, "encoder_")
    quantiles = TableEncoder(discretizer=QuantileDiscretizer())
    for encoder, columns in (
        (None, ["town", "code"]),
        (quantiles, ["c0", "town"]),
        (TableEncoder(discrete_features=True), ["c0"]),
        (TableEncoder(discrete_features=["c0", "code"]), ["c0", "code"]),
    ):
        data = batch(Classifier(encoder), X[columns], ["yes"] * 30)
        assert (data.n_classes, data.y.tolist()) == (2, [1] * 30)
    with pytest.raises(ValueError, match="have the class 'no'"):  # rows of weight 0 are none
        batch(Classifier(), X[["c0"]], ["no"] * 29 + ["yes"], sample_weight=[1] * 29 + [0])


def test_chunks_are_counted_on_the_device_of_the_estimator():
    estimator = Classifier()
    for device in ("cpu", "cuda"):
        estimator.device = device
        assert batch(estimator, [["a"], ["b"]], ["no", "yes"]).device == device


def test_an_earlier_fit_is_forgotten():
    estimator = Classifier()
    estimator.fit([["a"], ["b"]], [0, 1])
    estimator._was_loaded, estimator._notation, estimator._own_, estimator.plain = True, "x", 1, 2
    delete_fitted_attributes(estimator)
    assert set(vars(estimator)) == {"encoder", "n_jobs", "class_weight", "random_state", "_own_", "plain"}


def test_random_states_of_every_kind_become_generators():
    own = np.random.default_rng(3)
    assert generator(own) is own
    assert generator(5).random() == generator(5).random() != generator(6).random()
    state = np.random.RandomState(0)
    draws = [generator(state).random() for _ in range(3)]
    assert len(set(draws)) == 3  # the state goes on
    assert draws == [generator(again).random() for again in [np.random.RandomState(0)] for _ in range(3)]
    assert generator(None).random() != generator(None).random()


def test_messages_name_the_estimator_and_warnings_come_once():
    frame, y = mixed_frame()
    estimator = Classifier()
    with pytest.raises(NotFittedError, match="Classifier"):
        encode_rows(estimator, frame)
    with pytest.raises(ValueError, match="Classifier estimator requires y"):
        encode_training(estimator, frame, None)
    with pytest.raises(ValueError, match="'handle_unknown' parameter of TableEncoder"):
        encode_training(Classifier(TableEncoder(handle_unknown="ignore")), frame, y)
    numbers = frame[["income", "rooms"]]
    encode_training(estimator, numbers, y)
    with pytest.raises(ValueError, match="unseen at fit time"):
        encode_rows(estimator, numbers.rename(columns={"rooms": "other"}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encode_rows(estimator, numbers.to_numpy())
    messages = [str(warning.message) for warning in caught]
    assert messages == ["X does not have valid feature names, but Classifier was fitted with feature names"]


def learnt(X, y, weight=None):
    estimator = Classifier()
    data, _ = encode_training(estimator, X, y, weight)
    encoder = estimator.encoder_
    categories = [known.tolist() if known is not None else None for known in encoder.categories_]
    cuts = encoder.discretizer_ and [cuts.tolist() for cuts in encoder.discretizer_.cut_points_]
    return estimator.classes_.tolist(), encoder.is_discrete_.tolist(), categories, cuts, data


rows_of_a_table = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.one_of(st.none(), st.integers(-4, 4)).map(lambda x: None if x is None else x / 2),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({label for *_, label, weight in rows if weight}) > 1)


@pytest.mark.filterwarnings("ignore:discretization left")
@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows_of_a_table)
def test_rows_of_weight_zero_are_as_if_absent(rows):
    *columns, y, weight = (np.array(values) for values in zip(*rows, strict=True))
    X = np.empty((len(rows), 2), dtype=object)
    X[:, 0], X[:, 1] = columns
    X = pd.DataFrame(X).astype({1: float})
    present = weight > 0
    *expected, kept = learnt(X[present], y[present], weight[present])
    *found, data = learnt(X, y, weight)
    assert found == expected
    for name in ("codes", "n_states", "y", "sample_weight"):
        np.testing.assert_array_equal(getattr(data, name), getattr(kept, name))


def test_a_class_that_only_rows_of_weight_zero_have_is_no_class():
    estimator = Classifier()
    data, _ = encode_training(estimator, [["a"], ["b"], ["c"]], [5, 6, 7], [1, 0, 2])
    assert estimator.classes_.tolist() == [5, 7]
    assert estimator.encoder_.categories_[0].tolist() == ["a", "c"]
    assert data.y.tolist() == [0, 1]
    assert data.sample_weight.tolist() == [1, 2]
    assert data.sample_weight.dtype == np.int64
    with pytest.raises(ValueError, match="one class only, 5"):
        encode_training(estimator, [["a"], ["b"]], [5, 6], [1, 0])
