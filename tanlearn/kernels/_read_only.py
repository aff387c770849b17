"""Calls of kernels with read-only arrays, for which no kernel is compiled again.

Numba has two types for arrays that differ only in write permission, and compiles a kernel for each. Models that
joblib maps from a file (``mmap_mode="r"``), rows in the worker processes of scikit-learn, and arrays of pandas are
read-only. Compiling kernels again for them took 0.4 to 6 s. The machine code is the same, so the code for writable
arrays is called here, unless the kernel may write to one of the read-only arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import types
from numba.core.types.containers import BaseTuple

from tanlearn.kernels._writes import SIZES, ArrayPath, find_writes

__all__ = ["argument_types", "share_code"]


def share_code(compiled: Any) -> None:
    """Let a kernel use its code for writable arrays also for read-only arrays, unless it writes to them."""
    compile_for_args, compile_for_types = compiled._compile_for_args, compiled.compile

    def compile_once(*arguments: Any, **keywords: Any) -> Any:
        """Return the code for arguments whose types are new to the kernel."""
        own = tuple(compiled.typeof_pyval(argument) for argument in arguments)
        shared = _shared_types(compiled, own)
        if keywords or shared == own:
            return compile_for_args(*arguments, **keywords)
        code = compile_for_types(shared)
        if hasattr(compiled, "_insert"):  # later calls find the code without this function
            compiled._insert([kind._code for kind in own], code, False)
        return code

    compiled._compile_for_args = compile_once


def argument_types(compiled: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types for which a kernel is compiled when it is called with some arguments."""
    return _shared_types(compiled, tuple(compiled.typeof_pyval(argument) for argument in arguments))


def _shared_types(compiled: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of arguments, with read-only arrays as writable ones if the kernel writes to none of them."""
    read_only = [
        array for position, kind in enumerate(kinds) for array in _arrays((position,), kind) if not array[1].mutable
    ]
    if not read_only:
        return kinds
    writes = find_writes(compiled.py_func)
    if writes is None or any(map(_has_field_of_sizes, kinds)):
        return kinds
    if any(writes.may_write(path, kind.ndim) for path, kind in read_only):
        return kinds
    return tuple(_writable(kind) for kind in kinds)


def _arrays(path: ArrayPath, kind: Any) -> Iterator[tuple[ArrayPath, Any]]:
    """Yield the paths and types of all arrays of an argument."""
    if isinstance(kind, types.Array):
        yield path, kind
    elif isinstance(kind, BaseTuple):
        names = getattr(kind, "fields", range(len(kind)))
        for name, inner in zip(names, kind, strict=True):
            yield from _arrays((*path, name), inner)


def _has_field_of_sizes(kind: Any) -> bool:
    """Return whether a named tuple has a field with the name of an attribute of arrays."""
    return isinstance(kind, BaseTuple) and (
        not SIZES.isdisjoint(getattr(kind, "fields", ())) or any(map(_has_field_of_sizes, kind))
    )


def _writable(kind: Any) -> Any:
    """Return a type with writable arrays for read-only arrays."""
    if isinstance(kind, types.Array) and not kind.mutable:
        return kind.copy(readonly=False)
    if isinstance(kind, BaseTuple):
        return BaseTuple.from_types([_writable(inner) for inner in kind], getattr(kind, "instance_class", None))
    return kind
