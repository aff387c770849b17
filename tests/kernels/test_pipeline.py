"""The compiler of kernels: counts of references, entry points, types of operators, and Numba's standard way."""

import gc
import os
import subprocess
import sys
import weakref

import numba
import numpy as np
import pytest

from tanlearn.kernels import _jit, encode, scores, train, trees
from tanlearn.kernels._pipeline import counts_references

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are plain Python here")


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(_jit, "CACHE", False)
    return _jit.kernel


def test_only_kernels_that_allocate_or_return_views_count_references():
    counting = (encode.cells_of, encode.look_up, encode.mark_present)
    others = (scores.log_joint, train.train_epoch, train._scoring_table, trees.gumbel)
    assert all(counts_references(one.py_func) for one in counting)
    assert not any(counts_references(one.py_func) for one in others)


def test_arrays_are_released_whether_references_are_counted_or_not(kernel):
    @kernel
    def larger(x, y):
        if x[0] > y[0]:
            return x
        return y

    @kernel
    def set_larger(x, y):
        larger(x, y)[0] = 7.0

    @kernel
    def reverse(x):
        return x[::-1]

    @kernel
    def reversed_sum(x):
        kept, total = np.empty(x.shape[0]), 0.0
        for k in range(x.shape[0]):
            kept[k] = reverse(x)[k]
            total = total * 10.0 + kept[k]
        return total

    assert [counts_references(one.py_func) for one in (larger, set_larger, reverse, reversed_sum)] == [0, 0, 1, 1]
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    for _ in range(3):
        set_larger(x, y)
        assert reversed_sum(x) == 321.0
        assert reverse(x).tolist() == [3.0, 2.0, 1.0]
    assert y.tolist() == [7.0, 5.0, 6.0]
    released = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [reference() for reference in released] == [None, None]


def test_an_uncounted_array_is_not_returned_to_a_kernel_that_counts_references(kernel):
    @kernel
    def same(x):
        return x

    @kernel
    def sum_copy(x):
        kept, total = np.empty(x.shape[0]), 0.0
        for k in range(x.shape[0]):
            kept[k] = same(x)[k]
            total += kept[k]
        return total

    with pytest.raises(Exception, match="same returns an array without reference counting"):
        sum_copy(np.ones(3))


def test_entry_points_are_not_optimized_and_loops_are(kernel):
    @kernel
    def double(x):
        for k in range(x.shape[0]):
            x[k] *= 2.0

    x = np.arange(20.0)
    double(x)
    assert x.tolist() == [2.0 * k for k in range(20)]
    code = next(iter(double.inspect_llvm().values()))
    assert "optnone" in code
    assert "x double>" in code  # vectors


def test_operators_have_the_types_of_their_arguments(kernel):
    @kernel
    def sums(a, b, out):
        for k in range(a.shape[0]):
            out[k] = a[k] + b[k] // 2

    integers, floats = np.array([250, 3], np.uint8), np.array([0.5, 7.0])
    out = np.empty(2)
    sums(integers, integers, out)
    assert out.tolist() == [375.0, 4.0]
    sums(floats, integers, out)
    assert out.tolist() == [125.5, 8.0]
    sums(integers, floats, out)
    assert out.tolist() == [250.0, 6.0]


SCRIPT = """
import sys
import numpy as np
from tanlearn.kernels import _jit
from tanlearn.kernels.discretize import best_cut
from tanlearn.kernels.mathematics import log_all
out = np.empty(3)
log_all(np.array([0.5, 3.0, 7.0]), out)
start, classes, weights = np.arange(5), np.array([0, 0, 1, 1]), np.ones(4)
scratch = np.empty(2), np.empty(2), np.empty(2, np.int64)
cut = best_cut(start, classes, weights, 0, 4, 1024.0, np.empty(0, np.int64), *scratch)
print(_jit.IS_SHORTENED, "tanlearn.kernels._pipeline" in sys.modules, cut, out.tobytes().hex())
"""


def run(**environment):
    settings = {**os.environ, "TANLEARN_CACHE": "0", **environment}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT], env=settings, capture_output=True, text=True, check=True
    ).stdout


def test_kernels_are_compiled_in_the_standard_way_where_it_is_asked_for():
    shortened, standard = run().split(), run(TANLEARN_STANDARD_COMPILER="1").split()
    assert shortened[:3] == ["True", "True", "2"]
    assert standard[:3] == ["False", "False", "2"]
    assert shortened[3] == standard[3]


@pytest.mark.parametrize(("version", "is_shortened"), [("0.60.0", "True"), ("0.99.0rc1", "False"), ("1.0", "False")])
def test_other_versions_of_numba_compile_in_the_standard_way(version, is_shortened):
    script = (
        f"import numba; numba.__version__ = {version!r}; from tanlearn.kernels import _jit; print(_jit.IS_SHORTENED)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == is_shortened


PARTS = """
import sys
import numpy as np
from numba.core import event
from tanlearn.kernels import losses
from tanlearn.kernels._jit import kernel
@kernel
def sum_of_losses(kind, scores, d_scores):
    total = 0.0
    for k in range(scores.shape[0]):
        total += losses.row_loss(kind, scores[k], 1, 10.0, 1.0, 10.0, d_scores[k])
    return total
with event.install_recorder("numba:compile") as recorder:
    d_scores = np.empty((2, 3))
    total = sum_of_losses(losses.HYBRID, np.array([[-0.5, -1.5, -3.0], [-4.0, -2.5, -0.25]]), d_scores)
names = {record.data["dispatcher"].py_func.__name__ for _, record in recorder.buffer}
print(total.hex(), d_scores.tobytes().hex(), *names)
"""


def compile_parts(folder, **environment):
    """Return results and the names of compiled functions of a new process with a cache."""
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment}
    done = subprocess.run([sys.executable, "-c", PARTS], env=settings, capture_output=True, text=True, check=True)
    total, gradient, *names = done.stdout.split()
    return (total, gradient), set(names)


def test_stored_parts_are_not_compiled_again(tmp_path):
    results, names = compile_parts(tmp_path / "cache")
    assert {"sum_of_losses", "row_loss", "soft_margin"} <= names
    stored = {path.name.split(".")[1].split("-")[0] for path in tmp_path.rglob("part-*.nbi")}
    assert stored == {"row_loss"}
    again, names = compile_parts(tmp_path / "cache")
    assert again == results
    assert names == {"sum_of_losses"}
    plain, names = compile_parts(tmp_path / "none", TANLEARN_CACHE="0")
    assert plain == results
    assert {"row_loss", "soft_margin"} <= names
    assert not (tmp_path / "none").exists()


def _empty(content):
    return b""


def _first_half(content):
    return content[: len(content) // 2]


@pytest.mark.parametrize("damage", [_empty, _first_half])
@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
def test_damaged_files_are_compiled_again(pattern, damage, tmp_path):
    results, compiled = compile_parts(tmp_path)
    damaged = {path: damage(path.read_bytes()) for path in tmp_path.rglob(f"*row_loss{pattern}")}
    assert len(damaged) == 1
    for path, content in damaged.items():
        path.write_bytes(content)
    again, names = compile_parts(tmp_path)
    assert again == results
    assert names == compiled
    assert "row_loss" not in compile_parts(tmp_path)[1]
