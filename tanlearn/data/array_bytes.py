"""Arrays that were sent or stored as bytes, read without trust."""

from __future__ import annotations

import io
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
    """Return the arrays of an archive after comparing its checksums, so that NumPy parses sound bytes only.

    Parameters
    ----------
    data : bytes
        What ``numpy.savez`` wrote.

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    BadZipFile
        If a checksum is wrong, or something is compressed. Other damage raises other members of :data:`DAMAGE`.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from tanlearn.data.array_bytes import read_arrays
    >>> buffer = io.BytesIO()
    >>> np.savez(buffer, counts=np.array([3, 4]))
    >>> read_arrays(buffer.getvalue())
    {'counts': array([3, 4])}
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        # savez does not compress, so the arrays of an honest archive are no larger than it is.
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist())
        if packed or archive.testzip() is not None:
            raise zipfile.BadZipFile("a checksum is wrong, or something is compressed")
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def read_format(version: AnyArray) -> int:
    """Return the number of the format that bytes are in.

    Parameters
    ----------
    version : ndarray of shape ()
        As it was read.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        If it is no such number.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.data.array_bytes import read_format
    >>> read_format(np.array(2))
    2
    """
    if version.ndim or version.dtype.kind not in "iu" or version < 1:
        raise ValueError("its format is no positive integer")
    return int(version)
