"""Context tries of one network of a forest: grown, smoothed, and evaluated on rows.

A context is an assignment of values to the first parents of a family that occurs in at least ``min_samples`` rows (see
``counts/context_tries.py``). Its probabilities are smoothed toward the probabilities P_j-1 of the context with one
fewer parent: P_j = (n + m P_j-1) / (N + m). Thus log P_j(x | class) is a sum of *gains* log P_i - log P_i-1 over levels
i <= j, and a forest can weight the gains of each level.

Shapes: the tries of all families of a network are concatenated. A context has a gain for each pair of a value and a
class that occur in it (``gain``). All other values share one gain per class (``unseen``), and other classes have gain
0.

Invariant: a row descends until its value of the next parent is missing or has no context. Reference: Petitjean,
Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network classifiers using hierarchical Dirichlet
processes. Machine Learning 107, 2018, section 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.counts.context_tries import CountedContexts, as_index, level_starts
from tanlearn.forest.monotone_contexts import MonotoneFamilies, monotone_gains
from tanlearn.kernels.context_scores import add_gains, add_gains_by_level, add_gains_by_pair, mark_values
from tanlearn.kernels.context_smoothing import divide_by_above
from tanlearn.kernels.context_trie import ContextTrie
from tanlearn.kernels.mathematics import log_all

__all__ = ["IMPLIED", "ContextTables", "join_tables"]

#: Maximum size of the row numbers of families that are grown together, over all levels: 32 MiB, and as much for values.
_ROOM = 2**23
#: Gains are added up by pairs of a context and a value if there are this many rows and at most this many pairs per row
#: (one pair per row with fewer classes). Fewer rows do not compile the kernel of pairs, which saves a second.
_FEWEST_ROWS, _PAIRS_PER_ROW, _MANY_CLASSES = 512, 3, 8
#: Cached properties.
_COMPUTED = ("_value_sets", "_numbers_of_pairs")
#: Placeholder for the classes of the entries of a full trie, which equal the classes of its contexts.
IMPLIED = np.empty(0, np.uint16)


@dataclass(frozen=True, eq=False)
class ContextTables:
    """Gains of all contexts of a network, with the layout of :mod:`tanlearn.kernels.context_trie`."""

    n_states: IntArray  # (n_features,) number of values; codes of at least this are missing
    parents: IntArray  # (n_features, k) parents of each feature, the most important first, -1 for none
    root: IntArray  # (n_features,) root context of each family, ascending
    trie: ContextTrie  # full, without ``entry_class``
    gain: AnyArray  # (n_entries,) float32, log P_j - log P_j-1 of the values that occur in a context
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
        monotone: MonotoneFamilies | None = None,
    ) -> ContextTables:
        """Build and smooth the tries of a network, given the parents of each feature, the most important first.

        Codes of at least ``n_states`` are missing. A row is counted in a family if the value of the child is present,
        at all levels before the first missing parent. ``weights`` must be positive. ``smoothing`` is the positive m of
        all levels. ``monotone`` names families whose log odds of two classes are monotone in every context.

        Shapes: codes: (n_features, n_samples); n_states: (n_features,); y, weights: (n_samples,).
        """
        table = np.full((len(parents), max(map(len, parents))), -1)
        for child, own in enumerate(parents):
            table[child, : len(own)] = own
        # All weights get one type, so that kernels are compiled for one type only; sums of integers are exact.
        rows = codes, n_states, y, weights.astype(np.float64), n_classes
        # Grow many families together: one by one, each took 60 µs more than its counting.
        edges = np.arange(0, len(table), max(1, _ROOM // (codes.shape[1] * (table.shape[1] + 1))))
        if monotone is not None:  # these are grown one by one
            own = np.flatnonzero(monotone.directions)
            edges = np.unique(np.concatenate([edges, own, own[own + 1 < len(table)] + 1]))
        found = []
        for first, last in itertools.pairwise([*edges.tolist(), len(table)]):
            family = np.arange(first, last), table[first:last]
            grown = CountedContexts.grow(*rows, *family, min_samples=min_samples, is_full=True)
            if monotone is not None and monotone.directions[first]:
                how = int(monotone.n_ranked[first]), int(monotone.directions[first]), smoothing
                arrays = monotone_gains(grown, int(n_states[first]), *how)
                found.append(cls(n_states, table[first:last], grown.root, *arrays))
            else:
                found.append(cls.smooth(n_states, table[first:last], grown, smoothing))
        return join_tables(found)

    @classmethod
    def smooth(
        cls, n_states: IntArray, parents: IntArray, contexts: CountedContexts, smoothing: float
    ) -> ContextTables:
        """Compute the gains from the counts of full tries.

        ``smoothing`` is the parameter m (above 0), the same for all levels.
        """
        p, unseen = contexts.smooth(contexts.counts, np.full(len(contexts.trie.classes), smoothing))
        gain = np.empty(len(p))
        divide_by_above(p, contexts.links[0], gain)
        log_gain, log_unseen = np.empty_like(gain), np.empty_like(unseen)
        log_all(gain, log_gain)
        log_all(unseen, log_unseen)
        trie = contexts.trie._replace(entry_class=IMPLIED)
        return cls(n_states, parents, contexts.root, trie, log_gain.astype(np.float32), log_unseen.astype(np.float32))

    @property
    def n_levels(self) -> int:
        """Number of levels: one more than the largest number of parents."""
        return self.parents.shape[1] + 1

    @property
    def n_bytes(self) -> int:
        """Memory of the tries and their gains."""
        return sum(own.nbytes for own in (*self.trie, self.gain, self.unseen))

    def first_levels(self, n_levels: int) -> ContextTables:
        """Return the tries truncated to the first ``n_levels`` levels, which have at most ``n_levels - 1`` parents."""
        if n_levels >= self.n_levels:
            return self
        own = self.trie
        is_kept = np.zeros(len(own.branch), np.bool_)
        for root, stop in itertools.pairwise([*self.root.tolist(), len(own.branch)]):
            is_kept[root : level_starts(own.children, root, stop, n_levels)[-1]] = True
        number = np.append(0, np.cumsum(is_kept))  # of each context among those that are kept
        of_classes, of_values = (np.repeat(is_kept, np.diff(start)) for start in (own.class_start, own.value_start))
        of_entries = np.repeat(of_values, np.diff(own.entry_start))
        trie = ContextTrie(
            children=as_index(number[own.children[np.append(is_kept, True)]]),
            branch=own.branch[is_kept],
            class_start=_starts(np.diff(own.class_start)[is_kept]),
            classes=own.classes[of_classes],
            value_start=_starts(np.diff(own.value_start)[is_kept]),
            values=own.values[of_values],
            entry_start=_starts(np.diff(own.entry_start)[of_values]),
            entry_class=IMPLIED,
        )
        parents = np.ascontiguousarray(self.parents[:, : n_levels - 1])
        gains = self.gain[of_entries], self.unseen[of_classes]
        return ContextTables(self.n_states, parents, number[self.root], trie, *gains)

    def add_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Add the weighted gains of rows to ``scores`` in place.

        The gains of a level of a family are multiplied by its ``weight`` and added to the scores of its ``slot``. Codes
        of at least ``n_states`` are missing.

        Shapes: codes: (n_features, n_rows); weight, slot: (n_features, n_levels); scores: (n_slots, n_rows, n_classes).
        """
        n_rows, n_classes = codes.shape[1], scores.shape[2]
        tries = self.root, np.arange(len(self.root)), self.parents, self.trie, self._value_sets, self.gain, self.unseen
        n_pairs = self._numbers_of_pairs
        most_pairs = len(n_pairs) * n_rows * (_PAIRS_PER_ROW if n_classes >= _MANY_CLASSES else 1)
        is_by_pair = n_rows >= _FEWEST_ROWS and n_pairs.sum() <= most_pairs and bool((slot == slot[:, :1]).all())
        add = add_gains_by_pair if is_by_pair else add_gains_by_level
        sums = np.empty((1 + n_pairs.max() if is_by_pair else n_rows, n_classes))
        active, node = np.empty((2, n_rows), np.intp)
        add(codes, self.n_states, *tries, _read_only(weight), slot, active, node, sums, scores)

    def add_row_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Do the same as :meth:`add_scores` for a single row, in half of the time (20 features)."""
        tries = self.root, np.arange(len(self.root)), self.parents, self.trie, self.gain, self.unseen
        add_gains(codes, self.n_states, *tries, _read_only(weight), slot, np.empty(scores.shape[2]), scores)

    @cached_property
    def _numbers_of_pairs(self) -> IntArray:
        """Number of pairs of a context and a value in each family, (n_families,)."""
        return np.diff(self.trie.value_start[np.append(self.root, len(self.trie.branch))])

    @cached_property
    def _value_sets(self) -> AnyArray:
        """Sets of the values of all contexts, (n_contexts, 2) uint64."""
        own, sets = self.trie, np.empty((len(self.trie.branch), 2), np.uint64)
        mark_values(own.children, own.branch, own.value_start, own.values, self.root, sets)
        return sets

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without what predictions compute, because predictions must not change the pickle."""
        return {name: value for name, value in self.__dict__.items() if name not in _COMPUTED}


def _read_only(weight: FloatArray) -> FloatArray:
    """Return a read-only view of weights, so that kernels are compiled for one type only."""
    weight = weight.view()
    weight.flags.writeable = False
    return weight


def _starts(sizes: IntArray) -> IntArray:
    """Return the starts of concatenated lists, followed by the end of the last one."""
    return as_index(np.append(0, np.cumsum(sizes)))


def join_tables(tables: Sequence[ContextTables]) -> ContextTables:
    """Concatenate the families of tables whose features have the same values."""
    if len(tables) == 1:
        return tables[0]
    tries = [own.trie for own in tables]
    first = np.cumsum([0, *(len(trie.branch) for trie in tries[:-1])])
    lists = {}
    for name in ContextTrie._fields:
        found = [getattr(trie, name) for trie in tries]
        if name in ("children", "class_start", "value_start", "entry_start"):
            ends = np.cumsum([0, *(int(own[-1]) for own in found)])
            found = [*(own[:-1] + start for own, start in zip(found, ends[:-1], strict=True)), ends[-1:]]
            lists[name] = as_index(np.concatenate(found))
        else:
            lists[name] = np.concatenate(found)
    return ContextTables(
        tables[0].n_states,
        np.concatenate([own.parents for own in tables]),
        np.concatenate([own.root + start for own, start in zip(tables, first, strict=True)]),
        ContextTrie(**lists),
        np.concatenate([own.gain for own in tables]),
        np.concatenate([own.unseen for own in tables]),
    )
