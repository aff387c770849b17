"""Comparisons in processes that are ended at a time limit."""

import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from support import processes
from support.difficult_learners import Ending, Endless, EndlessAlways, EndlessWarmUp

from tanlearn import NaiveBayesClassifier
from tanlearn.baselines import Learner
from tanlearn.comparison import compare, workers

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")

X, Y = load_iris(return_X_y=True)
#: A limit that no cell of these tests reaches.
LONG = float(processes.HANG)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_compiled_code_is_interrupted_and_the_process_replaced(n_jobs):
    found = compare("iris", {"endless": Endless()}, n_folds=2, cell_time_limit=0.2, n_jobs=n_jobs)
    assert [cell.failure for cell in found.cells] == ["took longer than the limit of 0.2 s"] * 2
    assert [cell.error for cell in found.cells] == [None, None]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_warm_up_that_takes_too_long_is_left_out(monkeypatch, n_jobs):
    """The limits of warm-ups end only this one if they are long, and all of them, without other results, if short."""
    monkeypatch.setattr(workers, "COMPILATION", 0.2)
    monkeypatch.setattr(workers, "WARM_UP", 0.2)
    learners = {"slow": EndlessWarmUp(), "nb": "NB ML"}
    found = compare(["iris", "wine"], learners, n_folds=2, cell_time_limit=LONG, n_jobs=n_jobs)
    assert found.failures == []
    assert [cell.error for cell in found.cells if cell.learner == "slow"] == [
        cell.error for cell in found.cells if cell.learner == "nb"
    ]
    (cell, _) = compare("iris", {"endless": EndlessAlways()}, n_folds=2, cell_time_limit=0.2).cells
    assert cell.failure == "took longer than the limit of 0.2 s"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_are_those_of_this_process(n_jobs, capfd):
    learners = {"ending": Ending(), "nb": "NB ML", "tan": "TAN Subset HYB"}
    options = {"n_folds": 2, "n_epochs": 2}
    found = compare(["iris", "wine"], learners, **options, cell_time_limit=LONG, n_jobs=n_jobs)
    failures = {(cell.learner, cell.failure) for cell in found.failures}
    assert failures == {("ending", "its process ended with exit code 3")}
    expected = compare(["iris", "wine"], {name: learners[name] for name in ("nb", "tan")}, **options)
    assert [replace(cell, fit_seconds=0, predict_seconds=0) for cell in found.cells if cell.failure is None] == [
        replace(cell, fit_seconds=0, predict_seconds=0) for cell in expected.cells
    ]
    assert capfd.readouterr().out == ""


def test_warnings_come_back_once():
    table = X.copy()
    table[:, 0] = np.random.default_rng(0).normal(size=len(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare((table, Y), ["NB ML", "TAN-CMI ML"], n_folds=2, cell_time_limit=LONG)
    words = "data (repeat 1, fold 1): discretization left a single interval in 1 column(s)"
    assert [str(one.message)[: len(words)] for one in caught] == [words]


def test_the_program_of_the_user_is_not_imported(tmp_path):
    program = tmp_path / "program.py"  # without a guard, and with a learner of its own
    program.write_text(
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from tanlearn import NaiveBayesClassifier\n"
        "from tanlearn.comparison import compare\n"
        "class Own(NaiveBayesClassifier):\n    pass\n"
        "print(len(compare('iris', Own(), n_folds=2, cell_time_limit=3600).failures))\n"
    )
    done = processes.run([sys.executable, str(program)])
    assert (done.stdout, done.stderr, done.returncode) == ("0\n", "", 0)


def test_an_interrupt_ends_all_processes(monkeypatch):
    started = []
    real = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *own, **options: started.append(real(*own, **options)) or started[-1]
    )

    def interrupt(cell):
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    learners = {"nb": NaiveBayesClassifier(), "endless": Endless()}
    with pytest.raises(KeyboardInterrupt):
        compare("iris", learners, n_folds=2, cell_time_limit=LONG, n_jobs=2, finished=interrupt)
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)
    assert set(threading.enumerate()) <= before


def test_what_cannot_be_sent_is_refused():
    lock = threading.Lock()
    learner = Learner("own", "", "", lambda *arguments: lock and NaiveBayesClassifier())
    with pytest.raises(
        TypeError, match=r"a task cannot be sent to another process: .*lock.*if cell_time_limit is set, because cells"
    ):
        compare("iris", learner, cell_time_limit=LONG)


def test_after_the_deadline_no_cell_begins():
    assert compare("iris", "NB ML", cell_time_limit=LONG, time_limit=1e-9).cells == ()


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_limit_is_above_zero(limit):
    with pytest.raises(ValueError, match="cell_time_limit must be a number of seconds above 0"):
        compare("iris", "NB ML", cell_time_limit=limit)
