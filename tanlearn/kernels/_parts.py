"""Kernels as parts of other kernels, without separate machine code and entry points.

If a function calls another one, Numba first compiles the called function separately, with wrappers for calls from
Python and from C, and then again as a part of the caller. Few kernels are called from Python, so here a kernel that is
called by another one stays intermediate code. A part that calls no parts is optimized before its callers, because with
a single optimization of the whole caller, steps of k-trees took up to 1.3 times as long. A part that calls other parts
is only simplified, and optimized together with its callers. Otherwise, the code of each part would be optimized again
for each caller of its callers.

The parts of kernels that several learners call are stored on disk (``shared_kernel``), as intermediate code. If a
gradient TAN without missing values was fitted before, a first fit with missing values takes three quarters of the time.

All of this is private to Numba, and used only with versions that were tested (see ``_jit.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler import CompileResult

from tanlearn.kernels._pipeline import KernelCompiler, KernelLibrary, check_returned_arrays

__all__ = ["PartCache", "join_parts"]

_ENVIRONMENT = "_ZN08NumbaEnv"


class _PartLibrary(KernelLibrary):
    """Intermediate code of a kernel, for linking into the kernels that call it."""

    _calls_parts = False

    def add_linking_library(self, library: Any) -> None:
        """Link the code of a called function."""
        super().add_linking_library(library)
        self._calls_parts |= isinstance(library, _PartLibrary)

    def _optimize_final_module(self) -> None:
        """Optimize the code, unless it calls other parts."""
        if not self._calls_parts:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Declare the environments of the functions, which Numba sets at this point, without emitting machine code."""
        self._finalize_dynamic_globals()
        engine = self._codegen._engine
        names = [variable.name for variable in self._final_module.global_variables]
        names = [name for name in names if name.startswith(_ENVIRONMENT) and not engine.is_symbol_defined(name)]
        if names:
            module = llvmlite.binding.parse_assembly("\n".join(f"@{name} = common global i8* null" for name in names))
            module.triple, module.data_layout = self._final_module.triple, self._final_module.data_layout
            engine.add_module(module)
            engine.finalize_object()
            self._environments = module  # the engine does not keep it alive
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, because no function can be called from Python."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """Return what the cache stores, which is no machine code."""
        return self.name, self._calls_parts, self._get_module_for_linking().as_bitcode()

    @classmethod
    def restore(cls, codegen: Any, stored: Any) -> _PartLibrary:
        """Return the library of a stored part."""
        name, calls_parts, bitcode = stored
        library = cls(codegen, name)
        library._calls_parts = calls_parts
        library._final_module = llvmlite.binding.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library


class _PartCompiler(KernelCompiler):
    """Compiler that returns a part."""

    def make_library(self) -> Any:
        """Return the library of the part."""
        return _PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)


class _RestoringContext:
    """Numba's target context with a code generator that returns one library."""

    def __init__(self, context: Any, library: _PartLibrary) -> None:
        self._context, self._library = context, library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> Any:
        """Return the code generator, which is this object."""
        return self

    def unserialize_library(self, _: Any) -> _PartLibrary:
        """Return the library."""
        return self._library


class _StoredParts(CompileResultCacheImpl):
    """Contents of the files of parts."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Return the start of the names of the files, which differ from the names of the kernel itself."""
        return f"part-{super().get_filename_base(fullname, abiflags)}"

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return a stored part."""
        code, *rest = payload
        library = _PartLibrary.restore(target_context.codegen(), code)
        result = CompileResult._rebuild(_RestoringContext(target_context, library), None, *rest)
        return result._replace(target_context=target_context)


class PartCache(FunctionCache):
    """Parts of a kernel on disk; RuntimeError is raised if no folder is writable."""

    _impl_class = _StoredParts


def join_parts(compiled: Any, compile_part: Callable[..., Any]) -> None:
    """Let kernels that call ``compiled`` use its part, which ``compile_part(pipeline_class=...)`` returns.

    Literal integers are typed like other integers, because otherwise each literal would be another part.
    """
    parts: list[Any] = []

    def part() -> Any:
        if not parts:
            parts.append(compile_part(pipeline_class=_PartCompiler, no_cpython_wrapper=True))
        return parts[0]

    def get_call_template(arguments: Any, keywords: Any) -> Any:
        kinds = tuple(types.unliteral(kind) for kind in arguments)
        template = part().get_call_template(kinds, keywords)
        check_returned_arrays(compiled.py_func, template[0].cases)
        return template

    compiled.get_call_template = get_call_template
    compiled.get_overload = lambda signature: part().get_overload(signature)
