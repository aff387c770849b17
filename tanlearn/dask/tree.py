"""Tree reductions over partitions: workers merge the results of other workers."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

__all__ = ["Weighed", "compute", "delayed", "merged"]

#: Maximum number of parts that one task holds in memory and merges. Merging 1,000 partitions takes three rounds.
FAN_IN = 16


class Weighed:
    """Base class of task results that report their size in memory.

    Dask uses the size of results to decide when to move or spill them. It assumes 56 bytes for objects that do not
    report their size.
    """

    def __sizeof__(self) -> int:
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self, protocol=5, buffer_callback=buffers.append)  # arrays are not copied
        return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)


def delayed(function: Any, **options: Any) -> Any:
    """Wrap a function so that its calls are Dask tasks, or an object so that it is sent once, with ``dask.delayed``.

    Raises ImportError if Dask is not installed.
    """
    try:
        import dask
    except ImportError as error:
        raise ImportError("tanlearn.dask needs Dask, which is not installed: pip install 'tanlearn[dask]'.") from error
    return dask.delayed(function, **options)


def merged(parts: Sequence[Any]) -> Any:
    """Return a task that adds one or more parts in order. No process holds all parts at once."""
    level = list(parts)
    while len(level) > 1:
        level = [delayed(_merge)(level[first : first + FAN_IN]) for first in range(0, len(level), FAN_IN)]
    return level[0]


def compute(task: Any) -> Any:
    """Compute one or more tasks on the cluster of the current client or, without a client, in threads of Dask."""
    import dask

    return dask.compute(task)[0]


def _merge(parts: list[Any]) -> Any:
    """Merge parts into a copy of the first part, because a task may run twice if a worker is lost."""
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total.merge(part)
    return total
