"""TANImputer: what it imputes against enumeration, tables of all kinds, and its errors."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from oracles import elimination, latent_classes
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tanlearn import MDLPDiscretizer, NaiveBayesClassifier, QuantileDiscretizer, TableEncoder, TANImputer

RNG = np.random.default_rng(0)
KIND = RNG.choice(["diesel", "electric", "petrol"], 150)
FRAME = pd.DataFrame(
    {
        "kind": KIND,
        "plug": (KIND == "electric") ^ (np.arange(150) % 12 == 0),
        "volume": np.round(RNG.normal(size=150) + 4 * (KIND == "petrol"), 2),
        "doors": pd.Categorical(np.where(KIND == "electric", "two", RNG.choice(["two", "four"], 150))),
    },
    index=np.arange(1000, 1150),
)
IS_LOST = RNG.random(FRAME.shape) < 0.2
LOST = FRAME.mask(IS_LOST)
#: Three categories and a number, with values by which every cell can be computed.
X = np.array([[str(v) for v in row] for row in RNG.integers(0, 2, (60, 3))], dtype=object)
X[:, 2] = np.where(RNG.random(60) < 0.8, X[:, 1], X[:, 2])
ROWS = [[None, "1", "0"], ["0", None, None], [None, None, None], ["1", "0", "1"], [None, "0", None]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:discretization left")
@parametrize_with_checks([TANImputer(), TANImputer(strategy="draw"), TANImputer(strategy="joint", n_components=2)])
def test_estimator_checks(estimator, check):
    check(estimator)


def given(model):
    """Return what the oracles need of a fitted imputer."""
    n_states = model.encoder_.n_states_.tolist()
    return model.tables_.cells, model.structure_.parents.tolist(), n_states, model.n_components_


def codes_of(model, rows):
    """Return encoded rows as lists, with -1 for missing values."""
    codes = model.encoder_.encode(rows).T
    return np.where(codes == 255, -1, codes.astype(int)).tolist()


@pytest.mark.parametrize("n_components", [1, 3])
def test_categories_are_the_most_probable_ones(n_components):
    model = TANImputer(n_components=n_components, random_state=0).fit(X)
    for row, sample, filled in zip(ROWS, codes_of(model, ROWS), model.transform(ROWS).tolist(), strict=True):
        for i, value in enumerate(row):
            p = latent_classes.value_probabilities(sample, i, *given(model))
            assert filled[i] == (value or model.encoder_.categories_[i][int(np.argmax(p))])


@pytest.mark.parametrize("n_components", [1, 3])
def test_joint_completions_are_the_most_probable_ones(n_components):
    model = TANImputer(strategy="joint", n_components=n_components, random_state=0).fit(X)
    for sample, filled in zip(codes_of(model, ROWS), model.transform(ROWS).tolist(), strict=True):
        best, _, _ = elimination.most_probable(sample, *given(model))
        assert filled == [model.encoder_.categories_[i][value] for i, value in enumerate(best)]


def test_draws_have_the_frequencies_of_the_completions():
    model = TANImputer(n_components=2, random_state=0).fit(X)
    n_draws = 4000
    drawn = model.draw(ROWS * n_draws, 1, random_state=1)[0].reshape(n_draws, len(ROWS), 3)
    for k, sample in enumerate(codes_of(model, ROWS)):
        for completion, p in latent_classes.completion_probabilities(sample, *given(model)).items():
            values = [model.encoder_.categories_[i][value] for i, value in enumerate(completion)]
            found = (drawn[:, k] == values).all(axis=1).mean()
            assert found == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / n_draws) + 1e-9)


@pytest.mark.parametrize("strategy", ["mean", "mode"])
def test_numbers_are_expected_values_or_means_of_the_most_probable_interval(strategy):
    table = FRAME[["kind", "volume"]]
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=4))
    model = TANImputer(strategy=strategy, n_components=2, encoder=encoder, random_state=0).fit(table)
    rows = pd.DataFrame({"kind": ["petrol", "diesel", None], "volume": [np.nan] * 3}).astype({"kind": object})
    means = model.encoder_.typical_values_[1]
    codes = model.encoder_.encode(table)[1]
    np.testing.assert_allclose(means, [table["volume"].to_numpy()[codes == k].mean() for k in range(4)])
    for sample, value in zip(codes_of(model, rows), model.transform(rows)["volume"], strict=True):
        p = latent_classes.value_probabilities(sample, 1, *given(model))
        expected = np.dot(p, means) if strategy == "mean" else means[int(np.argmax(p))]
        assert value == pytest.approx(expected)


def test_drawn_numbers_are_training_values_of_their_interval():
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=5))
    model = TANImputer(encoder=encoder, random_state=0).fit(LOST)
    tables = model.draw(LOST, 3)
    known = set(LOST["volume"].dropna())
    assert all(set(table["volume"]) <= known for table in tables)
    assert not tables[0]["volume"].equals(tables[1]["volume"])
    pd.testing.assert_frame_equal(tables[0], model.draw(LOST, 1, random_state=0)[0])


def test_many_numbers_of_an_interval_are_represented_by_some():
    numbers = np.random.default_rng(0).normal(size=(5000, 1))
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=2))
    model = TANImputer(n_components=1, encoder=encoder).fit(numbers)
    assert [len(kept) for kept in model.interval_numbers_.numbers.values()] == [512]
    drawn = model.draw(np.full((4000, 1), np.nan), 1, random_state=0)[0]
    assert set(drawn.ravel()) <= set(numbers.ravel())
    assert np.quantile(drawn, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(numbers, [0.1, 0.5, 0.9]), abs=0.1)


def test_observed_values_stay_and_related_columns_decide():
    filled = TANImputer(random_state=0).fit_transform(LOST)
    assert (filled == FRAME).to_numpy()[~IS_LOST].all()
    assert not filled.isna().any(axis=None)
    right = (filled == FRAME).to_numpy()[IS_LOST & (np.arange(4) != 2)]
    modes = (LOST.fillna(LOST.mode().iloc[0]) == FRAME).to_numpy()[IS_LOST & (np.arange(4) != 2)]
    assert right.mean() > modes.mean() + 0.15


def test_frames_keep_index_names_and_types():
    filled = TANImputer(random_state=0).fit_transform(LOST)
    assert filled.index.equals(LOST.index)
    assert filled.columns.tolist() == list(FRAME)
    assert filled["volume"].dtype == np.float64
    assert filled["doors"].dtype == LOST["doors"].dtype


def test_polars_frames_stay_polars_frames():
    lost = pl.from_pandas(
        LOST.astype({"kind": str, "doors": str}).where(LOST.notna(), None)[["kind", "volume", "doors"]]
    )
    filled = TANImputer(random_state=0).fit_transform(lost)
    assert isinstance(filled, pl.DataFrame)
    assert filled.null_count().sum_horizontal().item() == 0
    assert filled["volume"].dtype == pl.Float64


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_and_names(library):
    numbers = LOST[["volume"]].assign(other=np.arange(150.0)).to_numpy()
    model = TANImputer(n_components=1).set_output(transform=library).fit(numbers)
    filled = model.transform(numbers)
    assert type(filled).__module__.startswith(library)
    assert model.get_feature_names_out().tolist() == ["x0", "x1"]
    assert TANImputer(n_components=1).fit(LOST).get_feature_names_out().tolist() == list(FRAME)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_of_numbers_stay_arrays_of_numbers(dtype):
    numbers = np.stack([np.arange(40), np.arange(40) % 7], axis=1).astype(dtype)
    numbers[::9, 0] = np.nan
    before = numbers.copy()
    filled = TANImputer(n_components=1).fit_transform(numbers)
    assert filled.dtype == dtype
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(numbers, before)
    integers = TANImputer(n_components=1).fit_transform(np.arange(20).reshape(10, 2))
    assert integers.dtype == np.float64


def test_masked_arrays_are_filled():
    numbers = np.ma.array(np.arange(30.0).reshape(15, 2), mask=np.zeros((15, 2), bool))
    numbers[3, 1] = np.ma.masked
    filled = TANImputer(n_components=1).fit_transform(numbers)
    assert np.isfinite(filled[3, 1])
    assert filled[4].tolist() == [8.0, 9.0]


def test_columns_without_values_stay_missing_and_unseen_categories_are_kept():
    table = FRAME[["kind", "plug"]].assign(nothing=np.nan)
    model = TANImputer(random_state=0).fit(table)
    filled = model.transform(pd.DataFrame({"kind": ["steam", None], "plug": [None, True], "nothing": [np.nan] * 2}))
    assert filled["kind"].tolist() == ["steam", "electric"]
    assert filled["nothing"].isna().all()
    assert filled["plug"].tolist()[1] is True
    drawn = model.draw(table.iloc[:2], 1)[0]
    assert drawn["nothing"].isna().all()


def test_labels_are_ignored():
    labels = np.arange(150) % 2
    a, b = (clone(TANImputer(random_state=0)).fit(LOST, y).transform(LOST) for y in (None, labels))
    pd.testing.assert_frame_equal(a, b)


def test_the_same_seed_gives_the_same_model():
    one, other = (TANImputer(random_state=4).fit(LOST) for _ in range(2))
    np.testing.assert_array_equal(one.tables_.cells, other.tables_.cells)
    assert one.candidates_ == other.candidates_
    threads = TANImputer(random_state=4, n_jobs=2).fit(LOST)
    np.testing.assert_array_equal(one.tables_.cells, threads.tables_.cells)


def test_copies_impute_the_same():
    model = TANImputer(random_state=0).fit(LOST)
    expected = model.transform(LOST)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(other.transform(LOST), expected)


def test_imputation_before_a_classifier():
    y = KIND == "petrol"
    table = LOST.drop(columns="kind")
    pipeline = make_pipeline(TANImputer(random_state=0), NaiveBayesClassifier())
    search = GridSearchCV(pipeline, {"tanimputer__strategy": ["mean", "mode"]}, cv=2, error_score="raise")
    assert search.fit(table, y).best_score_ > 0.8


def test_many_rows_are_imputed_in_blocks(monkeypatch):
    model = TANImputer(n_components=2, random_state=0).fit(LOST)
    expected = model.transform(LOST)
    monkeypatch.setattr("tanlearn.density.imputer._BLOCK_NUMBERS", 100)
    pd.testing.assert_frame_equal(model.transform(LOST), expected)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (TableEncoder(discretizer=MDLPDiscretizer()), r"cut points must not depend on classes.*QuantileDiscretizer"),
        (TableEncoder(handle_missing="category"), "makes missing values a category.*Leave handle_missing out"),
        (TableEncoder(handle_missing="auto"), "handle_missing='auto'"),
    ],
)
def test_encoders_that_need_classes_are_refused(encoder, message):
    with pytest.raises(ValueError, match=message):
        TANImputer(encoder=encoder).fit(LOST)


def test_invalid_arguments():
    with pytest.raises(ValueError, match="'strategy' parameter of TANImputer"):
        TANImputer(strategy="median").fit(LOST)
    with pytest.raises(ValueError, match="'n_components' parameter of TANImputer"):
        TANImputer(n_components=0).fit(LOST)
    model = TANImputer(n_components=1).fit(LOST)
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match=f"n_draws, .* must be a positive integer, got {wrong}"):
            model.draw(LOST, wrong)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(LOST[LOST.columns[::-1]])
    with pytest.raises(NotFittedError):
        TANImputer().transform(LOST)


def test_a_failed_fit_leaves_no_mix_of_two_models():
    model = TANImputer(n_components=1).fit(LOST)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.array([[np.inf], [1.0]]))
    with pytest.raises(NotFittedError):
        model.transform(LOST)


def test_imputed_categories_that_a_column_does_not_declare_are_added():
    rows = {"g": ["b", "a"] * 30, "h": ["y", "x"] * 30}
    imputer = TANImputer(n_components=1).fit(pd.DataFrame(rows))
    kind = pd.CategoricalDtype(["a", "c"], ordered=True)
    found = imputer.transform(pd.DataFrame({"g": pd.Series(["a", None], dtype=kind), "h": ["x", "y"]}))
    assert found["g"].tolist() == ["a", "b"]
    assert found["g"].dtype == pd.CategoricalDtype(["a", "c", "b"], ordered=True)
    for dtype, expected in ((pl.Enum(["a", "c"]), pl.Enum(["a", "c", "b"])), (pl.Categorical, pl.Categorical)):
        frame = pl.DataFrame({"g": pl.Series(["a", None], dtype=dtype), "h": ["x", "y"]})
        found = imputer.transform(frame)
        assert found["g"].to_list() == ["a", "b"]
        assert found["g"].dtype == expected


INTEGERS = [None if k % 6 == 0 else k % 5 for k in range(60)]
NUMBERS = [None if k % 7 == 0 else k for k in range(60)]
TYPES = [
    ("Int64", INTEGERS, "Int64"),
    ("UInt8", INTEGERS, "UInt8"),
    ("Int16", NUMBERS, "Float64"),
    ("int16[pyarrow]", INTEGERS, "int16[pyarrow]"),
    ("int16[pyarrow]", NUMBERS, "double[pyarrow]"),
    ("float32", NUMBERS, "float32"),
    ("Float32", NUMBERS, "Float32"),
    ("boolean", [None if k is None else k % 2 == 0 for k in NUMBERS], "boolean"),
    ("string", [None if k is None else "ab"[k % 2] for k in NUMBERS], "string"),
]


@pytest.mark.parametrize("strategy", ["mean", "draw"])
@pytest.mark.parametrize(("kind", "values", "expected"), TYPES)
def test_pandas_columns_keep_types_that_can_hold_the_values(kind, values, expected, strategy):
    lost = pd.DataFrame({"a": pd.array(values, dtype=kind), "b": np.arange(60) % 4})
    filled = TANImputer(strategy=strategy, n_components=1, random_state=0).fit_transform(lost)
    assert filled["a"].dtype == pd.Series(dtype=expected).dtype
    assert not filled["a"].isna().any()
    is_known = lost["a"].notna()
    assert filled["a"][is_known].tolist() == lost["a"][is_known].tolist()


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pl.UInt8, INTEGERS, pl.UInt8),
        (pl.Int16, NUMBERS, pl.Float64),
        (pl.Float32, NUMBERS, pl.Float32),
        (pl.Boolean, [None if k is None else k % 2 == 0 for k in NUMBERS], pl.Boolean),
    ],
)
def test_polars_columns_keep_types_that_can_hold_the_values(kind, values, expected):
    lost = pl.DataFrame({"a": pl.Series(values, dtype=kind), "b": np.arange(60) % 4})
    filled = TANImputer(n_components=1, random_state=0).fit_transform(lost)
    assert filled["a"].dtype == expected
    assert filled["a"].null_count() == 0


@pytest.mark.parametrize("kind", ["category", "float64", "Float32", "str", "boolean"])
def test_pandas_columns_without_values_stay_as_they_are(kind):
    lost = pd.DataFrame({"a": pd.Series([None] * 60, dtype=kind), "b": np.arange(60) % 4})
    filled = TANImputer(n_components=1, random_state=0).fit_transform(lost)
    pd.testing.assert_frame_equal(filled, lost)


@pytest.mark.parametrize("kind", [pl.Enum([]), pl.Categorical, pl.Float32, pl.String, pl.Null])
def test_polars_columns_without_values_stay_as_they_are(kind):
    lost = pl.DataFrame({"a": pl.Series([None] * 60, dtype=kind), "b": np.arange(60) % 4})
    assert TANImputer(n_components=1, random_state=0).fit_transform(lost).equals(lost)


def test_types_that_cannot_hold_the_imputed_values_are_replaced():
    columns = {"s": ["a", "b"] * 20, "i": [1000, 2000] * 20, "f": np.arange(40.0), "b": [True, False] * 20}
    imputer = TANImputer(n_components=1, strategy="mode", random_state=0).fit(pd.DataFrame(columns))
    for kind in ("float64", "boolean", "string", "Int8", "int8[pyarrow]"):
        filled = imputer.transform(pd.DataFrame({name: pd.Series([None, None], dtype=kind) for name in columns}))
        for name in columns:
            found = filled[name].tolist()
            assert [isinstance(v, str) for v in found] == [name == "s"] * 2
            assert [isinstance(v, bool | np.bool_) for v in found] == [name == "b"] * 2
        assert set(filled["i"]) <= {1000, 2000}
    for kind in (pl.Null, pl.Boolean, pl.String, pl.Int8, pl.Enum([]), pl.Categorical):
        filled = imputer.transform(pl.DataFrame({name: pl.Series([None, None], dtype=kind) for name in columns}))
        row = filled.row(0)
        assert [type(value) for value in row] == [str, int, float, bool]
        assert row[1] in (1000, 2000)
