"""CPTs of families with many parents, which are stored as sparse counts and back off to fewer parents.

A context is an assignment of values to the first j parents. The probability in a context is a weighted mean of the
relative frequency in this context and the probability with one fewer parent. The weight of the frequency is small if
the context has few rows (hierarchical smoothing). Only contexts that occur in the rows are stored, as tries
(``counts/context_tries.py``). A lookup descends to the longest stored context that agrees with the parent values of the
row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.context_tries import level_starts
from tanlearn.counts.packing import worth_threads
from tanlearn.kernels.context_scores import add_log_probabilities
from tanlearn.kernels.mathematics import log, log_all
from tanlearn.models.local_networks import LocalNetworks
from tanlearn.models.row_scorers import ColumnScorer, RowScorer, Scorer
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["BackOffTables", "Family"]

#: Rows per block when a CPT is made dense.
_ROWS = 2**16


class Family:
    """Smoothed log probabilities of one feature in all contexts that occur in the rows."""

    def __init__(
        self, contexts: ContextCounts, feature: int, concentrations: FloatArray, counts: AnyArray | None
    ) -> None:
        # Shapes: concentrations (n_levels,), counts (n_entries,) of all levels. ``counts`` are the numbers of tables
        # in a Chinese restaurant process, or None for the numbers of rows.
        grown, n_levels = contexts.grow(feature), 1 + len(contexts.family(feature)[0])
        self.trie, self.counts = grown.trie, grown.counts if counts is None else counts
        # (n_levels + 1,) first context of each level, and the number of contexts
        self.start = level_starts(self.trie.children, 0, len(self.trie.branch), n_levels)
        m = np.repeat(concentrations[:n_levels], np.diff(self.trie.class_start[self.start]))
        p, unseen = grown.smooth(self.counts, m)
        self.log_p, self.log_unseen = np.empty(p.shape), np.empty(unseen.shape)
        log_all(p, self.log_p)
        log_all(unseen, self.log_unseen)
        n_values, n_classes = int(contexts.n_states[feature]), contexts.n_classes
        # Log probabilities without parents, including pairs that do not occur.
        self.root: FloatArray = np.empty((n_values, n_classes))
        self.root[:] = self.log_unseen[:n_classes] - log(float(n_values))
        start = self.trie.entry_start[: n_values + 1]
        value, of_class = np.repeat(np.arange(n_values), start[1:] - start[:-1]), self.trie.entry_class[: start[-1]]
        self.root[value, of_class] = self.log_p[: start[-1]]

    def least_log_probability(self) -> FloatArray:
        """Return a lower bound of the log probabilities of all values in all contexts. Shape: (n_classes,).

        It is the smoothed log probability of an unseen value in the context with the most rows at each level.
        """
        least: FloatArray = self.root.min(axis=0)
        for first, last in itertools.pairwise(self.trie.class_start[self.start[1:]].tolist()):
            rest = np.zeros_like(least)
            np.minimum.at(rest, self.trie.classes[first:last], self.log_unseen[first:last])
            least = least + rest
        return least

    def entries(self, level: int) -> tuple[IntArray, AnyArray]:
        """Return the values of the parents, the feature and the class of each entry of a level, and the counts.

        Shapes: result values: (n_entries, level + 2); result counts: (n_entries,).
        """
        trie, first, last = self.trie, *self.start[level : level + 2]
        values = slice(trie.value_start[first], trie.value_start[last])
        entries = slice(trie.entry_start[values.start], trie.entry_start[values.stop])
        size = np.diff(trie.entry_start[values.start : values.stop + 1])
        context = np.repeat(np.arange(first, last), np.diff(trie.value_start[first : last + 1]))
        context, found = np.repeat(context, size), [np.repeat(trie.values[values], size), trie.entry_class[entries]]
        above = np.repeat(np.arange(len(trie.branch)), np.diff(trie.children))  # of all contexts except the root
        for _ in range(level):
            found.insert(0, trie.branch[context])
            context = above[context - 1]
        return np.stack(found, axis=1).astype(np.intp), self.counts[entries]


class BackOffTables(Tables):
    """CPTs computed from sparse counts, which back off to fewer parents if a context has few rows.

    With n the count of value and class, and N the count of the class, in the context of a feature's first j parents::

        P_j(x | y, p1..pj) = (n + m_j P_{j-1}(x | y, p1..pj-1)) / (N + m_j),    P_-1 = 1 / n_states

    The memory depends on the number of rows, not on the product of the numbers of values. The time of a prediction
    depends on the number of classes that occur in the contexts of a row. Dense CPTs (:attr:`cells`) are computed on
    demand, if they fit in memory.
    """

    def __init__(
        self,
        contexts: ContextCounts,
        concentrations: Any,
        log_prior: Any,
        *,
        counts: Sequence[AnyArray] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        layout = TableLayout.of_parents(contexts.parents, contexts.n_states, contexts.n_classes)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "concentrations", np.asarray(concentrations, np.float64))
        object.__setattr__(self, "_log_prior", np.asarray(log_prior, np.float64))
        object.__setattr__(self, "_has_counts", counts is not None)

        def make(i: int) -> Family:
            return Family(contexts, i, self.concentrations, None if counts is None else counts[i])

        n_entries = sum(len(found) for _, found in contexts.families)
        threads = worth_threads(n_entries * 64, n_jobs)
        object.__setattr__(self, "families", in_threads(make, range(len(contexts.families)), threads))

    contexts: ContextCounts  # counts of the families, of at least one row
    concentrations: FloatArray  # (n_levels,) m_j of each number of parents j, nonnegative
    families: list[Family]
    _log_prior: FloatArray
    _has_counts: bool

    @property
    def log_prior(self) -> FloatArray:
        """Log probability of each class. Shape: (n_classes,)."""
        return self._log_prior

    def with_log_prior(self, log_prior: FloatArray) -> BackOffTables:
        """Return a shallow copy with other class probabilities (n_classes,)."""
        twin: BackOffTables = object.__new__(type(self))
        vars(twin).update(vars(self))
        vars(twin).pop("cells", None)
        object.__setattr__(twin, "_log_prior", np.array(log_prior, np.float64))
        return twin

    @cached_property
    def cells(self) -> FloatArray:
        """Dense log probabilities of all contexts, seen or not; computed on first access. Shape: (layout.n_cells,).

        Raises TableMemoryError if the log probabilities exceed the memory limit of CPTs.
        """
        self.layout.check_memory(int(max(1, self.contexts.class_counts.sum())))
        return np.concatenate([self.log_prior, *(self[i].ravel() for i in range(len(self)))])

    def to_dense(self) -> Tables:
        """Convert to dense CPTs."""
        return Tables(self.layout, self.cells)

    def __getitem__(self, feature: int) -> FloatArray:
        """Return log P(value | parent values, class). Shape: (values, values of each parent, classes)."""
        if not 0 <= feature < len(self):
            raise IndexError(f"feature must be from 0 to {len(self) - 1}, got {feature}.")
        parents = self.layout.parents[feature]
        axes = self._family(feature)
        alone = TableLayout(
            self.layout.child[[feature]], parents[np.newaxis], self.layout.n_states, self.layout.n_classes
        )
        alone.check_memory(int(max(1, self.contexts.class_counts.sum())))
        shape = self.layout.shape(feature)
        table = np.empty((alone.n_cells // shape[-1] - 1, shape[-1]))
        codes = np.zeros((len(self), min(len(table), _ROWS)), codes_dtype(int(self.layout.n_states.max())))
        for first in range(0, len(table), _ROWS):
            rows = np.arange(first, min(first + _ROWS, len(table)))
            codes[axes, : len(rows)] = np.unravel_index(rows, shape[:-1])
            table[rows] = self.of_rows(feature, codes[:, : len(rows)])
        return table.reshape(shape)

    def of_rows(self, feature: int, codes: Codes) -> FloatArray:
        """Return the contribution of a feature to the log joint of rows.

        A missing feature contributes 0. If a parent is missing, only the parents before it are used.

        Shapes: codes: (n_features, n_samples); result: (n_samples, n_classes).
        """
        scores = np.zeros((codes.shape[1], self.layout.n_classes))
        self._add(feature, codes, 0, feature, self._parents[feature], scores)
        return scores

    def of_values(self, feature: int, values: Codes) -> FloatArray:
        """Return the contribution of a feature to the log joint, from the codes of its family only.

        Row 0 of ``values`` (1 + n_parents, n_samples) belongs to the feature, the other rows to its parents. The result
        has shape (n_samples, n_classes).
        """
        scores = np.zeros((values.shape[1], self.layout.n_classes))
        self._add(feature, values, 0, 0, np.arange(1, len(values)), scores)
        return scores

    def scorer(self, missing: int) -> Callable[[Codes, int, AnyArray], None]:
        """Return a function that writes the log joint of a block of rows; contexts end at the first missing parent.

        ``score(codes, first, scores)`` processes ``len(scores)`` rows, starting with row ``first``.
        """

        def score(codes: Codes, first: int, scores: AnyArray) -> None:
            scores[:] = self.log_prior
            for i, parents in enumerate(self._parents):
                self._add(i, codes, first, i, parents, scores)

        return score

    def row_scorer(self, structure: Structure, score_column: ColumnScorer) -> RowScorer:
        """Return a function that computes the log joint of single rows."""
        return Scorer(self, structure, score_column)

    def _add(self, i: int, codes: Codes, first: int, child: int, parents: IntArray, scores: AnyArray) -> None:
        """Add the contribution of a feature; ``child`` and ``parents`` are the rows of codes with its family."""
        family = self.families[i]
        arrays = family.root, family.trie, family.log_p, family.log_unseen, np.empty(scores.shape[1])
        add_log_probabilities(codes, first, child, parents, *arrays, scores)

    @cached_property
    def _parents(self) -> list[IntArray]:
        """Parents of each feature."""
        return [self.contexts.family(i)[0] for i in range(len(self))]

    def marginalize(
        self,
        structure: Structure,
        codes: Codes,
        rows: IntArray,
        *,
        is_exact: bool = False,
        n_jobs: int | None = None,
        device: str = "cpu",
    ) -> FloatArray:
        """Return the log joint of the selected rows; rows over the limit back off, unless ``is_exact``."""
        return LocalNetworks(self, structure).log_joint(codes, rows, is_exact=is_exact, n_jobs=n_jobs)

    def is_exact(self, structure: Structure, codes: Codes) -> AnyArray:
        """Return a mask of the rows within the limit of operations; other rows are approximated by fewer parents."""
        return LocalNetworks(self, structure).is_exact(codes, np.arange(codes.shape[1]))

    def complete(
        self, structure: Structure, codes: Codes, rows: IntArray, y: IntArray, *, n_jobs: int | None = None
    ) -> Codes:
        """Return a copy of the codes with the most probable joint completion of the selected rows."""
        return LocalNetworks(self, structure).complete(codes, rows, y, n_jobs=n_jobs)

    def least_log_probabilities(self) -> FloatArray:
        """Return lower bounds of the log probabilities of all values. Shape: (n_features, n_classes)."""
        return np.stack([family.least_log_probability() for family in self.families])

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the concentrations and counts of a feature, level by level."""
        back_off = []
        for level in range(len(self.families[feature].start) - 1):
            values, counts = self.families[feature].entries(level)
            entries = [[*row, n] for row, n in zip(values.tolist(), counts.tolist(), strict=True)]
            back_off.append({"m": float(self.concentrations[level]), "counts": entries})
        return {"probabilities": None, "back_off": back_off}

    def conditional(self, feature: int, codes: Codes, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the conditional distribution of a feature in each row, and the column of each row.

        Shapes: codes: (n_features, n_samples); y: (n_samples,); result table: (n_values, n_samples); result column:
        (n_samples,).
        """
        return self._conditional_of_rows(feature, codes, y)

    def check_device(self, device: str) -> None:
        """Raise ValueError on devices other than the CPU, which have no kernels for these CPTs."""
        if device != "cpu":
            raise ValueError(
                f"device={device!r} has no kernels for CPTs that back off to fewer parents. Use device='cpu', or "
                f"HierarchicalSmoothing(sparse=False)."
            )

    def to_state(self) -> dict[str, Any]:
        """Return the fields that a file stores, apart from the structure.

        ``cells`` is the class prior. ``back_off`` contains ``concentrations``, ``class_counts``, ``n_entries``, the
        ``values`` and ``counts`` of all families concatenated, and ``level_counts``, the counts of all levels or None.
        """
        found = [family.counts for family in self.families]
        back_off = {
            "concentrations": self.concentrations,
            **self.contexts.arrays(),
            "level_counts": np.concatenate(found) if self._has_counts else None,
        }
        return {"cells": self.log_prior, "back_off": back_off}

    @property
    def is_dense(self) -> bool:
        """False, because ``cells`` are computed on demand."""
        return False

    @property
    def n_cells(self) -> int:
        """Number of stored numbers: the class prior, and the counts of all levels."""
        return len(self.log_prior) + sum(len(family.counts) for family in self.families)

    @property
    def n_parameters(self) -> int:
        """Number of parameters: the counts of all levels, and n_classes - 1 for the class prior."""
        return self.n_cells - 1

    def __len__(self) -> int:
        return len(self.families)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the dense CPTs."""
        return {name: value for name, value in vars(self).items() if name != "cells"}

    def __repr__(self) -> str:
        shape = f"n_features={len(self)}, n_classes={self.layout.n_classes}"
        return f"BackOffTables({shape}, n_parameters={self.n_parameters})"
