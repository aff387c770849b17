"""Sums over partitions, from worker to worker."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

__all__ = ["Weighed", "compute", "delayed", "merged"]

#: Parts that one task merges: so many, and what comes of them, are on a worker at a time. Of 1,000 partitions, sixteen
#: make three rounds.
FAN_IN = 16


class Weighed:
    """What tasks return, as large as it is: Dask moves and spills by size, and takes other objects for 56 bytes."""

    def __sizeof__(self) -> int:
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self, protocol=5, buffer_callback=buffers.append)  # arrays are not copied
        return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)


def delayed(function: Any, **options: Any) -> Any:
    """Return a function whose calls are tasks, or an object that is sent once."""
    try:
        import dask
    except ImportError as error:
        raise ImportError("tanlearn.dask needs Dask, which is not installed: pip install 'tanlearn[dask]'.") from error
    return dask.delayed(function, **options)


def merged(parts: Sequence[Any]) -> Any:
    """Return the sum of parts, in their order, which no worker and no client holds all of."""
    level = list(parts)
    while len(level) > 1:
        level = [delayed(_merge)(level[first : first + FAN_IN]) for first in range(0, len(level), FAN_IN)]
    return level[0]


def compute(task: Any) -> Any:
    """Return what a task, or a list of them, comes to: on the cluster of the current client, or in Dask's threads."""
    import dask

    return dask.compute(task)[0]


def _merge(parts: list[Any]) -> Any:
    """Merge parts into a copy of the first: a task may run twice, where a worker was lost."""
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total.merge(part)
    return total
