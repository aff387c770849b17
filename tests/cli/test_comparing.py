"""``tanlearn compare``: rows as they finish, what goes to which stream, and exit codes."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")

from support.command_line import plain

from tanlearn.baselines import LEARNERS
from tanlearn.cli.comparison_rows import HEADERS
from tanlearn.cli.learners import DEFAULT_LEARNERS, default_learner, find_learners


@pytest.fixture
def table(tmp_path):
    """Return the path of a table whose one column names the class."""
    rng = np.random.default_rng(0)
    go = rng.choice(["beach", "home"], 60)
    sky = np.where(go == "beach", "sun", "rain")
    path = tmp_path / "weather.csv"
    path.write_text("sky,go\n" + "\n".join(f"{a},{b}" for a, b in zip(sky, go, strict=True)))
    return str(path)


@pytest.fixture
def gaps(tmp_path):
    """Return the path of an archive with a missing value in every row."""
    missing = np.tile([True, False], (40, 1))
    np.savez(tmp_path / "gaps.npz", X=np.ones((40, 2)), y=[0, 1] * 20, missing=missing)
    return str(tmp_path / "gaps.npz")


def test_list_has_every_learner(run):
    done = run("compare", "--list")
    assert done.exit_code == 0
    for name, learner in LEARNERS.items():
        assert name in done.stdout
        assert learner.description in done.stdout


def test_default_learners_are_in_the_registry():
    assert set(DEFAULT_LEARNERS) <= set(LEARNERS)


def test_default_is_the_digits_with_the_default_learners(run, monkeypatch):
    asked = {}

    def fake(datasets, learners, **options):
        asked.update(
            options, datasets=[dataset.name for dataset in datasets], learners=[learner.name for learner in learners]
        )
        raise ValueError("enough")

    monkeypatch.setattr("tanlearn.comparison.compare", fake)
    assert run("compare").exit_code == 2
    for name in ("progress", "finished"):
        asked.pop(name)
    assert asked == {
        "datasets": ["digits"],
        "learners": list(DEFAULT_LEARNERS),
        "n_folds": 1,
        "n_repeats": 1,
        "path": None,
        "retry_failed": False,
        "random_state": 0,
        "n_epochs": None,
        "n_jobs": -1,
        "time_limit": None,
        "cell_time_limit": None,
    }
    run("compare", "--folds", "4", "--seed", "3", "--epochs", "6", "--jobs", "2", "--learners", "all")
    assert (asked["n_folds"], asked["random_state"], asked["n_epochs"], asked["n_jobs"]) == (4, 3, 6, 2)
    assert sorted(asked["learners"]) == sorted(LEARNERS)


def test_what_is_cheap_goes_first():
    costs = [learner.cost for learner in find_learners(["all"], 0)]
    assert costs == sorted(costs)
    assert [learner.name for learner in find_learners([], 0)] == list(DEFAULT_LEARNERS)
    asked = [learner.name for learner in find_learners(["TAN All HYB, NB CVX-MM", "nb ml"], 0)]
    assert asked == ["NB ML", "TAN All HYB", "NB CVX-MM"]


@pytest.mark.parametrize(
    ("n_numbers", "learners", "fits"),
    [
        (1_000_000, DEFAULT_LEARNERS, "BayesEnsemble"),
        (10_000_000, DEFAULT_LEARNERS[:3], "BayesForest"),
        (10_000_001, DEFAULT_LEARNERS[:2], "TAN-CMI ML"),
    ],
)
def test_large_tables_have_quick_defaults(n_numbers, learners, fits):
    assert [learner.name for learner in find_learners([], n_numbers)] == list(learners)
    assert default_learner(n_numbers).name == fits


def test_default_learners_that_are_left_out_are_named(run, table, monkeypatch):
    monkeypatch.setattr("tanlearn.cli.learners._MOST_NUMBERS", {2: 10, 3: 10, 4: 10})
    done = run("compare", table, "--target", "go", "--print", "json")
    assert [row["learner"] for row in json.loads(done.stdout)] == ["NB ML", "TAN-CMI ML"]
    assert (
        "left out, because they are slow for 60 values: BayesForest, Term-TAN, BayesEnsemble, TAN Order-free"
        in done.stderr
    )


def test_table_has_a_title_headers_with_units_and_a_caption(run, table):
    done = run("compare", "--data", table, "--target", "go", "--learners", "NB ML,TAN Subset HYB", "--epochs", "2")
    assert done.exit_code == 0
    title, *lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert title == "weather: 60 rows, 1 features, 2 classes"
    assert all(header in lines[0] for header in HEADERS)
    assert lines[2].split()[:3] == ["NB", "ML", "0.00"]
    assert lines[3].startswith("TAN Subset HYB")
    assert lines[-1].startswith("Lowest error: NB ML")
    assert lines[-1].endswith("0.00 % of 20 held-out rows wrong (standard error 0.00), trained on 40.")
    assert done.stderr.splitlines() == ["[1/2] NB ML ...", "[2/2] TAN Subset HYB ..."]


@pytest.mark.parametrize("kind", ["json", "csv", "markdown"])
def test_other_outputs_are_clean(run, table, kind):
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml", "--print", kind)
    assert done.exit_code == 0
    rows = {
        "json": json.loads,
        "csv": lambda text: list(csv.DictReader(text.splitlines())),
        "markdown": lambda text: [{"learner": line.split(" | ")[0][2:].strip()} for line in text.splitlines()[2:]],
    }[kind](done.stdout)
    assert [row["learner"] for row in rows] == ["NB ML"]


def test_learners_may_be_repeated_and_count_once(run, table):
    options = ["--learners", "nb ml, tan-cmi ml", "--learners", "NB ML", "--print", "json"]
    done = run("compare", "--data", table, "--target", "go", *options)
    assert [row["learner"] for row in json.loads(done.stdout)] == ["NB ML", "TAN-CMI ML"]


def test_folds_show_their_spread(run, table):
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml", "--folds", "3")
    assert "0.00 ± 0.00" in done.stdout
    assert "mean of 3 folds" in done.stdout


def test_failure_of_one_learner_is_reported_and_forgiven(run, gaps):
    done = run("compare", "--data", gaps, "--learners", "NB ML,TAN-CR ML", "--epochs", "2")
    assert done.exit_code == 0
    assert "failed" in done.stdout
    assert "TAN-CR ML failed: A wrapper search learns from complete rows only" in done.stderr


@pytest.mark.parametrize("kind", ["table", "json"])
def test_failure_of_all_learners_is_an_exit_code(run, gaps, kind):
    done = run("compare", "--data", gaps, "--learners", "TAN-CR ML", "--epochs", "2", "--print", kind)
    assert done.exit_code == 1
    assert ("No learner succeeded." in done.stdout) == (kind == "table")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learners", "NB MM"], "tanlearn: there is no learner 'NB MM'. Did you mean 'NB ML'?"),
        (["--learners", "perceptron"], "tanlearn: there is no learner 'perceptron'. The learners are: NB ML, "),
        (["--learners", ","], "tanlearn: a comparison needs at least one learner, got none."),
        (["--data", "absent.npz"], "tanlearn: there is no file absent.npz."),
        (["--data", "digit"], "tanlearn: there is no file digit. Did you mean 'digits'?"),
        (["a.csv", "--data", "b.csv"], "tanlearn: the data must be given once, got a.csv and --data b.csv."),
        (["--target", "go"], "tanlearn: target ('go') cannot be set for"),
    ],
)
def test_error_of_the_user_is_one_line(run, arguments, message):
    done = run("compare", *arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(message)


def test_target_that_is_no_column_is_one_line(run, table):
    done = run("compare", "--data", table, "--target", "walk")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"tanlearn: {table}: there is no column 'walk'. The columns are: sky, go.\n"


@pytest.mark.parametrize("arguments", [["--folds", "0"], ["--epochs", "0"], ["--output", "xml"], ["--seed", "x"]])
def test_option_out_of_range_is_refused(run, arguments):
    done = run("compare", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert arguments[0] in plain(done.stderr)


def test_terminal_gets_bars_that_vanish(run, table, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes the stream for a terminal then
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml", "--print", "json")
    assert "[1/1] NB ML" in done.stderr
    assert "100%" in done.stderr
    assert "..." not in done.stderr
    assert [row["learner"] for row in json.loads(done.stdout)] == ["NB ML"]


@pytest.fixture
def tables(tmp_path):
    """Return the paths of two tables whose last column is the class, the first column of the second is another one."""
    rng = np.random.default_rng(0)
    for name, head in (("one", "id,sky,wind,go"), ("two", "kind,wind,sky,go")):
        go = rng.choice(["beach", "home"], 90)
        noisy = np.where(rng.random(90) < 0.1, "rain", np.where(go == "beach", "sun", "rain"))
        rows = zip(rng.choice(["a", "b"], 90), noisy, rng.choice(["calm", "strong"], 90), go, strict=True)
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *map(",".join, rows)]) + "\n")
    return [str(tmp_path / f"{name}.csv") for name in ("one", "two")]


def test_two_tables_and_a_report_in_two_commands(run, tables, tmp_path):
    path = str(tmp_path / "results.csv")
    done = run("compare", *tables, "--learners", "nb ml,aode", "--repeats", "2", "--folds", "3", "--output", path)
    assert done.exit_code == 0
    assert (
        "one.csv: the classes are read from the last column, 'go'. To use another column, set --target." in done.stderr
    )
    assert (
        f"24 of 24 results of this comparison are in {path}. For tables and tests: tanlearn report {path}"
        in done.stderr
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["one: 90 rows, 3 features, 2 classes", "two: 90 rows, 3 features, 2 classes"]
    assert [line.split()[:2] for line in lines[5:9]] == [["one", "NB"], ["one", "AODE"], ["two", "NB"], ["two", "AODE"]]
    assert "Not significantly worse: " in done.stdout
    content = (tmp_path / "results.csv").read_bytes()
    again = run("compare", *tables, "--learners", "nb ml,aode", "--repeats", "2", "--folds", "3", "--output", path)
    assert [line.split("  ")[:3] for line in again.stdout.splitlines()[5:9]] == [
        line.split("  ")[:3] for line in lines[5:9]
    ]
    assert (tmp_path / "results.csv").read_bytes() == content
    report = run("report", path)
    assert report.exit_code == 0
    assert report.stderr == ""
    assert report.stdout.startswith("# Comparison of 2 learners on 2 data sets\n\n2 repeats of 3 folds.")
    assert "| **" in report.stdout
    assert "p (Holm)" in report.stdout


def test_results_of_other_folds_are_refused_in_one_line(run, tables, tmp_path):
    path = str(tmp_path / "results.csv")
    run("compare", tables[0], "--learners", "nb ml", "--folds", "3", "-o", path)
    done = run("compare", tables[0], "--learners", "nb ml", "-o", path)
    assert done.exit_code == 2
    assert f"folds of 'one' differs: 3 in {path}, but 5 in this comparison." in done.stderr.splitlines()[-1]


def test_failed_folds_are_run_again_on_request(run, gaps, tmp_path):
    arguments = ["compare", gaps, "--learners", "NB ML,TAN-CR ML", "--folds", "2", "-o", str(tmp_path / "results.csv")]
    run(*arguments)
    kept = "2 failed cell(s) of"
    done = run(*arguments)
    assert kept in done.stderr
    assert "Set --retry-failed to run them again." in done.stderr
    before = (tmp_path / "results.csv").read_text().count("\n")
    assert kept not in run(*arguments, "--retry-failed").stderr
    assert (tmp_path / "results.csv").read_text().count("\n") == before + 2


def test_the_time_limit_leaves_a_file_to_continue(run, tables, tmp_path):
    path = str(tmp_path / "results.csv")
    arguments = ["compare", *tables, "--learners", "nb ml", "--folds", "2", "--output", path]
    done = run(*arguments, "--time-limit", "1e-9")
    assert "not done: one, NB ML; two, NB ML." in done.stderr
    assert f"0 of 4 results of this comparison are in {path}. Repeat the command to continue." in done.stderr
    done = run(*arguments, "--cell-time-limit", "3600")
    assert "4 of 4 results of this comparison are in" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "kind"], "there is no column 'kind'. Did you mean 'wind'? The columns are: id, sky, wind, go."),
        (["--target", "go", "-t", "go", "-t", "go"], "one per data set, got 3 for 2 data sets."),
        (["--target", "go,king"], "two.csv: there is no column 'king'. Did you mean 'kind'?"),
        (["--drop", "id,sun"], "--drop: no file has a column 'sun'. Correct the name, or leave it out. COLUMN drops"),
        (["--drop", "one:kind"], "--drop: no file has a column 'one:kind'."),
        (["--drop", "three:sky"], "--drop: no file has a column 'three:sky'."),
    ],
)
def test_columns_of_several_tables_are_checked(run, tables, options, message):
    done = run("compare", *tables, "--learners", "nb ml", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[-1]


def test_targets_of_several_tables_are_separated_by_commas(run, tables):
    options = ["--learners", "nb ml", "--folds", "2", "--print", "json"]
    joined, repeated = (
        run("compare", *tables, "-t", "go,kind", *options),
        run("compare", *tables, "-t", "go", "-t", "kind", *options),
    )
    errors = [[row["test_error"] for row in json.loads(done.stdout)] for done in (joined, repeated)]
    assert errors[0] == errors[1]
    assert len(errors[0]) == 2


def test_tables_of_equal_names_are_called_by_their_paths(run, tables, tmp_path):
    paths = [tmp_path / name / "train.csv" for name in "ab"]
    for path, table in zip(paths, tables, strict=True):
        path.parent.mkdir()
        Path(table).rename(path)
    done = run("compare", *paths, "--learners", "nb ml", "--folds", "2", "--print", "json")
    assert [row["dataset"] for row in json.loads(done.stdout)] == list(map(str, paths))
    done = run("compare", paths[0], paths[0], "--learners", "nb ml")
    assert (done.exit_code, done.stderr) == (
        2,
        f"tanlearn: each file must be given once, but {paths[0]} is given twice. Leave one of them out.\n",
    )


def test_one_fold_is_a_third_of_the_rows(run, table):
    options = ["--target", "go", "--learners", "nb ml", "--print", "json"]
    held_out = json.loads(run("compare", table, *options, "--folds", "1").stdout)
    assert [(row["n_train"], row["n_test"]) for row in held_out] == [(40, 20)]


def test_a_finished_comparison_reports_no_parallel_times(run, table, tmp_path):
    arguments = [
        "compare",
        table,
        "--target",
        "go",
        "--learners",
        "nb ml",
        "--jobs",
        "2",
        "-o",
        str(tmp_path / "r.csv"),
    ]
    assert "folds in parallel" in run(*arguments).stdout
    again = run(*arguments).stdout
    assert "folds in parallel" not in again
    assert "Error of NB ML: 0.00 % of the test rows wrong" in again


def test_a_column_is_dropped_and_a_target_chosen_where_they_exist(run, tables):
    done = run("compare", *tables, "--learners", "nb ml", "--folds", "2", "--drop", "id", "-t", "go", "-t", "kind")
    assert done.exit_code == 0
    assert [line.split(",")[1] for line in done.stdout.splitlines()[:2]] == [" 2 features", " 3 features"]
    assert "last column" not in done.stderr


@pytest.mark.parametrize(
    ("drop", "n_features"),
    [("sky", (2, 2)), ("one:sky", (2, 3)), ("two.csv:sky,id", (2, 2)), ("one:sky,two:sky", (2, 2))],
)
def test_a_column_is_dropped_from_all_tables_or_from_one(run, tables, drop, n_features):
    drop = drop.replace("two.csv", tables[1])
    done = run("compare", *tables, "--learners", "nb ml", "--folds", "2", "--drop", drop)
    assert done.exit_code == 0
    assert [int(line.split(",")[1].split()[0]) for line in done.stdout.splitlines()[:2]] == list(n_features)


def test_a_column_with_a_colon_is_that_column(run, tables, tmp_path):
    text = (tmp_path / "one.csv").read_text().replace("id,sky", "one:sky,sky", 1)
    (tmp_path / "one.csv").write_text(text)
    done = run("compare", tables[0], "--learners", "nb ml", "--folds", "2", "--drop", "one:sky", "--target", "go")
    assert done.exit_code == 0
    assert "2 features" in done.stdout
    assert "sky" in (tmp_path / "one.csv").read_text()


@pytest.mark.parametrize("kind", ["json", "csv", "markdown"])
def test_former_formats_of_output_are_accepted_with_a_note(run, table, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    options = [table, "--target", "go", "--learners", "nb ml"]
    former, present = run("compare", *options, "--output", kind), run("compare", *options, "--print", kind)
    assert former.exit_code == 0
    assert former.stdout[:60] == present.stdout[:60]
    assert f"--output {kind} is deprecated and an error from version 0.4. Use --print {kind}." in former.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weather.csv"]


def test_a_table_is_never_taken_for_results(run, tables):
    done = run("compare", tables[0], "--learners", "nb ml", "--output", tables[1])
    assert done.exit_code == 2
    assert "two.csv must be a results file" in done.stderr.splitlines()[-1]


def test_markdown_of_several_tables_names_them(run, tables):
    done = run("compare", *tables, "--learners", "nb ml", "--folds", "3", "--print", "markdown")
    header, _, first, second = done.stdout.splitlines()
    assert header.startswith("| data set | learner |")
    assert first.startswith("| one      | NB ML   | **")
    assert second.startswith("| two      | NB ML   | **")


def test_best_learner_is_highlighted(run, table, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml")
    (row,) = (line for line in done.stdout.splitlines() if "NB ML" in line and "Error of" not in line)
    assert "\x1b[32m" in row
