"""What is learnt by counting is the same on every CPU: structures, tables and predictions, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

try:
    from numpy._core import _multiarray_umath as numpy_build
except ImportError:  # NumPy 1
    from numpy.core import _multiarray_umath as numpy_build

SCRIPT = Path(__file__).parents[1] / "support" / "counted_models.py"


def plain_cpu():
    """Return the environment in which compilers and libraries use what every x86-64 CPU has."""
    features = [name for name in numpy_build.__cpu_dispatch__ if numpy_build.__cpu_features__.get(name)]
    features += os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split()
    return {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": " ".join(features),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",  # exp and log of the C library
    }


def models(**environment):
    result = subprocess.run(
        [sys.executable, str(SCRIPT)], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return {(table, learner): found for table, learner, found in map(json.loads, result.stdout.splitlines())}


@pytest.fixture(scope="module")
def found(request, tmp_path_factory):
    kept = getattr(request.config, "cache", None)  # compiled once, as those for this CPU are
    cache = kept.mkdir("kernels-for-any-cpu") if kept else tmp_path_factory.mktemp("kernels")
    return models(), models(**plain_cpu(), NUMBA_CACHE_DIR=str(cache))


def test_every_learner_that_counts_finds_the_same_on_two_kinds_of_cpu(found):
    here, plain = found
    assert len(here) > 100
    assert [name for name in here if here[name] != plain[name]] == []


def test_the_two_kinds_differ_where_nothing_is_promised():
    """Otherwise the comparison above would be of one and the same."""
    # In single precision, where AVX2 is enough for another exponential than that of the C library.
    script = "import numpy as np; print(np.exp(np.linspace(-5, 5, 10_000, dtype=np.float32)).tobytes().hex())"
    if not plain_cpu()["NPY_DISABLE_CPU_FEATURES"]:
        pytest.skip("this CPU is plain already")
    own = {name: value for name, value in os.environ.items() if name not in plain_cpu()}  # make portable sets them, too
    here, plain = (
        subprocess.run([sys.executable, "-c", script], env={**own, **env}, capture_output=True, check=True)
        for env in ({}, plain_cpu())
    )
    assert here.stdout != plain.stdout


def test_tables_hold_ties_and_constants(found):
    """What used to be decided by rounding: Chow-Liu trees over copies and constant columns."""
    parents = {
        name: model["parents"] for (table, name), model in found[0].items() if table == "ties 0" and "parents" in model
    }
    tree = np.array(parents["TAN-CMI ML"])[:, 0]
    assert (tree >= 0).sum() == len(tree) - 1
    assert tree[4] == 0  # nothing is known of a constant, so its first edge of equal ones is taken
