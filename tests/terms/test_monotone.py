"""Boosted terms with monotone log odds: isotonic regression by formula, and the order of all pairs of values."""

import itertools

import numpy as np
import pytest
from oracles import monotone as oracle
from support.monotone_rows import passengers

from tanlearn import BoostedTermsClassifier, EncodedData, load, save
from tanlearn.models.rounded_terms import round_terms
from tanlearn.terms.boosting import Booster, BoostingSettings
from tanlearn.terms.monotone import MonotoneFeatures, isotonic

N_STATES = (4, 3, 5, 3)
DIRECTIONS = (1, -1, 0, 1)


def ordered_rows(seed, n=150, *, missing=0.0, has_missing_category=None):
    """Return rows whose classes depend on all features, in no direction, and on pairs of them."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    y = ((X[:, 0] + X[:, 2] + (X[:, 1] * X[:, 3]) + rng.integers(0, 3, n)) % 4 > 1).astype(int)
    X[rng.random(X.shape) < missing] = -1
    weights = rng.choice([0.5, 1.0, 3.0], n)
    is_ordered = np.array([True, True, False, True])
    options = {"n_states": N_STATES, "n_classes": 2, "sample_weight": weights, "is_ordered": is_ordered}
    data = EncodedData.from_codes(X, y, **options)
    if has_missing_category is not None:
        from dataclasses import replace

        data = replace(data, has_missing_category=np.array(has_missing_category))
    return data


def grid_scores(model, n_states, hidden=()):
    """Return the log joint of all combinations of values, in the shape of the grid and the classes."""
    every = np.array(list(itertools.product(*map(range, n_states))))
    every[:, list(hidden)] = -1
    codes = EncodedData.from_codes(every, np.zeros(len(every), int), n_states=n_states).codes
    return model.log_joint(codes).reshape(*n_states, 2)


def as_cells(array):
    return {cell: float(array[cell]) for cell in np.ndindex(*array.shape)}


@pytest.mark.parametrize("seed", range(8))
def test_isotonic_regression_on_partial_orders(seed):
    rng = np.random.default_rng(seed)
    values, weights = rng.normal(size=6), rng.uniform(0.2, 3, 6)
    cells = np.arange(6).reshape(2, 3)
    lists = [(cells[0], cells[1]), (cells[:, 0], cells[:, 1]), (cells[:, 1], cells[:, 2])]
    plain = [pair for low, high in lists for pair in zip(low.tolist(), high.tolist(), strict=True)]
    found = isotonic(values, weights, lists)
    assert found == pytest.approx(oracle.isotonic_by_sets(values.tolist(), weights.tolist(), plain), abs=1e-6)


@pytest.mark.parametrize("n_splits", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_scores_of_all_values_are_exactly_monotone(seed, n_splits):
    data = ordered_rows(seed, missing=0.1)
    booster = Booster(data, BoostingSettings(n_splits, 0.5, 0.1, np.array(DIRECTIONS)), np.random.default_rng(seed))
    booster.grow(40)
    model = booster.model()
    assert {0, 1, 3} <= set(model.features.ravel().tolist())
    for prior in (None, np.log([0.9, 0.1])):
        own = model if prior is None else model.with_log_prior(prior)
        for hidden in ((), (2,), (1,), (1, 3), (0, 2)):
            scores = grid_scores(own, N_STATES, hidden)
            for log_odds in (scores[..., 1], -scores[..., 0], scores[..., 1] - scores[..., 0]):
                assert not oracle.violations(as_cells(log_odds), DIRECTIONS)  # without any tolerance
    free = Booster(data, BoostingSettings(n_splits, 0.5, 0.1), np.random.default_rng(seed))
    free.grow(40)
    scores = grid_scores(free.model(), N_STATES)
    assert oracle.violations(as_cells(scores[..., 1] - scores[..., 0]), DIRECTIONS)


def test_a_category_for_missing_values_is_outside_of_the_order():
    data = ordered_rows(1, 400, has_missing_category=[True, False, False, False])
    booster = Booster(data, BoostingSettings(3, 0.5, 0.1, np.array([1, 0, 0, 0])), np.random.default_rng(0))
    booster.grow(60)
    scores = grid_scores(booster.model(), N_STATES)
    log_odds = scores[..., 1] - scores[..., 0]
    assert not oracle.violations(as_cells(log_odds[:-1]), (1, 0, 0, 0))
    assert (np.diff(log_odds, axis=0)[-1] < 0).any()


def test_gains_of_cells_in_the_wrong_order_are_those_of_one_value():
    rng = np.random.default_rng(0)
    sums = np.stack([rng.normal(size=(4, 5)), rng.uniform(0.1, 2, (4, 5))], axis=2)
    monotone, order = MonotoneFeatures(np.array([-1]), np.array([5])), np.arange(5)
    expected = []
    for length in range(1, 5):
        gain = 0.0
        for own in sums:
            (gl, hl), (gr, hr) = own[:length].sum(axis=0), own[length:].sum(axis=0)
            is_wrong = gl / (hl + 0.3) < gr / (hr + 0.3)  # falling log odds
            after = (gl + gr) ** 2 / (hl + hr + 0.6) if is_wrong else gl**2 / (hl + 0.3) + gr**2 / (hr + 0.3)
            gain += after - (gl + gr) ** 2 / (hl + hr + 0.3)
        expected.append(gain)
    assert monotone.split_gains(0, order, sums, 0.3) == pytest.approx(expected)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rounded_terms_are_monotone(bits):
    booster = Booster(ordered_rows(2), BoostingSettings(2, 0.5, 0.1, np.array(DIRECTIONS)), np.random.default_rng(0))
    booster.grow(40)
    scores = grid_scores(round_terms(booster.model(), bits).terms, N_STATES)
    assert np.ptp(scores[..., 1]) > 0
    assert not oracle.violations(as_cells(scores[..., 1] - scores[..., 0]), DIRECTIONS)


def test_classifiers_are_monotone_in_raw_values(tmp_path):
    X, y = passengers()
    model = BoostedTermsClassifier(increasing=["fare"], decreasing=["age"], random_state=0).fit(X, y)
    assert model.n_terms_ > 0
    rows = X.iloc[np.repeat(np.arange(30), 40)].reset_index(drop=True)
    for name, direction, high in (("fare", 1, 200), ("age", -1, 90)):
        moved = rows.assign(**{name: np.tile(np.linspace(0, high, 40), 30)})
        scores = model.predict_log_proba(moved)
        log_odds = direction * (scores[:, 1] - scores[:, 0]).reshape(30, 40)
        assert (np.diff(log_odds, axis=1) >= -1e-12).all()
        assert (log_odds[:, -1] > log_odds[:, 0]).any()
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    assert loaded.get_params()["increasing"] == ["fare"]
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_invalid_columns_are_refused():
    X, y = passengers(60)
    with pytest.raises(ValueError, match=r"increasing\[0\] is X column 'port', which has no order"):
        BoostedTermsClassifier(increasing=["port"]).fit(X, y)
    with pytest.raises(ValueError, match="'age' is listed twice in increasing and decreasing"):
        BoostedTermsClassifier(increasing=["age"], decreasing=["age"]).fit(X, y)
    with pytest.raises(ValueError, match=r"decreasing\[0\] contains 'fares', .* Did you mean 'fare'\?"):
        BoostedTermsClassifier(decreasing=["fares"]).fit(X, y)
    with pytest.raises(ValueError, match="need exactly two classes, but the data have 3"):
        BoostedTermsClassifier(increasing=["age"]).fit(X, np.resize(["a", "b", "c"], 60))
    with pytest.raises(ValueError, match="The 'increasing' parameter of BoostedTermsClassifier must be an instance of"):
        BoostedTermsClassifier(increasing="age").fit(X, y)
