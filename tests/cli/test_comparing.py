"""``tanlearn compare``: rows as they finish, what goes to which stream, and exit codes."""

import csv
import json

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
        (1_000_000, DEFAULT_LEARNERS, "TAN Subset HYB"),
        (10_000_000, DEFAULT_LEARNERS[:3], "TAN-CMI CG-CL"),
        (10_000_001, DEFAULT_LEARNERS[:2], "TAN-CMI ML"),
    ],
)
def test_large_tables_have_quick_defaults(n_numbers, learners, fits):
    assert [learner.name for learner in find_learners([], n_numbers)] == list(learners)
    assert default_learner(n_numbers).name == fits


def test_default_learners_that_are_left_out_are_named(run, table, monkeypatch):
    monkeypatch.setattr("tanlearn.cli.learners._MOST_NUMBERS", {2: 10, 4: 10})
    done = run("compare", table, "--target", "go", "--print", "json")
    assert [row["learner"] for row in json.loads(done.stdout)] == ["NB ML", "TAN-CMI ML"]
    assert "left out, because 60 numbers take long: TAN-CMI CG-CL, TAN Subset HYB, TAN Order-free" in done.stderr


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
        "markdown": lambda text: [{"learner": line.split(" | ")[0][2:]} for line in text.splitlines()[2:]],
    }[kind](done.stdout)
    assert [row["learner"] for row in rows] == ["NB ML"]


def test_learners_may_be_repeated_and_count_once(run, table):
    options = ["--learners", "nb ml, tan-cmi ml", "--learners", "NB ML", "--print", "json"]
    done = run("compare", "--data", table, "--target", "go", *options)
    assert [row["learner"] for row in json.loads(done.stdout)] == ["NB ML", "TAN-CMI ML"]


def test_folds_show_their_spread(run, table):
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml", "--folds", "3")
    assert "0.00 +- 0.00" in done.stdout
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
        (["--learners", ","], "tanlearn: there is nothing to compare: name at least one learner."),
        (["--data", "absent.npz"], "tanlearn: there is no file absent.npz."),
        (["--data", "digit"], "tanlearn: there is no file digit. Did you mean 'digits'?"),
        (["a.csv", "--data", "b.csv"], "tanlearn: the table is a.csv or --data b.csv, but not both."),
        (["--target", "go"], "tanlearn: target ('go') names a column of a table"),
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


@pytest.mark.parametrize("arguments", [["--folds", "1"], ["--epochs", "0"], ["--output", "xml"], ["--seed", "x"]])
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


def test_best_learner_is_highlighted(run, table, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml")
    (row,) = (line for line in done.stdout.splitlines() if "NB ML" in line and "Lowest" not in line)
    assert "\x1b[32m" in row
