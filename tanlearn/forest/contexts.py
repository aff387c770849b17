"""Context tries of one network of a forest: counted, smoothed, and evaluated on rows.

A context of level j of a family is the set of rows that agree in the first j parents. The contexts of a family form a
trie: the root is the context without parents, and the children of a context split it by the values of the next parent.
Contexts of fewer than ``min_samples`` rows are not created. The probabilities of a context are those of the context
above it, corrected by its own counts (hierarchical smoothing), P_j = (n + m P_j-1) / (N + m). So log P_j(x | class) is
a sum of *gains* log P_i - log P_i-1 over levels i <= j, and a forest can weight the gains of each level.

Shapes: all tries of a network are concatenated, family after family, each level by level, so the children of context g
are ``children[g]:children[g + 1]``. Context g has gains of shape (n_values, n_classes) from ``cell_start[g]`` on, for
the values and classes that it has seen; other values share one gain per class, ``unseen``, and other classes gain 0.

Invariant: a row descends until its value of the next parent is missing or has no context. The kernels are in
``kernels/context_tries.py``. Reference: Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian
network classifiers using hierarchical Dirichlet processes. Machine Learning 107, 2018, section 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.kernels.context_tries import (
    Contexts,
    Parts,
    add_context_scores,
    count_contexts,
    grow_contexts,
    smooth_contexts,
)
from tanlearn.kernels.mathematics import log_all

__all__ = ["ContextTables"]

#: Row numbers of all levels of the families that are built together, at most: 64 MiB.
_ROOM = 2**24


@dataclass(frozen=True, eq=False)
class ContextTables:
    """Gains of all contexts of a network, with the layout of :mod:`tanlearn.kernels.context_tries`."""

    n_states: IntArray  # (n_features,) number of values; codes of at least this are missing
    parents: IntArray  # (n_features, k) parents of each feature, the most important first, -1 for none
    root: IntArray  # (n_features,) root context of each family, ascending
    contexts: Contexts  # children of each context, the classes and values that it has seen, and its offsets
    gain: AnyArray  # (n_cells,) float32, log P_j - log P_j-1 of the values that a context has seen
    unseen: AnyArray  # (n_context_classes,) float32, the same for all other values

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
        """Build and smooth the tries of a network, given the parents of each feature, the most important first.

        Codes of at least ``n_states`` are missing. A row counts in a family if its child is present, down to the first
        missing parent. ``weights`` must be positive. ``smoothing`` is m of all levels, positive.

        Shapes: codes: (n_features, n_samples); n_states: (n_features,); y, weights: (n_samples,).
        """
        table = np.full((len(parents), max(map(len, parents))), -1)
        for child, own in enumerate(parents):
            table[child, : len(own)] = own
        rows = codes, n_states, y, weights.astype(np.float64)  # a single type to compile; sums of integers are exact
        # Build many families together: one by one, each took 60 µs more than its counting.
        edges = np.arange(0, len(table), max(1, _ROOM // (codes.shape[1] * (table.shape[1] + 1))))
        grown = [_grow(*rows, n_classes, own, table[own], smoothing, min_samples) for own in _spans(edges, len(table))]
        n_contexts = np.cumsum([0, *(len(own.contexts.branch) for own in grown[:-1])])
        root = np.concatenate([own.root + first for own, first in zip(grown, n_contexts, strict=True)])
        found = [own.contexts for own in grown]
        contexts = Contexts(
            _joined([own.children for own in found]),
            np.concatenate([own.branch for own in found]),
            _joined([own.class_start for own in found]),
            np.concatenate([own.classes for own in found]),
            _joined([own.value_start for own in found]),
            np.concatenate([own.values for own in found]),
            _joined([own.cell_start for own in found]),
        )
        gain, unseen = _logs([own.ratio for own in grown]), _logs([own.unseen for own in grown])
        return cls(n_states, table, root, contexts, gain, unseen)

    @property
    def n_levels(self) -> int:
        """Number of levels: one more than the largest number of parents."""
        return self.parents.shape[1] + 1

    def with_counts(self, cells: FloatArray, smoothing: float) -> ContextTables:
        """Return tries with other counts in the same contexts; ``cells`` (n_cells,) is overwritten."""
        own, n_classes = self.contexts, int(self.contexts.class_start[1])
        ratio, unseen = np.empty(len(cells)), np.empty(len(own.classes))
        scratch = np.empty(n_classes, np.intp), np.empty(n_classes)
        smooth_contexts(smoothing, self.origin, own, *scratch, cells, ratio, unseen)
        return replace(self, gain=_logs([ratio]), unseen=_logs([unseen]))

    @property
    def origin(self) -> IntArray:
        """Context above each context, (n_contexts,); a root is its own."""
        n_contexts = len(self.contexts.branch)
        origin = np.append(0, np.repeat(np.arange(n_contexts), np.diff(self.contexts.children)))
        origin[self.root] = self.root
        return origin

    def first_levels(self, n_levels: int) -> ContextTables:
        """Return the tries truncated to the first levels, of at most ``n_levels - 1`` parents."""
        if n_levels >= self.n_levels:
            return self
        own, origin, level = self.contexts, self.origin, np.zeros(len(self.contexts.branch), np.intp)
        for depth in range(1, self.n_levels):
            level[(level[origin] == depth - 1) & (origin < np.arange(len(origin)))] = depth
        is_kept = level < n_levels
        ends = {name: np.diff(getattr(own, name)) for name in ("class_start", "value_start", "cell_start")}
        of_classes, of_values, of_cells = (np.repeat(is_kept, size) for size in ends.values())
        contexts = Contexts(
            children=np.append(0, np.cumsum(is_kept))[own.children[np.append(is_kept, True)]],
            branch=own.branch[is_kept],
            classes=own.classes[of_classes],
            values=own.values[of_values],
            **{name: np.append(0, np.cumsum(size[is_kept])) for name, size in ends.items()},
        )
        parents = np.ascontiguousarray(self.parents[:, : n_levels - 1])
        root = np.cumsum(is_kept)[self.root] - 1
        return ContextTables(self.n_states, parents, root, contexts, self.gain[of_cells], self.unseen[of_classes])

    def add_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Add the weighted gains of rows to ``scores`` in place.

        The gains of a level of a family are multiplied by its ``weight`` and added to the scores of its ``slot``. Codes
        of at least ``n_states`` are missing.

        Shapes: codes: (n_features, n_rows); weight, slot: (n_features, n_levels); scores: (n_slots, n_rows, n_classes).
        """
        child = np.arange(len(self.root))
        tries = self.root, child, self.parents, self.contexts, self.gain, self.unseen
        add_context_scores(codes, self.n_states, *tries, weight, slot, scores)


@dataclass(frozen=True, eq=False)
class _Grown:
    """Tries of some families, with ratios P_j / P_j-1 in place of gains."""

    root: IntArray
    contexts: Contexts
    ratio: FloatArray
    unseen: FloatArray


def _grow(
    codes: Codes,
    n_states: IntArray,
    y: IntArray,
    weights: AnyArray,
    n_classes: int,
    child: IntArray,
    parents: IntArray,
    smoothing: float,
    min_samples: int,
) -> _Grown:
    """Build the tries of some families."""
    n_rows, n_parents = codes.shape[1], (parents >= 0).sum(axis=1)
    n_families, depth, most_values = len(child), int(n_parents.max(initial=0)), int(n_states.max())
    most = n_families + int(n_parents.sum()) * (n_rows // min_samples)
    room = int(n_parents.sum()) * n_rows
    parts = Parts(np.empty((depth + 1, n_families * n_rows), np.int32), *np.empty((4, most), np.intp))
    own = Contexts(
        np.empty(most + 1, np.intp),
        np.empty(most, np.uint16),
        np.empty(most + 1, np.intp),
        np.empty(n_families * n_classes + room, np.uint16),
        np.empty(most + 1, np.intp),
        np.empty(int(n_states[child].sum()) + room, np.uint16),
        np.empty(most + 1, np.intp),
    )
    seen = np.zeros(n_classes, np.bool_), np.zeros(most_values, np.bool_)
    count, root = np.empty(most_values, np.intp), np.empty(n_families, np.intp)
    rows = codes, n_states, y, child, np.ascontiguousarray(parents)
    n = grow_contexts(*rows, min_samples, parts, *seen, count, own, root)
    own = Contexts(  # copies, since the allocated arrays are much larger
        own.children[: n + 1].copy(),
        own.branch[:n].copy(),
        own.class_start[: n + 1].copy(),
        own.classes[: own.class_start[n]].copy(),
        own.value_start[: n + 1].copy(),
        own.values[: own.value_start[n]].copy(),
        own.cell_start[: n + 1].copy(),
    )
    cells, ratio, unseen = np.empty(own.cell_start[n]), np.empty(own.cell_start[n]), np.empty(len(own.classes))
    class_place, value_place = np.empty(n_classes, np.intp), np.empty(most_values, np.intp)
    count_contexts(codes, y, weights, child, root, parts, own, class_place, value_place, cells)
    smooth_contexts(smoothing, parts.origin, own, class_place, np.empty(n_classes), cells, ratio, unseen)
    return _Grown(root, own, ratio, unseen)


def _spans(edges: IntArray, end: int) -> list[IntArray]:
    """Return the integers from each edge to the next."""
    return [np.arange(a, b) for a, b in itertools.pairwise([*edges.tolist(), end])]


def _joined(starts: Sequence[IntArray]) -> IntArray:
    """Concatenate arrays of starts, each with its end, into starts in the concatenated lists, with their end."""
    ends = np.cumsum([own[-1] for own in starts])
    pieces = [own[:-1] + end - own[-1] for own, end in zip(starts, ends, strict=True)]
    return np.append(np.concatenate(pieces), ends[-1])


def _logs(ratios: Sequence[FloatArray]) -> AnyArray:
    """Concatenate ratios and take logarithms, as float32."""
    ratio = np.concatenate(ratios)
    log_all(ratio, ratio)
    return ratio.astype(np.float32)
