"""Tables in files: what is read as it was meant, and what is refused with its line."""

import bz2
import csv
import gzip
import io
import lzma
import random
import sys

import numpy as np
import pandas as pd
import pytest

from tanlearn.sources.file_source import dates_as_days
from tanlearn.sources.table_files import open_table
from tanlearn.sources.text_files import CheckedRows

FRAME = pd.DataFrame({"town": ["Graz", None, "Linz"], "age": [31, 42, 53], "share": [0.5, None, 2.0]})


@pytest.fixture
def write(tmp_path):
    """Return what writes a file and returns its path."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def save(frame, path):
    """Write a frame in the format of the ending."""
    {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        ".parquet": lambda: frame.to_parquet(path),
        ".feather": lambda: frame.to_feather(path),
    }[path.suffix]()
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather"])
def test_every_format_holds_the_same_table(tmp_path, ending):
    table = open_table(save(FRAME, tmp_path / f"some.{ending}"))
    assert (table.format, table.columns) == (ending, tuple(FRAME.columns))
    for found in (table.read(), pd.concat(table.batches(2), ignore_index=True)):
        pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)
    assert [len(chunk) for chunk in table.batches(2)] == [2, 1]
    assert list(table.read(["share", "town"]).columns) == ["share", "town"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_without_an_ending_the_content_tells(tmp_path, ending):
    path = save(FRAME, tmp_path / f"some.{ending}")
    assert open_table(path.rename(tmp_path / "some")).format == ending


def test_spaces_around_names_and_values_do_not_count(write):
    frame = open_table(write("town , buys\n Graz, yes \nLinz ,no\n  , yes\n")).read()
    assert list(frame.columns) == ["town", "buys"]
    assert frame["buys"].tolist() == ["yes", "no", "yes"]
    assert frame["town"].isna().tolist() == [False, False, True]


def test_spaces_do_not_count_before_types_are_found(write):
    frame = open_table(
        write("n,gap,flag,text,none\n1 ,? ,True , x,NA \n\t2\t,5\u00a0,False,y ,\n"), missing=["?"]
    ).read()
    assert frame["n"].tolist() == [1, 2]
    assert frame["n"].dtype.kind == "i"
    assert frame["gap"].isna().tolist() == [True, False]
    assert frame["gap"][1] == 5.0
    assert frame["flag"].dtype.kind == "b"
    assert frame["text"].tolist() == ["x", "y"]
    assert frame["none"].isna().all()


def test_digits_with_leading_zeros_are_texts_and_all_else_in_their_column(write):
    text = 'zip,area,n,share,id\n 0123,"01, 02",0,0.5,007\n4567,2,10,00.5, 7 \n,"04",5,-0.1,"010"\n'
    for frame in (open_table(write(text)).read(), pd.concat(open_table(write(text.replace("\n", "\r\n"))).batches(3))):
        assert frame["zip"][:2].tolist() == ["0123", "4567"]
        assert frame["area"].tolist() == ["01, 02", "2", "04"]
        assert (frame["n"].tolist(), frame["share"].tolist()) == ([0, 10, 5], [0.5, 0.5, -0.1])
        assert frame["id"].tolist() == ["007", "7", "010"]
        assert frame["zip"].isna().tolist() == [False, False, True]
    assert open_table(write(text)).read(["n", "id"], string_columns=["id"])["id"].tolist() == ["007", "7", "010"]
    assert open_table(write("a,b\n000,1\n12,2\n"), missing=["000"]).read()["a"].tolist()[1] == 12.0


def test_batches_without_leading_zeros_are_what_they_look_like(write):
    pieces = list(open_table(write("a,b,c\n01,x,07\n2,y,8\n3,z,\n4,u,\nTrue,v,9\n,w,10\n")).batches(2))
    assert [piece["a"].tolist()[0] for piece in pieces] == ["01", 3, True]
    assert [piece["c"].tolist()[0] for piece in pieces[::2]] == ["07", 9]


def test_fractions_may_stand_behind_a_comma(write):
    assert open_table(write("a;b\n0,5;x\n1,25;y\n"), decimal=",").read()["a"].tolist() == [0.5, 1.25]


def test_blank_lines_in_one_column_are_missing_values_but_at_the_end(write):
    for text in ("a\n1\n\n   \n2\n", "\na\n1\n\n\n2\n\n\n", 'a\n1\n""\n\n2'):
        assert open_table(write(text)).read()["a"].isna().tolist() == [False, True, True, False]
    assert len(open_table(write('a\n1\n""\n')).read()) == 2


@pytest.mark.parametrize("compress", [gzip, bz2, lzma])
def test_damaged_compressed_text_is_refused(write, compress):
    rng = random.Random(0)
    text = "a,b\n" + "".join(f"{rng.random()},{rng.random()}\n" for _ in range(20_000))
    whole = compress.compress(text.encode())
    bad = text[:-20_000] + "\xe9" + text[-20_000:]
    name = {gzip: "t.csv.gz", bz2: "t.csv.bz2", lzma: "t.csv.xz"}[compress]
    places = (0, len(whole) // 3, len(whole) // 2, len(whole) - 6)
    flipped = [whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :] for place in places]
    for content in (whole[: len(whole) // 2], compress.compress(bad.encode("latin-1"))[:-9], *flipped):
        path = write(content, name)
        with pytest.raises(ValueError, match=r"cannot be read") as caught:
            open_table(path).read()
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv.gz", b"a,b\n1,2\n", r"its name ends in \.gz, but its content is in another format\. Rename it\.$"),
        (
            "t.csv.xz",
            gzip.compress(b"a,b\n1,2\n", mtime=0),
            r"its name ends in \.xz, but its content is in another format",
        ),
        (
            "t.csv",
            gzip.compress(b"a,b\n1,2\n", mtime=0),
            r"it is compressed\. Decompress it, or add \.gz to its name\.$",
        ),
        ("t.csv", bz2.compress(b"a,b\n1,2\n"), r"it is compressed\. Decompress it, or add \.bz2 to its name\.$"),
        ("t.csv", lzma.compress(b"a,b\n1,2\n"), r"it is compressed\. Decompress it, or add \.xz to its name\.$"),
        (
            "t.csv.zip",
            b"PK\x03\x04",
            r"it is compressed as \.zip, which is not supported\. Extract the table from it\.$",
        ),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9],
            "compressed content is damaged .*Copy or compress the file",
        ),
    ],
)
def test_compressed_files_that_do_not_match_their_name_are_errors(write, name, content, message):
    path = write(content, name)
    with pytest.raises(ValueError, match=message):
        open_table(path).read()


def test_text_that_begins_like_a_compressed_file_is_read(write):
    assert open_table(write("BZh9,PK\n1,2\n")).columns == ("BZh9", "PK")


def test_integers_of_parquet_stay_integers_beside_gaps(tmp_path):
    large = pd.array([2**60, None, 2**60 + 1], dtype="Int64")
    path = save(pd.DataFrame({"large": large, "small": pd.array([1, None, 2], dtype="Int64")}), tmp_path / "t.parquet")
    for found in (open_table(path).read(), pd.concat(open_table(path).batches(3))):
        assert found["large"].dropna().tolist() == [2**60, 2**60 + 1]
        assert found["small"].dtype.kind == "f"


def test_columns_of_lists_are_named(tmp_path):
    path = save(pd.DataFrame({"a": [1, 2], "b": [[1], [2, 3]], "c": [{"x": 1}, {"x": 2}]}), tmp_path / "t.parquet")
    for name in ("b", "c"):
        with pytest.raises(ValueError, match=f"'{name}' has nested values .* Leave the column out"):
            open_table(path).read(["a", name])
    assert open_table(path).read(["a"])["a"].tolist() == [1, 2]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_header_without_commas_tells_the_separator(write, separator):
    assert open_table(write(f"a{separator}b\n1{separator}2\n")).read().to_numpy().tolist() == [[1, 2]]


def test_byte_order_marks_line_ends_and_compression_do_not_count(write):
    text = "a,b\r\n1,x\r\n2,y\r\n"
    for path in (write(b"\xef\xbb\xbf" + text.encode()), write(gzip.compress(text.encode()), "table.csv.gz")):
        assert open_table(path).read()["b"].tolist() == ["x", "y"]


def test_blank_lines_are_no_rows_and_fields_keep_theirs(write):
    frame = open_table(write('a,b\n\n"x\n \ny",1\n   \n"u, ""v""",2\n\n')).read()
    assert frame["a"].tolist() == ["x\n \ny", 'u, "v"']


def test_any_text_comes_back_as_it_was_written(write):
    """Whatever csv writes, is read the same as by csv, though pandas parses it."""
    rng = random.Random(0)
    for _ in range(200):
        rows = [["".join(rng.choices('xy,"\n;', k=rng.randint(1, 6))) + "z" for _ in range(2)] for _ in range(4)]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([["a", "b"], *rows])
        found = open_table(write(text.getvalue())).read(string_columns=["a", "b"])
        assert found.to_numpy().tolist() == [[cell.strip() for cell in row] for row in rows]


def test_other_texts_may_mean_missing_and_numbers_may_be_texts(write):
    path = write("zip,age\n0123,?\n4567,30\n")
    frame = open_table(path, missing=["?"]).read(string_columns=["zip"])
    assert frame["zip"].tolist() == ["0123", "4567"]
    assert frame["age"].isna().tolist() == [True, False]
    assert open_table(path).read()["age"].tolist() == ["?", "30"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\n\n", "there is no header line"),
        (b"a,b\n", "has no rows, only column names"),
        (b"a,b\n1,2\n\n3\n", r"line 4: the row has 1 field\(s\), but the header has 2\. Correct the row\.$"),
        (b"a,b\n1,2\n3,4,5\n", r"line 3: the row has 3 field\(s\), but the header has 2"),
        (b'a,b\n1,2\n"3,4\n5,6\n', r"lines 3 to 4: the row has 1 field\(s\).* or a quote left open in it\."),
        (b"a,b\n1,x\n2,caf\xe9\n", r"line 3 is not valid utf-8 text \(byte 0xe9\)\. Name its encoding"),
        (b"a,a\n1,2\n", r"two columns are called 'a'\. Rename one\.$"),
        (b"PAR1nonsense", "cannot be read"),
        (
            "a,b\n1,2\n".encode("utf-16-le"),
            r"line 1 contains a NUL character, which suggests another encoding, such as utf-16",
        ),
        (b"a,b\n1,2\n3,\x004\n", "line 3 contains a NUL character"),
        (b"a\n" + b"x" * 200_000, "line 2: field larger than field limit"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(write, content, message):
    path = write(content, "table")
    with pytest.raises(ValueError, match=message) as caught:
        open_table(path).read()
    assert str(caught.value).startswith(str(path))


def test_a_ragged_row_is_found_in_a_late_chunk(write):
    path = write("a,b\n" + "1,2\n" * 5000 + "3\n")
    chunks = open_table(path).batches(1000)
    with pytest.raises(ValueError, match="line 5002"):
        list(chunks)


def test_spreadsheets_encodings_and_files_that_are_not_there(write, tmp_path):
    with pytest.raises(ValueError, match=r"is a spreadsheet, .* Save it as \.csv"):
        open_table(write("PK", "table.xlsx"))
    with pytest.raises(ValueError, match="unknown encoding: klingon"):
        open_table(write("a,b\n1,2\n"), encoding="klingon")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        open_table(tmp_path / "absent.csv")
    text = "a,b\n1,\u00e9\n"
    assert open_table(write(text.encode("utf-16")), encoding="utf-16").read()["b"].tolist() == ["\u00e9"]
    assert open_table(write(text.encode("latin-1")), encoding="latin-1").read()["b"].tolist() == ["\u00e9"]


@pytest.mark.parametrize("module", ["pandas", "pyarrow.dataset"])
def test_a_missing_package_is_named_with_the_extra(tmp_path, monkeypatch, module):
    path = save(FRAME, tmp_path / "some.parquet")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module.partition('.')[0]}\. .*tanlearn\[frames\]"):
        open_table(path).read()


@pytest.mark.parametrize(
    "index",
    [pd.Index(["x", "y", "z"], name="who"), pd.RangeIndex(10, 16, 2, name="row"), pd.Index([5, 3, 9]), None],
)
def test_the_index_of_parquet_is_kept_and_is_no_column(tmp_path, index):
    frame = FRAME if index is None else FRAME.set_axis(index)
    table = open_table(save(frame, tmp_path / "some.parquet"))
    assert table.columns == tuple(FRAME.columns)
    assert table.has_index is (index is not None)
    for found in (table.read(), pd.concat(table.batches(2))):
        pd.testing.assert_index_equal(found.index, frame.index, exact=False)


def test_dates_become_days_wherever_they_come_from():
    moments = pd.to_datetime(pd.Series(["1970-01-02", None, "1970-01-03T12:00:00"]), format="ISO8601")
    frame = pd.DataFrame(
        {
            "typed": moments,
            "text": ["1970-01-02", None, "1970-01-03 12:00"],
            "zone": ["1970-01-02T01:00:00+01:00", None, "1970-01-03T12:00:00Z"],
            "object": moments.dt.date,
            "span": pd.to_timedelta([1, None, 2.5], unit="D"),
            "no": ["1970-02-30", None, "1970-01-01"],
            "mixed": ["1970-01-01", None, "soon"],
            "number": [1.0, None, 2.0],
            "empty": pd.Series([None] * 3, dtype="str"),
            "nothing": pd.Series([None] * 3, dtype=object),
        }
    )
    days, names = dates_as_days(frame)
    assert names == ["typed", "text", "zone", "object", "span"]
    for name in names:
        assert days[name].isna().tolist() == [False, True, False]
        assert days[name].dropna().tolist() == [1.0, 2.0 if name == "object" else 2.5]
    pd.testing.assert_frame_equal(days[["no", "mixed", "number"]], frame[["no", "mixed", "number"]])
    assert dates_as_days(frame, ["number", "text"])[1] == ["text"]
    assert dates_as_days(frame[["number"]])[1] == []


@pytest.mark.parametrize("separator", list("*(^$.|"))
def test_leading_zeros_are_found_behind_every_separator(separator):
    text = "x,code\n1,007\n2,012\n".replace(",", separator)
    rows = CheckedRows(io.StringIO(text), separator)
    rows.read()
    assert rows.marked == {1}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_rows_are_the_same_in_blocks_and_one_by_one(write, monkeypatch, ending):
    rng = np.random.default_rng(0)
    plain = ["1", "2.5", "x", "New York", "", "NA", "0", "0.5", "\u00e9t\u00e9"]
    special = ["07", " y", "z ", '"a,b"', '"c\nd"', "\xa0u", "00", '" q"', "-0", "\ta"]

    def outcome(path, **options):
        dropped = []
        try:
            frame = pd.concat(open_table(path).batches(4, dropped=dropped, **options))
        except ValueError as error:
            return str(error)
        values = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        return values, frame.index.tolist(), dropped, frame.dtypes.astype(str).tolist()

    real, found = CheckedRows._plain_block, []
    n_errors = 0
    for k in range(60):
        words = plain if k % 3 == 0 else plain + special
        rows = [[str(rng.choice(words)) for _ in range(3)] for _ in range(12)]
        if k % 10 == 9:
            rows[rng.integers(12)].append("9")
        lines = [",".join(row) for row in rows]
        if k % 5 == 4:
            lines.insert(int(rng.integers(12)), "")
        path = write((ending.join(["a,b,c", *lines]) + (ending if k % 2 else "")).encode())
        options = {} if k % 4 == 0 else {"target": "b"}
        monkeypatch.setattr(CheckedRows, "_plain_block", lambda self: None)
        expected = outcome(path, **options)
        monkeypatch.setattr(CheckedRows, "_plain_block", lambda self: found.append(real(self)) or found[-1])
        for size in (1, 30, 2**16):
            monkeypatch.setattr("tanlearn.sources.text_files._BLOCK_SIZE", size)
            assert outcome(path, **options) == expected
        n_errors += isinstance(expected, str)
    assert sum(block is not None for block in found) > 200
    assert n_errors == 6
