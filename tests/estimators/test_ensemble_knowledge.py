"""Ensembles with knowledge and monotone columns, which they pass to their parts."""

import numpy as np
import pandas as pd
import pytest
from oracles import knowledge as naive
from support.family_searches import parents_of

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BoostedTermsClassifier,
    Knowledge,
    TermNetClassifier,
    load,
    save,
)

PARTS = {"forest": BayesForestClassifier(n_estimators=3), "boosting": BoostedTermsClassifier(max_terms=60)}


def frame(n=300, seed=0):
    """Return passengers whose survival rises with the fare and falls with age, and class labels."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(1, 80, n), "fare": rng.exponential(30, n)})
    X["port"], X["deck"] = rng.choice(list("CQS"), n), rng.choice(list("ABC"), n)
    odds = 0.03 * X["fare"] - 0.04 * X["age"] + 2.0 * (X["port"] == "C") * (X["deck"] == "A") + 0.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "survived", "died")
    return X.mask(rng.random(X.shape) < 0.05), y


def test_all_networks_keep_to_the_knowledge(tmp_path):
    X, y = frame()
    given = {"required": [(2, 3)], "forbidden": [(0, 1)], "tiers": [[2], [1, 0]]}
    names = X.columns.tolist()
    knowledge = Knowledge(required=[("port", "deck")], forbidden=[("age", "fare")], tiers=[["port"], ["fare", "age"]])
    model = BayesEnsembleClassifier(knowledge=knowledge, random_state=0, **PARTS).fit(X, y)
    assert names == ["age", "fare", "port", "deck"]
    for structure in (model.network_.structure_, *model.forest_.structures_):
        assert naive.permits(parents_of(structure), **given)
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    assert loaded.knowledge.get_params() == loaded.network_.knowledge.get_params() == knowledge.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("seed", range(2))
def test_predictions_are_monotone(seed):
    X, y = frame(seed=seed)
    model = BayesEnsembleClassifier(increasing=["fare"], decreasing=["age"], random_state=0, **PARTS).fit(X, y)
    assert (model.weights_ > 0.05).sum() > 1
    assert model.weights_.sum() > 0.5
    rows = X.iloc[np.repeat(np.arange(25), 60)].reset_index(drop=True)
    for name, direction, high in (("fare", 1, 250), ("age", -1, 90)):
        scores = model.predict_log_proba(rows.assign(**{name: np.tile(np.linspace(0, high, 60), 25)}))
        log_odds = direction * (scores[:, 1] - scores[:, 0]).reshape(25, 60)
        assert (np.diff(log_odds, axis=1) >= -1e-10).all()
        assert (log_odds[:, -1] > log_odds[:, 0] + 0.1).any()
    for part in (model.forest_.knowledge, model.network_, model.boosting_):
        assert part.get_params()["increasing"] == ["fare"]


def test_without_dependences_monotone_predictions_are_the_class_frequencies():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["x", "y"], 90)}), np.arange(90) % 3 == 0
    model = BayesEnsembleClassifier(increasing=["a"], random_state=0, **PARTS).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / 3, atol=0.05)


def test_parts_with_knowledge_of_their_own_and_invalid_columns_are_refused():
    X, y = frame(80)
    for name, part in (
        ("network", TermNetClassifier(knowledge=Knowledge())),
        ("network", TermNetClassifier(increasing=["fare"])),
        ("boosting", BoostedTermsClassifier(decreasing=["fare"])),
        ("forest", BayesForestClassifier(knowledge=Knowledge())),
    ):
        with pytest.raises(
            ValueError, match=rf"{name} must not set .* if it is part of .* encoder, knowledge, increasing and dec"
        ):
            BayesEnsembleClassifier(**{name: part}).fit(X, y)
    with pytest.raises(ValueError, match="'port', which has no order"):
        BayesEnsembleClassifier(increasing=["port"], **PARTS).fit(X, y)
