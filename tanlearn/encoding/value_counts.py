"""Weights of the values of a column in each class, exact or compressed to points with a bound for the rank error.

Points are kept in blocks, and each block has a level (G. Manku, S. Rajagopalan and B. Lindsay, "Approximate medians and
other quantiles in one pass and with limited memory", SIGMOD 1998): two blocks of one level are merged and compressed
into one block of the next level. The rank error of each compression is known. The bound for a block is therefore the
sum over its compressions, and increases with the logarithm of the number of blocks. The method is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tanlearn._typing import AnyArray, IntArray
from tanlearn.kernels.value_counts import float_keys, sort_rows, sum_points, sum_values

__all__ = ["Block", "ValueCounts", "add_block", "collect", "compress", "merge_counts", "sum_by_key", "sum_equal"]

# Largest value up to which sums of integers are exact in 64-bit floats.
_LARGEST_EXACT = 2**53
# Number of values below which NumPy sorts faster (20 us).
_FEWEST_FOR_RADIX_SORT = 2**10


class ValueCounts(NamedTuple):
    """Weights of pairs of value and class, sorted by value, then by class."""

    values: AnyArray  # (n_pairs,) numbers without NaN
    classes: NDArray[np.int32]  # (n_pairs,) class codes
    weights: AnyArray  # (n_pairs,) positive, int64 or float64

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Mask of the first pair of each distinct value."""
        is_first = np.ones(len(self.values), np.bool_)
        np.not_equal(self.values[1:], self.values[:-1], out=is_first[1:])
        return is_first

    @property
    def n_values(self) -> int:
        """Number of distinct values."""
        return int(np.count_nonzero(self.is_first))


class Block(NamedTuple):
    """Points that represent the values of compressed counts, with bounds for the rank error.

    The rank of a number is the weight of all values up to it.
    """

    level: int  # the block was merged from 2**level compressed blocks
    counts: ValueCounts  # weights of the points
    under: float  # largest amount by which a rank may be too low
    over: float  # largest amount by which a rank may be too high


def sum_by_key(keys: IntArray, weights: AnyArray, n_keys: int) -> tuple[IntArray, AnyArray]:
    """Return the distinct keys, increasing, and the sum of the weights of each. Shape: (n_found,).

    Keys (n_samples,) are integers from 0 to ``n_keys - 1``, and weights (n_samples,) are positive. Sums have the dtype
    of the weights. Integers are added exactly, and floats are added in the given order.
    """
    if weights.dtype.kind == "i" and weights.sum() >= _LARGEST_EXACT:
        return sum_equal(keys, weights)
    found = None
    if n_keys > 4 * len(keys):  # a dense array of sums would be mostly empty
        found, keys = np.unique(keys, return_inverse=True)
    sums = np.bincount(keys, weights, 0 if found is not None else n_keys)
    if found is None:
        found = np.flatnonzero(sums)
        sums = sums[found]
    return found, sums.astype(weights.dtype, copy=False)


def sum_equal(keys: IntArray, amounts: AnyArray) -> tuple[IntArray, AnyArray]:
    """Return the distinct keys in increasing order, and the sum of the amounts of each key, in their dtype."""
    order = np.argsort(keys, kind="stable")
    keys, amounts = keys[order], amounts[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[first], np.add.reduceat(amounts, first) if len(first) else amounts


def collect(
    values: AnyArray, classes: AnyArray, weights: AnyArray, n_classes: int, *, are_sorted_runs: bool = False
) -> ValueCounts:
    """Sum the weights of rows with the same value and class. Values must not be NaN.

    ``are_sorted_runs`` means that the values consist of a few increasing runs, which a stable sort merges quickly.
    """
    order = np.argsort(values, kind="stable") if are_sorted_runs else _sorting(values)
    found = ValueCounts(values.take(order), classes.take(order).astype(np.int32, copy=False), weights.take(order))
    is_first = found.is_first
    if is_first.all():
        return found
    row, own, sums = _allocate_pairs(len(order), weights)
    n = sum_values(is_first, found.classes, found.weights, np.zeros(n_classes, sums.dtype), row, own, sums)
    return ValueCounts(found.values[row[:n]], own[:n].copy(), sums[:n].copy())


def _sorting(values: AnyArray) -> IntArray:
    """Return the stable sorting order of numbers; 131,072 floats take 2.5 ms, and 7 to 13 ms with NumPy."""
    if len(values) < _FEWEST_FOR_RADIX_SORT:
        return np.argsort(values, kind="stable")
    if values.dtype.kind == "f":
        keys = np.empty(len(values), np.uint64)
        float_keys(np.ascontiguousarray(values, np.float64).view(np.int64), keys)
    else:
        keys = values.astype(np.uint64)
        keys -= values.min().astype(np.uint64)  # the smallest key becomes zero, and differences wrap around correctly
    order, spare = (np.empty(len(values), np.intp) for _ in range(2))
    is_spare = sort_rows(keys, np.empty_like(keys), order, spare, np.empty((8, 256), np.intp))
    return spare if is_spare else order


def _allocate_pairs(n: int, weights: AnyArray) -> tuple[IntArray, NDArray[np.int32], AnyArray]:
    """Allocate arrays for the rows, classes and weights of pairs."""
    return np.empty(n, np.intp), np.empty(n, np.int32), np.empty(n, weights.dtype)


def merge_counts(parts: Iterable[ValueCounts], n_classes: int) -> ValueCounts:
    """Add up one or more counts, whose values must have the same dtype."""
    given = list(parts)
    filled = [part for part in given if len(part.values)]
    if len(filled) < 2:
        return filled[0] if filled else given[0]
    values, classes, weights = (np.concatenate(column) for column in zip(*filled, strict=True))
    return collect(values, classes, weights, n_classes, are_sorted_runs=True)


def compress(counts: ValueCounts, n_points: int, n_classes: int) -> tuple[ValueCounts, float, float]:
    """Compress counts to about ``n_points`` points. Return the points, and the bounds ``under`` and ``over``.

    Adjacent values are grouped such that each group, without its last value, has less than ``1 / n_points`` of the
    weight. The point of a group is the value at which half of its weight is reached. Therefore, ranks of points are
    exact, and the error of any other rank is at most the weight of its group without the point. If there are at most
    ``n_points`` values, they are unchanged.
    """
    is_first = counts.is_first
    n_values = int(np.count_nonzero(is_first))
    if n_values <= n_points:
        return counts, 0, 0
    # Rounding errors of sums may add one point.
    row, own, sums = _allocate_pairs(min(len(is_first), (n_points + 1) * n_classes), counts.weights)
    reached, begin = np.zeros(n_values + 1, sums.dtype), np.empty(n_values + 1, np.intp)
    of_class, rank_errors = np.zeros(n_classes, sums.dtype), np.zeros(2, sums.dtype)
    arrays = counts.classes, counts.weights, n_points, of_class, reached, begin, row, own, sums, rank_errors
    n = sum_points(is_first, *arrays)
    return ValueCounts(counts.values[row[:n]], own[:n].copy(), sums[:n].copy()), *rank_errors.tolist()


def add_block(blocks: tuple[Block, ...], block: Block, n_points: int, n_classes: int) -> tuple[Block, ...]:
    """Add a block to ``blocks``. Blocks of the same level are merged and compressed to a block of the next level.

    The blocks have increasing, distinct levels, before and after.
    """
    of_level = {other.level: other for other in blocks}
    while block.level in of_level:
        other = of_level.pop(block.level)
        counts, under, over = compress(merge_counts([other.counts, block.counts], n_classes), n_points, n_classes)
        block = Block(block.level + 1, counts, other.under + block.under + under, other.over + block.over + over)
    of_level[block.level] = block
    return tuple(of_level[level] for level in sorted(of_level))
