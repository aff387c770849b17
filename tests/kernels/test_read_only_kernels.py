"""Arrays that kernels may write to, and calls with read-only arrays without another compilation."""

import ast
import importlib
import inspect
import pkgutil
from typing import NamedTuple

import numba
import numpy as np
import pytest

import tanlearn.kernels
from tanlearn.kernels import _jit
from tanlearn.kernels._interpreter import interpretable
from tanlearn.kernels._lanes import load, store
from tanlearn.kernels._read_only import argument_types
from tanlearn.kernels._writes import find_writes

needs_compiler = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are plain Python here")


class Sizes(NamedTuple):
    """An array whose name is that of an attribute of arrays."""

    size: object


class Pair(NamedTuple):
    """Two arrays or pairs."""

    first: object
    second: object


def clear(x):
    x[0] = 0


def row_of(x, i):
    return x[i]


# Each function has arguments x (2-D), y (1-D), pair of 1-D arrays. Its docstring lists the arrays that it writes.
def stores_elements(x, y, pair):
    """x"""
    x[0, 1] += y[0]


def stores_through_a_row(x, y, pair):
    """x"""
    row = x[0]
    row[1] = y[0]


def stores_in_a_loop(x, y, pair):
    """x"""
    for row in x:
        row[:] = y


def adds_numbers(x, y, pair):
    """"""
    total = x[0, 1]
    total += y[0]
    for number in y:
        number += total
    return total


def adds_to_a_row(x, y, pair):
    """x"""
    row = x[1]
    row += 1


def adds_to_a_part(x, y, pair):
    """y"""
    part = y[1:]
    part *= 2


def chooses(x, y, pair):
    """x y"""
    chosen = x[0] if y[0] > 0 else y
    chosen[0] = 1


def writes_a_field(x, y, pair):
    """pair.second"""
    pair.second[0] = pair.first[0] + x.shape[0]


def writes_an_element_without_a_name(x, y, pair):
    """pair.first pair.second"""
    first = pair[0]
    first[0] = 1


def unpacks(x, y, pair):
    """pair.first pair.second"""
    first, second = pair
    first += second


def swaps(x, y, pair):
    """y"""
    one, other = x, y
    other[0] = one[0, 0]


def joins(x, y, pair):
    """y pair.first"""
    joined = Pair(first=y, second=pair.first)
    joined.second[0] = 1


def calls(x, y, pair):
    """y pair.first"""
    clear(y)
    clear(pair.first)


def calls_with_the_result_of_a_call(x, y, pair):
    """x"""
    clear(row_of(x, 0))


def adds_to_the_result_of_a_call(x, y, pair):
    """x"""
    number, row = row_of(y, 0), row_of(x, 0)
    number += 1
    row += 1


def copies(x, y, pair):
    """"""
    copy = np.zeros(x.shape[0])
    copy[0] = y[0] * 2
    clear(copy)


def stores_lanes(x, y, pair):
    """y"""
    store(y, 0, load(pair.first, 0))


def views(x, y, pair):
    """x"""
    x.ravel()[0] = 1


def changes_the_shape(x, y, pair):
    """x y"""
    x.reshape(x.size)[0] = 1
    row = y.reshape((1, y.shape[0]))[0]
    row += 1


def exchanges_names_in_a_loop(x, y, pair):
    """y pair.first"""
    one, other = y, pair.first
    for _ in range(2):
        one, other = other, one
    one[0] = 1


WRITERS = [
    stores_elements, stores_through_a_row, stores_in_a_loop, adds_numbers, adds_to_a_row, adds_to_a_part, chooses,
    writes_a_field, writes_an_element_without_a_name, unpacks, swaps, joins, calls, calls_with_the_result_of_a_call,
    adds_to_the_result_of_a_call, copies, stores_lanes, views, changes_the_shape,
    exchanges_names_in_a_loop,
]  # fmt: skip
ARRAYS = {(0,): ("x", 2), (1,): ("y", 1), (2, "first"): ("pair.first", 1), (2, "second"): ("pair.second", 1)}


@pytest.mark.parametrize("function", WRITERS)
def test_written_arrays_are_found(function):
    writes = find_writes(function)
    found = [name for path, (name, n_dimensions) in ARRAYS.items() if writes.may_write(path, n_dimensions)]
    assert found == (function.__doc__ or "").split()


def has_unknown_call(x):
    np.add(x, 1, x)


def has_unknown_method(x):
    x.sort()


def has_starred_arguments(x):
    both = x, 1
    row_of(*both)


def has_comprehension(x):
    return [row for row in x]  # noqa: C416


def calls_an_unknown_one(x):
    has_unknown_method(x)


def has_an_array_of_sizes(x):
    sizes = Sizes(size=x)
    sizes.size[0] = 1


def calls_an_argument(x):
    x(1)


def has_a_default(x, *rest):
    clear(x)


@pytest.mark.parametrize(
    "function",
    [
        has_unknown_call,
        has_unknown_method,
        has_starred_arguments,
        has_comprehension,
        calls_an_unknown_one,
        has_an_array_of_sizes,
        calls_an_argument,
        has_a_default,
        len,  # without source
        eval("lambda x: x"),
    ],
)
def test_unknown_source_counts_as_writing(function):
    assert find_writes(function) is None


def test_kernels_of_the_library_are_known():
    unknown = []
    for module in pkgutil.iter_modules(tanlearn.kernels.__path__):
        if module.ispkg or module.name.startswith("_"):
            continue
        module = importlib.import_module(f"tanlearn.kernels.{module.name}")
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(one) in ("kernel", "shared_kernel") for one in node.decorator_list
            ):
                function = getattr(module, node.name)
                if find_writes(getattr(function, "py_func", function)) is None:
                    unknown.append(node.name)
    assert unknown == ["write_gains", "sum_points"]  # starred arguments; their arrays are made by the library


def read_only(array):
    array.flags.writeable = False
    return array


def add_columns(pair, x, out):
    for i in range(x.shape[0]):
        out[i] = pair.first[i] + pair.second[i] * x[i, 0]


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(_jit, "CACHE", False)
    return _jit.kernel


@needs_compiler
def test_read_only_arrays_run_the_code_for_writable_arrays(kernel):
    added, out = kernel(add_columns), np.zeros(3)
    pair, x = Pair(np.arange(3.0), np.ones(3)), np.ones((3, 2))
    frozen = Pair(read_only(np.arange(3.0)), np.ones(3)), read_only(np.full((3, 2), 5.0))
    for arguments, expected in ((frozen, [5, 6, 7]), ((pair, x), [1, 2, 3]), (frozen, [5, 6, 7])):
        added(*arguments, out)
        assert out.tolist() == expected
    assert len(added.signatures) == 1
    assert all(kind.mutable for kind in added.signatures[0][1:])
    assert argument_types(added, (*frozen, out)) == added.signatures[0]


@needs_compiler
def test_read_only_memory_is_never_written(kernel):
    added, x = kernel(add_columns), np.ones((3, 2))
    for _ in range(2):
        pair, out = Pair(np.arange(3.0), np.ones(3)), read_only(np.zeros(3))
        with pytest.raises(numba.TypingError, match="readonly array"):
            added(pair, x, out)
        added(pair, x, np.zeros(3))
    assert len(added.signatures) == 1


def write_size(sizes, x):
    sizes.size[0] = x[0]


@needs_compiler
def test_fields_with_names_of_sizes_are_not_followed(kernel):
    with pytest.raises(numba.TypingError, match="readonly array"):
        kernel(write_size)(Sizes(read_only(np.zeros(2))), read_only(np.ones(2)))


def double_all(codes, out):
    for k in range(codes.shape[0]):
        out[k] = codes[k] * 2


@needs_compiler
def test_short_calls_with_read_only_arrays_run_compiled_code_that_exists(kernel):
    doubled = interpretable(kernel(double_all))
    doubled(np.arange(10_000), np.zeros(10_000, np.int64))
    out = np.zeros(3, np.int64)
    doubled(read_only(np.arange(3)), out)
    assert out.tolist() == [0, 2, 4]
    assert len(doubled.signatures) == 1
