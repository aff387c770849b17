"""Validation of arrays and values from files and other untrusted sources."""

from __future__ import annotations

import io
import math
import reprlib
import zipfile
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray

__all__ = ["DAMAGE", "check_array", "fields", "read_arrays", "read_format"]

#: Exceptions that are raised for a damaged archive. NumPy raises MemoryError and OverflowError for a header that claims
#: more data than the file has. zipfile raises RuntimeError for encryption, and NotImplementedError for unsupported
#: formats.
DAMAGE = (
    EOFError,
    KeyError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)


def read_arrays(data: bytes) -> dict[str, AnyArray]:
    """Verify sizes and checksums, and return the arrays that ``numpy.savez`` wrote.

    Raises ``BadZipFile`` for a wrong checksum, compressed entries, or entries that share bytes. Other damage raises
    another exception in :data:`DAMAGE`.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        # savez does not compress, so valid entries add up to at most the archive size. Larger totals mean entries that
        # share bytes (a zip bomb).
        is_stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not is_stored or sum(member.file_size for member in members) > len(data):
            raise zipfile.BadZipFile("the archive has compressed or overlapping entries")
        # archive.read verifies the checksum.
        return {member.filename.removesuffix(".npy"): _read_array(archive.read(member)) for member in members}


def _read_array(content: bytes) -> AnyArray:
    """Check the size in the header of an .npy file against its length, and parse the file."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array is not of .npy format 1.0")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    n_bytes = len(content) - stream.tell()
    if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"an array of shape {shape} and type {dtype} has {n_bytes} bytes")
    flat: AnyArray = np.frombuffer(content, dtype, math.prod(shape), stream.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C").copy(order="K")


def read_format(version: AnyArray) -> int:
    """Return the format number stored in a 0-d integer array, which must be at least 1."""
    if version.ndim or version.dtype.kind not in "iu" or version < 1:
        raise ValueError("its format is not a positive integer")
    return int(version)


def fields(mapping: Any, *names: str) -> tuple[Any, ...]:
    """Return the values of a dictionary in the order of ``names``. Raise ValueError if it has other keys."""
    if type(mapping) is not dict or set(mapping) != set(names):
        raise ValueError(f"expected an object with the keys {', '.join(names)}, found {reprlib.repr(mapping)}.")
    return tuple(mapping[name] for name in names)


def check_array(name: str, array: Any, dtype: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return the array unchanged. Raise ValueError if type or shape differ, or if a float is nan or +inf.

    Messages contain the name ``name``.
    """
    is_array = isinstance(array, np.ndarray)
    if not is_array or (array.dtype, array.shape) != (np.dtype(dtype), shape):
        found = f"type {array.dtype} and shape {array.shape}" if is_array else type(array).__name__
        raise ValueError(f"{name} must have type {np.dtype(dtype)} and shape {shape}, got {found}.")
    if array.dtype.kind == "f" and not (array < np.inf).all():
        raise ValueError(f"{name} contains nan or inf, but log probabilities must be finite or -inf.")
    return array
