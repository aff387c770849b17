"""Classifiers that learn from Dask's collections are those of all rows in one process."""

import itertools
import pickle
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning, NotFittedError
from support.dask_tables import FEATURES, MODELS, assert_same_model, losses, table

import tanlearn
from tanlearn import LBFGS, ConditionalNLL, ConjugateGradient, EncodedData, Margin, Structure, baselines
from tanlearn.baselines import ChowLiu
from tanlearn.dask import AODEClassifier, BayesForestClassifier, BayesNetClassifier, NaiveBayesClassifier
from tanlearn.dask.objective import EncodedPart
from tanlearn.structures.table_layout import TableLayout

cloudpickle = pytest.importorskip("cloudpickle")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
dd = pytest.importorskip("dask.dataframe")

LABELLED = [*FEATURES, "sold"]


@pytest.fixture(autouse=True)
def in_this_thread():
    """Run tasks one by one, where debuggers and coverage see them."""
    with dask.config.set(scheduler="synchronous"):
        yield


def partitioned(frame, sizes):
    """Return a DataFrame of Dask's with so many rows in its partitions; zero is a number, too."""
    edges = np.cumsum([0, *sizes])
    assert edges[-1] == len(frame)
    parts = [dask.delayed(frame.iloc[a:b]) for a, b in itertools.pairwise(edges)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


SIZES = {
    "one": [300],
    "two": [120, 180],
    "seven, some empty": [0, 40, 0, 100, 1, 159, 0],
    "sixty-four": [4] * 44 + [6, 7] * 9 + [7],
}


@pytest.mark.parametrize("name", MODELS)
def test_partitions_make_the_model_of_all_rows(name):
    frame = table()
    found = clone(MODELS[name]).fit(partitioned(frame, SIZES["seven, some empty"]), "sold", "times")
    assert_same_model(found, frame)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, with pandas 3.1
def test_few_columns_of_parquet_files_stay_in_their_partitions(tmp_path):
    frame = table()
    for number, first in enumerate(range(0, 300, 75)):
        frame[first : first + 75].to_parquet(tmp_path / f"{number}.parquet", index=False)
    rows = dd.read_parquet(tmp_path)
    assert len(rows["sold"].to_delayed()) == 2  # of four files
    found = NaiveBayesClassifier().fit(rows[FEATURES], rows["sold"], rows["times"])
    assert_same_model(found, frame)


def test_dask_knows_how_large_results_are():
    from dask.callbacks import Callback
    from dask.sizeof import sizeof

    sizes = defaultdict(int)

    def weigh(key, result, *_):
        kind = type(result).__name__
        sizes[kind] = max(sizes[kind], sizeof(result))

    rows = dd.from_pandas(table(), npartitions=3)
    with Callback(posttask=weigh):
        counts = BayesNetClassifier(structure=ChowLiu()).fit(rows, "sold", "times").counts_
        NaiveBayesClassifier(parameters=LBFGS(max_iter=1, calibrate=False)).fit(rows, "sold", "times")
    assert sizes.keys() - {"DataFrame", "RowEncoder"} == {"_Found", "_Counted", "EncodedPart", "_Sum"}
    assert sizes["_Counted"] > sum(counts.pair(i, j).nbytes for i in range(4) for j in range(i))
    assert sizes["_Found"] > 300 * 8  # numbers of the column that differ
    assert sizes["EncodedPart"] > 100 * len(FEATURES)


@pytest.mark.parametrize("name", ["KDB-3 HS", "forest"])
@pytest.mark.parametrize("sizes", ["one", "two", "sixty-four"])
def test_any_number_of_partitions_does(name, sizes):
    frame = table(sum(SIZES[sizes]))
    found = clone(MODELS[name]).fit(partitioned(frame[LABELLED], SIZES[sizes]), "sold")
    assert_same_model(found, frame, None)


@pytest.mark.parametrize("name", ["naive Bayes", "KDB-3 HS", "forest"])
def test_threads_share_what_they_are_handed(name):
    frame = table()
    with dask.config.set(scheduler="threads", num_workers=4):
        found = clone(MODELS[name]).fit(partitioned(frame, SIZES["seven, some empty"]), "sold", "times")
        assert_same_model(found, frame)
        rows = partitioned(frame[FEATURES], SIZES["seven, some empty"])
        np.testing.assert_array_equal(found.predict_proba(rows), found.to_local().predict_proba(frame[FEATURES]))


def test_chunks_are_in_memory():
    frame = table()
    rows = partitioned(frame[LABELLED], SIZES["two"])
    model = NaiveBayesClassifier().fit(rows, "sold")
    with pytest.raises(TypeError, match="X must be a batch in memory, got a Dask collection"):
        model.partial_fit(rows[FEATURES], rows["sold"])
    assert model.partial_fit(frame[FEATURES], frame["sold"]).counts_.class_counts.sum() == 2 * len(frame)
    assert not hasattr(NaiveBayesClassifier(parameters=LBFGS()), "partial_fit")


def test_x_and_y_may_be_collections_of_their_own_and_columns_chosen():
    frame = table()
    rows = partitioned(frame, SIZES["two"])
    assert_same_model(NaiveBayesClassifier().fit(rows[FEATURES], rows["sold"], rows["times"]), frame)
    found = NaiveBayesClassifier().fit_batches(rows, "sold", columns=["area", "town"], exact=True)
    whole = tanlearn.NaiveBayesClassifier().fit(frame[["area", "town"]], frame["sold"])
    np.testing.assert_array_equal(found.tables_.cells, whole.tables_.cells)


def test_arrays_and_their_chunks():
    X, y = load_iris(return_X_y=True)
    whole = tanlearn.NaiveBayesClassifier().fit(X, y)
    pairs = [
        (da.from_array(X, chunks=(40, 3)), da.from_array(y, chunks=40)),
        (da.from_array(X, chunks=(40, 4)), da.from_array(y, chunks=70)),
    ]
    unknown = [one[one[:, 0] > 0] if one.ndim == 2 else one[one >= 0] for one in pairs[0]]
    for rows, labels in [*pairs, unknown]:
        found = NaiveBayesClassifier().fit(rows, labels)
        np.testing.assert_array_equal(found.tables_.cells, whole.tables_.cells)
        assert not hasattr(found, "feature_names_in_")


def test_bags_of_rows_and_of_batches():
    frame = table()[LABELLED]
    values = frame[FEATURES].to_numpy(object)
    whole = tanlearn.NaiveBayesClassifier().fit(values, frame["sold"])
    rows = db.from_sequence(values.tolist(), npartitions=4)
    labels = db.from_sequence(frame["sold"].tolist(), npartitions=4)
    found = NaiveBayesClassifier().fit(rows.map(list), labels)  # a map is an iterator
    np.testing.assert_array_equal(found.tables_.cells, whole.tables_.cells)
    assert found.predict(rows).compute() == whole.predict(frame[FEATURES].to_numpy(object)).tolist()
    np.testing.assert_array_equal(
        found.predict_proba(rows).compute(), whole.predict_proba(frame[FEATURES].to_numpy(object))
    )
    batches = db.from_sequence([0, 100, 200], npartitions=2).map(
        lambda first: (frame[FEATURES].iloc[first : first + 100], frame["sold"].iloc[first : first + 100])
    )
    found = NaiveBayesClassifier().fit(batches)
    assert_same_model(found, frame, None)
    assert found.score(batches, None) == found.score(frame[FEATURES], frame["sold"])


def test_tasks_hold_neither_blank_counts_nor_those_of_the_model(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = da.from_array(rng.integers(0, 9, (100, 40)), chunks=(50, 40)), da.from_array(np.arange(100) % 2, chunks=50)
    sizes, compute = [], dask.compute

    def watched(task):
        sizes.append(len(cloudpickle.dumps(dict(task.__dask_graph__()))))
        return compute(task)

    monkeypatch.setattr(dask, "compute", watched)
    model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    model.score(X, y)
    counts = len(pickle.dumps(model.counts_))
    assert counts > 500_000
    assert len(sizes) == 3
    assert max(sizes) < counts / 4


def test_what_all_partitions_share_is_sent_once(monkeypatch):
    X, y = (
        da.from_array(np.arange(6000).reshape(20, 300) % 2, chunks=(5, 300)),
        da.from_array(np.arange(20) % 2, chunks=5),
    )
    kept, persist = [], dask.persist

    def watched(*parts):
        kept.extend(dict(part.__dask_graph__())[part.key] for part in parts)
        return persist(*parts)

    monkeypatch.setattr(dask, "persist", watched)
    NaiveBayesClassifier(parameters=LBFGS(max_iter=1, calibrate=False)).fit(X, y)
    assert len(kept) == 4
    assert max(len(cloudpickle.dumps(task)) for task in kept) < 2000


def test_a_partition_that_is_kept_tells_its_size():
    data = EncodedData.from_codes(np.zeros((10_000, 3), np.intp), np.zeros(10_000, np.intp))
    part = EncodedPart(data, TableLayout.of_parents(Structure([-1, -1, -1]).parents, data.n_states, 1), Margin())
    assert 0 < dask.sizeof.sizeof(part) - data.codes.nbytes - data.y.nbytes < 10_000


def test_of_tables_in_memory_they_are_what_they_are_called():
    X, y = load_iris(return_X_y=True)
    for model, whole in [
        (NaiveBayesClassifier(), tanlearn.NaiveBayesClassifier()),
        (BayesNetClassifier(structure=ChowLiu()), tanlearn.BayesNetClassifier(structure=ChowLiu())),
        (AODEClassifier(), baselines.AODEClassifier()),
        (
            BayesForestClassifier(n_estimators=2, random_state=0),
            tanlearn.BayesForestClassifier(n_estimators=2, random_state=0),
        ),
    ]:
        assert repr(model) == repr(whole)
        np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), whole.fit(X, y).predict_proba(X))
        assert type(model.to_local()) is type(whole)
    found = NaiveBayesClassifier().fit_batches([(X, y)])
    np.testing.assert_array_equal(
        found.predict_log_proba(X), tanlearn.NaiveBayesClassifier().fit(X, y).predict_log_proba(X)
    )


def test_predictions_are_lazy_and_of_the_kind_that_is_announced():
    frame = table()
    rows = partitioned(frame[LABELLED], SIZES["seven, some empty"])
    model = NaiveBayesClassifier().fit(rows, "sold")
    local = model.to_local()
    computed = []
    watched = rows[FEATURES].map_partitions(
        lambda part: computed.append(len(part)) or part, meta=frame[FEATURES].iloc[:0]
    )
    lazy = [getattr(model, method)(watched) for method in ("predict", "predict_proba", "predict_log_proba")]
    assert computed == []
    predicted, probabilities, logarithms = lazy
    assert all(one.npartitions == rows.npartitions for one in lazy)
    dd.utils.assert_eq(predicted, pd.Series(local.predict(frame[FEATURES])), check_divisions=False)
    dd.utils.assert_eq(
        probabilities, pd.DataFrame(local.predict_proba(frame[FEATURES]), columns=["no", "yes"]), check_divisions=False
    )
    assert logarithms.columns.tolist() == ["no", "yes"]
    X, y = load_iris(return_X_y=True)
    chunks = da.from_array(X, chunks=(40, 2))
    model = NaiveBayesClassifier().fit(chunks, da.from_array(y, chunks=40))
    da.utils.assert_eq(model.predict(chunks), model.to_local().predict(X))
    da.utils.assert_eq(model.predict_proba(chunks), model.to_local().predict_proba(X))
    assert model.predict_proba(chunks).chunks == ((40, 40, 40, 30), (3,))


def test_score_is_that_of_all_rows():
    frame = table()
    rows = partitioned(frame, SIZES["seven, some empty"])
    model = NaiveBayesClassifier().fit(rows[LABELLED], "sold")
    local = model.to_local()
    assert model.score(rows[[*FEATURES, "sold"]], "sold") == local.score(frame[FEATURES], frame["sold"])
    assert np.isclose(
        model.score(rows, "sold", "times"), local.score(frame[FEATURES], frame["sold"], frame["times"]), rtol=1e-12
    )
    with pytest.raises(ValueError, match="score needs rows of positive weight"):
        model.score(rows.assign(times=0), "sold", "times")
    with pytest.warns(DataConversionWarning):
        assert model.score(rows[FEATURES], rows[["sold"]]) == model.score(rows[LABELLED], "sold")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows.assign(sold=rows["sold"].where(rows["rooms"] > 2)), "y is missing in row"),
        (lambda rows: rows.assign(times=-1), "sample_weight must be non-negative, but is -1 in row 0"),
        (lambda rows: rows.assign(sold=1), "Mix of label input types"),
    ],
)
def test_what_cannot_be_scored_is_refused_with_its_position(change, reason):
    rows = partitioned(table(), SIZES["two"])
    model = NaiveBayesClassifier().fit(rows, "sold", "times")
    with pytest.raises(ValueError, match=rf"^in partition [01]: {reason}"):
        model.score(change(rows), "sold", "times")


@pytest.mark.parametrize("learner", [ConjugateGradient, LBFGS])
@pytest.mark.parametrize("weights", [None, "times"])
def test_searches_over_partitions_end_where_those_over_all_rows_do(learner, weights):
    frame = table()
    rows = partitioned(frame if weights else frame[LABELLED], SIZES["seven, some empty"])
    given = frame[["town", "rooms"]], frame["sold"], None if weights is None else frame[weights]
    parameters = learner(loss=ConditionalNLL(), max_iter=500, tol=1e-7, calibrate=False)
    model = NaiveBayesClassifier(parameters=parameters)
    model.fit_batches(rows, "sold", sample_weight=weights, columns=["town", "rooms"])
    whole = tanlearn.NaiveBayesClassifier(parameters=parameters).fit(*given)
    assert model.parameters_.converged_
    assert whole.parameters_.converged_
    # Iterations enlarge what is rounded otherwise; the optimum is one.
    np.testing.assert_allclose(model.parameters_.history_[-1].loss, whole.parameters_.history_[-1].loss, rtol=1e-9)
    np.testing.assert_allclose(model.to_local().predict_proba(given[0]), whole.predict_proba(given[0]), atol=1e-5)
    assert not hasattr(model, "counts_")
    given = frame[FEATURES], *given[1:]
    parameters = learner(max_iter=8, calibrate=False)
    model = BayesNetClassifier(structure=ChowLiu(), parameters=parameters).fit(rows, "sold", weights)
    whole = tanlearn.BayesNetClassifier(structure=ChowLiu(), parameters=parameters).fit(*given)
    np.testing.assert_allclose(losses(model), losses(whole), rtol=1e-9)
    np.testing.assert_allclose(model.tables_.cells, whole.tables_.cells, atol=1e-9)


def test_a_search_asks_held_out_rows_of_a_sample():
    frame = table()
    rows = partitioned(frame, SIZES["two"])
    model = NaiveBayesClassifier(parameters=LBFGS()).fit(rows, "sold", "times")
    whole = tanlearn.NaiveBayesClassifier(parameters=LBFGS()).fit(frame[FEATURES], frame["sold"], frame["times"])
    assert model.parameters_.n_iter_ == whole.parameters_.n_iter_
    assert model.calibration_ == whole.calibration_


def test_held_out_rows_of_a_sample_are_judged_with_structures_learned_without_them():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 3, (300, 8)).astype(str), columns=[*"abcdefgh"])
    rows = partitioned(frame, SIZES["two"])
    arguments = {"structure": ChowLiu(), "parameters": LBFGS(loss=ConditionalNLL())}
    model = BayesNetClassifier(**arguments).fit(rows, "h")
    whole = tanlearn.BayesNetClassifier(**arguments).fit(frame[[*"abcdefg"]], frame["h"])
    fixed = BayesNetClassifier(**(arguments | {"structure": whole.structure_})).fit(rows, "h")
    assert model.structure_ == whole.structure_
    assert type(model.structure_) is Structure
    assert model.calibration_ == whole.calibration_
    assert model.calibration_ != fixed.calibration_


@pytest.mark.filterwarnings("ignore:sample_weight adds up:UserWarning")
def test_light_weights_are_searched_as_in_memory():
    frame = table()[["town", "rooms", "sold"]].assign(times=np.linspace(1e-4, 3e-4, 300))
    parameters = ConjugateGradient(max_iter=10, calibrate=False)
    model = NaiveBayesClassifier(parameters=parameters).fit(partitioned(frame, SIZES["two"]), "sold", "times")
    whole = tanlearn.NaiveBayesClassifier(parameters=parameters)
    whole.fit(frame[["town", "rooms"]], frame["sold"], frame["times"])
    np.testing.assert_allclose(losses(model), losses(whole), rtol=1e-9)
    np.testing.assert_allclose(model.tables_.cells, whole.tables_.cells, atol=1e-9)


def test_what_is_fitted_is_an_estimator_of_this_process(tmp_path):
    frame = table()
    model = BayesNetClassifier(structure=ChowLiu()).fit(partitioned(frame, SIZES["two"]), "sold")
    with pytest.raises(NotFittedError):
        BayesNetClassifier().to_local()
    model.save(tmp_path / "flats.tan")
    tanlearn.save(model, tmp_path / "again.tan")
    for name in ("flats.tan", "again.tan"):
        loaded = tanlearn.load(tmp_path / name)
        assert type(loaded) is tanlearn.BayesNetClassifier
        np.testing.assert_array_equal(loaded.tables_.cells, model.tables_.cells)
    later = model.to_local().partial_fit(frame[[*FEATURES, "times"]], frame["sold"])
    assert later.counts_.class_counts.sum() == 2 * len(frame)


def test_a_category_that_only_the_last_partition_has():
    frame = table().sort_values("town", ignore_index=True)
    assert "Wien" not in set(frame["town"][:150])
    assert_same_model(NaiveBayesClassifier().fit(partitioned(frame, [50, 100, 150]), "sold", "times"), frame)
    parts = [part.assign(town=part["town"].astype("category")) for part in (frame[:50], frame[50:150], frame[150:])]
    assert [len(part["town"].cat.categories) for part in parts] != [3, 3, 3]
    meta = parts[0].iloc[:0].assign(town=dd.utils.clear_known_categories(parts[0]["town"].iloc[:0]))
    rows = dd.from_delayed([dask.delayed(part) for part in parts], meta=meta, verify_meta=False)
    found = NaiveBayesClassifier().fit(rows, "sold", "times")
    assert found.encoder_.categories_[1].tolist() == ["Graz", "Linz", "Wien"]
    whole = tanlearn.NaiveBayesClassifier().fit(frame[FEATURES], frame["sold"], frame["times"])
    np.testing.assert_array_equal(found.to_local().predict_proba(frame[FEATURES]), whole.predict_proba(frame[FEATURES]))


def test_a_column_of_another_type_in_one_partition_is_named_with_it():
    frame = table()
    parts = [frame.iloc[:100], frame.iloc[100:200].assign(rooms="many"), frame.iloc[200:]]
    rows = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0], verify_meta=False)
    model = NaiveBayesClassifier()
    with pytest.raises(
        TypeError, match=r"^in partition 1: X column 'rooms' holds strings where partition 0 has numbers"
    ):
        model.fit(rows, "sold")
    assert vars(model) == vars(NaiveBayesClassifier())


class Shrinking:
    """Return a partition whole when it is first read, and 200 of its rows later."""

    def __init__(self):
        self.n_readings = 0

    def __call__(self, part):
        self.n_readings += 1
        return part if self.n_readings == 1 else part.iloc[:200]

    def __dask_tokenize__(self):
        return "shrinking"


@pytest.mark.parametrize(
    "model",
    [
        NaiveBayesClassifier(),
        NaiveBayesClassifier(parameters=LBFGS(max_iter=3, calibrate=False)),
        BayesForestClassifier(n_estimators=2, weights=None),
    ],
)
def test_partitions_that_are_others_when_they_are_read_again_are_refused(model):
    frame = table()
    rows = partitioned(frame, SIZES["one"]).map_partitions(Shrinking(), meta=frame.iloc[:0])
    with pytest.raises(
        ValueError, match=r"^partitions must .* partition 0 had \d+ row\(s\) of nonzero weight at first"
    ):
        clone(model).fit(rows, "sold", "times")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda part: part.drop(columns="sold"), "there is no column 'sold'. The columns are: 'number'"),
        (lambda part: part.drop(columns="town"), r"there are 3 column\(s\) where partition 0 has 4"),
        (lambda part: part.assign(more=1), r"there are 5 column\(s\) where partition 0 has 4"),
        (lambda part: part[part.columns[::-1]], "column 0 is X column 'area' where partition 0 has X column 'number'"),
    ],
)
def test_other_columns_in_one_partition_are_reported_with_it(change, reason):
    frame = table()[["sold", *FEATURES, "times"]]
    parts = [frame.iloc[:100], change(frame.iloc[100:200]), frame.iloc[200:]]
    rows = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(ValueError, match=f"^in partition 1: {reason}"):
        NaiveBayesClassifier().fit(rows, "sold", "times")


BAD = {
    "another number of rows": (
        lambda rows: (rows[FEATURES], partitioned(table(), [180, 120])["sold"]),
        ValueError,
        r"^in partition [01]: y has 1[28]0 row\(s\), but X has 1[28]0",
    ),
    "other rows": (
        lambda rows: (rows[FEATURES], partitioned(table().iloc[::-1], [120, 180])["sold"]),
        ValueError,
        "^in partition [01]: X and y must have the same index",
    ),
    "another number of partitions": (
        lambda rows: (rows[FEATURES], rows["sold"].repartition(npartitions=1)),
        ValueError,
        r"^y has 1 partition\(s\), but X has 2",
    ),
    "rows of another number": (
        lambda rows: (da.ones((9, 2), chunks=3), da.ones(8, chunks=4)),
        ValueError,
        "^X has 9 rows, but y has 8. Pass y for the same rows as X",
    ),
    "no column": (lambda rows: (rows, "sould"), ValueError, "^no column is called 'sould'. The columns are: 'number'"),
    "two columns of a name": (
        lambda rows: (rows.rename(columns={"town": "area"}), "sold"),
        ValueError,
        "^several columns are called 'area'. The columns are",
    ),
    "weights as classes": (lambda rows: (rows, "sold", "sold"), ValueError, "^'sold' occurs twice among"),
    "a name beside an array": (
        lambda rows: (da.ones((9, 2)), "sold"),
        TypeError,
        "can be column names only if X is a DataFrame, got an Array",
    ),
    "classes in memory": (
        lambda rows: (rows[FEATURES], table()["sold"]),
        TypeError,
        "^y must be a Dask collection like X",
    ),
    "weights beside tuples": (
        lambda rows: (db.from_sequence([([[1]], ["a"])] * 2), None, db.from_sequence([1, 2])),
        TypeError,
        "^sample_weight needs y",
    ),
    "weights of some tuples": (
        lambda rows: (db.from_sequence([([[1]], ["a"]), ([[1]], ["b"], [2])], npartitions=2),),
        ValueError,
        "^in partition 1: there are weights where partition 0 has none",
    ),
    "a Delayed": (
        lambda rows: (rows[FEATURES], dask.delayed(table()["sold"])),
        TypeError,
        "^y must be a Dask collection like X",
    ),
    "no classes": (lambda rows: (rows[FEATURES],), TypeError, "^y must be a collection like X"),
    "no rows": (lambda rows: (rows[rows["rooms"] > 9], "sold"), ValueError, "^all partitions are empty"),
    "no weight": (lambda rows: (rows.assign(times=0), "sold", "times"), ValueError, "sample_weight"),
    "a negative weight": (
        lambda rows: (rows.assign(times=-1), "sold", "times"),
        ValueError,
        "^in partition [01]: sample_weight",
    ),
    "one class": (lambda rows: (rows[rows["sold"] == "yes"], "sold"), ValueError, "class"),
}


def test_one_name_is_no_list_of_columns():
    rows = partitioned(table().rename(columns={"area": "a"}), SIZES["two"])
    with pytest.raises(TypeError, match="columns must be a list of names, got 'a'"):
        NaiveBayesClassifier().fit_batches(rows, "sold", columns="a")


@pytest.mark.parametrize("class_weight", [{"yes": -1}, {"maybe": 2}])
def test_wrong_class_weights_are_reported_as_in_memory_before_rows_are_counted(class_weight):
    rows = partitioned(table(), SIZES["two"])
    with pytest.raises(ValueError, match=r"^class_weight must give positive weights to classes"):
        NaiveBayesClassifier(class_weight=class_weight).fit(rows, "sold")


@pytest.mark.parametrize("case", BAD)
def test_wrong_collections_are_refused(case):
    arguments, error, reason = BAD[case]
    model = NaiveBayesClassifier()
    with pytest.raises(error, match=reason):
        model.fit(*arguments(partitioned(table(), SIZES["two"])))
    assert vars(model) == vars(NaiveBayesClassifier())


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (BayesForestClassifier(), "weights='auto' need all rows at once"),
        (NaiveBayesClassifier(parameters=tanlearn.HybridCV()), "needs? all rows at once"),
        (BayesNetClassifier(structure=baselines.GreedySearch()), "needs? all rows at once"),
        (NaiveBayesClassifier(parameters=LBFGS(alpha=-1)), "'alpha' parameter of LBFGS"),
    ],
)
def test_learners_that_cannot_are_refused_before_anything_is_read(model, reason):
    def fail():
        raise AssertionError

    frame = table()
    rows = dd.from_delayed([dask.delayed(fail)()], meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(ValueError, match=reason):
        model.fit(rows, "sold")
