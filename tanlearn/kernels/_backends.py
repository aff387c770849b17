"""CPU and CUDA behind the same names, so that what is done on both is written once."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels import cpu
from tanlearn.kernels._cuda import cupy, to_device
from tanlearn.kernels.cuda import twins


class Backend(NamedTuple):
    """Kernels, and how arrays come to where these work and back; on the CPU arrays are where they are: no copies."""

    kernels: ModuleType
    put: Callable[..., list[Any]]  # arrays of the host to arrays of the backend
    get: Callable[[Any], Any]  # and one back
    assign: Callable[[Any, Any], None]  # to an array of the backend, what one of the host holds
    empty: Callable[..., Any]  # of a shape and type


CPU = Backend(
    kernels=cpu,
    put=lambda *arrays: list(arrays),
    get=lambda array: array,
    assign=np.copyto,
    empty=np.empty,
)
CUDA = Backend(
    kernels=twins,
    put=to_device,
    get=lambda array: array.get(),
    assign=lambda array, values: array.set(values),
    empty=lambda shape, dtype: cupy().empty(shape, dtype),
)


def backend_of(device: str) -> Backend:
    """Return what works on ``device``, "cpu" or "cuda"."""
    return CUDA if device == "cuda" else CPU
