"""Arrays that were sent or stored as bytes, read without trust."""

from __future__ import annotations

import io
import math
import zipfile

import numpy as np

from tanlearn._typing import AnyArray

__all__ = ["DAMAGE", "read_arrays", "read_format"]

#: What reading a damaged archive raises: NumPy MemoryError and OverflowError for a header that asks for more than
#: there is, zipfile RuntimeError for encryption and, as NotImplementedError, for formats that it does not know.
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
    """Return the arrays of an archive after comparing its checksums, so that NumPy parses sound bytes only."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        # savez does not compress, so the members of an honest archive are no larger than it is; those of another could
        # share their bytes.
        is_stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not is_stored or sum(member.file_size for member in members) > len(data):
            raise zipfile.BadZipFile("something is compressed, or stored once for several members")
        # Reading a member compares its checksum.
        return {member.filename.removesuffix(".npy"): _read_array(archive.read(member)) for member in members}


def _read_array(content: bytes) -> AnyArray:
    """Return the array in an .npy file after comparing the size that its header claims with that of the file."""
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
    """Return the number of the format that bytes are in.

    Shapes: version: ().
    """
    if version.ndim or version.dtype.kind not in "iu" or version < 1:
        raise ValueError("its format is no positive integer")
    return int(version)
