"""Model of the cost of training on partitions with any number of workers: seconds, transferred bytes, and memory.

With N rows in P partitions on W workers, partitions are read in rounds, and the merges of the last one come last::

    T = fixed + task P + ceil(P / W) (partition + row N / P) + chain(P) (merge + bytes / network)

Here, ``chain(P)`` is the number of successive merges after the last partition: at most ``FAN_IN - 1`` per level of the
tree. Four costs are fitted by least squares of relative errors, with nonnegative values. The merge time is measured.
"""

from math import ceil, floor, log2, sqrt
from typing import NamedTuple

import numpy as np

from tanlearn.dask.tree import FAN_IN

#: The summary of a column of real numbers: pairs of 20 bytes, the number of values kept exactly, and points per block.
PAIR, EXACT, POINTS = 20, 65_536, 8_192
#: Bytes of a count, or of the information of a pair.
NUMBER = 8


def levels(n_partitions):
    """Return how many parts there are on every level of the tree, partitions first."""
    found = [n_partitions]
    while found[-1] > 1:
        found.append(ceil(found[-1] / FAN_IN))
    return found


def chain(n_partitions):
    """Return how many merges follow one another behind the last partition."""
    return sum(min(FAN_IN, n) - 1 for n in levels(n_partitions))


def sent_bytes(n_partitions, n_workers, part_bytes, sum_bytes=None):
    """Return how many bytes travel at most, of parts of partitions and of their sums, which are as large by default.

    A merge is where most of its parts are: of n that are spread evenly, one W-th, and of FAN_IN one at least.
    """
    travel = 1 - max(1 / n_workers, 1 / FAN_IN)
    first, *later = levels(n_partitions)[:-1] or [0]
    return travel * (first * part_bytes + sum(later) * (part_bytes if sum_bytes is None else sum_bytes))


class Costs(NamedTuple):
    """Seconds of a reading or a fit: once, of a task in the scheduler, of a partition, of a row, and of a merge."""

    fixed: float
    task: float
    partition: float
    row: float
    merge: float = 0.0

    def seconds(self, n_rows, n_partitions, n_workers, n_bytes=0.0, network=np.inf):
        """Return what a job takes, where parts of so many bytes travel at so many bytes a second."""
        work = _terms(n_rows, n_partitions, n_workers) @ np.array(self[:4])
        return float(work + chain(n_partitions) * (self.merge + n_bytes / network))


def _terms(n_rows, n_partitions, n_workers):
    """Return what the four costs are multiplied by."""
    rounds = ceil(n_partitions / n_workers)
    return np.array([1, n_partitions, rounds, rounds * n_rows / n_partitions])


def fit_costs(cells, merge):
    """Return the costs that follow from cells, (rows, partitions, workers, seconds), and from the time of a merge."""
    from scipy.optimize import nnls

    seconds = np.array([cell[3] for cell in cells])
    terms = np.array([_terms(*cell[:3]) for cell in cells]) / seconds[:, None]
    rest = 1 - merge * np.array([chain(cell[1]) for cell in cells]) / seconds
    scale = np.maximum(terms.max(axis=0), np.finfo(float).tiny)
    return Costs(*(nnls(terms / scale, rest)[0] / scale), merge)


def summary_bytes(n_real, n_classes, n_rows, n_partitions):
    """Return what a summary takes at most: that of all rows, where one partition is one of no other part.

    Of a column of real numbers there are values kept exactly, and blocks of points: every partition is one, or every
    65,536 values, two of a level become one of the next, and so there are as many as their number has binary digits.
    """
    n_blocks = min(n_partitions, n_rows / EXACT)
    digits = floor(log2(n_blocks)) + 1 if n_blocks >= 1 else 0
    return n_real * PAIR * (min(n_rows, EXACT) + digits * POINTS * n_classes)


def count_bytes(n_states, n_classes):
    """Return what the counts of all pairs take, whatever the number of rows."""
    n = np.asarray(n_states, float)
    pairs = (n.sum() ** 2 - (n**2).sum()) / 2
    return float(NUMBER * n_classes * (1 + n.sum() + pairs))


def reduction_bytes(part_bytes):
    """Return what one merge holds: its parts, and their sum."""
    return (FAN_IN + 1) * part_bytes


class Blocks(NamedTuple):
    """All pairs of features in blocks, one block a reduction.

    The counts of a block of pairs are summed on every worker over its own partitions, then from worker to worker; what
    goes to the client is the information of every pair.
    """

    width: int  # features of a side of a block
    units: int  # blocks of pairs
    unit_bytes: float
    readings: float  # how often the table is read in all
    sent_bytes: float  # that travel from or to each worker
    information_bytes: float  # what the client gets

    @classmethod
    def of(cls, n_features, n_states, n_classes, n_workers, memory):
        """Return the largest blocks whose merge fits into half of the memory of a worker."""
        cell = NUMBER * n_classes * n_states**2
        width = min(n_features, max(1, floor(sqrt(memory / 2 / reduction_bytes(cell)))))
        sides = ceil(n_features / width)
        units, unit_bytes = sides * (sides + 1) // 2, cell * width**2
        information = NUMBER * n_features * (n_features - 1) / 2
        readings = units * min(1, 2 * width / n_features)
        travel = units * sent_bytes(n_workers, n_workers, unit_bytes) / n_workers
        return cls(width, units, unit_bytes, readings, travel, information)


def counting_seconds(n_rows, n_features, n_workers, pair_rate):
    """Return how long counting alone takes, at so many rows times pairs a second on every worker."""
    return n_rows * n_features * (n_features - 1) / 2 / (pair_rate * n_workers)
