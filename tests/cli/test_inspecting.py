"""``tanlearn explain``, ``describe`` and ``export-c``."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from support import host_cuda

import tanlearn


def story(done):
    """Return what explain printed as JSON."""
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_row_of_a_file_is_explained_as_python_does(run, model, shop):
    found = story(run("explain", model, f"{shop}:3", "--json"))
    classifier = tanlearn.load(model)
    _, age, town, date, spent, letter, _ = shop.read_text().splitlines()[3].split(",")
    days = (np.datetime64(date) - np.datetime64("1970-01-01")).astype(float)
    row = [[float(age or "nan"), town.strip() or None, days, float(spent), letter == "True"]]
    X = pd.DataFrame(row, columns=classifier.feature_names_in_)
    assert found["prediction"] == classifier.predict(X)[0]
    assert list(found["probabilities"].values()) == classifier.predict_proba(X)[0].tolist()
    shares = {one["column"]: one["log_odds"] for one in found["columns"]}
    k = classifier.classes_.tolist().index(found["prediction"])
    expected = classifier.explain(X, against=found["against"])[0, :, k]
    assert [shares[name] for name in classifier.feature_names_in_] == expected[:-1].tolist()
    assert (found["prior"], found["total"]) == (expected[-1], expected.sum())
    assert [abs(one["log_odds"]) for one in found["columns"]] == sorted(map(abs, shares.values()), reverse=True)


def test_words_json_and_files_say_the_same(run, model, shop):
    header, row = shop.read_text().splitlines()[0], shop.read_text().splitlines()[5]
    cells = dict(zip(map(str.strip, header.split(",")), map(str.strip, row.split(",")), strict=True))
    del cells["id"], cells["buys"]
    typed = {
        **cells,
        "age": int(cells["age"]),
        "spent": float(cells["spent"]),
        "newsletter": cells["newsletter"] == "True",
    }
    by_words = run("explain", model, *(f"{name}={value}" for name, value in cells.items()))
    by_json, by_file = run("explain", model, json.dumps(typed)), run("explain", model, f"{shop}:5")
    assert by_words.exit_code == by_json.exit_code == by_file.exit_code == 0
    assert by_words.stderr == by_json.stderr == by_file.stderr == ""
    numbers = [[line.split()[-2:] for line in done.stdout.splitlines()] for done in (by_words, by_json, by_file)]
    assert numbers[0] == numbers[1] == numbers[2]
    assert f"for {by_file.stdout.split()[0]}, against" in by_file.stdout


def test_the_category_of_missing_values_is_described(run, tmp_path):
    X, y = [["a", "small"], [None, "large"], ["b", "small"], [None, "large"]] * 5, [0, 1, 0, 1] * 5
    encoder = tanlearn.TableEncoder(handle_missing="category")
    model = tanlearn.NaiveBayesClassifier(encoder=encoder).fit(pd.DataFrame(X, columns=["town", "size"]), y)
    model.save(tmp_path / "model")
    done = run("describe", tmp_path / "model")
    assert done.exit_code == 0
    lines = [line for line in done.stdout.splitlines() if line.split()[:1] in (["town"], ["size"])]
    assert ["missing" in line for line in lines] == [True, False], done.stdout
    assert lines[0].split()[:5] == ["town", "categorical", "3", "a,", "b;"]


def test_bars_are_of_one_scale_and_nothing_has_none(capsys):
    from tanlearn.cli.inspecting import _print_explanation

    shares = {"most": 1.0, "none": 0.0, "almost": -0.004, "against": -0.5, "impossible": -np.inf}
    columns = [{"column": name, "value": 1, "log_odds": share} for name, share in shares.items()]
    told = {"prediction": "yes", "probabilities": {"yes": 0.6, "no": 0.4}, "against": "no", "columns": columns}
    _print_explanation({**told, "prior": 2.0, "total": -0.001})
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["most"][2:] == ["+1.00", "+" * 10]
    assert lines["none"][2:] == lines["almost"][2:] == ["+0.00"]
    assert lines["against"][2:] == ["-0.50", "-" * 5]
    assert lines["impossible"][2:] == ["-inf", "-" * 20]
    assert lines["(class"][-2:] == ["+2.00", "+" * 20]
    assert lines["sum"] == ["sum", "+0.00"]


def test_names_with_commas_are_reported_in_quotes(run, tmp_path):
    table, path = tmp_path / "t.csv", tmp_path / "m.tan"
    table.write_text('"name of, thing",age,y\n' + '"a, b",1,"x, y"\n"c",2,z\n' * 20)
    assert run("fit", table, "-t", "z", "-o", path).stderr.endswith("The columns are: 'name of, thing', age, y.\n")
    assert run("fit", table, "-t", "y", "-l", "nb ml", "-o", path).exit_code == 0
    assert "not given, so marginalized: 'name of, thing'." in run("explain", path, "age=1").stderr
    assert "Known values: 'a, b', c." in run("explain", path, "name of, thing=d", "age=1").stderr
    assert "classes     'x, y' 50.0%, z 50.0%" in run("describe", path).stdout


def test_what_is_not_given_or_unknown_is_reported(run, model):
    done = run("explain", model, "town=Paris", "age=30")
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        "tanlearn: not given, so marginalized: signed up, spent, newsletter.",
        "tanlearn: 'town' is 'Paris', which did not occur in training and counts as missing. Known values: Graz, Linz.",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["agee=3"], "the model has no column 'agee'. Did you mean 'age'? Its columns are: age, town"),
        (["town=Graz", "age"], "a row must be FILE:NUMBER, a JSON object, or name=value, got 'age'."),
        (['{"age": '], "the row is not a JSON object"),
        (['{"age": [1]}'], "'age' must be a string or a number, got [1]."),
        (["age=old"], "the row: 'age' must contain numbers, but row 1 contains the text 'old'."),
        (
            ["newsletter=yes"],
            "the row: 'newsletter' must contain booleans, but row 1 contains the text 'yes'.",
        ),
        (["age=3", "age=4"], "'age' is given twice. Leave one of them out."),
        (['{"age": 3, "age": 4}'], "'age' is given twice. Leave one of them out."),
        (["absent.csv:1"], "there is no file absent.csv."),
        (["town=Graz", "--against", "maybe"], "--against must be a class other than the predicted one"),
    ],
)
def test_a_row_that_makes_no_sense_is_one_line(run, model, words, message):
    done = run("explain", model, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"tanlearn: {message}") or message in done.stderr.splitlines()[-1]


def test_what_is_typed_is_reported_as_typed(run, tmp_path):
    (tmp_path / "t.csv").write_text("at,n,y\n" + "12:30,1,a\n8:15,2,b\n" * 20)
    path = tmp_path / "m.tan"
    assert run("fit", tmp_path / "t.csv", "-t", "y", "-l", "nb ml", "-o", path).exit_code == 0
    assert story(run("explain", path, "at=12:30", "--json"))["prediction"] == "a"
    assert "'n' is 9, which did not occur in training" in run("explain", path, "at=12:30", "n=9").stderr
    (tmp_path / "n.csv").write_text("at,n\n8:15,1\n8:15,?\n")
    assert (
        "n.csv: 'n' must contain numbers, but row 2 contains the text '?'"
        in run("explain", path, f"{tmp_path / 'n.csv'}:2").stderr
    )
    assert "--missing" not in run("explain", path, "n=old").stderr


def test_large_integers_are_distinguished(run, tmp_path):
    (tmp_path / "t.csv").write_text("big,y\n" + f"{2**60},a\n{2**60 + 1},b\n" * 20)
    run("fit", tmp_path / "t.csv", "-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan")
    for value, label in ((2**60, "a"), (2**60 + 1, "b")):
        assert story(run("explain", tmp_path / "m.tan", f"big={value}", "--json"))["prediction"] == label


@pytest.mark.parametrize("number", [0, 301])
def test_a_row_that_is_not_there(run, model, shop, number):
    done = run("explain", model, f"{shop}:{number}")
    assert done.exit_code == 2
    assert done.stderr == f"tanlearn: the row number must be from 1 to 300, the rows of {shop}, got {number}.\n"


def test_a_model_is_described_for_people_and_programs(run, model):
    done = run("describe", model)
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert lines[0][-1] == "BayesNetClassifier"
    assert lines[1][0] == "classes"
    assert ["town", "categorical", "2", "Graz,", "Linz"] in [line[:5] for line in lines]
    structure = tanlearn.load(model).structure_
    names = ["age", "town", "signed up", "spent", "newsletter"]
    for name, (parent, _) in zip(names, structure.parents.tolist(), strict=True):
        (row,) = (line for line in done.stdout.splitlines() if line.strip().startswith(f"{name} "))
        assert row.rstrip().endswith("class" if parent < 0 else f"class, {names[parent]}")
    assert json.loads(run("describe", model, "--json").stdout) == tanlearn.load(model).describe()


def test_an_ensemble_is_described_and_says_what_it_cannot(run, shop, tmp_path):
    path = tmp_path / "m.tan"
    run("fit", shop, "-t", "buys", "--drop", "id", "-l", "aode", "-o", path)
    assert "class and other columns" in run("describe", path).stdout
    for command in (
        ["describe", path, "--json"],
        ["explain", path, "age=3"],
        ["export-c", path, "-o", tmp_path / "m.h"],
    ):
        done = run(*command)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "AODEClassifier" in done.stderr
    assert not (tmp_path / "m.h").exists()


def test_boosted_terms_are_exported_to_c(run, shop, tmp_path):
    path, header = tmp_path / "terms.tan", tmp_path / "m.h"
    table = pd.read_csv(shop, skipinitialspace=True)[["spent", "newsletter", "buys"]].dropna()
    terms = tanlearn.BoostedTermsClassifier(max_terms=5, random_state=0)
    terms.fit(table[["spent", "newsletter"]], table["buys"].str.strip()).save(path)
    done = run("export-c", path, "-o", header)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{header}: integers of 8 bits\n"
    assert run("export-c", path, "-o", header, "--bits", "4").exit_code == 0
    assert "boosted terms with 4-bit integers" in header.read_text()
    done = run("export-c", path, "-o", header, "--bits", "3,1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "bits must be an integer from 2 to 16, got (3, 1)." in done.stderr


@pytest.mark.parametrize("weights", ["shared", None])
def test_a_forest_is_explained_and_described(run, shop, tmp_path, weights):
    import pandas as pd

    table = pd.read_csv(shop, skipinitialspace=True)[["spent", "newsletter", "buys"]].dropna()
    path = tmp_path / "forest.tan"
    forest = tanlearn.BayesForestClassifier(n_estimators=3, weights=weights, random_state=0)
    forest.fit(table[["spent", "newsletter"]], table["buys"].str.strip()).save(path)
    found = story(run("explain", path, "spent=150", "newsletter=True", "--json"))
    assert found["prediction"] == "yes"
    odds = np.log(found["probabilities"]["yes"] / found["probabilities"]["no"])
    np.testing.assert_allclose(found["total"], odds)
    np.testing.assert_allclose(sum(one["log_odds"] for one in found["columns"]) + found["prior"], odds)
    done = run("explain", path, "spent=150")
    assert done.stderr == "tanlearn: not given, so treated as missing: newsletter.\n"
    told = run("describe", path).stdout
    combined = "averaged, at most 0" if weights is None else "added, at most 1"  # an average keeps what it uses
    assert f"networks    3, {combined} parents per column" in told
    assert json.loads(run("describe", path, "--json").stdout) == forest.describe()


def test_a_forest_says_how_many_members_it_has(run, shop, tmp_path):
    path = tmp_path / "m.tan"
    done = run("fit", shop, "-t", "buys", "--drop", "id", "-l", "bayesforest", "-o", path, "--set", "n_estimators=3")
    assert done.exit_code == 0, done.output
    assert type(tanlearn.load(path).encoder_.discretizer_) is tanlearn.QuantileDiscretizer
    told = run("describe", path).stdout
    assert "networks    3, added" in told
    assert "class and other columns" in told


def test_a_model_becomes_c_that_agrees_with_it(run, model, shop, tmp_path):
    header = tmp_path / "shop.h"
    done = run("export-c", model, "-o", header, "--bits", "3,2", "--rows", shop)
    assert done.exit_code == 0, done.output
    assert "bytes of tables, and" in done.stdout
    assert "shop_predict" in header.read_text()
    if not host_cuda.can_compile():
        pytest.skip("no C++ compiler to run the program with")
    program = tmp_path / "shop_test"
    subprocess.run(["cc", "-std=c99", "-o", program, tmp_path / "shop_test.c"], check=True)
    subprocess.run([program], check=True)


def test_rows_with_classes_choose_how_to_round(run, model, shop, tmp_path):
    done = run("export-c", model, "-o", tmp_path / "m.h", "--bits", "4", "--rows", shop, "--target", "buys")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "C code needs integers, but the CPTs of"),
        (["--bits", "3,x"], "--bits must be two numbers, such as 3,1, or their sum, got '3,x'."),
        (["--bits", "4"], "--bits 4 is only the total. Set integer and fraction bits, for example --bits 3,1"),
        (["--bits", "4"], "add --rows and --target to select the split with the fewest errors on these rows."),
        (["--bits", "3,1", "--target", "buys"], "--target needs --rows, because it names a column of these rows."),
        (["--bits", "3,1", "-o", "m"], "--output must end in .h, .hh or .hpp, got 'm'."),
        (["--bits", "3,1", "-o", "m.c"], "--output must end in .h, .hh or .hpp, got 'm.c'."),
        (
            ["--bits", "3,1", "-o", "my-m.h"],
            "the prefix must be a C identifier (a letter, a to z or A to Z, then at most 30 letters, digits or _), got",
        ),
        (["--bits", "3,1", "--name", "0"], "name must be a C identifier"),
    ],
)
def test_what_cannot_become_c_is_one_line(run, model, tmp_path, options, message):
    done = run("export-c", model, "-o", tmp_path / "m.h", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (tmp_path / "m.h").exists()
