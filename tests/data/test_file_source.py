"""A table in a file gives the same rows however it is read: in whole, batch by batch, by path or open."""

import warnings

import numpy as np
import pytest

import tanlearn
from tanlearn.data.batches import open_batches
from tanlearn.data.file_source import FileSource, MixedColumnsError, read_table
from tanlearn.data.table_files import open_table

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
    assert source.texts == {"note"}
    found = pd.concat(source)
    pd.testing.assert_frame_equal(found.reset_index(drop=True), whole.reset_index(drop=True), check_dtype=False)
    assert (source.n_samples, source.n_without_class, source.dates) == (61, 2, ["since"])


def test_batches_of_a_path_read_it_again_where_strings_come_late(nasty):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = open_batches(nasty, "buys", batch_rows=7)
        sizes = batches.read(lambda found: [batch.n_samples for batch in found])
    assert [str(one.message).split(": ", 1)[1] for one in caught] == [
        "text and other values are mixed in 'note': all values count as text.",
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
