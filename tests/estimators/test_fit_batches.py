"""Learning from batches: the model of fit on the whole table, whatever it is cut into."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    ConjugateGradient,
    HierarchicalDirichlet,
    HierarchicalSmoothing,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TANClassifier,
)
from tanlearn.baselines import (
    AnDEClassifier,
    AODEClassifier,
    ChowLiu,
    GreedySearch,
    KDependence,
    SelectiveKDependenceClassifier,
)
from tanlearn.estimators import batches as module

MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "naive Bayes, smoothed": NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.1), class_prior=[0.3, 0.7]),
    "given": BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1], [2, -1]])),
    "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
    "KDB-1": BayesNetClassifier(structure=KDependence(k=1)),
    "KDB-2": BayesNetClassifier(structure=KDependence(k=2)),
    "KDB-3 HS": BayesNetClassifier(structure=KDependence(k=3), parameters=HierarchicalSmoothing(sparse=True)),
    "KDB-3 HDP": BayesNetClassifier(structure=KDependence(k=3), parameters=HierarchicalDirichlet(n_iter=5)),
    "SKDB": SelectiveKDependenceClassifier(max_k=2),
    "AODE": AODEClassifier(),
    "A2DE": AnDEClassifier(n=2),
    "forest": BayesForestClassifier(n_estimators=3, weights=None, random_state=0),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def table(n=300, seed=0):
    """Return numbers and categories with gaps, and classes of them."""
    rng = np.random.default_rng(seed)
    number, town = rng.normal(size=n).round(2), rng.choice(["Graz", "Linz", "Wien"], n)
    y = np.where((number > 0.2) ^ (town == "Wien") ^ (rng.random(n) < 0.1), "yes", "no")
    frame = pd.DataFrame({"number": number, "town": town, "rooms": rng.integers(1, 6, n), "area": rng.random(n) * 9})
    frame["area"] += 3 * (y == "yes")
    frame.loc[rng.random(n) < 0.1, ["town", "number"]] = None
    return frame, y


def cut(frame, y, weights, n_parts, seed):
    """Return the rows in parts, some of which may be empty."""
    edges = np.sort(np.random.default_rng(seed).integers(0, len(y) + 1, n_parts - 1))
    return [(frame.iloc[a:b], y[a:b], weights[a:b]) for a, b in zip([0, *edges], [*edges, len(y)], strict=True)]


@pytest.mark.parametrize(
    ("name", "n_parts"),
    [*((name, 7) for name in MODELS), *((name, n) for name in ("KDB-3 HS", "A2DE", "forest") for n in (1, 2, 64))],
)
def test_batches_make_the_model_of_all_rows(name, n_parts):
    model, (frame, y) = MODELS[name], table()
    weights = np.random.default_rng(1).integers(0, 3, 300)
    whole = clone(model).fit(frame, y, weights)
    found = clone(model).fit_batches(cut(frame, y, weights, n_parts, n_parts))
    np.testing.assert_array_equal(found.classes_, whole.classes_)
    np.testing.assert_array_equal(found.feature_names_in_, whole.feature_names_in_)
    for own, other in zip(found.encoder_.categories_, whole.encoder_.categories_, strict=True):
        np.testing.assert_array_equal(own, other)
    np.testing.assert_array_equal(found.predict_proba(frame), whole.predict_proba(frame))
    assert found.n_parameters_ == whole.n_parameters_


@every_model
def test_order_of_batches_changes_nothing_that_counts_decide(model):
    frame, y = table()
    parts = cut(frame, y, np.ones(300, int), 7, 0)
    turned = clone(model).fit_batches(parts[::-1])
    rows = pd.concat([part[0] for part in parts[::-1]])
    whole = clone(model).fit(rows, np.concatenate([part[1] for part in parts[::-1]]))
    np.testing.assert_array_equal(turned.predict_proba(frame), whole.predict_proba(frame))
    if not isinstance(model, BayesForestClassifier):  # whose folds and bootstrap samples go by the order of rows
        np.testing.assert_array_equal(turned.predict_proba(frame), clone(model).fit(frame, y).predict_proba(frame))


def test_tables_of_arrow_and_functions_that_return_readers():
    frame, y = table()
    arrow = pa.Table.from_pandas(frame.assign(sold=y, times=np.arange(300) % 3), preserve_index=False)
    whole = NaiveBayesClassifier().fit(frame, y, np.arange(300) % 3)

    def read():
        return pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(max_chunksize=40))

    for source in (arrow, read, frame.assign(sold=y, times=np.arange(300) % 3)):
        found = NaiveBayesClassifier().fit_batches(source, "sold", sample_weight="times", batch_rows=32)
        np.testing.assert_array_equal(found.tables_.cells, whole.tables_.cells)
        assert found.feature_names_in_.tolist() == ["number", "town", "rooms", "area"]
    some = NaiveBayesClassifier().fit_batches(arrow, "sold", columns=["area", "town"])
    np.testing.assert_array_equal(
        some.predict_proba(frame[["area", "town"]]),
        NaiveBayesClassifier().fit(frame[["area", "town"]], y).predict_proba(frame[["area", "town"]]),
    )


def test_class_weights_are_those_of_all_rows():
    frame, y = table()
    frame = frame[["town", "rooms"]]  # weights of classes have no say in cuts
    weights = np.arange(300) % 3
    for class_weight in ("balanced", {"yes": 3}):
        model = NaiveBayesClassifier(class_weight=class_weight)
        found = clone(model).fit_batches(cut(frame, y, weights, 5, 0))
        whole = model.fit(frame, y, weights)
        np.testing.assert_allclose(found.tables_.cells, whole.tables_.cells, rtol=1e-12)


@pytest.mark.parametrize("name", ["KDB-3 HS", "SKDB", "forest"])
def test_of_many_rows_a_sample_chooses_and_all_are_counted(name, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_ROWS", 120)
    frame, y = table(600)
    parts = cut(frame, y, np.ones(600, int), 9, 0)
    one, two = (clone(MODELS[name]).fit_batches(source) for source in ([(frame, y)], parts))
    np.testing.assert_array_equal(one.predict_proba(frame), two.predict_proba(frame))
    assert (one.predict_proba(frame) != clone(MODELS[name]).fit(frame, y).predict_proba(frame)).any()
    counted = one.counts_.class_counts if name == "forest" else one.tables_.log_prior
    expected = np.unique(y, return_counts=True)[1]
    if name == "forest":
        assert counted.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(np.exp(counted), (expected + 1) / 602)


def test_a_sample_is_drawn_from_all_rows(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_ROWS", 50)
    frame, y = table(500)
    order = np.argsort(y, kind="stable")  # sorted by class, as tables often are
    seen = []
    monkeypatch.setattr(
        BayesForestClassifier,
        "_new_counts",
        lambda self, data, new=BayesForestClassifier._new_counts: seen.append(data) or new(self, data),
    )
    clone(MODELS["forest"]).fit_batches(cut(frame.iloc[order], y[order], np.ones(500, int), 6, 0))
    (sample,) = seen
    assert sample.n_samples == 50
    assert abs((sample.y == 1).mean() - (y == "yes").mean()) < 0.2


@pytest.mark.parametrize("name", ["naive Bayes", "Chow-Liu", "AODE", "A2DE", "forest"])
def test_chunks_may_follow(name):
    frame, y = table()
    model = clone(MODELS[name]).fit_batches([(frame[:200], y[:200])])
    model.partial_fit(frame[200:], y[200:])
    chunks = clone(MODELS[name]).partial_fit(frame[:200], y[:200], ["no", "yes"]).partial_fit(frame[200:], y[200:])
    np.testing.assert_array_equal(model.predict_proba(frame), chunks.predict_proba(frame))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BayesNetClassifier(structure=GreedySearch()), r"GreedySearch\(\) needs all rows at once"),
        (NaiveBayesClassifier(parameters=ConjugateGradient()), r"ConjugateGradient\(\) needs all rows at once"),
        (BayesForestClassifier(), r"weights='auto' are found by leaving rows out.* Use weights=None\."),
    ],
)
def test_learners_that_need_all_rows_have_no_fit_batches(model, message):
    assert not hasattr(model, "fit_batches")
    assert not hasattr(TANClassifier(), "fit_batches")
    frame, y = table()
    with pytest.raises(AttributeError) as caught:
        model.fit_batches([(frame, y)])
    with pytest.raises(AttributeError, match=message):
        raise caught.value.__cause__


def test_what_breaks_a_rule_leaves_the_model_as_it_was():
    frame, y = table()
    model = NaiveBayesClassifier().fit(frame, y)
    before = model.predict_proba(frame)
    other = frame.assign(rooms=frame["rooms"].astype(str))
    for source, target, message in (
        ([(frame[:100], y[:100]), (other[100:], y[100:])], None, "(?s)batch 1.*rooms"),
        (iter([(frame, y)]), None, "has been read already"),
        (frame.assign(y=y), "class", "class"),
        ([(frame, ["yes"] * 300)], None, "one class only"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            model.fit_batches(source, target)
    with pytest.raises(ValueError, match="class_prior"):
        model.set_params(class_prior=[0.5, 0.4]).fit_batches([(frame, y)])
    np.testing.assert_array_equal(model.predict_proba(frame), before)
