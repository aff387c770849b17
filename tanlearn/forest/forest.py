"""Forest of networks. Each family has one weight per level, and level j adds the j-th parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._threads import in_blocks, number_of_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.forest.forest_network import ForestNetwork
from tanlearn.forest.joined_networks import JoinedNetworks
from tanlearn.forest.serialization import read_state, to_state
from tanlearn.kernels.mathematics import exp_all, log_all
from tanlearn.models.model import Model

__all__ = ["Forest", "softmax"]

#: Smallest and largest number of rows per block. Gains of a family are added up once per block (4,000 rows of letter
#: take 279 ms in blocks of 512 rows and 65 ms in one block), but each thread needs a block.
_FEWEST, _MOST = 512, 4096


@dataclass(frozen=True, eq=False)
class Forest(Model):
    """Forest of networks, whose weighted scores are added or whose probabilities are averaged."""

    members: list[ForestNetwork]
    log_prior: FloatArray  # (n_classes,) added to the scores of each group
    log_frequency: FloatArray  # (n_classes,) log class frequencies in training
    shift: FloatArray  # (n_classes,) added to log probabilities if class frequencies differ from training
    weights: FloatArray  # (n_members, n_features, n_levels) weight of the gains of each level of each family
    label_noise: float  # assumed fraction of rows with a uniformly random class, in [0, 1)
    is_average: bool  # whether probabilities of networks are averaged; otherwise their scores are added
    # (n_features,) increase of the out-of-fold log loss in nats if a feature is left out; None if it is unknown
    importances: FloatArray | None = None

    def numbers_of_values(self) -> IntArray:
        """Return the number of values per feature before networks merge them. Shape: (n_features,)."""
        n_states: IntArray = np.diff(self.members[0].cuts.start) - 1
        return n_states

    @property
    def n_parameters(self) -> int:
        """Number of parameters: all numbers that predictions add up."""
        return sum(member.tables.gain.size + member.tables.unseen.size for member in self.members)

    @property
    def groups(self) -> list[list[tuple[ForestNetwork, FloatArray]]]:
        """Groups of networks with their weights: one group in all, or one per network if probabilities are averaged."""
        pairs = list(zip(self.members, self.weights, strict=True))
        return [[pair] for pair in pairs] if self.is_average else [pairs]

    def noiseless_proba(self, codes: Codes) -> FloatArray:
        """Compute the class probabilities before label noise and shift, averaged over groups.

        Shapes: codes: (n_features, n_rows), of the encoder; result: (n_rows, n_classes).
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

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Compute unnormalized log probabilities of the classes, with label noise and shift.

        The result does not depend on ``n_jobs``. Only the device "cpu" is supported.

        Shapes: codes: (n_features, n_rows), of the encoder; result: (n_rows, n_classes).
        """
        n_rows = codes.shape[1]
        out = np.empty((n_rows, len(self.log_prior)))

        def score(first: int, last: int) -> None:
            p = self.noiseless_proba(np.ascontiguousarray(codes[:, first:last]))
            out[first:last] = self._log_mixture(p)

        share = -(-n_rows // number_of_threads(n_jobs))
        in_blocks(score, n_rows, min(max(share, _FEWEST), _MOST), n_jobs)
        return out

    def _log_mixture(self, p: FloatArray) -> FloatArray:
        """Mix label noise into probabilities (n_rows, n_classes) in place. Return their logarithms with the shift."""
        p *= 1.0 - self.label_noise
        p += self.label_noise / p.shape[1]
        log_p = np.empty(p.shape)
        log_all(p.ravel(), log_p.ravel())
        log_p += self.shift
        return log_p

    def row_scorer(self) -> Callable[[IntArray], FloatArray]:
        """Return a function that computes the log joint of a row of codes from a copy of all networks."""
        rule = {"is_average": self.is_average}
        joined = JoinedNetworks(self.members, self.weights, self.numbers_of_values(), **rule)

        def score(row: IntArray) -> FloatArray:
            p = softmax(joined.scores(row, self.log_prior)).sum(axis=0, keepdims=True)
            p /= len(self.members) if self.is_average else 1
            return self._log_mixture(p)[0]

        return score

    def with_log_prior(self, log_prior: FloatArray) -> Forest:
        """Return a copy that uses ``log_prior`` (n_classes,) instead of the log class frequencies in training."""
        return replace(self, shift=log_prior - self.log_frequency)

    def write_to(self, writer: Any) -> Any:
        """Call the method ``forest`` of an export, and return its result."""
        return writer.forest(self)

    def to_state(self) -> dict[str, Any]:
        """Return all fields as arrays. The arrays of single networks are concatenated, and their sizes are stored."""
        return to_state(self)

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> Forest:
        """Restore a forest from the output of :meth:`to_state`; raise ValueError for invalid values."""
        return cls(**read_state(state, n_states, n_classes))


def softmax(scores: AnyArray) -> AnyArray:
    """Compute the softmax over the last axis of scores (n_rows, n_classes) in place and return it."""
    scores -= scores.max(axis=1, keepdims=True)
    exp_all(scores.ravel(), scores.ravel())
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
