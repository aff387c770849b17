"""Compiler flags and cache policy of all kernels.

* No ``fastmath``: each operation is rounded separately, in the order written. With ``reassoc``, ``arcp`` or
  ``contract``, LLVM rounds the vectorized version of a loop differently from the scalar one. The version that runs
  depends on the memory addresses of the arrays (1 of 150 fits had different structure probabilities), on the function
  that it is inlined into (logits on two threads differed from logits on one), and on the CPU. There is no speed gain
  either: loops that must be fast use lanes (``_lanes.py``).
* ``error_model="numpy"`` removes the zero check of divisions, which otherwise prevents vectorization (an Adam sweep:
  1.70 -> 0.17 ns per parameter).
* ``nogil`` lets Python threads run kernels in parallel. All kernels are serial. No Numba threading layer is ever
  started, so a fit inside a user's thread pool cannot crash one.
* Compiled code is cached on disk, with four corrections of Numba's cache (see :func:`_repair_cache`).
  ``TANLEARN_CACHE=0`` turns the cache off.
* ``no_cfunc_wrapper`` leaves out an unused entry point for C. Kernels that are called by other kernels are compiled
  only as parts of their callers (``_parts.py``). Compilation is shortened where loops do not need it
  (``_pipeline.py``).
* Read-only arrays are passed to the code for writable arrays (``_read_only.py``).
* Python collects no garbage during a compilation, which would take a tenth of its time: Numba keeps nearly all objects
  until the end.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from tanlearn.kernels._read_only import share_code

_Function = TypeVar("_Function", bound=Callable[..., Any])

CACHE = os.environ.get("TANLEARN_CACHE", "1") != "0"

#: First and last version of Numba with which the shorter compilation was tried. It uses private interfaces of Numba.
#: With other versions, or if an environment variable requests it, kernels are compiled in Numba's standard way.
_TRIED_VERSIONS = (0, 60), (0, 68)
IS_SHORTENED = (
    _TRIED_VERSIONS[0] <= tuple(map(int, re.findall(r"\d+", numba.__version__)[:2])) <= _TRIED_VERSIONS[1]
    and os.environ.get("TANLEARN_STANDARD_COMPILER", "0") == "0"
)
if IS_SHORTENED:
    from tanlearn.kernels._parts import PartCache, join_parts
    from tanlearn.kernels._pipeline import KernelCompiler, customize_flags


# Size and modification time of all files of kernels: compiled code is valid only for the same stamp.
_STAMP = tuple(
    (path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(Path(__file__).parent.glob("*.py"))
)


def kernel(function: _Function) -> _Function:
    """Compile a pure loop over arrays: serial, without the GIL, cached on disk if a folder is writable.

    The attribute ``cache_failure`` of the result is the reason why it is not cached, or None.
    """
    return _compiled(function, stores_part=False)


def shared_kernel(function: _Function) -> _Function:
    """Compile a kernel that is a large part of kernels of several learners, and store the part on disk, too."""
    return _compiled(function, stores_part=True)


def _compiled(function: Any, stores_part: bool) -> Any:
    """Return a kernel."""
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if numba.config.DISABLE_JIT:
        return numba.njit(**options)(function)
    pipeline: dict[str, Any] = {"pipeline_class": KernelCompiler} if IS_SHORTENED else {}
    compiled: Any = None
    failure = None
    if CACHE:
        try:
            compiled = numba.njit(cache=True, **options, **pipeline)(function)
        except RuntimeError:  # from Numba, which finds no folder
            failure = "no folder for them is writable"
        else:
            _repair_cache(compiled)
    if compiled is None:
        compiled = numba.njit(**options, **pipeline)(function)
    if IS_SHORTENED:
        customize_flags(compiled)
    compiled.cache_failure = failure
    share_code(compiled)
    _pause_garbage_collection(compiled)
    if IS_SHORTENED:

        def compile_part(**more: Any) -> Any:
            part: Any = customize_flags(numba.njit(**options, **more)(function))
            if CACHE and stores_part:
                with contextlib.suppress(RuntimeError):
                    part._cache = PartCache(function)
                    _repair_cache(part)
            return part

        join_parts(compiled, compile_part)
    return compiled


#: Threads that have turned off garbage collection for a compilation.
_pausing: set[int] = set()


def _pause_garbage_collection(compiled: Any) -> None:
    """Let a kernel be compiled without garbage collections."""
    compile_for_args = compiled._compile_for_args

    def compile_without_collections(*arguments: Any, **keywords: Any) -> Any:
        if not gc.isenabled():
            return compile_for_args(*arguments, **keywords)
        thread = threading.get_ident()
        _pausing.add(thread)
        gc.disable()
        try:
            return compile_for_args(*arguments, **keywords)
        finally:
            gc.enable()
            _pausing.discard(thread)

    compiled._compile_for_args = compile_without_collections


def _collect_in_child() -> None:
    """Turn garbage collection on in a forked process, in which no other thread compiles."""
    if _pausing:
        _pausing.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_collect_in_child)


def _repair_cache(compiled: Any) -> None:
    """Correct the cache of a kernel where Numba's own bookkeeping is wrong.

    Numba names compiled files by their number in an index. Two processes that compile different types at the same time
    therefore write the same file for different types (1 of 25 first runs with four processes left such a cache behind
    permanently), so names get a random part. Numba also checks only the file of the kernel itself, although kernels
    inline kernels of other files, so the stamp of all files is checked. The stamp is added to the version at the start
    of an index, which is read before the rest, because the rest may refer to classes that a later version does not
    have. Numba raises an error if a file is damaged, for example empty after a power failure, if the disk is full, or
    if the folder is not writable any more. Here, the kernel is compiled again, or is not stored. All of this is private
    to Numba. If the private interface differs, the cache is left unchanged.
    """
    cache: Any = getattr(compiled, "_cache", None)
    files: Any = getattr(cache, "_cache_file", None)
    if not all(hasattr(files, name) for name in ("_data_name", "_load_index", "_version")):
        return
    load_overload, save_overload = cache.load_overload, cache.save_overload
    load_index, numbered = files._load_index, files._data_name

    def load_if_possible(signature: Any, target_context: Any) -> Any:
        try:
            return load_overload(signature, target_context)
        except Exception:  # from pickle, LLVM or the file system
            return None

    def load_index_if_possible() -> Any:
        try:
            return load_index()
        except Exception:
            return {}

    def save_if_possible(signature: Any, data: Any) -> None:
        try:
            save_overload(signature, data)
        except OSError as error:
            compiled.cache_failure = str(error)

    cache.load_overload, cache.save_overload = load_if_possible, save_if_possible
    files._load_index = load_index_if_possible
    files._data_name = lambda number: f"{uuid.uuid4().hex}.{numbered(number)}"
    files._version = (files._version, IS_SHORTENED, _STAMP)
