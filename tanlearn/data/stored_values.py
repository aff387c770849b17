"""Validation of values that were read from files."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray

__all__ = ["check_array", "fields"]


def fields(mapping: Any, *names: str) -> tuple[Any, ...]:
    """Return the values of a dictionary in the order of ``names``; raise ValueError if it has other keys."""
    if type(mapping) is not dict or set(mapping) != set(names):
        raise ValueError(f"expected an object with the keys {', '.join(names)}, found {reprlib.repr(mapping)}.")
    return tuple(mapping[name] for name in names)


def check_array(name: str, array: Any, dtype: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return the array unchanged; raise ValueError if type or shape differ, or if a float is nan or +inf.

    ``name`` is the name of the array in messages.
    """
    found = (array.dtype, array.shape) if isinstance(array, np.ndarray) else type(array).__name__
    if found != (np.dtype(dtype), shape):
        raise ValueError(f"{name} must have type {np.dtype(dtype)} and shape {shape}, got {found}.")
    if array.dtype.kind == "f" and not (array < np.inf).all():
        raise ValueError(f"{name} contains nan or inf, but log probabilities must be finite or -inf.")
    return array
