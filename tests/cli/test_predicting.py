"""``tanlearn predict``: columns by name, rows in their order, and whole files or none."""

import io
import os
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import tanlearn
from tanlearn.cli import predicting
from tanlearn.sources.table_files import open_table


@pytest.fixture
def new(tmp_path, shop):
    """Return the path of rows without classes, their columns in another order."""
    frame = pd.read_csv(shop, skipinitialspace=True).rename(columns=str.strip)
    frame = frame[["town", "spent", "id", "newsletter", "age", "signed up"]].iloc[::-1]
    frame.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


@pytest.fixture
def expected(model, new):
    """Return classes and probabilities, by hand."""
    classifier, frame = tanlearn.load(model), open_table(new).read()
    frame["signed up"] = (pd.to_datetime(frame["signed up"]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    X = frame[classifier.feature_names_in_.tolist()]
    return classifier.predict(X).tolist(), classifier.predict_proba(X)


def table(text):
    """Return what a command printed as a table."""
    return pd.read_csv(io.StringIO(text))


@pytest.mark.parametrize("n_rows", [100_000, 70])
def test_columns_are_found_by_name_and_rows_keep_their_order(run, model, new, expected, monkeypatch, n_rows):
    monkeypatch.setattr(predicting, "_CHUNK_ROWS", n_rows)
    done = run("predict", model, new, "--proba", "--keep", "id,town")
    assert (done.exit_code, done.stderr) == (0, "")
    found = table(done.stdout)
    assert list(found.columns) == ["id", "town", "prediction", "p_no", "p_yes"]
    assert found["id"].tolist() == [f"C{i:04}" for i in reversed(range(300))]
    assert found["prediction"].tolist() == expected[0]
    # pandas 2 reads one of three floating numbers with another last bit
    np.testing.assert_allclose(found[["p_no", "p_yes"]], expected[1], rtol=1e-12)
    assert len(set(expected[0])) == 2


def test_other_columns_are_ignored_and_named(run, model, new):
    done = run("predict", model, new)
    assert done.stderr == "tanlearn: not used: id.\n"
    assert done.stdout.splitlines()[0] == "prediction"


def test_missing_columns_are_refused_and_named(run, model, tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("town,age,x\nGraz,3,1\n")
    done = run("predict", model, path, "-o", tmp_path / "p.csv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "must have all 5 columns of" in done.stderr
    assert "are absent: signed up, spent, newsletter. It has the columns town, age, x." in done.stderr
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather"])
def test_predictions_are_written_as_their_ending_says(run, model, new, expected, tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    done = run("predict", model, new, "-o", path, "--proba")
    assert (done.exit_code, done.stdout) == (0, "")
    found = open_table(path).read()
    assert found["prediction"].tolist() == expected[0]
    # pandas 2 reads one of three floating numbers with another last bit
    np.testing.assert_allclose(found[["p_no", "p_yes"]], expected[1], rtol=1e-12)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_columns_that_are_kept_have_their_types(run, model, new, tmp_path, ending):
    frame = open_table(new).read()
    frame.insert(0, "zip", [f"{i:05}" for i in range(300)])
    frame.insert(0, "row", [*range(299), None])
    frame.to_csv(new, index=False)
    path = tmp_path / f"p.{ending}"
    assert run("predict", model, new, "-o", path, "--keep", "id,zip,row").exit_code == 0
    found = open_table(path).read()
    assert found["zip"].tolist() == frame["zip"].tolist()
    assert found["id"].tolist() == frame["id"].tolist()
    assert found["row"].dtype.kind == "f"
    assert found["row"][:299].tolist() == list(range(299))


def test_a_pipe_in_and_a_pipe_out(run, model, new, expected):
    done = run("predict", model, "-", stdin=new.read_text())
    assert table(done.stdout)["prediction"].tolist() == expected[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_read_as_a_pipe(run, model, new, expected, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(new.read_text(),), daemon=True)
    writer.start()
    assert table(run("predict", model, path).stdout)["prediction"].tolist() == expected[0]
    writer.join()


def test_the_index_of_parquet_is_kept(run, model, new, tmp_path, expected):
    frame = pd.read_csv(new)
    frame.index = pd.Index([f"r{i}" for i in range(300)], name="row")
    frame.to_parquet(tmp_path / "new.parquet")
    run("predict", model, tmp_path / "new.parquet", "-o", tmp_path / "p.parquet")
    found = pd.read_parquet(tmp_path / "p.parquet")
    pd.testing.assert_index_equal(found.index, frame.index, exact=False)
    assert found["prediction"].tolist() == expected[0]
    assert table(run("predict", model, tmp_path / "new.parquet").stdout)["row"].tolist() == frame.index.tolist()


def test_what_is_wrong_in_a_late_chunk_leaves_no_half_of_an_output(run, model, new, tmp_path, monkeypatch):
    monkeypatch.setattr(predicting, "_CHUNK_ROWS", 50)
    path = tmp_path / "p.csv"
    path.write_text("what was there")
    new.write_text(new.read_text() + "Graz,1\n")
    for output in (path, "-"):
        done = run("predict", model, new, "-o", output)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "line 302: the row has 2 field(s), but the header has 6" in done.stderr
    assert path.read_text() == "what was there"
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_text_among_numbers_is_refused_with_its_row_or_named_missing(run, model, new):
    lines = new.read_text().splitlines()
    cells = lines[41].split(",")
    cells[1] = "?"
    new.write_text("\n".join([*lines[:41], ",".join(cells), *lines[42:]]))
    done = run("predict", model, new)
    assert done.exit_code == 2
    assert "'spent' must contain numbers, but row 41 contains the text '?'." in done.stderr
    assert "add --missing '?'" in done.stderr
    assert run("predict", model, new, "--missing", "?").exit_code == 0


def test_texts_that_look_like_numbers_stay_texts(run, tmp_path):
    (tmp_path / "t.csv").write_text("zip,y\n" + "0123,a\nA1,b\n" * 20)
    run("fit", tmp_path / "t.csv", "-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan")
    (tmp_path / "n.csv").write_text("zip\n0123\n0123\n")
    assert run("predict", tmp_path / "m.tan", tmp_path / "n.csv").stdout.split() == ["prediction", "a", "a"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["-o", "p.xls"],
            "--output must be - (standard output) or end in .csv, .tsv, .parquet or .feather, got 'p.xls'.",
        ),
        (["-o", "no/p.csv"], "the folder no does not exist"),
        (["--keep", "idd"], "there is no column 'idd'. Did you mean 'id'?"),
    ],
)
def test_a_wrong_option_is_one_line(run, model, new, options, message):
    done = run("predict", model, new, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_column_of_the_output_cannot_be_kept(run, model, new):
    frame = pd.read_csv(new).assign(prediction=1)
    frame.to_csv(new, index=False)
    done = run("predict", model, new, "--keep", "prediction")
    assert done.exit_code == 2
    assert "'prediction' is already a column of the output" in done.stderr


def test_files_that_are_no_models_and_those_of_other_versions(run, model, new, tmp_path):
    content = model.read_bytes()
    for damage, message in (
        (content[:-5], "it is damaged"),
        (b"a,b\n1,2\n", "it is not a tanlearn model"),
        (newer(content), "has format 2 of tanlearn"),
    ):
        model.write_bytes(damage)
        done = run("predict", model, new)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    done = run("predict", tmp_path / "absent.tan", new)
    assert (done.exit_code, done.stderr) == (2, f"tanlearn: there is no file {tmp_path / 'absent.tan'}.\n")


def newer(content):
    """Return a model as a later version would write it."""
    import zipfile

    from tanlearn.files.archive import seal

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["tanlearn.json"] = members["tanlearn.json"].replace(b'"version": 1,', b'"version": 2,', 1)
    return seal(members)


def test_a_missing_package_is_found_before_the_work(run, model, new, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("predict", model, new, "-o", "p.parquet")
    assert (done.exit_code, done.stdout) == (2, "")
    assert 'needs pyarrow. Install it with: pip install "tanlearn[frames]"' in done.stderr


@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "30"]])
def test_few_dates_are_categories_and_dates_still(run, tmp_path, chunks):
    days = ["2026-01-01", "2026-01-02", "2026-01-03"] * 30
    frame = pd.DataFrame({"day": days, "y": ["no", "yes", "no"] * 30})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan", *chunks).exit_code == 0
    done = run("predict", tmp_path / "m.tan", tmp_path / "t.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.split()[1:] == frame["y"].tolist()


@pytest.mark.parametrize("n_rows", [100_000, 70])
def test_unseen_values_and_numbers_out_of_range_are_counted_over_all_rows(run, model, new, monkeypatch, n_rows):
    monkeypatch.setattr(predicting, "_CHUNK_ROWS", n_rows)
    frame = pd.read_csv(new)
    frame.loc[frame.index % 3 != 0, "town"] = "Wels"
    frame.loc[[5, 200], "age"] = [99, 7]
    frame.to_csv(new, index=False)
    done = run("predict", model, new, "--keep", "id")
    low, high = (int(age) for age in tanlearn.load(model).encoder_.value_ranges_[0])
    assert (done.exit_code, done.stderr.splitlines()) == (
        0,
        [
            f"tanlearn: age: 2 of 300 rows hold numbers outside the training range of {low} to {high} (99.0).",
            "tanlearn: town: 200 of 300 rows hold values not seen in training ('Wels'), which count as missing.",
        ],
    )


@pytest.mark.parametrize("n_rows", [100_000, 7])
def test_kept_columns_are_copied_as_they_are_written(run, tmp_path, monkeypatch, n_rows):
    monkeypatch.setattr(predicting, "_CHUNK_ROWS", n_rows)
    options = ["--thousands", ",", "--symbol", "$", "--dates", "day-first"]
    path, model = tmp_path / "sales.csv", tmp_path / "m.tan"
    rows = [f'{i:03},{i % 28 + 1:02}/07/2024,"$1,{i:03}.50",1.{i % 9}0,{"ab"[i > 30]}' for i in range(60)]
    path.write_text("\n".join(["code,day,price,size,y", *rows]) + "\n")
    assert run("fit", path, "-t", "y", "-l", "nb ml", "-o", model, *options).exit_code == 0
    done = run("predict", model, path, "--keep", "code,price,day,size", *options)
    assert done.exit_code == 0, done.output
    found = pd.read_csv(io.StringIO(done.stdout), dtype=str)
    expected = pd.read_csv(path, dtype=str)
    for name in ("code", "price", "day", "size"):
        assert found[name].tolist() == expected[name].tolist()
    assert found["prediction"].tolist() == expected["y"].tolist()
