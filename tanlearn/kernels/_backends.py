"""Kernels and array transfers of the CPU and of CUDA with one interface, for code that runs on both."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels import cpu
from tanlearn.kernels._cuda import cupy, to_device
from tanlearn.kernels.cuda import cuda_kernels


class Backend(NamedTuple):
    """Kernels and array functions of a device. On the CPU, arrays are passed through without copies."""

    kernels: ModuleType
    put: Callable[..., list[Any]]  # host arrays to device arrays
    get: Callable[[Any], Any]  # a device array to a host array
    assign: Callable[[Any, Any], None]  # (device array, host array): overwrite in place
    empty: Callable[..., Any]  # (shape, dtype): uninitialized device array


CPU = Backend(
    kernels=cpu,
    put=lambda *arrays: list(arrays),
    get=lambda array: array,
    assign=np.copyto,
    empty=np.empty,
)
CUDA = Backend(
    kernels=cuda_kernels,
    put=to_device,
    get=lambda array: array.get(),
    assign=lambda array, values: array.set(values),
    empty=lambda shape, dtype: cupy().empty(shape, dtype),
)


def backend_of(device: str) -> Backend:
    """Return the backend of a device. Call that of "cuda:1" in the context ``on_device``, which selects the device."""
    return CPU if device == "cpu" else CUDA
