"""The one place where compiler flags and the cache policy are decided.

* ``fastmath`` is the set below and nothing else: with ``nnan`` or ``ninf`` a log-sum-exp over rows of
  ``-inf`` turns into ``nan``, and log 0 is everyday here.
* ``error_model="numpy"`` takes the zero check out of every division, which otherwise keeps loops scalar (an
  Adam sweep: 1.70 -> 0.17 ns a cell).
* ``nogil`` lets plain threads run kernels side by side. All kernels are serial; threads are joblib's, so no
  Numba threading layer is ever started, and a fit inside somebody's thread pool cannot crash one.
* Compiled code is cached on disk. ``TANLEARN_CACHE=0`` turns that off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])

FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}
CACHE = os.environ.get("TANLEARN_CACHE", "1") != "0"


def kernel(function: _Function) -> _Function:
    """Compile a pure loop over arrays: serial, without the GIL, cached on disk."""
    return numba.njit(nogil=True, cache=CACHE, error_model="numpy", fastmath=FASTMATH)(function)
