"""Fits side by side in threads and in worker processes, while several processes fill one cold kernel cache.

The file is also the program of those processes: ``python test_threads.py threads`` prints a digest of each fit.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numba
import numpy as np
from joblib import Parallel, delayed
from support import processes

import tanlearn.kernels._jit
from tanlearn import BayesNetClassifier, NaiveBayesClassifier
from tanlearn.baselines import ChowLiu

NAMES = ("naive Bayes", "Chow-Liu")  # not gradient TAN: its kernels compile 10 s, and six processes would


def digest(name: str) -> str:
    """Fit one classifier to a small seeded table and return a digest of its probabilities."""
    classifier = {
        "naive Bayes": NaiveBayesClassifier(),
        "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
    }[name]
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 6))
    y = (X[:, 0] + X[:, 1] + (rng.random(200) < 0.2)) % 2
    return hashlib.sha256(classifier.fit(X, y).predict_proba(X).tobytes()).hexdigest()


def main(pool: str) -> None:
    """Print the digests of four fits of every classifier, several at once."""
    jobs = [name for name in NAMES for _ in range(4)]
    if pool == "threads":
        with ThreadPoolExecutor(4) as executor:
            digests = list(executor.map(digest, jobs))
    else:
        digests = Parallel(n_jobs=2, backend="loky")(delayed(digest)(name) for name in jobs)
    print("\n".join(digests))  # noqa: T201


def test_threads_and_processes_over_one_cold_cache_agree_with_a_serial_fit(tmp_path):
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),
        "TANLEARN_CACHE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        running = [
            stack.enter_context(processes.started([sys.executable, __file__, pool], env=environment, **pipes))
            for pool in ("threads", "loky", "threads", "loky")
        ]
        with ThreadPoolExecutor(len(running)) as readers:
            printed = list(readers.map(processes.output, running))
    assert [errors for _, errors in printed] == [""] * 4
    assert [process.returncode for process in running] == [0] * 4
    expected = [digest(name) for name in NAMES for _ in range(4)]
    assert [output.split() for output, _ in printed] == [expected] * 4
    assert any(tmp_path.rglob("*.nbi"))  # the cache that was cold has been used


KERNEL_FILE = """
from tanlearn.kernels._jit import kernel

@kernel
def total(x):
    result = x[0]
    for i in range(1, x.shape[0]):
        result += x[i]
    return result
"""


def test_processes_that_compile_other_types_leave_compiled_files_alone(tmp_path, monkeypatch):
    # Numba numbers the files of a kernel by its index. Of two processes that both find no index, the later one would
    # overwrite the file of the earlier, whose type could then stay listed for the wrong file, for good.
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tanlearn.kernels._jit, "CACHE", True)
    path = tmp_path / "sums.py"
    path.write_text(KERNEL_FILE, encoding="utf-8")

    def compiled_files(dtype):
        """Compile for one type as a process that finds no index, and return what lies in the cache."""
        specification = importlib.util.spec_from_file_location("sums", path)
        module = importlib.util.module_from_spec(specification)
        monkeypatch.setitem(sys.modules, "sums", module)
        specification.loader.exec_module(module)
        assert module.total(np.ones(3, dtype)) == 3
        (index,) = tmp_path.rglob("*.nbi")
        index.unlink()
        return {file.name: file.read_bytes() for file in tmp_path.rglob("*.nbc")}

    first, both = compiled_files(np.float32), compiled_files(np.float64)
    assert len(first) == 1
    assert len(both) == 2
    assert first.items() <= both.items()


if __name__ == "__main__":
    main(sys.argv[1])
