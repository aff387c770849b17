"""The one place where compiler flags and the cache policy are decided.

* No ``fastmath``: every operation is rounded by itself, in the order written. With ``reassoc``, ``arcp`` or
  ``contract`` LLVM rounds the vector twin of a loop otherwise than the loop, and which of the two runs depends on where
  arrays lie in memory (1 of 150 fits had other structure probabilities), on what it is inlined into (other logits on
  two threads than on one), and on the CPU. It gains nothing either: what has to be fast takes lanes (``_lanes.py``).
* ``error_model="numpy"`` takes the zero check out of every division, which otherwise keeps loops scalar (an
  Adam sweep: 1.70 -> 0.17 ns a cell).
* ``nogil`` lets plain threads run kernels side by side. All kernels are serial; threads are Python's, so no
  Numba threading layer is ever started, and a fit inside somebody's thread pool cannot crash one.
* Compiled code is cached on disk, with two repairs of Numba's cache (see :func:`_repair_cache`).
  ``TANLEARN_CACHE=0`` turns it off.
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


# Size and time of every file that kernels are made of: what compiled code is as old as.
_STAMP = tuple(
    (path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(Path(__file__).parent.glob("*.py"))
)


def kernel(function: _Function) -> _Function:
    """Compile a pure loop over arrays: serial, without the GIL, cached on disk where a folder can be written."""
    options = {"nogil": True, "error_model": "numpy"}
    if CACHE and not numba.config.DISABLE_JIT:
        with contextlib.suppress(RuntimeError):  # Numba finds no folder to write to: read-only installations
            compiled = numba.njit(cache=True, **options)(function)
            _repair_cache(compiled)
            return compiled
    return numba.njit(**options)(function)


def _repair_cache(compiled: Any) -> None:
    """Keep a kernel's cache right where Numba's own bookkeeping does not.

    Numba numbers compiled files by their index, so two processes that compile different types at once write
    one file under two names (1 of 25 cold starts of four processes left such a cache behind, for good): the
    names get a random part. And Numba looks at the file of the kernel itself only, while kernels inline
    kernels of other files: the age of all of them counts. It joins the version in the head of an index, which is
    read before the rest, because the rest names classes that a later version may not have. All this is private to
    Numba; a version that arranges it otherwise is left alone.
    """
    files: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if not (hasattr(files, "_data_name") and hasattr(files, "_version")):
        return
    numbered = files._data_name
    files._data_name = lambda number: f"{uuid.uuid4().hex}.{numbered(number)}"
    files._version = (files._version, _STAMP)
