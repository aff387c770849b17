"""The table encoder as a transformer of scikit-learn, and its codes for learners beside."""

import copy
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.sources.columns import read_columns

N = 240
RNG = np.random.default_rng(0)
Y = RNG.choice(["home", "office", "beach"], N)
FRAME = pd.DataFrame(
    {
        "town": np.where(RNG.random(N) < 0.7, np.char.upper(Y.astype(str)), "WELS"),
        "size": RNG.normal(size=N) + 4 * (Y == "beach"),
        "doors": RNG.integers(2, 6, N),
        "owner": RNG.random(N) < 0.5,
        "grade": pd.Categorical(RNG.choice(["b", "a"], N), categories=["c", "b", "a"]),
    },
    index=np.arange(1000, 1000 + N),
).astype({"town": object})
GAPS = FRAME.copy()
GAPS.loc[1003, "town"] = None
GAPS.loc[1004, "size"] = np.nan
GAPS["doors"] = GAPS["doors"].astype("Int64")
GAPS.loc[1005, ["doors", "grade"]] = None

every_library = pytest.mark.parametrize("library", ["pandas", "polars"])
every_table = pytest.mark.parametrize("table", [FRAME, GAPS, pl.from_pandas(GAPS)], ids=["whole", "gaps", "polars"])


@pytest.mark.filterwarnings("ignore:discretization left")  # some checks fit noise
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        TableEncoder(),
        TableEncoder(discrete_features=True),
        TableEncoder(discrete_features=False),
        TableEncoder(handle_unknown="error"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_table
def test_transform_gives_the_codes_of_learners_row_by_row_and_nan_where_nothing_is_known(table):
    encoder = TableEncoder().fit(table, Y)
    codes, found = encoder.encode(table), encoder.transform(table)
    assert (codes.shape, codes.dtype) == ((5, N), np.uint8)
    assert (found.shape, found.dtype) == ((N, 5), np.float64)
    np.testing.assert_array_equal(np.isnan(found), codes.T == 255)
    np.testing.assert_array_equal(np.nan_to_num(found, nan=255), codes.T)
    gaps = 0 if table is FRAME else 1
    assert np.isnan(found).sum(axis=0).tolist() == [gaps, gaps, gaps, 0, gaps]


def test_codes_of_two_bytes_and_unseen_categories():
    X = pd.DataFrame({"key": np.arange(300).astype(str), "few": np.arange(300) % 2})
    encoder = TableEncoder().fit(X, np.arange(300) % 2)
    np.testing.assert_array_equal(np.sort(encoder.transform(X)[:, 0]), np.arange(300))
    unseen = pd.DataFrame({"key": ["300", None, "7"], "few": [1, 2, 0]})
    assert np.isnan(encoder.transform(unseen)).tolist() == [[True, False], [True, True], [False, False]]
    strict = TableEncoder(handle_unknown="error").fit(X, np.arange(300) % 2)
    with pytest.raises(ValueError, match=r"column 'key' holds '300' in row 0, which was not seen in fit"):
        strict.transform(unseen)
    assert strict.encode(unseen, handle_unknown="missing")[0, :2].tolist() == [65535, 65535]
    with pytest.raises(ValueError, match="which was not seen in fit"):
        encoder.encode(unseen, handle_unknown="error")


@pytest.mark.parametrize(
    "as_table", [np.asarray, np.asfortranarray, pd.DataFrame, lambda X: pd.DataFrame(X).astype(object)]
)
@pytest.mark.parametrize("n_continuous", [0, 1])
def test_unseen_numbers_are_missing_or_an_error_in_tables_of_numbers(as_table, n_continuous):
    X = np.column_stack([np.arange(60) % 3, np.arange(60) % 4, np.linspace(0, 1, 60)])[:, : 2 + n_continuous]
    new = X[:5].copy()
    new[3, 1] = 7
    for option in ("missing", "error"):
        encoder = TableEncoder(handle_unknown=option).fit(as_table(X), np.arange(60) // 30)
        assert encoder.is_discrete_.tolist() == [True, True] + [False] * n_continuous
        codes = encoder.encode(as_table(new), handle_unknown="missing")
        assert codes[:2].tolist() == [[0, 1, 2, 0, 1], [0, 1, 2, 255, 0]]
        with pytest.raises(ValueError, match=r"X column 1 holds 7(\.0)? in row 3, which was not seen in fit"):
            encoder.encode(as_table(new), handle_unknown="error")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            new[4, 0] = np.nan  # missing, and not unseen
            assert encoder.encode(as_table(np.delete(new, 3, axis=0)))[0].tolist() == [0, 1, 2, 255]
            new[4, 0] = 1


@pytest.mark.filterwarnings("ignore:discretization left")
def test_ranges_grow_with_later_rows():
    X = pd.DataFrame({"town": ["a", "b"] * 3, "x": [2.5, 3.5, np.nan, 4.0, 5.0, 6.0], "gone": [np.nan] * 6})
    encoder = TableEncoder(discrete_features=["town"]).fit(X, [0, 1] * 3)
    assert repr(encoder.value_ranges_) == "[None, (2.5, 6.0), (nan, nan)]"
    inside = X.assign(x=[3.0, np.nan, 2.5, 6.0, 4.0, 4.0], town="z")
    assert encoder.with_ranges_of(read_columns(inside)) is encoder
    for low, high in ((2.0, 3.0), (3.0, 7.0), (-1.0, 9.0)):
        wider = encoder.with_ranges_of(read_columns(X.assign(x=[low, high, 3.0, np.nan, 3.0, 3.0], gone=7.0)))
        assert wider.value_ranges_ == [None, (min(low, 2.5), max(high, 6.0)), (7.0, 7.0)]
        assert repr(encoder.value_ranges_) == "[None, (2.5, 6.0), (nan, nan)]"
        assert wider.encode(X).tolist() == encoder.encode(X).tolist()
    assert encoder.with_ranges([None, None, None]) is encoder
    assert encoder.with_ranges([(0.0, 1.0), (2.0, 3.0), None]).value_ranges_[:2] == [None, (2.0, 6.0)]


@every_table
@pytest.mark.parametrize("weight", [None, np.arange(N) % 3])
def test_fit_transform_is_fit_and_transform_also_of_rows_without_weight(table, weight):
    if weight is not None:
        table = pd.DataFrame(table) if isinstance(table, pd.DataFrame) else table.to_pandas()
        table = table.assign(town=table["town"].mask(weight == 0, "nowhere else"))
    fitted = TableEncoder().fit(table, Y, sample_weight=weight)
    found = TableEncoder().fit_transform(table, Y, sample_weight=weight)
    np.testing.assert_array_equal(found, fitted.transform(table))
    assert np.isnan(found[:, 0]).sum() >= (0 if weight is None else N // 3)


def test_names_come_out_as_they_went_in():
    encoder = TableEncoder().fit(FRAME, Y)
    assert encoder.get_feature_names_out().tolist() == list(FRAME)
    assert TableEncoder().fit(FRAME.to_numpy(), Y).get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3", "x4"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(["a", "b", "c", "d", "e"])
    with pytest.raises(NotFittedError):
        TableEncoder().get_feature_names_out()


@every_library
@every_table
def test_frames_where_they_are_asked_for(library, table):
    expected = TableEncoder().fit(table, Y).transform(table)
    encoder = TableEncoder().set_output(transform=library)
    for found in (encoder.fit_transform(table, Y), encoder.transform(table)):
        assert type(found).__module__.startswith(library)
        assert list(found.columns) == list(FRAME)
        np.testing.assert_array_equal(found.to_numpy(), expected)
        if library == "pandas" and isinstance(table, pd.DataFrame):
            assert found.index.equals(table.index)
    np.testing.assert_array_equal(encoder.encode(table), TableEncoder().fit(table, Y).encode(table))
    model = NaiveBayesClassifier(encoder=encoder).fit(table, Y)
    np.testing.assert_array_equal(model.predict_proba(table), NaiveBayesClassifier().fit(table, Y).predict_proba(table))
    assert model.sample(3, random_state=0)[0].shape == (3, 5)


PIPELINES = {
    "trees": [HistGradientBoostingClassifier(max_iter=5)],
    "one-hot": [OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000)],
    "imputed": [SimpleImputer(strategy="most_frequent"), LogisticRegression(max_iter=1000)],
    "ordinal": [
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
        HistGradientBoostingClassifier(max_iter=5),
    ],
}


@every_table
@pytest.mark.parametrize("steps", PIPELINES.values(), ids=PIPELINES)
def test_estimators_of_scikit_learn_learn_from_its_codes(table, steps):
    pipeline = make_pipeline(TableEncoder(), *map(clone, steps)).fit(table, Y)
    assert pipeline.score(table, Y) > 0.7
    assert pipeline[:1].get_feature_names_out().tolist() == list(FRAME)
    rows = GAPS[:1].assign(town="Wien", grade=None)
    assert pipeline.predict(rows if isinstance(table, pd.DataFrame) else pl.from_pandas(rows)).shape == (1,)


def test_estimators_that_know_no_gaps_refuse_them():
    with pytest.raises(ValueError, match="LogisticRegression does not accept missing values"):
        make_pipeline(TableEncoder(), LogisticRegression()).fit(GAPS, Y)


@every_table
@pytest.mark.parametrize("learner", [NaiveBayesClassifier, lambda **of: BayesNetClassifier(structure=ChowLiu(), **of)])
def test_a_classifier_behind_the_encoder_is_the_classifier_alone(table, learner):
    table = table.drop(columns="grade") if isinstance(table, pd.DataFrame) else table.drop("grade")  # "c" never occurs
    inside = learner(encoder=TableEncoder(discrete_features=True))
    pipeline, alone = make_pipeline(TableEncoder(), inside).fit(table, Y), learner().fit(table, Y)
    np.testing.assert_array_equal(pipeline[-1].encoder_.n_states_, alone.encoder_.n_states_)
    np.testing.assert_array_equal(pipeline.predict_proba(table), alone.predict_proba(table))


@every_library
@every_table
def test_columns_of_a_mixed_frame(library, table):
    columns = make_column_transformer(
        (TableEncoder(discrete_features=["doors"]), ["doors", "size"]),
        (TableEncoder().set_output(transform=library), ["town", "owner"]),
        remainder="drop",
        verbose_feature_names_out=False,
    )
    found = columns.fit_transform(table, Y)
    whole = TableEncoder().fit(table, Y).transform(table)
    np.testing.assert_array_equal(np.asarray(found), whole[:, [2, 1, 0, 3]])
    np.testing.assert_array_equal(np.asarray(columns.transform(table)), whole[:, [2, 1, 0, 3]])
    assert columns.get_feature_names_out().tolist() == ["doors", "size", "town", "owner"]
    frame = clone(columns).set_output(transform=library).fit(table, Y).transform(table)
    assert list(frame.columns) == ["doors", "size", "town", "owner"]
    pipeline = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=5)).fit(table, Y)
    assert pipeline.score(table, Y) > 0.7


def test_weights_are_routed_to_it():
    weight = np.where(FRAME["town"] == "WELS", 0, 1)
    with sklearn.config_context(enable_metadata_routing=True):
        encoder = TableEncoder().set_fit_request(sample_weight=True)
        learner = LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(encoder, OneHotEncoder(), learner).fit(FRAME, Y, sample_weight=weight)
    assert pipeline[0].categories_[0].tolist() == ["BEACH", "HOME", "OFFICE"]


class Blunt(BaseEstimator):
    """A discretizer that takes all numbers for the same."""

    def fit(self, X, y, sample_weight=None):
        self.n_states_ = np.ones(X.shape[1], int)
        return self

    def transform(self, X):
        return np.zeros(X.shape, np.uint8)


@pytest.mark.filterwarnings("ignore:discretization left")
def test_its_parameters_are_searched_in_a_pipeline():
    pipeline = make_pipeline(TableEncoder(), HistGradientBoostingClassifier(max_iter=3))
    grid = {"tableencoder__discretizer": [None, Blunt()]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(FRAME, Y)
    fine, blunt = search.cv_results_["mean_test_score"]
    assert fine > blunt + 0.1


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda encoder: pickle.loads(pickle.dumps(encoder))])
def test_copies_transform_the_same(make):
    encoder = TableEncoder(handle_unknown="error").fit(GAPS, Y)
    np.testing.assert_array_equal(make(encoder).transform(GAPS), encoder.transform(GAPS))
    unfitted = make(clone(encoder))
    assert not hasattr(unfitted, "n_states_")
    np.testing.assert_array_equal(unfitted.fit_transform(GAPS, Y), encoder.transform(GAPS))


def test_classes_are_asked_for():
    with pytest.raises(ValueError, match="TableEncoder estimator requires y to be passed, but the target y is None"):
        TableEncoder().fit(FRAME, None)


# The way back ----------------------------------------------------------------------------------------------------


@every_library
@every_table
def test_inverse_transform_gives_values_with_the_same_codes(library, table):
    encoder = TableEncoder().fit(table, Y)
    codes = encoder.transform(table)
    back = encoder.inverse_transform(codes)
    assert (back.shape, back.dtype) == ((N, 5), object)
    assert back.tolist() == encoder.decode(encoder.encode(table)).tolist()
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame(back, columns=list(FRAME))), codes)
    town, size = back[:, 0], back[:, 1]
    assert [value is None for value in town] == np.isnan(codes[:, 0]).tolist()
    assert set(town) - {None} == {"HOME", "OFFICE", "BEACH", "WELS"}
    assert set(size) - {None} == set(encoder.typical_values_[1].tolist())
    frame = clone(encoder).set_output(transform=library).fit_transform(table, Y)
    assert encoder.inverse_transform(frame).tolist() == back.tolist()


def test_inverse_transform_refuses_what_are_no_codes():
    encoder = TableEncoder().fit([["a", 0.1], ["b", 0.3], ["a", 9.0]], [0, 0, 1])
    for code in (2, -1, 0.5, 255, 1e300):
        with pytest.raises(ValueError, match=re.escape(f"code {float(code)} of feature 0, sample 1, is out of range")):
            encoder.inverse_transform([[0, 1], [code, 0]])
    with pytest.raises(
        ValueError, match="X must hold codes in 2 columns, one per feature, as transform returns them, got 1"
    ):
        encoder.inverse_transform([[0], [1]])
    with pytest.raises(ValueError, match="X contains infinity"):
        encoder.inverse_transform([[0, np.inf]])
    with pytest.raises(NotFittedError):
        TableEncoder().inverse_transform([[0]])
    with pytest.raises(ValueError, match="code 2 of feature 0, sample 0, is out of range: the feature has 2 codes"):
        encoder.decode([[2], [0]])
    for codes in ([[0]], [[0.0], [0.0]]):
        with pytest.raises(
            ValueError, match=r"codes must be an integer array with 2 rows \(one per feature\), as returned by encode"
        ):
            encoder.decode(codes)


@pytest.mark.parametrize("word", ["raise", "", 1])
def test_another_word_for_unknown_categories_is_refused(word):
    encoder = TableEncoder().fit(FRAME, Y)
    with pytest.raises(ValueError, match=f"handle_unknown must be 'missing' or 'error', got {word!r}"):
        encoder.encode(FRAME, handle_unknown=word)


def test_parameters_are_examined_before_the_table():
    with pytest.raises(ValueError, match="'n_jobs' parameter"):
        TableEncoder(n_jobs="many").fit([[1]], [1, 2])
