"""The command line: what goes to which stream, exit codes, and errors in one line."""

import csv
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import tanlearn
from tanlearn import cli
from tanlearn.baselines import LEARNERS
from tanlearn.comparison import HEADERS

testing = pytest.importorskip("typer.testing", reason="the command line needs the extra `cli`")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Keep Rich from wrapping, and from what a developer's or a server's environment may force."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


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


def run(*arguments):
    """Return what a command printed, and its exit code."""
    return testing.CliRunner().invoke(cli.build_app(), list(arguments))


def plain(text):
    """Return a text without colours, which Typer gives its own messages on some build servers."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_help_comes_without_arguments_and_names_the_command():
    assert "compare" in run().output
    assert "--learners" in plain(run("compare", "--help").output)


def test_version():
    done = run("--version")
    assert (done.exit_code, done.stdout) == (0, f"tanlearn {tanlearn.__version__}\n")


def test_list_has_every_learner():
    done = run("compare", "--list")
    assert done.exit_code == 0
    for name, learner in LEARNERS.items():
        assert name in done.stdout
        assert learner.description in done.stdout


def test_default_learners_are_in_the_registry():
    assert set(cli.DEFAULT_LEARNERS) <= set(LEARNERS)


def test_default_is_the_digits_with_the_default_learners(monkeypatch):
    asked = {}

    def fake(dataset, learners, **options):
        asked.update(options, dataset=dataset.name, learners=[learner.name for learner in learners])
        raise ValueError("enough")

    monkeypatch.setattr(cli, "compare", fake)
    assert run("compare").exit_code == 2
    asked.pop("progress")
    assert asked == {
        "dataset": "digits",
        "learners": list(cli.DEFAULT_LEARNERS),
        "n_folds": None,
        "random_state": 0,
        "n_epochs": None,
        "n_jobs": None,
    }
    run("compare", "--folds", "4", "--seed", "3", "--epochs", "6", "--jobs", "2", "--learners", "all")
    assert (asked["n_folds"], asked["random_state"], asked["n_epochs"], asked["n_jobs"]) == (4, 3, 6, 2)
    assert asked["learners"] == list(LEARNERS)


def test_table_has_a_title_headers_with_units_and_a_caption(table):
    done = run("compare", "--data", table, "--target", "go", "--learners", "NB ML,TAN Subset HYB", "--epochs", "2")
    assert done.exit_code == 0
    title, *lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert title == "weather: 60 rows, 1 features, 2 classes"
    assert all(header in lines[0] for header in HEADERS)
    assert lines[2].split()[:3] == ["NB", "ML", "0.00"]
    assert lines[3].startswith("TAN Subset HYB")
    assert lines[-1].startswith("Best: NB ML")
    assert lines[-1].endswith("0.00 % of 20 held-out rows wrong (standard error 0.00), trained on 40.")
    assert done.stderr.splitlines() == ["[1/2] NB ML ...", "[2/2] TAN Subset HYB ..."]


@pytest.mark.parametrize("kind", ["json", "csv", "markdown"])
def test_other_outputs_are_clean(table, kind):
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml", "--output", kind)
    assert done.exit_code == 0
    rows = {
        "json": json.loads,
        "csv": lambda text: list(csv.DictReader(text.splitlines())),
        "markdown": lambda text: [{"learner": line.split(" | ")[0][2:]} for line in text.splitlines()[2:]],
    }[kind](done.stdout)
    assert [row["learner"] for row in rows] == ["NB ML"]


def test_learners_may_be_repeated_and_count_once(table):
    options = ["--learners", "nb ml, tan-cmi ml", "--learners", "NB ML", "--output", "json"]
    done = run("compare", "--data", table, "--target", "go", *options)
    assert [row["learner"] for row in json.loads(done.stdout)] == ["NB ML", "TAN-CMI ML"]


def test_folds_show_their_spread(table):
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml", "--folds", "3")
    assert "0.00 +- 0.00" in done.stdout
    assert "mean of 3 folds" in done.stdout


def test_failure_of_one_learner_is_told_and_forgiven(gaps):
    done = run("compare", "--data", gaps, "--learners", "NB ML,TAN-CR ML", "--epochs", "2")
    assert done.exit_code == 0
    assert "failed" in done.stdout
    assert "TAN-CR ML failed: A wrapper search learns from complete rows only" in done.stderr


@pytest.mark.parametrize("kind", ["table", "json"])
def test_failure_of_all_learners_is_an_exit_code(gaps, kind):
    done = run("compare", "--data", gaps, "--learners", "TAN-CR ML", "--epochs", "2", "--output", kind)
    assert done.exit_code == 1
    assert ("No learner succeeded." in done.stdout) == (kind == "table")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learners", "NB MM"], "tanlearn: there is no learner 'NB MM'. Did you mean 'NB ML'?"),
        (["--learners", ","], "tanlearn: there is nothing to compare: name at least one learner."),
        (["--data", "absent.npz"], "tanlearn: there is no file absent.npz."),
        (["--data", "digits.xls"], "tanlearn: data must be 'digits', 'openml:NAME', or a file"),
        (["--target", "go"], "tanlearn: target ('go') names a column of a table"),
    ],
)
def test_error_of_the_user_is_one_line(arguments, message):
    done = run("compare", *arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(message)


def test_target_that_is_no_column_is_one_line(table):
    done = run("compare", "--data", table, "--target", "walk")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"tanlearn: {table}: there is no column 'walk'. The columns are: sky, go.\n"


@pytest.mark.parametrize("arguments", [["--folds", "1"], ["--epochs", "0"], ["--output", "xml"], ["--seed", "x"]])
def test_option_out_of_range_is_refused(arguments):
    done = run("compare", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert arguments[0] in plain(done.stderr)


def test_terminal_gets_bars_that_vanish(table, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes the stream for a terminal then
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml", "--output", "json")
    assert "[1/1] NB ML" in done.stderr
    assert "100%" in done.stderr
    assert "..." not in done.stderr
    assert [row["learner"] for row in json.loads(done.stdout)] == ["NB ML"]


def test_best_learner_is_highlighted(table, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = run("compare", "--data", table, "--target", "go", "--learners", "nb ml")
    (row,) = (line for line in done.stdout.splitlines() if "NB ML" in line and "Best" not in line)
    assert "\x1b[1;32m" in row


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_one_line_names_it(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == (
        f'tanlearn: the command line needs {package}. Install it with: pip install "tanlearn[cli]"'
    )


def test_the_installed_entry_point_runs():
    command = [sys.executable, "-c", "from tanlearn.cli import main; main()", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"tanlearn {tanlearn.__version__}\n", "")
