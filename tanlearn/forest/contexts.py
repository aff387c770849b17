"""The contexts of the families of one network: counted, smoothed, and ready to score rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.kernels.context_tries import Contexts, Parts, add_context_scores, grow_contexts, smooth_contexts
from tanlearn.kernels.mathematics import log_all

__all__ = ["ContextTables"]


@dataclass(frozen=True, eq=False)
class ContextTables:
    """Gains of all contexts of all families, as :mod:`tanlearn.kernels.context_tries` describes them.

    Parameters
    ----------
    n_states : ndarray of shape (n_features,), intp
        Values of every feature; codes from there on are missing.
    parents : ndarray of shape (n_features, k), intp
        The parents of every feature, the most important first, -1 for none.
    root : ndarray of shape (n_features,), intp
        The context without parents of every family.
    contexts : Contexts
        What every context is split into, the classes and values that it has seen, and where its cells are.
    gain : ndarray of shape (n_cells,), float32
        log P_j - log P_j-1 of the values that a context has seen.
    unseen : ndarray of shape (n_context_classes,), float32
        The same of every other value.
    """

    n_states: IntArray
    parents: IntArray
    root: IntArray
    contexts: Contexts
    gain: AnyArray
    unseen: AnyArray

    @classmethod
    def grow(
        cls,
        codes: Codes,
        n_states: IntArray,
        y: IntArray,
        weights: AnyArray,
        n_classes: int,
        parents: Sequence[IntArray],
        *,
        smoothing: float,
        min_samples: int,
    ) -> ContextTables:
        """Count the contexts of a network.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_samples), uint8 or uint16
            Codes from ``n_states`` on are missing. A row counts for a family if its child is there, down to the first
            parent that is missing.
        n_states : ndarray of shape (n_features,), intp
            Values of every feature.
        y : ndarray of shape (n_samples,), intp
            Classes.
        weights : ndarray of shape (n_samples,), int64 or float64
            Positive.
        n_classes : int
            Number of classes.
        parents : sequence of ndarray
            Of every feature, the most important first.
        smoothing : float
            What m is on every level, above 0.
        min_samples : int
            Rows that a context has at least.

        Returns
        -------
        ContextTables
        """
        families, weights = [], weights.astype(np.float64)  # one type to compile; sums of integers are exact
        for child, own in enumerate(parents):
            families.append(_grow_family(codes, n_states, y, weights, n_classes, child, own, smoothing, min_samples))
        table = np.full((len(parents), max(map(len, parents))), -1)
        for child, own in enumerate(parents):
            table[child, : len(own)] = own
        found = [family.contexts for family in families]
        n_contexts = np.array([len(own.branch) for own in found])
        contexts = Contexts(
            _joined([own.children for own in found]),
            np.concatenate([own.branch for own in found]),
            _joined([own.class_start for own in found]),
            np.concatenate([own.classes for own in found]),
            _joined([own.value_start for own in found]),
            np.concatenate([own.values for own in found]),
            _joined([own.cell_start for own in found]),
        )
        gain, unseen = _logs([family.ratio for family in families]), _logs([family.unseen for family in families])
        return cls(n_states, table, np.cumsum(n_contexts) - n_contexts, contexts, gain, unseen)

    @property
    def n_levels(self) -> int:
        """Levels of a family: one more than the most parents."""
        return self.parents.shape[1] + 1

    def add_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Add the weighted gains of rows to their scores.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_rows), uint8 or uint16
            Codes from ``n_states`` on are missing.
        weight : ndarray of shape (n_features, n_levels), float64
            What gains of every level of every family are multiplied by.
        slot : ndarray of shape (n_features, n_levels), intp
            Which of the scores they are added to.
        scores : ndarray of shape (n_slots, n_rows, n_classes), float64
            Changed in place.
        """
        child = np.arange(len(self.root))
        tries = self.root, child, self.parents, self.contexts, self.gain, self.unseen
        add_context_scores(codes, self.n_states, *tries, weight, slot, scores)


@dataclass(frozen=True, eq=False)
class _Family:
    """The contexts of one family, and ratios of probabilities of one level and the one before."""

    contexts: Contexts
    ratio: FloatArray
    unseen: FloatArray


def _grow_family(
    codes: Codes,
    n_states: IntArray,
    y: IntArray,
    weights: AnyArray,
    n_classes: int,
    child: int,
    parents: IntArray,
    smoothing: float,
    min_samples: int,
) -> _Family:
    """Return one family."""
    x, n_values, n_parents = codes[child], int(n_states[child]), len(parents)
    rows = np.flatnonzero(x < n_values)
    samples = np.empty((n_parents + 1, len(rows)), np.int32)
    samples[0] = rows
    most = 1 + n_parents * (len(rows) // min_samples)
    parts = Parts(samples, *np.zeros((4, most), np.intp))
    parts.end[0] = len(rows)
    room = n_parents * len(rows)
    own = Contexts(
        np.empty(most + 1, np.intp),
        np.empty(most, np.uint16),
        np.empty(most + 1, np.intp),
        np.empty(n_classes + room, np.uint16),
        np.empty(most + 1, np.intp),
        np.empty(n_values + room, np.uint16),
        np.empty(most + 1, np.intp),
    )
    seen = np.zeros(n_classes, np.bool_), np.zeros(n_values, np.bool_)
    count = np.empty(int(n_states[parents].max(initial=0)), np.intp)
    n = grow_contexts(codes, n_states, y, child, parents, min_samples, parts, *seen, count, own)
    own = Contexts(
        own.children[: n + 1],
        own.branch[:n],
        own.class_start[: n + 1],
        own.classes[: own.class_start[n]],
        own.value_start[: n + 1],
        own.values[: own.value_start[n]],
        own.cell_start[: n + 1],
    )
    cells, ratio, unseen = np.empty(own.cell_start[n]), np.empty(own.cell_start[n]), np.empty(len(own.classes))
    scratch = np.empty(n_classes, np.intp), np.empty(n_values, np.intp), np.empty(n_classes)
    smooth_contexts(x, y, weights, smoothing, n, parts, own, *scratch, cells, ratio, unseen)
    return _Family(own, ratio, unseen)


def _joined(starts: Sequence[IntArray]) -> IntArray:
    """Return where pieces of lists begin after the lists are put one behind the other, and the end of all."""
    ends = np.cumsum([own[-1] for own in starts])
    pieces = [own[:-1] + end - own[-1] for own, end in zip(starts, ends, strict=True)]
    return np.append(np.concatenate(pieces), ends[-1])


def _logs(ratios: Sequence[FloatArray]) -> AnyArray:
    """Return the logarithms of all levels, one behind the other."""
    ratio = np.concatenate(ratios)
    log_all(ratio, ratio)
    return ratio.astype(np.float32)
