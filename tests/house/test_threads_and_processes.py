"""Fits inside other people's threads and processes: none crashes, none differs from a serial one, none starts threads
that nobody asked for.

The file is also the program of the processes: ``python test_threads_and_processes.py workqueue`` prints digests of
fits beside that threading layer of Numba.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import joblib
import numba
import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.parallel import ParallelBackendBase
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from support import processes

import tanlearn.baselines
from tanlearn import (
    BayesNetClassifier,
    ConjugateGradient,
    CrossTuned,
    ExpectationMaximization,
    GradientTraining,
    NaiveBayesClassifier,
    TANClassifier,
)
from tanlearn._threads import in_blocks, in_threads, number_of_threads
from tanlearn.baselines import (
    AnDEClassifier,
    AODEClassifier,
    ChowLiu,
    GreedySearch,
    KDependence,
    OrderSearch,
    SimulatedAnnealing,
    SuperParent,
)

CLASSIFIERS = {
    "naive Bayes": NaiveBayesClassifier(),
    "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
    "order search": BayesNetClassifier(structure=OrderSearch()),
    "gradient TAN": TANClassifier(
        candidates="order-free", n_epochs=3, training=GradientTraining(batch_size=50), random_state=0
    ),
    "AODE": AODEClassifier(),
    "A2DE": AnDEClassifier(),
}
#: Others that share work between threads; the last two learn from rows with gaps.
OTHERS = {
    "greedy search": BayesNetClassifier(structure=GreedySearch()),
    "super-parent": BayesNetClassifier(structure=SuperParent()),
    "annealing": BayesNetClassifier(structure=SimulatedAnnealing(n_steps=50, n_chains=3), random_state=0),
    "cross-tuned": NaiveBayesClassifier(
        parameters=CrossTuned(learner=ConjugateGradient(max_iter=2), cv=3), random_state=0
    ),
    "gaps, completed": BayesNetClassifier(structure=ChowLiu(), parameters=ExpectationMaximization(max_iter=3)),
    "gaps, summed out": BayesNetClassifier(structure=KDependence(k=2), parameters=ConjugateGradient(max_iter=2)),
}
# From here on work is shared between threads; lowered, so that small tables are.
LIMITS = (
    ("models.upward_pass", "_BLOCK", 16),
    ("models.elimination", "_BLOCK", 16),
    ("baselines.aode", "_BLOCK", 16),
    ("counts.packing", "_WORTH_A_THREAD", 1),
    ("training.engines", "SHARED_ROWS", 10),
)
BACKENDS = ("loky", "threading")


def table():
    """Return categories, a continuous column, their classes, and the rows with gaps."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 6)).astype(object)
    y = np.where((X[:, 0] + X[:, 1] + (rng.random(200) < 0.2)) % 2, "yes", "no")
    X[:, 5] = rng.normal(size=200) + 2 * (y == "yes")
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.2] = None
    return X, y, gaps


def threaded(name, n_jobs):
    """Return a classifier with this ``n_jobs`` wherever it takes one."""
    classifier = clone({**CLASSIFIERS, **OTHERS}[name])
    return classifier.set_params(**{p: n_jobs for p in classifier.get_params() if p.split("__")[-1] == "n_jobs"})


def digest(name, n_jobs=None):
    """Fit one classifier and return a digest of its probabilities, for complete rows and for rows with gaps."""
    X, y, gaps = table()
    model = threaded(name, n_jobs).fit(gaps if "gaps" in name else X, y)
    return hashlib.sha256(model.predict_proba(X).tobytes() + model.predict_proba(gaps).tobytes()).hexdigest()


def threads_started(name, n_jobs):
    """Return how many threads one classifier starts from fit to prediction."""
    with mock.patch.object(threading.Thread, "start", autospec=True, side_effect=threading.Thread.start) as start:
        digest(name, n_jobs)
    return start.call_count


def in_worker(function, *arguments):
    """Return what a function returns in one of two workers of joblib."""
    return Parallel(n_jobs=2)([delayed(function)(*arguments)])[0]


def searches(**options):
    """Return the scores and the digest of the winner of scikit-learn's searches, for every classifier."""
    X, y, gaps = table()
    found = {}
    for name, classifier in CLASSIFIERS.items():
        search = GridSearchCV(classifier, {"class_weight": [None, "balanced"]}, cv=2, error_score="raise", **options)
        scores = cross_val_score(classifier, X, y, cv=2, error_score="raise", **options).tolist()
        probabilities = search.fit(X, y).predict_proba(gaps)
        scores += search.cv_results_["mean_test_score"].tolist()
        found[name] = scores, hashlib.sha256(probabilities.tobytes()).hexdigest()
    return found


def many_at_once():
    """Return the digests of every classifier fitted four times, eight fits at a time."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(digest, [*CLASSIFIERS] * 4))


def child_digests(method):
    """Return the digests of all classifiers fitted in a child process that was started by this method."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        return list(pool.map(digest, CLASSIFIERS))


def layer_program():
    """Fit before and after a threading layer of Numba runs, and in children of a process that it runs in."""
    found = {"threads": many_at_once()}
    try:
        found["started by fits"] = numba.threading_layer()
    except ValueError:  # so does Numba say that no layer runs
        found["started by fits"] = None
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)  # starts it, as a parallel function of the user's would
    found["layer"] = numba.threading_layer()
    return {**found, "beside": many_at_once(), "fork": child_digests("fork")}


def joblib_program():
    """Search with joblib's workers, and count the threads of fits inside of workers."""
    found = {"serial": searches(n_jobs=1), "spawn": child_digests("spawn")}
    for backend in BACKENDS:
        with joblib.parallel_config(backend=backend):
            found[backend] = searches(n_jobs=2)
            found[f"{backend}, threads"] = [in_worker(threads_started, name, None) for name in CLASSIFIERS]
            found[f"{backend}, nested"] = [in_worker(in_worker, threads_started, name, 2) for name in CLASSIFIERS]
    return found


def program(name, **environment):
    """Return what this file prints as a program."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    done = processes.run([sys.executable, __file__, name], env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def expected():
    """Return the digests of serial fits."""
    return [digest(name) for name in CLASSIFIERS]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here")
@pytest.mark.parametrize(("layer", "module"), [("workqueue", "workqueue"), ("omp", "omppool"), ("tbb", "tbbpool")])
def test_fits_start_no_threading_layer_and_run_beside_one(layer, module, expected):
    reason = f"Numba's threading layer {layer} cannot be loaded here"
    pytest.importorskip(f"numba.np.ufunc.{module}", reason=reason, exc_type=ImportError)
    found = program("layer", NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2")
    assert found["started by fits"] is None
    assert found["layer"] == layer
    assert found["threads"] == found["beside"] == expected * 4
    assert found["fork"] == expected


def test_workers_of_joblib_find_the_same_and_start_no_threads_of_their_own(expected):
    found = program("joblib")
    assert found["spawn"] == expected
    for backend in BACKENDS:
        assert found[backend] == found["serial"]
        assert found[f"{backend}, threads"] == [0] * len(CLASSIFIERS)
        assert found[f"{backend}, nested"] == [0] * len(CLASSIFIERS)  # joblib's third level is serial


@pytest.mark.parametrize("name", [*CLASSIFIERS, *OTHERS])
def test_threads_start_where_they_are_asked_for_and_change_nothing(name, monkeypatch):
    for module, limit, value in LIMITS:
        monkeypatch.setattr(f"tanlearn.{module}.{limit}", value)
    one, two, three = (digest(name, n_jobs) for n_jobs in (1, 2, 3))
    assert one == two == three
    assert threads_started(name, 1) == 0 < threads_started(name, 2)


class Processes(ParallelBackendBase):
    """A backend without shared memory, which must not be asked for workers."""

    def effective_n_jobs(self, n_jobs):
        return n_jobs

    def configure(self, *arguments, **options):
        raise AssertionError("processes fill copies of the arrays that threads share")


@pytest.mark.parametrize("name", [*CLASSIFIERS, *OTHERS])
def test_threads_stay_threads_where_joblib_is_told_to_use_processes(name, monkeypatch):
    for module, limit, value in LIMITS:
        monkeypatch.setattr(f"tanlearn.{module}.{limit}", value)
    one = digest(name, 1)
    for settings in (
        {"backend": Processes()},
        {"backend": Processes(), "prefer": "processes"},
        {"backend": "loky", "prefer": "processes"},
        {"prefer": "processes"},
    ):
        with joblib.parallel_config(**settings, n_jobs=2):
            assert digest(name, 2) == one


def test_all_that_is_done_in_parallel_shares_memory_but_independent_tasks():
    """Processes would fill copies of the arrays that threads share."""
    folders = [Path(package.__path__[0]) for package in (tanlearn, tanlearn.baselines)]
    sources = {path.name: path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")}
    assert len(sources) > 80
    assert any("ThreadPoolExecutor(" in text for text in sources.values())
    pattern = r"\b(?:Parallel|Process|ProcessPoolExecutor)\(.*"
    starts = {name: re.findall(pattern, text) for name, text in sources.items()}
    assert {name: calls for name, calls in starts.items() if calls} == {
        "_tasks.py": [
            'Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as, pre_dispatch="n_jobs", mmap_mode="c")'
        ],
    }


def test_threads_within_threads_are_as_many_as_those_of_joblib():
    def count(n_jobs):
        """Return how many threads there may be, here and two levels below."""
        below = [in_threads(lambda _: in_threads(number_of_threads, [n_jobs] * 2, n_jobs), range(2), n_jobs)]
        return number_of_threads(n_jobs), below

    def count_with_joblib(n_jobs):
        """Return the same of joblib's own threads."""
        inner = delayed(lambda: Parallel(n_jobs, require="sharedmem")([delayed(number_of_threads)(n_jobs)] * 2))
        return number_of_threads(n_jobs), [Parallel(n_jobs, require="sharedmem")([inner()] * 2)]

    assert count(3) == count_with_joblib(3) == (3, [[[1, 1]] * 2])
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert count(None) == count_with_joblib(None)


def test_results_come_in_the_order_of_the_items_whatever_ends_first():
    last_began = threading.Event()

    def wait(item):
        """Let the first item wait for the last one."""
        last_began.set() if item == 2 else processes.await_event(last_began)
        return item

    assert in_threads(wait, iter(range(3)), 3) == [0, 1, 2]


@pytest.mark.parametrize(("n_items", "n_jobs"), [(0, 2), (1, 2), (5, None), (5, 1)])
def test_nobody_is_asked_for_threads_that_one_does_without(n_items, n_jobs, monkeypatch):
    monkeypatch.delattr("tanlearn._threads.ThreadPoolExecutor")
    assert in_threads(str, range(n_items), n_jobs) == [*map(str, range(n_items))]
    in_blocks(lambda first, last: None, n_items, max(1, n_items if n_jobs == 2 else 1), n_jobs)


def test_after_an_error_nobody_begins_another_block():
    begun, has_failed, threads = [], threading.Event(), set()

    def work(first, last):
        begun.append(first)
        threads.add(threading.current_thread())
        if first == 0:
            raise KeyError(first)
        processes.await_event(has_failed)

    with pytest.raises(KeyError):
        in_blocks(work, 10_000, 1, 2)
    has_failed.set()
    for thread in threads:
        processes.await_end(thread)
    assert len(begun) < 4


@pytest.mark.parametrize("name", [*CLASSIFIERS, *OTHERS])
def test_workers_of_a_pool_take_threads_without_a_warning(name, monkeypatch):
    """They may start no processes, of which joblib warns whoever asks how many jobs there are."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.warns(UserWarning, match="setting n_jobs=1"):
        assert joblib.effective_n_jobs(2) == 1
    assert digest(name, 2) == digest(name, 1)
    assert number_of_threads(2) == 2


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, 9])
@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 11, 12])
def test_blocks_are_those_of_one_thread(n_rows, n_jobs):
    blocks = []
    in_blocks(lambda *block: blocks.append(block), n_rows, 4, n_jobs)
    assert sorted(blocks) == [(first, min(first + 4, n_rows)) for first in range(0, n_rows, 4)]


if __name__ == "__main__":
    print(json.dumps({"layer": layer_program, "joblib": joblib_program}[sys.argv[1]]()))  # noqa: T201
