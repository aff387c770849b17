"""Digests of the contents of values, which show whether a checkpoint belongs to the current data and settings."""

from __future__ import annotations

import hashlib
import io
import pickle
from types import FunctionType
from typing import Any

import numpy as np

from tanlearn._version import __version__

__all__ = ["content_digest", "digest"]


def digest(subject: str, values: list[Any]) -> str:
    """Return a hexadecimal SHA-256 digest of values and the version of the library.

    Classes and functions of tanlearn are identified by their names without modules, so digests do not change if they
    are moved to another module. Messages refer to the values as ``subject``. A value that cannot be serialized, such as
    a lambda, raises ValueError.
    """
    found = hashlib.sha256(__version__.encode())
    _feed(found, subject, values)
    return found.hexdigest()


def content_digest(subject: str, values: list[Any]) -> str:
    """Return a SHA-256 digest of values that does not depend on the version of the library."""
    found = hashlib.sha256()
    _feed(found, subject, values)
    return found.hexdigest()


def _feed(digest: Any, subject: str, value: Any) -> None:
    """Update a digest with the content of a value, not its ``repr``, which may be abbreviated or contain addresses."""
    digest.update(f"<{_public_name(type(value))}".encode())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        digest.update(repr(value).encode())
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        digest.update(f"{value.dtype}{np.shape(value)}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple, np.ndarray)):
        for item in value:
            _feed(digest, subject, item)
    elif isinstance(value, dict):
        for key in sorted(value):
            _feed(digest, subject, key)
            _feed(digest, subject, value[key])
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _feed(digest, subject, value.get_params(deep=False))
    elif hasattr(value, "__dict__") and not callable(value):
        _feed(digest, subject, vars(value))
    else:
        try:
            digest.update(_written(value))
        except Exception as error:
            raise ValueError(
                f"a checkpoint must identify the {subject}, but {value!r} cannot be serialized ({error}). Omit the "
                f"checkpoint, or define the value at the top level of a module."
            ) from error
    digest.update(b">")


def _is_own(value: Any) -> bool:
    """Return whether a value is a class or function of tanlearn that is identified by its name."""
    return (
        isinstance(value, (type, FunctionType))
        and str(value.__module__).partition(".")[0] == "tanlearn"
        and "<" not in value.__qualname__
    )


def _public_name(value: Any) -> str:
    """Return the qualified name of a class or function, with "tanlearn" instead of a module of tanlearn."""
    return f"{'tanlearn' if _is_own(value) else value.__module__}.{value.__qualname__}"


class _Pickler(pickle.Pickler):
    """Pickler that identifies classes and functions of tanlearn by name without their module."""

    def persistent_id(self, value: Any) -> str | None:
        return _public_name(value) if _is_own(value) else None


def _written(value: Any) -> bytes:
    """Return a value as bytes. Errors of pickle are not caught."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()
