"""The suite of asv: every benchmark runs once on a few rows, and asv accepts the suite."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import tanlearn
import tanlearn.baselines
from benchmarks import ROOT, suite
from benchmarks.suite import bench_learners, bench_user, shapes
from tanlearn.estimators.classifier import Classifier
from tanlearn.kernels._cuda import check_device

N_ROWS = 120
KINDS = ("time", "peakmem", "track")
NAMES = sorted(module.name for module in pkgutil.iter_modules(suite.__path__) if module.name.startswith("bench_"))
MODULES = [importlib.import_module(f"{suite.__name__}.{name}") for name in NAMES]
CLASSES = [
    kind
    for module in MODULES
    for name, kind in vars(module).items()
    if inspect.isclass(kind) and kind.__module__ == module.__name__ and not name.startswith("_")
]


def benchmarks_of(kind):
    """Return the names of the benchmarks of a class."""
    return [name for name in dir(kind) if name.split("_")[0] in KINDS]


def values_of(kind):
    """Return the values of every parameter of a class."""
    params = getattr(kind, "params", [])
    return [
        list(values) for values in (params if params and isinstance(params[0], (list, tuple)) else [params]) if values
    ]


def arguments_of_fit(kind):
    """Return the names of what ``fit`` takes."""
    return [*inspect.signature(kind.fit).parameters][1:] if hasattr(kind, "fit") else []


def combinations(kind):
    """Return as few combinations of parameters as contain every value."""
    values = values_of(kind)
    return [tuple(one[k % len(one)] for one in values) for k in range(max(map(len, values), default=1))]


CASES = [
    pytest.param(kind, values, id=f"{kind.__module__.split('.')[-1]}.{kind.__name__}-{'-'.join(map(str, values))}")
    for kind in CLASSES
    for values in combinations(kind)
]
#: The cases of the registry with few epochs and steps of annealing: other tests fit learners with their defaults.
SHORT_CASES = {name: partial(learner.make, n_epochs=2) for name, learner in tanlearn.baselines.LEARNERS.items()}
SHORT_CASES["TAN-SA-MM ML"] = lambda: tanlearn.BayesNetClassifier(
    structure=tanlearn.baselines.SimulatedAnnealing(n_steps=100)
)


def in_this_process(code, **variables):
    """Run the code of a benchmark without the seconds that a fresh process takes."""
    assert set(variables) <= {"NUMBA_CACHE_DIR"}
    exec(code, {})


@pytest.mark.filterwarnings("ignore::UserWarning")  # of tables that are smaller than those of the benchmarks
@pytest.mark.parametrize(("kind", "values"), CASES)
def test_every_benchmark_runs(kind, values, monkeypatch):
    if "cuda" in values:
        try:
            check_device("cuda")
        except (ImportError, RuntimeError) as error:
            with pytest.raises(NotImplementedError, match=re.escape(str(error))):  # asv then prints n/a
                kind().setup(*values)
            return
    monkeypatch.setattr(shapes, "MAX_ROWS", N_ROWS)
    monkeypatch.setattr(bench_user, "run", in_this_process)
    monkeypatch.setattr(bench_learners.Registry, "cases", SHORT_CASES)
    benchmark = kind()
    arguments = (*([benchmark.setup_cache()] if hasattr(kind, "setup_cache") else []), *values)
    if hasattr(kind, "setup"):
        benchmark.setup(*arguments)
    try:
        for name in benchmarks_of(kind):
            found = getattr(benchmark, name)(*arguments)
            if name.startswith("track"):
                assert np.isfinite(found)
                assert getattr(kind, name).unit
            else:
                assert found is None
    finally:
        if hasattr(kind, "teardown"):
            benchmark.teardown(*arguments)


@pytest.mark.parametrize("kind", CLASSES)
def test_parameters_have_names(kind):
    values = values_of(kind)
    assert benchmarks_of(kind)
    assert len(getattr(kind, "param_names", [])) == len(values)
    assert all(len({repr(value) for value in one}) == len(one) for one in values)


def public(test):
    """Return the public classes that pass a test."""
    named = [getattr(module, name) for module in (tanlearn, tanlearn.baselines) for name in module.__all__]
    return {kind for kind in named if inspect.isclass(kind) and test(kind)}


def test_every_learner_is_a_case():
    cases = bench_learners.Registry.cases
    assert [*cases] == [*tanlearn.baselines.LEARNERS]
    defaults = {repr(make()) for make in [*cases.values(), *bench_learners.ESTIMATORS.values()]}
    assert {repr(kind(random_state=0)) for kind in public(lambda kind: issubclass(kind, Classifier))} <= defaults
    structures = public(lambda kind: hasattr(kind, "learn"))
    assert {kind.__name__ for kind in structures} == {*bench_learners.STRUCTURES}
    parameters = public(lambda kind: arguments_of_fit(kind) == ["structure", "data", "rng"])
    assert {kind.__name__ for kind in parameters} == {*bench_learners.PARAMETERS}


def test_asv_accepts_the_suite():
    pytest.importorskip("asv", reason="asv is not installed: python -m pip install 'tanlearn[bench]'")
    environment = {**os.environ, "ASV_PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "asv", "check", "--python=same"]
    done = subprocess.run(
        command, cwd=ROOT / "benchmarks", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No problems found" in done.stdout
