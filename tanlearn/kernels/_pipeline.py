"""Numba's compiler with less work per kernel and the same code for its loops.

* The entry point for Python runs once per call, so it is not optimized. It took a tenth of the compilation time of
  kernels whose arguments are records of many arrays.
* Function passes run only on functions that have a body, and the module passes that help to remove reference counts are
  left out.
* Kernels that allocate nothing and return no view do not count references (see :func:`counts_references`).
* Passes for Python features that kernels do not use are left out.
* Types of operators are found once for each combination of argument types.
* The values of compiler flags, which Numba compares tens of thousands of times, are computed once.

A first fit of gradient TAN took 13.7 s with Numba's standard compiler. All of this is private to Numba.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, ClassVar

from numba import types
from numba.core import llvm_bindings
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.targetconfig import ConfigStack
from numba.core.types.containers import BaseTuple

__all__ = ["KernelCompiler", "KernelLibrary", "check_returned_arrays", "counts_references", "customize_flags"]

#: Functions and methods that allocate arrays.
_ALLOCATORS = frozenset({"astype", "copy", "empty", "flatten", "full", "ones", "ravel", "zeros"})
#: Passes for closures, contexts, generated literals and expressions of whole arrays.
_UNUSED_PASSES = frozenset(
    {
        "DumpParforDiagnostics",
        "FindLiterallyCalls",
        "InlineClosureLikes",
        "InlineInlinables",
        "InlineOverloads",
        "LiteralPropagationSubPipelinePass",
        "LiteralUnroll",
        "MakeFunctionToJitFunction",
        "NopythonRewrites",
        "RewriteDynamicRaises",
        "WithLifting",
    }
)


#: Whether this version of Numba uses LLVM's newer passes; the older ones are run in its standard way.
_HAS_PASS_BUILDERS = hasattr(llvm_bindings, "create_pass_builder")


class KernelLibrary(JITCodeLibrary):
    """Intermediate and machine code of a kernel that is called from Python."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add a function, or the entry point for Python, which is not optimized."""
        if ir_module.name == "wrapper":
            for function in ir_module.functions:
                if not function.is_declaration:
                    function.attributes.add("noinline")
                    function.attributes.add("optnone")
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Simplify the functions that have a body."""
        if not _HAS_PASS_BUILDERS:
            super()._optimize_functions(ll_module)
            return
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Optimize the kernel together with the kernels that it calls."""
        if not _HAS_PASS_BUILDERS:
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class KernelCompiler(Compiler):
    """Compiler of kernels."""

    def make_library(self) -> Any:
        """Return an empty library for the code."""
        library = KernelLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        library.enable_object_caching()
        return library

    def compile_extra(self, function: Any) -> Any:
        """Compile a function, and raise TypeError if it may return a view in a tuple without reference counting."""
        result = super().compile_extra(function)
        returned = result.signature.return_type
        arrays = [kind for kind in returned if isinstance(kind, types.Array)] if isinstance(returned, BaseTuple) else []
        if arrays and not self.state.flags.nrt:
            raise TypeError(
                f"{function.__name__} returns arrays in a tuple without reference counting. Write the tuple in the "
                f"return statement, such as return x[1:], y."
            )
        return result

    def define_pipelines(self) -> Any:
        """Return the passes that kernels need."""
        self.state.library = self.make_library()
        self.state.typingctx = _TypingContext(self.state.typingctx)
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [one for one in pipeline.passes if one[0].__name__ not in _UNUSED_PASSES]
            pipeline._finalized = False
            pipeline.finalize()
        return pipelines


class _TypingContext:
    """Numba's typing context, which remembers the types of operators.

    Numba tries up to thirty candidates for each use of an operator.
    """

    _known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """Return the signature of a call."""
        if keywords or isinstance(function, types.Type):
            return self._context.resolve_function_type(function, arguments, keywords)
        key = function, tuple(arguments), ConfigStack.top_or_none().nrt
        found = self._known.get(key)
        if found is None:
            found = self._context.resolve_function_type(function, arguments, keywords)
            if found is not None:
                self._known[key] = found
        return found


class _KernelFlags(Flags):
    """Compiler flags that remember their values until one is set."""

    _known: Any = None

    def values(self) -> Any:
        """Return a dict of all values."""
        if self._known is None or self._known[0] != self._values:
            self._known = dict(self._values), super().values()
        return self._known[1]

    __eq__ = Flags.__eq__

    def __hash__(self) -> int:
        return _HASH


_HASH = hash(Flags())  # Numba hashes the names of all flags


def customize_flags(compiled: Any) -> Any:
    """Let a kernel count references only if it must, and return it."""

    def customize(flags: Any) -> Any:
        flags.nrt = counts_references(compiled.py_func)
        return _KernelFlags(flags)

    compiled._compiler._customize_flags = customize
    return compiled


@functools.cache
def counts_references(function: Callable[..., Any]) -> bool:
    """Return whether a kernel or one that it calls may allocate an array, or return a view or a tuple.

    All other kernels only use arrays that their callers keep alive. Reference counting takes a seventh of the
    compilation time of gradient TAN.
    """
    names = function.__code__.co_names
    if not _ALLOCATORS.isdisjoint(names) or _returns_views(function):
        return True
    called = [getattr(function.__globals__.get(name), "py_func", None) for name in names]
    return any(other is not None and other is not function and counts_references(other) for other in called)


def check_returned_arrays(function: Callable[..., Any], signatures: Any) -> None:
    """Raise TypeError if a kernel that counts references calls one that returns an argument without counting."""
    flags = ConfigStack.top_or_none()  # of the caller
    if flags is None or flags.nrt == counts_references(function):
        return
    if any(isinstance(signature.return_type, types.Array | BaseTuple) for signature in signatures):
        raise TypeError(
            f"{function.__name__} returns an array without reference counting, but its caller uses reference counting. "
            "Return a slice of the array, such as x[:]."
        )


def _returns_views(function: Callable[..., Any]) -> bool:
    """Return whether a statement returns a slice or a tuple; True if the source code is not available."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return True
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    return any(isinstance(node, ast.Slice | ast.Tuple) for value in values for node in ast.walk(value))
