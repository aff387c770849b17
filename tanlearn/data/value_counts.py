"""Weights of the values of a column, class by class: exact, or of fewer points with a bound on what ranks lose by it.

Points are organised in levels, as by G. Manku, S. Rajagopalan and B. Lindsay, "Approximate medians and other quantiles
in one pass and with limited memory", SIGMOD 1998: two blocks of one level become one of the next, compressed. What a
rank loses by one compression is known, so the bound of a block is the sum of those that led to it, and grows with the
logarithm of the number of blocks. Nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray, IntArray
from tanlearn.kernels.value_counts import float_keys, sort_rows, sum_points, sum_values

__all__ = ["Block", "ValueCounts", "add_block", "collect", "compress", "merge_counts", "sum_by_key", "sum_equal"]

# Up to here floating numbers add whole ones exactly.
_LARGEST_EXACT = 2**53
# As many NumPy sorts in 20 us.
_FEW = 2**10


class ValueCounts(NamedTuple):
    """Weights of pairs of a value and a class, in increasing order of both."""

    values: AnyArray  # (n_pairs,): Numbers, none of them NaN
    classes: NDArray[np.int32]  # (n_pairs,): Class codes
    weights: AnyArray  # (n_pairs,): Above zero

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which pairs are the first ones of their values."""
        is_first = np.ones(len(self.values), np.bool_)
        np.not_equal(self.values[1:], self.values[:-1], out=is_first[1:])
        return is_first

    @property
    def n_values(self) -> int:
        """Number of distinct values."""
        return int(np.count_nonzero(self.is_first))


class Block(NamedTuple):
    """Points that stand for more values, and what ranks may have lost.

    The rank of a number is the weight of all values up to it.
    """

    level: int  # The block was made of ``2**level`` others, each compressed
    counts: ValueCounts  # The points
    under: float  # under, over: By how much a rank may be too low or too high, at most
    over: float


def sum_by_key(keys: IntArray, weights: AnyArray, n_keys: int) -> tuple[IntArray, AnyArray]:
    """Return the keys that occur, increasing, and the sums of their weights.

    Shapes: keys: (n_samples,); weights: (n_samples,); result found: (n_found,); result sums: (n_found,).
    """
    if weights.dtype.kind == "i" and weights.sum() >= _LARGEST_EXACT:
        return sum_equal(keys, weights)
    found = None
    if n_keys > 4 * len(keys):  # a table of all would be mostly empty
        found, keys = np.unique(keys, return_inverse=True)
    sums = np.bincount(keys, weights, 0 if found is not None else n_keys)
    if found is None:
        found = np.flatnonzero(sums)
        sums = sums[found]
    return found, sums.astype(weights.dtype, copy=False)


def sum_equal(keys: IntArray, amounts: AnyArray) -> tuple[IntArray, AnyArray]:
    """Return every key once, increasing, and the sum of its amounts, in their own type.

    Shapes: keys: (n_samples,); amounts: (n_samples,); result found: (n_found,); result sums: (n_found,).
    """
    order = np.argsort(keys, kind="stable")
    keys, amounts = keys[order], amounts[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[first], np.add.reduceat(amounts, first) if len(first) else amounts


def collect(
    values: AnyArray, classes: AnyArray, weights: AnyArray, n_classes: int, *, are_sorted_runs: bool = False
) -> ValueCounts:
    """Add up the weights of rows with the same value and class.

    Shapes: values: (n_samples,); classes: (n_samples,); weights: (n_samples,).
    """
    order = np.argsort(values, kind="stable") if are_sorted_runs else _sorting(values)
    found = ValueCounts(values.take(order), classes.take(order).astype(np.int32, copy=False), weights.take(order))
    is_first = found.is_first
    if is_first.all():
        return found
    row, own, sums = _room(len(order), weights)
    n = sum_values(is_first, found.classes, found.weights, np.zeros(n_classes, sums.dtype), row, own, sums)
    return ValueCounts(found.values[row[:n]], own[:n].copy(), sums[:n].copy())


def _sorting(values: AnyArray) -> IntArray:
    """Return the stable order of numbers, of 131,072 floating ones in 2.5 ms, for which NumPy takes 7 or 13."""
    if len(values) < _FEW:
        return np.argsort(values, kind="stable")
    if values.dtype.kind == "f":
        keys = np.empty(len(values), np.uint64)
        float_keys(np.ascontiguousarray(values, np.float64).view(np.int64), keys)
    else:
        keys = values.astype(np.uint64)
        keys -= values.min().astype(np.uint64)  # the smallest is zero; differences wrap around
    order, spare = (np.empty(len(values), np.intp) for _ in range(2))
    is_spare = sort_rows(keys, np.empty_like(keys), order, spare, np.empty((8, 256), np.intp))
    return spare if is_spare else order


def _room(n: int, weights: AnyArray) -> tuple[IntArray, NDArray[np.int32], AnyArray]:
    """Return room for the rows, the classes and the weights of pairs."""
    return np.empty(n, np.intp), np.empty(n, np.int32), np.empty(n, weights.dtype)


def merge_counts(parts: Iterable[ValueCounts], n_classes: int) -> ValueCounts:
    """Add several counts, of values of one type, up."""
    given = list(parts)
    filled = [part for part in given if len(part.values)]
    if len(filled) < 2:
        return filled[0] if filled else given[0]
    values, classes, weights = (np.concatenate(column) for column in zip(*filled, strict=True))
    return collect(values, classes, weights, n_classes, are_sorted_runs=True)


def compress(counts: ValueCounts, n_points: int, n_classes: int) -> tuple[ValueCounts, float, float]:
    """Have neighbouring values stand together at one of them.

    A group of neighbours has less than one ``n_points``-th of the weight besides its last value, and its point is the
    value where it reaches half of its weight. So ranks of points are right, and no rank is wrong by more than what
    a group has besides its point.
    """
    is_first = counts.is_first
    n_values = int(np.count_nonzero(is_first))
    if n_values <= n_points:
        return counts, 0, 0
    # Where sums are rounded there may be a point more.
    row, own, sums = _room(min(len(is_first), (n_points + 1) * n_classes), counts.weights)
    reached, begin = np.zeros(n_values + 1, sums.dtype), np.empty(n_values + 1, np.intp)
    of_class, lost = np.zeros(n_classes, sums.dtype), np.zeros(2, sums.dtype)
    arrays = counts.classes, counts.weights, n_points, of_class, reached, begin, row, own, sums, lost
    n = sum_points(is_first, *arrays)
    return ValueCounts(counts.values[row[:n]], own[:n].copy(), sums[:n].copy()), *lost.tolist()


def add_block(blocks: tuple[Block, ...], block: Block, n_points: int, n_classes: int) -> tuple[Block, ...]:
    """Add a block to others, of which no two have one level."""
    of_level = {other.level: other for other in blocks}
    while block.level in of_level:
        other = of_level.pop(block.level)
        counts, under, over = compress(merge_counts([other.counts, block.counts], n_classes), n_points, n_classes)
        block = Block(block.level + 1, counts, other.under + block.under + under, other.over + block.over + over)
    of_level[block.level] = block
    return tuple(of_level[level] for level in sorted(of_level))
