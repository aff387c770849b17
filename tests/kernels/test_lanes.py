"""Every instruction of lanes, compiled and as plain Python, against NumPy."""

import re

import numba
import numpy as np
import pytest

from tanlearn.kernels import _jit
from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import (
    LANES,
    add_up,
    exponent,
    floor,
    larger,
    load,
    magnitude,
    mantissa,
    multiply_add,
    nearest,
    padded,
    root,
    scale,
    splat,
    store,
    store_first,
    where_less,
)


@kernel
def all_of_them(x, y, out):
    a, b = load(x, 1), load(y, 2)
    store(out[0], 0, a)
    store(out[1], 0, a + b)
    store(out[2], 0, a - b)
    store(out[3], 0, a * b)
    store(out[4], 0, a / b)
    store(out[5], 0, root(b))
    store(out[6], 0, floor(a))
    store(out[7], 0, larger(a, b))
    store(out[8], 0, where_less(a, b, a, splat(7)))
    store(out[9], 0, scale(a, floor(b)))
    store(out[10], 0, mantissa(b))
    store(out[11], 0, exponent(b))
    store(out[12], 0, magnitude(a))
    store(out[13], 0, splat(0.1))
    store(out[14], 0, nearest(b))
    out[15][3] = add_up(a)
    store(out[16], 0, multiply_add(a, b, splat(0.1)))


def test_instructions_do_what_numpy_does():
    rng = np.random.default_rng(0)
    x = rng.normal(size=LANES + 1).astype(np.float32)
    y = rng.uniform(0.01, 50, LANES + 2).astype(np.float32)
    y[2:5] = [0.5, 1.0, 0.99999994]  # where the exponent changes
    y[5:8] = [1.5, 2.5, 0.50000006]  # halves go to even numbers
    out = np.zeros((17, LANES), np.float32)
    all_of_them(x, y, out)
    a, b = x[1:], y[2:]
    fraction, power = np.frexp(b)
    expected = [a, a + b, a - b, a * b, a / b, np.sqrt(b), np.floor(a), np.maximum(a, b), np.where(a < b, a, 7)]
    expected += [a * 2 ** np.floor(b), fraction, power, np.abs(a), np.full(LANES, 0.1), np.rint(b)]
    for row, exact in zip(out, expected, strict=False):
        np.testing.assert_allclose(row, exact, rtol=3e-7)
    halves = a.reshape(2, 2, 2, 2)
    assert out[15, 3] == halves.sum(axis=0).sum(axis=0).sum(axis=0).sum()
    np.testing.assert_allclose(out[16], a.astype(float) * b + 0.1, rtol=3e-7, atol=3e-7)
    assert np.count_nonzero(out[15]) == 1


@kernel
def sum_of_quotients(x, y, out):
    total = 0.0
    for k in range(x.shape[0]):
        out[k] = x[k] / y[0]
        total += x[k] * y[k]
    return total


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_compiled_code_may_not_be_rounded_in_other_ways_than_it_says(monkeypatch):
    """Or a number depends on the CPU, on what is inlined where, and on how far apart LLVM finds two arrays."""
    monkeypatch.setattr(_jit, "CACHE", False)  # what comes from the cache cannot be looked into
    x = np.ones(2 * LANES, np.float32)
    for function, out in ((all_of_them, np.zeros((17, LANES), np.float32)), (sum_of_quotients, x.copy())):
        compiled = kernel(function.py_func)
        compiled(x, x, out)
        code = "".join(compiled.inspect_llvm().values())
        assert re.search(r"= fdiv (<16 x )?float", code)
        assert not re.search(r" (nnan|ninf|nsz|arcp|contract|afn|reassoc|fast) ", code)


@kernel
def write_first(out, first, count):
    store_first(out, first, splat(1.0), count)


@pytest.mark.parametrize("count", [1, 5, LANES - 1, LANES, LANES + 3, 1000])
def test_only_so_many_lanes_are_written(count):
    out = np.zeros(3 * LANES, np.float32)
    write_first(out, 2, count)
    assert np.flatnonzero(out).tolist() == list(range(2, 2 + min(count, LANES)))


def test_padding_is_the_next_multiple():
    assert [padded(length) for length in (1, LANES, LANES + 1)] == [LANES, LANES, 2 * LANES]
