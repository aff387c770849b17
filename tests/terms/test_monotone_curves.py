"""Networks of terms with monotone curves: isotonic regression, and exactly monotone log odds of all values."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import monotone as oracle
from oracles.isotonic import isotonic_regression

from tanlearn import EncodedData, Margin, TermNetClassifier, load, save
from tanlearn.models.log_joint import log_joint
from tanlearn.terms.learning import learn_terms
from tanlearn.terms.monotone import rising

N_STATES = (5, 4, 3, 3)
DIRECTIONS = np.array([1, -1, 0, 0])


def ordered_rows(seed, n=240, *, missing=0.0):
    """Return rows whose classes depend on two features, in no direction, and on an interaction of two others."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    score = 1.5 * np.sin(2.0 * X[:, 0]) - np.cos(3.0 * X[:, 1]) + 3.0 * (X[:, 2] == X[:, 3]) - 1 + rng.normal(size=n)
    X[rng.random(X.shape) < missing] = -1
    return EncodedData.from_codes(X, (score > 0).astype(int), n_states=N_STATES, n_classes=2, is_ordered=True)


def grid_odds(network, hidden=()):
    """Return the log odds of all combinations of values, by cell."""
    every = np.array(list(itertools.product(*map(range, N_STATES))))
    every[:, list(hidden)] = -1
    codes = EncodedData.from_codes(every, np.zeros(len(every), int), n_states=N_STATES, n_classes=2).codes
    scores = log_joint(network.tables, network.structure, codes)
    odds = (scores[:, 1] - scores[:, 0]).reshape(N_STATES)
    return {cell: float(odds[cell]) for cell in np.ndindex(*N_STATES)}


@pytest.mark.parametrize("seed", range(5))
def test_pools_are_those_of_isotonic_regression(seed):
    rng = np.random.default_rng(seed)
    values, weights = rng.normal(size=9), rng.uniform(0.1, 2, 9)
    assert rising(values, weights) == pytest.approx(isotonic_regression(values.tolist(), weights.tolist()), abs=1e-12)


@pytest.mark.parametrize("max_parents", [0, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_log_odds_of_all_values_are_exactly_monotone(seed, max_parents):
    data = ordered_rows(seed, missing=0.05)
    network = learn_terms(data, max_parents, directions=DIRECTIONS).network
    assert not oracle.violations(grid_odds(network), DIRECTIONS)  # without any tolerance
    assert not oracle.violations({c: round(v, 9) for c, v in grid_odds(network, hidden=(2,)).items()}, DIRECTIONS)
    assert oracle.violations(grid_odds(learn_terms(data, max_parents).network), DIRECTIONS)
    parents = network.structure.parents
    assert (parents[:2] < 0).all()  # monotone features have no edges
    assert not np.isin(parents, [0, 1]).any()
    if max_parents:
        assert (parents[2:] >= 0).any()
        assert network.tables.is_normalized
    for i in range(4):
        np.testing.assert_allclose(np.exp(network.tables[i]).sum(axis=0), 1, atol=1e-9)


def test_networks_with_several_parents_are_exactly_monotone():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (900, 5))
    score = 2 * (X[:, 1] == X[:, 2]) + 2 * (X[:, 1] == X[:, 3]) + 2 * (X[:, 2] == X[:, 3]) - 2 + np.sin(3 * X[:, 0])
    y = (score + rng.normal(size=900) * 0.3 > 0).astype(int)
    data = EncodedData.from_codes(X, y, n_states=[3] * 5, is_ordered=True)
    network = learn_terms(data, 3, directions=np.array([1, 0, 0, 0, -1])).network
    assert not network.tables.is_normalized
    every = np.array(list(itertools.product(range(3), repeat=5)))
    codes = EncodedData.from_codes(every, [0, 1] + [0] * 241, n_states=[3] * 5).codes
    scores = log_joint(network.tables, network.structure, codes)
    odds = (scores[:, 1] - scores[:, 0]).reshape([3] * 5)
    assert not oracle.violations({c: float(odds[c]) for c in np.ndindex(*odds.shape)}, (1, 0, 0, 0, -1))


def test_the_directions_cost_little_where_they_are_right():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (4000, 4))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=4000) > 0).astype(int)
    data = EncodedData.from_codes(X, y, n_states=[5] * 4, is_ordered=True)
    free, monotone = (learn_terms(data, 0, directions=own).network for own in (None, np.array([1, -1, 0, 0])))
    for i in range(4):
        odds = [np.diff(network.tables[i])[:, 0] for network in (free, monotone)]
        np.testing.assert_allclose(*odds, atol=1e-6)


def frame(n=400, seed=0):
    """Return columns with a category for missing values, and labels."""
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(20, 80, n), rng.uniform(0, 10, n)
    y = np.where(rng.random(n) < 0.1 + dose / 20 + (age > 50) * 0.3, "well", "ill")
    dose[rng.random(n) < np.where(y == "ill", 0.4, 0.1)] = np.nan
    return pd.DataFrame({"age": age, "dose": dose, "ward": rng.choice(["a", "b"], n)}), y


@pytest.mark.parametrize("loss", [None, Margin()])
def test_raw_columns_missing_categories_and_files(loss, tmp_path):
    X, y = frame()
    model = TermNetClassifier(loss=loss, increasing=["dose"], decreasing=["age"]).fit(X, y)
    assert model.encoder_.has_missing_category_.tolist() == [False, True, False]
    for name, direction, values in (("dose", 1, np.linspace(-1, 11, 60)), ("age", -1, np.linspace(0, 99, 60))):
        row = X.dropna().iloc[[0] * 60].assign(**{name: values})
        scores = model.predict_joint_log_proba(row)
        assert (np.diff(direction * (scores[:, 1] - scores[:, 0])) >= 0).all()
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    np.testing.assert_array_equal(loaded.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert repr(loaded.loss_) == repr(model.loss_)


def test_invalid_columns_are_refused():
    X, y = frame(60)
    with pytest.raises(ValueError, match=r"increasing\[0\] is X column 'ward', which has no order"):
        TermNetClassifier(increasing=["ward"]).fit(X, y)
    with pytest.raises(ValueError, match="need exactly two classes, but the data have 3"):
        TermNetClassifier(decreasing=["age"]).fit(X, np.resize(["a", "b", "c"], 60))
