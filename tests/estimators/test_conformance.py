"""scikit-learn's own checks on every public estimator, and what its users do besides: frames, searches, ensembles."""

import copy
import pickle
import sys

import joblib
import numba
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numba.core.dispatcher import Dispatcher
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_validate, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    CategoryEncoder,
    ConditionalNLL,
    ConformalClassifier,
    ConjugateGradient,
    GradientTraining,
    Hybrid,
    KTreeClassifier,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    SemiSupervisedClassifier,
    TableEncoder,
    TANClassifier,
    TANSearchCV,
    TermNetClassifier,
    dask,
)
from tanlearn.baselines import (
    AnDEClassifier,
    AODEClassifier,
    ChowLiu,
    KDependence,
    MarkovBlanketClassifier,
    MultinetClassifier,
    SelectiveKDependenceClassifier,
    SemiNaiveBayesClassifier,
    WeightedNaiveBayesClassifier,
)
from tanlearn.kernels._interpreter import compile_always

#: Expected failures with their reasons; strict, so a check that starts to pass has to leave this list.
GRADIENT = {
    "check_sample_weight_equivalence_on_dense_data": (
        "mini-batches are drawn from rows, so repeating a row changes the draw; the expected gradient is equal"
    ),
}
COUNTS = {
    "check_fit_score_takes_y": (
        "it goes on with partial_fit after fit, which keeps no counts to go on from (those of pairs can be larger than "
        "the data), and to forget the rows of fit in silence would be worse"
    ),
}
FOLDS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "folds are dealt, and bootstrap samples drawn, row by row, so repeating a row changes both"
    ),
}
COMPLETE_ROWS = {
    "check_estimators_pickle": "its search scores complete rows only; missing values are marginalized in prediction",
}
TREES = {
    "check_sample_weight_equivalence_on_dense_data": FOLDS["check_sample_weight_equivalence_on_dense_data"],
    "check_non_transformer_estimators_n_iter": "max_iter and n_iter_ belong to trained weights, not to those of trees",
}
LABELED_ROWS = {
    "check_non_transformer_estimators_n_iter": "without unlabeled rows there are no iterations",
}
EXPECTED = {
    SemiNaiveBayesClassifier: COMPLETE_ROWS,
    dask.BayesForestClassifier: FOLDS,
    BayesEnsembleClassifier: FOLDS,
    BayesForestClassifier: FOLDS,
    BoostedTermsClassifier: FOLDS,
    ConformalClassifier: FOLDS,
    SemiSupervisedClassifier: LABELED_ROWS,
    TermNetClassifier: FOLDS,
    **dict.fromkeys((KTreeClassifier, TANClassifier, TANSearchCV), GRADIENT),
}

DASK = [
    dask.NaiveBayesClassifier(),
    dask.BayesNetClassifier(structure=ChowLiu()),
    dask.AODEClassifier(),
    dask.BayesForestClassifier(n_estimators=4, weights=None, random_state=0),
]

ESTIMATORS = [
    NaiveBayesClassifier(),
    BayesNetClassifier(structure=ChowLiu()),
    AODEClassifier(),
    BayesForestClassifier(n_estimators=4, random_state=0),
    BayesForestClassifier(n_estimators=4, weights=None, random_state=0),
    AnDEClassifier(),
    SelectiveKDependenceClassifier(sparse=True),
    MarkovBlanketClassifier(),
    SemiNaiveBayesClassifier(direction="backward", validation=None),
    WeightedNaiveBayesClassifier(),
    WeightedNaiveBayesClassifier(weighting="trees", random_state=0),
    MultinetClassifier(),
    TANClassifier(n_epochs=20, training=GradientTraining(batch_size=10), random_state=0),
    KTreeClassifier(
        loss=ConditionalNLL(), n_epochs=20, training=GradientTraining(batch_size=10), calibrate=False, random_state=0
    ),
    TermNetClassifier(),
    BoostedTermsClassifier(max_terms=40, random_state=0),
    BayesEnsembleClassifier(
        forest=BayesForestClassifier(n_estimators=2),
        network=TermNetClassifier(max_parents=0),
        boosting=BoostedTermsClassifier(max_terms=40),
        random_state=0,
    ),
    TANSearchCV(
        TANClassifier(n_epochs=20, training=GradientTraining(batch_size=10)),
        {"training__learning_rate": [0.03, 0.1]},
        n_iter=2,
        random_state=0,
    ),
]
#: Estimators above with other parameters, for scikit-learn's checks only.
OTHER_PARAMETERS = [
    TermNetClassifier(max_parents=0),
    TermNetClassifier(max_parents=3),
    TermNetClassifier(max_parents=2, structure=KDependence(k=2)),
    BoostedTermsClassifier(max_terms=10, max_splits=1, random_state=0),
    NaiveBayesClassifier(encoder=TableEncoder(handle_missing="category")),
    ConformalClassifier(NaiveBayesClassifier(), cv=2, random_state=0),
    SemiSupervisedClassifier(NaiveBayesClassifier()),
    SemiSupervisedClassifier(BayesNetClassifier(structure=ChowLiu())),
]


def expected_failures(estimator):
    """Return checks that an estimator fails, and why."""
    streams = COUNTS if hasattr(estimator, "partial_fit") else {}
    weights = TREES if getattr(estimator, "weighting", None) == "trees" else {}
    return EXPECTED.get(type(estimator), {}) | weights | streams


@pytest.mark.filterwarnings("ignore:discretization left")  # some checks fit noise
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([*ESTIMATORS, *OTHER_PARAMETERS, *DASK], expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


Y = np.random.default_rng(0).choice(["diesel", "electric", "petrol"], 120)
FRAME = pd.DataFrame(
    {
        "noise": np.random.default_rng(1).choice(["a", "b"], 120),
        "volume": np.random.default_rng(2).normal(size=120) + 3 * (Y == "petrol"),
        "plug": (Y == "electric") ^ (np.arange(120) % 10 == 0),
        "doors": np.random.default_rng(3).integers(2, 6, 120),
    },
    index=np.arange(1000, 1120),
)
WEIGHT = np.random.default_rng(4).integers(1, 4, 120)

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
every_library = pytest.mark.parametrize("library", ["pandas", "polars"])


def fitted_probabilities(estimator, X=FRAME, **options):
    """Return what a fitted copy says of the rows that it was fitted to."""
    return clone(estimator).fit(X, Y, **options).predict_proba(X)


@every_library
@pytest.mark.parametrize("frame", [FRAME[["volume", "doors"]], pl.from_pandas(FRAME[["volume", "doors"]])])
@pytest.mark.parametrize("transformer", [MDLPDiscretizer(), CategoryEncoder()])
def test_transformers_make_frames_of_codes(transformer, frame, library):
    codes = clone(transformer).fit(frame, Y).transform(frame)
    found = clone(transformer).set_output(transform=library).fit(frame, Y).transform(frame)
    assert type(found).__module__.startswith(library)
    assert list(found.columns) == ["volume", "doors"]
    np.testing.assert_array_equal(found.to_numpy(), codes)
    assert library == "polars" or found.index.equals(getattr(frame, "index", pd.RangeIndex(120)))


@pytest.mark.parametrize("transformer", [MDLPDiscretizer(), CategoryEncoder()])
def test_names_go_through_transformers(transformer):
    named, nameless = (clone(transformer).fit(X, Y) for X in (FRAME[["doors"]], FRAME[["doors"]].to_numpy()))
    assert named.get_feature_names_out().tolist() == ["doors"]
    assert nameless.get_feature_names_out().tolist() == ["x0"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        named.get_feature_names_out(["windows"])


@every_library
@every_estimator
def test_frames_asked_of_all_transformers_change_no_model(estimator, library):
    """Encoders and discretizers inside are transformers, too, and asked for frames with them."""
    expected = fitted_probabilities(estimator)
    with sklearn.config_context(transform_output=library):
        np.testing.assert_array_equal(fitted_probabilities(estimator), expected)


@every_library
def test_a_discretizer_of_frames_gives_an_encoder_the_same_codes(library):
    encoder = TableEncoder(discretizer=MDLPDiscretizer().set_output(transform=library)).fit(FRAME, Y)
    expected = TableEncoder().fit(FRAME, Y)
    np.testing.assert_array_equal(encoder.encode(FRAME), expected.encode(FRAME))
    np.testing.assert_array_equal(encoder.typical_values_[1], expected.typical_values_[1])


@every_estimator
@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_columns_that_moved_or_were_renamed_are_refused(estimator, convert):
    model = clone(estimator).fit(convert(FRAME), Y)
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    assert model.n_features_in_ == 4
    for changed in (
        FRAME[FRAME.columns[::-1]],
        FRAME.rename(columns={"doors": "windows"}),
        FRAME.drop(columns="doors"),
    ):
        for method in (model.predict, model.predict_proba):
            with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
                method(convert(changed))


@every_estimator
def test_weights_are_routed_where_they_are_requested(estimator):
    weighted = fitted_probabilities(estimator, sample_weight=WEIGHT)
    assert (weighted != fitted_probabilities(estimator)).any()
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), asking).fit(FRAME, Y, sample_weight=WEIGHT)
        np.testing.assert_array_equal(pipeline.predict_proba(FRAME), weighted)
        search = GridSearchCV(asking, {}, cv=2)
        np.testing.assert_array_equal(search.fit(FRAME, Y, sample_weight=WEIGHT).predict_proba(FRAME), weighted)
        options = {"cv": 2, "return_estimator": True, "return_indices": True, "params": {"sample_weight": WEIGHT}}
        found = cross_validate(asking, FRAME, Y, **options)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_validate(clone(estimator), FRAME, Y, **options)
    for k, rows in enumerate(found["indices"]["test"]):
        y = found["estimator"][k].predict(FRAME.iloc[rows])
        assert found["test_score"][k] == accuracy_score(Y[rows], y, sample_weight=WEIGHT[rows])


def test_weights_of_chunks_are_routed():
    chunks = NaiveBayesClassifier(encoder=TableEncoder(discrete_features=True))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(chunks).set_partial_fit_request(sample_weight=True, classes=True)
        one_of_three = OneVsRestClassifier(asking)
        one_of_three.partial_fit(FRAME, Y, classes=np.unique(Y), sample_weight=WEIGHT)
    for label, model in zip(np.unique(Y), one_of_three.estimators_, strict=True):
        expected = clone(chunks).partial_fit(FRAME, (label == Y).astype(int), classes=[0, 1], sample_weight=WEIGHT)
        np.testing.assert_array_equal(model.tables_.cells, expected.tables_.cells)


def test_search_over_parameters_at_any_depth():
    learner = BayesNetClassifier(
        structure=ChowLiu(),
        parameters=ConjugateGradient(loss=Hybrid(), max_iter=3),
        encoder=TableEncoder(discretizer=MDLPDiscretizer()),
    )
    grid = {
        "structure__penalty": [None, "bic"],
        "parameters__loss__gamma": [1, 30],
        "encoder__discrete_features": ["auto", ["doors", "noise"]],
    }
    search = GridSearchCV(learner, grid, cv=2, error_score="raise").fit(FRAME, Y)
    assert len(set(search.cv_results_["mean_test_score"])) > 2
    by_hand = clone(learner).set_params(**search.best_params_).fit(FRAME, Y)
    np.testing.assert_array_equal(search.predict_proba(FRAME), by_hand.predict_proba(FRAME))
    whole = GridSearchCV(learner, {"parameters": [None], "encoder__discretizer": [None]}, cv=2).fit(FRAME, Y)
    assert whole.best_estimator_.parameters is None


@every_estimator
def test_copies_fitted_and_unfitted_predict_the_same(estimator, tmp_path):
    model = clone(estimator).fit(FRAME, Y)
    expected = model.predict_proba(FRAME)
    joblib.dump(model, tmp_path / "model")
    for mode in (None, "r"):
        np.testing.assert_array_equal(joblib.load(tmp_path / "model", mmap_mode=mode).predict_proba(FRAME), expected)
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict_proba(FRAME), expected)
    for unfitted in (clone(model), copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        assert not hasattr(unfitted, "classes_")
        np.testing.assert_array_equal(fitted_probabilities(unfitted), expected)


def count_compiled():
    """Return the number of types for which each kernel is compiled."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tanlearn.kernels.")]
    kernels = {kernel for module in modules for kernel in vars(module).values() if isinstance(kernel, Dispatcher)}
    return {kernel.py_func.__qualname__: len(kernel.signatures) for kernel in kernels}


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are plain Python here")
@every_estimator
def test_models_in_read_only_files_compile_no_kernel_again(estimator, tmp_path):
    frame = FRAME.assign(volume=FRAME["volume"].where(FRAME["noise"] == "a"))  # with missing values
    model = clone(estimator).fit(FRAME, Y)
    joblib.dump(model, tmp_path / "model")
    with compile_always():
        expected = [model.predict_proba(table) for table in (FRAME, frame)]
        before = count_compiled()
        mapped = joblib.load(tmp_path / "model", mmap_mode="r")
        found = [mapped.predict_proba(table) for table in (FRAME, frame)]
    np.testing.assert_array_equal(found, expected)
    assert count_compiled() == before


@every_estimator
def test_ensembles_take_frames_and_strings(estimator):
    members = [("one", estimator), ("other", NaiveBayesClassifier())]
    for ensemble in (
        CalibratedClassifierCV(estimator, cv=2),
        VotingClassifier(members, voting="soft"),
        BaggingClassifier(estimator, n_estimators=3, max_features=3, random_state=0),
        StackingClassifier(members, final_estimator=NaiveBayesClassifier(), cv=2),
    ):
        model = ensemble.fit(FRAME, Y)
        assert model.classes_.tolist() == ["diesel", "electric", "petrol"]
        np.testing.assert_allclose(model.predict_proba(FRAME).sum(axis=1), 1)
        assert model.score(FRAME, Y) > 0.8


@every_library
@every_estimator
def test_named_columns_come_out_of_a_column_transformer(estimator, library):
    frame = FRAME.assign(volume=FRAME["volume"].where(FRAME["doors"] > 2))
    columns = make_column_transformer(
        (SimpleImputer(), ["volume"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform=library)
    frame = frame if library == "pandas" else pl.from_pandas(frame)
    pipeline = make_pipeline(columns, estimator).fit(frame, Y)
    assert pipeline[-1].feature_names_in_.tolist() == ["volume", "noise", "plug", "doors"]
    assert pipeline.score(frame, Y) > 0.8


@every_estimator
def test_estimators_are_shown_with_all_their_parts(estimator):
    for shown in (clone(estimator), clone(estimator).fit(FRAME, Y), make_pipeline(FunctionTransformer(), estimator)):
        for part in (estimator, getattr(estimator, "structure", None), getattr(estimator, "estimator", None)):
            name = "" if part is None else type(part).__name__
            assert name in repr(shown)
            assert name in shown._repr_html_()


@pytest.mark.parametrize("y", [Y, Y == "petrol", pd.Series(Y, dtype="category", index=FRAME.index)])
@every_estimator
def test_scorers_take_classes_of_any_kind(estimator, y):
    scorers = ["accuracy", "neg_log_loss", "roc_auc_ovr"]
    found = cross_validate(estimator, FRAME, y, cv=2, scoring=scorers, error_score="raise")
    assert found["test_accuracy"].min() > 0.7
    assert found["test_roc_auc_ovr"].min() > 0.8
    assert found["test_neg_log_loss"].min() > -1
    model = clone(estimator).fit(FRAME, y)
    assert model.classes_.tolist() == sorted(set(y))
    assert set(model.predict(FRAME).tolist()) <= set(y)


@every_estimator
def test_curves_and_importances(estimator):
    sizes, _, scores = learning_curve(estimator, FRAME, Y, cv=2, train_sizes=[0.5, 1.0], error_score="raise")
    assert sizes.tolist() == [30, 60]
    assert scores[-1].mean() > 0.7
    drops = permutation_importance(clone(estimator).fit(FRAME, Y), FRAME, Y, n_repeats=3, random_state=0)
    assert drops.importances_mean[1:3].min() > 0.2 > drops.importances_mean[0]


def test_learning_curve_by_chunks():
    estimator = BayesNetClassifier(structure=ChowLiu(), encoder=TableEncoder(discrete_features=True))
    table = FRAME[["noise", "plug", "doors"]]
    options = {"cv": 2, "train_sizes": [0.5, 1.0], "error_score": "raise"}
    chunks = learning_curve(estimator, table, Y, exploit_incremental_learning=True, **options)
    np.testing.assert_array_equal(chunks[2], learning_curve(estimator, table, Y, **options)[2])


@every_estimator
def test_tables_in_read_only_files(estimator, tmp_path):
    arrays = {"X": FRAME[["volume", "plug", "doors"]].to_numpy(float), "y": np.unique(Y, return_inverse=True)[1]}
    arrays["w"] = WEIGHT.astype(float)
    joblib.dump(arrays, tmp_path / "table")
    files = joblib.load(tmp_path / "table", mmap_mode="r")
    assert isinstance(files["X"], np.memmap)
    one, other = (
        clone(estimator).fit(table["X"], table["y"], sample_weight=table["w"]).predict_proba(table["X"])
        for table in (arrays, files)
    )
    np.testing.assert_array_equal(one, other)
