"""The one place that meets CuPy: where a device is asked for, CUDA text is compiled, and kernels are launched.

Nothing here or in ``kernels/cuda`` imports CuPy before a device is asked for, so both import, and their signatures
can be compared, on every machine.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BLOCK",
    "DEVICES",
    "WARP",
    "check_device",
    "cupy",
    "launch",
    "program_text",
    "row_packing",
    "struct",
    "to_device",
    "type_macros",
]

DEVICES = ("cpu", "cuda")
#: Threads of a block, and of a warp.
BLOCK, WARP = 256, 32
_FOLDER = Path(__file__).parent / "cuda"
#: No fast mathematics: log 0 is everyday here. (CuPy itself flushes denormal float32 numbers to 0.)
_OPTIONS = ("-std=c++17",)
_C_TYPES = {
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "int32": "int",
    "int64": "long long",
    "float32": "float",
    "float64": "double",
}


def check_device(device: Any) -> None:
    """Refuse a device that is unknown or not there; nothing falls back to another one.

    Parameters
    ----------
    device : object
        What a user asks for.

    Raises
    ------
    ValueError
        If it is not ``"cpu"`` or ``"cuda"``.
    ImportError
        If it is ``"cuda"`` and CuPy is not installed.
    RuntimeError
        If CuPy finds no device.
    """
    if device not in DEVICES:
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}.")
    if device == "cuda":
        try:
            n_devices = cupy().cuda.runtime.getDeviceCount()
        except Exception as error:  # CuPy has a class of its own for what the driver says
            if isinstance(error, ImportError):
                raise
            raise RuntimeError(f"device='cuda' finds no NVIDIA device ({error}). Use device='cpu'.") from error
        if n_devices == 0:
            raise RuntimeError("device='cuda' finds no NVIDIA device. Use device='cpu'.")


def cupy() -> Any:
    """Return CuPy.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            "device='cuda' needs CuPy: pip install 'tanlearn[cuda12]' or 'tanlearn[cuda13]', as nvidia-smi names the "
            "driver's CUDA version; or use device='cpu'."
        ) from error
    return cupy


def row_packing(n_classes: int, real: Any) -> tuple[int, int]:
    """Return how a warp takes rows of a table.

    Parameters
    ----------
    n_classes : int
        Numbers of a row.
    real : dtype-like
        Their type.

    Returns
    -------
    pack : int
        Numbers that one load takes, up to 16 bytes.
    n_rows : int
        Rows that the warp takes by four loads.

    Examples
    --------
    >>> from tanlearn.kernels._cuda import row_packing
    >>> row_packing(10, "float32")  # five lanes a row, six rows at a time
    (2, 24)
    """
    pack = next(n for n in (16 // np.dtype(real).itemsize, 2, 1) if n_classes % n == 0)
    return pack, 4 * (WARP // min(n_classes // pack, WARP))


def to_device(*arrays: Any) -> list[Any]:
    """Return copies on the device.

    Parameters
    ----------
    *arrays : ndarray of any shape
        On the host.

    Returns
    -------
    list of cupy.ndarray
        C-contiguous, of the same types.

    Raises
    ------
    ImportError, RuntimeError
        As :func:`check_device`.
    """
    check_device("cuda")
    return [cupy().asarray(np.ascontiguousarray(array)) for array in arrays]


def struct(values: Any) -> Any:
    """Return what a kernel takes as a structure of the same fields.

    Parameters
    ----------
    values : NamedTuple
        Arrays of the device become pointers, ints ``int`` and floats ``double``. It must outlive the kernel.

    Returns
    -------
    ndarray of shape (1,)
        Of a structured type, laid out as C does.
    """
    types = {int: "i4", float: "f8"}
    fields = [(name, types.get(type(value), "u8")) for name, value in values._asdict().items()]
    packed = np.zeros(1, np.dtype(fields, align=True))
    for name, value in values._asdict().items():
        packed[name] = value if type(value) in types else value.data.ptr
    return packed


def type_macros(**dtypes: Any) -> tuple[str, ...]:
    """Return compiler options that define names for types.

    Parameters
    ----------
    **dtypes : dtype-like
        Types by name.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from tanlearn.kernels._cuda import type_macros
    >>> type_macros(CODE="uint8")
    ('-DCODE=unsigned char',)
    """
    return tuple(f"-D{name}={_C_TYPES[np.dtype(dtype).name]}" for name, dtype in dtypes.items())


def program_text(*files: str) -> str:
    """Return the CUDA text of some files of ``kernels/cuda``, behind what all begin with.

    Parameters
    ----------
    *files : str
        Names without their ending.

    Returns
    -------
    str
    """
    return "\n".join((_FOLDER / f"{name}.cu").read_text(encoding="utf-8") for name in ("common", *files))


@functools.cache
def _kernel(array_module: Any, files: tuple[str, ...], name: str, macros: tuple[str, ...]) -> Any:
    """Return a compiled kernel; CuPy keeps the machine code of a text on disk."""
    try:
        return _program(array_module, files, macros).get_function(name)
    except RuntimeError as error:
        raise RuntimeError(
            f"device='cuda' could not be compiled for: {error}. CuPy compiles with NVRTC: install a CUDA toolkit, "
            f"or pip install 'cupy-cuda12x[ctk]'."
        ) from error


@functools.cache
def _program(array_module: Any, files: tuple[str, ...], macros: tuple[str, ...]) -> Any:
    """Return a program, compiled when its first kernel is asked for."""
    return array_module.RawModule(code=program_text(*files), options=(*_OPTIONS, *macros))


def launch(
    files: tuple[str, ...], name: str, n_workers: int, *arguments: Any, width: int = 1, macros: tuple[str, ...] = ()
) -> None:
    """Start a kernel, one worker for each piece of work; it runs after those started before.

    Parameters
    ----------
    files : tuple of str
        The files of ``kernels/cuda`` that hold it, what it calls first.
    name : str
        The kernel.
    n_workers : int
        Pieces of work; it is the kernel's first argument.
    *arguments : cupy.ndarray, int, NumPy number or structure
        Its others; integers are passed as ``long long``.
    width : int, default=1
        Threads of a worker: 1, a warp or a block.
    macros : tuple of str, default=()
        Compiler options: see :func:`type_macros`.
    """
    if n_workers == 0:
        return
    kernel = _kernel(cupy(), files, name, macros)
    values = [np.int64(value) if isinstance(value, int) else value for value in (n_workers, *arguments)]
    kernel((-(-n_workers * width // BLOCK),), (BLOCK,), tuple(values))
