"""Tries of contexts, grown from rows, whose counts are smoothed from level to level.

A context of level j of a family is an assignment of values to the first j parents. The contexts of a family form a
trie: the root is the context without parents, and the children of a context split its rows by the values of the next
parent. A context has entries, pairs of a value of the family's feature and a class, with counts. Back-off networks
(``models/back_off.py``) and forests (``forest/context_tables.py``) both compute their predictions from such tries.
Forests need fast predictions. They use *full* tries, in which each value of a context has entries for all classes of
the context. Back-off networks have many more and smaller contexts. Their tries have entries only for pairs that occur
(letter with two parents per feature: 122,000 entries instead of 415,000).

Shapes: the arrays of :class:`~tanlearn.kernels.context_trie.ContextTrie`, for N contexts, R pairs of context and class,
and L entries; counts (L,). The families of a trie are concatenated, each level by level.

Invariant: the rows, values and classes of a context are subsets of the rows, values and classes of the context above
it. Reference: Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network classifiers using
hierarchical Dirichlet processes. Machine Learning 107, 2018, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.kernels.context_smoothing import smooth_entries
from tanlearn.kernels.context_trie import ContextTrie, Samples, count_entries, grow_contexts, link_entries

__all__ = ["CountedContexts", "as_index", "level_starts"]


@dataclass(frozen=True, eq=False)
class CountedContexts:
    """Contexts of some families with the counts of their entries."""

    root: IntArray  # (n_families,) root of each family, ascending
    trie: ContextTrie
    counts: AnyArray  # (L,) int64 or float64; 0 only in full tries

    @classmethod
    def grow(
        cls,
        codes: Codes,
        n_states: IntArray,
        y: IntArray,
        weights: AnyArray,
        n_classes: int,
        child: IntArray,
        parents: IntArray,
        *,
        min_samples: int = 1,
        is_full: bool = False,
    ) -> CountedContexts:
        """Grow the contexts of at least ``min_samples`` rows, and count the rows.

        A row is counted in a family if the value of the child is present, at all levels before the first missing
        parent. Codes of at least ``n_states`` are missing. ``weights`` must be positive.

        Shapes: codes: (n_features, n_samples); n_states: (n_features,); y, weights: (n_samples,); child: (n_families,);
        parents: (n_families, k), -1 for none.
        """
        n_rows, n_parents = codes.shape[1], (parents >= 0).sum(axis=1)
        # Weights are read in the order of contexts: a single weight stays in the cache.
        y = y.astype(np.uint16)
        if n_rows > 0 and (weights == weights[0]).all():
            weights = weights[:1]
        n_families, most_values = len(child), int(n_states.max())
        most = n_families + int(n_parents.sum()) * (n_rows // min_samples)
        room = int(n_parents.sum()) * n_rows
        order = np.empty((int(n_parents.max(initial=0)) + 1, n_families * n_rows), np.int32)
        samples = Samples(order, np.empty(order.shape, np.uint32), *np.empty((3, most), np.intp))
        root = np.empty(n_families, np.intp)
        is_found = np.zeros(max(most_values, n_classes), np.bool_)
        end, values = np.empty(most_values, np.intp), np.empty(n_rows, np.uint16)
        scratch = is_found, np.empty(most_values, np.uint16), end, values
        trie = ContextTrie(
            children=np.empty(most + 1, np.intp),
            branch=np.empty(most, np.uint16),
            class_start=np.empty(most + 1, np.intp),
            classes=np.empty(n_families * n_classes + room, np.uint16),
            value_start=np.empty(most + 1, np.intp),
            values=np.empty(int(n_states[child].sum()) + room, np.uint16),
            entry_start=np.empty(0, np.intp),
            entry_class=np.empty(0, np.uint16),
        )
        rows = codes, n_states, y, n_classes
        n = grow_contexts(*rows, child, parents, min_samples, samples, *scratch, trie, root)
        class_start, value_start = trie.class_start[: n + 1], trie.value_start[: n + 1]
        n_entries = room + n_families * n_rows
        if is_full:
            n_entries = int((class_start[1:] - class_start[:-1]) @ (value_start[1:] - value_start[:-1]))
        trie = ContextTrie(  # copies, since the allocated arrays are much larger
            children=as_index(trie.children[: n + 1]),
            branch=trie.branch[:n].copy(),
            class_start=as_index(class_start),
            classes=trie.classes[: class_start[n]].copy(),
            value_start=as_index(value_start),
            values=trie.values[: value_start[n]].copy(),
            entry_start=np.empty(int(value_start[n]) + 1, np.int32 if n_entries < 2**31 else np.int64),
            entry_class=np.empty(n_entries, np.uint16),
        )
        counts, shape = np.empty(n_entries, weights.dtype), (int(n_states[child].max()), n_classes)
        cells = np.zeros(shape, weights.dtype)
        n_entries = count_entries(weights, samples, is_full, trie, cells, counts)
        if n_entries < len(counts):
            trie = trie._replace(entry_class=trie.entry_class[:n_entries].copy())
            counts = counts[:n_entries].copy()
        return cls(root, trie, counts)

    @cached_property
    def links(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Arguments of :func:`~tanlearn.kernels.context_smoothing.smooth_entries` that do not depend on counts.

        ``above`` (L,) is the entry of the same value and class in the context above each entry's, or -1 - f in the root
        of family f; ``run`` (L,) the position of its class in ``trie.classes``; ``uniform`` (n_families,) the
        probability of each value above the root.
        """
        trie, root = self.trie, self.root
        n_values = trie.value_start[root + 1] - trie.value_start[root]  # a root has all values and classes
        n_classes = int(trie.class_start[1])
        scratch = np.zeros((int(n_values.max()), n_classes), np.intp), np.empty(n_classes, np.intp)
        above, run = np.empty((2, len(trie.entry_class)), np.int32 if len(trie.entry_class) < 2**31 else np.int64)
        link_entries(root, trie, *scratch, above, run)
        return above, run, 1.0 / n_values

    def smooth(self, counts: AnyArray, m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of all entries, and factors for values that do not occur with a class.

        Shapes: counts: (L,), of rows or of other units; m: (R,), positive, the concentration in each context and class;
        result p: (L,); result unseen: (R,).
        """
        p, unseen = np.empty(len(counts)), np.empty(len(m))
        smooth_entries(*self.links, m, counts, p, unseen)
        return p, unseen


def level_starts(children: IntArray, root: int, stop: int, n_levels: int) -> list[int]:
    """Return the first context of each level of a family that ends before ``stop``, and the end of the last level."""
    starts = [root]
    for _ in range(n_levels):
        starts.append(min(int(children[starts[-1]]), stop))
    return starts


def as_index(starts: IntArray) -> IntArray:
    """Return a copy of starts with the smallest integer type for their end."""
    return starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
