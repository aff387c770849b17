"""Missing features of tables that back off, summed out in the network that is left of a row when it is looked up.

What a row has observed picks one value of every axis: of each family there remains a small dense table over what it
misses, and a feature that nothing observed depends on drops out. These tables make a network of a few features, for the
:class:`~tanlearn.network.elimination.Eliminator`. Where even that would be too large, the row backs off: features
that it misses are left out, and the others are given the parents before the first that it misses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import Codes, FloatArray, IntArray, missing_code
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.elimination import Eliminator
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout

__all__ = ["LocalNetworks"]

#: Numbers that the tables and factors of a row may take; some milliseconds to fill.
_CAPACITY = 2**18
#: Rows of one pattern whose tables are made at a time, and at most so many numbers.
_ROWS, _NUMBERS = 256, 2**22


class _Pattern(NamedTuple):
    """What is left of the network where the same features are missing."""

    eliminator: Eliminator
    layout: TableLayout
    is_left: IntArray  # (d,): whether a feature is to be summed out
    families: list[tuple[int, list[int]]]  # those that say something, and positions of what they miss among their own


class LocalNetworks:
    """Sums what rows miss out of tables that back off, exactly where that is small, else by backing off.

    Parameters
    ----------
    tables : BackOffTables
        Log-probabilities.
    structure : Structure
        Their parents; without cycles.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, Structure
    >>> from tanlearn.network.back_off import BackOffTables
    >>> from tanlearn.network.contexts import ContextCounts
    >>> from tanlearn.network.local_networks import LocalNetworks
    >>> data, structure = EncodedData.from_codes([[0, 1], [1, 1], [1, 0]], [0, 1, 1]), Structure([-1, 0])
    >>> contexts = ContextCounts(structure.parents, data.n_states, data.n_classes).update(data)
    >>> tables = BackOffTables(contexts, [1.0, 1.0], np.log([0.5, 0.5]))
    >>> codes = np.array([[255], [1]], dtype=np.uint8)  # the first feature is missing
    >>> np.exp(LocalNetworks(tables, structure).log_joint(codes, np.array([0]))).round(3).tolist()
    [[0.422, 0.25]]
    """

    def __init__(self, tables: BackOffTables, structure: Structure) -> None:
        self._tables, self._structure = tables, structure

    def log_joint(self, codes: Codes, samples: IntArray, *, n_jobs: int | None = None) -> FloatArray:
        """Return the log joint of some samples.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_all)
            Feature-major codes.
        samples : ndarray of shape (n_samples,)
            Which of them.
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        missing = missing_code(codes.dtype)
        scores = np.empty((len(samples), self._tables.layout.n_classes))
        back_off = self._tables.scorer(missing)

        def score(group: tuple[IntArray, IntArray]) -> None:
            hidden, places = group
            pattern = self._reduce(hidden, is_marginal=True)
            if pattern is None:
                found = np.empty((len(places), scores.shape[1]))
                back_off(np.ascontiguousarray(codes[:, samples[places]]), 0, found)
                scores[places] = found
                return
            local = np.where(pattern.is_left, missing, 0).astype(codes.dtype)[:, np.newaxis]
            for place, cells in self._cells(pattern, codes, samples, places):
                scores[place] = pattern.eliminator.log_joint(local, np.zeros(1, np.intp), cells, n_jobs=1)[0]

        in_threads(score, _patterns(codes[:, samples] == missing), n_jobs)
        return scores

    def is_exact(self, codes: Codes, samples: IntArray) -> IntArray:
        """Return of which samples what they miss is summed out exactly.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_all)
            Feature-major codes.
        samples : ndarray of shape (n_samples,)
            Which of them.

        Returns
        -------
        ndarray of shape (n_samples,), bool
            False where :meth:`log_joint` backs off.
        """
        is_exact: IntArray = np.empty(len(samples), np.bool_)
        for hidden, places in _patterns(codes[:, samples] == missing_code(codes.dtype)):
            is_exact[places] = self._reduce(hidden, is_marginal=True) is not None
        return is_exact

    def complete(self, codes: Codes, samples: IntArray, y: IntArray, *, n_jobs: int | None = None) -> Codes:
        """Return codes in which some samples are filled in with their most probable values, all of a sample together.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_all)
            Feature-major codes.
        samples : ndarray of shape (n_samples,)
            Which of them.
        y : ndarray of shape (n_all,), intp
            Classes; a -1 is replaced by the class that is most probable together with the completion.
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_features, n_all)
            A copy.

        Raises
        ------
        ValueError
            If the tables of a sample would be too large.
        """
        completed, missing = codes.copy(), missing_code(codes.dtype)

        def fill(group: tuple[IntArray, IntArray]) -> None:
            hidden, places = group
            pattern = self._reduce(hidden, is_marginal=False)
            if pattern is None:
                raise ValueError(
                    f"row {samples[places[0]]} misses {hidden.sum()} features that depend on each other through so "
                    f"many parents that filling them in would take more than {_CAPACITY:,} numbers. Impute some of "
                    f"them, or learn a structure with fewer parents."
                )
            local = np.where(hidden, missing, 0).astype(codes.dtype)[:, np.newaxis]
            for place, cells in self._cells(pattern, codes, samples, places):
                n = samples[place]
                found = pattern.eliminator.complete(local, np.zeros(1, np.intp), cells, y[n : n + 1], n_jobs=1)
                completed[hidden, n] = found[hidden, 0]

        in_threads(fill, _patterns(codes[:, samples] == missing), n_jobs)
        return completed

    def _reduce(self, hidden: IntArray, *, is_marginal: bool) -> _Pattern | None:
        """Return what is left where some features are missing, or None if that is too large.

        To sum out, features that nothing observed depends on are of no use; to complete rows, they are.
        """
        layout, parents = self._tables.layout, self._structure.parents
        is_needed = np.full(len(hidden), not is_marginal)
        for i in self._structure.order[::-1]:
            if not hidden[i] or is_needed[i]:
                is_needed[parents[i][parents[i] >= 0]] = True
        is_left = hidden & is_needed
        left, families, size = np.full_like(parents, -1), [], 0
        for i in np.flatnonzero(~hidden | is_needed).tolist():
            family = [i, *parents[i][parents[i] >= 0].tolist()]
            positions = [place for place, j in enumerate(family) if is_left[j]]
            given = [family[place] for place in positions if place > 0]
            left[i, : len(given)] = given
            families.append((i, positions))
            size += math.prod(int(layout.n_states[family[place]]) for place in positions)
        if size * layout.n_classes > _CAPACITY:
            return None
        structure = Structure(left)
        local = TableLayout.of_parents(structure.parents, np.where(is_left, layout.n_states, 1), layout.n_classes)
        eliminator = Eliminator(structure, local, is_normalized=is_marginal)
        return None if eliminator.capacity > _CAPACITY else _Pattern(eliminator, local, is_left, families)

    def _cells(
        self, pattern: _Pattern, codes: Codes, samples: IntArray, places: IntArray
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield the places of samples, and the cells of their networks."""
        tables, layout, n_classes = self._tables, pattern.layout, self._tables.layout.n_classes
        n_rows = max(1, min(_ROWS, _NUMBERS // layout.n_cells))
        for first in range(0, len(places), n_rows):
            block = places[first : first + n_rows]
            cells = np.zeros((len(block), layout.n_cells))
            cells[:, :n_classes] = tables.log_prior
            for i, positions in pattern.families:
                given = tables.layout.parents[i]
                family = [i, *given[given >= 0].tolist()]
                seen = codes[np.ix_(family, samples[block])]
                shape = [int(tables.layout.n_states[family[place]]) for place in positions]
                values = np.repeat(seen, math.prod(shape), axis=1)
                for place, digits in zip(
                    positions, np.indices(shape).reshape(len(shape), math.prod(shape)), strict=True
                ):
                    values[place] = np.tile(digits, len(block))
                found = tables.of_values(i, values).reshape(len(block), -1)
                cells[:, layout.offset[i] : layout.offset[i + 1]] = found
            yield from zip(block, cells, strict=True)


def _patterns(is_hidden: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Return every different column, and the numbers of the columns that equal it."""
    packed = np.packbits(is_hidden, axis=0).T
    _, first, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(kind.ravel()))[:-1])
    return [(is_hidden[:, n], places) for n, places in zip(first, groups, strict=True)]
