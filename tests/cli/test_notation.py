"""The notation of the training table is kept in the model, and new tables are read alike."""

import json

import pandas as pd
import pytest

import tanlearn
from tanlearn.sources.notation import Notation

OPTIONS = ["--decimal", ",", "--thousands", ".", "--symbol", "€", "--dates", "day-first", "--missing", "?"]
#: 1.500 is fifteen hundred here, and one and a half where nothing is stated.
ROWS = [
    f"{1 + i % 9}.{i * 16:03};{'?' if i == 5 else f'{i}.000,25 €'};{i % 28 + 1:02}/{1 + i % 12:02}/2024;{'ab'[i > 30]}"
    for i in range(60)
]


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(["parts;price;day;y", *ROWS]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(params=[(), ("--chunk-rows", "20")], ids=["whole", "chunks"])
def fitted(request, run, prices, tmp_path):
    path = tmp_path / "m.tan"
    done = run("fit", prices, "-t", "y", "-l", "nb ml", "-o", path, *OPTIONS, *request.param)
    assert done.exit_code == 0, done.output
    return path


def test_new_tables_are_read_as_in_fit(run, fitted, prices):
    stated = run("predict", fitted, prices, "--proba", *OPTIONS)
    unstated = run("predict", fitted, prices, "--proba")
    assert (stated.exit_code, unstated.exit_code) == (0, 0), unstated.output
    assert unstated.stdout == stated.stdout
    note = "read with the options of fit: --decimal , --thousands . --dates day-first --symbol '€' --missing '?'."
    assert f"tanlearn: {note}" in unstated.stderr.splitlines()
    assert "options of fit" not in stated.stderr
    rows = [json.loads(run("explain", fitted, f"{prices}:7", "--json", *words).stdout) for words in ([], OPTIONS)]
    assert rows[0] == rows[1]


def test_options_of_the_user_count_and_not_those_of_fit(run, fitted, tmp_path):
    path = tmp_path / "english.csv"
    path.write_text("parts,price,day\n1500,12000.25,2024-07-16\n")
    done = run("predict", fitted, path, "--missing", "-")
    assert done.exit_code == 0, done.output
    assert "options of fit" not in done.stderr


def test_models_keep_the_notation_until_they_are_fitted_again(fitted, tmp_path):
    model = tanlearn.load(fitted)
    model.save(tmp_path / "again.tan")
    assert (tmp_path / "again.tan").read_bytes() == fitted.read_bytes()
    model.fit(pd.DataFrame({"x": [0, 1, 0, 1]}), [0, 1, 0, 1]).save(tmp_path / "other.tan")
    assert b'"notation"' in fitted.read_bytes()
    assert b'"notation"' not in (tmp_path / "other.tan").read_bytes()


def test_the_usual_notation_is_not_kept(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,a\n2,b\n" * 30)
    assert run("fit", path, "-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan").exit_code == 0
    assert b'"notation"' not in (tmp_path / "m.tan").read_bytes()


@pytest.mark.parametrize("thousands", ["", ",", ".", "'", " "])
@pytest.mark.parametrize("dates", ["", "day-first", "month-first", "year-first"])
def test_every_notation_survives_a_file(thousands, dates):
    for decimal in {",", "."} - {thousands}:
        notation = Notation(decimal, thousands, ("€", "()"), dates, ("?", ""))
        assert Notation.from_state(json.loads(json.dumps(notation.to_state()))) == notation.check() == notation


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decimal": ";"}, "the decimal mark must be '.' or ',', got ';'"),
        ({"decimal": ","}, "the thousands separator must be one of"),
        ({"dates": "never"}, "dates must be one of day-first"),
        ({"symbols": "€"}, "symbols of a notation has a wrong type"),
        ({"thousands": ";"}, "the thousands separator must be one of"),
        ({"missing": [None]}, "symbols and missing values must be strings"),
        ({"missing": "NA"}, "missing of a notation has a wrong type"),
        ({"decimal": None}, "decimal of a notation has a wrong type"),
        ({"symbols": [1]}, "symbols and missing values must be strings"),
        ({"more": ""}, "a notation must have the fields decimal"),
    ],
)
def test_unknown_notations_in_files_are_refused(change, message):
    state = Notation(thousands=",").to_state()
    assert Notation.from_state(state) == Notation(thousands=",")
    with pytest.raises(ValueError, match=message):
        Notation.from_state(state | change)


def test_counts_like_a_model_are_read_in_its_notation(run, tmp_path):
    rows = "".join(f"{i}.500;{'late' if i < 20 else 'early'}\n" for i in range(1, 40))
    (tmp_path / "t.csv").write_text(f"price;y\n{rows}")
    done = run(
        "fit",
        tmp_path / "t.csv",
        "-t",
        "y",
        "-o",
        tmp_path / "m.tan",
        "-l",
        "nb ml",
        "--thousands",
        ".",
        "--decimal",
        ",",
    )
    assert done.exit_code == 0, done.output
    model = tanlearn.load(tmp_path / "m.tan")
    assert model.encoder_.value_ranges_[0] == (1500.0, 39500.0)
    done = run("counts", tmp_path / "t.csv", "-t", "y", "--like", tmp_path / "m.tan", "-o", tmp_path / "t.counts")
    assert done.exit_code == 0, done.output
    assert "read with the options of fit" in done.stderr
    found = tanlearn.TableCounts.load(tmp_path / "t.counts")
    assert found.counts.feature(0).sum(axis=0).tolist() == [20, 19]
    assert found.counts.feature(0).tolist() == [[0, 19], [20, 0]]
    assert tanlearn.TableCounts.of_source(tmp_path / "t.csv", "y", like=model).counts == found.counts
