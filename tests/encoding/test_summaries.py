"""Summaries of parts of a table: the encoder of the whole, whatever the parts, and their bytes."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from support.summaries import (
    DISCRETIZERS,
    FRAME,
    RNG,
    WEIGHT,
    N,
    OwnQuantiles,
    Y,
    assert_same,
    fitted,
    merged,
    of,
    parts_of,
)

from tanlearn import TableEncoder
from tanlearn.encoding.summaries import TableSummary
from tanlearn.sources.columns import read_columns

pytestmark = pytest.mark.filterwarnings("ignore:discretization left")  # small tables are noise


@pytest.mark.parametrize("n_parts", [1, 2, 7, 64])
@pytest.mark.parametrize("discretizer", DISCRETIZERS.values(), ids=DISCRETIZERS)
@pytest.mark.parametrize("weight", [None, WEIGHT, WEIGHT / 4], ids=["rows", "whole", "quarters"])
def test_parts_have_the_encoder_of_the_whole(n_parts, discretizer, weight):
    whole, classes = fitted(TableEncoder(discretizer=discretizer), FRAME, Y, weight)
    parts = parts_of(FRAME, Y, weight, np.array_split(np.arange(N), n_parts))
    summary = merged(parts, np.random.default_rng(n_parts))
    assert summary.classes_.tolist() == classes.tolist()
    assert summary.classes_.dtype == classes.dtype
    assert summary.n_samples == (N if weight is None else np.count_nonzero(weight))
    weights = np.ones(N) if weight is None else weight
    assert summary.class_counts.tolist() == [weights[label == Y].sum() for label in classes]
    assert_same(summary.fit_encoder(TableEncoder(discretizer=discretizer)), whole)
    assert [summary.rank_error(i) for i in range(8)] == [0.0] * 8


@pytest.mark.parametrize("option", [False, True, [0, 3, 4, 6], ["town", "rooms", "grade"]], ids=str)
def test_options_of_the_encoder_hold(option):
    frame = FRAME if option is not False else FRAME.drop(columns=["town", "grade"])
    names = np.array(frame.columns, dtype=object)
    encoder = TableEncoder(discrete_features=option, handle_unknown="error", discretizer=OwnQuantiles(max_bins=5))
    whole = TableEncoder(**encoder.get_params(deep=False)).fit(frame, Y)
    found = merged(parts_of(frame, Y, None, np.array_split(np.arange(N), 3))).fit_encoder(encoder, names)
    assert_same(found, whole)
    assert found.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    assert found.handle_unknown == "error"
    assert not hasattr(encoder, "categories_")
    assert np.array_equal(found.encode(frame), whole.encode(frame))


CELLS = st.tuples(
    st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, 1e300, 5e-324, float("nan")]),
    st.sampled_from(["a", "b", "", "c\0", "ß", "\ud800", None]),
    st.sampled_from([0, 1, -1, 2**60, 2**60 + 1, None]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(CELLS, st.integers(0, 3), st.integers(0, 3), st.integers(0, 63)), min_size=2, max_size=40),
    n_parts=st.sampled_from([1, 2, 7, 64]),
    seed=st.integers(0, 99),
)
def test_no_partition_and_no_order_of_merging_shows(rows, n_parts, seed):
    cells, y, weight, of_row = map(list, zip(*rows, strict=True))
    table = np.empty((len(rows), 4), object)
    table[:] = cells
    y, weight = np.array([0, 1, *y[2:]]), np.array(weight)
    weight[:2] += 1
    parts = parts_of(table, y, weight, [np.array(of_row) % n_parts == part for part in range(n_parts)])
    summary = merged(parts, np.random.default_rng(seed))
    whole, classes = fitted(TableEncoder(), table, y, weight)
    assert summary.classes_.tolist() == classes.tolist()
    assert_same(summary.fit_encoder(TableEncoder()), whole)
    assert summary.to_bytes() == of(table, y, weight).to_bytes()


@pytest.mark.parametrize(
    "table", [np.array([[-0.0, 1.0], [0.0, -0.0]]), pd.DataFrame({"a": [0.0, -0.0], "b": [-1.0, -0.0]})]
)
def test_training_ranges_have_no_negative_zero(table):
    y = np.array([0, 1])
    for order in ([0, 1], [1, 0]):
        rows = table.iloc[order] if isinstance(table, pd.DataFrame) else table[order]
        summary = TableSummary()
        summary.update(read_columns(rows), y)
        for encoder in (
            TableEncoder(discrete_features=False).fit(rows, y),
            summary.fit_encoder(TableEncoder(discrete_features=False)),
        ):
            assert None not in encoder.value_ranges_
            assert "-0.0" not in repr(encoder.value_ranges_)


def test_rows_one_by_one_are_the_table():
    rows = [read_columns(FRAME.iloc[[row]]) for row in range(N)]
    summary = TableSummary()
    for row, label, weight in zip(rows, Y.tolist(), WEIGHT.tolist(), strict=True):
        summary.update(row, [label], [weight])
    assert_same(summary.fit_encoder(TableEncoder()), fitted(TableEncoder(), FRAME, Y, WEIGHT)[0])


@pytest.mark.parametrize("weight", [None, WEIGHT / 4], ids=["rows", "quarters"])
def test_threads_change_nothing(weight, monkeypatch):
    monkeypatch.setattr("tanlearn.encoding.summaries._FEWEST_FOR_THREADS", 0)
    one, two = (TableSummary(n_points=16) for _ in range(2))
    for rows in np.array_split(np.arange(N), 3):
        columns, own = read_columns(FRAME.iloc[rows]), None if weight is None else weight[rows]
        one.update(columns, Y[rows], own)
        two.update(columns, Y[rows], own, n_jobs=2)
    assert one.to_bytes() == two.to_bytes()


def test_numpy_and_polars_tables_do_as_well():
    X = RNG.integers(0, 30, (N, 3)).astype(np.uint8)
    for table in (X, X.astype(">f8"), np.asfortranarray(X.astype(np.float16)), pl.from_pandas(FRAME)):
        summary = merged(parts_of(table, Y, None, np.array_split(np.arange(N), 5)))
        assert_same(summary.fit_encoder(TableEncoder()), fitted(TableEncoder(), table, Y)[0])


def test_real_weights_are_added():
    weight = RNG.random(N)
    whole, _ = fitted(TableEncoder(), FRAME, Y, weight)
    summary = merged(parts_of(FRAME, Y, weight, np.array_split(np.arange(N), 5)))
    assert summary.class_counts.dtype == np.float64
    assert_same(summary.fit_encoder(TableEncoder()), whole, exact=False)
    # One part with real weights makes all of them real, and no part without any loses rows.
    summary = of(FRAME, Y).merge(of(FRAME, Y, weight))
    np.testing.assert_allclose(summary.class_counts, [(1 + weight)[label == Y].sum() for label in summary.classes_])
    twice = pd.concat([FRAME, FRAME], ignore_index=True)
    whole, _ = fitted(TableEncoder(), twice, np.append(Y, Y), np.append(np.ones(N), weight))
    assert_same(summary.fit_encoder(TableEncoder()), whole, exact=False)


@pytest.mark.parametrize(
    "labels",
    [
        ([1, 0], [0, 2]),
        (np.array([1, 0], np.int8), np.array([300, 0])),
        ([True, False], [2, 0]),
        (np.array(["b", "a"]), np.array(["zebra", "a"])),
        (["b", "a"], np.array(["zebra", "a"])),
        ([1.0, 2.0], [0, 3]),
        ([2**60], [2**60 + 1]),
        ([2**60, 2**60 + 1, 2], [3.0]),
    ],
    ids=str,
)
def test_classes_are_those_of_all_parts(labels):
    summary = merged([of(np.arange(len(part))[:, np.newaxis] * 0.5, part) for part in labels])
    joined = np.concatenate([np.asarray(part) for part in labels])
    expected = np.unique(joined)
    assert summary.classes_.tolist() == expected.tolist()
    assert summary.class_counts.tolist() == [(joined == label).sum() for label in expected]
    if not any(isinstance(part, list) for part in labels):
        assert summary.classes_.dtype == joined.dtype
    rows = np.concatenate([np.arange(len(part)) * 0.5 for part in labels])[:, np.newaxis]
    assert_same(summary.fit_encoder(TableEncoder()), fitted(TableEncoder(), rows, joined)[0])


def test_many_classes_give_no_warning():
    labels = np.arange(30)
    summary = of(labels[:, np.newaxis] * 0.5, labels.astype(float)).merge(of(labels[:, np.newaxis] * 0.5, labels))
    assert summary.fit_encoder(TableEncoder()).n_states_.tolist() == [30]


def test_empty_parts_leave_no_trace():
    none = read_columns(FRAME).take(np.zeros(N, np.bool_))
    summary = TableSummary().merge(TableSummary()).update(none, []).update(none, [], [])
    assert (summary.n_samples, summary.labels[0], summary.classes_.tolist()) == (0, "X column 'town'", [])
    summary.update(read_columns(FRAME), np.full(N, "absent"), np.zeros(N))  # rows of no weight are none
    summary.update(read_columns(FRAME), Y, WEIGHT).update(none, [])
    assert summary.to_bytes() == of(FRAME, Y, WEIGHT).to_bytes()
    assert summary.merge(TableSummary()).n_samples == np.count_nonzero(WEIGHT)


ROWS = read_columns([[1.5], [2.5]])
BATCHES = {
    "strings": (
        ["a", "b"],
        None,
        TypeError,
        r"y holds int \(0\) in one part and str \('a'\) .* Cast the classes to str",
    ),
    "mixed": (["a", 1], None, TypeError, "y holds str .* and int"),
    "real classes": ([0.5, 1.0], None, ValueError, "Unknown label type"),
    "missing class": ([None, 1], None, ValueError, "y is missing in row 0"),
    "short": ([1], None, ValueError, "X has 2, y has 1"),
    "negative": ([0, 1], [1, -1], ValueError, "must be non-negative"),
    "short weights": ([0, 1], [1], ValueError, "sample_weight has 1"),
    "too much": ([0, 1], [2**63 - 3, 1], ValueError, f"add up to {2**63}, but may add up to {2**63 - 1} at most"),
    "much too much": ([0, 1], [1e100, 1e100], ValueError, "the weights of all parts add up to 2e[+]100"),
}


@pytest.mark.parametrize(("y", "weight", "error", "message"), BATCHES.values(), ids=BATCHES)
def test_batches_that_break_a_rule_change_nothing(y, weight, error, message):
    summary = of([[1.5], [2.5]], [0, 1])
    before = summary.to_bytes()
    with pytest.raises(error, match=message):
        summary.update(ROWS, y, weight)
    assert summary.to_bytes() == before


def test_real_weights_of_all_parts_have_a_limit():
    summary = of([[1.5]], [0], [9e99])
    with pytest.raises(ValueError, match=r"the weights of all parts add up to 1.8e[+]100, but may add up to 1e[+]100"):
        summary.merge(of([[1.5]], [0], [9e99]))
    with pytest.raises(ValueError, match="sample_weight adds up to 2e-120 over 2 rows"):
        of([[1.5], [2.5]], [0, 1], [1e-120, 1e-120]).fit_encoder(TableEncoder())


def test_encoders_need_rows_classes_and_cuts():
    class Bins(BaseEstimator):
        def fit(self, X, y, sample_weight=None):
            return self

        def transform(self, X):
            return X

    with pytest.raises(ValueError, match="has no rows with non-zero weight"):
        TableSummary().fit_encoder(TableEncoder())
    with pytest.raises(ValueError, match=r"y holds one class only, 7, in all 1 row\(s\)"):
        of([[1.5]], [7]).fit_encoder(TableEncoder())
    summary = of([[1.5, "a"], [2.5, "b"]], [0, 1])
    with pytest.raises(TypeError, match="X column 1 holds str, but only numbers can be discretized"):
        summary.fit_encoder(TableEncoder(discrete_features=False))
    with pytest.raises(TypeError, match="Bins is not a CutPointDiscretizer"):
        summary.fit_encoder(TableEncoder(discretizer=Bins()))
    with pytest.raises(ValueError, match="discrete_features must be"):
        summary.fit_encoder(TableEncoder(discrete_features=[2]))
    with pytest.raises(IndexError, match=r"there is no column 2\. Columns are numbered from 0 to 1"):
        summary.rank_error(2)


@pytest.mark.parametrize("n_points", [1, 2.5, "many"])
def test_numbers_of_points_are_checked(n_points):
    with pytest.raises(ValueError, match="n_points must be an integer of at least 2"):
        TableSummary(n_points=n_points)
    with pytest.raises(ValueError, match="Create both with the same n_points"):
        TableSummary().merge(TableSummary(exact=True))


SUMMARIES = {
    "frame": lambda: of(FRAME, Y, WEIGHT),
    "real weights": lambda: of(FRAME, Y, WEIGHT / 3),
    "points": lambda: of(np.random.default_rng(0).normal(size=(500, 2)), np.arange(500) % 3, n_points=4),
    "bytes": lambda: of([[b"\xff\0"], [b"a"]], ["x", "y"]),
    "surrogates": lambda: of([["\ud800"], ["\0"]], np.array(["a", "longer"])),
    "numbers declared": lambda: of(pd.DataFrame({"t": pd.Categorical([3, 1], [5, 3, 1])}), [1.0, 2.0]),
    "mixed declared": lambda: of(pd.DataFrame({"t": pd.Categorical(["a", 1], ["a", 1, 2.5])}), [True, False]),
    "scalars declared": lambda: of(
        pd.DataFrame({"t": pd.Categorical([2.5], pd.Index(["a", np.float32(2.5)], dtype=object))}), [0]
    ),
    "empty": lambda: TableSummary(n_points=77, exact=True),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_bytes_give_the_summary_back(name):
    summary = SUMMARIES[name]()
    again = TableSummary.from_bytes(summary.to_bytes())
    assert again.to_bytes() == summary.to_bytes()
    assert repr(again) == repr(summary)
    assert again.classes_.dtype == summary.classes_.dtype
    assert again.labels == summary.labels
    if len(summary.classes_) > 1:
        assert_same(again.fit_encoder(TableEncoder()), summary.fit_encoder(TableEncoder()))
        assert [again.rank_error(i) for i in range(len(again.labels))] == [
            summary.rank_error(i) for i in range(len(again.labels))
        ]
    if summary.n_samples:
        twice = again.merge(summary)
        assert twice.n_samples == 2 * summary.n_samples


def test_categories_that_cannot_be_stored_are_named():
    frame = pd.DataFrame({"t": pd.cut([1.0, 2.0], 2)})
    with pytest.raises(TypeError, match="X column 't' declares the category Interval"):
        of(frame, [0, 1]).to_bytes()


def altered(summary, change):
    """Return the bytes of a summary after changing its arrays and its state."""
    with np.load(io.BytesIO(summary.to_bytes())) as file:
        arrays = {name: file[name] for name in file.files}
    state = json.loads(arrays["state"].tobytes())
    change(arrays, state)
    arrays["state"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


DAMAGE = {
    "format": lambda a, s: a.update(tanlearn_summary=np.array(-1)),
    "no state": lambda a, s: s.clear(),
    "n_points": lambda a, s: s.update(n_points=0),
    "n_samples": lambda a, s: s.update(n_samples=0),
    "label type": lambda a, s: s.update(label_type="<f8"),
    "kind": lambda a, s: s["columns"][1].update(kind="colours"),
    "place": lambda a, s: s["columns"][1].update(place=3),
    "names gone": lambda a, s: s["columns"][1].update(names=None),
    "names too few": lambda a, s: s["columns"][1]["names"][1].pop(),
    "names unsorted": lambda a, s: s["columns"][1]["names"][1].reverse(),
    "no name": lambda a, s: s["columns"][7]["names"][1].append(None),
    "blocks": lambda a, s: s["columns"][1].update(blocks=[[0, 1, 1]]),
    "nothing": lambda a, s: s["columns"][2].update(kind="nothing"),
    "no numbers": lambda a, s: s["columns"][8].update(kind="numbers"),
    "column gone": lambda a, s: a.pop("2_0_values"),
    "unsorted": lambda a, s: a.update({"2_0_values": a["2_0_values"][::-1]}),
    "infinite": lambda a, s: a["2_0_values"].__setitem__(-1, np.inf),
    "shape": lambda a, s: a.update({"2_0_weights": a["2_0_weights"][1:]}),
    "type": lambda a, s: a.update({"2_0_weights": a["2_0_weights"].astype(np.float32)}),
    "zero": lambda a, s: a["2_0_weights"].__setitem__(0, 0),
    "class": lambda a, s: a["2_0_classes"].__setitem__(0, 3),
    "too heavy": lambda a, s: a["2_0_weights"].__setitem__(0, 10**6),
    "heavier than all classes by one row": lambda a, s: a["4_0_weights"].__setitem__(0, a["4_0_weights"][0] + 1),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_damaged_bytes_are_refused(change):
    with pytest.raises(ValueError, match=r"bytes are not a valid TableSummary"):
        TableSummary.from_bytes(altered(SUMMARIES["frame"](), change))


def test_damaged_blocks_and_other_bytes_are_refused():
    points = SUMMARIES["points"]()
    for block in ([0.5, 1, 1], [-1, 1, 1], [0, -1, 1], [0, 1, float("inf")], [0, 1]):
        with pytest.raises(ValueError, match="not a valid TableSummary"):
            TableSummary.from_bytes(
                altered(points, lambda a, s, block=block: s["columns"][1]["blocks"].__setitem__(0, block))
            )
    whole = points.to_bytes()
    flipped = bytearray(whole)
    # The last byte of a member: headers of members repeat what the directory at the end says, and are not read.
    flipped[whole.index(b"PK\x03\x04", len(whole) // 2) - 1] ^= 1
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.npy", b"0" * 1000)
    for data in (b"", whole[:-30], bytes(flipped), packed.getvalue()):
        with pytest.raises(ValueError, match="not a valid TableSummary"):
            TableSummary.from_bytes(data)
    with pytest.raises(ValueError, match="format 2, but this version reads formats up to 1: upgrade"):
        TableSummary.from_bytes(altered(points, lambda a, s: a.update(tanlearn_summary=np.array(2))))
