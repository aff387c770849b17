"""Text files as people and spreadsheets write them, and rows without a class."""

import random

import numpy as np
import pandas as pd
import pytest

import tanlearn

OPTIONS = ["-t", "y", "-l", "NB ML"]


def _rows():
    rng = random.Random(0)
    return [
        f"{rng.gauss(i % 2, 0.5):.3f},{'ab'[i % 2 if rng.random() < 0.8 else 0]},{'yn'[i % 2]}\n" for i in range(60)
    ]


ROWS = _rows()
PLAIN = "".join(["x,t,y\n", *ROWS])


@pytest.fixture
def fitted(run, tmp_path):
    """Return what fits to text and returns what the encoder found, and what the command printed."""

    def fitted(text, *options, columns=("x", "t")):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        done = run("fit", path, *OPTIONS[2:], *(() if "-t" in options else OPTIONS[:2]), "-o", tmp_path / "m", *options)
        assert done.exit_code == 0, done.output
        model = tanlearn.load(tmp_path / "m")
        assert model.feature_names_in_.tolist() == list(columns)
        encoder = model.encoder_
        cuts = [one.tolist() for one in encoder.discretizer_.cut_points_]
        categories = [None if one is None else one.tolist() for one in encoder.categories_]
        return (cuts, categories, np.asarray(encoder.typical_values_[0]).round(12).tolist()), done.stderr

    return fitted


@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "7"], ["--chunk-rows", "60"]])
@pytest.mark.parametrize(
    "added",
    [{60: "Total,,\n"}, {5: "Total,007,\n", 40: "?,9,NA\n"}, {0: "x,t,\n", 1: "2024-01-01,,null\n"}],
)
def test_rows_without_a_class_decide_on_nothing(fitted, added, chunks):
    lines = list(ROWS)
    for number, line in added.items():
        lines.insert(number, line)
    found, told = fitted("".join(["x,t,y\n", *lines]), *chunks)
    assert found == fitted(PLAIN)[0]
    assert found[1] == [None, ["a", "b"]]
    verbs = ("has", "is") if len(added) == 1 else ("have", "are")
    assert "tanlearn: {} of {} rows {} no 'y' and {} left out.".format(len(added), 60 + len(added), *verbs) in told


def test_counts_do_not_read_rows_without_a_class(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("".join(["x,t,y\n", *ROWS[:9], "Total,,\n", *ROWS[9:]]))
    assert run("fit", path, *OPTIONS, "-o", tmp_path / "m").exit_code == 0
    for options in ([], ["--like", tmp_path / "m"]):
        done = run("counts", path, "-t", "y", *options, "-o", tmp_path / "c")
        assert done.exit_code == 0, done.output
        assert tanlearn.TableCounts.load(tmp_path / "c").counts.class_counts.tolist() == [30, 30]
    path.write_text("".join(["x,t,y\n", *ROWS[:9], "Total,,\n", *ROWS[9:], "many,a,y\n"]))
    done = run("counts", path, "-t", "y", "--like", tmp_path / "m", "-o", tmp_path / "c")
    assert "row 62 contains the text 'many'" in done.output


def test_a_target_without_a_value(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,t,y\n1,a,\n2,b,NA\n")
    for options in ([], ["--chunk-rows", "1"]):
        done = run("fit", path, *OPTIONS, "-o", tmp_path / "m", *options)
        assert done.exit_code == 2
        assert "the target 'y' must have at least two classes, but has no value in 2 rows." in done.output


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("sep=;\n" + PLAIN.replace(",", ";"), []),
        ('"sep=|"\n' + PLAIN.replace(",", "|"), []),
        ("\ufeffSEP=,\r\n" + PLAIN.replace("\n", "\r\n"), []),
        (PLAIN.replace(",", "|"), ["--separator", "|"]),
        (PLAIN.replace(",", " "), ["--separator", " "]),
        (PLAIN.replace(",", "\t"), ["--separator", "tab"]),
        ("# made, 2024\n" + PLAIN.replace("\n", "\n # a note\n", 3), ["--comment", "#"]),
        ("Sales of 2024\n\n" + PLAIN, ["--skip-rows", "1"]),
        ("Sales, of\n2024\n// so\n" + PLAIN, ["--skip-rows", "2", "--comment", "//"]),
        ("\n\n" + PLAIN, []),
    ],
)
@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "17"]])
def test_layouts(fitted, text, options, chunks):
    assert fitted(text, *options, *chunks)[0] == fitted(PLAIN)[0]


def test_files_without_names_of_columns(run, fitted, tmp_path):
    found, _ = fitted("".join(ROWS), "--no-header", "-t", "column_3", columns=("column_1", "column_2"))
    assert found == fitted(PLAIN)[0]
    fitted("".join(ROWS), "--no-header", "-t", "column_3", columns=("column_1", "column_2"))
    done = run("predict", tmp_path / "m", tmp_path / "table.csv", "--no-header")
    assert len(done.stdout.splitlines()) == 61
    done = run("fit", tmp_path / "table.csv", "-t", "class", "-o", tmp_path / "n")
    assert "there is no column 'class'" in done.output
    assert "use --no-header, which names the columns column_1, column_2 and so on." in done.output


def test_empty_names_are_unlike_all_others(fitted):
    lines = [f"{number},{line}" for number, line in enumerate(ROWS)]
    columns = ("Unnamed: 0.1", "Unnamed: 0", "t")
    found, _ = fitted("".join([",Unnamed: 0,t,y\n", *lines]), "--drop", "Unnamed: 0.1", columns=columns[1:])
    assert found == fitted(PLAIN)[0]
    trailing = PLAIN.replace("\n", ",\n")
    found, _ = fitted(trailing, "--drop", "Unnamed: 3")
    assert found == fitted(PLAIN)[0]


def test_a_comment_inside_of_quotes_is_none(run, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('x,y\n"a\n#b",1\n#c,2\nd,0\n"a\n#b",1\n')
    assert run("fit", path, *OPTIONS, "--comment", "#", "-o", tmp_path / "m").exit_code == 0
    assert tanlearn.load(tmp_path / "m").encoder_.categories_[0].tolist() == ["a\n#b", "d"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("# made 2024\n" + PLAIN, [], "describe the layout with --separator, --skip-rows and --comment."),
        (PLAIN.replace(",", "|"), [], "describe the layout with --separator, --skip-rows and --comment."),
        ("x,x,y\n1,2,3\n", [], "two columns are called 'x'"),
        (PLAIN, ["--separator", "||"], "must be one character"),
        ("# a\n#\nx,y\n1,2,3\n", ["--comment", "#"], "line 4: the row has 3 field(s), but the header has 2."),
    ],
)
def test_what_is_missing_is_said(run, tmp_path, text, options, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    done = run("fit", path, *OPTIONS, *options, "-o", tmp_path / "m")
    assert done.exit_code == 2
    assert message in done.output


def test_columns_that_are_not_there_may_be_missing(run, fitted, tmp_path):
    fitted(PLAIN)
    path = tmp_path / "new.csv"
    path.write_text("t,other\na,1\nb,2\n")
    done = run("predict", tmp_path / "m", path)
    assert done.exit_code == 2
    assert "must have all 2 columns of" in done.output
    assert "To treat them as missing in every row, use --fill-missing." in done.output
    done = run("predict", tmp_path / "m", path, "--fill-missing", "--proba")
    assert f"tanlearn: columns that {path} does not have, treated as missing in every row: x." in done.stderr
    model = tanlearn.load(tmp_path / "m")
    expected = model.predict_proba(pd.DataFrame({"x": [None, None], "t": ["a", "b"]}))
    found = [[float(field) for field in line.split(",")[1:]] for line in done.stdout.splitlines()[1:]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_columns_of_another_table_are_not_filled_up(run, tmp_path):
    train, other = tmp_path / "t.csv", tmp_path / "o.csv"
    train.write_text("a,b,y\n" + "".join(f"{'uv'[i % 2]},{'wx'[i % 2]},{'pq'[i % 2]}\n" for i in range(20)))
    other.write_text("foo,bar\n1,2\n")
    assert run("fit", train, "-t", "y", "-l", "nb ml", "-o", tmp_path / "m").exit_code == 0
    done = run("predict", tmp_path / "m", other, "--fill-missing")
    assert done.exit_code == 2
    assert "must have all 2 columns of" in done.output
    assert "has no rows" not in done.output
