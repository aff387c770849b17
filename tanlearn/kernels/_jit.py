"""Compiler flags and cache policy of all kernels.

* No ``fastmath``: each operation is rounded separately, in the order written. With ``reassoc``, ``arcp`` or
  ``contract``, LLVM rounds the vectorized version of a loop differently from the scalar one. The version that runs
  depends on the memory addresses of the arrays (1 of 150 fits had other structure probabilities), on the function that
  it is inlined into (other logits on two threads than on one), and on the CPU. There is no speed gain either: loops
  that must be fast use lanes (``_lanes.py``).
* ``error_model="numpy"`` removes the zero check of divisions, which otherwise prevents vectorization (an Adam sweep:
  1.70 -> 0.17 ns per parameter).
* ``nogil`` lets Python threads run kernels in parallel. All kernels are serial. No Numba threading layer is ever
  started, so a fit inside a user's thread pool cannot crash one.
* Compiled code is cached on disk, with two corrections of Numba's cache (see :func:`_repair_cache`).
  ``TANLEARN_CACHE=0`` turns the cache off.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])

CACHE = os.environ.get("TANLEARN_CACHE", "1") != "0"


# Size and modification time of all files of kernels: compiled code is valid only for the same stamp.
_STAMP = tuple(
    (path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(Path(__file__).parent.glob("*.py"))
)


def kernel(function: _Function) -> _Function:
    """Compile a pure loop over arrays: serial, without the GIL, cached on disk if a folder is writable."""
    options = {"nogil": True, "error_model": "numpy"}
    if CACHE and not numba.config.DISABLE_JIT:
        with contextlib.suppress(RuntimeError):  # Numba finds no writable folder in read-only installations
            compiled = numba.njit(cache=True, **options)(function)
            _repair_cache(compiled)
            return compiled
    return numba.njit(**options)(function)


def _repair_cache(compiled: Any) -> None:
    """Correct the cache of a kernel where Numba's own bookkeeping is wrong.

    Numba names compiled files by their number in an index. Two processes that compile different types at the same time
    therefore write the same file for different types (1 of 25 first runs with four processes left such a cache behind
    permanently), so names get a random part. Numba also checks only the file of the kernel itself, although kernels
    inline kernels of other files, so the stamp of all files is checked. The stamp is added to the version at the start
    of an index, which is read before the rest, because the rest may refer to classes that a later version does not
    have. All this is private to Numba; other versions of the private interface are left unchanged.
    """
    files: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if not (hasattr(files, "_data_name") and hasattr(files, "_version")):
        return
    numbered = files._data_name
    files._data_name = lambda number: f"{uuid.uuid4().hex}.{numbered(number)}"
    files._version = (files._version, _STAMP)
