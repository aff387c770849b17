"""A table in a file gives the same rows however it is read: in whole, batch by batch, by path or open."""

import warnings

import numpy as np
import pytest

import tanlearn
from tanlearn.sources.batches import open_batches
from tanlearn.sources.file_source import FileSource, MixedColumnsError, read_table
from tanlearn.sources.table_files import open_table

pd = pytest.importorskip("pandas")

#: Leading zeros, spaces, a quoted line break, missing marks, strings that come late, dates, rows without a class.
NASTY = (
    "zip, town ,age,since,note,buys\n"
    + "".join(
        f"0{i % 7}01, {'Graz' if i % 3 else 'Linz '},{'' if i % 11 == 5 else 20 + i % 9},2024-0{1 + i % 9}-1{i % 5},"
        f"{'old' if i == 57 else i % 4},{'yes' if (i // 2) % 3 else 'no '}\n"
        for i in range(60)
    )
    + '9999,"Bad\nAussee",NA,2024-01-11,2,yes\nnone,Wien,old,never,7, \nTotal,,many,,,\n'
)


@pytest.fixture
def nasty(tmp_path):
    """Return the path of the table."""
    (tmp_path / "nasty.csv").write_text(NASTY)
    return tmp_path / "nasty.csv"


def test_whole_file_has_the_kinds_of_its_rows_with_a_class(nasty):
    with pytest.warns(UserWarning, match=r"nasty\.csv: 2 of 63 rows have no 'buys' and are left out\."):
        frame = read_table(nasty, target="buys")
    assert frame.columns.tolist() == ["zip", "town", "age", "since", "note", "buys"]
    assert len(frame) == 61
    assert frame["zip"].tolist()[:2] == ["0001", "0101"]
    assert set(frame["town"]) == {"Graz", "Linz", "Bad\nAussee"}
    assert frame["age"].dtype.kind == "f"  # "old" and "many" are in rows without a class
    assert frame["age"].isna().sum() == 6
    assert frame["since"].tolist()[0] == (np.datetime64("2024-01-10") - np.datetime64("1970-01-01")).astype(int)
    assert frame["note"].tolist()[56:59] == ["0", "old", "2"]
    assert frame["buys"].tolist()[:3] == ["no", "no", "yes"]


def test_batches_have_the_columns_of_the_whole_file(nasty):
    with warnings.catch_warnings(action="ignore"):
        whole = read_table(nasty, target="buys")
    source = FileSource(open_table(nasty), ["zip", "town", "age", "since", "note"], "buys", 7)
    with pytest.raises(MixedColumnsError, match=r"nasty\.csv: text and other values are mixed in 'note'"):
        list(source)
    assert source.string_columns == {"note"}
    found = pd.concat(source)
    pd.testing.assert_frame_equal(found.reset_index(drop=True), whole.reset_index(drop=True), check_dtype=False)
    assert (source.n_samples, source.n_without_class, source.dates) == (61, 2, ["since"])


def test_batches_of_a_path_read_it_again_where_strings_come_late(nasty):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = open_batches(nasty, "buys", batch_rows=7)
        sizes = batches.read(lambda found: [batch.n_samples for batch in found])
    assert [str(one.message).split(": ", 1)[1] for one in caught] == [
        "text and other values are mixed in 'note', so all values are read as text.",
        "2 of 63 rows have no 'buys' and are left out.",
    ]
    assert sum(sizes) == 61
    assert max(sizes) == 7


def test_columns_named_by_the_caller_are_read_alone(nasty):
    with warnings.catch_warnings(action="ignore"):
        frame = read_table(nasty, target="buys", columns=["age", "zip"])
    assert frame.columns.tolist() == ["zip", "age", "buys"]
    assert read_table(nasty, columns=["town"]).shape == (63, 1)
    with pytest.raises(ValueError, match=r"there is no column 'price'\. The columns are: zip, town, age"):
        read_table(nasty, target="price")


def test_weights_stand_beside_the_classes(tmp_path):
    (tmp_path / "t.csv").write_text("a,w,y\nu,2,n\nv,1,y\nu,0.5,y\nx,9,\n")
    with pytest.warns(UserWarning, match="1 of 4 rows has no 'y' and is left out"):
        found = [
            (batch.y.tolist(), batch.sample_weight.tolist())
            for batch in open_batches(tmp_path / "t.csv", "y", weight="w", batch_rows=2)
        ]
    assert found == [(["n", "y"], [2.0, 1.0]), (["y"], [0.5])]


def test_notation_of_an_open_file_is_kept_by_the_model(tmp_path):
    rows = "".join(f"{i // 10},{i % 10};{'plum' if i < 20 else 'pear'}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"kg;kind\n{rows}")
    table = tanlearn.open_table(tmp_path / "t.csv", decimal=",")
    model = tanlearn.NaiveBayesClassifier().fit_batches(table, "kind", batch_rows=15)
    frame = tanlearn.read_table(tmp_path / "t.csv", target="kind", decimal=",")
    other = tanlearn.NaiveBayesClassifier().fit(frame[["kg"]], frame["kind"])
    np.testing.assert_array_equal(model.predict_proba(frame[["kg"]]), other.predict_proba(frame[["kg"]]))
    assert model._notation == table.notation
    assert not hasattr(model.fit(frame[["kg"]], frame["kind"]), "_notation")


def test_a_function_that_opens_another_file_each_time_is_read_again_once(tmp_path):
    paths = iter(range(100))

    def fresh():
        path = tmp_path / f"{next(paths)}.csv"
        path.write_text("a,y\n1,p\n2,q\nx,p\n3,q\n")
        return path

    with pytest.warns(UserWarning, match="mixed in 'a'"):
        model = tanlearn.NaiveBayesClassifier().fit_batches(fresh, "y", batch_rows=2)
    assert model.encoder_.categories_[0].tolist() == ["1", "2", "3", "x"]
    assert next(paths) == 3


def test_files_of_one_source_have_the_kinds_of_all(tmp_path):
    texts = {
        "d1": "a,y\n2024-01-01,p\n2024-01-02,q\n",
        "d2": "a,y\n20240103,p\n20240104,q\n",
        "c1": "a,y\n01,1\n02,2\n",
        "c2": "a,y\n10,01\n11,2\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    for names, categories, classes in (
        (("d1", "d2"), ["2024-01-01", "2024-01-02", "20240103", "20240104"], ["p", "q"]),
        (("c1", "c2"), ["01", "02", "10", "11"], ["01", "1", "2"]),
    ):
        with pytest.warns(UserWarning, match="are mixed in"):
            model = tanlearn.NaiveBayesClassifier().fit_batches([tmp_path / f"{name}.csv" for name in names], "y")
        assert model.encoder_.categories_[0].tolist() == categories
        assert model.classes_.tolist() == classes


def test_one_file_may_be_opened_in_several_notations(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,p\n2,q\n?,p\n3,q\n")
    marked, plain = tanlearn.open_table(tmp_path / "t.csv", missing=["?"]), tanlearn.open_table(tmp_path / "t.csv")
    for source in ([marked, plain], [plain, marked]):
        with pytest.warns(UserWarning, match="are mixed in 'a'"):
            model = tanlearn.NaiveBayesClassifier().fit_batches(source, "y")
        assert model.encoder_.categories_[0].tolist() == ["1", "2", "3", "?"]
        assert model.counts_.cells[2:].reshape(4, 2).tolist() == [[2, 0], [0, 2], [0, 2], [1, 0]]
        assert not hasattr(model, "_notation")
    assert tanlearn.NaiveBayesClassifier().fit_batches([marked], "y")._notation == marked.notation


@pytest.mark.parametrize("size", [1, 2, 100])
def test_large_integers_beside_missing_values_are_not_rounded(tmp_path, size):
    (tmp_path / "t.csv").write_text("a,y\n9007199254740993,p\n9007199254740992,q\n,p\n9007199254740993,q\n")
    with pytest.warns(UserWarning, match="'a'.* so all values are read as text"):
        model = tanlearn.NaiveBayesClassifier().fit_batches(tmp_path / "t.csv", "y", batch_rows=size)
    assert model.encoder_.categories_[0].tolist() == ["9007199254740992", "9007199254740993"]
    assert model.counts_.cells.tolist() == [2, 2, 0, 1, 1, 1]
    with pytest.warns(UserWarning, match="rounded because values are missing in 'a', so all values are read as text"):
        frame = read_table(tmp_path / "t.csv", target="y")
    assert frame["a"].tolist()[:2] == ["9007199254740993", "9007199254740992"]


def test_missing_marks_beside_integers_of_more_than_64_bits_are_missing(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n12345678901234567890,p\n-1,q\nNA,p\n,q\n12345678901234567891,q\n")
    frame = read_table(tmp_path / "t.csv")
    assert frame["a"].isna().tolist() == [False, False, True, True, False]


def test_lists_are_not_strings(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n9,u,p\n-9,v,q\n")
    for options in ({"missing": "-9"}, {"symbols": "kg"}, {"columns": "ab"}):
        with pytest.raises(TypeError, match=r"must be a list of .*Put it in brackets"):
            read_table(tmp_path / "t.csv", **options)
    with pytest.raises(ValueError, match="the separator must be one character"):
        read_table(tmp_path / "t.csv", separator="||")


def test_counts_like_others_read_classes_as_these_do(tmp_path):
    (tmp_path / "all.csv").write_text("a,y\nu,01\nv,2\n")
    (tmp_path / "part.csv").write_text("a,y\nu,2\nu,2\n")
    counts = tanlearn.TableCounts.of_source(tmp_path / "all.csv", "y")
    part = tanlearn.TableCounts.of_source(tmp_path / "part.csv", "y", like=counts)
    assert part.counts.class_counts.tolist() == [0, 2]
