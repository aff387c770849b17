"""Arrays that a kernel may write to, found in its source.

The analysis follows names from the arguments of a kernel through assignments, fields of named tuples and calls of other
kernels. It does not follow the order of statements, so a name stands for everything that is ever assigned to it. A
kernel with an expression, statement or function that is not listed here counts as writing to all its arguments.

An array is described by its path from the arguments (position of the argument, then names of fields) and by the
smallest number of dimensions that indexing has removed from it. ``x += 1`` writes to memory only if x has dimensions
left. An unnamed element of a tuple is described by the path of the tuple, which stands for all its elements.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

__all__ = ["SIZES", "ArrayPath", "Writes", "find_writes"]

ArrayPath = tuple[int | str, ...]
Arrays = dict[ArrayPath, int]  # path: the smallest number of dimensions removed

#: Attributes of arrays that are not arrays. Arrays in fields of these names are not followed.
SIZES = frozenset({"dtype", "ndim", "shape", "size"})
#: Functions that return numbers, lanes or new arrays, and write to no argument.
_READERS = frozenset({"abs", "float", "int", "len", "max", "min", "range"})
_READERS |= {"add_up", "exponent", "floor", "larger", "load", "magnitude", "mantissa", "multiply_add", "nearest"}
_READERS |= {"root", "scale", "splat", "where_less"}
#: Functions of the modules ``numpy`` and ``math`` of this kind.
_NUMPY_READERS = frozenset({"argmax", "empty", "exp", "full", "log", "log1p", "sqrt", "zeros"})
_NUMPY_READERS |= {"float32", "float64", "int64", "intp", "uint64"}
_WRITERS = frozenset({"store", "store_first"})  # these write to their first argument
_METHODS = frozenset({"max", "sum", "type"})
_VIEWS = frozenset({"ravel", "view"})
_OTHER_SHAPES = frozenset({"reshape"})  # views with any number of dimensions
_MODULES = frozenset({"math", "np"})
_DEEPEST = 4  # maximum number of names in a path; more would be a loop

#: Instead of removed dimensions: a write to elements, or an array within a tuple, of which indexing removes none.
_ANY = -8


class Writes(NamedTuple):
    """Arrays that a kernel may write to, and arrays that it may return."""

    written: Arrays
    returned: Arrays

    def may_write(self, path: ArrayPath, n_dimensions: int) -> bool:
        """Return whether the kernel may write to the array of an argument or field."""
        return any(
            removed < n_dimensions if known == path else known == path[: len(known)] or path == known[: len(path)]
            for known, removed in self.written.items()
        )


class _UnknownError(Exception):
    """The source has an expression, a statement or a function that the analysis does not follow."""


@functools.cache
def find_writes(function: Callable[..., Any]) -> Writes | None:
    """Return the arrays that a Python function may write to, or None if they cannot be found."""
    try:
        return _Analysis(function).run()
    except (_UnknownError, OSError, SyntaxError, TypeError, RecursionError):
        return None  # of inspect, if there is no source


class _Analysis:
    """Arrays that the names of a function may refer to, found by iteration until no statement adds an array."""

    def __init__(self, function: Callable[..., Any]) -> None:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        if not isinstance(tree, ast.FunctionDef):
            raise _UnknownError(tree)
        arguments = tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise _UnknownError(arguments)
        self._globals = getattr(function, "__globals__", {})
        self._body = tree.body
        names = [argument.arg for argument in arguments.posonlyargs + arguments.args]
        self._arrays: dict[str, Arrays] = {name: {(position,): 0} for position, name in enumerate(names)}
        self._written: Arrays = {}
        self._returned: Arrays = {}
        self._has_grown = True

    def run(self) -> Writes:
        """Return the arrays that are written and returned."""
        while self._has_grown:
            self._has_grown = False
            for statement in self._body:
                self._follow(statement)
        return Writes(self._written, self._returned)

    def _add(self, arrays: Arrays, new: Arrays) -> None:
        """Add arrays to others."""
        for path, removed in new.items():
            if arrays.get(path, removed + 1) > removed:
                arrays[path] = removed
                self._has_grown = True

    def _write(self, arrays: Arrays) -> None:
        """Note a write to elements of arrays."""
        self._add(self._written, dict.fromkeys(arrays, _ANY))

    def _follow(self, statement: ast.stmt) -> None:
        """Evaluate a statement and those within it."""
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=True):
                    self._bind(target, self._value(value))
            case ast.Assign(targets=targets, value=value):
                arrays = self._value(value)
                for target in targets:
                    self._bind(target, arrays)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._value(value)
                self._add(self._written, self._arrays.get(name, {}))
            case ast.AugAssign(target=target, value=value):
                self._value(value)
                self._bind(target, {})
            case ast.For(target=target, iter=items, body=body, orelse=others):
                self._bind(target, _indexed(self._value(items), 1))
                for inner in body + others:
                    self._follow(inner)
            case ast.While(test=test, body=body, orelse=others) | ast.If(test=test, body=body, orelse=others):
                self._value(test)
                for inner in body + others:
                    self._follow(inner)
            case ast.Return(value=value):
                if value is not None:
                    self._add(self._returned, self._value(value))
            case ast.Expr(value=ast.Constant(value=str())):
                pass  # a docstring
            case ast.Expr(value=value):
                self._value(value)
            case ast.Pass() | ast.Break() | ast.Continue():
                pass
            case _:
                raise _UnknownError(statement)

    def _bind(self, target: ast.expr, arrays: Arrays) -> None:
        """Let a target of an assignment stand for arrays, or note a write to its elements."""
        match target:
            case ast.Name(id=name):
                self._add(self._arrays.setdefault(name, {}), arrays)
            case ast.Tuple(elts=targets):
                for one in targets:
                    self._bind(one, _indexed(arrays, 1))
            case ast.Subscript(value=value, slice=index):
                self._index(index)
                self._write(self._value(value))
            case _:
                raise _UnknownError(target)

    def _value(self, node: ast.expr) -> Arrays:
        """Return the arrays that an expression may be or contain, and evaluate the calls within it."""
        match node:
            case ast.Name(id=name):
                return dict(self._arrays.get(name, {}))
            case ast.Constant(value=bool() | int() | float()):
                return {}
            case ast.Attribute(value=value, attr=name):
                arrays = self._value(value)
                return {} if name in SIZES else _smallest(_field(arrays, (name,)))
            case ast.Subscript(value=value, slice=index):
                return _indexed(self._value(value), self._index(index))
            case ast.Tuple(elts=[_, *_] as items):
                return dict.fromkeys(self._union(items), _ANY)
            case ast.BoolOp(values=items):
                return self._union(items)
            case ast.IfExp(test=test, body=body, orelse=other):
                self._value(test)
                return self._union([body, other])
            case ast.UnaryOp(operand=operand):
                self._value(operand)
                return {}
            case ast.BinOp(left=left, right=right):
                self._union([left, right])
                return {}
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                self._value(left)
                return {}
            case ast.Compare(left=left, comparators=others):
                self._union([left, *others])
                return {}
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._call(function, [self._value(argument) for argument in arguments])
            case ast.Call(func=ast.Name(id=name), args=[], keywords=fields) if self._is_tuple(name):
                return dict.fromkeys(self._union([field.value for field in fields]), _ANY)
        raise _UnknownError(node)

    def _is_tuple(self, name: str) -> bool:
        """Return whether a name is a class of named tuples."""
        called = self._globals.get(name)
        if not (isinstance(called, type) and issubclass(called, tuple)):
            return False
        if not SIZES.isdisjoint(getattr(called, "_fields", ())):
            raise _UnknownError(called)
        return True

    def _union(self, items: list[ast.expr]) -> Arrays:
        """Return the arrays of all expressions."""
        return _smallest(pair for item in items for pair in self._value(item).items())

    def _index(self, index: ast.expr) -> int:
        """Return the smallest number of dimensions that an index may remove, unless it copies the array."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        removed = 0
        for part in parts:
            if isinstance(part, ast.Slice):
                self._union([bound for bound in (part.lower, part.upper, part.step) if bound is not None])
            else:
                self._value(part)  # None and ... are unknown expressions
                removed += 1
        return removed

    def _call(self, function: ast.expr, arguments: list[Arrays]) -> Arrays:
        """Note what a call writes, and return what it returns."""
        match function:
            case ast.Name(id=name):
                if name in self._arrays:  # a local name, such as the type of an array
                    if self._arrays[name]:
                        raise _UnknownError(function)
                    return {}
                if name in _WRITERS:
                    self._write(arguments[0])
                    return {}
                if name in _READERS:
                    return {}
                if self._is_tuple(name):
                    return {path: _ANY for arrays in arguments for path in arrays}
                called = getattr(self._globals.get(name), "py_func", self._globals.get(name))
                if inspect.isfunction(called):
                    return self._call_kernel(called, arguments)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _MODULES:
                if name in _NUMPY_READERS:
                    return {}
            case ast.Attribute(value=value, attr=name):
                arrays = self._value(value)
                if name in _METHODS:
                    return {}
                if name in _VIEWS:
                    return arrays
                if name in _OTHER_SHAPES:
                    return dict.fromkeys(arrays, _ANY)
        raise _UnknownError(function)

    def _call_kernel(self, function: Callable[..., Any], arguments: list[Arrays]) -> Arrays:
        """Note what another kernel writes, and return what it returns."""
        writes = find_writes(function)
        if writes is None:
            raise _UnknownError(function)
        self._add(self._written, _substituted(writes.written, arguments))
        return _substituted(writes.returned, arguments)


def _indexed(arrays: Arrays, n_removed: int) -> Arrays:
    """Return arrays with fewer dimensions."""
    return {path: removed if removed < 0 else removed + n_removed for path, removed in arrays.items()}


def _field(arrays: Arrays, names: tuple[int | str, ...], removed: int = 0) -> Iterator[tuple[ArrayPath, int]]:
    """Yield the fields of named tuples; fields of an element of a tuple have the path of the tuple."""
    for path, of_tuple in arrays.items():
        yield (path, _ANY) if of_tuple else ((*path, *names)[:_DEEPEST], removed)


def _smallest(pairs: Iterable[tuple[ArrayPath, int]]) -> Arrays:
    """Return arrays with the smallest number of removed dimensions for each path."""
    arrays: Arrays = {}
    for path, removed in pairs:
        arrays[path] = min(removed, arrays.get(path, removed))
    return arrays


def _substituted(arrays: Arrays, arguments: list[Arrays]) -> Arrays:
    """Return arrays of a called kernel as arrays of its caller."""

    def pairs() -> Iterator[tuple[ArrayPath, int]]:
        for (position, *names), removed in arrays.items():
            given = arguments[position]  # type: ignore[index]
            if names:
                yield from _field(given, tuple(names), removed)
            else:
                yield from ((path, _ANY if min(own, removed) < 0 else own + removed) for path, own in given.items())

    return _smallest(pairs())
