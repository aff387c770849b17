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
    RandomTree,
    SelectiveKDependenceClassifier,
)
from tanlearn.estimators import row_sources as module

MODELS = {
    "naive Bayes": NaiveBayesClassifier(),
    "naive Bayes, smoothed": NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.1), class_prior=[0.3, 0.7]),
    "given": BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1], [2, -1]])),
    "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
    "KDB-1": BayesNetClassifier(structure=KDependence(k=1)),
    "random tree": BayesNetClassifier(structure=RandomTree(), random_state=3),
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


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 3}])
def test_class_weights_leave_the_cut_points_of_forests_alone(class_weight):
    frame, y = table()
    weights = np.arange(300) % 3
    model = clone(MODELS["forest"]).set_params(class_weight=class_weight)
    found = clone(model).fit_batches(cut(frame, y, weights, 5, 0))
    whole = model.fit(frame, y, weights)
    np.testing.assert_allclose(found.predict_proba(frame), whole.predict_proba(frame), rtol=1e-9)


def test_of_more_than_65536_rows_so_many_are_chosen():
    assert module.choose_rows(65_536).tolist() == list(range(65_536))
    chosen = module.choose_rows(100_000)
    assert len(chosen) == 65_536
    assert (np.diff(chosen) > 0).all()
    assert 0 <= chosen[0] <= chosen[-1] < 100_000
    assert abs((chosen < 50_000).mean() - 0.5) < 0.01
    np.testing.assert_array_equal(chosen, module.choose_rows(100_000))


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
        (BayesForestClassifier(), r"weights='auto' need all rows at once.* Use weights=None\."),
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


@pytest.mark.parametrize("model", ["naive Bayes", "Chow-Liu", "KDB-2"])
@pytest.mark.parametrize("alpha", [-1, np.nan, "x"])
def test_wrong_parameters_of_learners_are_refused_before_anything_is_read(model, alpha):
    model = clone(MODELS[model]).set_params(parameters=MaximumLikelihood(alpha=alpha))
    with pytest.raises(ValueError, match="'alpha' parameter of MaximumLikelihood"):
        model.fit_batches(iter(()))


def test_categories_that_are_declared_batch_by_batch_may_grow():
    frame, y = table()
    frame = frame[["town", "rooms"]].assign(town=frame["town"].astype("category"))
    first = np.flatnonzero(frame["town"] != "Wien")
    rows = np.concatenate([first, np.flatnonzero(frame["town"] == "Wien")])
    parts = [frame.iloc[part].copy() for part in np.split(rows, [len(first) // 2, len(first)])]
    for part in parts:
        part["town"] = part["town"].cat.remove_unused_categories()
    assert [len(part["town"].cat.categories) for part in parts] == [2, 2, 1]
    whole = NaiveBayesClassifier().fit(frame, y)
    found = NaiveBayesClassifier().fit_batches(zip_of(parts, np.split(y[rows], [len(first) // 2, len(first)])))
    np.testing.assert_array_equal(found.predict_proba(frame), whole.predict_proba(frame))
    empty = frame.iloc[:5].assign(town=pd.Categorical([None] * 5, []))
    NaiveBayesClassifier().fit_batches([(empty, y[:5]), (frame[5:], y[5:])])
    chunked = pa.concat_tables(pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    arrow = NaiveBayesClassifier().fit_batches(chunked.append_column("sold", pa.array(y[rows])), "sold")
    np.testing.assert_array_equal(arrow.tables_.cells, found.tables_.cells)


def zip_of(*lists):
    """Return tuples as a list, which can be read twice."""
    return list(zip(*lists, strict=True))


def test_a_class_of_rows_of_no_weight_is_none():
    frame, y = table()
    labels, weights = np.append(y[:-1], "perhaps"), np.append(np.ones(299, int), 0)
    found = NaiveBayesClassifier().fit_batches([(frame, labels, weights)])
    np.testing.assert_array_equal(found.classes_, ["no", "yes"])
    np.testing.assert_array_equal(found.tables_.cells, NaiveBayesClassifier().fit(frame, labels, weights).tables_.cells)


class Changing:
    """A source that is another one when it is read again."""

    def __init__(self, *readings):
        self.readings = list(readings)

    def __iter__(self):
        return iter([self.readings.pop(0)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[["town", "number", "rooms", "area"]], y), "column 0 is X column 'town' where batch 0 has"),
        (lambda X, y: (X.rename(columns={"town": "city"}), y), "X column 'city'"),
        (lambda X, y: (X.assign(more=1), y), "there are 5 column"),
        (lambda X, y: (X.assign(rooms=X["rooms"].astype(str)), y), "X column 'rooms' holds strings"),
        (lambda X, y: (X, y, np.ones(300)), "there are weights where batch 0 has none"),
        (lambda X, y: (X[:200], y[:200]), "had 300 row"),
        (lambda X, y: (X, np.where(np.arange(300) == 7, "never", y)), "batch 0.*y holds 'never' in row 7"),
    ],
)
def test_a_second_reading_must_be_that_of_the_first(change, message):
    frame, y = table()
    with pytest.raises((TypeError, ValueError), match=message):
        NaiveBayesClassifier().fit_batches(Changing((frame, y), change(frame, y)))


def test_names_of_columns_are_those_of_any_table():
    frame, y = table()
    found = NaiveBayesClassifier().fit_batches([(pa.Table.from_pandas(frame, preserve_index=False), y)])
    assert found.feature_names_in_.tolist() == list(frame.columns)
    assert not hasattr(NaiveBayesClassifier().fit_batches([(frame.to_numpy(object), y)]), "feature_names_in_")
    with pytest.raises(TypeError, match="either all column names or none must be strings, but 1 is not"):
        NaiveBayesClassifier().fit_batches([(frame.rename(columns={"town": 1}), y)])


def test_missing_entries_of_dictionaries_are_missing():
    codes = np.arange(60) % 3
    column = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([30.0, float("nan"), 10.0]))
    source = pa.table({"a": column, "y": pa.array(["no", "yes"] * 30)})
    model = NaiveBayesClassifier().fit_batches(source, "y", batch_rows=7)
    assert model.encoder_.categories_[0].tolist() == [30.0, 10.0]
    assert model.counts_.cells[2:].sum() == 40


@pytest.mark.parametrize("wrong", [{"target": np.array(["no"])}, {"target": "y", "sample_weight": [1.0]}])
def test_classes_beside_a_table_are_told_where_to_stand(wrong):
    frame, y = table()
    with pytest.raises(TypeError, match=r"must be the name of a column of the source.*tuples: \[\(X, y\)\]"):
        NaiveBayesClassifier().fit_batches(frame.assign(y=y), **wrong)


def test_what_breaks_a_rule_leaves_the_model_as_it_was():
    frame, y = table()
    model = NaiveBayesClassifier().fit(frame, y)
    before = model.predict_proba(frame)
    other = frame.assign(rooms=frame["rooms"].astype(str))
    for source, target, message in (
        ([(frame[:100], y[:100]), (other[100:], y[100:])], None, "(?s)batch 1.*rooms"),
        (iter([(frame, y)]), None, "was already read"),
        (frame.assign(y=y), "class", "class"),
        ([(frame, ["yes"] * 300)], None, "one class only"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            model.fit_batches(source, target)
    with pytest.raises(ValueError, match="class_prior"):
        model.set_params(class_prior=[0.5, 0.4]).fit_batches([(frame, y)])
    np.testing.assert_array_equal(model.predict_proba(frame), before)
