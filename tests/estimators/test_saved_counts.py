"""Counts in the file of a model: a loaded model goes on with ``partial_fit`` to the model that it would have become."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    ConjugateGradient,
    EncodedData,
    HierarchicalSmoothing,
    NaiveBayesClassifier,
    Structure,
    TableCounts,
    TANClassifier,
    load,
    read_bif,
    write_bif,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.files.archive import pack, unpack
from tanlearn.forest.forest_counts import ForestCounts

CLASSES = ["no", "yes"]
MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "given tree": BayesNetClassifier(structure=Structure([-1, 0, 0])),
    "two parents": BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1]])),
    "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
    "KDB": BayesNetClassifier(structure=KDependence(k=1)),
    "AODE": AODEClassifier(),
    "forest": BayesForestClassifier(n_estimators=3, weights=None, random_state=0),
}


def table(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"town": rng.choice(["Graz", "Linz", "Wels"], n), "size": rng.normal(size=n), "rooms": rng.integers(1, 5, n)}
    )
    y = np.where(X["size"] + (X["town"] == "Graz") + rng.normal(size=n) > 0.3, "yes", "no")
    X.loc[rng.random(n) < 0.1, "town"] = None
    return X, y


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param]).partial_fit(*table(200, 0), CLASSES)


def assert_same(one, two):
    X, _ = table(50, 9)
    assert np.array_equal(one.predict_log_proba(X), two.predict_log_proba(X))
    assert one.counts_ == two.counts_


@pytest.mark.parametrize("weighted", [False, True])
def test_loaded_model_goes_on_as_the_saved_one(model, weighted, tmp_path):
    if weighted:
        X, y = table(100, 1)
        model.partial_fit(X, y, sample_weight=np.random.default_rng(0).random(100))
    model.save(tmp_path / "model", counts=True)
    again = load(tmp_path / "model")
    assert_same(again, model)
    for seed in (2, 3):
        assert_same(again.partial_fit(*table(100, seed)), model.partial_fit(*table(100, seed)))
    again.save(tmp_path / "model", counts=True)
    assert_same(load(tmp_path / "model"), model)


def test_counts_of_batches_and_tables_are_kept_too(tmp_path):
    X, y = table(200, 0)
    counts = TableCounts.of_source([(X, y)])
    for model in (NaiveBayesClassifier().fit_batches([(X, y)]), NaiveBayesClassifier().from_counts(counts)):
        model.save(tmp_path / "model", counts=True)
        again = load(tmp_path / "model")
        assert_same(again.partial_fit(*table(100, 1)), model.partial_fit(*table(100, 1)))
        assert TableCounts.of_model(again) == TableCounts.of_model(model)


def test_file_without_counts_is_as_before(model, tmp_path):
    model.save(tmp_path / "model")
    description, _ = unpack((tmp_path / "model").read_bytes())
    assert {*description} == {"class", "parameters", "classes", "feature_names", "encoder", "state"}
    again = load(tmp_path / "model")
    assert not hasattr(again, "counts_")
    X, y = table(100, 1)
    for go_on in (lambda: again.partial_fit(X, y), lambda: TableCounts.of_model(again)):
        with pytest.raises(
            ValueError, match=r"without counts \(to keep existing counts, use save\(path, counts=True\).*like="
        ):
            go_on()
    with pytest.raises(
        ValueError, match=r"^counts=True needs counts_, but .* was read from a file without counts.*counts\.$"
    ):
        again.save(tmp_path / "other", counts=True)
    assert not (tmp_path / "other").exists()


def test_remedy_of_the_message_works(tmp_path):
    X, y = table(200, 0)
    fitted = NaiveBayesClassifier().fit(X, y)
    write_bif(fitted, tmp_path / "network.bif")
    fitted.save(tmp_path / "model")
    for model in (fitted, load(tmp_path / "model")):
        with pytest.raises(ValueError, match=r"from_counts\(TableCounts.of_source"):
            model.partial_fit(X, y)
        known = model.encoder_
        model.from_counts(TableCounts.of_source([(X, y)], like=model))
        assert model.encoder_.n_states_.tolist() == known.n_states_.tolist()
        before = model.counts_.class_counts.sum()
        assert model.partial_fit(*table(100, 1)).counts_.class_counts.sum() == before + 100
    with pytest.raises(ValueError, match="this BayesNetClassifier has no counts, because it was read from a file"):
        read_bif(tmp_path / "network.bif").set_params(structure=Structure([-1, -1, -1])).partial_fit(X, y)


def test_reason_after_a_new_fit_is_that_of_the_fit(tmp_path):
    X, y = table(200, 0)
    NaiveBayesClassifier().fit(X, y).save(tmp_path / "model")
    model = load(tmp_path / "model").fit(X, y)
    with pytest.raises(ValueError, match="because it was fitted from all rows at once"):
        model.partial_fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        NaiveBayesClassifier(),
        BayesNetClassifier(structure=ChowLiu(), parameters=ConjugateGradient()),
        TANClassifier(candidates="all", n_epochs=1, random_state=0),
    ],
    ids=["naive Bayes", "conjugate gradient", "TAN"],
)
def test_fit_keeps_no_counts(model, tmp_path):
    model = clone(model).fit(*table(100, 0))
    with pytest.raises(ValueError, match=r"has no counts, because it was fitted from all rows.*Leave counts out"):
        model.save(tmp_path / "model", counts=True)
    assert [*tmp_path.iterdir()] == []
    X, y = table(100, 0)
    with pytest.raises(ValueError, match="Leave counts out") as refused:
        model.save(tmp_path / "model", counts=True)
    is_counting = hasattr(model, "partial_fit")
    assert ("fit with fit_batches or partial_fit, which keep counts" in str(refused.value)) == is_counting
    if is_counting:
        clone(model).fit_batches([(X, y)]).save(tmp_path / "model", counts=True)
        assert load(tmp_path / "model").partial_fit(X, y).counts_.class_counts.sum() == 200


def test_counts_that_a_file_cannot_hold_are_refused(tmp_path):
    X, y = table(100, 0)
    X["town"] = X["town"].fillna("Wels")
    known = NaiveBayesClassifier().fit(X, y)
    contexts = ContextCounts(Structure([-1, 0, 0]).parents, known.encoder_.n_states_, 2)
    contexts.update(EncodedData.from_codes(known.encoder_.encode(X).T, (y == "yes").astype(int)))
    model = BayesNetClassifier(structure=Structure([-1, 0, 0]), parameters=HierarchicalSmoothing(m=1.0, sparse=True))
    model.from_counts(contexts, encoder=known.encoder_, classes=known.classes_)
    with pytest.raises(TypeError, match=r"but not ContextCounts\. Save the model"):
        model.save(tmp_path / "model", counts=True)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("model", [NaiveBayesClassifier(), AODEClassifier()], ids=["naive Bayes", "AODE"])
def test_partial_fit_begins_anew_after_a_fit_that_failed(model, monkeypatch):
    X, y = table(200, 0)
    model = clone(model).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_learn", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.fit(X, y)
    with pytest.raises(ValueError, match="the first call of partial_fit must get the classes"):
        model.partial_fit(X, y)
    assert_same(model.partial_fit(X, y, CLASSES), clone(model).partial_fit(X, y, CLASSES))


@pytest.mark.parametrize("change", ["kind", "type", "shape", "negative", "extra", "keys"])
def test_forged_counts_are_refused(change, tmp_path):
    model = NaiveBayesClassifier().partial_fit(*table(200, 0), CLASSES)
    model.save(tmp_path / "model", counts=True)
    description, arrays = unpack((tmp_path / "model").read_bytes())
    counts = description["counts"]
    member = counts["counts"]["cells"]["member"]
    if change == "kind":
        counts["kind"] = "OtherCounts"
    elif change == "type":
        arrays[member] = arrays[member].astype(np.int32)
    elif change == "shape":
        arrays[member] = arrays[member][1:]
    elif change == "negative":
        arrays[member] = -arrays[member]
    elif change == "extra":
        counts["more"] = 1
    else:
        del counts["counts"]["cells"]
        del arrays[member]
    (tmp_path / "model").write_bytes(pack(description, arrays))
    with pytest.raises(ValueError, match="cannot be loaded"):
        load(tmp_path / "model")


def test_counts_of_forests_are_read_up_to_the_last_context_value_and_class():
    model = clone(MODELS["forest"]).partial_fit(*table(200, 0), CLASSES)
    n_states, counts = model.encoder_.n_states_, model.counts_
    state = counts.state()
    assert ForestCounts.from_state(state, n_states, 2) == counts
    tables = counts.members[0].tables
    most, n_contexts = int(tables.n_states.max()), len(tables.trie.branch)
    child = tables.n_states.argmin()
    assert tables.n_states[child] < most

    def read(keys, counted=None, **more):
        """Return counts of a few cells of the first network alone."""
        found = {"keys": np.array(keys, np.int64), "counts": np.array(counted or np.ones(len(keys), int))}
        return ForestCounts.from_state({**state, "n_cells": np.array([len(keys), 0, 0]), **found, **more}, n_states, 2)

    def key(context, value, y):
        return (context * most + value) * 2 + y

    last = [n_contexts - 1, tables.n_states[np.searchsorted(tables.root, n_contexts, side="right") - 1] - 1, 1]
    good = [key(0, 0, 0), key(tables.root[child], tables.n_states[child] - 1, 1), key(*last)]
    good = sorted({*good})
    assert read(good).members[0].keys.tolist() == good
    assert read([]).members[0].keys.tolist() == []
    assert read(good[:1]).members[0].keys.tolist() == good[:1]
    for wrong in (
        [-1],
        [key(n_contexts, 0, 0)],
        [key(tables.root[child], tables.n_states[child], 0)],
        [good[0], key(n_contexts, 0, 0)],
        [good[0], good[0]],
        good[::-1],
        [key(1, 0, 0), -(2**63) + 2**63 % key(1, 0, 0), key(-1, 0, 0), key(2, 0, 0)],  # differences overflow
    ):
        with pytest.raises(ValueError, match="keys must be in ascending order, and refer to contexts"):
            read(wrong)
    for counted in ([0], [-1], [1.0]):
        with pytest.raises(ValueError, match="counts must"):
            read([0], counted)
    for sizes in ([2, -1, 0], [2**40, 0, 0], [1, 0]):
        with pytest.raises(ValueError, match="n_cells must"):
            read([0], n_cells=np.array(sizes))
    with pytest.raises(ValueError, match="class_counts must not be negative"):
        read([0], class_counts=np.array([-1, 2]))
    with pytest.raises(ValueError, match="class_counts must have"):
        read([0], class_counts=np.array([1, 2, 3]))


def test_counts_of_families_are_read_for_as_many_features_as_the_encoder_has():
    model = BayesNetClassifier(structure=Structure([-1, 0, 0])).partial_fit(*table(200, 0), CLASSES)
    n_states, state = model.encoder_.n_states_, model.counts_.state()
    assert FamilyCounts.from_state(state, n_states, 2) == model.counts_
    for structure in (Structure([-1, 0]), Structure([-1, 0, 0, 0]), [-1, 0, 0]):
        with pytest.raises(ValueError, match="the structure must have 3 features, got"):
            FamilyCounts.from_state({**state, "structure": structure}, n_states, 2)
    negative = state["cells"].copy()
    negative[-1] = -1
    for cells in (state["cells"][:-1], negative, state["cells"].astype(np.float32)):
        with pytest.raises(ValueError, match="cells must"):
            FamilyCounts.from_state({**state, "cells": cells}, n_states, 2)
    assert FamilyCounts.from_state({**state, "cells": 0 * state["cells"]}, n_states, 2) == model.counts_.empty()
