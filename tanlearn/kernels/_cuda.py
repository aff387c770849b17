"""Interface to CuPy: device checks, compilation of CUDA source code, and kernel launches.

All uses of CuPy are in this module and in the arrays that it returns. CuPy is imported only when a device is used, so
this module and ``kernels/cuda`` can be imported, and their signatures compared, on any machine.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BLOCK",
    "WARP",
    "check_device",
    "check_device_name",
    "cupy",
    "device_kind",
    "is_out_of_memory",
    "launch",
    "on_device",
    "on_own_device",
    "program_text",
    "row_packing",
    "struct",
    "to_device",
    "type_macros",
    "without_frames",
]

_DEVICE = re.compile(r"cpu|cuda(:(0|[1-9][0-9]{0,3}))?")
#: Threads per block and per warp.
BLOCK, WARP = 256, 32
_FOLDER = Path(__file__).parent / "cuda"
#: No fast mathematics, because log 0 is common here. (CuPy itself flushes denormal float32 numbers to 0.)
_OPTIONS = ("-std=c++17",)
#: Status of cudaErrorMemoryAllocation and of CUDA_ERROR_OUT_OF_MEMORY.
_NO_MEMORY = 2
#: Seconds of compilation after which a note is written.
_SHORT = 1.0
_NOTE = (
    "tanlearn: compiling CUDA kernels, once per kind of GPU and of data, which takes up to a minute. Later runs load "
    "them from the cache of CuPy."
)
_C_TYPES = {
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "int32": "int",
    "int64": "long long",
    "float32": "float",
    "float64": "double",
}


def check_device_name(device: Any) -> None:
    """Raise ValueError unless a device is "cpu", "cuda", or "cuda:" and the number of a device."""
    if not isinstance(device, str) or _DEVICE.fullmatch(device) is None:
        raise ValueError(
            f"device must be 'cpu', 'cuda', or 'cuda:' and the number of a device, such as 'cuda:1', got {device!r}. "
            f"Pass one of them."
        )


def device_kind(device: str) -> str:
    """Return "cpu" or "cuda", without the number of the device."""
    return device.partition(":")[0]


def _device_number(device: str) -> int | None:
    """Return the number of a device, or None if its name has no number."""
    number = device.partition(":")[2]
    return int(number) if number else None


def check_device(device: Any) -> None:
    """Raise an error if a device is unknown or unavailable; there is no fallback to another device.

    Raises ValueError for an invalid name, ImportError if CuPy is not installed, and RuntimeError if CuPy does not find
    the device.
    """
    check_device_name(device)
    if device == "cpu":
        return
    try:
        n_devices = cupy().cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own exception classes for driver errors
        if isinstance(error, ImportError):
            raise
        raise RuntimeError(f"device={device!r} finds no NVIDIA device ({error}). Use device='cpu'.") from error
    if n_devices == 0:
        raise RuntimeError(f"device={device!r} finds no NVIDIA device. Use device='cpu'.")
    number = _device_number(device)
    if number is not None and number >= n_devices:
        raise RuntimeError(
            f"device={device!r} does not exist. CuPy finds {n_devices} NVIDIA device(s), numbered from 0. Use a number "
            f"below {n_devices}, or device='cuda' for the current device."
        )


def on_device(device: str) -> AbstractContextManager[Any]:
    """Return a context in which arrays, streams and kernels of this thread use a device.

    "cuda" is CuPy's current device, which is the first one by default. The context of "cpu" and "cuda" does nothing.
    """
    number = _device_number(device)
    if number is None:
        return nullcontext()
    check_device(device)
    context: AbstractContextManager[Any] = cupy().cuda.Device(number)
    return context


def on_own_device(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method to run in the context of the attribute ``device``."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        with on_device(self.device):
            return method(self, *arguments, **options)

    return call


def cupy() -> Any:
    """Import and return CuPy; raises ImportError with the remedy if it is not installed."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            "device='cuda' needs CuPy: pip install 'tanlearn[cuda12]' or 'tanlearn[cuda13]', according to the CUDA "
            "version that nvidia-smi shows; or use device='cpu'."
        ) from error
    return cupy


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory has run out: on the host, in CuPy's pool, or in a call of CUDA.

    CUDA also allocates memory for kernels and graphs. If that fails, its runtime and its driver report status 2.
    """
    is_of_cuda = type(error).__name__ in ("CUDARuntimeError", "CUDADriverError")
    return isinstance(error, MemoryError) or (is_of_cuda and getattr(error, "status", None) == _NO_MEMORY)


def without_frames(error: Exception) -> Exception:
    """Delete the tracebacks of an error and of its causes, whose frames would keep device memory allocated."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return error


def row_packing(n_classes: int, real: Any) -> tuple[int, int]:
    """Return how a warp reads the rows of a CPT: numbers per load (up to 16 bytes), and rows per four loads.

    For example, a row of 10 float32 numbers takes five lanes of 2 numbers each: (2, 24).
    """
    pack = next(n for n in (16 // np.dtype(real).itemsize, 2, 1) if n_classes % n == 0)
    return pack, 4 * (WARP // min(n_classes // pack, WARP))


def to_device(*arrays: Any) -> list[Any]:
    """Return C-contiguous copies of host arrays on the current device; raises the errors of :func:`check_device`."""
    check_device("cuda")
    return [cupy().asarray(np.ascontiguousarray(array)) for array in arrays]


def struct(values: Any) -> Any:
    """Return a structured array of shape (1,), laid out as in C, with the fields of a NamedTuple.

    Device arrays become pointers, integers become ``int``, and floats become ``double``. The NamedTuple must outlive
    the kernel.
    """
    types = {int: "i4", float: "f8"}
    fields = [(name, types.get(type(value), "u8")) for name, value in values._asdict().items()]
    packed = np.zeros(1, np.dtype(fields, align=True))
    for name, value in values._asdict().items():
        packed[name] = value if type(value) in types else value.data.ptr
    return packed


def type_macros(**dtypes: Any) -> tuple[str, ...]:
    """Return compiler options that define names for types, such as ``-DCODE=unsigned char`` for ``CODE="uint8"``."""
    return tuple(f"-D{name}={_C_TYPES[np.dtype(dtype).name]}" for name, dtype in dtypes.items())


def program_text(*files: str) -> str:
    """Return the source code of files of ``kernels/cuda`` (names without suffix), preceded by ``common.cu``."""
    return "\n".join((_FOLDER / f"{name}.cu").read_text(encoding="utf-8") for name in ("common", *files))


@functools.cache
def _kernel(array_module: Any, number: int, files: tuple[str, ...], name: str, macros: tuple[str, ...]) -> Any:
    """Return a compiled kernel of device ``number``; CuPy caches the machine code on disk."""
    try:
        with _compilation_note():
            return _program(array_module, number, files, macros).get_function(name)
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise RuntimeError(
            f"kernels could not be compiled for device='cuda': {error}. CuPy compiles with NVRTC: install a CUDA "
            f"toolkit, or pip install 'cupy-cuda12x[ctk]'."
        ) from error


@contextmanager
def _compilation_note() -> Iterator[None]:
    """Write a note to the terminal, once per process, if the code in the context takes long."""
    timer = threading.Timer(_SHORT, _write_note)
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@functools.cache
def _write_note() -> None:
    """Write the note that kernels are being compiled."""
    sys.stderr.write(f"{_NOTE}\n")
    sys.stderr.flush()


@functools.cache
def _program(array_module: Any, number: int, files: tuple[str, ...], macros: tuple[str, ...]) -> Any:
    """Return a CuPy module for device ``number``, which is compiled when its first kernel is requested."""
    return array_module.RawModule(code=program_text(*files), options=(*_OPTIONS, *macros))


def launch(
    files: tuple[str, ...], name: str, n_workers: int, *arguments: Any, width: int = 1, macros: tuple[str, ...] = ()
) -> None:
    """Launch a kernel with ``n_workers`` workers; it runs after the kernels launched before.

    ``files`` are files of ``kernels/cuda``: those with functions that the kernel calls, then the kernel's own file.
    ``n_workers`` is its first argument, followed by ``arguments``; integers are passed as ``long long``. ``width`` is
    the number of threads per worker: 1, a warp or a block. ``macros`` are compiler options, see :func:`type_macros`.
    """
    if n_workers == 0:
        return
    module = cupy()
    kernel = _kernel(module, module.cuda.runtime.getDevice(), files, name, macros)
    values = [np.int64(value) if isinstance(value, int) else value for value in (n_workers, *arguments)]
    kernel((-(-n_workers * width // BLOCK),), (BLOCK,), tuple(values))
