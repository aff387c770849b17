"""Gradient TAN and k-trees with knowledge."""

import numpy as np
import pandas as pd
import pytest
from oracles import knowledge as naive
from support.family_searches import parents_of, random_data, rows_of
from support.random_knowledge import random_knowledge

from tanlearn import Candidates, ConditionalNLL, Hybrid, Knowledge, KTreeClassifier, TANClassifier, load, save

TREE = {"n_epochs": 3, "loss": Hybrid(), "calibrate": False, "random_state": 0}
K_TREE = {**TREE, "loss": ConditionalNLL()}


def rows(seed, missing=0.0):
    """Return rows of four columns as strings, and classes."""
    found = np.array(rows_of(random_data(seed, 200, n_states=(2, 3, 2, 3), missing=missing)))
    return found[:, :4].astype(float), found[:, 4]


@pytest.mark.parametrize("kind", ["subset", "order-free", "information", "gain"])
@pytest.mark.parametrize("seed", range(3))
def test_networks_keep_to_their_knowledge(kind, seed):
    X, y = rows(seed)
    for max_parents, model in ((1, TANClassifier(**TREE)), (2, KTreeClassifier(**K_TREE))):
        given = random_knowledge(seed, 4, max_parents)
        model.set_params(candidates=Candidates(kind, knowledge=Knowledge(**given))).fit(X, y)
        assert naive.permits(parents_of(model.structure_), **given)
        assert naive.is_acyclic(parents_of(model.structure_))
        for i, choices in enumerate(model.structure_probabilities_):
            needed = {j for j, child in given["required"] if child == i}
            for choice, p in choices.items():
                own = set(choice) if isinstance(choice, tuple) else {choice} - {-1}
                assert p == 0 or needed <= own


@pytest.mark.parametrize(
    "options",
    [{"bits": 6}, {"size_weight": 1e-3}, {}, {"loss": None, "calibrate": True}],
    ids=["bits", "size", "missing values", "selection"],
)
def test_other_options_keep_to_the_knowledge(options):
    X, y = rows(0, missing=0.0 if options else 0.1)
    X[X < 0] = np.nan
    given = {"required": [(3, 0)], "forbidden": [(3, 2), (2, 3)], "tiers": [[1], [2]]}
    candidates = Candidates("order-free", knowledge=Knowledge(**given))
    model = TANClassifier(candidates=candidates, **{**TREE, **options}).fit(X, y)
    assert naive.permits(parents_of(model.structure_), **given)


def test_names_files_and_copies(tmp_path):
    X, y = rows(1)
    frame = pd.DataFrame(X.astype(int).astype(str), columns=list("abcd"))
    knowledge = Knowledge(required=[("d", "a")], tiers=[["c"], ["b"]])
    candidates = Candidates("subset", knowledge=knowledge)
    for model in (TANClassifier(candidates=candidates, **TREE), KTreeClassifier(candidates=candidates, **K_TREE)):
        model.fit(frame, y)
        assert ("d", "a") in model.to_networkx().edges
        assert ("b", "c") not in model.to_networkx().edges
        save(model, tmp_path / "model.tan")
        loaded = load(tmp_path / "model.tan")
        assert loaded.candidates.knowledge.get_params() == knowledge.get_params()
        again = type(model)(**{**model.get_params(deep=False), "candidates": model.candidates_})
        assert ("d", "a") in again.fit(frame, y).to_networkx().edges  # candidates keep their mask
        save(again, tmp_path / "again.tan")
        found = load(tmp_path / "again.tan").candidates
        assert np.array_equal(found.selectable, model.candidates_.selectable)
        with pytest.raises(ValueError, match=r"required\[0\] contains 'd', which is not a column"):
            model.fit(frame.rename(columns={"d": "e"}), y)


def test_a_warm_start_with_other_required_edges_is_refused():
    X, y = rows(1)
    model = TANClassifier(candidates="order-free", warm_start=True, **TREE)
    model.set_params(candidates__knowledge=Knowledge(required=[(3, 0)])).fit(X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="warm_start requires the same candidates"):
        model.set_params(candidates__knowledge=None).fit(X, y)


def test_contradictions_are_refused():
    X, y = rows(1)
    with pytest.raises(ValueError, match="0 has 2 required parents, 1, 2, but this learner allows at most 1"):
        TANClassifier(candidates=Candidates(knowledge=Knowledge(required=[(1, 0), (2, 0)]))).fit(X, y)
