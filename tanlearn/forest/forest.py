"""A forest: its members, and how much each level of each family of each counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tanlearn._threads import in_blocks, number_of_threads
from tanlearn._typing import AnyArray, Codes, FloatArray
from tanlearn.forest.member import Member
from tanlearn.kernels.mathematics import exp_all, log_all

__all__ = ["Forest", "softmax"]

#: Rows a block at least and at most: a family's contexts stay in the cache while rows go through them (4,000 rows of
#: letter: 190 ms by 512, 118 by 4,096), but every thread should have some.
_FEWEST, _MOST = 512, 4096


@dataclass(frozen=True, eq=False)
class Forest:
    """Members, weighted one by one, or averaged."""

    members: list[Member]  # Networks
    log_prior: FloatArray  # (n_classes,): What is added to the scores of all rows, or of every member
    log_frequency: FloatArray  # (n_classes,): Log-probabilities of the classes in training
    # (n_classes,): What is added to logarithms of probabilities: where classes are more or less frequent than in
    # training
    shift: FloatArray
    weights: FloatArray  # (n_members, n_features, n_levels): Of every level of every family
    doubt: float  # Share of rows whose class is anybody's guess
    is_average: bool  # Whether members make probabilities each, which are averaged; otherwise their scores are added
    # (n_features,): What leaving a feature out costs rows that are left out of training, in nats; None where that is
    # not known
    importances: FloatArray | None = None

    @property
    def groups(self) -> list[list[tuple[Member, FloatArray]]]:
        """Members and their weights: those whose scores are added are together, of an average each is by itself."""
        pairs = list(zip(self.members, self.weights, strict=True))
        return [[pair] for pair in pairs] if self.is_average else [pairs]

    def undoubted_proba(self, codes: Codes) -> FloatArray:
        """Return the probabilities of the classes, the mean over groups, before doubt and shift.

        Shapes: codes: (n_features, n_rows); result: (n_rows, n_classes).
        """
        mean = np.zeros((codes.shape[1], len(self.log_prior)))
        slots = np.zeros(self.weights.shape[1:], np.intp)
        for group in self.groups:
            scores = np.empty((1, *mean.shape))
            scores[:] = self.log_prior
            for member, weight in group:
                member.add_scores(codes, weight, slots, scores)
            mean += softmax(scores[0])
        return mean / len(self.groups)

    def log_scores(self, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
        """Return the logarithms of what is proportional to the probabilities of the classes.

        Shapes: codes: (n_features, n_rows); result: (n_rows, n_classes).
        """
        n_rows, n_classes = codes.shape[1], len(self.log_prior)
        out = np.empty((n_rows, n_classes))

        def score(first: int, last: int) -> None:
            p = self.undoubted_proba(np.ascontiguousarray(codes[:, first:last]))
            p *= 1.0 - self.doubt
            p += self.doubt / n_classes
            log_all(p.ravel(), p.ravel())
            out[first:last] = p + self.shift

        share = -(-n_rows // number_of_threads(n_jobs))
        in_blocks(score, n_rows, min(max(share, _FEWEST), _MOST), n_jobs)
        return out


def softmax(scores: AnyArray) -> AnyArray:
    """Return probabilities in proportion to exponentials.

    Shapes: scores: (n_rows, n_classes); result: (n_rows, n_classes).
    """
    scores -= scores.max(axis=1, keepdims=True)
    exp_all(scores.ravel(), scores.ravel())
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
