"""Compilation of kernels before they are needed."""

import subprocess
import sys

import numba
import pytest

import tanlearn
from tanlearn.kernels.scores import log_joint

PROGRAM = """
import numba.core.event, tanlearn
from sklearn.datasets import load_iris
{first}
X, y = load_iris(return_X_y=True)
with numba.core.event.install_recorder("numba:compile") as recorder:
    tanlearn.NaiveBayesClassifier().fit(X.repeat(20, axis=0), y.repeat(20)).predict(X.repeat(20, axis=0))
print(sum(event.is_start for _, event in recorder.buffer))
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are plain Python here")
def test_nothing_is_compiled_after_a_warm_up(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def n_compiled(first=""):
        command = [sys.executable, "-c", PROGRAM.format(first=first)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert n_compiled("tanlearn.warmup(tanlearn.NaiveBayesClassifier())") == 0
    assert n_compiled() == 0  # in a later process
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
    assert n_compiled() > 0


def test_progress_counts_all_fits_and_learners_are_left_unfitted():
    learner, found = tanlearn.NaiveBayesClassifier(), []
    tanlearn.warmup(learner, learner, progress=lambda *numbers: found.append(numbers))
    assert found == [(k, 6) for k in range(7)]
    assert not hasattr(learner, "classes_")
    assert numba.config.DISABLE_JIT or log_joint.signatures  # short calls are compiled, too


@pytest.mark.parametrize("wrong", [tanlearn.NaiveBayesClassifier, "NB ML", None])
def test_learners_must_be_instances(wrong):
    with pytest.raises(TypeError, match="unfitted classifiers, such as TANClassifier"):
        tanlearn.warmup(wrong)
