"""Probabilities of single rows: those of a table of one row, for all models and all patterns of missing values."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    HierarchicalSmoothing,
    ImpossibleRowsWarning,
    KTreeClassifier,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableEncoder,
    TANClassifier,
    TermNetClassifier,
)
from tanlearn.baselines import AODEClassifier, ChowLiu
from tanlearn.models.calibration import Calibration, EvidenceCalibration

from .test_row_predictor import table

ROWS = [("a", 1, True, 0.5), ("c", 3, False, -0.25)]
UNSEEN = [("new", 1, True, 0.5), ("a", 17, True, -50.0), ("new", None, None, 0.5), ("a", 2.5, 7, None)]
TWO, THREE = [[-1, -1], [0, -1], [0, 1], [1, 2]], [[-1] * 3, [0, -1, -1], [0, 1, -1], [1, 2, 0]]
FOREST = {"n_estimators": 4, "random_state": 0}

MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "tree": BayesNetClassifier(structure=ChowLiu()),
    "two parents": BayesNetClassifier(structure=Structure(TWO)),
    "three parents": BayesNetClassifier(structure=Structure(THREE)),
    "sparse counts": BayesNetClassifier(structure=Structure(TWO), parameters=HierarchicalSmoothing(m=1.0, sparse=True)),
    "gradient TAN": TANClassifier(n_epochs=2, random_state=0),
    "few bits": TANClassifier(n_epochs=2, bits=(2, 1), random_state=0),
    "k-tree": KTreeClassifier(n_epochs=2, random_state=0),
    "terms": TermNetClassifier(random_state=0),
    "boosted terms": BoostedTermsClassifier(max_terms=20, random_state=0),
    "AODE": AODEClassifier(),
    "weighted forest": BayesForestClassifier(**FOREST),
    "averaged forest": BayesForestClassifier(weights=None, **FOREST),
    "ensemble": BayesEnsembleClassifier(forest=BayesForestClassifier(**FOREST), random_state=0),
    "missing category": NaiveBayesClassifier(encoder=TableEncoder(handle_missing="category")),
}


def assert_rows_are_predicted_as_tables(model, predictor, rows):
    """Compare predictions of single rows with those of tables of one row, bit for bit."""
    for row in rows:
        X = pd.DataFrame([row], columns=table()[0].columns, dtype=object)
        assert predictor.predict(row) == model.predict(X)[0], row
        np.testing.assert_array_equal(predictor.predict_proba(row), model.predict_proba(X)[0])
        if hasattr(model, "predict_joint_log_proba"):
            np.testing.assert_array_equal(predictor.log_joint(row), model.predict_joint_log_proba(X)[0])


def patterns(rows):
    """Return the rows with each subset of their values missing."""
    masks = list(itertools.product([False, True], repeat=len(rows[0])))
    return [
        tuple(None if is_missing else value for value, is_missing in zip(row, mask, strict=True))
        for row in rows
        for mask in masks
    ]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_pattern_of_missing_values_is_predicted_as_in_a_table(model):
    model.fit(*table())
    predictor = model.row_predictor()
    for again in (predictor, pickle.loads(pickle.dumps(predictor))):
        assert_rows_are_predicted_as_tables(model, again, [*patterns(ROWS), *UNSEEN])


@pytest.mark.parametrize(
    "calibration",
    [
        Calibration(2.5),
        Calibration(1.5, power=0.5, pivot=3.0),
        EvidenceCalibration.of_frequencies(3.0, np.log([0.9, 0.05, 0.05])),
    ],
    ids=["temperature", "power", "evidence"],
)
@pytest.mark.parametrize("bits", [None, (3, 2)])
def test_calibrations_are_applied(calibration, bits):
    model = BayesNetClassifier(structure=ChowLiu()).fit(*table())
    model.calibration_ = calibration
    model = model if bits is None else model.with_bits(bits)
    assert_rows_are_predicted_as_tables(model, model.row_predictor(), [*patterns(ROWS), *UNSEEN])


@pytest.mark.parametrize("kind", ["tree", "weighted forest", "averaged forest", "ensemble", "terms", "boosted terms"])
def test_other_class_priors_are_used(kind):
    model = MODELS[kind].fit(*table()).with_class_prior([0.9, 0.1, 0.0])
    assert_rows_are_predicted_as_tables(model, model.row_predictor(), [*patterns(ROWS), *UNSEEN])


def test_rows_of_probability_zero_get_the_classes_without_features():
    X, y = table()
    model = BayesNetClassifier(structure=ChowLiu(), parameters=MaximumLikelihood(alpha=0)).fit(X, y)
    predictor, n_impossible = model.row_predictor(), 0
    for row in itertools.product(("a", "b", "c", None), (0, 1, 2, 3), (True, False), (-9.0, 9.0, None)):
        X = pd.DataFrame([row], columns=X.columns, dtype=object)
        joint = model.predict_joint_log_proba(X)[0]
        np.testing.assert_array_equal(predictor.log_joint(row), joint)
        if joint.max() > -np.inf:
            continue
        n_impossible += 1
        with pytest.warns(ImpossibleRowsWarning):
            expected = model.predict_proba(X)[0]
        for method, value in (
            (predictor.predict_proba, expected),
            (predictor.predict, model.classes_[expected.argmax()]),
        ):
            with pytest.warns(ImpossibleRowsWarning, match="1 of 1 rows") as caught:
                np.testing.assert_array_equal(method(row), value)
            assert [warning.filename for warning in caught] == [__file__]
    assert n_impossible > 0


def test_missing_and_unseen_values_are_encoded_without_the_encoder(monkeypatch):
    X, y = table()
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    rows = [*patterns(ROWS), *UNSEEN, ("a", pd.NA, True, np.ma.masked), (pd.NaT, np.float32("nan"), np.nan, pd.NA)]
    expected = [model.predict(pd.DataFrame([row], columns=X.columns, dtype=object))[0] for row in rows]
    predictor = model.row_predictor()
    monkeypatch.setattr(TableEncoder, "encode_columns", None)
    assert [predictor.predict(row) for row in rows] == expected


def test_large_integers_are_compared_as_in_a_table():
    values = [2**53 + 1, 2**53 + 3, 7]
    model = NaiveBayesClassifier(encoder=TableEncoder(discrete_features=True)).fit(
        [[v] for v in values * 4], [0, 1, 2] * 4
    )
    predictor = model.row_predictor()
    for value in (2.0**53, 2**53, 2.0**53 + 2, 2**53 + 1, 7.0, 8, 2**60, np.uint64(2**63 + 5)):
        np.testing.assert_array_equal(predictor.predict_proba((value,)), model.predict_proba([[value]])[0], str(value))


def test_a_column_without_values_in_training_takes_any_value():
    model = NaiveBayesClassifier().fit([[None, "a"], [None, "b"], [None, "b"]], [0, 1, 1])
    predictor = model.row_predictor()
    for value in (None, "new", 3, 2.5):
        np.testing.assert_array_equal(predictor.predict_proba((value, "a")), model.predict_proba([[value, "a"]])[0])


@pytest.mark.parametrize("kind", ["weighted forest", "ensemble", "boosted terms"])
def test_models_of_the_classes_alone_have_no_joint_probability(kind):
    predictor = MODELS[kind].fit(*table()).row_predictor()
    with pytest.raises(AttributeError, match="models the class given the features, not the distribution"):
        predictor.log_joint(ROWS[0])
    assert predictor.predict_codes([0, 0, 0, 0]) in ("x", "y", "z")


def test_parts_of_weight_zero_are_left_out():
    model = MODELS["ensemble"].fit(*table())
    for weights in ([0.0, 1.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.2], [0.0, 0.7, 0.4], [0.3, 0.4, 0.5]):
        model.model_ = model.model_.__class__(**{**vars(model.model_), "weights": np.array(weights)})
        assert_rows_are_predicted_as_tables(model, model.row_predictor(), patterns(ROWS[:1]))


def test_a_structure_with_a_cycle_predicts_complete_rows_only():
    model = BayesNetClassifier(structure=Structure([1, 0, -1, 2], allow_cycles=True)).fit(*table())
    predictor = model.row_predictor()
    assert_rows_are_predicted_as_tables(model, predictor, ROWS)
    with pytest.raises(ValueError, match=r"row 0 lacks feature 1 .* in a structure with a cycle"):
        predictor.predict(("a", None, True, 0.5))
