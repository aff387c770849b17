"""Estimators that draw, complete and explain rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from tanlearn import (
    BayesNetClassifier,
    Calibration,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableEncoder,
    TANClassifier,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.models.calibration import EvidenceCalibration
from tanlearn.models.explanation import against_class

RNG = np.random.default_rng(0)


def table(n=300):
    """A category, a number and a copy of the category, that tell the class."""
    y = RNG.integers(0, 2, n)
    town = np.array(["Graz", "Linz", "Wien"])[y + RNG.integers(0, 2, n)]
    frame = pd.DataFrame({"town": town, "size": y + RNG.normal(size=n), "again": town})
    return frame, np.array(["no", "yes"])[y]


X, Y = table()
MODELS = [
    NaiveBayesClassifier(random_state=0),
    BayesNetClassifier(structure=ChowLiu()),
    BayesNetClassifier(structure=KDependence(k=2)),
    TANClassifier(n_epochs=5, random_state=0),
]


@pytest.fixture(params=MODELS, ids=lambda model: repr(model)[:60])
def model(request):
    return request.param.fit(X, Y)


def test_score_samples_is_the_sum_over_classes(model):
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(np.exp(model.score_samples(X)), np.exp(joint).sum(axis=1))
    assert model.score_samples(pd.DataFrame([[None] * 3], columns=X.columns)) == pytest.approx(
        0, abs=1e-12
    )  # anything is certain
    assert AODEClassifier().fit(X, Y).score_samples(X).shape == (300,)


def test_samples_are_like_the_training_rows(model):
    drawn, y = model.sample(4000, random_state=0)
    assert drawn.shape == (4000, 3)
    assert (y == "yes").mean() == pytest.approx((Y == "yes").mean(), abs=0.05)
    assert set(drawn[:, 0]) <= {"Graz", "Linz", "Wien"}
    assert np.isfinite(drawn[:, 1].astype(float)).all()
    again, _ = model.sample(4000, random_state=0)
    assert again.tolist() == drawn.tolist()
    given, y = model.sample(y=["yes"] * 5 + ["no"] * 5, random_state=1)
    assert (given.shape, y.tolist()) == ((10, 3), ["yes"] * 5 + ["no"] * 5)
    with pytest.raises(ValueError, match="y holds 'perhaps' in row 1, which is not among the classes: 'no', 'yes'"):
        model.sample(y=["yes", "perhaps"])


def test_rows_are_drawn_one_by_default_and_by_the_seed_of_the_estimator():
    model = NaiveBayesClassifier(random_state=7).fit(X, Y)
    drawn, y = model.sample()
    assert (drawn.shape, y.shape) == ((1, 3), (1,))
    rows = [model.sample(50, random_state=seed)[0].tolist() for seed in (None, 7, 8)]
    assert rows[0] == rows[1] != rows[2]
    assert model.sample(0)[0].shape == (0, 3)
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().sample()


def test_a_tree_draws_what_belongs_together():
    drawn, _ = BayesNetClassifier(structure=Structure([-1, -1, 0])).fit(X, Y).sample(2000, random_state=0)
    assert (drawn[:, 0] == drawn[:, 2]).mean() > 0.95
    independent, _ = NaiveBayesClassifier().fit(X, Y).sample(2000, random_state=0)
    assert (independent[:, 0] == independent[:, 2]).mean() < 0.7


def test_completion_leaves_what_is_there_and_fills_the_rest():
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, Y)
    gappy = X.copy()
    gappy.loc[::3, "again"] = None
    gappy.loc[::5, "size"] = np.nan
    gappy.loc[1, "town"] = "Wels"  # never seen: missing to the model, but not to the user
    full, y = model.complete(gappy)
    assert isinstance(full, pd.DataFrame)
    assert not full.isna().any().any()
    there = gappy.notna().to_numpy()
    assert (full.to_numpy()[there] == gappy.to_numpy()[there]).all()
    assert (full["again"] == X["again"]).mean() > 0.95  # the copy comes back
    assert set(y) == {"no", "yes"}
    _, y = model.complete(gappy, y=np.repeat("yes", 300))
    assert (y == "yes").all()
    as_polars, _ = model.complete(pl.from_pandas(gappy))
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars["again"].to_list() == full["again"].tolist()
    unnamed = BayesNetClassifier(structure=ChowLiu()).fit(X.to_numpy(), Y)
    as_lists, _ = unnamed.complete(gappy.to_numpy().tolist())
    assert as_lists[:, 2].tolist() == full["again"].tolist()
    assert model.complete(X)[0].equals(X)


@pytest.mark.parametrize("index", [[5, 3, 3, 9], list("dbac")])
def test_completed_frames_keep_their_index_and_their_argument_unchanged(index):
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, Y)
    rows = [["Aalen", 0.5, None], [None, 1.5, "Graz"], ["Wien", None, "Wien"], ["Linz", -0.5, None]]
    gappy = pd.DataFrame(rows, columns=X.columns, index=index)
    before = gappy.copy(deep=True)
    full, _ = model.complete(gappy)
    pd.testing.assert_frame_equal(gappy, before)
    assert full.index.tolist() == index
    assert full["town"].tolist() == ["Aalen", "Graz", "Wien", "Linz"]  # Aalen is unseen, and first in order
    assert full["again"].tolist()[1:] == ["Graz", "Wien", "Linz"]
    assert full["size"].tolist()[:2] + full["size"].tolist()[3:] == [0.5, 1.5, -0.5]
    as_polars = pl.DataFrame(rows, schema=list(X.columns), orient="row")
    assert model.complete(as_polars)[0].to_pandas().equals(full.reset_index(drop=True))


def test_columns_without_a_training_value_stay_as_they_are():
    encoder = TableEncoder(discrete_features=["town"], discretizer=None)
    train = pd.DataFrame({"town": ["a", "b"] * 9, "never": [None] * 18})
    model = NaiveBayesClassifier(encoder=encoder).fit(train, [0, 1] * 9)
    rows = pl.DataFrame({"town": [None, "a"], "never": [1.5, None]})
    assert model.complete(rows)[0]["never"].to_list() == [1.5, None]
    full, _ = model.complete(rows.to_pandas())
    assert full["never"].isna().tolist() == [False, True]
    assert full["town"].notna().all()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_explanations_add_up(model, missing):
    gappy = X.astype(object).mask(RNG.random(X.shape) < missing)
    joint = model.predict_joint_log_proba(gappy)
    contributions = model.explain(gappy)
    assert contributions.shape == (300, 4, 2)
    np.testing.assert_allclose(contributions.sum(axis=1), joint, atol=1e-10)
    assert (contributions[:, :3][gappy.isna().to_numpy()] == 0).all()
    odds, log_p = model.explain(gappy, against="no"), model.predict_log_proba(gappy)
    np.testing.assert_allclose(odds.sum(axis=1), log_p - log_p[:, :1], atol=1e-10)
    with pytest.raises(ValueError, match="against must be one of the classes: 'no', 'yes', got 'maybe'"):
        model.explain(gappy, against="maybe")


@pytest.mark.parametrize("calibration", [Calibration(3.0), Calibration(2.0, power=0.5, pivot=4.0)])
def test_explained_odds_are_those_of_the_calibrated_probabilities(calibration):
    rows, y = load_iris(return_X_y=True)
    model = NaiveBayesClassifier().fit(rows, y)
    plain = model.explain(rows, against=1)
    model.calibration_ = calibration
    odds, log_p = model.explain(rows, against=1), model.predict_log_proba(rows)
    np.testing.assert_allclose(odds.sum(axis=1), log_p - log_p[:, [1]], rtol=1e-9, atol=1e-9)
    assert (odds[..., 1] == 0).all()
    for c in (0, 2):  # a factor a row and class
        factor = (log_p[:, c] - log_p[:, 1]) / plain[..., c].sum(axis=1)
        np.testing.assert_allclose(odds[..., c], plain[..., c] * factor[:, np.newaxis], rtol=1e-9)
    np.testing.assert_allclose(model.explain(rows).sum(axis=1), model.predict_joint_log_proba(rows), rtol=1e-12)


def test_explained_odds_have_the_shift_of_the_class_prior():
    rows, y = load_iris(return_X_y=True)
    model = NaiveBayesClassifier().fit(rows, y)
    plain = model.explain(rows, against=1)
    model.calibration_ = EvidenceCalibration(2.0, prior_shift=(0.5, -1.0, 0.25))
    odds, log_p = model.explain(rows, against=1), model.predict_log_proba(rows)
    np.testing.assert_allclose(odds.sum(axis=1), log_p - log_p[:, [1]], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(odds[:, :-1], plain[:, :-1] / 2, rtol=1e-12)
    assert (odds[..., 1] == 0).all()


def test_explained_odds_of_what_is_impossible_or_equal_are_no_nan():
    model = NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0)).fit([["a"], ["b"]] * 4, ["x", "y"] * 4)
    model.calibration_ = Calibration(2.0)
    odds = model.explain([["a"], ["b"], [None]], against="x")[..., 1]
    assert odds[:, 0].tolist() == [-np.inf, np.inf, 0]
    model.fit([["a", "d"], ["b", "c"]] * 4, ["x", "y"] * 4)
    for power in (1.0, 0.5):  # as good as equal, and impossible in both
        model.calibration_ = Calibration(2.0, power=power)
        odds = model.explain([["a", "c"], [None, None]], against="x")[..., 1]
        assert odds.tolist() == [[-np.inf, np.inf, 0], [0, 0, 0]]


def test_odds_of_classes_that_are_as_good_as_equal_are_no_noise():
    contributions = np.log(np.array([[[0.2, 0.4], [0.4, 0.2 * (1 + 4e-16)], [0.5, 0.5]]]))
    for power in (1.0, 0.5):
        odds = against_class(contributions, 0, np.array([0, 1]), Calibration(8.0, power=power))[0, :, 1]
        np.testing.assert_allclose(odds, np.log([2, 0.5, 1]) / 8, atol=1e-12)


def test_decoding_gives_values_with_the_same_codes():
    encoder = NaiveBayesClassifier().fit(X, Y).encoder_
    codes = encoder.encode(X)
    np.testing.assert_array_equal(encoder.encode(pd.DataFrame(encoder.decode(codes), columns=X.columns)), codes)
    with pytest.raises(ValueError, match="code 9 of feature 0, sample 0, is out of range: the feature has 3"):
        encoder.decode(np.array([[9], [0], [0]]))
    with pytest.raises(ValueError, match="codes must be an integer array with 3 rows"):
        encoder.decode(codes[:2])


def test_means_of_huge_values_do_not_overflow():
    huge = np.repeat([1.7e308, -1.7e308], 20)[:, np.newaxis]
    encoder = TableEncoder(discrete_features=False).fit(huge, np.repeat([0, 1], 20))
    np.testing.assert_allclose(encoder.typical_values_[0], [-1.7e308, 1.7e308])


def test_models_without_one_structure_have_no_such_methods():
    for name in ("sample", "complete", "explain"):
        assert not hasattr(AODEClassifier(), name)


def test_what_is_filled_in_fits_its_column():
    """Means between integers make floating numbers; declared categories stay declared."""
    n = np.repeat(np.arange(100), 3)
    frame = pl.DataFrame({"n": n, "town": pl.Series(np.array(["a", "b", "c"])[n % 3], dtype=pl.Enum(["a", "b", "c"]))})
    model = NaiveBayesClassifier().fit(frame, (n > 50).astype(int))
    gappy = frame.with_columns(
        n=pl.when(pl.int_range(300) == 7).then(None).otherwise(pl.col("n")),
        town=pl.when(pl.int_range(300) == 8).then(None).otherwise(pl.col("town")),
    )
    full, _ = model.complete(gappy)
    assert full.null_count().row(0) == (0, 0)
    assert full["town"].dtype == frame["town"].dtype
    pandas = gappy.to_pandas()
    assert model.complete(pandas)[0]["town"].dtype == pandas["town"].dtype


def test_typical_values_weigh_rows():
    weights = RNG.integers(0, 3, 300)
    rows = np.repeat(np.arange(300), weights)
    weighted = NaiveBayesClassifier().fit(X, Y, weights).encoder_.typical_values_[1]
    repeated = NaiveBayesClassifier().fit(X.iloc[rows], Y[rows]).encoder_.typical_values_[1]
    np.testing.assert_allclose(weighted, repeated)
