"""Trainings, splits and members on joblib's other backends: models are those of threads, and rows are sent once."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
from sklearn.datasets import load_iris
from support.processes import PATIENT_DASK

from tanlearn import (
    BayesForestClassifier,
    EncodedData,
    GradientTraining,
    Hybrid,
    NaiveBayesClassifier,
    TANClassifier,
    TANSearchCV,
    pareto_search,
    size_path,
)
from tanlearn._tasks import _Packed, are_at_home, as_completed, in_order
from tanlearn._threads import number_of_threads
from tanlearn.baselines.registry import Learner
from tanlearn.comparison import compare
from tanlearn.sources.datasets import Dataset

X, Y = load_iris(return_X_y=True)
TAN = TANClassifier(loss=Hybrid(), n_epochs=4, training=GradientTraining(batch_size=30), random_state=0)
SPACE = {"training__learning_rate": [0.01, 0.05, 0.1]}


@pytest.fixture(scope="module")
def cluster():
    """Start a cluster of two processes."""
    distributed = pytest.importorskip("distributed", reason="needs tanlearn[dask]")
    import dask

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set(PATIENT_DASK),
        distributed.LocalCluster(**options) as workers,
        distributed.Client(workers),
    ):
        yield


@pytest.fixture(params=["loky", "dask"])
def elsewhere(request):
    """Return a context in which tasks go to other processes."""
    if request.param == "dask":
        request.getfixturevalue("cluster")
    return partial(joblib.parallel_config, backend=request.param, n_jobs=2)


@contextmanager
def counted(monkeypatch, kind):
    """Count how often this process pickles an object of a kind."""
    pickled, method = [], kind.__reduce_ex__
    with monkeypatch.context() as patch:
        patch.setattr(kind, "__reduce_ex__", lambda self, version: (pickled.append(1), method(self, version))[1])
        yield pickled


def outcomes(found):
    """Return all that a search has found but times."""
    return {name: np.asarray(values).tolist() for name, values in found.items() if "time" not in name}


def cells(models):
    """Return the tables of models as bytes."""
    return [(model.structure_.parents.tolist(), model.tables_.cells.tobytes()) for model in models]


def test_searches_find_the_same_and_keep_files_and_callbacks_here(elsewhere, tmp_path, monkeypatch):
    told, file = [], tmp_path / "search.jsonl"
    search = TANSearchCV(TAN, SPACE, n_iter=3, cv=2, random_state=0, n_jobs=2)
    expected = search.fit(X, Y)
    found = TANSearchCV(TAN, SPACE, n_iter=3, cv=2, random_state=0, checkpoint=file, callback=told.append)
    with elsewhere(), counted(monkeypatch, EncodedData) as pickled:
        found.fit(X, Y)
    assert len(pickled) == found.n_splits_ == 2
    assert outcomes(found.cv_results_) == outcomes(expected.cv_results_)
    assert cells([found.best_estimator_]) == cells([expected.best_estimator_])
    assert len(told) == 6
    assert len([json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]) == 1 + 6


def test_an_interrupt_leaves_what_is_finished_to_go_on_from(cluster, tmp_path):
    def interrupt(result):
        raise KeyboardInterrupt

    search = TANSearchCV(TAN, SPACE, n_iter=3, cv=2, random_state=0, refit=False, checkpoint=tmp_path / "search.jsonl")
    with joblib.parallel_config(backend="dask"), pytest.raises(KeyboardInterrupt):
        search.set_params(callback=interrupt).fit(X, Y)
    assert len((tmp_path / "search.jsonl").read_text(encoding="utf-8").splitlines()) == 1 + 1
    told = []
    search.set_params(callback=told.append).fit(X, Y)
    assert len(told) == 5
    assert outcomes(search.cv_results_) == outcomes(search.set_params(checkpoint=None).fit(X, Y).cv_results_)


def test_paths_and_fronts_are_those_of_threads(elsewhere):
    def sizes():
        path = size_path(TAN, X, Y, [0, 0.1], random_states=[0, 1])
        front = pareto_search(TAN, X, Y, bits=[None, 3], size_weight=[0.0])
        return path + front.estimators

    expected = sizes()
    with elsewhere():
        found = sizes()
    assert len(found) > 4
    assert cells(found) == cells(expected)


@pytest.mark.parametrize("weights", ["auto", None])
def test_forests_are_those_of_threads(elsewhere, weights):
    forest = BayesForestClassifier(n_estimators=3, weights=weights, random_state=0)
    expected = forest.fit(X, Y).predict_proba(X)
    with elsewhere():
        assert forest.fit(X, Y).predict_proba(X).tobytes() == expected.tobytes()


class Failing(NaiveBayesClassifier):
    """A classifier that learns nothing."""

    def fit(self, X, y, sample_weight=None):
        raise KeyError("nothing")


def entry(kind):
    """Return a learner of one's own."""
    return Learner("own", "its own", "nobody", lambda random_state, n_epochs, n_jobs, encoder: kind())


def measures(comparison):
    """Return all that was measured but times."""
    return [replace(cell, fit_seconds=None, predict_seconds=None) for cell in comparison.cells]


@pytest.mark.filterwarnings("ignore:4 of 12 cells failed:sklearn.exceptions.FitFailedWarning")
def test_comparisons_measure_the_same_and_tell_here(elsewhere, monkeypatch, tmp_path):
    tables = [Dataset("iris", X, Y, list("abcd")), Dataset("half", X[::2], Y[::2], list("abcd"))]
    learners = ["NB ML", entry(Failing), "TAN-CMI ML"]
    expected = compare(tables, learners, n_folds=2)
    told, shares = [], []
    with elsewhere(), counted(monkeypatch, Dataset) as pickled:
        found = compare(tables, learners, n_folds=2, finished=told.append, progress=shares.append)
    assert len(pickled) == 2
    assert measures(found) == measures(expected)
    assert {cell.failure for cell in found.cells if cell.learner == "own"} == {"KeyError: 'nothing'"}
    assert sorted(told, key=found.cells.index) == list(found.cells)
    assert {(p.dataset, p.learner) for p in shares if p.share == 1.0} == {(c.dataset, c.learner) for c in told}


def test_after_the_time_limit_other_processes_begin_nothing(elsewhere):
    with elsewhere():
        found = compare(Dataset("iris", X, Y, list("abcd")), ["NB ML", "TAN-CMI ML"], time_limit=1e-9)
    assert found.cells == ()


def fail(rows, number):
    """Fail on one of several tasks."""
    if number == 1:
        raise KeyError(number)
    return len(rows)


def test_errors_come_back(cluster):  # of loky's processes, too, but joblib would end them: seconds of imports
    with joblib.parallel_config(backend="dask"), pytest.raises(KeyError, match="1"):
        in_order(fail, [(X, (number,)) for number in range(3)])


def test_what_cannot_be_sent_is_named_before_anything_is(elsewhere):
    lock = threading.Lock()
    search = TANSearchCV(
        TANClassifier(training=GradientTraining(callback=lambda report: lock.locked())), SPACE, n_iter=2, random_state=0
    )
    with elsewhere(), pytest.raises(TypeError, match=r"cannot be sent to another process: .*lock.*Remove callbacks"):
        search.fit(X, Y)


class AtOnce(ThreadingBackend):
    """A backend as Ray's: of other processes, one would think, and with no result before all are there."""

    supports_sharedmem = supports_return_generator = False


def test_backends_that_tell_results_at_the_end_do_their_work():
    with joblib.parallel_config(backend=AtOnce(), n_jobs=2):
        assert not are_at_home()
        assert in_order(fail, [(X, (number,)) for number in (0, 2, 3)]) == [150] * 3
        with pytest.raises(KeyError, match="1"):
            in_order(fail, [(X, (number,)) for number in range(3)])
        assert in_order(fail, []) == []


def look(rows, own):
    """Return the file that rows are mapped from, if any, whether kernels can take them, and threads of a task."""
    base = rows
    while isinstance(base.base, np.ndarray):
        base = base.base
    rows[own] = 1  # seen by nobody else
    return getattr(base, "filename", None), rows.flags.writeable and rows.flags.aligned, number_of_threads(None)


@pytest.mark.parametrize("size", [7, 1001, 2**18])  # Dask places the small ones astride of words
def test_rows_are_sent_once_and_can_be_written_to(elsewhere, size, monkeypatch):
    rows = np.zeros(size)
    with elsewhere(), counted(monkeypatch, _Packed) as pickled:
        files, fit, n_threads = map(set, zip(*in_order(look, [(rows, (own,)) for own in range(4)]), strict=True))
    assert (fit, n_threads) == ({True}, {1})
    assert not rows.any()
    assert len(files) == 1
    if elsewhere.keywords["backend"] == "dask":
        assert len(pickled) == 1
    else:  # processes map one file, if the rows are worth one
        assert (files == {None}) == (size < 2**17)


def test_those_who_are_at_home_share_memory():
    assert are_at_home()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert are_at_home()
        assert (
            in_order(lambda rows, own: (rows is X, os.getpid()), [(X, (own,)) for own in range(3)])
            == [(True, os.getpid())] * 3
        )


def wait(folder, number):
    """Leave a file and, unless this is the first task, wait for another one, or for the end of the test."""
    (folder / str(number)).touch()
    while number and folder.exists() and not (folder / "go").exists():
        time.sleep(0.01)


# A thread of loky's may look for a task that joblib has taken back (KeyError in add_call_item_to_queue), and ends then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_stops_listening_cancels_what_has_not_begun(elsewhere, tmp_path):
    with elsewhere():
        with closing(as_completed(wait, [(tmp_path, (number,)) for number in range(12)])) as found:
            assert next(found) == (0, None)
        (tmp_path / "go").touch()
        if elsewhere.keywords["backend"] == "dask":  # loky has ended its processes
            in_order(fail, [(X, (number,)) for number in (0, 2, 3, 4)])  # behind all that is still waiting
    assert len(list(tmp_path.iterdir())) < 8


def test_no_threads_at_all_is_refused():
    with pytest.raises(
        ValueError, match=r"^n_jobs must be a positive number of threads, or -1 for all cores, got 0\.$"
    ):
        number_of_threads(0)
    with pytest.raises(ValueError, match=r"^n_jobs must be"):
        NaiveBayesClassifier(n_jobs=0).fit([[0.5], [1.5]], [0, 1])
