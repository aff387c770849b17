"""Tables of families with many parents, kept as counts of seen contexts, that back off to fewer parents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.kernels import back_off as kernels
from tanlearn.kernels.contexts import Levels
from tanlearn.network.contexts import ContextCounts, build_levels
from tanlearn.network.packing import worth_threads
from tanlearn.network.tables import TableLayout, Tables

__all__ = ["BackOffTables", "Family"]

#: Rows of a dense table that are made at a time.
_ROWS = 2**16


class Family:
    """The smoothed probabilities of one feature in all contexts that rows have shown.

    Shapes: concentrations: (n_levels,).
    """

    def __init__(
        self,
        levels: Levels,
        bounds: IntArray,
        counts: AnyArray,
        concentrations: FloatArray,
        n_states: int,
        n_classes: int,
    ) -> None:
        # levels: Contexts, as :func:`~tanlearn.network.contexts.build_levels` returns them. bounds: (n_levels + 1,
        # 3): Where each level begins. counts: (n_entries,): Counts of all levels; those of the levels, or of tables
        # of a Dirichlet process.
        self.levels, self.bounds, self.counts = levels, bounds, counts
        totals = np.bincount(levels.run, counts, len(levels.class_id))
        self.log_p, self.log_rest = np.empty(len(counts)), np.empty(len(totals))
        self.root: FloatArray = np.empty((n_states, n_classes))
        scratch = np.empty(len(counts))
        m = np.ascontiguousarray(concentrations[: len(bounds) - 1])
        kernels.smooth(levels, counts, totals, bounds, m, n_states, scratch, self.log_p, self.log_rest, self.root)

    def least_log_probability(self) -> FloatArray:
        """Return a lower bound of the log-probabilities of all values in all contexts, given each class.

        Shapes: result: (n_classes,).
        """
        least: FloatArray = self.root.min(axis=0)
        for level in range(1, len(self.bounds) - 1):
            runs = slice(*self.bounds[level : level + 2, 1])
            rest = np.zeros_like(least)
            np.minimum.at(rest, self.levels.class_id[runs], self.log_rest[runs])
            least = least + rest
        return least

    def entries(self, level: int) -> tuple[IntArray, AnyArray]:
        """Return what is counted at a level.

        Shapes: result values: (n_entries, level + 2); result counts: (n_entries,).
        """
        first, last = self.bounds[level : level + 2, 2]
        levels, found = self.levels, [self.levels.entry_value[first:last], self.levels.entry_class[first:last]]
        above = np.repeat(np.arange(len(levels.digit)), np.diff(levels.child_start))  # of contexts but the first
        context = np.repeat(np.arange(len(levels.digit)), np.diff(levels.entry_start))[first:last]
        for _ in range(level):
            found.insert(0, levels.digit[context])
            context = above[context - 1]
        return np.stack(found, axis=1).astype(np.intp), self.counts[first:last]


class BackOffTables(Tables):
    """Log-probabilities that follow from the counts of seen contexts, with fewer parents where there are few rows.

    With n and N the counts of value and class, and of the class, in the context of a feature's first j parents::

        P_j(x | y, p1..pj) = (n + m_j P_{j-1}(x | y, p1..pj-1)) / (N + m_j),    P_-1 = 1 / n_states

    They take memory by rows, and not by the product of the numbers of values, and a prediction costs the classes that
    rows of its contexts have. What needs dense tables (:attr:`cells`) makes them, where they fit the memory.

    Shapes: log_prior: (n_classes,).
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
            levels, bounds = build_levels(*contexts.families[i], contexts.family(i)[1])
            found = levels.entry_count if counts is None else counts[i]
            return Family(levels, bounds, found, self.concentrations, int(contexts.n_states[i]), contexts.n_classes)

        n_entries = sum(len(found) for _, found in contexts.families)
        threads = worth_threads(n_entries * 64, n_jobs)
        object.__setattr__(self, "families", in_threads(make, range(len(contexts.families)), threads))

    contexts: ContextCounts  # Counts of the families, of one row and more
    # (n_levels,): m of every level, from no parent to as many as a feature has at most; not negative
    concentrations: FloatArray
    families: list[Family]  # What scores are made of
    _log_prior: FloatArray
    _has_counts: bool

    @property
    def log_prior(self) -> FloatArray:
        """Log-probability of every class, shape (n_classes,)."""
        return self._log_prior

    def with_log_prior(self, log_prior: FloatArray) -> BackOffTables:
        """Return tables with other class probabilities.

        Shapes: log_prior: (n_classes,).
        """
        twin: BackOffTables = object.__new__(type(self))
        vars(twin).update(vars(self))
        vars(twin).pop("cells", None)
        object.__setattr__(twin, "_log_prior", np.array(log_prior, np.float64))
        return twin

    @cached_property
    def cells(self) -> FloatArray:
        """The log-probabilities of all contexts, seen or not, as dense tables hold them; made when first asked for."""
        self.layout.check_memory(int(max(1, self.contexts.class_counts.sum())))
        return np.concatenate([self.log_prior, *(self[i].ravel() for i in range(len(self)))])

    def to_dense(self) -> Tables:
        """Return the same tables with all their cells."""
        return Tables(self.layout, self.cells)

    def __getitem__(self, feature: int) -> FloatArray:
        """Return log P(value | parent value, class), shape (values, parent values ..., classes)."""
        if not 0 <= feature < len(self):
            raise IndexError(f"there is no feature {feature}: features are numbered from 0 to {len(self) - 1}.")
        parents = self.layout.parents[feature]
        axes = [feature, *parents[parents >= 0].tolist()]
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
        """Return what a feature adds to the log joint of rows.

        Shapes: codes: (n_features, n_samples); result: (n_samples, n_classes).
        """
        scores = np.zeros((codes.shape[1], self.layout.n_classes))
        self._add(feature, codes, 0, feature, self._parents[feature], missing_code(codes.dtype), scores)
        return scores

    def of_values(self, feature: int, values: Codes) -> FloatArray:
        """Return what a feature adds to the log joint, given values of its family alone.

        Shapes: values: (1 + n_parents, n_samples); result: (n_samples, n_classes).
        """
        scores = np.zeros((values.shape[1], self.layout.n_classes))
        self._add(feature, values, 0, 0, np.arange(1, len(values)), missing_code(values.dtype), scores)
        return scores

    def scorer(self, missing: int) -> Callable[[Codes, int, AnyArray], None]:
        """Return what adds up the log joint of a block of rows, of the longest contexts that miss no parent."""

        def score(codes: Codes, first: int, scores: AnyArray) -> None:
            scores[:] = self.log_prior
            for i, parents in enumerate(self._parents):
                self._add(i, codes, first, i, parents, missing, scores)

        return score

    def _add(
        self, i: int, codes: Codes, first: int, child: int, parents: IntArray, missing: int, scores: AnyArray
    ) -> None:
        """Add what a feature says of rows whose codes of it and its parents stand in some rows of the codes."""
        family = self.families[i]
        arrays = family.levels, family.log_p, family.log_rest, family.root
        kernels.add_log_back_off(codes, first, child, parents, *arrays, missing, np.empty(scores.shape[1]), scores)

    @cached_property
    def _parents(self) -> list[IntArray]:
        """The parents of every feature."""
        return [self.contexts.family(i)[0] for i in range(len(self))]

    def conditional(self, feature: int, codes: Codes, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the distributions of a feature, and which of them each row has.

        Shapes: codes: (n_features, n_samples); y: (n_samples,); result table: (n_values, n_distributions); result
            column: (n_samples,).
        """
        seen, rows = codes.copy(), np.arange(codes.shape[1])
        table = np.empty((int(self.layout.n_states[feature]), len(rows)))
        for value, chances in enumerate(table):
            seen[feature] = value
            chances[:] = self.of_rows(feature, seen)[rows, y]
        return table, rows

    def check_device(self, device: str) -> None:
        """Refuse devices, which have no kernels for these tables."""
        if device != "cpu":
            raise ValueError(
                f"device={device!r} has no kernels for tables that back off to fewer parents. Use device='cpu', or "
                f"HierarchicalSmoothing(sparse=False)."
            )

    def to_state(self) -> dict[str, Any]:
        """Return what a file keeps of the tables beside their structure."""
        families = self.contexts.families
        found = [family.counts for family in self.families]
        back_off = {
            "concentrations": self.concentrations,
            "class_counts": self.contexts.class_counts,
            "n_entries": np.array([len(counts) for _, counts in families], np.int64),
            "values": np.concatenate([values.T.ravel() for values, _ in families]),
            "counts": np.concatenate([counts for _, counts in families]),
            "level_counts": np.concatenate(found) if self._has_counts else None,
        }
        return {"cells": self.log_prior, "back_off": back_off}

    @property
    def n_cells(self) -> int:
        """How many numbers the tables hold: the class prior, and the counts of all levels."""
        return len(self.log_prior) + sum(len(family.counts) for family in self.families)

    @property
    def n_parameters(self) -> int:
        """As many as there are counts of all levels, and classes but one."""
        return self.n_cells - 1

    def __len__(self) -> int:
        return len(self.families)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {name: value for name, value in vars(self).items() if name != "cells"}

    def __repr__(self) -> str:
        shape = f"n_features={len(self)}, n_classes={self.layout.n_classes}"
        return f"BackOffTables({shape}, n_parameters={self.n_parameters})"
