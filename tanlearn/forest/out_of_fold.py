"""Out-of-fold predictions of a forest, by networks that are grown from the same seeds without each fold.

The out-of-fold predictions for a row are made by networks grown without its fold. Weights are fitted to these
predictions and validated by cross-validation. With few rows, the cross-validation is nested: the weights of a fold are
fitted to predictions of networks grown without this fold and without the fold of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from tanlearn._tasks import in_order
from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import draw_folds
from tanlearn.encoding.weights import log_frequencies
from tanlearn.forest.class_groups import grouped
from tanlearn.forest.forest import softmax
from tanlearn.forest.forest_network import ForestNetwork
from tanlearn.forest.ridge import Problem

__all__ = [
    "FoldNetworks",
    "GrowNetwork",
    "OutOfFold",
    "draw_held_out",
    "grow_out_of_fold",
    "left_out_folds",
    "predict_held_out",
]

#: Scores per block. Smaller blocks load contexts into the cache more often; the scores of larger blocks do not fit into
#: it. 1,024 rows of letter (3 MiB) and 256 of digits (1 MiB) were fastest; sizes between them were at most a sixth
#: slower.
_ROOM = 2**18
#: Largest number of rows for nested cross-validation. On 100 rows of 500 columns of noise, the log loss without nesting
#: was .54 out of fold and .78 on new rows; with nesting it was .70 on new rows.
NESTED_ROWS = 2048
#: Largest number of folds for nested cross-validation, which has n (n + 1) / 2 pairs of folds.
MOST_NESTED = 10
#: Largest number of rows that weights are fitted to. Folds that contain no such row are not left out. On letter, 8,192
#: rows take two thirds of the time of 16,000 (log loss .1032 against .1019).
MOST_ROWS = 8192
#: Classes with fewer rows are not held out.
_RARE = 64
#: Number of rows from which the networks of the forest are grown without the rows that weights are fitted to. Their
#: predictions of these rows are out-of-fold, so that no network is grown twice. With a sixteenth of 20,000 rows of
#: krkopt, the error was .7 points higher, and log losses on adult and sleep were equal. With this number of rows, at
#: most a 64th is left out.
HELD_OUT_FROM = 64 * MOST_ROWS

GrowNetwork = Callable[[EncodedData, int], ForestNetwork]


@dataclass(frozen=True, eq=False)
class FoldNetworks:
    """Networks grown without each fold, which compute the out-of-fold scores of the rows of the fold."""

    data: EncodedData  # all rows
    fold: IntArray  # (n_samples,) fold of each row
    members: list[list[ForestNetwork]]  # networks grown without each fold; later folds have none
    log_prior: FloatArray  # (n_folds, n_classes) log class frequencies without each fold
    n_levels: int  # 1 + the largest number of parents
    n_jobs: int | None

    @property
    def n_members(self) -> int:
        """Number of networks per fold."""
        return len(self.members[0])

    def base(self, rows: IntArray) -> FloatArray:
        """Return the log class frequencies without the fold of each row. Shape: (n_rows, n_classes)."""
        return self.log_prior[self.fold[rows]]

    def level_scores(self, rows: IntArray) -> FloatArray:
        """Compute the gains of each level, summed over features and averaged over networks.

        Shapes: rows: (n_rows,); result: (n_levels, n_rows, n_classes).
        """
        weight = np.full((self.data.n_features, self.n_levels), 1.0 / self.n_members)
        slot = np.broadcast_to(np.arange(self.n_levels), weight.shape)
        return self._scores(rows, weight, slot, self.n_levels)

    def level_probabilities(self, rows: IntArray) -> FloatArray:
        """Compute the average class probabilities of the networks when they use no parent, one parent, and so on.

        Shapes: rows: (n_rows,); result: (n_levels, n_rows, n_classes).
        """
        weight = np.ones((self.data.n_features, self.n_levels))
        slot = np.broadcast_to(np.arange(self.n_levels), weight.shape)
        out = np.zeros((self.n_levels, len(rows), self.data.n_classes))

        def score(members: list[ForestNetwork], places: IntArray) -> None:
            codes = np.ascontiguousarray(self.data.codes[:, rows[places]])
            base, mean = self.base(rows[places]), np.zeros((self.n_levels, len(places), self.data.n_classes))
            for member in members:
                scores = np.zeros(mean.shape)
                _add(member, codes, weight, slot, scores)
                for level, total in enumerate(np.cumsum(scores, axis=0) + base):
                    mean[level] += softmax(total)
            out[:, places] = mean / len(members)

        self._by_blocks(rows, self.n_levels, score)
        return out

    def feature_scores(self, rows: IntArray, level_weight: FloatArray) -> FloatArray:
        """Compute the gains of each feature, with a weight per level, averaged over networks.

        Shapes: rows: (n_rows,); level_weight: (n_levels,) or (n_features, n_levels); result: (n_features, n_rows,
        n_classes).
        """
        d = self.data.n_features
        weight = self._of_features(level_weight / self.n_members)
        slot = np.repeat(np.arange(d)[:, np.newaxis], self.n_levels, axis=1)
        return self._scores(rows, weight, slot, d)

    def family_scores(
        self, rows: IntArray, level_weight: FloatArray, likeliest: IntArray | None, shares: FloatArray | None
    ) -> AnyArray:
        """Compute the gains of each family of each network, with a weight per level, for groups of classes of each row.

        Without ``likeliest``, each class is a group of its own, in the order of the classes.

        Shapes: rows: (n_rows,); level_weight: (n_levels,) or (n_features, n_levels); likeliest: (n_rows, n_likeliest);
        shares: (n_rows, n_classes) or None without remainder; result: (n_members * n_features, n_rows, n_groups),
        float32.
        """
        d = self.data.n_features
        weight = self._of_features(level_weight)
        slot = np.repeat(np.arange(d)[:, np.newaxis], self.n_levels, axis=1)
        n_groups = self.data.n_classes if likeliest is None else likeliest.shape[1] + (shares is not None)
        out = np.empty((self.n_members * d, len(rows), n_groups), np.float32)

        def score(members: list[ForestNetwork], places: IntArray) -> None:
            codes = np.ascontiguousarray(self.data.codes[:, rows[places]])
            own, rest = None if likeliest is None else likeliest[places], None if shares is None else shares[places]
            for e, member in enumerate(members):
                scores = np.zeros((d, len(places), self.data.n_classes))
                _add(member, codes, weight, slot, scores)
                out[e * d : (e + 1) * d, places] = scores if own is None else grouped(scores, own, rest)

        self._by_blocks(rows, d, score)
        return out

    def total_scores(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        """Compute the weighted sum of the gains of all families of all networks.

        Shapes: rows: (n_rows,); weights: (n_members, n_features, n_levels); result: (n_rows, n_classes).
        """
        return self._scores(rows, weights, np.zeros(weights.shape[1:], np.intp), 1)[0]

    def _of_features(self, level_weight: FloatArray) -> FloatArray:
        """Return the weights of the levels of each feature as a contiguous array (n_features, n_levels)."""
        return np.ascontiguousarray(np.broadcast_to(level_weight, (self.data.n_features, self.n_levels)))

    def _scores(self, rows: IntArray, weights: FloatArray, slot: IntArray, n_slots: int) -> FloatArray:
        """Sum weighted gains over networks. The weights (n_features, n_levels) are shared or differ per network."""
        weights = np.broadcast_to(weights, (self.n_members, *slot.shape))
        out = np.empty((n_slots, len(rows), self.data.n_classes))

        def score(members: list[ForestNetwork], places: IntArray) -> None:
            codes = np.ascontiguousarray(self.data.codes[:, rows[places]])
            scores = np.zeros((n_slots, len(places), self.data.n_classes))
            for member, weight in zip(members, weights, strict=True):
                _add(member, codes, weight, slot, scores)
            out[:, places] = scores

        self._by_blocks(rows, n_slots, score)
        return out

    def _by_blocks(
        self, rows: IntArray, n_slots: int, function: Callable[[list[ForestNetwork], IntArray], None]
    ) -> None:
        """Call a function with the networks of each fold and a block of positions in ``rows`` of rows in this fold."""
        size = max(1, _ROOM // (n_slots * self.data.n_classes))
        for f, members in enumerate(self.members):
            own = np.flatnonzero(self.fold[rows] == f)
            in_blocks(lambda a, b, m=members, o=own: function(m, o[a:b]), len(own), size, self.n_jobs)  # type: ignore[misc]


Scores = Callable[[FoldNetworks, int, IntArray], Problem]


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Out-of-fold predictions of all rows, for fitting and validating weights.

    The rows of a fold validate weights that were fitted to the other folds. With ``inner`` networks, these weights are
    fitted to predictions of networks that were trained neither with the fold nor with the fold of the predicted row.
    Otherwise, they are fitted to predictions of ``outer`` networks, most of which were trained with the fold. The
    weights then seem better than they are, especially with few rows.
    """

    outer: FoldNetworks  # networks without the fold of a row
    inner: list[FoldNetworks]  # for each fold, networks without it and the fold of a row; or empty
    fold: IntArray  # (n_samples,) fold of each row for the validation of weights
    rows: IntArray  # (n_rows,) rows with out-of-fold predictions, in random order

    def problems(
        self, make: Scores, rows: IntArray, *, is_first: bool = False
    ) -> tuple[Problem, list[tuple[Problem, Problem]]]:
        """Return the problem of all rows, and for each fold the problems of the rows outside and inside the fold.

        ``make(networks, part, rows)`` returns a problem. It uses the earlier weights that were fitted without the fold
        ``part``, or to all rows if ``part`` is -1. If ``is_first``, there are no earlier weights, and problems do not
        depend on ``part``.
        """
        whole, fold = make(self.outer, -1, rows), self.fold[rows]
        if not self.inner:
            return whole, [(whole.take(fold != f), whole.take(fold == f)) for f in range(int(self.fold.max()) + 1)]
        outside = [make(view, f, rows[fold != f]) for f, view in enumerate(self.inner)]
        if is_first:
            return whole, [(own, whole.take(fold == f)) for f, own in enumerate(outside)]
        return whole, [(own, make(self.outer, f, rows[fold == f])) for f, own in enumerate(outside)]


def grow_out_of_fold(
    data: EncodedData,
    seeds: list[int],
    grow: GrowNetwork,
    *,
    n_folds: int,
    n_levels: int,
    is_nested: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> OutOfFold:
    """Grow the networks of a forest again without folds.

    ``grow(data, seed)`` returns a network. ``n_folds`` is at least 2. With many rows, only the first folds are left
    out. With ``is_nested`` and few rows, networks are also grown without each pair of folds.
    """
    fold = draw_folds(data.y, n_folds, rng)
    order = rng.permutation(data.n_samples)
    pairs = left_out_folds(data.n_samples, n_folds, is_nested=is_nested)
    n_used = sum(f == g for f, g in pairs)
    is_nested = len(pairs) > n_used
    parts = [data.take((fold != f) & (fold != g)) for f, g in pairs]
    grown = in_order(grow, [(part, (seed,)) for part in parts for seed in seeds], n_jobs)
    log_prior = np.array([log_frequencies(np.bincount(part.y, part.weights, part.n_classes)) for part in parts])

    def view(hidden: list[tuple[int, int]]) -> FoldNetworks:
        places = [pairs.index((min(pair), max(pair))) for pair in hidden]
        members = [grown[place * len(seeds) : (place + 1) * len(seeds)] for place in places]
        return FoldNetworks(data, fold, members, log_prior[places], n_levels, n_jobs)

    outer = view([(f, f) for f in range(n_used)])
    if is_nested:
        inner = [view([(f, g) for g in range(n_folds)]) for f in range(n_folds)]
        return OutOfFold(outer, inner, fold, order)
    rows = order[fold[order] < n_used][:MOST_ROWS]
    if n_used < n_folds:  # with many rows, every fold validates weights that were fitted to other rows
        fold = np.zeros_like(fold)
        fold[rows] = draw_folds(data.y[rows], n_folds, rng)
    return OutOfFold(outer, [], fold, rows)


def draw_held_out(y: IntArray, seed: int) -> IntArray | None:
    """Draw rows that are held out from all networks of a forest, or return None if there are few rows.

    No drawn row belongs to a rare class, which the networks might not learn without it.
    """
    if len(y) < HELD_OUT_FROM:
        return None
    candidates = np.flatnonzero(np.bincount(y)[y] >= _RARE)
    rows: IntArray = np.random.default_rng([seed, 1]).choice(candidates, min(MOST_ROWS, len(candidates)), replace=False)
    return rows


def predict_held_out(
    data: EncodedData,
    networks: list[ForestNetwork],
    rows: IntArray,
    *,
    n_folds: int,
    n_levels: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> OutOfFold:
    """Return the out-of-fold predictions of ``rows`` (n_rows,) by networks that were grown without them."""
    is_held_out = np.zeros(data.n_samples, np.bool_)
    is_held_out[rows] = True
    others = ~is_held_out
    log_prior = log_frequencies(np.bincount(data.y[others], data.weights[others], data.n_classes))
    outer = FoldNetworks(data, others.astype(np.intp), [networks], log_prior[np.newaxis], n_levels, n_jobs)
    fold = np.zeros(data.n_samples, np.intp)
    fold[rows] = draw_folds(data.y[rows], n_folds, rng)
    return OutOfFold(outer, [], fold, rows)


def left_out_folds(n_samples: int, n_folds: int, *, is_nested: bool) -> list[tuple[int, int]]:
    """Return the pairs of left-out folds: (f, f) for each fold, and with few rows also pairs of different folds.

    From ``HELD_OUT_FROM`` rows on, the list is empty: all networks are grown without the same held-out rows, so no fold
    is left out.
    """
    if n_samples >= HELD_OUT_FROM:
        return []
    n_used = min(n_folds, int(np.ceil(MOST_ROWS * n_folds / n_samples)))
    is_nested = is_nested and 2 < n_folds <= MOST_NESTED and n_samples <= NESTED_ROWS
    return [(f, g) for f, g in combinations_with_replacement(range(n_used), 2) if is_nested or f == g]


def _add(member: ForestNetwork, codes: AnyArray, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
    """Add the scores of a network, which may have fewer levels than other networks."""
    n = member.tables.n_levels
    if n < weight.shape[1]:
        weight, slot = np.ascontiguousarray(weight[:, :n]), np.ascontiguousarray(slot[:, :n])
    member.add_scores(codes, weight, slot, scores)
