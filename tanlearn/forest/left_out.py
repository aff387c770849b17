"""Out-of-fold scores of a forest, by networks grown again from the same seeds without each fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tanlearn._threads import in_blocks
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.forest.class_groups import grouped
from tanlearn.forest.forest import softmax
from tanlearn.forest.member import Member

__all__ = ["LeftOut"]

#: Scores per block. With fewer rows, contexts are loaded into the cache more often; with more, scores do not fit in it.
#: 1,024 rows of letter (3 MiB) and 256 of digits (1 MiB) were fastest; sizes between them were at most a sixth slower.
_ROOM = 2**18


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Networks grown without each fold, and the out-of-fold scores of its rows."""

    data: EncodedData  # all rows
    fold: IntArray  # (n_samples,) fold of each row
    members: list[list[Member]]  # networks grown without each fold; later folds have none
    log_prior: FloatArray  # (n_folds, n_classes) log class frequencies without each fold
    n_levels: int  # 1 + the largest number of parents
    n_jobs: int | None

    @property
    def n_members(self) -> int:
        """Number of networks per fold."""
        return len(self.members[0])

    def base(self, rows: IntArray) -> FloatArray:
        """Return the log class frequencies without the fold of each row, (n_rows, n_classes)."""
        return self.log_prior[self.fold[rows]]

    def level_scores(self, rows: IntArray) -> FloatArray:
        """Compute the gains of each level, summed over features and averaged over networks.

        Shapes: rows: (n_rows,); result: (n_levels, n_rows, n_classes).
        """
        weight = np.full((self.data.n_features, self.n_levels), 1.0 / self.n_members)
        slot = np.broadcast_to(np.arange(self.n_levels), weight.shape)
        return self._scores(rows, weight, slot, self.n_levels)

    def level_probabilities(self, rows: IntArray) -> FloatArray:
        """Compute the average class probabilities of the networks, by number of parents used: none, one, and so on.

        Shapes: rows: (n_rows,); result: (n_levels, n_rows, n_classes).
        """
        weight = np.ones((self.data.n_features, self.n_levels))
        slot = np.broadcast_to(np.arange(self.n_levels), weight.shape)
        out = np.zeros((self.n_levels, len(rows), self.data.n_classes))

        def score(members: list[Member], places: IntArray) -> None:
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

        Shapes: rows: (n_rows,); level_weight: (n_levels,); result: (n_features, n_rows, n_classes).
        """
        d = self.data.n_features
        weight = np.tile(level_weight / self.n_members, (d, 1))
        slot = np.repeat(np.arange(d)[:, np.newaxis], self.n_levels, axis=1)
        return self._scores(rows, weight, slot, d)

    def family_scores(
        self, rows: IntArray, level_weight: FloatArray, likeliest: IntArray, shares: FloatArray | None
    ) -> AnyArray:
        """Compute the gains of each family of each network, with a weight per level, for groups of classes of each row.

        Shapes: rows: (n_rows,); level_weight: (n_levels,); likeliest: (n_rows, n_likeliest); shares: (n_rows,
        n_classes) or None without remainder; result: (n_members * n_features, n_rows, n_groups), float32.
        """
        d = self.data.n_features
        weight = np.tile(level_weight, (d, 1))
        slot = np.repeat(np.arange(d)[:, np.newaxis], self.n_levels, axis=1)
        n_groups = likeliest.shape[1] + (shares is not None)
        out = np.empty((self.n_members * d, len(rows), n_groups), np.float32)

        def score(members: list[Member], places: IntArray) -> None:
            codes = np.ascontiguousarray(self.data.codes[:, rows[places]])
            own, rest = likeliest[places], None if shares is None else shares[places]
            for e, member in enumerate(members):
                scores = np.zeros((d, len(places), self.data.n_classes))
                _add(member, codes, weight, slot, scores)
                out[e * d : (e + 1) * d, places] = grouped(scores, own, rest)

        self._by_blocks(rows, d, score)
        return out

    def total_scores(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        """Compute the weighted sum of the gains of all families of all networks.

        Shapes: rows: (n_rows,); weights: (n_members, n_features, n_levels); result: (n_rows, n_classes).
        """
        return self._scores(rows, weights, np.zeros(weights.shape[1:], np.intp), 1)[0]

    def _scores(self, rows: IntArray, weights: FloatArray, slot: IntArray, n_slots: int) -> FloatArray:
        """Sum weighted gains over networks, with weights (n_features, n_levels), shared or per network."""
        weights = np.broadcast_to(weights, (self.n_members, *slot.shape))
        out = np.empty((n_slots, len(rows), self.data.n_classes))

        def score(members: list[Member], places: IntArray) -> None:
            codes = np.ascontiguousarray(self.data.codes[:, rows[places]])
            scores = np.zeros((n_slots, len(places), self.data.n_classes))
            for member, weight in zip(members, weights, strict=True):
                _add(member, codes, weight, slot, scores)
            out[:, places] = scores

        self._by_blocks(rows, n_slots, score)
        return out

    def _by_blocks(self, rows: IntArray, n_slots: int, function: Callable[[list[Member], IntArray], None]) -> None:
        """Call a function with the networks of each fold and positions in ``rows`` of rows of this fold, in blocks."""
        size = max(1, _ROOM // (n_slots * self.data.n_classes))
        for f, members in enumerate(self.members):
            own = np.flatnonzero(self.fold[rows] == f)
            in_blocks(lambda a, b, m=members, o=own: function(m, o[a:b]), len(own), size, self.n_jobs)  # type: ignore[misc]


def _add(member: Member, codes: AnyArray, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
    """Add the scores of a network that may have fewer levels than others."""
    n = member.tables.n_levels
    member.add_scores(codes, np.ascontiguousarray(weight[:, :n]), np.ascontiguousarray(slot[:, :n]), scores)
