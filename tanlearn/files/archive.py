"""Archives that contain a JSON manifest and arrays. They are sealed with a digest, and validated when they are read.

The format is described in :mod:`tanlearn.files.models`. Models and checkpoints differ only in the content of the
manifest. Nothing is unpickled or evaluated. Before memory is allocated, each size stated in a file is compared with the
number of bytes in the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import reprlib
import stat
import zipfile
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn._version import __version__
from tanlearn.encoding.stored_values import fields
from tanlearn.files.regular_files import MODEL, Kind, read_file

__all__ = [
    "ExplainedError",
    "kind_of_file",
    "pack",
    "read_archive",
    "seal",
    "unpack",
]

T = TypeVar("T")
_VERSION = 1
_MANIFEST = "tanlearn.json"
_SEAL = 64
_HEADER = re.compile(
    rb"\{'descr': '([<|](?:b1|[iu][1248]|f[248]|[US][1-9]\d{0,9}))', 'fortran_order': False, "
    rb"'shape': \((|\d{1,18},|\d{1,18}(?:, \d{1,18})+)\), \} *\n"
)


class ExplainedError(ValueError):
    """ValueError whose message already includes the remedy."""


def pack(description: dict[str, Any], arrays: dict[str, AnyArray], kind: Kind = MODEL) -> bytes:
    """Return the bytes of an archive that contains ``description`` as JSON and arrays, given by entry name.

    Arrays must be C-contiguous and little-endian, and must not contain objects.
    """
    members = {name: _npy(array) for name, array in arrays.items()}
    manifest = {
        "format": kind.format,
        "version": _VERSION,
        "tanlearn": __version__,
        "members": [{"name": name, "sha256": _digest(content)} for name, content in members.items()],
        kind.name: description,
    }
    return seal({_MANIFEST: json.dumps(manifest, allow_nan=False).encode(), **members})


def seal(members: dict[str, bytes]) -> bytes:
    """Return a zip archive of the entries. Its comment is the SHA-256 of all bytes before the comment."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # always dated 1980, so that equal models give equal files
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
        archive.comment = bytes(_SEAL)
    body = buffer.getvalue()[:-_SEAL]
    return body + _digest(body).encode()


def unpack(content: bytes, kind: Kind = MODEL) -> tuple[Any, dict[str, AnyArray]]:
    """Return the description and the arrays of an archive made by :func:`pack`.

    Raises ExplainedError if the content is of another kind or version, or is damaged. A forged archive, which has a
    correct seal but invalid content, may raise any exception.
    """
    if _digest(memoryview(content)[:-_SEAL]).encode() != content[-_SEAL:]:
        if content[:4] == b"PK\3\4" and content[30 : 30 + len(_MANIFEST)] == _MANIFEST.encode():
            raise ExplainedError(f"it is damaged (truncated or altered). {kind.damaged}.")
        raise ExplainedError(f"it is not a tanlearn {kind.name}. {kind.other}.")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if not entries or entries[0].filename != _MANIFEST or entries[0].compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"the first entry must be {_MANIFEST} without compression.")
        manifest = json.loads(archive.read(entries[0]), object_pairs_hook=_unique, parse_constant=_refuse)
        members, description = _read_manifest(manifest, kind)
        names = [_MANIFEST, *(f"{i}.npy" for i in range(len(members)))]
        if [entry.filename for entry in entries] != names or [_MANIFEST, *members] != names:
            raise ValueError("the entries must be 0.npy, 1.npy and so on, as in the manifest.")
        # Uncompressed entries take at most as much memory as the file, unless they share bytes.
        stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        if not stored or sum(entry.file_size for entry in entries) > len(content):
            raise ValueError("entries must be stored one after the other, without compression.")
        arrays = {}
        for name, digest in members.items():
            member = archive.read(name)
            if _digest(member) != digest:
                raise ValueError(f"the SHA-256 of {name} does not match the manifest.")
            arrays[name] = _read_npy(name, member)
    return description, arrays


def _read_manifest(manifest: Any, kind: Kind) -> tuple[dict[Any, Any], Any]:
    """Return the digests of the entries by name, and the description of the model or checkpoint."""
    if type(manifest) is not dict or type(manifest.get("version")) is not int:
        raise ValueError(f"{_MANIFEST} must be an object with format {kind.format!r} and a version.")
    if manifest.get("format") != kind.format:
        found = reprlib.repr(manifest.get("format"))
        raise ExplainedError(f"it has format {found} instead of format {kind.format!r}. {kind.other}.")
    if manifest["version"] != _VERSION:
        raise ExplainedError(
            f"it has format {manifest['version']} of tanlearn {manifest.get('tanlearn')}, but this version reads "
            f"format {_VERSION}. Upgrade tanlearn."
        )
    _, _, _, members, description = fields(manifest, "format", "version", "tanlearn", "members", kind.name)
    return _unique([fields(member, "name", "sha256") for member in members]), description


def read_archive(
    path: str | os.PathLike[str], restore: Callable[[Any, dict[str, AnyArray]], T], kind: Kind = MODEL
) -> T:
    """Read an archive, and return ``restore(description, arrays)``.

    Any exception in ``restore``, except MemoryError, is converted to a ValueError that contains the path. OSError is
    raised if the file cannot be read.
    """
    content = read_file(path, kind)
    try:
        return restore(*unpack(content, kind))
    except MemoryError:
        raise
    except ExplainedError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from error
    except Exception as error:  # a forged file may cause any error
        reason = (str(error) if isinstance(error, ValueError) else repr(error)).removesuffix(".")
        raise ValueError(
            f"{os.fspath(path)!r} cannot be loaded, because its contents are invalid: {reason}. {kind.damaged}."
        ) from error


def kind_of_file(path: str | os.PathLike[str], *kinds: Kind) -> Kind | None:
    """Return the kind of a file according to its first bytes, or None. The rest of the file is not validated."""
    # The manifest is the first entry, and begins with the format.
    begins = {json.dumps({"format": kind.format})[:-1].encode(): kind for kind in kinds}
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            start = file.read(30 + len(_MANIFEST) + max(map(len, begins)))
    except OSError:
        return None
    if start[:4] != b"PK\3\4" or start[30 : 30 + len(_MANIFEST)] != _MANIFEST.encode():
        return None
    return next((kind for begin, kind in begins.items() if start[30 + len(_MANIFEST) :].startswith(begin)), None)


def _npy(array: AnyArray) -> bytes:
    """Return an array as the bytes of an .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _read_npy(name: str, content: bytes) -> AnyArray:
    """Return the array of an .npy file. Its size is compared with the length of the content before allocation."""
    start = 10 + int.from_bytes(content[8:10], "little")
    header = _HEADER.fullmatch(content[10:start])
    if content[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise ValueError(f"{name} must have a header of .npy format 1.0 with a type that models use.")
    dtype, shape = np.dtype(header[1].decode()), tuple(map(int, header[2].replace(b",", b"").split()))
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"{name} has {len(content) - start} bytes, which is not the size of {shape} of {dtype}.")
    array: AnyArray = np.ndarray(shape, dtype, buffer=content, offset=start)
    if dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        raise ValueError(f"{name} must contain only 0 and 1 for bool.")
    if dtype.kind == "U" and (np.frombuffer(content, "<u4", offset=start) > 0x10FFFF).any():
        raise ValueError(f"{name} must contain only valid Unicode characters.")
    return array.astype(dtype.newbyteorder("="))  # a copy, because the bytes are read-only and may be unaligned


def _digest(content: bytes | memoryview) -> str:
    """Return the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _unique(pairs: list[tuple[Any, ...]]) -> dict[Any, Any]:
    """Return the pairs as a dictionary. Raise ValueError if a key occurs twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"{_MANIFEST} contains the same key twice.")
    return dict(pairs)


def _refuse(constant: str) -> None:
    """Reject the constants NaN and Infinity, which Python's JSON parser accepts although they are not valid JSON."""
    raise ValueError(f"{_MANIFEST} contains {constant}, which is not valid JSON.")
