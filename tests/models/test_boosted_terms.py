"""Scores of boosted terms by definition, single rows, finer values, class priors and states of files."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import boosting as oracle
from support.boosted_terms import N_STATES, SPLITS, as_plain, random_codes, random_terms

from tanlearn.models.boosted_terms import BoostedTerms, Term

every_dtype = pytest.mark.parametrize("dtype", [np.uint8, np.uint16])


@pytest.mark.parametrize("n_classes", [2, 4])
@every_dtype
def test_scores_are_the_prior_and_the_sum_of_terms(n_classes, dtype):
    model = random_terms(n_classes)
    codes, rows = random_codes(60, dtype=dtype)
    expected = [oracle.row_scores(as_plain(model), row, model.log_prior.tolist()) for row in rows]
    np.testing.assert_allclose(model.log_joint(codes), expected, rtol=1e-12, atol=1e-13)


def test_a_term_of_cells_by_hand():
    """Codes 0 and 1 of feature 0 are on side 0; the cell with sides (1, 0) has the number 1."""
    sides = [np.array([0, 0, 1], np.uint8), np.array([0, 1], np.uint8)]
    values = np.array([[1.0, -1.0], [2.0, -2.0], [4.0, -4.0], [8.0, -8.0]])
    term = Term(np.array([0, 1]), sides, np.array([3.0, 1.0, 0.0, 0.0]), values)
    model = BoostedTerms.of_terms([term], np.array([3, 2]), np.array([0.25, 0.5]))
    codes = np.array([[1, 2, 0, 2, 255, 0, 255, 255], [0, 0, 1, 1, 0, 255, 1, 255]], np.uint8)
    own = model.log_joint(codes)[:, 0] - 0.25
    # Missing: (3 * 1 + 1 * 2) / 4; the only weighted cell of side 0; no weighted cell; as the first one
    np.testing.assert_array_equal(own, [1.0, 2.0, 4.0, 8.0, 1.25, 1.0, 0.0, 1.25])


def test_codes_above_the_values_of_a_feature_are_missing():
    model = random_terms()
    codes, _ = random_codes(20, missing=0.0)
    unseen, missing = codes.copy(), codes.copy()
    unseen[4, ::2], missing[4, ::2] = N_STATES[4], 255
    np.testing.assert_array_equal(model.log_joint(unseen), model.log_joint(missing))
    assert (model.log_joint(unseen)[::2] != model.log_joint(codes)[::2]).any()


@every_dtype
def test_scores_do_not_depend_on_the_number_of_threads(dtype):
    model = random_terms()
    codes, _ = random_codes(2500, dtype=dtype)  # several blocks
    expected = model.log_joint(codes, n_jobs=1)
    for n_jobs in (2, 3, -1):
        np.testing.assert_array_equal(model.log_joint(codes, n_jobs=n_jobs), expected)
    np.testing.assert_array_equal(model.log_joint(codes[:, 2000:2010]), expected[2000:2010])


@pytest.mark.parametrize("n_states", [N_STATES, [4, 2, 1, 3, 300]], ids=["uint8", "uint16"])
def test_scores_of_single_rows_are_those_of_tables(n_states):
    model = random_terms(n_states=n_states)
    dtype = np.uint8 if max(n_states) < 256 else np.uint16
    codes, _ = random_codes(40, n_states=n_states, dtype=dtype)
    score = model.row_scorer()
    for r, expected in enumerate(model.log_joint(codes)):
        np.testing.assert_array_equal(score(codes[:, r].astype(np.intp)), expected)
    score(codes[:, 0].astype(np.intp))[:] = np.nan  # results are not shared between calls
    assert np.isfinite(score(codes[:, 0].astype(np.intp))).all()


def test_models_without_terms_are_their_prior():
    model = random_terms(splits=[])
    codes, _ = random_codes(3)
    np.testing.assert_array_equal(model.log_joint(codes), np.tile(model.log_frequency, (3, 1)))
    np.testing.assert_array_equal(model.row_scorer()(codes[:, 0].astype(np.intp)), model.log_frequency)
    assert model.terms() == []
    assert model.n_parameters == 2


def test_terms_are_those_that_the_model_was_made_of():
    model = random_terms()
    terms = model.terms()
    assert [tuple(term.features.tolist()) for term in terms] == SPLITS
    again = BoostedTerms.of_terms(terms, model.n_states, model.log_frequency)
    for name in ("features", "sides", "weights", "values", "starts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for t, term in enumerate(terms):
        assert [len(side) for side in term.sides] == [N_STATES[i] for i in SPLITS[t]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_parameters_are_counted(n_classes):
    model = random_terms(n_classes)
    n_cells = sum(len(term["cells"]) for term in as_plain(model))
    assert n_cells == 1 + 2 + 4 + 8 + 4 + 16 + 4
    assert model.n_parameters == (n_cells + 1) * (n_classes - 1)


def test_finer_values_have_the_scores_of_their_groups():
    model = random_terms()
    moved = model.with_log_prior(np.log([0.2, 0.3, 0.5]))
    groups = [np.array(own) for own in ([0, 0, 1, 2, 2, 3], [1, 0, 1], [0, 0], [0, 1, 2], [5, 4, 3, 2, 1, 0, 0, 0])]
    fine_states = [len(own) for own in groups]
    finer = moved.on_finer_values(groups)
    assert finer.numbers_of_values().tolist() == fine_states
    np.testing.assert_array_equal(finer.log_frequency, model.log_frequency)
    codes, _ = random_codes(100, n_states=fine_states)
    coarse = np.array([np.append(own, [255] * (256 - len(own)))[codes[i]] for i, own in enumerate(groups)], np.uint8)
    np.testing.assert_array_equal(finer.log_joint(codes), moved.log_joint(coarse))
    assert finer.n_parameters == model.n_parameters


def test_priors_replace_the_class_frequencies():
    model = random_terms()
    prior = np.log([0.2, 0.3, 0.5])
    moved = model.with_log_prior(prior)
    codes, _ = random_codes(30)
    shift = prior - model.log_frequency
    np.testing.assert_allclose(moved.log_joint(codes), model.log_joint(codes) + shift, atol=1e-13)
    np.testing.assert_array_equal(moved.log_frequency, model.log_frequency)
    np.testing.assert_array_equal(model.log_prior, model.log_frequency)
    with np.errstate(divide="ignore"):
        impossible = model.with_log_prior(np.log([0.0, 0.5, 0.5])).log_joint(codes)
    assert (impossible[:, 0] == -np.inf).all()
    assert np.isfinite(impossible[:, 1:]).all()


@pytest.mark.parametrize("splits", [SPLITS, [], [()]], ids=["terms", "no terms", "no splits"])
def test_states_restore_the_model(splits):
    model = random_terms(splits=splits).with_log_prior(np.log([0.2, 0.3, 0.5]))
    state = model.to_state()
    again = BoostedTerms.from_state(dict(state), model.n_states, 3)
    codes, _ = random_codes(50)
    np.testing.assert_array_equal(again.log_joint(codes), model.log_joint(codes))
    for name, value in again.to_state().items():
        assert value.dtype == state[name].dtype
        np.testing.assert_array_equal(value, state[name])
    assert all(value.dtype.name in ("int64", "uint8", "float64") for value in state.values())


def changed(name, change):
    """Return a function that changes a copy of one array of a state."""

    def apply(state):
        array = state[name].copy()
        result = change(array)
        return {**state, name: array if result is None else result}

    return apply


def put(position, value):
    """Return a function that sets an entry of an array."""
    return lambda array: array.__setitem__(position, value)


FEATURES = "features must contain at most 8 positions"
WEIGHTS = "weights must be finite and nonnegative, and values must be finite"
INVALID = {
    "a list": (changed("features", lambda a: a.tolist()), "features must have type int64"),
    "one dimension": (changed("features", np.ravel), "features must have type int64"),
    "another type": (changed("features", lambda a: a.astype(np.int32)), "features must have type int64"),
    "nine splits": (lambda state: {**state, "features": np.zeros((1, 9), np.int64)}, FEATURES),
    "a feature of -2": (changed("features", put((0, 0), -2)), FEATURES),
    "a sixth feature": (changed("features", put((1, 0), 5)), FEATURES),
    "-1 before a feature": (changed("features", put((3, 0), -1)), FEATURES),
    "few sides": (changed("sides", lambda a: a[:-1]), "sides must have type uint8"),
    "wide sides": (changed("sides", lambda a: a.astype(np.int64)), "sides must have type uint8"),
    "a side of 2": (changed("sides", put(3, 2)), "sides must be 0 or 1"),
    "weights of few terms": (changed("weights", lambda a: a[1:]), "weights must have type float64"),
    "weights of few cells": (changed("weights", lambda a: a[:, 1:].copy()), "weights must have type float64"),
    "a negative weight": (changed("weights", put((0, 0), -1.0)), WEIGHTS),
    "a weight of nan": (changed("weights", put((0, 0), np.nan)), "weights contains nan or inf"),
    "a weight of inf": (changed("weights", put((0, 0), np.inf)), "weights contains nan or inf"),
    "values of few classes": (changed("values", lambda a: a[..., 1:].copy()), "values must have type float64"),
    "a value of nan": (changed("values", put((0, 0, 0), np.nan)), "values contains nan or inf"),
    "a value of -inf": (changed("values", put((0, 0, 0), -np.inf)), WEIGHTS),
    "a prior of two classes": (changed("log_prior", lambda a: a[:2]), "log_prior must have type float64"),
    "no possible class": (changed("log_prior", lambda a: np.full_like(a, -np.inf)), "at least one possible class"),
    "a prior of nan": (changed("log_prior", put(0, np.nan)), "log_prior contains nan"),
    "frequencies of two classes": (changed("log_frequency", lambda a: a[:2]), "log_frequency must have type float64"),
    "an infinite frequency": (changed("log_frequency", put(0, -np.inf)), "log_frequency must be finite"),
    "another name": (lambda state: {**state, "extra": state["sides"]}, "expected an object with the keys"),
    "a missing name": (lambda state: {k: v for k, v in state.items() if k != "sides"}, "expected an object"),
}


@pytest.mark.parametrize(("change", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_states_are_refused(change, message):
    model = random_terms()
    with pytest.raises(ValueError, match=message):
        BoostedTerms.from_state(change(model.to_state()), model.n_states, 3)


def test_features_of_huge_tables_are_refused_before_memory_is_allocated():
    state = {**random_terms().to_state(), "features": np.zeros((1, 60), np.int64)}
    with pytest.raises(ValueError, match=FEATURES):
        BoostedTerms.from_state(state, np.array(N_STATES), 3)


def test_copies_with_other_fields_find_their_sides():
    model = random_terms()
    again = replace(model, sides=model.sides.copy())
    np.testing.assert_array_equal(again.starts, model.starts)
