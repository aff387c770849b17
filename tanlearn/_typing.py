"""Array types used by all modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Encoded feature values. The largest value of the dtype represents a missing value (see :func:`missing_code`).
Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
AnyArray: TypeAlias = NDArray[Any]


def missing_code(dtype: Any) -> int:
    """Return the code of a missing value: the largest value of the dtype, 255 or 65535."""
    return int(np.iinfo(dtype).max)


def codes_dtype(n_states: int) -> type[np.uint8] | type[np.uint16]:
    """Return the smallest dtype that holds ``n_states`` codes (at most 65535) and the code of a missing value."""
    return np.uint8 if n_states <= missing_code(np.uint8) else np.uint16
