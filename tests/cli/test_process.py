"""The command as a process of its own: help, the extra, signals and pipes."""

import csv
import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")

from support import processes
from support.command_line import COMMAND, interrupt, plain

import tanlearn
from tanlearn import NaiveBayesClassifier, cli
from tanlearn.cli import predicting

COMMANDS = ["fit", "predict", "explain", "describe", "export-c", "compare", "report", "counts", "merge"]


@pytest.fixture
def slow(tmp_path):
    """Return the path of a table on which a training of a million epochs takes longer than any test."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 4))
    path = tmp_path / "slow.csv"
    np.savetxt(path, np.column_stack([X, X[:, 0] > 0]), fmt="%d", delimiter=",", header="a,b,c,d,y", comments="")
    return path


def save_model(table):
    """Write naive Bayes of a table beside it."""
    X = pd.read_csv(table)
    NaiveBayesClassifier().fit(X.drop(columns="y"), X["y"]).save(table.parent / "m.tan")


def test_help_comes_without_arguments_and_names_the_commands(run):
    text = plain(run().output)
    assert all(name in text for name in COMMANDS)
    for name in COMMANDS:
        assert run(name, "--help").exit_code == 0
    assert "--time-limit" in plain(run("compare", "--help").output)


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_one_line_names_it(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == (
        f'tanlearn: the command line needs {package}. Install it with: pip install "tanlearn[cli]"'
    )


def test_the_installed_entry_point_runs():
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"tanlearn {tanlearn.__version__}\n", "")


def test_ctrl_c_leaves_a_table_of_what_is_done(slow):
    names = ["--learners", "NB ML,TAN Subset HYB,TAN All HYB", "--epochs", "1000000"]
    options = ["compare", "--data", slow.name, "--target", "y", "--folds", "2", *names]
    code, out, err = interrupt(options, "[2/3] TAN Subset HYB ...", slow.parent)
    assert code == 130
    assert "Error of NB ML: " in out
    assert "significantly" not in out  # there is no other learner
    assert not [line for line in out.splitlines() if line.startswith("TAN ")]
    assert err.splitlines()[-1] == "tanlearn: interrupted; not done: TAN Subset HYB, TAN All HYB."


@pytest.mark.parametrize(
    ("kind", "read"), [("json", json.loads), ("csv", lambda text: list(csv.DictReader(text.split("\n"))))]
)
def test_ctrl_c_leaves_whole_results_for_programs(slow, kind, read):
    names = ["--learners", "NB ML,TAN Subset HYB", "--epochs", "1000000", "--print", kind]
    code, out, _ = interrupt(["compare", slow.name, "--target", "y", *names], "[2/2] TAN Subset HYB ...", slow.parent)
    assert code == 130
    assert [row["learner"] for row in read(out)] == ["NB ML"]


def test_ctrl_c_in_a_fit_writes_nothing(slow):
    # A note tells when the table is read, and the training about to begin.
    rows = slow.read_text().splitlines()
    slow.write_text("\n".join([rows[0], *rows[1:], "1,1,1,1,"]))
    options = ["fit", slow.name, "-t", "y", "-o", "m.tan", "-l", "tan subset hyb", "--set", "n_epochs=1000000"]
    code, out, err = interrupt(options, "no 'y' and is left out", slow.parent)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "tanlearn: interrupted, nothing was written."
    assert not (slow.parent / "m.tan").exists()


@pytest.mark.parametrize("arguments", [["--version"], ["compare", "--list"], ["describe", "m.tan"]])
def test_nobody_reads_what_is_printed(slow, arguments):
    """Whoever prints it, Typer or Rich."""
    save_model(slow)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, *arguments], cwd=slow.parent, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="streams are closed by a shell")
@pytest.mark.parametrize(("stream", "message"), [("<&-", "standard input is"), (">&-", "standard output is")])
def test_closed_streams_are_one_line(slow, stream, message):
    save_model(slow)
    command = f"{shlex.join([*COMMAND, 'predict', 'm.tan', '-' if '<' in stream else slow.name])} {stream}"
    done = subprocess.run(command, cwd=slow.parent, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"tanlearn: {message}")
    assert len(done.stderr.splitlines()) == 1


def test_documents_may_stand_in_fields(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + f"{'u' * 200_000},a\nv,b\n" * 2)
    command = [*COMMAND, "fit", "t.csv", "-t", "y", "-l", "nb ml", "-o", "m.tan"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_what_nobody_has_foreseen_is_one_line_that_says_how_to_see_more(run, model, shop, monkeypatch):
    monkeypatch.setattr(predicting, "write_table", lambda *_, **__: {}["absent"])
    done = run("predict", model, shop)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        "tanlearn: unexpected KeyError: 'absent'. Set TANLEARN_TRACEBACK=1 to see the traceback."
    )
    monkeypatch.setenv("TANLEARN_TRACEBACK", "1")
    assert isinstance(run("predict", model, shop).exception, KeyError)


def test_ctrl_c_before_a_command_begins(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("csv.field_size_limit", lambda _: None)  # of a process: other tests count on its own
    monkeypatch.setattr("tanlearn.cli.app.build_app", interrupted)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert (caught.value.code, capsys.readouterr().err) == (130, "tanlearn: interrupted, nothing was written.\n")


def test_nobody_reads_on(slow):
    """As head does: the reader goes before the output comes, and nothing is said of it."""
    save_model(slow)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [*COMMAND, "predict", "m.tan", "-"]
    with processes.started(command, cwd=slow.parent, text=True, **pipes) as process:
        process.stdout.close()
        process.stdin.write(slow.read_text())
        process.stdin.close()
        err = process.stderr.read()
        code = process.wait()
    assert (code, err) == (141, "tanlearn: not used: y.\n")
