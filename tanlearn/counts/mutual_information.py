"""Mutual information of features and the class, I(X_i; C) and I(X_i; X_j | C), in nats, from counts or from rows.

The inner loops are in ``kernels/counts.py`` and ``kernels/pair_information.py``.

:func:`pair_information` computes all pairs of features from rows, in blocks with few counts in memory. Features with
few values are packed: each value is stored as a bit set of the samples that have it, and pairs are counted by 64-bit
AND and popcount. Packed features are processed in tiles that stay in the cache. Pairs of other features, and all pairs
of weighted rows, are counted one after another.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.counts.packing import WORDS_A_SAMPLE, are_packed, each_child, number_bits, worth_threads
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels import pair_information as kernels
from tanlearn.kernels.bits import count_shared, pack_values
from tanlearn.kernels.counts import (
    conditional_mutual_information,
    pairwise_information,
    sparse_information,
    sum_xlogx,
)
from tanlearn.kernels.mathematics import nats, tabulate_xlogx, unit_scale
from tanlearn.kernels.pair_information import listed_information
from tanlearn.structures.table_layout import TableLayout

__all__ = [
    "candidate_information",
    "class_information",
    "pair_count_information",
    "pair_information",
    "visited_information",
]

#: Maximum number of words of a tile, and of counts of a feature with a tile: 128 KiB of an L2 cache of 1 MiB.
_TILE = 2**14
#: Smallest number of bit sets of a tile.
_FEWEST = 64
#: Numbers per yielded block (64 MiB), unless one span has more.
_BLOCK = 2**23
#: Counts for which x log x is tabulated: 256 KiB without missing values.
_TABULATED = 2**15
#: The same limit for candidates, for which one table is made per call.
_TABULATED_COUNTS = 2**20
#: Pair counts of candidates are dense up to this number (8 MiB), or up to 8 per row.
_DENSE_CELLS = 2**20


def class_information(layout: TableLayout, counts: AnyArray) -> FloatArray:
    """Compute I(X_i; C) of the empirical distribution, in nats, over the rows in which the feature is present.

    Shapes: counts: (n_cells,), of a layout without parents; result: (n_features,).
    """
    margins = np.empty(int(layout.n_states.max()) + layout.n_classes + 1, counts.dtype)
    # I(X; C) is I(X; Y | Z) with the class as Y and a constant Z.
    return np.array(
        [
            conditional_mutual_information(counts[first:last], n_values, layout.n_classes, 1, margins)
            for n_values, (first, last) in zip(layout.n_states, itertools.pairwise(layout.offset), strict=True)
        ]
    )


def pair_count_information(
    layout: TableLayout, cells: AnyArray, pairs: AnyArray, pair_offset: IntArray, n_jobs: int | None = None
) -> FloatArray:
    """Compute I(X_i; X_j | C) from the counts of all pairs, with the entropies H(X_i | C) on the diagonal.

    Shapes: cells: (n_cells,), of a layout without parents; pairs: (n_pair_cells,), in which the counts of features i
    and j < i begin at ``pair_offset[i (i - 1) / 2 + j]``; result: (n_features, n_features), symmetric.
    """
    n_states, n_classes = layout.n_states, layout.n_classes
    n_features = len(n_states)
    information = np.zeros((n_features, n_features))
    n_margins = (2 * int(n_states.max()) + 1) * n_classes

    def inform(i: int) -> None:
        margins = np.empty(n_margins, pairs.dtype)
        pairwise_information(pairs, n_states, n_classes, pair_offset, i, margins, information[i])

    each_child(inform, n_features, pairs.size, n_jobs)
    information += information.T
    for i, (first, last) in enumerate(itertools.pairwise(layout.offset)):
        # I(X; X | C) = H(X | C), because the pair counts of a feature with itself are diagonal.
        values = cells[first:last]
        of_class = values.reshape(-1, n_classes).sum(axis=0)
        total = float(of_class.sum())
        scale = unit_scale(total)
        information[i, i] = nats(sum_xlogx(of_class, scale) - sum_xlogx(values, scale), scale, total)
    return information


def pair_information(
    data: EncodedData, order: IntArray, is_sparse: AnyArray, n_jobs: int | None = None
) -> Iterator[tuple[int, FloatArray]]:
    """Yield I(X_i; X_j | C) of each feature and the features before it in an order, in nats, unsmoothed.

    Each block is a pair (first, information). Row r of ``information`` (n_rows, first + n_rows) belongs to feature
    ``order[first + r]``. Its first ``first + r`` numbers are the information with the features before it; the others
    are 0.

    A row of data is counted for a pair if both values are present. ``is_sparse`` (n_features,) marks features with
    mostly zero pair counts, for which only occurring values are visited. Counting runs on the CPU for every ``device``.
    The result does not depend on ``n_jobs``.
    """
    pairs = _Pairs(data, order, is_sparse)
    spans = pairs.spans
    n_threads = worth_threads(pairs.cost, n_jobs)
    begin = 0
    while begin < len(spans):
        end = begin + 1
        while end < len(spans) and (spans[end].last - spans[begin].first) * spans[end].last <= _BLOCK:
            end += 1
        first, last = spans[begin].first, spans[end - 1].last
        information = np.zeros((last - first, last))
        _inform_block(pairs, spans[begin:end], information, n_threads)
        yield first, information
        begin = end


@dataclass(frozen=True, eq=False)
class _Span:
    """Features at positions ``first`` to ``last - 1`` of the order; the packed features form a tile."""

    first: int
    last: int
    tile: kernels.Tile


class _Pairs:
    """Data for counting pairs; features are numbered by position in the order."""

    def __init__(self, data: EncodedData, order: IntArray, is_sparse: AnyArray) -> None:
        self.data, self.order, self.is_sparse = data, order, is_sparse[order]
        self.weights, self.missing = data.weights, missing_code(data.codes.dtype)
        self.is_packed = are_packed(data)[order] & ~self.is_sparse
        has_missing = data.codes.max(axis=1)[order] == self.missing
        self.n_sets = np.where(self.is_packed, data.n_states[order] - 1 + has_missing, 0)
        class_word, self.bit = number_bits(data.y, data.n_classes)
        size = np.bincount(data.y, minlength=data.n_classes)
        self.classes = kernels.Classes(class_word, size, *_tabulate(data.n_samples))
        room = max(_TILE // max(int(class_word[-1]), data.n_classes * int(self.n_sets.max())), _FEWEST)
        taken = np.where(self.is_packed, np.maximum(self.n_sets, 1), room // _FEWEST)
        edges = np.flatnonzero(np.diff(np.cumsum(taken) // room, prepend=-1, append=-1)).tolist()
        self.spans = [self._make_span(first, last) for first, last in itertools.pairwise(edges)]

    @property
    def cost(self) -> int:
        """Cost of all pairs, in units of counting one sample for one pair."""
        n_words = int(self.classes.word[-1]) * int(self.n_sets.sum()) ** 2
        n_single = len(self.order) ** 2 - int(self.is_packed.sum()) ** 2
        return (n_words // WORDS_A_SAMPLE + n_single * self.data.n_samples) // 2

    def _make_span(self, first: int, last: int) -> _Span:
        """Create a span, with the bit sets of its packed features."""
        place = np.flatnonzero(self.is_packed[first:last])
        features = self.order[first + place]
        start = np.append(0, np.cumsum(self.n_sets[first + place]))
        bits = np.zeros((self.classes.word[-1], start[-1]), np.uint64)
        pack_values(self.data.codes, 0, self.bit, features, start, bits)
        sizes = np.empty((self.data.n_classes, start[-1]), np.int64)
        everything = np.full((len(bits), 1), ~np.uint64(0))
        for c, (word, end) in enumerate(itertools.pairwise(self.classes.word.tolist())):
            count_shared(everything, 0, 1, bits, start[-1], word, end, sizes[c : c + 1])
        own_units = np.empty(len(place), np.int64)
        kernels.sum_own_units(start, sizes, self.classes, own_units)
        return _Span(first, last, kernels.Tile(bits, start, self.data.n_states[features], sizes, own_units, place))

    def inform(self, span: _Span, other: _Span, information: FloatArray) -> None:
        """Write the information of features of a span and the features before them in this or an earlier span."""
        self._count_tiles(span.tile, other.tile, span is other, information)
        rows, columns = np.arange(span.first, span.last), np.arange(other.first, other.last)
        is_pair = rows[:, np.newaxis] > columns
        is_single = is_pair & ~(self.is_packed[rows, np.newaxis] & self.is_packed[columns])
        if not is_single.any():
            return
        is_sparse = self.is_sparse[rows, np.newaxis] | self.is_sparse[columns]
        features, others = self.order[rows], self.order[columns]
        self._count(features, others, is_single & ~is_sparse, information)
        # If both features are sparse, visit the later one in the data, so that real weights are summed in one order.
        is_later = features[:, np.newaxis] > others
        is_visited = self.is_sparse[rows, np.newaxis] & (is_later | ~self.is_sparse[columns])
        for r in np.flatnonzero(self.is_sparse[rows]):
            these = np.flatnonzero(is_single[r] & is_visited[r])
            information[r, these] = self._visit(features[r], others[these])
        for q in np.flatnonzero(self.is_sparse[columns]):
            these = np.flatnonzero(is_single[:, q] & ~is_visited[:, q])
            information[these, q] = self._visit(others[q], features[these])

    def _count_tiles(self, tile: kernels.Tile, other: kernels.Tile, is_same: bool, information: FloatArray) -> None:
        """Write the information of pairs of packed features."""
        most = int(max(tile.n_states.max(initial=0), other.n_states.max(initial=0)))
        n_classes, n_sets, n_others = self.data.n_classes, other.bits.shape[1], len(other.position)
        sizes = n_sets, n_sets, n_others, n_others, most**2 * n_classes, (2 * most + 1) * n_classes
        shared = np.empty((n_classes, most, n_sets), np.int64)
        scratch = kernels.Scratch(shared, *(np.empty(size, np.int64) for size in sizes))
        kernels.packed_information(tile, other, is_same, self.classes, scratch, information)

    def _count(self, features: IntArray, others: IntArray, is_wanted: AnyArray, information: FloatArray) -> None:
        """Write the information of the wanted pairs from dense counts."""
        data, n_classes = self.data, self.data.n_classes
        # Sparse features, whose dense counts would be large, are in none of these pairs.
        most, most_others = (
            int(data.n_states[f[is_wanted.any(axis=axis)]].max(initial=0)) for f, axis in ((features, 1), (others, 0))
        )
        counts = np.empty(most * most_others * n_classes, self.weights.dtype)
        margins = np.empty((most + most_others + 1) * n_classes, self.weights.dtype)
        sizes = data.n_states, n_classes, self.missing
        rows = data.codes, data.y, self.weights
        kernels.counted_information(*rows, features, others, is_wanted, *sizes, counts, margins, information)

    def _visit(self, i: int, others: IntArray) -> FloatArray:
        """Return the information of a sparse feature and each of several others."""
        data = self.data
        return visited_information(data.codes, data.n_states, data.y, self.weights, data.n_classes, i, others)


def visited_information(
    codes: Codes, n_states: IntArray, y: IntArray, weights: AnyArray, n_classes: int, i: int, others: IntArray
) -> FloatArray:
    """Compute I(X_i; X_j | C) in nats of a feature and several others, by visiting its rows sorted by value.

    This is fast for features with many values, because their dense pair counts would be large.

    Shapes: codes: (n_features, n_samples); n_states: (n_features,); y, weights: (n_samples,); others, result:
    (n_others,).
    """
    information, missing = np.empty(len(others)), missing_code(codes.dtype)
    samples = np.argsort(codes[i], kind="stable")
    values = codes[i][samples]
    samples = samples[values != missing]
    start = np.append(np.flatnonzero(np.diff(values[: len(samples)].astype(np.intp), prepend=-1)), len(samples))
    size = int(n_states[others].max(initial=1)) * n_classes
    cells, sides, margins = (np.zeros(n, weights.dtype) for n in (size, size, 2 * n_classes))
    rows = codes, y, weights, samples, start
    sparse_information(*rows, others, n_classes, missing, cells, sides, margins, information)
    return information


def candidate_information(
    codes: Codes, n_states: IntArray, data: EncodedData, features: IntArray, others: list[IntArray]
) -> list[FloatArray]:
    """Compute I(X; Z | C) of each feature and its candidates Z from dense counts, or sparse counts if smaller."""
    n_classes, weights = data.n_classes, data.weights
    sizes = np.array([len(own) for own in others], np.intp)
    flat = np.concatenate([np.empty(0, np.intp), *others])
    most, start = np.zeros(len(others), np.intp), np.append(0, np.cumsum(sizes))
    if len(flat):
        most[sizes > 0] = np.maximum.reduceat(n_states[flat], start[:-1][sizes > 0])
    cells = n_states[features] * most * n_classes
    is_large = cells > max(_DENSE_CELLS, 8 * data.n_samples)
    listed = np.flatnonzero(~is_large)
    if len(listed) < len(others):
        flat = np.concatenate([np.empty(0, np.intp), *(others[i] for i in listed)])
        start = np.append(0, np.cumsum(sizes[listed]))
    scale = unit_scale(float(weights.sum()))
    units = np.empty(min(int(weights.sum()) + 1, _TABULATED_COUNTS) if weights.dtype.kind == "i" else 0, np.int64)
    tabulate_xlogx(scale, units)
    counts = np.zeros(int(cells[listed].max(initial=0)), weights.dtype)
    margins = np.empty((2 * int(n_states.max()) + 1) * n_classes, weights.dtype)
    information = np.empty(start[-1])
    pairs = features[listed], flat, start
    scratch = np.empty(data.n_samples, np.int32), counts, margins
    listed_information(codes, n_states, data.y, weights, *pairs, n_classes, scale, units, *scratch, information)
    found: list[FloatArray] = [np.empty(0)] * len(features)
    edges = start.tolist()
    for place, i in enumerate(listed.tolist()):
        found[i] = information[edges[place] : edges[place + 1]]
    for i in np.flatnonzero(is_large).tolist():
        found[i] = visited_information(codes, n_states, data.y, weights, n_classes, features[i], others[i])
    return found


def _inform_block(pairs: _Pairs, spans: list[_Span], information: FloatArray, n_threads: int) -> None:
    """Write the information of the features of some spans and all features before them."""
    work = [(span, other) for span in spans for other in pairs.spans if other.first <= span.first]

    def inform(number: int, _: int) -> None:
        span, other = work[number]
        found = np.zeros(
            (span.last - span.first, other.last - other.first)
        )  # kernels are compiled for contiguous arrays
        pairs.inform(span, other, found)
        first = spans[0].first
        information[span.first - first : span.last - first, other.first : other.last] = found

    in_blocks(inform, len(work), 1, n_threads)


def _tabulate(n_samples: int) -> tuple[FloatArray, AnyArray]:
    """Tabulate x log x as integers in units of each scale, for ascending scales up to n_samples."""
    lowest, highest = unit_scale(float(n_samples)), unit_scale(1.0)
    scales = 2.0 ** np.arange(np.log2(lowest), np.log2(highest) + 1)
    units = np.zeros((len(scales), min(n_samples + 1, _TABULATED)), np.int64)
    for scale, row in zip(scales.tolist(), units, strict=True):
        # Larger counts do not occur at this scale, and would overflow 64 bits.
        n_fitting = bisect_right(range(1, len(row)), -scale, key=lambda x: -unit_scale(float(x)))
        tabulate_xlogx(scale, row[: 1 + n_fitting])
    return scales, units
