"""Compilation of kernels that other kernels call, and runs of kernels as plain Python on a few rows."""

import gc
import os
import subprocess
import sys
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import event

from tanlearn.kernels import _interpreter, _jit
from tanlearn.kernels._pipeline import KernelLibrary
from tanlearn.kernels.counts import count_families
from tanlearn.kernels.discretize import collapse, mdlp_cuts
from tanlearn.kernels.encode import count_cuts_below, look_up, mark_present, mean_of_states
from tanlearn.kernels.mathematics import log_all, tabulate_xlogx, unit_scale
from tanlearn.kernels.scores import log_joint
from tanlearn.kernels.trees import draw_acyclic, draw_independent

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are plain Python here")


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(_jit, "CACHE", False)
    return _jit.kernel


def test_a_called_kernel_is_compiled_only_within_its_callers(kernel):
    @kernel
    def power(x, exponent):
        result = x
        for _ in range(1, exponent):
            result *= x
        return result

    @kernel
    def powers(x, out):
        for k in range(x.shape[0]):
            out[k] = power(x[k], 2) + power(x[k], 3) + power(x[k], k + 1)

    x, out = np.array([2.0, 3.0, 5.0]), np.empty(3)
    powers(x, out)
    assert out.tolist() == [4 + 8 + 2, 9 + 27 + 9, 25 + 125 + 125]
    assert power.signatures == []  # no code of its own
    assert len(powers.signatures) == 1
    assert power(2.0, 5) == 32.0
    assert len(power.signatures) == 1


class Numbers(NamedTuple):
    """Record of arrays."""

    x: Any
    out: Any


def test_a_part_that_calls_parts_is_optimized_within_its_caller_only(kernel, monkeypatch):
    optimized, optimize = [], KernelLibrary._optimize_final_module

    def record(library):
        optimized.append(library.name)
        optimize(library)

    monkeypatch.setattr(KernelLibrary, "_optimize_final_module", record)

    @kernel
    def increase(x, out):
        for k in range(x.shape[0]):
            out[k] = x[k] + 1.0

    @kernel
    def pass_on(numbers):
        increase(numbers.x, numbers.out)

    @kernel
    def pass_arrays_on(x, out):
        increase(x, out)

    @kernel
    def sum_record(numbers):
        total = 0.0
        for k in range(numbers.x.shape[0]):
            total += numbers.x[k] + numbers.out[k]
        return total

    @kernel
    def outermost(numbers):
        pass_on(numbers)
        pass_arrays_on(numbers.out, numbers.out)
        return sum_record(numbers)

    numbers = Numbers(np.array([2.0, 3.0, 5.0]), np.empty(3))
    assert outermost(numbers) == 10 + 16
    assert numbers.out.tolist() == [4.0, 5.0, 7.0]
    names = ("increase", "pass_on", "pass_arrays_on", "sum_record", "outermost")
    found = [name for name in names for library in optimized if library.endswith(f".{name}")]
    assert found == ["increase", "sum_record", "outermost"]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_during_a_compilation(kernel, is_enabled):
    states = []

    class Listener(event.Listener):
        def on_start(self, event):
            states.append(gc.isenabled())

        def on_end(self, event):
            states.append(gc.isenabled())

    @kernel
    def double(x):
        return x + x

    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        with event.install_listener("numba:compile", Listener()):
            assert double(2.0) == 4.0
            with pytest.raises(numba.errors.TypingError):
                double(np.dtype)
        after = gc.isenabled()
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert len(states) >= 2
    assert not any(states)
    assert after == is_enabled


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")
def test_a_process_forked_during_a_compilation_collects_garbage():
    """The forked process has no thread that could turn the collection on again."""
    code = """
import gc, os, threading, types, warnings
from tanlearn.kernels import _jit
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with several threads
started, finish = threading.Event(), threading.Event()
kernel = types.SimpleNamespace(_compile_for_args=lambda: (started.set(), finish.wait()))
_jit._pause_garbage_collection(kernel)
thread = threading.Thread(target=kernel._compile_for_args)
thread.start()
started.wait()
assert not gc.isenabled()
child = os.fork()
if not child:
    os._exit(0 if gc.isenabled() else 1)
status = os.waitpid(child, 0)[1]
assert not gc.isenabled()
finish.set()
thread.join()
assert gc.isenabled()
gc.disable()
child = os.fork()
if not child:
    os._exit(2 if gc.isenabled() else 0)
print(status, os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]


def test_literal_integers_do_not_compile_a_kernel_again(kernel):
    kinds = []

    @kernel
    def shifted(x, by):
        return x + by

    typed = shifted.get_call_template

    def count(arguments, keywords):
        template = typed(arguments, keywords)
        kinds.append(template[0].cases)
        return template

    shifted.get_call_template = count

    @kernel
    def total(x):
        return shifted(x, 0) + shifted(x, 1) + shifted(x, -1)

    assert total(5) == 15
    assert {len(cases) for cases in kinds} == {1}


def double_all(codes, out):
    for k in range(codes.shape[0]):
        out[k] = codes[k] * 2


def test_a_short_call_is_interpreted_and_a_long_one_compiled(kernel):
    double = _interpreter.interpretable(kernel(double_all))
    codes = np.array([1, 100, 200], np.uint8)
    out = np.zeros(3, np.int64)
    double(codes, out)
    assert out.tolist() == [2, 200, 400]  # without overflow
    assert double.signatures == []
    codes = np.full(_interpreter.MOST_ELEMENTS, 200, np.uint8)
    out = np.zeros(len(codes), np.int64)
    double(codes, out)
    assert (out == 400).all()
    assert len(double.signatures) == 1


def test_narrow_integers_are_written_back_and_read_only_arrays_are_left(kernel):
    double = _interpreter.interpretable(kernel(double_all))
    codes, out = np.array([3, 100, 200], np.uint8), np.zeros(3, np.uint8)
    codes.flags.writeable = False
    double(codes, out)
    assert codes.tolist() == [3, 100, 200]
    assert out.tolist() == [6, 200, 400 - 256]
    assert double.signatures == []


def test_warm_ups_compile_short_calls(kernel):
    double = _interpreter.interpretable(kernel(double_all))
    codes, out = np.arange(3), np.zeros(3, np.int64)
    with _interpreter.compile_always(), _interpreter.compile_always():
        assert not _interpreter.interpretation_is_allowed()
        double(codes, out)
    assert _interpreter.interpretation_is_allowed()
    assert out.tolist() == [0, 2, 4]
    assert len(double.signatures) == 1


def test_single_precision_is_compiled(kernel):
    double = _interpreter.interpretable(kernel(double_all))
    out = np.zeros(2)
    double(np.array([1.5, 2.0], np.float32), out)
    assert out.tolist() == [3.0, 4.0]
    assert len(double.signatures) == 1


def test_a_kernel_is_compiled_when_it_has_been_interpreted_for_long(kernel, monkeypatch):
    monkeypatch.setattr(_interpreter, "MOST_SECONDS", 1e-12)
    double = _interpreter.interpretable(kernel(double_all))
    codes, out = np.arange(3), np.zeros(3, np.int64)
    for n_signatures in (0, 1, 1):
        double(codes, out)
        assert len(double.signatures) == n_signatures
        assert out.tolist() == [0, 2, 4]


def test_interpreted_kernels_call_plain_python():
    plain = _interpreter._plain(mdlp_cuts)
    assert isinstance(plain.__globals__["best_cut"], FunctionType)
    assert isinstance(plain.__globals__["best_cut"].__globals__["tabulated_xlogx"], FunctionType)


def discretization(rng):
    """Return the arguments of ``collapse``."""
    x, n = np.sort(rng.integers(0, 12, 40) / 4), 40
    floats = [np.empty(n) for _ in range(3)]
    integers = np.empty(n + 1, np.intp), np.empty(n, np.int32)
    y = rng.integers(0, 3, n).astype(np.int32)
    weight = rng.integers(1, 3, n) * 1.0
    return x, y, weight, True, np.full(3, -1, np.intp), *floats[:2], *integers, floats[2]


def cut_points(rng):
    """Return the arguments of ``mdlp_cuts``."""
    n = 30
    start, classes = np.arange(0, 2 * n + 1, 2), np.tile(np.array([0, 1], np.int32), n)
    weights = np.stack([rng.integers(1, 4, n) + 20 * (np.arange(n) > 12), rng.integers(1, 4, n)], axis=1) * 1.0
    units = np.empty(int(weights.sum()) + 1, np.int64)
    scale = unit_scale(weights.sum())
    tabulate_xlogx(scale, units)
    return start, classes, weights.ravel(), 2, scale, units, np.zeros(n - 1, np.bool_)


def families(rng):
    """Return codes, classes and families in which products of codes exceed 255."""
    codes = rng.integers(0, 101, (3, 50)).astype(np.uint8)
    codes[codes == 100] = 255
    child, parents = np.arange(3), np.array([[-1], [0], [1]])
    sizes = 4 * 100 * np.array([1, 100, 100])
    return codes, rng.integers(0, 4, 50), child, parents, np.full(3, 100), np.cumsum([4, *sizes])


def counts(rng, real):
    """Return the arguments of ``count_families``."""
    codes, y, child, parents, n_states, offset = families(rng)
    weight = rng.random(50) if real else np.ones(50, np.int64)
    return (
        codes,
        y,
        weight,
        child,
        parents,
        n_states,
        offset,
        255,
        np.empty(50, np.intp),
        np.zeros(offset[-1], weight.dtype),
    )


def scores(rng):
    """Return the arguments of ``log_joint``."""
    codes, _, child, parents, n_states, offset = families(rng)
    codes[codes == 255] = 7
    cells = rng.normal(size=offset[-1])
    return codes, 0, cells, child, parents, n_states, offset, child, 255, np.empty(50, np.intp), np.empty((50, 4))


def memory(rng):
    """Return a row-major array with missing values as strided memory of two columns."""
    x = rng.integers(-3, 4, (30, 2)) * 1.0
    x[::7, 1] = np.nan
    return x.ravel(), 2, 1


CALLS = {
    "collapse": (collapse, discretization),
    "mdlp_cuts": (mdlp_cuts, cut_points),
    "log_all": (log_all, lambda rng: (np.append(rng.random(40), [0.0, 1.0, 5e-324]), np.empty(43))),
    "unit_scale": (unit_scale, lambda rng: (float(rng.integers(1, 1_000_000)),)),
    "tabulate_xlogx": (tabulate_xlogx, lambda rng: (2.0**40, np.empty(50, np.int64))),
    "count_families": (count_families, lambda rng: counts(rng, real=False)),
    "count_families, real weights": (count_families, lambda rng: counts(rng, real=True)),
    "log_joint": (log_joint, scores),
    "count_cuts_below": (
        count_cuts_below,
        lambda rng: (
            *memory(rng), 0, 30, np.array([0, 1]), np.array([1, 0]), np.array([0, 5]), np.array([5, 9]),
            np.array([-2.5, -1.5, 0.0, 0.5, 1.0, -1.0, 0.0, 1.5, 2.5]), 255, np.zeros((2, 30), np.uint8),
        ),
    ),
    "mark_present": (
        mark_present,
        lambda rng: (
            *memory(rng), 0, 30, np.array([0, 1]), np.array([-2, -1]), np.array([3, 3]), np.zeros((2, 8), np.bool_)
        ),
    ),
    "look_up": (
        look_up,
        lambda rng: (
            *memory(rng), 0, 30, np.array([0, 1]), np.array([1, 0]), np.array([-2, -1]), np.array([3, 3]),
            np.array([0, 7]), np.arange(20, dtype=np.uint8), np.zeros((2, 30), np.uint8),
        ),
    ),
    "mean_of_states": (
        mean_of_states,
        lambda rng: (
            *memory(rng), 0, rng.integers(0, 3, 30).astype(np.uint8), rng.random(30), 255, np.zeros(3), np.zeros(3)
        ),
    ),
    "draw_independent": (
        draw_independent, lambda rng: (rng.normal(size=9), np.array([0, 2, 5, 9]), np.empty(3, np.intp))
    ),
    "draw_acyclic": (
        draw_acyclic,
        lambda rng: (
            rng.normal(size=9), np.array([0, 3, 6, 9]),
            np.array([[-1, -1], [1, -1], [2, -1], [-1, -1], [0, -1], [0, 2], [-1, -1], [1, -1], [0, 1]]),
            np.empty(3), np.zeros((3, 1), np.uint64), np.empty(3, np.intp),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_interpreted_and_compiled_kernels_give_equal_bits(name):
    compiled, arguments_of = CALLS[name]
    interpreted, own = arguments_of(np.random.default_rng(3)), arguments_of(np.random.default_rng(3))
    result = _interpreter._Interpreter(compiled)(*interpreted)
    with _interpreter.compile_always():
        assert compiled(*own) == result
    assert compiled.signatures
    for one, other in zip(interpreted, own, strict=True):
        n = result if name == "collapse" else None  # only the first sets are defined
        if isinstance(one, np.ndarray):
            assert one[:n].tobytes() == other[:n].tobytes()
