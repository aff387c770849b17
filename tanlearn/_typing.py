"""The array types that every module speaks of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Encoded feature values; the largest value of the type means "missing" (see :data:`missing_code`).
Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
AnyArray: TypeAlias = NDArray[Any]


def missing_code(dtype: Any) -> int:
    """Return the one code that means "missing" in a table of this type: its largest value."""
    return int(np.iinfo(dtype).max)


def codes_dtype(n_states: int) -> type[np.uint8] | type[np.uint16]:
    """Return the smallest code type that holds ``n_states`` values and the missing code."""
    return np.uint8 if n_states <= missing_code(np.uint8) else np.uint16
