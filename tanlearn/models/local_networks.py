"""Marginalization of missing values in networks that back off, with a local network per missing pattern.

The observed values of a row fix an index along their axes of each CPT. Each family is then a small dense CPT over its
missing features, and missing features without observed descendants drop out. These CPTs form a network of a few
features, which the :class:`~tanlearn.models.elimination.Eliminator` marginalizes exactly. If its CPTs would be too
large, the row is split into slices (``slices.py``), by conditioning on some features.

A row that would take more operations than the limit (``marginalization_limits.py``) backs off: missing features are
ignored, and the other features keep only the parents before the first missing parent.

Rows are grouped by pattern, the set of their missing features, because rows of a pattern share the structure of the
local network. Only its CPTs, shape (n_rows, n_cells), differ from row to row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.models.elimination import Eliminator
from tanlearn.models.marginalization_limits import RAISE_LIMIT, most_operations, name_others, warn_of_approximations
from tanlearn.models.slices import expand_slices, log_sum
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["LocalNetworks"]

#: Maximum number of CPT entries of a slice, which take a few milliseconds to fill.
_CAPACITY = 2**18
#: Rows of a pattern, and numbers in their CPTs, per block.
_ROWS, _NUMBERS = 256, 2**22


class _BackOffTables(Protocol):
    """Protocol of the methods of :class:`~tanlearn.models.back_off.BackOffTables` that are used here."""

    @property
    def layout(self) -> TableLayout: ...

    @property
    def log_prior(self) -> FloatArray: ...

    def scorer(self, missing: int) -> Callable[[Codes, int, AnyArray], None]: ...

    def of_values(self, feature: int, values: Codes) -> FloatArray: ...


class _Pattern(NamedTuple):
    """Local network of rows with the same missing features."""

    eliminator: Eliminator
    layout: TableLayout
    is_left: AnyArray  # (n_features,) mask of the features to eliminate
    families: list[
        tuple[int, list[int]]
    ]  # needed families by child, and the positions of the features to eliminate in each
    conditioned: list[int]  # features conditioned on: each combination of their values is a slice
    n_slices: int


class LocalNetworks:
    """Marginalization and completion of rows with missing values in a network that backs off.

    Results are exact for rows within the limit of :func:`~tanlearn.models.marginalization_limits.most_operations`.
    Other rows back off.
    """

    def __init__(self, tables: _BackOffTables, structure: Structure, *, is_normalized: bool = True) -> None:
        # The structure must be acyclic. Missing features without observed descendants drop out if CPTs are normalized.
        self._tables, self._structure, self._is_normalized = tables, structure, is_normalized

    def log_joint(
        self, codes: Codes, samples: IntArray, *, is_exact: bool = True, n_jobs: int | None = None
    ) -> FloatArray:
        """Compute the log joint of the selected rows.

        Rows over the limit of operations raise ValueError if ``is_exact``. Otherwise they back off, and an
        InexactMarginalizationWarning names them. The result does not depend on ``n_jobs``.

        Shapes: codes: (n_features, n_all); samples: (n_samples,); result: (n_samples, n_classes).
        """
        missing, limit = missing_code(codes.dtype), most_operations()
        scores = np.empty((len(samples), self._tables.layout.n_classes))
        back_off = self._tables.scorer(missing)
        refused: list[int] = []

        def score(group: tuple[IntArray, IntArray]) -> None:
            hidden, places = group
            pattern = self._reduce(hidden, limit, is_marginal=self._is_normalized)
            if pattern is None:
                refused.extend(samples[places].tolist())
                found = np.empty((len(places), scores.shape[1]))
                back_off(np.ascontiguousarray(codes[:, samples[places]]), 0, found)
                scores[places] = found
                return
            local, one = np.where(pattern.is_left, missing, 0).astype(codes.dtype)[:, np.newaxis], np.zeros(1, np.intp)
            parts: dict[int, list[FloatArray]] = {place: [] for place in places.tolist()}
            for owners, block in self._blocks(pattern, codes, samples, places):
                for place, cells in zip(owners, self._cells(pattern, block), strict=True):
                    parts[place].append(pattern.eliminator.log_joint(local, one, cells, n_jobs=1)[0])
                    if len(parts[place]) == _ROWS:  # so that rounding does not depend on other rows
                        parts[place] = [log_sum(np.stack(parts[place]))]
            for place, rows in parts.items():
                scores[place] = log_sum(np.stack(rows))

        in_threads(score, _patterns(codes[:, samples] == missing), n_jobs)
        if refused and is_exact:
            raise ValueError(self._too_large(codes, sorted(refused), limit))
        if refused:
            warn_of_approximations(sorted(refused), limit)
        return scores

    def is_exact(self, codes: Codes, samples: IntArray) -> AnyArray:
        """Return a mask of the selected rows.

        It is False for rows over the limit of operations, for which :meth:`log_joint` raises an error or backs off.
        """
        is_exact, limit = np.empty(len(samples), np.bool_), most_operations()
        for hidden, places in _patterns(codes[:, samples] == missing_code(codes.dtype)):
            is_exact[places] = self._reduce(hidden, limit, is_marginal=self._is_normalized) is not None
        return is_exact

    def complete(self, codes: Codes, samples: IntArray, y: IntArray, *, n_jobs: int | None = None) -> Codes:
        """Return a copy of the codes with the most probable joint completion of each selected row.

        In ``y``, a class -1 is replaced in place by the class that is most probable together with the completion. Rows
        over the limit of operations raise ValueError.

        Shapes: codes, result: (n_features, n_all); samples: (n_samples,); y: (n_all,), intp.
        """
        completed, missing, limit = codes.copy(), missing_code(codes.dtype), most_operations()
        score = self._tables.scorer(missing)

        def fill(group: tuple[IntArray, IntArray]) -> None:
            hidden, places = group
            pattern = self._reduce(hidden, limit, is_marginal=False)
            if pattern is None:
                raise ValueError(self._too_large(codes, samples[places].tolist(), limit))
            local, one = np.where(pattern.is_left, missing, 0).astype(codes.dtype)[:, np.newaxis], np.zeros(1, np.intp)
            best: dict[int, tuple[float, int]] = {}
            for owners, block in self._blocks(pattern, codes, samples, places):
                classes = y[samples[owners]]
                for k, cells in enumerate(self._cells(pattern, block)):
                    found = pattern.eliminator.complete(local, one, cells, classes[k : k + 1], n_jobs=1)
                    block[pattern.is_left, k] = found[pattern.is_left, 0]
                scores = np.empty((len(owners), self._tables.layout.n_classes))
                score(np.ascontiguousarray(block), 0, scores)
                for k, place in enumerate(owners.tolist()):
                    rank = -scores[k, classes[k]], int(classes[k])  # ties: the first class, then the first slice
                    if place not in best or rank < best[place]:
                        best[place] = rank
                        completed[:, samples[place]] = block[:, k]
            for place, (_, c) in best.items():
                y[samples[place]] = c

        in_threads(fill, _patterns(codes[:, samples] == missing), n_jobs)
        return completed

    def _reduce(self, hidden: AnyArray, limit: float, *, is_marginal: bool) -> _Pattern | None:
        """Build the local network for a set of missing features, or return None if it exceeds the limit of operations.

        For marginalization, missing features without observed descendants are left out; for completion, they are kept.
        """
        layout, parents, n_states = self._tables.layout, self._structure.parents, self._tables.layout.n_states.tolist()
        is_needed = np.full(len(hidden), not is_marginal) | ~hidden
        for i in self._structure.order[::-1]:
            if is_needed[i]:
                is_needed[parents[i][parents[i] >= 0]] = True
        families = [[i, *parents[i][parents[i] >= 0].tolist()] for i in np.flatnonzero(is_needed).tolist()]
        is_left = hidden & is_needed
        conditioned: list[int] = []
        n_slices = 1
        while True:
            scopes = [[j for j in family if is_left[j]] for family in families]
            sizes = [math.prod(n_states[j] for j in scope) for scope in scopes]
            size = sum(sizes) * layout.n_classes
            if n_slices * size > limit:
                return None
            if size <= _CAPACITY or not is_left.any():
                break
            largest = scopes[max(range(len(sizes)), key=sizes.__getitem__)]
            chosen = min(largest, key=lambda i: _size_without(i, scopes, sizes, n_states[i]))
            is_left[chosen] = False
            conditioned, n_slices = [*conditioned, chosen], n_slices * n_states[chosen]
        left, needed = np.full_like(parents, -1), []
        for family in families:
            positions = [place for place, j in enumerate(family) if is_left[j]]
            given = [family[place] for place in positions if place > 0]
            left[family[0], : len(given)] = given
            needed.append((family[0], positions))
        structure = Structure(left)
        local = TableLayout.of_parents(structure.parents, np.where(is_left, layout.n_states, 1), layout.n_classes)
        eliminator = Eliminator(structure, local, is_normalized=is_marginal, most_operations=limit / n_slices)
        codes = np.where(is_left, 255, 0).astype(np.uint8)[:, np.newaxis]
        if eliminator.find_inexact(codes, np.zeros(1, np.intp)).size:
            return None
        return _Pattern(eliminator, local, is_left, needed, conditioned, n_slices)

    def _blocks(
        self, pattern: _Pattern, codes: Codes, samples: IntArray, places: IntArray
    ) -> Iterator[tuple[IntArray, Codes]]:
        """Yield blocks of slices: for each slice, the position of its row and its codes."""
        n_rows = max(1, min(_ROWS, _NUMBERS // pattern.layout.n_cells))
        if pattern.n_slices == 1:
            for first in range(0, len(places), n_rows):
                block = places[first : first + n_rows]
                slices = codes[:, samples[block]]
                slices[pattern.conditioned] = 0  # features with a single value
                yield block, slices
            return
        n_states = self._tables.layout.n_states.tolist()
        for place in places.tolist():
            for first in range(0, pattern.n_slices, n_rows):
                last = min(first + n_rows, pattern.n_slices)
                yield (
                    np.full(last - first, place),
                    expand_slices(codes[:, samples[place]], pattern.conditioned, n_states, first, last),
                )

    def _cells(self, pattern: _Pattern, codes: Codes) -> FloatArray:
        """Compute the cells (n_rows, n_cells) of the local networks for the given rows."""
        tables, layout, n_classes = self._tables, pattern.layout, self._tables.layout.n_classes
        n_rows = codes.shape[1]
        cells = np.zeros((n_rows, layout.n_cells))
        cells[:, :n_classes] = tables.log_prior
        for i, positions in pattern.families:
            given = tables.layout.parents[i]
            family = [i, *given[given >= 0].tolist()]
            shape = [int(tables.layout.n_states[family[place]]) for place in positions]
            values = np.repeat(codes[family], math.prod(shape), axis=1)
            for place, digits in zip(positions, np.indices(shape).reshape(len(shape), math.prod(shape)), strict=True):
                values[place] = np.tile(digits, n_rows)
            cells[:, layout.offset[i] : layout.offset[i + 1]] = tables.of_values(i, values).reshape(n_rows, -1)
        return cells

    def _too_large(self, codes: Codes, rows: list[int], limit: float) -> str:
        """Return the error message for rows over the limit of operations."""
        n_missing = int((codes[:, rows[0]] == missing_code(codes.dtype)).sum())
        return (
            f"marginalizing the missing values of a row may take at most {limit:,.0f} operations, but row {rows[0]} "
            f"lacks {n_missing} feature{'s' * (n_missing != 1)} that depend on each other "
            f"through many parents and would take "
            f"more.{name_others(rows)} Impute some of them, learn a structure with fewer parents, or {RAISE_LIMIT}."
        )


def _size_without(i: int, scopes: list[list[int]], sizes: list[int], n_values: int) -> int:
    """Return the size of the CPTs of all slices if a feature is conditioned on."""
    return sum(size if i in scope else size * n_values for scope, size in zip(scopes, sizes, strict=True))


def _patterns(is_hidden: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Return the distinct columns of a mask, each with the indices of all columns equal to it."""
    packed = np.packbits(is_hidden, axis=0).T
    _, first, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(kind.ravel()))[:-1])
    return [(is_hidden[:, n], places) for n, places in zip(first, groups, strict=True)]
