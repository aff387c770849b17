"""Batches: the same of every source that holds a table, and clear words where batches differ."""

import sys
from itertools import chain

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tanlearn import TableEncoder
from tanlearn.sources.batches import open_batches
from tanlearn.sources.columns import read_columns
from tanlearn.sources.source_schema import SourceSchema
from tanlearn.sources.table_batches import rows_per_batch

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.dataset")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

N, ROWS = 53, 10
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(0, 90, N),
        "late": np.array(["no", "yes"], object)[RNG.integers(0, 2, N)],
        "height": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N).round(3)),
        "weight": RNG.integers(0, 3, N),
        "town": np.where(RNG.random(N) < 0.2, None, np.array(["Graz", "Linz", "Wels"], object)[RNG.integers(0, 3, N)]),
        "owner": RNG.random(N) < 0.5,
    }
)
FEATURES = ("age", "height", "town", "owner")


class Stream:
    """What has Arrow's C stream interface, and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def arrow():
    return pa.Table.from_pandas(FRAME, preserve_index=False)


def chunked():
    return pa.concat_tables([arrow().slice(0, 7), arrow().slice(0, 0), arrow().slice(7, 30), arrow().slice(37)])


def folder(path):
    (path / "town").mkdir()
    pq.write_table(arrow().slice(0, 20), path / "town" / "0.parquet")
    pq.write_table(arrow().slice(20), path / "town" / "1.parquet", row_group_size=15)
    return path / "town"


def duck(path):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(arrow())


def written(path, write):
    write(path)
    return path


SOURCES = {
    "pandas": lambda path: FRAME,
    "polars": lambda path: pl.from_pandas(FRAME),
    "lazy": lambda path: pl.from_pandas(FRAME).lazy(),
    "Table": lambda path: arrow(),
    "chunked Table": lambda path: chunked(),
    "reader": lambda path: arrow().to_reader(max_chunksize=17),
    "stream": lambda path: Stream(chunked()),
    "relation": duck,
    "data set": lambda path: ds.dataset(folder(path)),
    "data set in memory": lambda path: ds.dataset(arrow()),
    "Scanner": lambda path: ds.dataset(arrow()).scanner(),
    "folder": lambda path: str(folder(path)),
    "Parquet": lambda path: written(path / "t.parquet", lambda p: pq.write_table(arrow(), p, row_group_size=20)),
    "Feather": lambda path: written(path / "t.feather", lambda p: pyarrow.feather.write_feather(arrow(), p)),
    "CSV": lambda path: written(path / "t.csv", lambda p: FRAME.to_csv(p, index=False)),
    "CSV with semicolons": lambda path: written(path / "t.csv", lambda p: FRAME.to_csv(p, index=False, sep=";")),
    "compressed": lambda path: written(path / "t.tsv.gz", lambda p: FRAME.to_csv(p, index=False, sep="\t")),
    "list of record batches": lambda path: chunked().to_batches(),
    "generator of frames": lambda path: (FRAME[first : first + 15] for first in range(0, N, 15)),
    "reader of chunks": lambda path: pd.read_csv(
        written(path / "t.csv", lambda p: FRAME.to_csv(p, index=False)), chunksize=15
    ),
    "callable": lambda path: lambda: arrow().to_reader(max_chunksize=17),
}
ONE_SHOT = ("reader", "generator of frames", "reader of chunks")


def gathered(batches):
    """Return all rows of all batches as lists of values with None for a gap, classes and weights."""
    columns, classes, weights = [], [], []
    for batch in batches:
        assert 0 < batch.n_samples == len(batch.y) == len(batch.columns[0].values)
        columns.append([values_of(column) for column in batch.columns])
        classes += batch.y.tolist()
        weights += [] if batch.sample_weight is None else batch.sample_weight.tolist()
    return [list(chain(*parts)) for parts in zip(*columns, strict=True)], classes, weights


def values_of(column):
    values = column.values if column.categories is None else np.append(column.categories, None)[column.values]
    gaps = np.zeros(len(values), bool) if column.missing is None else column.missing
    return [None if gap else value for value, gap in zip(values.tolist(), gaps, strict=True)]


EXPECTED = [values_of(column) for column in read_columns(FRAME[list(FEATURES)])]


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_of_a_table_gives_the_same_rows(name, tmp_path):
    batches = open_batches(SOURCES[name](tmp_path), "late", weight="weight", batch_rows=ROWS)
    assert batches.names is None
    columns, classes, weights = gathered(batches)
    assert columns == EXPECTED
    assert classes == FRAME["late"].tolist()
    assert weights == FRAME["weight"].tolist()
    assert batches.names == FEATURES
    assert batches.is_rereadable == (name not in ONE_SHOT)
    if batches.is_rereadable:
        assert gathered(batches) == (columns, classes, weights)
    else:
        with pytest.raises(
            ValueError,
            match=r"of type \w+\) can be read only once, and was already read\. To read it .* a function without",
        ):
            iter(batches)


@pytest.mark.parametrize("name", ["pandas", "polars", "lazy", "Table", "folder", "Parquet"])
def test_batches_have_no_more_rows_and_just_the_columns_that_are_asked_for(name, tmp_path):
    batches = open_batches(SOURCES[name](tmp_path), "late", columns=["town", "age"], batch_rows=ROWS)
    found = list(batches)
    assert max(batch.n_samples for batch in found) == ROWS
    assert {batch.columns.labels for batch in found} == {("X column 'town'", "X column 'age'")}
    assert {batch.sample_weight for batch in found} == {None}
    assert batches.names == ("town", "age")


@pytest.mark.filterwarnings("ignore:discretization left")
@pytest.mark.parametrize("name", ["Table", "CSV", "polars"])
def test_an_encoder_makes_of_one_batch_what_it_makes_of_the_frame(name, tmp_path):
    (batch,) = open_batches(SOURCES[name](tmp_path), "late", columns=FEATURES)
    y = (batch.y == "yes").astype(np.intp)
    found, expected = TableEncoder(), TableEncoder()
    codes = found.fit_columns(batch.columns, y)
    np.testing.assert_array_equal(codes, expected.fit_columns(read_columns(FRAME[list(FEATURES)]), y))
    for own, other in zip(found.categories_, expected.categories_, strict=True):
        np.testing.assert_array_equal(own, other)
    for own, other in zip(found.discretizer_.cut_points_, expected.discretizer_.cut_points_, strict=True):
        np.testing.assert_array_equal(own, other)


def test_tuples_are_batches_as_they_are():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    parts = [(X[:4], y[:4], [1, 2, 0, 0]), (X[:0], y[:0], []), (X[4:].tolist(), ["0", "1"][:0] or [0, 1], [0.5, 0])]
    batches = open_batches(parts)
    first, second = batches
    assert np.shares_memory(first.columns.matrix, X)
    assert (first.sample_weight.tolist(), second.sample_weight.tolist()) == ([1, 2, 0, 0], [0.5, 0])
    assert batches.names is None
    assert len(list(open_batches(lambda: iter(parts)))) == 2
    generator = open_batches(part for part in parts)
    assert (len(list(generator)), generator.is_rereadable) == (2, False)
    named = open_batches([(FRAME[list(FEATURES)], FRAME["late"])])
    assert gathered(named)[:2] == (EXPECTED, FRAME["late"].tolist())
    assert named.names == FEATURES


def test_a_part_of_a_source_may_have_no_rows_and_no_weight_and_is_named_by_its_number():
    empty = open_batches([(FRAME[list(FEATURES)].iloc[:0], FRAME["late"].iloc[:0])], part=3)
    assert list(empty) == list(empty) == []
    light = open_batches([(FRAME[list(FEATURES)], FRAME["late"], np.zeros(len(FRAME)))], part=3)
    assert [batch.position for batch in light] == ["partition 3"]
    with pytest.raises(ValueError, match=r"^in partition 3, from row 1 on: sample_weight"):
        list(open_batches([([["a"]], ["n"], [1.0]), ([["a"]], ["n"], [-1.0])], part=3))


@pytest.mark.parametrize(
    ("first", "second", "error", "reason"),
    [
        (
            [["a", 1]],
            [["a", "b"]],
            TypeError,
            r"^in partition 5: X column 1 holds strings where partition 2 has numbers",
        ),
        ([["a", None]], [["a", "b"]], None, ""),
        ([["a", 1]], [["a"]], ValueError, r"^in partition 5: there are 1 column\(s\) where partition 2 has 2"),
        (
            pd.DataFrame({"u": [1]}),
            pd.DataFrame({"v": [1]}),
            ValueError,
            r"^in partition 5: column 0 is X column 'v' where partition 2 has X column 'u'",
        ),
    ],
)
def test_partitions_that_were_read_apart_have_the_same_columns(first, second, error, reason):
    parts = [open_batches([(X, ["n"])], part=number) for number, X in ((2, first), (5, second))]
    for part in parts:
        list(part)
    empty = SourceSchema()
    if error is None:
        assert empty.merge(parts[0].schema).merge(SourceSchema()).merge(parts[1].schema) is empty
        return
    with pytest.raises(error, match=reason):
        empty.merge(parts[0].schema).merge(parts[1].schema)


def test_categories_of_a_parquet_file_are_declared_and_its_texts_are_not(tmp_path):
    frame = FRAME.assign(owner=pd.Categorical(FRAME["town"], categories=["Wels", "Graz", "Linz", "Steyr"]))
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=20)
    for batch in open_batches(tmp_path / "t.parquet", "late"):
        town, owner = batch.columns[-2:]
        assert (town.is_declared, owner.is_declared) == (False, True)
        assert owner.categories.tolist() == ["Wels", "Graz", "Linz", "Steyr"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "target must be the name of the column with the classes. There are: 'age', 'late', 'height', 'weight', "),
        ({"target": "class"}, "no column is called 'class'. There are: 'age', "),
        ({"target": "late", "weight": "w"}, "no column is called 'w'. There are: "),
        ({"target": "late", "columns": ["age", "x"]}, "no column is called 'x'. There are: "),
        ({"target": "late", "columns": ["age", "age"]}, "'age' occurs 2 times among columns, target and weight"),
        ({"target": "late", "columns": ["late"]}, "'late' occurs 2 times"),
        ({"target": "late", "columns": []}, "there must be at least one feature besides target and weight"),
    ],
)
@pytest.mark.parametrize("name", ["pandas", "lazy", "Table", "folder", "generator of frames"])
def test_columns_that_are_not_there_are_reported(arguments, reason, name, tmp_path):
    with pytest.raises(ValueError, match=reason):
        list(open_batches(SOURCES[name](tmp_path), **arguments))


def test_a_name_may_not_stand_for_two_columns():
    table = pa.Table.from_arrays([pa.array([1, 2])] * 3, ["x", "x", "y"])
    with pytest.raises(ValueError, match="several columns are called 'x'"):
        list(open_batches(table, "y"))
    assert len(list(open_batches(table.append_column("z", [[3, 4]]), "y", columns=["z"]))) == 1


A = np.array([[1.0, 2.0], [3.0, 4.0]])
BAD_PARTS = [
    ((A[:, :1], [0, 1]), ValueError, r"there are 1 column\(s\) where batch 0 has 2"),
    (
        (pd.DataFrame(A, columns=["a", "b"]), [0, 1]),
        ValueError,
        "column 0 is X column 'a' where batch 0 has X column 0",
    ),
    (
        ([["u", 1], ["v", 2]], [0, 1]),
        TypeError,
        "X column 0 holds strings where batch 0 has numbers, .*Cast it to the same type in all batches",
    ),
    (([[1, 2], [1, "v"]], [0, 1]), TypeError, r"X column 1 holds int \(2 in row 0\) and str \('v' in row 1\)"),
    ((A, ["0", "1"]), TypeError, "y holds strings where batch 0 has numbers"),
    ((A, [0, None]), ValueError, "y is missing in row 1"),
    ((A, [0]), ValueError, "inconsistent numbers of samples: X has 2, y has 1"),
    ((A, [0, 1], [1, 1]), ValueError, "there are weights where batch 0 has none"),
    ((A * [1, np.inf], [0, 1]), ValueError, "X column 1 contains infinity: inf in row 0"),
]


@pytest.mark.parametrize(("part", "error", "reason"), BAD_PARTS)
def test_what_is_wrong_in_a_batch_is_reported_with_its_position(part, error, reason):
    good = (A, [0, 1])
    with pytest.raises(error, match=rf"in batch 2, whose row 0 is row 4 of the source: .*{reason}"):
        list(open_batches([good, (A[:0], []), good, part]))


def test_what_is_missing_is_of_any_kind():
    nothing, names = ([[None, 1.0]], [1]), ([["a", 1.0]], [0])
    assert len(list(open_batches([nothing, names, ([[np.nan, np.nan]], [1]), names]))) == 4
    with pytest.raises(TypeError, match=r"in batch 2, .*X column 0 holds numbers where batch 1 has strings"):
        list(open_batches([nothing, names, ([[3, 1.0]], [1])]))


def test_types_that_change_between_tables_are_reported():
    tables = [
        FRAME[["age", "late"]],
        pl.from_pandas(FRAME[["age", "late"]]).with_columns(pl.col("age").cast(pl.String)),
    ]
    with pytest.raises(TypeError, match=r"in batch 1, .*row 53 .*'age' holds strings where batch 0 has numbers"):
        list(open_batches(tables, "late"))
    categories = FRAME[["town", "late"]].astype({"town": "category"})
    with pytest.raises(TypeError, match="'town' holds declared categories of strings where batch 0 has strings"):
        list(open_batches([FRAME[["town", "late"]], categories], "late"))
    with pytest.raises(
        ValueError, match=r"in batch 1, .*column 0 is X column 'height' where batch 0 has X column 'age'"
    ):
        list(open_batches([FRAME[["age", "late"]], FRAME[["height", "late"]]], "late"))
    one = FRAME[["age", "height", "late"]], FRAME[["late", "height", "age"]]
    with pytest.raises(ValueError, match="column 0 is X column 'height' where"):
        list(open_batches(one, "late"))
    assert len(list(open_batches(one, "late", columns=["age", "height"]))) == 2


def test_classes_and_weights_of_a_table_are_checked():
    table = arrow()
    with pytest.raises(ValueError, match=r"in batch \d, .*the class \(column 'town'\) is missing in row \d"):
        list(open_batches(table, "town", batch_rows=ROWS))
    with pytest.raises(TypeError, match="X column 'town' holds strings, but weights must be numbers"):
        list(open_batches(table, "late", weight="town"))
    with pytest.raises(ValueError, match="sample_weight must be finite, but is nan in row"):
        list(open_batches(table, "late", weight="height"))
    for weights, reason in (
        ([0.0] * N, "but is zero in every row"),
        ([0] * N, "but is zero in every row"),
        ([2**62] * N, "sample_weight adds up to 24.*integer weights may add up to"),
        ([1e300] * N, r"sample_weight adds up to .*e[+]301 over 53 rows"),
    ):
        with pytest.raises(ValueError, match=reason):
            list(open_batches(FRAME.assign(w=weights), "late", weight="w", batch_rows=1))
    zeros = open_batches(FRAME.assign(w=[0] * (N - 1) + [1]), "late", weight="w", batch_rows=ROWS)
    assert [batch.sample_weight.sum() for batch in zeros] == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    "source", [FRAME[:0], pl.from_pandas(FRAME[:0]).lazy(), pa.Table.from_pandas(FRAME[:0]), [], [FRAME[:0], FRAME[:0]]]
)
def test_no_rows_at_all_are_an_error(source):
    with pytest.raises(ValueError, match=r"the source has no rows\. Pass a source with"):
        list(open_batches(source, "late"))


def test_a_source_that_has_other_rows_when_it_is_read_again_is_reported():
    reader = arrow().to_reader()
    batches = open_batches(lambda: reader, "late")
    assert len(list(batches)) == 1
    with pytest.raises(
        ValueError, match=r"of type function\) must .* had 53 row\(s\) in the first pass, and has 0 now\. To"
    ):
        list(batches)
    unfinished = open_batches(arrow(), "late", batch_rows=ROWS)
    next(iter(unfinished))
    assert len(list(unfinished)) == len(list(unfinished)) == 6


def test_what_is_no_source_is_reported():
    for source in (3, None):
        with pytest.raises(TypeError, match=rf"source must be a table .* or a function .*, got {source} of type"):
            open_batches(source)
    for source in ({"age": [1, 2]}, dict):
        with pytest.raises(TypeError, match=r"source must be a table .*, got .* of type dict"):
            list(open_batches(source))
    with pytest.raises(TypeError, match=r"source must be a table .*got 3 of type int"):
        list(open_batches(lambda: 3))
    with pytest.raises(TypeError, match=r"item 0 of the source must be a table .*of type ndarray"):
        list(open_batches((A, [0, 1])))
    with pytest.raises(
        ValueError, match=r"target, weight and columns select columns of a table, but item 0 .* is a tuple"
    ):
        list(open_batches([(A, [0, 1])], "late"))
    with pytest.raises(ValueError, match="batch_rows must be an integer of at least 1, got 0"):
        open_batches(FRAME, "late", batch_rows=0)
    with pytest.raises(TypeError, match=r"columns must be a list of names, got 'age'\. Put it in brackets"):
        open_batches(FRAME, "late", columns="age")


@pytest.mark.parametrize("what", ["target", "weight"])
def test_classes_and_weights_beside_the_source_are_refused(what):
    names = {"target": "late"} | {what: FRAME["weight"].to_numpy()}
    with pytest.raises(TypeError, match=rf"{what} must be the name of a column of the source, got array.*\[\(X, y\)\]"):
        open_batches(FRAME, **names)


@pytest.mark.parametrize("batch_rows", [0, -1, 2.0, "3"])
def test_batches_have_a_positive_number_of_rows(batch_rows):
    with pytest.raises(ValueError, match="batch_rows must be an integer of at least 1, got"):
        open_batches(FRAME, "late", batch_rows=batch_rows)
    assert [len(batch.y) for batch in open_batches(FRAME[:3], "late", batch_rows=np.int64(1))] == [1, 1, 1]


def test_batches_say_where_they_begin_and_count_all_rows():
    batches = open_batches(FRAME.assign(weight=[0] * 20 + [2] * (N - 20)), "late", weight="weight", batch_rows=20)
    assert batches.n_samples is None
    positions = [batch.position for batch in batches]
    assert positions == [f"batch {k}, whose row 0 is row {20 * k} of the source" for k in range(3)]
    assert batches.n_samples == N
    long = open_batches([(A[:1].repeat(1500, axis=0), [0] * 1500)] * 2)
    assert [batch.position for batch in long][1] == "batch 1, whose row 0 is row 1,500 of the source"
    parts = open_batches([(A, [0, 1])] * 2, part=4)
    assert [batch.position for batch in parts] == ["partition 4", "partition 4, from row 2 on"]


def test_rows_of_weight_zero_decide_on_no_type_of_a_batch():
    good, odd = ([["a", 1.0]], ["n"], [1]), ([[3, "b"], ["a", 2.0]], [7, "n"], [0, 1])
    assert len(list(open_batches([good, odd]))) == 2
    with pytest.raises(TypeError, match=r"in batch 1, .*X column 0 holds int \(3 in row 0\) and str"):
        list(open_batches([good, (*odd[:2], [1, 1])]))


def test_only_part_of_the_names_may_not_be_strings():
    X = pd.DataFrame([[1, 2], [3, 4]], columns=["a", 7])
    with pytest.raises(TypeError, match=r"in batch 0.*either all column names or none must be strings, but 7"):
        list(open_batches([(X, [0, 1])]))
    numbers = open_batches([(X.set_axis([5, 7], axis=1), [0, 1])])
    assert len(list(numbers)) == 1
    assert numbers.names is None


def test_errors_name_the_batch():
    (batch,) = open_batches([(A, [0, 1])])
    for error in (TypeError, ValueError):
        with pytest.raises(error, match=r"^in batch 0, whose row 0 is row 0 of the source: why$"), batch.located():
            raise error("why")
    with pytest.raises(KeyError), batch.located():
        raise KeyError("of others")


def test_files_that_cannot_be_read_are_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.parquet"):
        list(open_batches(tmp_path / "none.parquet", "late"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty cannot be read: there is no Parquet file in the folder"):
        list(open_batches(tmp_path / "empty", "late"))
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read: "):
        list(open_batches(tmp_path / "t.parquet", "late"))
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2\n")
    with pytest.raises(ValueError, match=r"t\.csv cannot be read: line 3: the row has 1 field"):
        list(open_batches(tmp_path / "t.csv", "y"))


def test_without_pyarrow_frames_are_read_and_files_say_what_to_install(monkeypatch, tmp_path):
    path = folder(tmp_path)
    stream = Stream(arrow())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    assert gathered(open_batches(pl.DataFrame({"x": [1, 2], "y": ["n", "y"]}), "y"))[0] == [[1, 2]]
    for source in (path, stream):
        with pytest.raises(ImportError, match=r'needs pyarrow\. Install it with: pip install "tanlearn\[frames\]"'):
            list(open_batches(source, "late"))


def test_partitions_of_a_folder_are_columns(tmp_path):
    ds.write_dataset(arrow(), tmp_path, format="parquet", partitioning=["owner"], partitioning_flavor="hive")
    found = open_batches(tmp_path, "late", columns=["age", "owner"])
    assert sorted(values_of(batch.columns[1])[0] for batch in found) == ["false", "true"]


def test_queries_of_older_polars_are_collected(monkeypatch):
    monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    columns, classes, _ = gathered(
        open_batches(pl.from_pandas(FRAME).lazy(), "late", columns=FEATURES, batch_rows=ROWS)
    )
    assert (columns, classes) == (EXPECTED, FRAME["late"].tolist())


def test_batches_are_smaller_where_there_are_many_columns():
    assert [rows_per_batch(["x"] * n, None) for n in (1, 32, 33, 1000, 10**6)] == [2**17, 2**17, 2**16, 2**12, 2**10]
    assert rows_per_batch(["x"], 5) == 5
