"""Fits side by side in threads and in worker processes, while four processes fill one cold kernel cache.

The file is also the program of those processes: ``python test_threads.py threads`` prints a digest of each fit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import Parallel, delayed

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, TANClassifier
from tanlearn.baselines import ChowLiu

NAMES = ("naive Bayes", "Chow-Liu", "gradient TAN")
TIMEOUT = 300  # seconds; about 10 times what four cold processes take on two cores


def digest(name: str) -> str:
    """Fit one classifier to a small seeded table and return a digest of its probabilities."""
    classifier = {
        "naive Bayes": NaiveBayesClassifier(),
        "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
        "gradient TAN": TANClassifier(n_candidates=2, n_epochs=2, batch_size=50, random_state=0),
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
    running = [
        subprocess.Popen(
            [sys.executable, __file__, pool],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for pool in ("threads", "loky", "threads", "loky")
    ]
    try:
        printed = [process.communicate(timeout=TIMEOUT) for process in running]
    finally:
        for process in running:
            process.kill()
    assert [errors for _, errors in printed] == [""] * 4
    assert [process.returncode for process in running] == [0] * 4
    expected = [digest(name) for name in NAMES for _ in range(4)]
    assert [output.split() for output, _ in printed] == [expected] * 4
    assert any(tmp_path.rglob("*.nbi"))  # the cache that was cold has been used


if __name__ == "__main__":
    main(sys.argv[1])
